package load

import (
	"math"
	"sync/atomic"
	"time"
)

// Buckets counts durations in the buckets of a time line, which take 16 KiB: quantiles are at most
// 1.6 % too high, and durations above 60 s count as 60 s. The zero value is ready to use. All methods
// are safe for concurrent use.
type Buckets struct {
	// Atomics.
	counts  [lineBuckets]atomic.Uint64
	longest atomic.Int64
}

// Record adds one duration. Negative durations count as zero.
func (b *Buckets) Record(d time.Duration) {
	ns := min(max(int64(d), 0), histogramHighest)
	b.lengthen(ns)
	b.counts[lineBucket(ns)].Add(1)
}

func (b *Buckets) lengthen(ns int64) {
	for longest := b.longest.Load(); ns > longest; longest = b.longest.Load() {
		if b.longest.CompareAndSwap(longest, ns) {
			return
		}
	}
}

// Reset discards all durations.
func (b *Buckets) Reset() {
	for i := range b.counts {
		b.counts[i].Store(0)
	}
	b.longest.Store(0)
}

// Merge adds the durations of other, which is not changed.
func (b *Buckets) Merge(other *Buckets) {
	for i := range other.counts {
		if n := other.counts[i].Load(); n > 0 {
			b.counts[i].Add(n)
		}
	}
	b.lengthen(other.longest.Load())
}

// Count returns the number of durations recorded.
func (b *Buckets) Count() (n uint64) {
	for i := range b.counts {
		n += b.counts[i].Load()
	}
	return n
}

// Quantile returns the duration below which the share q (0 to 1) of the recorded durations lies, and
// 0 if nothing was recorded.
func (b *Buckets) Quantile(q float64) time.Duration {
	want := max(uint64(math.Ceil(q*float64(b.Count()))), 1)
	var below uint64
	for i := range b.counts {
		if below += b.counts[i].Load(); below >= want {
			return time.Duration(min(lineTop(i), b.longest.Load()))
		}
	}
	return b.Max()
}

// Max returns the longest duration.
func (b *Buckets) Max() time.Duration { return time.Duration(b.longest.Load()) }
