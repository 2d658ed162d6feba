package pipe

import "time"

// roundTrip is the smallest reply time of the last 5 to 10 s: of two windows,
// so that a server that moved away is noticed. Guarded by the socket's lock.
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

// get returns the round trip, 0 if none is known.
func (r *roundTrip) get() time.Duration {
	if r.current == 0 || r.previous != 0 && r.previous < r.current {
		return r.previous
	}
	return r.current
}
