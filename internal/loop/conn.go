package loop

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/buf"
)

// A Conn is a connection as its session sees it. Its methods may be called only inside the
// methods of its [Session], its replies and its tasks, except for [Conn.Post].
//
// These run in the connection's turn, one at a time: on its loop or, with the backend of
// goroutines, on the goroutine that has the turn.
type Conn struct {
	// Immutable after accept.
	server  *Server
	backend backend
	remote  netip.AddrPort
	id      uint64
	lane    int
	session Session
	local   bool // see AtLoopback

	// Owned by the turn: the limits of the server or, after SetLimits, of the connection.
	limits *Limits

	// Owned by the turn: what was read and not consumed, and what is to be sent.
	in       buf.Input
	out      *Output  // of the turn, or the connection's own while something waits; nil if empty
	settling bool     // a reply is being written, ahead of those still owed
	after    *Output  // output that follows the reply being written; nil if there is none
	flying   flight   // what is being written outside the turn
	room     int      // bytes that may wait before the session is Full, in this turn
	expected *Payload // an input in dedicated memory, see expect.go; nil if none is expected
	starved  bool     // it is not read until the budget has room for more input

	// Owned by the turn: what it has done, see share.go.
	share      int  // units that it may spend
	spent      int  // units
	wrote      int  // bytes
	unfinished bool // the last turn left requests that were read

	// Owned by the turn: answers in order, see deferred.go.
	firstOwed, lastOwed *Deferred
	owed                int
	tails               int // bytes after owed answers, except after the last
	tailsLarge          int // of these, bytes that belong to large answers
	weight              int // of the answers owed, see Weigh

	// Owned by the turn: how it continues.
	closed     bool
	eof        bool  // the peer sends no more
	ending     bool  // End was called, or the engine ends it
	paused     bool  // see Pause
	endReason  error // why the engine ends it
	detaching  bool
	lingering  bool  // half-closed: reads to EOF
	failure    error // why it ends without its answers: Abort was called, or it failed
	ready      bool  // New has returned and a handshake is over: posts run, and Drain is called
	undrained  bool  // the session is a Drainer, and Drain was not called yet
	watchesEnd bool  // the session is an EndWatcher, and PeerEnded was not called yet
	postsLeft  bool  // the last turn left tasks that were posted

	// Atomic: what was posted, see post.go. It is nil until the first post.
	posts atomic.Pointer[postQueue]

	// Owned by the turn: times for the sweep, on the engine's clock; 0 if they do not apply.
	readAt  time.Duration // Config.Clock; -1 if it has not been read since the last read(2)
	opened  time.Duration // when it was accepted
	active  time.Duration // the last event
	partial time.Duration // since when a request is incomplete
	stalled time.Duration // since when output waits for the peer
	sent    int           // bytes written since stalled
	held    int           // bytes that the kernel held at the first sweep after stalled; -1 if not known yet
	linger  time.Duration // since when it reads to EOF
	counted holding       // what it has in its lane's account
	// Owned by the turn: for the budget and for places, see budget.go and places.go.
	proven    bool // see Prove
	throttled bool // it was counted as throttled
	alone     bool // it is not counted together with others of its address
	limited   bool // it counts toward the limit of its address

	// Owned by the turn. They are made when they are first needed.
	ctx    context.Context
	cancel context.CancelFunc
}

// backend is what a connection needs from the backend that serves it.
type backend interface {
	// complete brings d into the connection's turn. It may be called on any goroutine.
	complete(d *Deferred)
	// wakePosts gives the connection a turn soon. It may be called on any goroutine.
	wakePosts()
	// owes reports by how much the number of answers owed has changed.
	owes(delta int)
	// output returns an empty output for the current turn.
	output() *Output
	// held returns the number of bytes in the kernel that the peer has not acknowledged, or 0
	// if that is not known.
	held() int
	// clock reads Config.Clock, after the last read of the connection.
	clock() time.Duration
}

// ID returns the number of the connection, which is unique within its server.
func (c *Conn) ID() uint64 { return c.id }

// Lane returns a number from 0 to [Config.Loops] - 1. With epoll, connections of one lane are
// served one after the other, mostly on the same core; with the backend of goroutines that is
// only likely. Sessions keep memory that they share with others by lane.
func (c *Conn) Lane() int { return c.lane }

// RemoteAddr returns the peer's address. It is valid only for TCP.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.remote }

// AtLoopback reports whether the connection came to a listener that is bound to a loopback
// address, as [AtLoopback] does.
func (c *Conn) AtLoopback() bool { return c.local }

// Session returns the connection's session.
func (c *Conn) Session() Session { return c.session }

// Draining reports whether the server is shutting down. If the protocol allows it, the session
// should tell the peer to connect elsewhere.
func (c *Conn) Draining() bool { return c.server.draining.Load() }

