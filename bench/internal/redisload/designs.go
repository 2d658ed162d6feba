package redisload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// The rate-limited experiment of the RedisPipe article (Sokolov, "RedisPipe: implicit pipelining
// for Redis", 2019): each of several clients has goroutines that wait for a limiter and then send a
// series of requests. Its author describes the right design and three wrong ones, all of which
// distort the gain of a client that gathers requests. As there, goroutines limit themselves with
// the runtime's timers; the scenarios named precise use the generator's arrivals, which the
// kernel's timers release individually.
const (
	// DesignRight: a limiter per goroutine, series of 5 to 15.
	DesignRight = "right"
	// DesignA: one limiter for all goroutines of a client, used for each request.
	DesignA = "a"
	// DesignB: one limiter for all goroutines of a client, used for series of 5 to 15.
	DesignB = "b"
	// DesignC: a limiter per goroutine, series of exactly 10, all synchronized.
	DesignC = "c"
)

const (
	seriesMin   = 5
	SeriesMax   = 15
	seriesFixed = 10
)

// RateClients is the number of clients in the process of the rate-limited experiment, and
// RateCallers the number of goroutines for each 1,000 requests a second.
const (
	RateClients = 5
	RateCallers = 3
)

// A limiter grants a fixed number of requests per second. It may be shared.
type limiter struct {
	gap time.Duration // between two requests

	mu   sync.Mutex
	next time.Time // guarded by mu: when the last grant was due
}

// take waits until n requests are due.
func (l *limiter) take(n int) {
	l.mu.Lock()
	// A caller that falls behind catches up by at most one series, because a limiter must not
	// accumulate a backlog.
	if oldest := time.Now().Add(-SeriesMax * l.gap); l.next.Before(oldest) {
		l.next = oldest
	}
	l.next = l.next.Add(time.Duration(n) * l.gap)
	due := l.next
	l.mu.Unlock()
	if wait := time.Until(due); wait > 0 {
		time.Sleep(wait)
	}
}

// An experiment is a design with its limiters.
type experiment struct {
	// Immutable after newExperiment.
	design   string
	burst    bool // series are sent together
	rate     float64
	limiters []*limiter // one for each client, or one for each caller

	mu      sync.Mutex
	callers []*designCaller // guarded by mu
	marked  bool            // guarded by mu: the window has begun
}

func newExperiment(w Work, clients, callers int, seed uint64) (*experiment, error) {
	e := &experiment{design: w.Design, burst: w.Burst, rate: w.Rate}
	n := callers
	switch w.Design {
	case DesignRight, DesignC:
	case DesignA, DesignB:
		n = clients
	default:
		return nil, fmt.Errorf("no design %q", w.Design)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	now := time.Now()
	for range n {
		l := &limiter{gap: time.Duration(float64(n) / w.Rate * float64(time.Second)), next: now}
		if w.Design == DesignRight {
			// Start at a random position within a series, as in the middle of a long run.
			l.next = now.Add(-time.Duration(rng.Float64() * SeriesMax * float64(l.gap)))
		}
		e.limiters = append(e.limiters, l)
	}
	return e, nil
}

func (e *experiment) caller(i int, inner *caller) *designCaller {
	c := &designCaller{
		experiment: e, inner: inner, limiter: e.limiters[i%len(e.limiters)],
		rng: rand.New(rand.NewPCG(inner.seed+1, uint64(i))),
	}
	e.mu.Lock()
	e.callers = append(e.callers, c)
	e.mu.Unlock()
	return c
}

// mark is called before and after the window, while no caller runs. The first
// call discards the records of the warm-up.
func (e *experiment) mark(context.Context) (float64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.marked {
		e.marked = true
		for _, c := range e.callers {
			c.latency.Reset()
			c.completed, c.failed = 0, 0
		}
	}
	return 0, nil
}

// amend replaces latencies that include the wait for a limiter with those of the requests, and
// counts requests instead of series.
func (e *experiment) amend(r *load.Result) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r.Service, r.Pacing, r.PlannedRate = new(load.Histogram), new(load.Histogram), e.rate
	r.Completed, r.Errors = 0, 0
	for _, c := range e.callers {
		r.Service.Merge(&c.latency)
		r.Completed += c.completed
		r.Errors += c.failed
	}
}

// A designCaller waits for its limiter and then sends a series.
type designCaller struct {
	// Immutable after experiment.caller.
	experiment *experiment
	inner      *caller
	limiter    *limiter

	// Owned by the goroutine that calls Do, between phases by mark and amend.
	rng               *rand.Rand
	left              int // requests of the series that are left
	latency           load.Histogram
	completed, failed uint64
}

func (c *designCaller) series() int {
	switch c.experiment.design {
	case DesignA:
		return 1
	case DesignC:
		return seriesFixed
	}
	return seriesMin + c.rng.IntN(SeriesMax-seriesMin+1)
}

// Do implements [load.Caller]: one request, or one series if the requests of a series are sent
// together.
func (c *designCaller) Do(ctx context.Context) error {
	if c.left == 0 {
		c.left = c.series()
		c.limiter.take(c.left)
	}
	begun := time.Now()
	if !c.experiment.burst {
		c.left--
		err := c.inner.Do(ctx)
		c.settle(err, time.Since(begun))
		return err
	}
	n := c.left
	c.left = 0
	c.inner.atOnce(n)
	var failed error
	for i := range n {
		s := &c.inner.slots[i]
		c.settle(s.err, s.done.Sub(begun))
		if s.err != nil {
			failed = s.err
		}
	}
	return failed
}

func (c *designCaller) settle(err error, took time.Duration) {
	if err != nil {
		c.failed++
		return
	}
	c.completed++
	c.latency.Record(took)
}

// Close implements [load.Caller].
func (c *designCaller) Close() error { return c.inner.Close() }
