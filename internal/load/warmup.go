package load

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"
)

// A WarmUpEnd says why a warm-up ended.
type WarmUpEnd string

const (
	// WarmUpPlanned is the end of a warm-up whose length was given.
	WarmUpPlanned WarmUpEnd = "planned"
	// WarmUpSteady is the end of one after which rate and latency no longer changed.
	WarmUpSteady WarmUpEnd = "steady"
	// WarmUpChanging is the end of one in which they still changed when it was as long as it may be.
	WarmUpChanging WarmUpEnd = "changing"
)

// A WarmUp is what was done before the measured window.
type WarmUp struct {
	Completed uint64
	Errors    uint64
	Elapsed   time.Duration
	End       WarmUpEnd // empty: there was none
	// SteadyFrom is since when, from its start, rate and latency were steady, if that was its end.
	SteadyFrom time.Duration
	// Timeline is what was done each second, if the Config asks for it.
	Timeline []Interval
}

// warmUp runs the phase that is not measured.
func (r *runner) warmUp(ctx context.Context) (shown WarmUp, err error) {
	if r.cfg.WarmUp > 0 {
		if after := r.cfg.SteadyAfter; after > 0 && after < r.cfg.WarmUp {
			r.steady = new(steadiness)
		}
		r.newLine(true, r.usedNow(ctx, true))
		began := time.Now()
		r.phase(ctx, r.cfg.WarmUp, 0)
		shown.Elapsed = r.endedAt.Sub(began)
		r.describe(ctx, &shown)
		for _, w := range r.workers {
			shown.Completed += w.completed
			shown.Errors += w.errors
			w.reset()
		}
	}
	switch {
	case ctx.Err() != nil:
		return shown, ctx.Err()
	case r.why != nil:
		return shown, r.why
	case r.died != nil:
		return shown, r.died
	case r.abandoned.Load():
		return shown, fmt.Errorf("load: requests of the warm-up did not finish within %v", r.cfg.DrainLimit)
	}
	if shown.End == WarmUpSteady { // all goroutines of the phase have ended
		r.stopOnce = sync.Once{}
		r.stopped.Store(false)
		r.enough.Store(false)
	}
	r.steady = nil
	return shown, nil
}

// describe says why the warm-up ended, and what was done in it.
func (r *runner) describe(ctx context.Context, shown *WarmUp) {
	shown.End = WarmUpPlanned
	if s := r.steady; s != nil {
		shown.End = WarmUpChanging
		if s.ended {
			shown.End, shown.SteadyFrom = WarmUpSteady, s.at
		}
	}
	if r.cfg.Timeline {
		r.line.finish(shown.Elapsed, r.usedNow(ctx, true))
		shown.Timeline = r.intervals()
	}
}

// endWarmUp ends the warm-up if rate and latency are steady.
func (r *runner) endWarmUp() {
	if r.steady.at, r.steady.ended = r.steady.from(); r.steady.ended {
		r.enough.Store(true)
		r.stop(nil)
	}
}

const (
	// steadyTick is how often a warm-up is read whose end depends on it.
	steadyTick = lineTick / 5
	// steadyTicks is how many readings there must be after the last change.
	steadyTicks = 10
)

// A steadiness looks for the end of the change at the start of a warm-up, in the series of its rates and
// in that of its median latencies. It belongs to the goroutine that reads the time line, and to Run after
// the phase.
type steadiness struct {
	rates, medians []float64 // by reading
	starts         []time.Duration

	ended bool          // the warm-up ended because of it
	at    time.Duration // since when it was steady
}

// add adds a reading.
func (s *steadiness) add(c *cell) {
	i := c.interval(true, nil)
	median := float64(i.P50)
	if last := len(s.medians) - 1; i.Completed == 0 && last >= 0 {
		median = s.medians[last] // nothing is known; the rate shows that
	}
	s.rates = append(s.rates, float64(i.Completed)/max(i.Width, time.Microsecond).Seconds())
	s.medians = append(s.medians, median)
	s.starts = append(s.starts, i.Start)
}

// from returns since when rate and latency are steady, or false if they may still change.
func (s *steadiness) from() (time.Duration, bool) {
	change := max(lastChange(s.rates), lastChange(s.medians))
	if len(s.rates)-change < steadyTicks {
		return 0, false
	}
	return s.starts[change], true
}

// lastChange returns the index of the first value after the last change of the level of a series.
func lastChange(values []float64) int {
	first := 0
	for {
		change := changePoint(values[first:])
		if change == 0 {
			return first
		}
		first += change
	}
}

const (
	// noChange is exceeded in one of twenty series without a change: the 95th percentile of the largest
	// distance of a Brownian bridge from 0, which is that of Kolmogorov's test.
	noChange = 1.36
	// fewest is of how many values a change may be seen, and smallest how large it is.
	fewest   = 4
	smallest = 0.05
)

// changePoint returns the index of the first value after the largest change of the level of a series, or 0 if
// there is none. It is where the cumulative sum of the distances from the mean is farthest from 0 (CUSUM: E. S. Page,
// "Continuous inspection schemes", Biometrika 41, 1954). The spread of the values is that of the differences
// between neighbors, which a change of the level hardly widens; so one value that stands out is no change.
func changePoint(values []float64) int {
	n := float64(len(values))
	if len(values) < fewest {
		return 0
	}
	var sum, squares float64
	for i, v := range values {
		sum += v
		if i > 0 {
			squares += (v - values[i-1]) * (v - values[i-1])
		}
	}
	mean, spread := sum/n, math.Sqrt(squares/(2*(n-1)))
	var at int
	var far, cumulated, before float64 // before is the sum of the values before at
	for i, v := range values[:len(values)-1] {
		if cumulated += v - mean; math.Abs(cumulated) > far {
			far, at, before = math.Abs(cumulated), i+1, cumulated+mean*float64(i+1)
		}
	}
	if far <= noChange*spread*math.Sqrt(n) {
		return 0
	}
	old, now := before/float64(at), (sum-before)/(n-float64(at))
	if math.Abs(now-old) < smallest*max(math.Abs(now), math.Abs(old)) {
		return 0
	}
	return at
}
