package rpc

import (
	"errors"
	"io"
	"runtime"
	"syscall"
	"time"

	"github.com/slipstream-go/slipstream/internal/pipe"
)

// Stock servers without headers end without a notice. They close their idle connections first, and later those that
// are in use, with the calls that they have received until then. So of two or more connections that have answered one
// is kept idle, and read by its keeper, which notices a FIN immediately (Pin.Listen; a lone caller would find it with
// its next call). Of fewer than four it gets calls if they need it. When the server closes a connection, another one
// is opened first. If that is refused, the server ends: nothing more is written to its connections, calls wait for
// the next one, and each connection is closed after its last reply, when all its calls were given up, or, with
// unanswered oneway calls, after 10 s. If it succeeds, the connection was idle for too long, or the address belongs
// to several processes and one of them ends; so the others are replaced, one each 100 ms, unless the last one that
// was closed had been idle for as long. Neither happens more than once a second. A call without a deadline
// is awaited for 10 s after its server has said that it ends, or was found to, and until the last deadline of other
// calls of its connection.
//
// A server with headers says that it ends with an answer, so it has said nothing on connections that are idle. If the
// next connection is refused, they get no more calls either.

const (
	// noticePause is how long the ends of connections are not looked into after one was.
	noticePause = time.Second
	// rotateEvery is how often an old connection is closed because its server may be one that ends.
	rotateEvery = 100 * time.Millisecond
	// leastTimeout is the shortest time after which servers are assumed to close idle connections.
	leastTimeout = time.Second
	// onewayPatience is how long a connection without calls stays open because its server may still have to read
	// oneway calls.
	onewayPatience = 10 * time.Second
	// endPatience is how long calls without a deadline are awaited of a server that ends.
	endPatience = 10 * time.Second
)

// notices is what a lane concludes from connections that the server closes. It is guarded by lane.mu.
//
// The server may have closed one because it ends, or because the connection was idle for long. So another one is opened
// first. If that is refused, the server ends: nothing more is written to its connections, and they are closed after
// their last reply. If it succeeds, it may be another process behind a balancer, and the one that ends has others of
// the connections: they are replaced one by one.
type notices struct {
	trial   bool          // a connection is being opened for this reason
	idle    time.Duration // how long the one that was closed had been idle
	limit   time.Duration // of a server that closes connections that were idle for so long
	until   time.Time     // no trial until then
	rotated time.Time     // the last time that an old connection was closed
	told    time.Time     // the last time that a server has said that it ends
}

// hungUp reports whether a connection ended because the server has closed it.
func hungUp(cause error) bool {
	return errors.Is(cause, pipe.ErrHungUp) || errors.Is(cause, io.ErrUnexpectedEOF) ||
		errors.Is(cause, syscall.ECONNRESET) || errors.Is(cause, syscall.EPIPE)
}

// refused reports whether an attempt to connect failed because nothing listens at the address.
func refused(err error) bool {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		const wsaeConnRefused = 10061 // Windows
		return errno == syscall.ECONNREFUSED || errno == syscall.ENOENT || runtime.GOOS == "windows" && errno == wsaeConnRefused
	}
	return false
}

// try records that the server has closed c, which was removed. It reports whether another connection
// is to be opened in its place to find out why. The caller holds mu.
func (l *lane) try(c *conn, now time.Time) bool {
	n := &l.notices
	if !c.answered || n.trial || len(l.conns) == 0 || now.Before(n.until) {
		return false
	}
	n.trial, n.idle = true, 0
	if c.busy == 0 {
		n.idle = now.Sub(c.since)
	}
	return true
}

// tried notes that the trial succeeded: the connection opened is up. The caller holds mu.
func (l *lane) tried(opened *conn, now time.Time) {
	n := &l.notices
	n.trial, n.until = false, now.Add(noticePause)
	known := n.limit >= leastTimeout && (n.idle-n.limit).Abs() <= n.limit/16
	if n.limit = n.idle; known || l.open.Load() != nil {
		return
	}
	for _, c := range l.conns {
		c.old = c != opened
	}
	l.schedule(time.Millisecond)
}

// failed notes that an attempt to connect has failed. It reports whether that means that the server ends: it was a
// trial, or the server has said so before. The caller holds mu.
func (l *lane) failed(err error, now time.Time) (ends bool) {
	n := &l.notices
	ends = n.trial || now.Sub(n.told) < noticePause
	if n.trial {
		n.trial, n.until = false, now.Add(noticePause)
	}
	if !refused(err) {
		return false
	}
	if ends {
		n.told = time.Time{}
		l.drain(now)
	}
	return ends
}

// drain makes all connections end after their last replies, because their server ends. The caller holds mu.
func (l *lane) drain(now time.Time) {
	for _, c := range l.conns {
		if l.takes(c) {
			c.draining = true
			c.leaving.Store(true)
			if l.client.unbounded() {
				l.ending(c, now)
			}
		}
	}
	l.open.Store(nil)
	l.schedule(time.Nanosecond)
}

// departures are connections that are to end.
type departures struct {
	removed  []*conn // without replacement
	replaced []*conn
	lost     []*conn // at once: nobody waits for their calls
	overdue  []*conn // at once: their servers should have ended
}

// end begins their ends. The caller holds no lock.
func (d *departures) end() {
	for _, c := range d.lost {
		c.pin.Close(errLost)
	}
	for _, c := range d.overdue {
		c.pin.Close(errOverdue)
	}
	for _, c := range d.replaced {
		c.pin.Retire()
	}
	for _, c := range d.removed {
		if !c.pin.Remove() { // it has the only place, or none anymore
			c.pin.Retire()
		}
	}
}

// errLost is the cause of the end of a connection whose server owed only replies without waiting
// callers.
var errLost = errors.New("all calls of the connection were given up")

// errOverdue is the cause of the end of a connection whose server ends and has left calls without a deadline unanswered.
var errOverdue = errors.New("the server ends, and has left the call unanswered for 10 s")

// ending notes that the server of c ends, if calls may have no deadline. The caller holds mu.
func (l *lane) ending(c *conn, now time.Time) {
	if c.ends.IsZero() {
		c.ends = now
		l.schedule(idleEvery)
	}
}

// overdue adds connections whose servers end, and which only calls without a deadline keep open. The caller holds mu.
func (l *lane) overdue(now time.Time, d *departures) {
	for _, c := range l.conns {
		if !c.ends.IsZero() && now.Sub(c.ends) > endPatience && now.UnixNano() > c.deadline.Load() {
			d.overdue = append(d.overdue, c)
		}
	}
}

// drained adds the connections that draining ends. The caller holds mu.
func (l *lane) drained(now time.Time, d *departures) {
	for _, c := range l.conns {
		if c.draining && !c.removed && (c.oneways == 0 || now.Sub(c.since) > onewayPatience) {
			d.removed = append(d.removed, c)
		}
	}
}

// rotate adds an old connection, from time to time. The caller holds mu.
func (l *lane) rotate(now time.Time, d *departures) {
	if now.Sub(l.notices.rotated) < rotateEvery {
		return
	}
	var found *conn
	for _, c := range l.conns {
		if c.old && c.oneways == 0 && l.takes(c) && (found == nil || c.busy < found.busy) {
			found = c
		}
	}
	switch {
	case found == nil:
		return
	case found.at < max(l.peak[0], l.peak[1]):
		d.replaced = append(d.replaced, found)
	default:
		d.removed = append(d.removed, found)
	}
	found.leaving.Store(true)
	l.notices.rotated = now
}
