package pipe

import "time"

// The flush rule. Replies are its clock: it knows no timer and adds no latency
// when nothing is under way.
const (
	// flushBytes queued are written whatever is under way.
	flushBytes = 32 << 10
	// clockEvery is how many calls are queued from one look at the clock to the next, if there
	// are that many. What they miss the sweeper finds, see backstop.
	clockEvery = 16
	// holdTarget divides the round trip into k parts: a queued call waits at most
	// about this long for the reply that frees it.
	holdTarget = 128 * time.Microsecond
	// maxFactor bounds k: at 50 ms of round trip a hold stays below 0.2 ms.
	maxFactor = 256
)

// Reason says why a write was made.
type Reason uint8

const (
	// NotYet: the rule does not hold.
	NotYet Reason = iota
	// Idle: nothing was under way.
	Idle
	// Depth: enough was queued for what was under way.
	Depth
	// Bytes: flushBytes were queued.
	Bytes
)

// rule says whether what is queued is to be written now. k is how many writes
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

// factor returns k for a round trip; 0 if that is unknown yet.
func factor(roundTrip time.Duration) int {
	return int(min(max(roundTrip/holdTarget, 1), maxFactor))
}
