package loop

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/internal/buf"
)

// Sizes of a connection with a goroutine.
const (
	// leastRead and mostRead bound the read buffer, which doubles when a read fills
	// it and halves when reads are small. An idle connection holds leastRead bytes.
	leastRead = 2 << 10
	mostRead  = 64 << 10
	// writeAtOnce bounds one write: a peer that reads as slowly as leastRate allows
	// takes it in a little more than the default StallTimeout.
	writeAtOnce = 32 << 10
)

// goConn is a connection with a goroutine that reads, its reader.
//
// All state of Conn belongs to the goroutine that has the turn. Reads and writes that may wait
// for the peer happen outside the turn. An answer that becomes complete goes into the mail. The
// goroutine that has the turn, or will take it again after a write, reads the mail before it
// yields the turn; if there is none, a helper takes the turn. So completing an answer never
// blocks.
type goConn struct {
	Conn

	// Immutable after adopt. nc is raw, or TLS over shaking, which is over raw.
	engine  *goEngine
	raw     net.Conn
	nc      net.Conn
	shaking *shakingConn // nil for clear text

	// Guarded by mu.
	mu     sync.Mutex
	cond   sync.Cond   // a turn has ended
	busy   bool        // a goroutine has the turn
	away   bool        // a goroutine writes, and will take the turn again
	mail   []*Deferred // complete answers
	posted bool        // Post was called since posts were run last
	wanted int         // goroutines that wait for the turn
	gone   bool        // closed or detached: answers that become complete are dropped
	seen   holding     // what the connection held when the turn began

	// Owned by the turn.
	settled    []*Deferred   // the mail that is being settled
	writing    bool          // a goroutine writes
	role       uint32        // of the reader; it changes when another one takes over from a reader that is stuck in a write
	stuck      time.Duration // since when the reader has been writing; 0 if it is not writing
	unblocking bool          // the reader's read was interrupted, so that the reader detaches the connection
	lastOut    int           // size of the last output, the estimate for the next

	// Guarded by the engine's mu.
	place int
}

// run is the goroutine of the first reader, which starts with the turn.
func (c *goConn) run() {
	defer c.engine.running.Done()
	c.open()
	if t, ok := c.nc.(*tls.Conn); ok {
		for !c.yield() {
			c.settleMail()
		}
		err := c.shaking.shake(t) // overdue limits its time
		c.acquire()
		c.partial, c.active = 0, c.server.now()
		if err != nil {
			c.broke(err)
		} else {
			c.begin()
			c.secured(t)
		}
	} else {
		c.begin()
	}
	c.read(c.role)
}

// secured passes the result of the handshake to the session.
func (c *goConn) secured(t *tls.Conn) {
	defer c.recovered()
	if s, ok := c.session.(SecureSession); ok && !c.closed {
		s.Secured(&c.Conn, t.ConnectionState())
	}
}

func (c *goConn) open() {
	defer c.recovered()
	c.role = 1
	c.session = c.server.config.New(&c.Conn)
}

// takeOver is the goroutine of a later reader.
func (c *goConn) takeOver(role uint32) {
	defer c.engine.running.Done()
	c.acquire()
	c.read(role)
}

// read is what a reader does until the connection has left or another reader has taken over.
// It begins with the turn.
func (c *goConn) read(me uint32) {
	size := leastRead
	for {
		into, ok := c.goOn(me)
		if !ok {
			return
		}
		if into.of != nil {
			n, err := c.nc.Read(into.free)
			c.acquire()
			c.tookExpected(into, n, err)
			continue
		}
		b := buf.Get(size)[:size]
		n, err := c.nc.Read(b)
		c.acquire()
		c.took(b[:n], err)
		buf.Put(b)
		switch {
		case n == size:
			size = min(2*size, mostRead)
		case n < size/4:
			size = max(size/2, leastRead)
		}
	}
}

// goOn does what there is to do until the connection is to be read, and yields the turn. If an
// input is expected, into is the memory to read it into. If ok is false, the reader is no longer
// needed.
func (c *goConn) goOn(me uint32) (into loan, ok bool) {
	for {
		c.work(me)
		switch {
		case c.closed || c.role != me:
			if c.yield() {
				return loan{}, false
			}
		case c.next() == stepDetach:
			c.detach()
			return loan{}, false
		case c.receiving():
			if into = c.lend(0, mostPart); into.of == nil {
				continue // there is no memory, so it is not read now
			}
			if c.yieldToRead() {
				return into, true
			}
			c.giveBack(into, 0)
		case c.reads():
			if c.in.Len() > 0 && c.starves() {
				continue
			}
			if c.yieldToRead() {
				return loan{}, true
			}
		default:
			c.await()
		}
	}
}

// help is the goroutine of a helper. It settles answers that became complete while no goroutine had
// the turn, or what the sweeper has found due. It starts with the turn.
func (c *goConn) help() {
	defer c.engine.running.Done()
	for {
		c.work(0)
		if c.yield() {
			return
		}
	}
}

// reads reports whether to read from the connection now.
func (c *goConn) reads() bool {
	return !c.closed && !c.eof && !c.starved && c.failure == nil && (c.lingering || !c.Full() || c.receiving())
}

