package rpc

import (
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
)

// conn is a connection of a lane. It is the connection's scanner, so it sees every reply, and its watcher, so it is
// notified of the connection's events.
type conn struct {
	// Immutable after Opened.
	lane *lane
	pin  pipe.Pin

	// Owned by the goroutine that reads.
	scanner frame.Scanner
	batch   batch

	// Atomics.
	anyOrder atomic.Bool  // the server answers in any order; written with lane.mu, read by the reader
	leaving  atomic.Bool  // the server has announced that it will close the connection, or is expected to close it; written by the reader
	heard    atomic.Int64 // time of the last reply, or of the start of the connection, in Unix nanoseconds
	deadline atomic.Int64 // latest deadline of its calls, in Unix nanoseconds; maintained only if calls may have no deadline

	// Guarded by lane.mu. If anyOrder is true, only at and ends are used.
	at       int       // index in lane.conns, or -1
	busy     int       // calls in flight or about to be sent
	lost     int       // those of busy whose callers have stopped waiting
	oneways  int       // oneway calls that were written after the last reply
	since    time.Time // time of the last reply, or of the start of the first call after it
	answered bool
	helped   int       // number of connections closed because the server did not answer on this one
	removed  bool      // will be closed after its last reply
	gone     bool      // closed by the server
	draining bool      // will be removed, because the server is shutting down
	old      bool      // will be replaced, because its server may be shutting down
	ends     time.Time // when its server was first known to shut down; zero if it is not, or if all calls have deadlines
	acks     acks
	depth    depth
}

// Opened implements [pipe.Watcher].
func (c *conn) Opened(p pipe.Pin) {
	c.pin, c.batch.apply = p, p.SetLowWater
	c.heard.Store(c.lane.client.now().UnixNano())
	c.lane.opened(c)
}

// Replied implements [pipe.Watcher].
func (c *conn) Replied(n int, overtaken bool) {
	if c.anyOrder.Load() {
		return
	}
	to := c.lane.replied(c, n, overtaken)
	if to.ack {
		c.pin.AckNow()
	}
	c.batch.await(to.batch)
	if to.listen != nil {
		to.listen.pin.Listen(true)
	}
}

// announced records that the server has announced that it answers in any order.
func (c *conn) announced() {
	if c.pin != (pipe.Pin{}) && !c.anyOrder.Load() { // not a probe's connection
		c.lane.announced(c)
	}
}

// told records that the server has announced that it will close the connection.
func (c *conn) told() {
	c.leaving.Store(true)
	l := c.lane
	now := l.client.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notices.told = now
	if l.client.unbounded() {
		l.ending(c, now)
	}
}

// expect records the deadline of a call.
func (c *conn) expect(until time.Time) {
	for at := until.UnixNano(); ; {
		if last := c.deadline.Load(); at <= last || c.deadline.CompareAndSwap(last, at) {
			return
		}
	}
}

// quietTime is the time without a reply after which a connection is checked before a call is sent on it.
const quietTime = 50 * time.Microsecond

// hungUp reports whether the server has closed the connection. It checks only connections that have been quiet. A
// server that shuts down closes its idle connections; a call sent after that is lost, and may be reported as
// MaybeExecuted. The check is needed because the reading goroutine may not have run since then.
func (c *conn) hungUp() bool {
	return !c.anyOrder.Load() && c.lane.client.now().UnixNano()-c.heard.Load() >= int64(quietTime) && c.pin.HungUp()
}

// Ended implements [pipe.Watcher].
func (c *conn) Ended(cause error) { c.lane.ended(c, cause) }

// full reports whether the connection accepts no more idempotent calls.
func (c *conn) full() bool { return c.busy >= c.depth.limit() }

// idle reports whether no call is in flight on the connection, including oneway calls that may still be unread.
func (c *conn) idle() bool { return c.busy == 0 && c.oneways == 0 }
