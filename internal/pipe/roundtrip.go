package pipe

import "time"

// roundTrip is the smallest reply time of the last 5 to 10 s. It covers two windows,
// so that a longer round trip is noticed. It is guarded by the socket's lock.
type roundTrip struct {
	current, previous time.Duration
	since             time.Duration
}

const roundTripWindow = 5 * time.Second

func (r *roundTrip) add(now, d time.Duration) {
	d = max(d, time.Microsecond)
	if now-r.since > roundTripWindow {
		r.previous, r.current, r.since = r.current, 0, now
	}
	if r.current == 0 || d < r.current {
		r.current = d
	}
}

// get returns the round trip, or 0 if it is unknown.
func (r *roundTrip) get() time.Duration {
	if r.current == 0 || r.previous != 0 && r.previous < r.current {
		return r.previous
	}
	return r.current
}
