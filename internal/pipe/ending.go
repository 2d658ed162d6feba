package pipe

import "sync/atomic"

// An ending synchronizes the goroutine that ends a call with the one that waits for it. A channel
// would suffice. But with futures, most calls have ended before a goroutine waits for them, and
// sending and receiving on a channel touches two more cache lines, which are in no cache when there
// are 16,384 futures: see docs/PERFORMANCE.md, "Memory that a call touches". So the channel is used
// only if a goroutine already waits.
//
// One goroutine ends it and one waits, each once between two resets by the owner of the call.
type ending struct {
	state atomic.Uint32 // written by both

	// Fields of the call, guarded by the lock of its socket. They fill a gap here, so that the
	// call needs no further cache line.
	members uint16 // of a leader: calls of its DoAll that were not given up unsent; 0 if there are too many to count
	moves   uint8  // moves from one socket to another

	wake chan struct{} // capacity 1, made once
}

const (
	endOpen    uint32 = iota
	endAwaited        // a goroutine receives from wake
	endReached
)

func newEnding() ending { return ending{wake: make(chan struct{}, 1)} }

// reset prepares e for the next call.
func (e *ending) reset() { e.state.Store(endOpen) }

// reach ends the call, and reports whether a caller was waiting for that. Afterwards e may be in use for
// another call.
func (e *ending) reach() (woken bool) {
	wake := e.wake
	if e.state.Swap(endReached) != endAwaited {
		return false
	}
	wake <- struct{}{}
	return true
}

// wait waits for the end of the call.
func (e *ending) wait() {
	if e.state.CompareAndSwap(endOpen, endAwaited) {
		<-e.wake
	}
}

// reached reports whether the call has ended.
func (e *ending) reached() bool { return e.state.Load() == endReached }