// AdmitsLarge reports whether a large answer of n bytes may be sent: see [Output.Large].
func (c *Conn) AdmitsLarge(n int) bool { return c.server.config.Large.Admits(int64(n)) }

// Prove notes that the peer has completed a request, or a login where one is required. Until
// then its connection is among the first to be closed when there are no places left, and
// Config.ProveTimeout bounds its life.
func (c *Conn) Prove() { c.proven = true }

// ReadAt returns the time of [Config.Clock], read after the read(2) that returned the bytes passed
// to Data.
func (c *Conn) ReadAt() time.Duration {
	if c.readAt < 0 {
		c.readAt = c.backend.clock()
	}
	return c.readAt
}

// Context returns a context that ends with the connection.
func (c *Conn) Context() context.Context {
	if c.ctx == nil {
		c.ctx, c.cancel = context.WithCancel(context.Background())
		if c.closed {
			c.cancel()
		}
	}
	return c.ctx
}

// Output returns the output to which the next answer must be appended. It must be called again
// in each call of Data or Write, and after each Defer.
func (c *Conn) Output() *Output {
	if c.lastOwed == nil || c.settling {
		return c.head()
	}
	if c.lastOwed.tail == nil {
		c.lastOwed.tail = newOutput(0)
	}
	return c.lastOwed.tail
}

// head returns the output for bytes that may be sent immediately.
func (c *Conn) head() *Output {
	if c.out == nil {
		c.out = c.backend.output()
	}
	return c.out
}

// flight is what is being written outside the turn.
type flight struct{ bytes, memory, large int }

func flightOf(o *Output) flight { return flight{o.Len(), o.memory(), o.large()} }

// Full reports whether the session must not answer more requests for now.
func (c *Conn) Full() bool { return c.expected != nil || c.full() }

// full is like Full, but ignores an expected input.
func (c *Conn) full() bool {
	return c.closed || c.ending || c.detaching || c.failure != nil || c.paused || c.spent >= c.share ||
		c.owed >= c.limits.MaxDeferred || c.waiting() >= c.room ||
		c.weight != 0 && c.room < c.server.config.MaxOutput && c.waiting()+c.weight >= c.room
}

// Pause makes the connection Full until it is called with false. It is for a session whose next
// requests depend on an answer that it has deferred, such as the answer to a login; [Reply.Write]
// of that answer ends the pause.
func (c *Conn) Pause(on bool) { c.paused = on }

// waiting returns the number of bytes that wait to be written.
func (c *Conn) waiting() int {
	n := c.tails + c.flying.bytes
	if c.out != nil {
		n += c.out.Len()
	}
	if c.lastOwed != nil && c.lastOwed.tail != nil {
		n += c.lastOwed.tail.Len()
	}
	return n
}

// End ends the connection once all answers appended or deferred so far have been
// written. The connection is half-closed, and what the peer still sends is read and dropped for
// at most a second, so that no reset destroys an answer in flight.
func (c *Conn) End() { c.ending = true }

// begin records that the session may be called from now on.
func (c *Conn) begin() {
	c.ready = true
	_, c.undrained = c.session.(Drainer)
	_, c.watchesEnd = c.session.(EndWatcher)
}

// tellDrain calls Drain, once, if the server has begun to drain. It is part of the turn.
func (c *Conn) tellDrain() {
	if c.drainDue() && !c.closed && !c.ending && !c.detaching && c.failure == nil {
		c.undrained = false
		c.session.(Drainer).Drain(c)
	}
}

// drainDue reports whether Drain must still be called.
func (c *Conn) drainDue() bool { return c.undrained && c.ready && c.server.draining.Load() }

// Abort ends the connection immediately. [Session.Closed] gets a [*CloseError] with err.
func (c *Conn) Abort(err error) {
	if c.failure == nil {
		c.failure = &CloseError{ReasonAborted, err}
	}
}

// Detach removes the connection from the engine once all answers so far have been
// written. [Config.Detached] gets it, with what the current call of Data does not
// consume and what was read after it. Detach panics if an input is expected.
func (c *Conn) Detach() {
	if c.expected != nil {
		panic("loop: Detach of a connection that expects an input")
	}
	c.detaching = true
}

// deliver passes bytes to the session and returns how many it has consumed, including expected
// inputs, and whether it stopped because it was full.
func (c *Conn) deliver(in []byte) (consumed int, full bool) {
	for {
		n := c.session.Data(c, in[consumed:])
		if n < 0 || n > len(in)-consumed {
			panic("loop: Data returned a number outside 0 to len(in)")
		}
		consumed += n
		if c.expected == nil {
			return consumed, c.full()
		}
		consumed += c.collect(in[consumed:])
		if full = c.Full(); full || consumed == len(in) {
			return consumed, full
		}
	}
}

