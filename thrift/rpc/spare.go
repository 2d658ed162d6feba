package rpc

import "time"

// Servers without headers do not announce their shutdown. They close idle connections first, and later those in use,
// dropping the calls that they have received until then. So one connection is kept idle, and listened to, if others
// have answered too. See notices.go for what happens when it ends.

const (
	// spareFrom is the number of connections from which one is kept idle even if calls wait. With fewer connections, that
	// would cost more than a quarter of the throughput of a server that gets one call per connection at a time.
	spareFrom = 4
	// sparePause is how long no connection is kept idle after calls needed the previous one.
	sparePause = 10 * time.Millisecond
)

// spare is the connection that is kept idle. It is guarded by lane.mu.
type spare struct {
	conn  *conn     // gets no calls; may be nil
	until time.Time // no connection is kept idle before this time
}

// settleSpare chooses a connection to keep idle, or releases the chosen one to calls that need it. If it returns a
// connection, the caller must call its Listen method after unlocking mu. The caller must hold mu.
func (l *lane) settleSpare(now time.Time) *conn {
	needed := l.scarce(l.others.n == 0)
	if c := l.spare.conn; c != nil {
		if l.alone(c) || needed && l.waiting() > 0 {
			l.lendSpare(now)
			l.dispatch(c)
		}
		return nil
	}
	if len(l.conns) < 2 || l.open.Load() != nil || now.Before(l.spare.until) {
		return nil
	}
	for i := len(l.conns) - 1; i > 0; i-- {
		if c := l.conns[i]; c.answered && c != l.reserved && l.takes(c) {
			if !l.alone(c) && (!needed || c.busy == 0 && l.waiting() == 0) {
				l.spare.conn = c
				return c
			}
			break
		}
	}
	return nil
}

// alone reports whether no connection other than c has answered and accepts calls. The caller must hold mu.
func (l *lane) alone(c *conn) bool {
	for _, other := range l.conns {
		if other != c && other.answered && l.takes(other) {
			return false
		}
	}
	return true
}

// scarce reports whether a call that finds no room needs the connection that is kept idle. The caller must hold mu.
func (l *lane) scarce(idempotent bool) bool {
	return len(l.conns) < spareFrom && !(idempotent && len(l.conns) > 0 && l.conns[0].depth.limit() > 1)
}

// lendSpare releases the connection that is kept idle, and returns it. The caller must hold mu.
func (l *lane) lendSpare(now time.Time) *conn {
	c := l.spare.conn
	l.spare = spare{until: now.Add(sparePause)}
	c.pin.Listen(false)
	return c
}
