package measure

import (
	"sync/atomic"
	"time"
)

// rationInterval is the time between two events that a Ration allows.
const rationInterval = time.Second

// Ration allows one event per second and counts the others: otherwise every request would
// have a line in the log during an outage. The zero value is ready to use.
type Ration struct {
	// Atomics. Written and read by any goroutine.
	last    atomic.Int64 // on the caller's clock, 0 if never
	leftOut atomic.Int64
}

// Take reports whether an event at now, on a monotonic clock of the caller, is allowed, and
// how many were not since the last one that was.
func (r *Ration) Take(now time.Duration) (leftOut int64, ok bool) {
	last := r.last.Load()
	if last != 0 && now-time.Duration(last) < rationInterval || !r.last.CompareAndSwap(last, int64(now)) {
		r.leftOut.Add(1)
		return 0, false
	}
	return r.leftOut.Swap(0), true
}