// noteRest records since when a request has been incomplete. rest is the number of unconsumed
// bytes, consumed the number of bytes before them.
func (c *Conn) noteRest(rest, consumed int, full bool, now time.Duration) {
	switch {
	case rest == 0 || full:
		c.partial = 0
	case c.partial == 0 || consumed > 0:
		c.partial = now
	}
	if rest >= c.limits.MaxInput && !full && c.failure == nil {
		c.failure = &CloseError{Reason: ReasonTooLarge}
	}
}

// step is what a connection does after a turn.
type step uint8

const (
	stepNone      step = iota
	stepHalfClose      // all is written: end the sending side, read to EOF
	stepDetach         // all is written: leave the engine
	stepClose          // with closeError
)

// tellPeerEnded calls PeerEnded, once, if the peer has ended its side. It is a part of the turn.
func (c *Conn) tellPeerEnded() {
	if c.watchesEnd && c.eof && c.owed > 0 && (c.in.Len() == 0 || !c.full()) && !c.closed && !c.lingering && c.failure == nil {
		c.watchesEnd = false
		c.session.(EndWatcher).PeerEnded(c)
	}
}

// next decides how the connection continues after everything that could be written was.
func (c *Conn) next() step {
	idle := c.owed == 0 && c.waiting() == 0 && !c.unfinished && !c.postsLeft
	switch {
	case c.closed:
		return stepNone
	case c.failure != nil:
		return stepClose
	case !idle:
		return stepNone
	case c.detaching:
		return stepDetach
	case c.lingering:
		if c.eof {
			return stepClose
		}
		return stepNone
	case c.eof: // an incomplete request can no longer be completed
		return stepClose
	case c.ending:
		return stepHalfClose
	}
	return stepNone
}

// closeError returns the error for Closed.
func (c *Conn) closeError() error {
	if c.failure != nil {
		return c.failure
	}
	return c.endReason
}

// beginLinger records that the sending side has ended.
func (c *Conn) beginLinger(now time.Duration) {
	c.lingering = true
	c.linger = now
	c.partial = 0
	c.dropPosts()
	c.in.Reset()
	c.dropExpected()
	c.starved = false
}

// noteWritten accounts for the bytes that wait for the peer. It is called after a turn's writes
// with the number of bytes that the kernel accepted.
func (c *Conn) noteWritten(n int, now time.Duration) {
	left := c.flying.bytes
	if c.out != nil {
		left += c.out.Len()
	}
	if n > 0 {
		c.active = now // the idle time starts after the answer
	}
	if left != 0 || c.owed != 0 || c.in.Len() != 0 || c.counted != (holding{}) {
		c.count(c.holding())
	}
	switch {
	case left == 0:
		c.stalled = 0
	case c.stalled == 0:
		c.beginStall(now)
	default:
		c.sent += n
	}
}

// beginStall starts counting the bytes that the peer takes. Only the sweep queries the kernel,
// because most stalls end earlier.
func (c *Conn) beginStall(now time.Duration) { c.stalled, c.sent, c.held = now, 0, -1 }

// taken returns the number of bytes that the peer has taken since stalled: those passed to the
// kernel, and those that have left its buffer. Without the latter, a peer that reads 40 KB/s would
// appear to make no progress until half of the kernel's buffer is free.
func (c *Conn) taken() int { return c.sent + c.held - c.backend.held() }

// finish ends the state that both backends share. The caller has closed the socket, or
// is about to.
func (c *Conn) finish(err error) {
	c.closed = true
	c.in.Reset()
	c.dropExpected()
	c.dropPosts()
	c.dropOwed()
	c.flying = flight{}
	c.count(holding{})
	if c.cancel != nil {
		c.cancel()
	}
	c.tellSession(err)
	c.tellOnClose(err)
	if c.out != nil { // the session has appended to it in Closed
		freeOutput(c.out)
		c.out = nil
	}
}

func (c *Conn) tellSession(err error) {
	defer c.outlive()
	if c.session != nil { // if nil, New has panicked
		c.session.Closed(c, err)
	}
}

func (c *Conn) tellOnClose(err error) {
	defer c.outlive()
	if c.server.config.OnClose != nil {
		c.server.config.OnClose(c, err)
	}
}

// outlive recovers a panic of a function that is called after the connection has ended.
func (c *Conn) outlive() {
	if v := recover(); v != nil {
		_ = c.server.panicked(c, v) // it is logged
	}
}

// A placedConn is a detached connection: it keeps its place until it is closed.
type placedConn struct {
	net.Conn
	release func() // at most once
	local   bool
}

func (p *placedConn) Close() error {
	p.release()
	return p.Conn.Close()
}

// AtLoopback returns the value of [Conn.AtLoopback].
func (p *placedConn) AtLoopback() bool { return p.local }

// NetConn returns the wrapped connection, a [*tls.Conn] if it came to a listener of [Secure].
func (p *placedConn) NetConn() net.Conn { return p.Conn }

// CloseWrite closes the sending side, if the connection supports that.
func (p *placedConn) CloseWrite() error {
	if c, ok := p.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}
