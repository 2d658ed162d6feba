package load

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"sync/atomic"
	"time"
)

// A Process is the arrival process of the requests of an open loop.
type Process string

const (
	// Constant spaces all requests evenly over all callers.
	Constant Process = "constant"
	// Poisson makes every caller an independent source with exponential gaps, which together look
	// like many independent users.
	Poisson Process = "poisson"
	// Bursts gives each caller its own limiter, which waits until the budget for a random number of
	// requests (5 to 15) has built up and then releases them together. RedisPipe was measured with
	// this arrival model. A shared limiter, or bursts of a fixed size, would synchronize the
	// callers and favor clients that batch requests.
	Bursts Process = "bursts"
	// Replay plans the instants of a Trace, which are distributed to the callers in order.
	Replay Process = "replay"
)

// A Trace holds the planned instants of all requests of a phase, in order.
type Trace interface {
	Len() int
	At(i int) time.Duration // from the start of the phase
}

// never is later than the end of every phase.
const never = time.Duration(math.MaxInt64)

const (
	burstMin = 5
	burstMax = 15
)

// Arrivals plans an open loop. The zero value means a closed loop.
type Arrivals struct {
	Process Process // if empty, a closed loop
	Rate    float64 // requests a second of all callers together; unused by Replay
	Trace   Trace   // used only by Replay
}

func (a Arrivals) open() bool { return a.Process != "" }

func (a Arrivals) validate() error {
	switch {
	case a.Process == Replay && (a.Trace == nil || a.Trace.Len() == 0 || a.Rate != 0):
		return errors.New("load: a replay needs a trace with at least one instant, and no rate")
	case a.Process != Replay && a.Trace != nil:
		return fmt.Errorf("load: a trace with the arrival process %q; expected the process %s", a.Process, Replay)
	}
	switch a.Process {
	case Replay:
		return nil
	case "":
		if a.Rate != 0 {
			return errors.New("load: a closed loop has no rate; name the arrival process")
		}
		return nil
	case Constant, Poisson, Bursts:
	default:
		return fmt.Errorf("load: unknown arrival process %q, want %s, %s, %s or %s", a.Process, Constant, Poisson, Bursts, Replay)
	}
	if !(a.Rate > 0) || math.IsInf(a.Rate, 0) {
		return fmt.Errorf("load: rate %v, want a positive number of requests a second", a.Rate)
	}
	return nil
}

// planned returns the number of requests per second planned for a window of d, in which at most
// total requests begin, or any number if total is 0. It is 0 for a trace of less than a second,
// whose rate means little.
func (a Arrivals) planned(d time.Duration, total int64) float64 {
	if a.Process != Replay {
		return a.Rate
	}
	n := sort.Search(a.Trace.Len(), func(i int) bool { return a.Trace.At(i) >= d })
	if total > 0 {
		n = int(min(int64(n), total))
	}
	if n == 0 || a.Trace.At(n-1) < time.Second {
		return 0
	}
	return float64(n) / a.Trace.At(n-1).Seconds()
}

// A plan yields the planned instants of one caller as offsets from the start
// of the window. They depend only on the seed, never on the clock.
type plan struct {
	process Process
	gap     float64 // mean nanoseconds between two requests of this caller
	at      float64 // the next instant, nanoseconds
	rng     *rand.Rand

	size int // for Bursts, the number of requests in the burst at the next instant

	trace       Trace // for Replay; nil for other processes
	index, step int   // for Replay, the index of the next instant and the distance to the one after it
}

func (a Arrivals) plan(caller, callers int, seed uint64) *plan {
	p := &plan{
		process: a.Process,
		gap:     float64(callers) / a.Rate * float64(time.Second),
		rng:     rand.New(rand.NewPCG(seed, uint64(caller))),
		size:    1,
		trace:   a.Trace, index: caller, step: callers,
	}
	switch a.Process {
	case Constant:
		p.at = p.gap * float64(caller) / float64(callers)
	case Poisson:
		p.at = p.gap * p.rng.ExpFloat64()
	case Bursts:
		p.size = p.burst()
		p.at = p.gap * float64(p.size) * p.rng.Float64()
	}
	return p
}

func (p *plan) burst() int { return burstMin + p.rng.IntN(burstMax-burstMin+1) }

// next returns the next planned instant and how many requests are due at it.
func (p *plan) next() (at time.Duration, n int) {
	if p.trace != nil {
		at = never
		if p.index < p.trace.Len() {
			at = p.trace.At(p.index)
			p.index += p.step
		}
		return at, 1
	}
	at, n = time.Duration(p.at), p.size
	switch p.process {
	case Constant:
		p.at += p.gap
	case Poisson:
		p.at += p.gap * p.rng.ExpFloat64()
	case Bursts:
		p.size = p.burst()
		p.at += p.gap * float64(p.size)
	}
	return at, n
}

const (
	dispersionWindow  = time.Millisecond
	dispersionWindows = 1 << 16
)

// An arrivalCounter counts the requests sent in each short window of time. The index of dispersion
// is computed from these counts.
type arrivalCounter struct {
	window time.Duration
	counts []atomic.Uint32 // Atomics: incremented by every caller, read after the run
}

func newArrivalCounter(duration time.Duration) *arrivalCounter {
	c := &arrivalCounter{window: dispersionWindow}
	for duration/c.window > dispersionWindows {
		c.window *= 2
	}
	c.counts = make([]atomic.Uint32, duration/c.window)
	return c
}

func (c *arrivalCounter) add(at time.Duration, n int) {
	if i := int(at / c.window); i >= 0 && i < len(c.counts) {
		c.counts[i].Add(uint32(n))
	}
}

// dispersion returns the variance of the counts up to elapsed divided by their mean: 0 for an even
// flow, 1 for Poisson arrivals, about E[n^2]/E[n] for bursts of n. It is NaN if nothing was sent.
func (c *arrivalCounter) dispersion(elapsed time.Duration) float64 {
	var n, mean, m2 float64 // Welford's algorithm
	for i := range min(len(c.counts), int(elapsed/c.window)) {
		x := float64(c.counts[i].Load())
		n++
		d := x - mean
		mean += d / n
		m2 += d * (x - mean)
	}
	if n < 2 || mean == 0 {
		return math.NaN()
	}
	return m2 / (n - 1) / mean
}
