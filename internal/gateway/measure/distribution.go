package measure

import (
	"math"
	"time"
)

// Distribution is what a [Latency] had counted at some moment, or between two.
// It is a value of 4 KiB: assigning copies it.
type Distribution struct {
	counts [buckets]uint64
}

// Sub returns the values counted after earlier, a snapshot of the same Latency.
func (d Distribution) Sub(earlier Distribution) Distribution {
	for i := range d.counts {
		d.counts[i] -= min(earlier.counts[i], d.counts[i])
	}
	return d
}

// Add returns both together.
func (d Distribution) Add(other Distribution) Distribution {
	for i := range d.counts {
		d.counts[i] += other.counts[i]
	}
	return d
}

// Count returns the number of values.
func (d Distribution) Count() (n uint64) {
	for i := range d.counts {
		n += d.counts[i]
	}
	return n
}

// Sum returns the sum of all values, each taken as the middle of its bucket. An
// exact sum would need one more atomic addition in Record, which would take half
// as long again.
func (d Distribution) Sum() time.Duration {
	sum := 0.0
	for i, c := range d.counts {
		sum += float64(c) * float64(lower(i)+lower(min(i+1, buckets-1))) / 2
	}
	if sum >= math.MaxInt64 {
		return math.MaxInt64 // 292 years
	}
	return time.Duration(sum)
}

// Mean returns the average of the values, at most 3.2 % off, or 0 if there are none.
func (d Distribution) Mean() time.Duration {
	n := d.Count()
	if n == 0 {
		return 0
	}
	return d.Sum() / time.Duration(n)
}

// Quantile returns the value that a fraction q of all values do not exceed, off by
// no more than the width of a bucket (6.25 %), or 0 if there are no values. q is
// clamped to 0..1. Values above 137 s count as 137 s.
func (d Distribution) Quantile(q float64) time.Duration {
	n := d.Count()
	if n == 0 {
		return 0
	}
	rank := uint64(math.Ceil(min(max(q, 0), 1) * float64(n)))
	rank = min(max(rank, 1), n)
	for i, c := range d.counts {
		if rank <= c {
			if i == buckets-1 {
				return lower(i)
			}
			// The values of a bucket are assumed to be spread evenly in it.
			from, to := lower(i), lower(i+1)-1
			return from + time.Duration(float64(to-from)*float64(rank)/float64(c))
		}
		rank -= c
	}
	return lower(buckets - 1) // not reached: the counts add up to n
}

// Max returns the upper bound of the highest bucket that holds a value: no value
// was above it, unless it is that of the last bucket, 137 s. It returns 0 if there
// are no values.
func (d Distribution) Max() time.Duration {
	for i := buckets - 1; i >= 0; i-- {
		if d.counts[i] > 0 {
			return lower(min(i+1, buckets-1))
		}
	}
	return 0
}

// AtMost returns how many values were at most limit. The count ends at the bucket
// edge nearest to limit, which is at most 3.2 % from it.
func (d Distribution) AtMost(limit time.Duration) (n uint64) {
	last := bucket(max(limit, 0))
	if last == buckets-1 {
		return d.Count()
	}
	if limit-lower(last) < lower(last+1)-limit {
		last--
	}
	for i := 0; i <= last; i++ {
		n += d.counts[i]
	}
	return n
}
