package load

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A fakeTarget answers after a delay and stalls all callers together, as a
// server with one lock does.
type fakeTarget struct {
	delay      time.Duration
	stallEvery time.Duration // if 0, it never stalls
	stallFor   time.Duration
	fail       func(n int64) error

	start   time.Time
	mu      sync.Mutex
	calls   atomic.Int64
	busy    atomic.Int64 // nanoseconds in calls
	closed  atomic.Int64
	created atomic.Int64
}

func (f *fakeTarget) NewCaller(context.Context, int) (Caller, error) {
	f.created.Add(1)
	return &fakeCaller{target: f, broken: make(chan struct{})}, nil
}

type fakeCaller struct {
	target *fakeTarget
	broken chan struct{}
}

func (c *fakeCaller) Do(context.Context) error {
	f := c.target
	n := f.calls.Add(1)
	began := time.Now()
	defer func() { f.busy.Add(int64(time.Since(began))) }()
	if f.delay > 0 {
		time.Sleep(f.delay)
	}
	if f.stallEvery > 0 {
		f.mu.Lock()
		if into := time.Since(f.start) % f.stallEvery; into < f.stallFor {
			time.Sleep(f.stallFor - into)
		}
		f.mu.Unlock()
	}
	if f.fail != nil {
		return f.fail(n)
	}
	return nil
}

func (c *fakeCaller) Close() error {
	c.target.closed.Add(1)
	close(c.broken)
	return nil
}

func TestClosedLoopCountsWhatCompletes(t *testing.T) {
	target := &fakeTarget{delay: 2 * time.Millisecond}
	r, err := Run(t.Context(), Config{Callers: 4, Duration: 200 * time.Millisecond, WarmUp: 50 * time.Millisecond}, target)
	if err != nil {
		t.Fatal(err)
	}
	if r.Completed == 0 || r.Errors != 0 || r.Unsent != 0 {
		t.Fatalf("completed %d, errors %d, unsent %d", r.Completed, r.Errors, r.Unsent)
	}
	if got := uint64(r.Service.Count()); got != r.Completed {
		t.Errorf("%d latencies of %d completed requests", got, r.Completed)
	}
	if all := uint64(target.calls.Load()); r.Completed >= all {
		t.Errorf("counted %d of %d requests: those of the warm-up were not excluded", r.Completed, all)
	}
	// 4 callers at 2 ms each cannot exceed 2,000 per second. However slow the machine is, they are
	// nearly always inside a request.
	if rate := r.Rate(); rate > 2000 {
		t.Errorf("rate %.0f", rate)
	}
	if busy, all := time.Duration(target.busy.Load()), 4*r.Elapsed; busy < all/2 {
		t.Errorf("callers were inside requests for %v of %v", busy, all)
	}
	if r.Elapsed < 200*time.Millisecond {
		t.Errorf("elapsed %v, shorter than the window", r.Elapsed)
	}
	if r.Intended != nil || r.Latency() != r.Service {
		t.Error("a closed loop has no intended latency")
	}
	if p50 := r.Service.Quantile(0.5); p50 < 2*time.Millisecond {
		t.Errorf("p50 %v below the delay of the target", p50)
	}
	if created, closed := target.created.Load(), target.closed.Load(); created != 4 || closed != 4 {
		t.Errorf("%d callers created, %d closed, want 4", created, closed)
	}
}

// The reason why this package exists: a server that stops for 60 ms in every 200 ms affects 30 % of
// the requests that independent users send. Service time shows the stall only to the few that were
// in flight when it began.
func TestIntendedTimeSeesCoordinatedOmission(t *testing.T) {
	target := &fakeTarget{stallEvery: 200 * time.Millisecond, stallFor: 60 * time.Millisecond, start: time.Now()}
	r, err := Run(t.Context(), Config{
		Callers: 2, Duration: 800 * time.Millisecond,
		Arrivals: Arrivals{Process: Constant, Rate: 2000},
	}, target)
	if err != nil {
		t.Fatal(err)
	}
	service, intended := r.Service.Quantile(0.9), r.Intended.Quantile(0.9)
	if service > 10*time.Millisecond {
		t.Errorf("service p90 %v: only about 8 of 1,600 requests should see a stall in their service time", service)
	}
	if intended < 25*time.Millisecond {
		t.Errorf("intended p90 %v, want about 40 ms: 30 %% of the requests are planned in stalls of 60 ms", intended)
	}
	if got, want := float64(r.Completed), 1600.0; math.Abs(got-want) > 2 {
		t.Errorf("completed %v of %v planned requests", got, want)
	}
	if r.Latency() != r.Intended {
		t.Error("an open loop reports service time as its latency")
	}

	closed, err := Run(t.Context(), Config{Callers: 2, Duration: 400 * time.Millisecond}, target)
	if err != nil {
		t.Fatal(err)
	}
	if p := closed.Latency().Quantile(0.9); p > 10*time.Millisecond {
		t.Errorf("closed loop p90 %v: its callers wait out the stall and do not see it", p)
	}
}

