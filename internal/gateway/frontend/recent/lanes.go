package recent

import "sync/atomic"

// maxLanes is the maximum number of tables.
const maxLanes = 64

// Lanes keeps a table for each lane, as numbered by the event loop: the connections of a lane
// are served one after the other. The zero value is ready to use.
type Lanes[R any] struct {
	lanes [maxLanes]struct {
		// Atomics. table is borrowed and returned by the goroutine that serves a
		// connection of the lane; made is set by the first.
		table atomic.Pointer[Table[R]]
		made  atomic.Bool
		_     [48]byte // the rest of the cache line
	}
}

// Borrow returns the lane's table, or nil if it is borrowed: goroutines may serve several
// connections of a lane concurrently.
func (l *Lanes[R]) Borrow(lane int) *Table[R] {
	place := &l.lanes[lane%maxLanes]
	t := place.table.Swap(nil)
	if t == nil && !place.made.Load() && place.made.CompareAndSwap(false, true) {
		return New[R]()
	}
	return t
}

// GiveBack ends a Borrow. It ignores a nil table.
func (l *Lanes[R]) GiveBack(lane int, t *Table[R]) {
	if t != nil {
		l.lanes[lane%maxLanes].table.Store(t)
	}
}
