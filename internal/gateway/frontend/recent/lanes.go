package recent

import "sync/atomic"

// maxLanes is how many tables there are at most.
const maxLanes = 64

// Lanes keeps a table for each lane of connections that are served one after the other, as
// the event loop numbers them. The zero value is ready.
type Lanes[R any] struct {
	lanes [maxLanes]struct {
		// Atomics. table is taken and put back by whoever serves a connection of the
		// lane; made is set by the first.
		table atomic.Pointer[Table[R]]
		made  atomic.Bool
		_     [48]byte // the rest of the cache line
	}
}

// Borrow returns the lane's table, or nil if somebody else has it: goroutines may serve
// several connections of a lane at once.
func (l *Lanes[R]) Borrow(lane int) *Table[R] {
	place := &l.lanes[lane%maxLanes]
	t := place.table.Swap(nil)
	if t == nil && !place.made.Load() && place.made.CompareAndSwap(false, true) {
		return New[R]()
	}
	return t
}

// GiveBack ends a Borrow; nil is nothing.
func (l *Lanes[R]) GiveBack(lane int, t *Table[R]) {
	if t != nil {
		l.lanes[lane%maxLanes].table.Store(t)
	}
}