func TestErrorsAreCountedWithTheFirstAsSample(t *testing.T) {
	target := &fakeTarget{fail: func(n int64) error {
		if n%10 == 3 {
			return errors.New("wrong answer")
		}
		return nil
	}}
	r, err := Run(t.Context(), Config{Callers: 1, Duration: time.Minute, Requests: 23}, target)
	if err != nil {
		t.Fatal(err)
	}
	if r.Errors != 3 || r.ErrorSample != "wrong answer" {
		t.Fatalf("errors %d, sample %q", r.Errors, r.ErrorSample)
	}
	if total := r.Completed + r.Errors; total != uint64(target.calls.Load()) {
		t.Errorf("%d completed + %d errors of %d requests", r.Completed, r.Errors, target.calls.Load())
	}
	if int64(r.Completed) != r.Service.Count() {
		t.Error("a failed request has a latency")
	}
	if s := r.Sample(); s.Errors != r.Errors || s.ErrorSample == "" {
		t.Errorf("sample %+v does not contain the errors", s)
	}
}

// A caller whose requests fail immediately must not take the CPU from the others.
func TestFailingCallerDoesNotSpin(t *testing.T) {
	target := &fakeTarget{fail: func(int64) error { return errors.New("refused") }}
	r, err := Run(t.Context(), Config{Callers: 1, Duration: time.Minute, Requests: 10}, target)
	if err != nil {
		t.Fatal(err)
	}
	if r.Completed != 0 || r.Errors != 10 || r.Elapsed < 300*time.Millisecond {
		t.Errorf("completed %d, errors %d in %v, want 10 in at least 300 ms", r.Completed, r.Errors, r.Elapsed)
	}
	if s := r.Sample(); !math.IsNaN(s.Values[ClientUS]) {
		t.Error("a run without answers has a cost per answer")
	}
}

// A blockedCaller answers only when it is closed.
type blockedTarget struct{}

func (blockedTarget) NewCaller(context.Context, int) (Caller, error) {
	return &blockedCaller{gone: make(chan struct{})}, nil
}

type blockedCaller struct{ gone chan struct{} }

func (b *blockedCaller) Do(context.Context) error { <-b.gone; return errors.New("closed") }
func (b *blockedCaller) Close() error             { close(b.gone); return nil }

