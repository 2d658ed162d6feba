package loop

import "time"

// lateAfter is how long a connection that is ready may wait for its loop. If it waits longer while
// another loop sleeps, it would have been served sooner there.
const lateAfter = time.Millisecond

// round is what a loop knows of the events that its last wait returned. It belongs to the loop.
type round struct {
	// since is the time of the previous poll, which found none of them: none became ready earlier.
	// If the loop slept, it is the time at which it woke, minus the time for which it had yielded.
	since  time.Duration
	events int
}

// noteLate counts the events of the round that ends now if they may have waited long although
// another loop sleeps. The count is an upper bound: each event is assumed to have been ready since
// the previous poll and to be served at the end of the round.
func (l *eventLoop) noteLate(now time.Duration) {
	if l.round.events > 0 && now-l.round.since > lateAfter && l.engine.anotherSleeps(l) {
		l.counts.late += uint64(l.round.events)
	}
}

// anotherSleeps reports whether a loop other than l sleeps.
func (e *epollEngine) anotherSleeps(l *eventLoop) bool {
	for _, other := range e.loops {
		if other != l && other.waiting.Load() {
			return true
		}
	}
	return false
}