// noteRead records the result of a read of n bytes. It returns false if there is nothing to pass to
// the session.
func (c *goConn) noteRead(n int, err error) bool {
	c.engine.reads.Add(1)
	if c.closed {
		return false
	}
	switch {
	case err == nil || c.unblocking && errors.Is(err, os.ErrDeadlineExceeded):
	case errors.Is(err, io.EOF):
		c.eof = true
	default:
		c.broke(err)
	}
	if n == 0 {
		return false
	}
	c.active, c.readAt = c.server.now(), -1
	return true
}

// tookExpected records the result of a read into an expected input. The session receives it when
// the reader continues.
func (c *goConn) tookExpected(l loan, n int, err error) {
	c.giveBack(l, n)
	c.noteRead(n, err)
}

// took passes the result of a read to the session.
func (c *goConn) took(in []byte, err error) {
	defer c.recovered()
	if !c.noteRead(len(in), err) {
		return
	}
	switch {
	case c.lingering:
	case c.Full():
		// An answer that was written in the meantime has made the connection Full. A request whose
		// rest waits for this reason is not slow.
		c.in.Append(in)
		c.partial = 0
	case c.in.Len() > 0:
		c.in.Append(in)
		c.feed(true)
	default:
		n, full := c.deliver(in)
		c.in.Append(in[n:])
		c.noteRest(len(in)-n, n, full, c.active)
	}
}

// work does everything that a connection can do now: settle complete answers, pass input to the
// session, write the answers, and take the next step. me is the role of a reader, or 0.
func (c *goConn) work(me uint32) {
	for {
		c.settleMail()
		c.feed(false)
		if c.out != nil && c.out.Len() == 0 {
			freeOutput(c.out)
			c.out = nil
		}
		if c.out != nil && !c.writing && !c.closed && c.failure == nil {
			c.write(me)
			continue
		}
		if !c.closed {
			c.noteWritten(0, c.server.now())
		}
		if !c.step() {
			return
		}
	}
}

// feed passes input kept from earlier reads to the session, as long as the session can use it.
// fresh reports that input has arrived since the last call of Data.
func (c *goConn) feed(fresh bool) {
	defer c.recovered()
	c.collectKept()
	for c.in.Len() > 0 && !c.Full() && (fresh || c.partial == 0) {
		fresh = false
		n, full := c.deliver(c.in.Peek(c.in.Len()))
		c.in.Discard(n)
		c.in.Release()
		c.noteRest(c.in.Len(), n, full, c.server.now())
	}
	c.tellPeerEnded()
}

// step takes the connection's next step, except for detaching, which the reader does. It returns
// true if there may be another one.
func (c *goConn) step() bool {
	switch c.next() {
	case stepHalfClose:
		c.beginLinger(c.server.now())
		if h, ok := c.nc.(interface{ CloseWrite() error }); !ok || h.CloseWrite() != nil {
			c.eof = true // it cannot be half-closed, so it is closed
		}
		return true
	case stepDetach:
		if !c.unblocking {
			c.unblocking = true
			_ = c.raw.SetReadDeadline(time.Unix(1, 0)) // if it fails, the read ends with the next byte
		}
	case stepClose:
		c.close(c.closeError())
	}
	return false
}

// close ends the connection.
func (c *goConn) close(err error) {
	c.leave()
	if c.failure != nil {
		_ = c.raw.Close() // closing TLS sends an alert, which might block
	} else {
		_ = c.nc.Close()
	}
	c.releasePlace()
	c.server.countClose(err)
	c.finish(err)
}

// leave removes the connection from the engine.
func (c *goConn) leave() {
	c.mu.Lock()
	c.gone = true
	c.mu.Unlock()
	if c.out != nil {
		freeOutput(c.out)
		c.out = nil
	}
	c.engine.remove(c)
}

// detach passes the connection to Config.Detached. The reader calls it when everything is written,
// so no goroutine reads or writes.
func (c *goConn) detach() {
	if c.unblocking {
		_ = c.raw.SetReadDeadline(time.Time{}) // if the connection is closed, later calls fail, too
	}
	unread := append([]byte(nil), c.in.Peek(c.in.Len())...)
	c.leave()
	c.server.countClose(&CloseError{Reason: ReasonDetached})
	c.finish(nil) // before Detached, because the session is not involved in what follows
	for !c.yield() {
		c.settleMail()
	}
	c.server.handOver(&c.Conn, c.nc, unread)
}

// recovered makes a connection fail because its session has panicked, without affecting other
// connections or the process. work then closes it.
func (c *goConn) recovered() {
	if v := recover(); v != nil {
		c.failure = c.server.panicked(&c.Conn, v)
	}
}

// broke records that the network has failed or that the server has cut the connection.
func (c *goConn) broke(err error) {
	if c.failure != nil {
		return
	}
	if cut := c.engine.cut.Load(); cut != nil {
		c.failure = *cut
		return
	}
	c.failure = &CloseError{ReasonReset, err}
}

// end ends the connection, whose socket is already closed.
func (c *goConn) end(err error) {
	c.acquire()
	if !c.closed && c.failure == nil {
		c.failure = err
	}
	for c.work(0); !c.yield(); {
		c.work(0)
	}
}
