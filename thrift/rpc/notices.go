package rpc

import (
	"errors"
	"io"
	"runtime"
	"syscall"
	"time"

	"github.com/slipstream-go/slipstream/internal/pipe"
)

// Stock servers without headers shut down without a notice. They first close their idle connections, and later those in
// use, dropping the calls that they have received until then. So if two or more connections have answered, one is kept
// idle and read by a goroutine that notices a FIN immediately (Pin.Listen; otherwise a lone caller would notice it only
// with its next call). If there are fewer than four, calls may use it when they need it. When the server closes a
// connection, the client first opens another one. If that is refused, the server is shutting down: nothing more is
// written to its connections, calls wait for the next server, and each connection is closed after its last reply, when
// all its calls have been abandoned, or, with unanswered oneway calls, after 10 s. If it succeeds, the connection was
// idle for too long, or the address belongs to several processes and one of them is shutting down; so the other
// connections are replaced, one every 100 ms, unless the previously closed connection had been idle for the same time.
// This happens at most once per second. A call without a deadline ends 10 s after its server has announced, or was
// found, to be shutting down, but not before the latest deadline of the other calls of its connection.
//
// A server with headers announces its shutdown with an answer, so it cannot announce it on idle connections. If the
// next connection is refused, they get no more calls either.

const (
	// noticePause is the minimum time between two investigations of closed connections.
	noticePause = time.Second
	// rotateEvery is the interval at which old connections are closed because their server may be shutting down.
	rotateEvery = 100 * time.Millisecond
	// leastTimeout is the shortest idle timeout that servers are assumed to have.
	leastTimeout = time.Second
	// onewayPatience is how long a connection without other calls stays open because the server may not have read its
	// oneway calls yet.
	onewayPatience = 10 * time.Second
	// endPatience is how long to wait for calls without a deadline if the server is shutting down.
	endPatience = 10 * time.Second
)

// notices holds what a lane concludes from connections that the server closed. It is guarded by lane.mu.
//
// The server may have closed a connection because it is shutting down or because the connection was idle for too long.
// To find out, the lane first opens another connection. If that is refused, the server is shutting down: nothing more
// is written to its connections, and they are closed after their last reply. If it succeeds, another process behind a
// balancer may have accepted it, and the one that is shutting down may have some of the other connections: they are
// replaced one by one.
type notices struct {
	trial   bool          // a connection is being opened to find out
	idle    time.Duration // how long the closed connection had been idle
	limit   time.Duration // the presumed idle timeout of the server
	until   time.Time     // no trial until then
	rotated time.Time     // when an old connection was last closed
	told    time.Time     // when a server last announced its shutdown
}

// hungUp reports whether a connection ended because the server closed it.
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

// try records that the server closed c, which has been removed. It reports whether to open another connection to find
// out why. The caller must hold mu.
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

// tried records that the trial succeeded with the connection opened. The caller must hold mu.
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

// failed records that an attempt to connect failed. It reports whether that means that the server is shutting down: the
// attempt was refused, and it was a trial or the server had announced a shutdown. The caller must hold mu.
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

// drain makes all connections close after their last replies, because the server is shutting down. The caller must hold
// mu.
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

// departures holds the connections to close.
type departures struct {
	removed  []*conn // close after the last reply, without replacement
	replaced []*conn
	lost     []*conn // close immediately: no caller waits
	overdue  []*conn // close immediately: the server should have ended
}

// end starts closing the connections. The caller must not hold a lock.
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
		if !c.pin.Remove() { // it is the only connection, or already replaced
			c.pin.Retire()
		}
	}
}

// errLost is the cause when a connection is closed because only abandoned calls were outstanding.
var errLost = errors.New("all calls of the connection were abandoned")

// errOverdue is the cause when a connection is closed because a server that is shutting down did not answer calls
// without a deadline.
var errOverdue = errors.New("the server is shutting down and did not answer the call within 10 s")

// ending records that the server of c is shutting down. It is used only if calls may have no deadline. The caller must
// hold mu.
func (l *lane) ending(c *conn, now time.Time) {
	if c.ends.IsZero() {
		c.ends = now
		l.schedule(idleEvery)
	}
}

// overdue adds connections whose server is shutting down and that only calls without a deadline keep open. The caller
// must hold mu.
func (l *lane) overdue(now time.Time, d *departures) {
	for _, c := range l.conns {
		if !c.ends.IsZero() && now.Sub(c.ends) > endPatience && now.UnixNano() > c.deadline.Load() {
			d.overdue = append(d.overdue, c)
		}
	}
}

// drained adds the draining connections that can be closed. The caller must hold mu.
func (l *lane) drained(now time.Time, d *departures) {
	for _, c := range l.conns {
		if c.draining && !c.removed && (c.oneways == 0 || now.Sub(c.since) > onewayPatience) {
			d.removed = append(d.removed, c)
		}
	}
}

// rotate adds an old connection, if rotateEvery has passed since the last one. The caller must hold mu.
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
