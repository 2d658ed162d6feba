package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mutant: load-total-is-each-callers
func TestTotalBoundsTheRequestsOfAllCallers(t *testing.T) {
	for name, cfg := range map[string]Config{
		"closed":   {Callers: 7},
		"warm":     {Callers: 7, WarmUp: 20 * time.Millisecond},
		"constant": {Callers: 7, Arrivals: Arrivals{Process: Constant, Rate: 5000}},
		"bursts":   {Callers: 7, Arrivals: Arrivals{Process: Bursts, Rate: 5000}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Duration, cfg.Total = time.Hour, 100
			r, err := Run(t.Context(), cfg, &fakeTarget{delay: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			if r.Completed != 100 || r.Unsent != 0 || r.Partial != "" {
				t.Errorf("completed %d, unsent %d, partial %q, want 100 requests and a complete run", r.Completed, r.Unsent, r.Partial)
			}
			if cfg.WarmUp > 0 && (r.WarmUp.Completed == 0 || r.WarmUp.Elapsed < cfg.WarmUp) {
				t.Errorf("warm-up of %d requests in %v", r.WarmUp.Completed, r.WarmUp.Elapsed)
			}
		})
	}
}

func TestTotalHoldsForBatches(t *testing.T) {
	r, err := Run(t.Context(), Config{Callers: 3, Batch: 8, Duration: time.Hour, Total: 50}, emptyBatches{})
	if err != nil || r.Completed != 50 {
		t.Errorf("completed %d, %v, want 50", r.Completed, err)
	}
}

type emptyBatches struct{}

func (emptyBatches) NewCaller(context.Context, int) (Caller, error) { return emptyBatches{}, nil }
func (emptyBatches) Do(context.Context) error                       { return nil }
func (emptyBatches) DoBatch(context.Context, []error)               {}
func (emptyBatches) Close() error                                   { return nil }

type namedError struct{}

func (namedError) Error() string     { return "status 503" }
func (namedError) ErrorKind() string { return "status 503" }

// mutant: load-kinds-ignore-the-name
func TestErrorsAreCountedByKind(t *testing.T) {
	target := &fakeTarget{fail: func(n int64) error {
		switch n % 4 {
		case 0:
			return fmt.Errorf("get: %w", namedError{})
		case 1:
			return &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
		}
		return nil
	}}
	r, err := Run(t.Context(), Config{Callers: 1, Duration: time.Hour, Total: 40}, target)
	if err != nil {
		t.Fatal(err)
	}
	if r.ErrorKinds["status 503"] != 10 || r.ErrorKinds["connection reset"] != 10 || r.Errors != 20 {
		t.Errorf("%d errors: %v", r.Errors, r.ErrorKinds)
	}
	for want, err := range map[string]error{
		"timeout":           os.ErrDeadlineExceeded,
		"connection closed": io.ErrUnexpectedEOF,
		"name resolution":   &net.DNSError{IsTimeout: true},
		"not finished":      fmt.Errorf("%w: %w", errAbandoned, namedError{}),
		"other":             errors.New("something"),
	} {
		if got := ErrorKind(err); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
}

// An overloaded target makes latencies questionable, but it is not a limit of the generator.
func TestLimitsAreThoseOfTheGenerator(t *testing.T) {
	slow := &Result{Elapsed: time.Second, Completed: 10, PlannedRate: 100, Pacing: new(Histogram), Service: new(Histogram)}
	if l, d := slow.Limits(), slow.Doubts(); len(l) != 0 || len(d) != 1 || !strings.Contains(d[0], "overloaded") {
		t.Errorf("limits %q, doubts %q", l, d)
	}
	busy := &Result{Elapsed: time.Second, Completed: 10, Service: new(Histogram)}
	busy.Cost.Client = time.Duration(runtime.NumCPU()) * 900 * time.Millisecond
	if l := busy.Limits(); len(l) != 1 || !strings.Contains(l[0], "busy: it used 90 %") {
		t.Errorf("limits %q", l)
	}
}

func TestProgressIsToldEachSecond(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var told []Interval
	cfg := Config{Callers: 2, Duration: time.Hour, WarmUp: 1100 * time.Millisecond, Progress: func(i Interval) {
		if told = append(told, i); !i.WarmUp {
			cancel()
		}
	}}
	if r, err := Run(ctx, cfg, &fakeTarget{delay: time.Millisecond}); r == nil || !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, %v", r, err)
	}
	first, last := told[0], told[len(told)-1]
	if len(told) < 2 || !first.WarmUp || first.Completed == 0 || last.WarmUp || last.Completed == 0 || last.P50 < time.Millisecond || last.Start != 0 || last.Width < time.Second || last.Client <= 0 {
		t.Errorf("%+v", told)
	}
}
