package sqlite

import (
	"sync/atomic"
	"time"
)

// Bounds are the upper bounds of the buckets of a [Histogram]; a last bucket has
// none. With a poll each 100 ms most values lie between 100 and 110 ms, so that
// the buckets are narrow there.
var Bounds = [...]time.Duration{
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 75 * time.Millisecond, 100 * time.Millisecond,
	105 * time.Millisecond, 110 * time.Millisecond, 125 * time.Millisecond, 150 * time.Millisecond, 200 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 10 * time.Second,
}

// Histogram counts durations by bucket.
type Histogram struct {
	Counts [len(Bounds) + 1]uint64 // not cumulative
	Sum    time.Duration
	Max    time.Duration // the greatest value
}

// histogram is a Histogram under construction.
type histogram struct {
	// Atomics: one goroutine writes, Stats reads.
	counts [len(Bounds) + 1]atomic.Uint64
	sum    atomic.Int64
	max    atomic.Int64
}

func (h *histogram) add(d time.Duration) {
	i := 0
	for i < len(Bounds) && d > Bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
	h.max.Store(max(h.max.Load(), int64(d)))
}

func (h *histogram) read() (r Histogram) {
	for i := range h.counts {
		r.Counts[i] = h.counts[i].Load()
	}
	r.Sum, r.Max = time.Duration(h.sum.Load()), time.Duration(h.max.Load())
	return r
}
