package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// The rate-limited experiment of the RedisPipe article (Sokolov, "RedisPipe:
// implicit pipelining for Redis", 2019): each of several clients has goroutines
// that wait for a limiter and then send a series of requests, one after the
// other. Its author names the right design and three wrong ones, which all
// falsify what a client that gathers requests gains. These experiments limit
// themselves, with the runtime's own timers as there; all other scenarios use
// the generator's planned arrivals.
const (
	// designRight: a limiter a goroutine, series of 5 to 15.
	designRight = "right"
	// designA: one limiter for all goroutines of a client, asked for each
	// request.
	designA = "a"
	// designB: one limiter for all goroutines of a client, asked for series of
	// 5 to 15.
	designB = "b"
	// designC: a limiter a goroutine, series of exactly 10, all in step.
	designC = "c"
)

const (
	seriesMin   = 5
	seriesMax   = 15
	seriesFixed = 10
)

// A limiter grants a fixed number of requests a second. It may be shared.
type limiter struct {
	gap time.Duration // between two requests

	mu   sync.Mutex
	next time.Time // guarded by mu: when the next grant is due
}

// take waits until n requests are due.
func (l *limiter) take(n int) {
	l.mu.Lock()
	now := time.Now()
	if l.next.IsZero() {
		l.next = now
	}
	// Who falls behind does not catch up by more than one series: a limiter is
	// no backlog.
	if oldest := now.Add(-seriesMax * l.gap); l.next.Before(oldest) {
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
	limiters []*limiter // one a client, or one a caller

	mu      sync.Mutex
	callers []*designCaller // guarded by mu
}

func newExperiment(design string, rate float64, clients, callers int) (*experiment, error) {
	e := &experiment{design: design}
	n := callers
	switch design {
	case designRight, designC:
	case designA, designB:
		n = clients
	default:
		return nil, fmt.Errorf("no design %q", design)
	}
	for range n {
		e.limiters = append(e.limiters, &limiter{gap: time.Duration(float64(n) / rate * float64(time.Second))})
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

// amend puts the requests' own latencies in the place of those that include the
// wait for a limiter.
func (e *experiment) amend(r *load.Result) {
	r.Service = new(load.Histogram)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.callers {
		r.Service.Merge(&c.latency)
	}
}

// A designCaller waits for its limiter and then sends a series.
type designCaller struct {
	// Immutable after experiment.caller.
	experiment *experiment
	inner      *caller
	limiter    *limiter

	// Owned by the goroutine that calls Do.
	rng     *rand.Rand
	left    int // of the series
	latency load.Histogram
}

// Do implements [load.Caller].
func (c *designCaller) Do(ctx context.Context) error {
	if c.left == 0 {
		switch c.experiment.design {
		case designA:
			c.left = 1
		case designC:
			c.left = seriesFixed
		default:
			c.left = seriesMin + c.rng.IntN(seriesMax-seriesMin+1)
		}
		c.limiter.take(c.left)
	}
	c.left--
	begun := time.Now()
	err := c.inner.Do(ctx)
	c.latency.Record(time.Since(begun))
	return err
}

// Close implements [load.Caller].
func (c *designCaller) Close() error { return c.inner.Close() }
