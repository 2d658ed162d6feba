package postgres

import (
	"sync/atomic"
	"time"
)

// Bounds are the upper bounds of the buckets of a [Histogram]; a last bucket has
// none. They are close together where the goals of freshness lie.
var Bounds = [...]time.Duration{
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 10 * time.Second,
}

// Histogram counts durations by bucket.
type Histogram struct {
	Counts [len(Bounds) + 1]uint64 // not cumulative
	Sum    time.Duration
}

// histogram is a Histogram under construction.
type histogram struct {
	// Atomics: one goroutine writes, Stats reads.
	counts [len(Bounds) + 1]atomic.Uint64
	sum    atomic.Int64
}

func (h *histogram) add(d time.Duration) {
	i := 0
	for i < len(Bounds) && d > Bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
}

func (h *histogram) read() (r Histogram) {
	for i := range h.counts {
		r.Counts[i] = h.counts[i].Load()
	}
	r.Sum = time.Duration(h.sum.Load())
	return r
}
