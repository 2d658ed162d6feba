package loop

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/buf"
)

// Conn is a connection as its session sees it. Its methods may be called inside the
// methods of its [Session] and of its replies only.
//
// These run in the connection's turn: on its loop, or under its lock, one at a time.
type Conn struct {
	// Immutable after accept.
	server  *Server
	backend backend
	remote  netip.AddrPort
	id      uint64
	lane    int
	session Session
	local   bool // see AtLoopback

	// Owned by the turn: those of the server, or its own.
	limits *Limits

	// Owned by the turn: what was read and not consumed, and what is to be sent.
	in       buf.Input
	out      *Output  // of the turn, or own while something waits; nil: empty
	settling bool     // a reply is being written, in front of those owed
	after    *Output  // what follows the reply that is being written; nil: nothing
	flying   flight   // what is being written outside of the turn
	room     int      // bytes that may wait before the session is Full, in this turn
	expected *Payload // an input in memory of its own, see expect.go; nil: none is expected
	starved  bool     // it is not read until the budget has room for more input

	// Owned by the turn: what it has done, see share.go.
	share      int  // how many units it may spend
	spent      int  // units
	wrote      int  // bytes
	unfinished bool // the last turn has left requests that were read

	// Owned by the turn: answers in order, see deferred.go.
	firstOwed, lastOwed *Deferred
	owed                int
	tails               int // bytes behind owed answers but the last
	tailsLarge          int // of these, what belongs to large answers
	weight              int // of answers owed, see Weigh

	// Owned by the turn: how it goes on.
	closed    bool
	eof       bool  // the peer sends no more
	ending    bool  // End was called, or the engine wants to
	paused    bool  // see Pause
	endReason error // what a connection that the engine ends gets
	detaching bool
	lingering bool  // half-closed: reads to EOF
	failure   error // Abort was called
	ready     bool  // New has returned and a handshake is over: posts run, and Drain is called
	undrained bool  // the session is a Drainer, and Drain was not called yet
	postsLeft bool  // the last turn has left tasks that were posted

	// Atomic: what was posted, see post.go. It is nil until the first post.
	posts atomic.Pointer[postQueue]

	// Owned by the turn: times of the engine's clock for the sweep, 0: not.
	readAt  time.Duration // Config.Clock, -1: not read since the last read
	opened  time.Duration // when it was accepted
	active  time.Duration // the last event
	partial time.Duration // since when a request is incomplete
	stalled time.Duration // since when the peer owes us progress
	sent    int           // bytes written since stalled
	held    int           // bytes that the kernel held at the sweep after stalled; -1: not looked
	linger  time.Duration // since when it reads to EOF
	counted holding       // what it has in its lane's account
	// Owned by the turn: for the budget and for places, see budget.go and places.go.
	proven    bool // see Prove
	throttled bool // it was counted as throttled
	alone     bool // it is not counted with others of its address
	limited   bool // it counts for the limit of its address

	// Owned by the turn. Made when first asked for.
	ctx    context.Context
	cancel context.CancelFunc
}

// backend is what a connection needs of the one that serves it.
type backend interface {
	// complete brings d into the connection's turn. On any goroutine.
	complete(d *Deferred)
	// wakePosts makes the connection have a turn soon. On any goroutine.
	wakePosts()
	// owes tells by how much the number of answers owed has changed.
	owes(delta int)
	// output returns an empty output for the turn under way.
	output() *Output
	// held returns how many bytes the kernel holds that the peer has not acknowledged, 0
	// if that is not known.
	held() int
	// clock reads Config.Clock, not before the last read of the connection.
	clock() time.Duration
}

// ID returns the number of the connection, unique in the process.
func (c *Conn) ID() uint64 { return c.id }

// Lane returns a number from 0 on, below [Config.Loops]: connections of one lane are served one
// after the other, and on one core for some time. With the backend of goroutines that is
// likely, with epoll it is so. It tells a session where memory that it shares with others is
// best kept.
func (c *Conn) Lane() int { return c.lane }

// RemoteAddr returns the peer's address; it is not valid for other sockets than TCP's.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.remote }

// AtLoopback reports whether the connection came to a listener that is bound to a loopback
// address, as [AtLoopback] does.
func (c *Conn) AtLoopback() bool { return c.local }

// Session returns the connection's session.
func (c *Conn) Session() Session { return c.session }

// Draining reports whether the server shuts down: a protocol that can say so should
// tell the peer to go elsewhere.
func (c *Conn) Draining() bool { return c.server.draining.Load() }

// AdmitsLarge reports whether a large answer of n bytes, see [Output.Large], may be given.
func (c *Conn) AdmitsLarge(n int) bool { return c.server.config.Large.Admits(int64(n)) }

// Prove notes that the peer has completed a request, or a login where one is required. Until
// then its connection is the first to be closed when there are no places left, and
// Config.ProveTimeout bounds its life.
func (c *Conn) Prove() { c.proven = true }

// ReadAt returns the time of [Config.Clock], read after the read(2) that brought the
// bytes that Data was given.
func (c *Conn) ReadAt() time.Duration {
	if c.readAt < 0 {
		c.readAt = c.backend.clock()
	}
	return c.readAt
}

// Context ends with the connection.
func (c *Conn) Context() context.Context {
	if c.ctx == nil {
		c.ctx, c.cancel = context.WithCancel(context.Background())
		if c.closed {
			c.cancel()
		}
	}
	return c.ctx
}

