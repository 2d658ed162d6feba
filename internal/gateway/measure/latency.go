package measure

import (
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// The buckets: one for all below 128 ns, 16 per power of two up to 2^37 ns (137 s),
// and one for all above.
const (
	firstPower = 7
	lastPower  = 37
	perPower   = 16
	subBits    = 4 // log2 of perPower
	buckets    = (lastPower-firstPower)*perPower + 2
)

// stripes of a Latency. With shared words the cores would pass the cache lines of
// the busiest buckets around with every value.
const stripes = 8

// Latency is a histogram of durations. The zero value is ready to use. It takes 31
// KiB and must not be copied. All methods are safe for concurrent use.
type Latency struct {
	// Atomics. Written by Record, read by Snapshot.
	stripes [stripes]struct {
		counts [buckets]atomic.Uint64
		_      [48]byte // 482 counts fill 60 cache lines and a quarter; the next stripe begins on another
	}
}

// Record counts one value; a negative one counts as 0. It does not allocate.
func (l *Latency) Record(d time.Duration) {
	l.RecordMany(d, 1)
}

// RecordMany counts n equal values.
func (l *Latency) RecordMany(d time.Duration, n int) {
	if n == 0 {
		return
	}
	l.stripes[rand.Uint32()%stripes].counts[bucket(max(d, 0))].Add(uint64(n))
}

// Snapshot returns the values counted since the start. Values that are recorded
// concurrently may or may not be included.
func (l *Latency) Snapshot() Distribution {
	var d Distribution
	for i := range l.stripes {
		counts := &l.stripes[i].counts
		for j := range counts {
			d.counts[j] += counts[j].Load()
		}
	}
	return d
}

// bucket returns the index of the bucket that holds d, which is not negative.
func bucket(d time.Duration) int {
	power := bits.Len64(uint64(d)) - 1 // -1 for 0
	switch {
	case power < firstPower:
		return 0
	case power >= lastPower:
		return buckets - 1
	}
	within := uint64(d) >> (power - subBits) & (perPower - 1)
	return 1 + (power-firstPower)*perPower + int(within)
}

// lower returns the smallest duration in bucket i.
func lower(i int) time.Duration {
	if i == 0 {
		return 0
	}
	power, within := (i-1)/perPower+firstPower, (i-1)%perPower
	return time.Duration(perPower+within) << (power - subBits)
}
