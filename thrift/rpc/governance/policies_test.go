package governance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// tape is a circuit breaker that records the calls of its methods.
type tape struct {
	open, halfOpen bool
	recorded       string
}

func (b *tape) TryAcquirePermit() bool { return !b.open }
func (b *tape) IsHalfOpen() bool       { return b.halfOpen }
func (b *tape) RecordSuccess()         { b.recorded += "success" }
func (b *tape) RecordFailure()         { b.recorded += "failure" }

// The outcome of a call determines what is recorded. A call that says nothing about its server is not recorded, unless
// the breaker is half-open.
func TestBreakerRecordsOutcomes(t *testing.T) {
	canceled := &slipstream.Error{Outcome: slipstream.MaybeExecuted, Err: context.Canceled}
	for _, c := range []struct {
		err            error
		want, halfOpen string
	}{
		{nil, "success", "success"},
		{failure(slipstream.Executed), "success", "success"},
		{failure(slipstream.MaybeExecuted), "failure", "failure"},
		{failure(slipstream.NotSent), "failure", "failure"},
		{failure(slipstream.Refused), "failure", "failure"},
		{&slipstream.Error{Outcome: slipstream.MaybeExecuted, Err: context.DeadlineExceeded}, "failure", "failure"},
		{canceled, "", "failure"},
		{failure(slipstream.Overloaded), "", "failure"},
		{&slipstream.Error{Outcome: slipstream.NotSent, Err: &rpc.InvalidCallError{Err: errTest}}, "", "failure"},
		{&slipstream.Error{Outcome: slipstream.Refused, Err: &thrift.ApplicationException{Kind: thrift.UnknownMethod}}, "", "failure"},
	} {
		for _, halfOpen := range []bool{false, true} {
			breaker := &tape{halfOpen: halfOpen}
			b, err := NewBreaker(&script{run: func(context.Context, rpc.Invocation, int) error { return c.err }}, breaker)
			if err != nil {
				t.Fatal(err)
			}
			want := c.want
			if halfOpen {
				want = c.halfOpen
			}
			if _, err := echo(t.Context(), b, &plainEcho); err != c.err || breaker.recorded != want {
				t.Errorf("%v, half-open %v: returned %v, recorded %q, want %q", c.err, halfOpen, err, breaker.recorded, want)
			}
		}
	}
}

// An open breaker makes no call, and a retry around it makes no further attempt.
func TestBreakerThatIsOpen(t *testing.T) {
	next := fails(slipstream.NotSent)
	b, err := NewBreaker(next, &tape{open: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := echo(t.Context(), newRetry(t, b, RetryConfig{}), &idempotentEcho); !errors.Is(err, ErrBreakerOpen) || slipstream.OutcomeOf(err) != slipstream.Overloaded || next.made() != 0 {
		t.Errorf("%v after %d attempts", err, next.made())
	}
}

// If a call panics, its result is recorded and its permit is returned.
func TestPolicyOfACallThatPanics(t *testing.T) {
	panics := &script{run: func(context.Context, rpc.Invocation, int) error { panic("of the test") }}
	breaker, permits := new(tape), new(pass)
	b, err := NewBreaker(panics, breaker)
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewBulkhead(b, permits, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil || breaker.recorded != "failure" || permits.held != 0 {
			t.Errorf("recorded %q, %d permits are held", breaker.recorded, permits.held)
		}
	}()
	_, _ = echo(t.Context(), l, &plainEcho)
}

// pass grants permits unless err is set.
type pass struct {
	err        error
	held, most int
	wait       time.Duration
}

func (p *pass) AcquirePermitWithMaxWait(_ context.Context, wait time.Duration) error {
	p.wait = wait
	if p.err == nil {
		p.held++
		p.most = max(p.most, p.held)
	}
	return p.err
}

func (p *pass) ReleasePermit() { p.held-- }

// A call without a permit is not made. Permits are returned to a bulkhead, but not to a rate limiter.
func TestCallsWithPermits(t *testing.T) {
	next := &script{run: func(_ context.Context, in rpc.Invocation, _ int) error { return answers(in, "b") }}
	for _, c := range []struct {
		err     error
		outcome slipstream.Outcome
	}{{errTest, slipstream.Overloaded}, {fmt.Errorf("wrapped: %w", context.DeadlineExceeded), slipstream.NotSent}, {nil, slipstream.Executed}} {
		for _, bulkhead := range []bool{false, true} {
			permits := &pass{err: c.err}
			l, err := NewRateLimit(next, permits, time.Second)
			held := 1
			if bulkhead {
				l, err = NewBulkhead(next, permits, time.Second)
				held = 0
			}
			if err != nil {
				t.Fatal(err)
			}
			before := next.made()
			_, err = echo(t.Context(), l, &plainEcho)
			if slipstream.OutcomeOf(err) != c.outcome || !errors.Is(err, c.err) || permits.wait != time.Second {
				t.Errorf("%v: %v after a wait of %v", c.err, err, permits.wait)
			}
			if c.err != nil {
				held = 0
			}
			if made := next.made() - before; (made == 1) != (c.err == nil) || permits.held != held || made == 1 && permits.most != 1 {
				t.Errorf("%v, bulkhead %v: %d calls, %d permits are held, want %d", c.err, bulkhead, made, permits.held, held)
			}
		}
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{second(NewBreaker(next, nil)), "the circuit breaker is nil"},
		{second(NewRateLimit(next, nil, 0)), "the limiter or bulkhead is nil"},
		{second(NewBulkhead(next, nil, 0)), "the limiter or bulkhead is nil"},
		{second(NewBulkhead(next, new(pass), -1)), "wait for a permit -1ns is negative"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, want %q", c.err, c.want)
		}
	}
}