// Output returns where the next answer is to be appended. Call it again in each call of Data
// or Write, and after each Defer.
func (c *Conn) Output() *Output {
	if c.lastOwed == nil || c.settling {
		return c.head()
	}
	if c.lastOwed.tail == nil {
		c.lastOwed.tail = newOutput(0)
	}
	return c.lastOwed.tail
}

// head is where bytes go that may be sent at once.
func (c *Conn) head() *Output {
	if c.out == nil {
		c.out = c.backend.output()
	}
	return c.out
}

// flight is what is being written outside of the turn.
type flight struct{ bytes, memory, large int }

func flightOf(o *Output) flight { return flight{o.Len(), o.memory(), o.large()} }

// Full says that a session should answer no more requests for now.
func (c *Conn) Full() bool { return c.expected != nil || c.full() }

// full is Full for a reason other than an expected input.
func (c *Conn) full() bool {
	return c.closed || c.ending || c.detaching || c.failure != nil || c.paused || c.spent >= c.share ||
		c.owed >= c.limits.MaxDeferred || c.waiting() >= c.room ||
		c.weight != 0 && c.room < c.server.config.MaxOutput && c.waiting()+c.weight >= c.room
}

// Pause makes the connection Full, or ends that: for a session whose next requests depend on an
// answer that it has deferred, such as that to a login. [Reply.Write] of that answer ends it.
func (c *Conn) Pause(on bool) { c.paused = on }

// waiting is how many bytes wait to be written.
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
// written: it is half-closed, and what the peer still sends is read and dropped for a
// second at most, so that no reset destroys an answer under way.
func (c *Conn) End() { c.ending = true }

// begin notes that the session may be called from now on.
func (c *Conn) begin() {
	c.ready = true
	_, c.undrained = c.session.(Drainer)
}

// tellDrain lets the session say goodbye, once, if the server has begun to drain. It is a part of
// the turn.
func (c *Conn) tellDrain() {
	if c.drainDue() && !c.closed && !c.ending && !c.detaching && c.failure == nil {
		c.undrained = false
		c.session.(Drainer).Drain(c)
	}
}

// drainDue reports whether the session has yet to be told that the server drains.
func (c *Conn) drainDue() bool { return c.undrained && c.ready && c.server.draining.Load() }

// Abort ends the connection at once. err is what Closed gets.
func (c *Conn) Abort(err error) {
	if c.failure == nil {
		c.failure = &CloseError{ReasonAborted, err}
	}
}

// Detach takes the connection out of the engine once all answers so far have been
// written: [Config.Detached] gets it, with what the present call of Data does not
// consume and whatever was read after it. It panics while an input is expected.
func (c *Conn) Detach() {
	if c.expected != nil {
		panic("loop: Detach of a connection that expects an input")
	}
	c.detaching = true
}

// deliver gives the session bytes and returns how many it has consumed, expected inputs
// included, and whether it stopped because it was full.
func (c *Conn) deliver(in []byte) (consumed int, full bool) {
	for {
		n := c.session.Data(c, in[consumed:])
		if n < 0 || n > len(in)-consumed {
			panic("loop: a session consumed bytes that it was not given")
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

// noteRest keeps the time from which a request is incomplete. rest is what is left,
// consumed what went before it.
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

// step is what a connection comes to after a turn.
type step uint8

const (
	stepNone      step = iota
	stepHalfClose      // all is written: end the sending side, read to EOF
	stepDetach         // all is written: leave the engine
	stepClose          // with closeError
)

// next decides how the connection goes on, after what could be written was.
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
	case c.eof: // a request that is incomplete stays so
		return stepClose
	case c.ending:
		return stepHalfClose
	}
	return stepNone
}

// closeError is what Closed gets.
func (c *Conn) closeError() error {
	if c.failure != nil {
		return c.failure
	}
	return c.endReason
}

// beginLinger notes that the sending side has ended.
func (c *Conn) beginLinger(now time.Duration) {
	c.lingering = true
	c.linger = now
	c.partial = 0
	c.dropPosts()
	c.in.Reset()
	c.dropExpected()
	c.starved = false
}

// noteWritten keeps account of what waits for the peer. It is called after a turn's
// writes, with how many bytes they took.
func (c *Conn) noteWritten(n int, now time.Duration) {
	left := c.flying.bytes
	if c.out != nil {
		left += c.out.Len()
	}
	if n > 0 {
		c.active = now // the time without a request begins after the answer
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

// beginStall begins to count what the peer takes. The kernel is asked by the sweep: most
// stalls do not live that long.
func (c *Conn) beginStall(now time.Duration) { c.stalled, c.sent, c.held = now, 0, -1 }

// taken is how many bytes the peer has taken since stalled: what the kernel was given, and
// what it got rid of. Without the latter a peer that reads 40 KB/s would show no progress
// for as long as half of the kernel's buffer lasts.
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
	if c.session != nil { // else New has panicked
		c.session.Closed(c, err)
	}
}

func (c *Conn) tellOnClose(err error) {
	defer c.outlive()
	if c.server.config.OnClose != nil {
		c.server.config.OnClose(c, err)
	}
}

// outlive ends a panic of what is told of the connection's end, which cannot end it more.
func (c *Conn) outlive() {
	if v := recover(); v != nil {
		_ = c.server.panicked(c, v) // logged
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

// AtLoopback is that of the [Conn] which was detached.
func (p *placedConn) AtLoopback() bool { return p.local }

// NetConn returns the connection below: a [*tls.Conn] if it came to a listener of [Secure].
func (p *placedConn) NetConn() net.Conn { return p.Conn }

// CloseWrite ends the sending side, where the connection can.
func (p *placedConn) CloseWrite() error {
	if c, ok := p.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}
