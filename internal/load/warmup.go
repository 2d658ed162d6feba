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
	// WarmUpPlanned means that the warm-up had a fixed length.
	WarmUpPlanned WarmUpEnd = "planned"
	// WarmUpSteady means that rate and latency had stopped changing.
	WarmUpSteady WarmUpEnd = "steady"
	// WarmUpChanging means that rate and latency were still changing at the maximum length.
	WarmUpChanging WarmUpEnd = "changing"
)

// A WarmUp describes what was done before the measured window.
type WarmUp struct {
	Completed uint64
	Errors    uint64
	Elapsed   time.Duration
	End       WarmUpEnd // empty if there was no warm-up
	// SteadyFrom is the time, from the start of the warm-up, since which rate and latency were
	// steady, if End is WarmUpSteady.
	SteadyFrom time.Duration
	// Timeline is what was done in each second, if the Config requests it.
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

// describe returns why the warm-up ended and what was done in it.
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
	// steadyTick is how often the time line of a warm-up that may end early is read.
	steadyTick = lineTick / 5
	// steadyTicks is the minimum number of readings after the last change.
	steadyTicks = 10
)

// A steadiness determines when the changes at the start of a warm-up have ended, from the series of
// its rates and that of its median latencies. It belongs to the goroutine that reads the time line,
// and to Run after the phase.
type steadiness struct {
	rates, medians []float64 // by reading
	starts         []time.Duration

	ended bool          // the warm-up ended because of it
	at    time.Duration // since when rate and latency were steady
}

// add adds a reading.
func (s *steadiness) add(c *cell) {
	i := c.interval(true, nil)
	median := float64(i.P50)
	if last := len(s.medians) - 1; i.Completed == 0 && last >= 0 {
		median = s.medians[last] // no request was completed, which the rate shows
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
	// noChange is exceeded by one in twenty series without a change: it is the 95th percentile of
	// the largest distance of a Brownian bridge from 0, as in Kolmogorov's test.
	noChange = 1.36
	// fewest is the minimum number of values in which a change is looked for, and smallest is the
	// minimum size of a change.
	fewest   = 4
	smallest = 0.05
)

// changePoint returns the index of the first value after the largest change of the level of a
// series, or 0 if there is none. The change is where the cumulative sum of the distances from the
// mean is farthest from 0 (CUSUM: E. S. Page, "Continuous inspection schemes", Biometrika 41,
// 1954). The spread of the values is estimated from the differences between neighbors, which a
// change of the level hardly affects. A single outlier therefore does not count as a change.
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
	var far, cumulated, before float64 // before is the sum of the values before index at
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
