package origin

import (
	"sync/atomic"
	"time"
)

// Histogram is a distribution of durations. Counts[i] of them were at most Bounds[i] and above
// the previous bound; there is one more count than bounds, for values above all of them.
type Histogram struct {
	Bounds []time.Duration // ascending
	Counts []uint64
	Sum    time.Duration
	Max    time.Duration // the greatest one, or 0 if unknown
	AtMost bool          // they are upper bounds of the true values
}

// Counter counts durations for a [Histogram]. It must not be copied after first use.
type Counter struct {
	// Immutable.
	bounds []time.Duration

	// Atomics: one goroutine writes, Read may be called by any.
	counts []atomic.Uint64
	sum    atomic.Int64
	max    atomic.Int64
}

// NewCounter returns a counter with a bucket for each bound, in ascending order, and one more.
func NewCounter(bounds []time.Duration) *Counter {
	return &Counter{bounds: bounds, counts: make([]atomic.Uint64, len(bounds)+1)}
}

// Add counts a duration.
func (c *Counter) Add(d time.Duration) {
	i := 0
	for i < len(c.bounds) && d > c.bounds[i] {
		i++
	}
	c.counts[i].Add(1)
	c.sum.Add(int64(d))
	c.max.Store(max(c.max.Load(), int64(d)))
}

// Read returns the counts.
func (c *Counter) Read() Histogram {
	h := Histogram{Bounds: c.bounds, Counts: make([]uint64, len(c.counts)), Sum: time.Duration(c.sum.Load()), Max: time.Duration(c.max.Load())}
	for i := range c.counts {
		h.Counts[i] = c.counts[i].Load()
	}
	return h
}
