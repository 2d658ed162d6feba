package load

import (
	"fmt"
	"math"
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
		// E[n^2]/E[n] of 5 to 15 is 11; 100 callers of which each waits 0.1 s
		// between bursts look independent within a millisecond.
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
				t.Fatalf("%s: same seed, %v %d and %v %d", process, at1, n1, at2, n2)
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
		t.Errorf("dispersion %v of no request", d)
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
	// Other programs may hold the machine's cores, so the test waits for a moment at which
	// they do not. A timer rounded up to whole milliseconds is beyond the bound even on an
	// idle machine.
	testkit.Eventually(t, time.Minute, func() error {
		var late Histogram
		for range 100 {
			planned := time.Now().Add(300 * time.Microsecond)
			for time.Until(planned) > 0 {
				s.sleep(time.Until(planned))
			}
			late.Record(time.Since(planned))
		}
		t.Logf("late by %v (median), %v (p90)", late.Quantile(0.5), late.Quantile(0.9))
		if precise := late.Quantile(0.1); precise > 400*time.Microsecond {
			return fmt.Errorf("the best tenth of the waits is %v late", precise)
		}
		return nil
	})
}
