package pipe

import "time"

// The flush rule. Replies are its clock: it has no timer and adds no latency
// when nothing is in flight.
const (
	// flushBytes is the number of queued bytes above which they are written whatever is in flight.
	flushBytes = 32 << 10
	// clockEvery is the number of queued calls between two readings of the clock, if there
	// are that many. The sweeper flushes calls that this misses, see backstop.
	clockEvery = 16
	// holdTarget divides the round trip into k parts. A queued call waits at most about this long
	// for the reply that permits it to be written.
	holdTarget = 128 * time.Microsecond
	// maxFactor bounds k: with a round trip of 50 ms, calls are held for less than 0.2 ms.
	maxFactor = 256
)

// A Reason is why queued calls are written.
type Reason uint8

const (
	// NotYet means that the rule does not hold.
	NotYet Reason = iota
	// Idle means that nothing was in flight.
	Idle
	// Depth means that enough calls were queued, compared with those in flight.
	Depth
	// Bytes means that more than flushBytes were queued.
	Bytes
)

// rule returns why the queued calls are to be written now, or NotYet. k is the number of writes that
// may be unanswered at a time.
func rule(queued, queuedBytes, outstanding, k, flushBytes int) Reason {
	switch {
	case queued == 0:
		return NotYet
	case outstanding == 0:
		return Idle
	case queued*k >= outstanding:
		return Depth
	case queuedBytes > flushBytes:
		return Bytes
	}
	return NotYet
}

// factor returns k for a round trip, which is 0 if it is unknown.
func factor(roundTrip time.Duration) int {
	return int(min(max(roundTrip/holdTarget, 1), maxFactor))
}
