package measure

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// Counter is a counter that many cores add to: on one shared word they would pass its
// cache line around with every answer. The zero value is 0.
type Counter struct {
	// Atomics. Written by whoever adds, read by Sum.
	stripes [4]struct {
		n atomic.Int64
		_ [56]byte // the rest of the cache line
	}
}

// Add adds n.
func (c *Counter) Add(n int64) { c.stripes[rand.Uint32()%4].n.Add(n) }

// Sum returns what was added so far.
func (c *Counter) Sum() (n int64) {
	for i := range c.stripes {
		n += c.stripes[i].n.Load()
	}
	return n
}

// rationInterval is the time between two events that a Ration lets pass.
const rationInterval = time.Second

// Ration lets one event a second through and counts the others: in an outage every request
// would have its line in the log. The zero value is ready.
type Ration struct {
	// Atomics. Written and read by whoever has an event.
	last    atomic.Int64 // on the caller's clock, 0: never
	leftOut atomic.Int64
}

// Take reports whether an event at now, on a clock of the caller's that only goes on, may
// pass, and how many did not since the last one that did.
func (r *Ration) Take(now time.Duration) (leftOut int64, ok bool) {
	last := r.last.Load()
	if last != 0 && now-time.Duration(last) < rationInterval || !r.last.CompareAndSwap(last, int64(now)) {
		r.leftOut.Add(1)
		return 0, false
	}
	return r.leftOut.Swap(0), true
}
