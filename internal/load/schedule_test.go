package load

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// flow merges the plans of all callers into an arrivalCounter.
func flow(a Arrivals, callers int, d time.Duration, seed uint64) (total int, dispersion float64) {
	counter := newArrivalCounter(d)
	for i := range callers {
		p := a.plan(i, callers, seed)
		for at, n := p.next(); at < d; at, n = p.next() {
			counter.add(at, n)
			total += n
		}
	}
	return total, counter.dispersion(d)
}

func TestPlansKeepTheRateAndTheBurstiness(t *testing.T) {
	const d = 20 * time.Second
	for _, tc := range []struct {
		process  Process
		callers  int
		rate     float64
		from, to float64 // index of dispersion
	}{
		{Constant, 50, 10_000, 0, 0.1},
		{Poisson, 50, 10_000, 0.95, 1.05},
		// E[n^2]/E[n] of 5 to 15 is 11; 100 callers that each wait 0.1 s between bursts look
		// independent within a millisecond.
		{Bursts, 100, 10_000, 9.5, 12.5},
	} {
		total, dispersion := flow(tc.process.at(tc.rate), tc.callers, d, 7)
		if rate := float64(total) / d.Seconds(); math.Abs(rate/tc.rate-1) > 0.02 {
			t.Errorf("%s: rate %.0f, want %.0f", tc.process, rate, tc.rate)
		}
		if dispersion < tc.from || dispersion > tc.to {
			t.Errorf("%s: index of dispersion %.2f, want %.2f to %.2f", tc.process, dispersion, tc.from, tc.to)
		}
	}
}

func (p Process) at(rate float64) Arrivals { return Arrivals{Process: p, Rate: rate} }

func TestBurstSizes(t *testing.T) {
	seen := map[int]bool{}
	p := Bursts.at(1000).plan(0, 1, 3)
	last := time.Duration(-1)
	for range 1000 {
		at, n := p.next()
		seen[n] = true
		if at <= last {
			t.Fatalf("instant %v after %v", at, last)
		}
		last = at
	}
	for n := burstMin; n <= burstMax; n++ {
		if !seen[n] {
			t.Errorf("no burst of %d in 1,000", n)
		}
	}
	if len(seen) != burstMax-burstMin+1 {
		t.Errorf("sizes %v, want 5 to 15", seen)
	}
}

func TestPlansDependOnTheSeedAlone(t *testing.T) {
	for _, process := range []Process{Constant, Poisson, Bursts} {
		a, b, other := process.at(100).plan(1, 4, 9), process.at(100).plan(1, 4, 9), process.at(100).plan(2, 4, 9)
		differs := false
		for range 50 {
			at1, n1 := a.next()
			at2, n2 := b.next()
			if at1 != at2 || n1 != n2 {
				t.Fatalf("%s: the same seed gave %v %d and %v %d", process, at1, n1, at2, n2)
			}
			at3, _ := other.next()
			differs = differs || at1 != at3
		}
		if !differs {
			t.Errorf("%s: two callers share one plan", process)
		}
	}
}

func TestDispersionOfNothing(t *testing.T) {
	if d := newArrivalCounter(time.Second).dispersion(time.Second); !math.IsNaN(d) {
		t.Errorf("dispersion %v without a request", d)
	}
	long := newArrivalCounter(time.Hour)
	if len(long.counts) > dispersionWindows {
		t.Errorf("%d windows for an hour", len(long.counts))
	}
	long.add(2*time.Hour, 1) // after the end: not counted, no panic
}

// Without the timerfd the median of an idle process is 0.5 to 1 ms late.
func TestSleeperIsPrecise(t *testing.T) {
	s := newSleeper()
	defer s.close()
	// Other programs may occupy the machine's cores, so the test waits for a moment when they do
	// not. A timer rounded up to whole milliseconds exceeds the bound even on an idle machine.
	testkit.Eventually(t, time.Minute, func() error {
		var late Histogram
		for range 100 {
			planned := time.Now().Add(300 * time.Microsecond)
			for time.Until(planned) > 0 {
				s.sleep(time.Until(planned))
			}
			late.Record(time.Since(planned))
		}
		t.Logf("%v late (median), %v (p90)", late.Quantile(0.5), late.Quantile(0.9))
		if precise := late.Quantile(0.1); precise > 400*time.Microsecond {
			return fmt.Errorf("the best tenth of the waits is %v late", precise)
		}
		return nil
	})
}

// instants is a Trace.
type instants []time.Duration

func (t instants) Len() int               { return len(t) }
func (t instants) At(i int) time.Duration { return t[i] }

// Each instant of a trace is planned exactly once, for one of the callers.
//
// mutant: load-trace-planned-twice
func TestTracesAreDealtOut(t *testing.T) {
	trace := instants{0, 0, 1, 5, 5, 9, 12}
	var got []time.Duration
	a := Arrivals{Process: Replay, Trace: trace}
	for i := range 3 {
		p := a.plan(i, 3, 1)
		for at, n := p.next(); at != never; at, n = p.next() {
			for range n {
				got = append(got, at)
			}
		}
		if at, _ := p.next(); at != never {
			t.Errorf("caller %d has the instant %v after the end of the trace", i, at)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, trace) {
		t.Errorf("%v, want %v", got, trace)
	}
}

func TestRatesOfTraces(t *testing.T) {
	a := Arrivals{Process: Replay, Trace: instants{0, time.Second, 2 * time.Second, 10 * time.Second}}
	for _, tc := range []struct {
		d     time.Duration
		total int64
		want  float64
	}{{time.Minute, 0, 0.4}, {3 * time.Second, 0, 1.5}, {time.Minute, 3, 1.5}, {time.Minute, 1, 0}, {time.Millisecond, 0, 0}} {
		if got := a.planned(tc.d, tc.total); got != tc.want {
			t.Errorf("%v requests a second in %v with at most %d requests, want %v", got, tc.d, tc.total, tc.want)
		}
	}
	if got := Constant.at(7).planned(time.Second, 0); got != 7 {
		t.Errorf("%v requests a second, want 7", got)
	}
	for _, wrong := range []Arrivals{{Process: Replay}, {Process: Replay, Trace: instants{}}, {Process: Replay, Trace: instants{0}, Rate: 1}, {Process: Constant, Rate: 1, Trace: instants{0}}, {Trace: instants{0}}} {
		if err := wrong.validate(); err == nil {
			t.Errorf("%+v was accepted", wrong)
		}
	}
	if err := a.validate(); err != nil {
		t.Error(err)
	}
}

// A run over a trace sends each request once, none before its time, and ends with the trace.
//
// mutant: load-trace-too-early
func TestRunsOverTraces(t *testing.T) {
	trace := make(instants, 21)
	for i := range trace {
		trace[i] = time.Duration(i) * 5 * time.Millisecond
	}
	target := new(fakeTarget)
	began := time.Now()
	r, err := Run(t.Context(), Config{Callers: 4, Duration: time.Hour, Arrivals: Arrivals{Process: Replay, Trace: trace}}, target)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); r.Completed != 21 || target.calls.Load() != 21 || r.Intended.Count() != 21 || r.Elapsed < 100*time.Millisecond || took > time.Minute || r.Unsent != 0 {
		t.Errorf("%+v after %v", r, took)
	}
}
