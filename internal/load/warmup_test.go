package load

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// series returns the first n values of a function.
func series(n int, f func(i int) float64) []float64 {
	s := make([]float64, n)
	for i := range s {
		s[i] = f(i)
	}
	return s
}

// mutant: warm-up-any-change
// mutant: warm-up-first-change
func TestLastChange(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	noise := func(v float64) float64 { return v * (1 + 0.02*rng.NormFloat64()) }
	for name, tc := range map[string]struct {
		values   []float64
		from, to int // where the result may be
	}{
		"none":              {nil, 0, 0},
		"one":               {[]float64{5}, 0, 0},
		"the same":          {series(40, func(int) float64 { return 7 }), 0, 0},
		"noise":             {series(40, func(int) float64 { return noise(100) }), 0, 0},
		"a step":            {series(40, func(i int) float64 { return noise(100 + 50*b2f(i < 9)) }), 9, 9},
		"two steps":         {series(40, func(i int) float64 { return noise(100 + 50*b2f(i < 9) + 50*b2f(i >= 25)) }), 25, 25},
		"a step at the end": {series(40, func(i int) float64 { return noise(100 + 50*b2f(i >= 38)) }), 38, 38},
		"an outlier":        {series(40, func(i int) float64 { return noise(100 + 900*b2f(i == 20)) }), 0, 0},
		"a small step":      {series(40, func(i int) float64 { return 100 + 3*b2f(i < 20) }), 0, 0},
		"a trend":           {series(40, func(i int) float64 { return 100 + 20*float64(i) }), 34, 39},
		"a decay":           {series(60, func(i int) float64 { return noise(100 + 300*math.Exp(-float64(i)/4)) }), 8, 22},
	} {
		if got := lastChange(tc.values); got < tc.from || got > tc.to {
			t.Errorf("%s: the last change is at %d, want %d to %d", name, got, tc.from, tc.to)
		}
	}
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// readingAt returns a cell with completed requests of one latency.
func readingAt(start time.Duration, completed uint64, latency time.Duration) *cell {
	c := &cell{ticks: 1, start: start, width: steadyTick, used: []float64{0}, longest: int64(latency)}
	c.buckets[lineBucket(int64(latency))] = completed
	return c
}

// A warm-up is over when neither rate nor latency changes. Each may change without the other.
//
// mutant: warm-up-ignores-latency
// mutant: warm-up-ignores-the-rate
func TestSteadiness(t *testing.T) {
	at := func(i int) time.Duration { return time.Duration(i) * steadyTick }
	for name, tc := range map[string]struct {
		rate    func(i int) uint64
		latency func(i int) time.Duration
		ends    int           // after this many readings; 0 means never
		from    time.Duration // since when it is steady
	}{
		"always":           {func(int) uint64 { return 100 }, func(int) time.Duration { return time.Millisecond }, steadyTicks, 0},
		"slow at first":    {func(int) uint64 { return 100 }, func(i int) time.Duration { return time.Duration(1+max(8-i, 0)) * time.Millisecond }, 18, at(8)},
		"few at first":     {func(i int) uint64 { return uint64(100 - 10*max(8-i, 0)) }, func(int) time.Duration { return time.Millisecond }, 18, at(8)},
		"nothing at first": {func(i int) uint64 { return uint64(100 * b2f(i >= 4)) }, func(int) time.Duration { return time.Millisecond }, 14, at(4)},
		"a queue":          {func(int) uint64 { return 100 }, func(i int) time.Duration { return time.Duration(i+1) * time.Millisecond }, 0, 0},
		"always nothing":   {func(int) uint64 { return 0 }, func(int) time.Duration { return 0 }, steadyTicks, 0},
	} {
		var s steadiness
		ended := 0
		var from time.Duration
		for i := 0; i < 60 && ended == 0; i++ {
			s.add(readingAt(at(i), tc.rate(i), tc.latency(i)))
			if since, ok := s.from(); ok {
				ended, from = i+1, since
			}
		}
		if ended != tc.ends || from != tc.from {
			t.Errorf("%s: steady from %v on after %d readings, want %v after %d", name, from, ended, tc.from, tc.ends)
		}
	}
}

// A warm-up that ends early is not measured, and the window after it has its full length.
//
// mutant: warm-up-stops-the-run
func TestAWarmUpEndsWhenItIsSteady(t *testing.T) {
	for name, arrivals := range map[string]Arrivals{"closed": {}, "open": {Process: Constant, Rate: 1000}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := &fakeTarget{delay: time.Millisecond}
			r, err := Run(t.Context(), Config{Callers: 2, Arrivals: arrivals, Duration: time.Hour, Total: 300, WarmUp: time.Hour, SteadyAfter: 100 * time.Millisecond, Timeline: true}, target)
			if err != nil {
				t.Fatal(err)
			}
			w := r.WarmUp
			if w.End != WarmUpSteady || w.Elapsed < steadyTicks*steadyTick/2 || w.SteadyFrom >= w.Elapsed {
				t.Errorf("%q after %v, steady since %v", w.End, w.Elapsed, w.SteadyFrom)
			}
			if r.Completed != 300 || uint64(target.calls.Load()) != w.Completed+300 {
				t.Errorf("%d and %d requests of %d", w.Completed, r.Completed, target.calls.Load())
			}
			var sum Interval
			for _, i := range w.Timeline {
				if !i.WarmUp || i.Start != sum.Width {
					t.Errorf("%+v after %v", i, sum.Width)
				}
				sum.Completed, sum.Width = sum.Completed+i.Completed, sum.Width+i.Width
			}
			if sum.Completed != w.Completed || (sum.Width-w.Elapsed).Abs() > 100*time.Millisecond {
				t.Errorf("%d requests in %v on the time line, want %d in %v", sum.Completed, sum.Width, w.Completed, w.Elapsed)
			}
		})
	}
}

// If no time line is requested, a warm-up that may end early leaves none, either for itself or for
// the window.
func TestAWarmUpLeavesNoTimeLine(t *testing.T) {
	r, err := Run(t.Context(), Config{Callers: 1, Duration: time.Hour, Total: 10, WarmUp: 300 * time.Millisecond, SteadyAfter: 100 * time.Millisecond}, &fakeTarget{delay: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if r.Timeline != nil || r.WarmUp.Timeline != nil {
		t.Errorf("time lines without a request for one: %+v, %+v", r.WarmUp.Timeline, r.Timeline)
	}
	if r.WarmUp.End != WarmUpChanging { // two readings are too few to say more
		t.Errorf("the warm-up ended as %q", r.WarmUp.End)
	}
}

// If a server dies during the last requests of a warm-up that ends early, it is noticed.
//
// mutant: warm-up-hides-a-death
func TestADeathAtTheEndOfAWarmUpIsNoticed(t *testing.T) {
	died := make(chan error)
	r := &runner{cfg: Config{Callers: 1, Duration: time.Second, WarmUp: time.Hour, SteadyAfter: time.Minute, DrainLimit: time.Minute}, deaths: &deathWatch{died: died}}
	r.stop(nil)
	finished := make(chan struct{})
	var supervisor sync.WaitGroup
	supervisor.Go(func() { r.supervise(context.Background(), time.Hour, finished) })
	why := errors.New("it died")
	died <- why
	close(finished)
	supervisor.Wait()
	r.cfg.WarmUp = 0
	if _, err := r.warmUp(t.Context()); !errors.Is(err, why) {
		t.Errorf("error %v, want the death of the server", err)
	}
}
