package measure

import (
	"sync/atomic"
	"time"
)

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
