package pipe

import "sync/atomic"

// An ending is where who ends a call and who waits for it meet. A channel alone would do. But
// with futures most calls have ended before anybody waits for them, and a channel that is
// written and read is two cache lines more, which at 16,384 futures are in nobody's cache:
// docs/PERFORMANCE.md, "Memory that a call touches", has the figures. So the channel is used
// only if somebody waits already.
//
// One ends it and one waits, each once, between two resets by the call's owner.
type ending struct {
	state atomic.Uint32 // written by both

	// The call's, guarded by the lock of its socket. They stand here because there is a gap, so that a
	// call keeps to its cache lines.
	members uint16 // of a leader: calls of its DoAll that were not given up unsent; 0: too many to count
	moves   uint8  // from one socket to another

	wake chan struct{} // capacity 1, made once
}

const (
	endOpen    uint32 = iota
	endAwaited        // who waits will read wake
	endReached
)

func newEnding() ending { return ending{wake: make(chan struct{}, 1)} }

// reset makes it ready for the next call.
func (e *ending) reset() { e.state.Store(endOpen) }

// reach ends the call. What it belongs to is another's afterwards.
func (e *ending) reach() {
	wake := e.wake
	if e.state.Swap(endReached) == endAwaited {
		wake <- struct{}{}
	}
}

// wait returns when the end is reached.
func (e *ending) wait() {
	if e.state.CompareAndSwap(endOpen, endAwaited) {
		<-e.wake
	}
}

// reached reports whether the end is reached.
func (e *ending) reached() bool { return e.state.Load() == endReached }
