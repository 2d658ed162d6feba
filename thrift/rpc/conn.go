package rpc

import (
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
)

// conn is a connection of a lane, from when it is up. As a scanner it sees every reply, and as a watcher what
// happens to the connection.
type conn struct {
	// Immutable after Opened.
	lane *lane
	pin  pipe.Pin

	// Owned by the goroutine that reads.
	scanner frame.Scanner
	batch   batch

	// Atomics.
	anyOrder atomic.Bool  // the server answers in any order; written with lane.mu, read by the reader
	leaving  atomic.Bool  // the server has said that it will close the connection, or is expected to; written by the reader
	heard    atomic.Int64 // the last reply, or the start of the connection, in nanoseconds of Unix
	deadline atomic.Int64 // the last one of its calls, in nanoseconds of Unix; only if calls may have none

	// Guarded by lane.mu. If anyOrder is true, only at and ends matter.
	at       int       // index in lane.conns, or -1
	busy     int       // calls that the server has or will get
	lost     int       // those of them without a waiting caller
	oneways  int       // oneway calls that were written after the last reply
	since    time.Time // the last reply, or the start of the first call after it
	answered bool
	helped   int       // connections that were closed because the server did not answer on this one
	removed  bool      // it will be closed after its last reply
	gone     bool      // the server has closed it
	draining bool      // it will be removed, because the server ends
	old      bool      // it will be replaced, because its server may be one that ends
	ends     time.Time // when its server was known to end; zero if it is not, or if all calls have deadlines
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

// announced records that the server has said that it answers in any order.
func (c *conn) announced() {
	if c.pin != (pipe.Pin{}) && !c.anyOrder.Load() { // it is not that of a probe
		c.lane.announced(c)
	}
}

// told notes that the server has said that it will close the connection.
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

// expect notes the deadline of a call.
func (c *conn) expect(until time.Time) {
	for at := until.UnixNano(); ; {
		if last := c.deadline.Load(); at <= last || c.deadline.CompareAndSwap(last, at) {
			return
		}
	}
}

// quietTime is the time without a reply from which a connection is checked before it gets a call.
const quietTime = 50 * time.Microsecond

// hungUp reports whether the server has closed the connection, if it has been quiet. A server that ends closes
// connections that it has no call of; a call that is sent then is lost, and may count as executed. The goroutine that
// reads the connection may not have come to run since then.
func (c *conn) hungUp() bool {
	return !c.anyOrder.Load() && c.lane.client.now().UnixNano()-c.heard.Load() >= int64(quietTime) && c.pin.HungUp()
}

// Ended implements [pipe.Watcher].
func (c *conn) Ended(cause error) { c.lane.ended(c, cause) }

// full reports whether the connection accepts no more idempotent calls.
func (c *conn) full() bool { return c.busy >= c.depth.limit() }

// idle reports whether the server has no call of the connection, and is done with oneway calls.
func (c *conn) idle() bool { return c.busy == 0 && c.oneways == 0 }