func TestDrainLimitBreaksRequestsThatHang(t *testing.T) {
	r, err := Run(t.Context(), Config{
		Callers: 3, Duration: 20 * time.Millisecond, DrainLimit: 30 * time.Millisecond,
		Arrivals: Arrivals{Process: Constant, Rate: 600},
	}, blockedTarget{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Errors != 3 || r.Completed != 0 {
		t.Errorf("errors %d, completed %d, want 3 and 0", r.Errors, r.Completed)
	}
	if r.Unsent != 9 {
		t.Errorf("unsent %d, want the other 9 of the 12 planned", r.Unsent)
	}
	if !strings.Contains(r.ErrorSample, errAbandoned.Error()) {
		t.Errorf("sample %q does not name the drain limit", r.ErrorSample)
	}
	if r.Sample().Errors != 12 {
		t.Errorf("%d errors in the sample, want 12: requests that were never sent have failed, too", r.Sample().Errors)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	started := time.Now()
	_, err := Run(ctx, Config{Callers: 2, Duration: time.Minute, Arrivals: Arrivals{Process: Poisson, Rate: 1}}, &fakeTarget{})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the context's", err)
	}
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("took %v to notice", took)
	}
}

type batchTarget struct{ largest atomic.Int64 }

func (b *batchTarget) NewCaller(context.Context, int) (Caller, error) { return &batchCaller{b}, nil }

type batchCaller struct{ target *batchTarget }

func (c *batchCaller) Do(context.Context) error { return errors.New("one at a time") }
func (c *batchCaller) Close() error             { return nil }
func (c *batchCaller) DoBatch(_ context.Context, outcomes []error) {
	c.target.largest.Store(max(c.target.largest.Load(), int64(len(outcomes))))
	time.Sleep(time.Millisecond)
	outcomes[0] = errors.New("the first of each batch fails")
}

func TestBatches(t *testing.T) {
	target := &batchTarget{}
	r, err := Run(t.Context(), Config{Callers: 1, Duration: 20 * time.Millisecond, Batch: 8}, target)
	if err != nil {
		t.Fatal(err)
	}
	if target.largest.Load() != 8 || r.Completed != 7*r.Errors || r.Errors == 0 {
		t.Errorf("closed loop: largest batch %d, completed %d, errors %d", target.largest.Load(), r.Completed, r.Errors)
	}
	target = &batchTarget{}
	r, err = Run(t.Context(), Config{
		Callers: 1, Duration: 100 * time.Millisecond, Batch: 100,
		Arrivals: Arrivals{Process: Bursts, Rate: 2000},
	}, target)
	if err != nil {
		t.Fatal(err)
	}
	if n := target.largest.Load(); n < burstMin || n > burstMax {
		t.Errorf("open loop: largest batch %d, want a burst of 5 to 15", n)
	}
	if r.Unsent != 0 {
		t.Errorf("unsent %d", r.Unsent)
	}
}

func TestCountersAndOwnCost(t *testing.T) {
	var (
		target *allocatingTarget
		reads  float64
		r      *Result
	)
	// The system may count CPU time in ticks of 10 ms, and a busy machine may give a process none:
	// the run is repeated with longer durations until there is something to count.
	for length := 50 * time.Millisecond; ; length *= 2 {
		target, reads = &allocatingTarget{}, 0
		var err error
		r, err = Run(t.Context(), Config{
			Callers: 1, Duration: length, Servers: []int{os.Getpid()},
			Counters: []Counter{{Name: "requests", Read: func(context.Context) (float64, error) {
				reads++
				return float64(target.calls.Load()), nil
			}}},
		}, target)
		if errors.Is(err, ErrNoProcessCPU) {
			return // the system does not support it, and the run has reported that
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Cost.Client > 0 && r.Cost.Server > 0 || length > 10*time.Second {
			break
		}
	}
	if reads != 2 {
		t.Errorf("counter read %v times, want 2", reads)
	}
	if got := r.Cost.Counters["requests"]; got != float64(r.Completed) {
		t.Errorf("counter grew by %v during %d requests", got, r.Completed)
	}
	if r.Cost.Client <= 0 || r.Cost.Server <= 0 {
		t.Errorf("CPU time of the client %v and of the server %v, want both", r.Cost.Client, r.Cost.Server)
	}
	// The runtime counts the objects of a memory span only when the span is full: up to 128 objects
	// of 64 bytes are missing for each processor.
	uncounted := uint64(128 * runtime.GOMAXPROCS(0))
	if r.Cost.Mallocs+uncounted < uint64(3*r.Completed) || float64(r.Cost.Mallocs) > 3.5*float64(r.Completed) {
		t.Errorf("%d allocations in %d calls, the target makes 3 in each", r.Cost.Mallocs, r.Completed)
	}
}

type allocatingTarget struct {
	calls atomic.Int64
	sink  [3]*[64]byte
}

func (a *allocatingTarget) NewCaller(context.Context, int) (Caller, error) { return a, nil }
func (a *allocatingTarget) Close() error                                   { return nil }
func (a *allocatingTarget) Do(context.Context) error {
	a.calls.Add(1)
	for i := range a.sink {
		a.sink[i] = new([64]byte)
	}
	return nil
}

func TestRequestsLimitEachCaller(t *testing.T) {
	target := &fakeTarget{delay: 100 * time.Microsecond}
	r, err := Run(t.Context(), Config{Callers: 5, Duration: time.Minute, Requests: 3}, target)
	if err != nil {
		t.Fatal(err)
	}
	if r.Completed != 15 || target.calls.Load() != 15 {
		t.Errorf("completed %d of %d, want 15", r.Completed, target.calls.Load())
	}
	if r.Elapsed > 10*time.Second {
		t.Errorf("elapsed %v: the window did not end with the last request", r.Elapsed)
	}
}

func TestConfigErrors(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no callers":      {Duration: time.Second},
		"no duration":     {Callers: 1},
		"unknown process": {Callers: 1, Duration: time.Second, Arrivals: Arrivals{Process: "even", Rate: 1}},
		"no rate":         {Callers: 1, Duration: time.Second, Arrivals: Arrivals{Process: Poisson}},
		"rate NaN":        {Callers: 1, Duration: time.Second, Arrivals: Arrivals{Process: Poisson, Rate: math.NaN()}},
		"open requests":   {Callers: 1, Duration: time.Second, Requests: 5, Arrivals: Arrivals{Process: Poisson, Rate: 1}},
		"closed rate":     {Callers: 1, Duration: time.Second, Arrivals: Arrivals{Rate: 5}},
	} {
		if _, err := Run(t.Context(), cfg, &fakeTarget{}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	refused := errors.New("refused")
	_, err := Run(t.Context(), Config{Callers: 100, Duration: time.Second}, refusingTarget{refused})
	if !errors.Is(err, refused) {
		t.Errorf("error %v, want that of the caller that could not be created", err)
	}
}

type refusingTarget struct{ err error }

func (r refusingTarget) NewCaller(_ context.Context, i int) (Caller, error) {
	if i == 70 {
		return nil, r.err
	}
	return &blockedCaller{gone: make(chan struct{})}, nil
}

func TestResultSurvivesJSON(t *testing.T) {
	r, err := Run(t.Context(), Config{
		Callers: 2, Duration: 50 * time.Millisecond, Arrivals: Arrivals{Process: Poisson, Rate: 1000},
	}, &fakeTarget{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Result
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if back.Completed != r.Completed || back.Intended.Count() != r.Intended.Count() ||
		back.Intended.Quantile(0.99) != r.Intended.Quantile(0.99) || back.Cost.Client != r.Cost.Client {
		t.Errorf("%+v became %+v", r, back)
	}
}
