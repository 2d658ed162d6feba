package pipe

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/buf"
)

const (
	// keptFrame is the maximum capacity of a request buffer that a pooled call retains.
	// Larger buffers are dropped and never reused: a driver of a protocol without
	// tickets may lend memory that does not belong to its call.
	keptFrame = 1 << 10
	// callCost is what a call is charged in addition to its frame: the object, its slot
	// in the table, and its share of the reply buffers.
	callCost = 640

	// A charge is what calls take of the bounds: their number in the bits from
	// chargeBits up, their bytes below, so that one addition reserves both.
	chargeBits       = 40
	oneCall    int64 = 1 << chargeBits
	mostCalls        = 1 << 22 // of a socket
)

// The states of a call. While a call is in a table, only the holder of the
// socket's lock changes its state. Removing the call from the table is the claim.
const (
	stateOwned   uint32 = iota // owned by its caller, before submission
	statePending               // submitted and not given up, even after it has ended
	stateDead                  // given up and in a table: the caller has been woken
	stateLeft                  // given up and in a table, and the caller has released it
	stateSwept                 // given up and removed from the table, not yet released
)

// holding is the kind of large buffer that a call has.
type holding uint8

const (
	holdsNothing holding = iota
	holdsReply
	holdsFrame  // a copy of a large frame, until the call is queued
	holdsPlaced // no buffer: the body of the reply is in wanted
)

// Flags of features that few calls use, set before submission.
const (
	hasInterim = 1 << iota // onInterim
	hasWanted              // wanted
)

// A Call is one request and its reply. It comes from [Engine.Acquire] and must be
// released exactly once.
//
// With ten thousand calls in flight, none is in a processor cache. The cost of a call is the number of cache lines
// of 64 bytes that are touched: four of the six for most calls. TestCallLayout checks that.
type Call struct {
	// The first line is used by all: submitter, sweeper, reader, and waiter.
	ending     ending
	charge     int64  // counted against MaxCalls and MaxBytes
	start      uint64 // offset of the frame in the byte stream of its socket
	size       int    // of the frame as it was submitted
	state      atomic.Uint32
	slot       uint32        // for ByTicket
	generation atomic.Uint32 // written by Release and Claim, read by handles
	timer      uint32        // of the deadline, in the wheel of the socket; 0 if there is none
	watched    bool          // ctx can be canceled
	several    bool          // Replies > 1
	gathering  bool          // with several: the reader adds to large; see gather.go
	failed     bool          // err is set, and possibly written
	routed     bool          // completer or leader is set
	holds      holding       // the kind of large
	small      uint8         // the length of reply
	// Whole marks one of several calls of DoAll that make sense only together, such as those
	// of a transaction. If it is given up while its bytes are queued, they are sent
	// anyway, because those of the others may have been sent.
	Whole bool

	// The second line, which processors fetch with the first.
	reply [inlineReply]byte // valid if small is not 0

	// Frame is the encoded request. It is unchanged until Release, except for the
	// ticket that the engine writes, so that a repeated call can send it again.
	Frame    []byte // starts the third line; the submitter uses the third and the fourth
	ctx      context.Context
	engine   *Engine
	deadline int64 // since the engine's epoch; 0 if there is none
	// Pin, if set, is the only connection that the call may use.
	Pin Pin

	attached bool  // attachment is set
	has      uint8 // hasInterim and hasWanted
	ping     bool
	// OneWay marks a call without a reply. It ends when it has been written.
	OneWay bool
	// Replies is the number of replies, if the frame contains several requests. If zero, it defaults to 1.
	// It is for in-order protocols. See [Call.Received].
	Replies int32
	// SlowFor is how long the server may be silent for this call, in addition to the
	// stall timeout.
	SlowFor time.Duration
	frame   [inlineFrame]byte // buffer for small requests

	// Most calls do not use the last two lines.
	large      []byte // see holds
	err        error
	completer  Completer
	leader     *Call // in a DoAll: its first call, for whose end the caller waits
	onInterim  func(frame []byte)
	attachment any
	ends       *[]int // with several: end offset of each reply in large
	lent       *lent  // nil if the whole request is in Frame
	wanted     *wanted
	written    int          // bytes of the frame that the server may have, if the call failed
	awaited    int32        // with several: number of missing replies; guarded by the socket's lock
	left       atomic.Int32 // of a leader: calls not yet resolved; written by the goroutines that resolve them
}

const (
	inlineFrame = 48 // a GET or a SELECT by a key of 16 bytes
	inlineReply = 64
)

var calls = sync.Pool{New: func() any {
	c := &Call{ending: newEnding()}
	c.Frame = c.frame[:0]
	return c
}}

func acquire(e *Engine) *Call {
	c := calls.Get().(*Call)
	c.engine = e
	return c
}

// Reply returns the reply, one whole message, valid until Release.
func (c *Call) Reply() []byte {
	if c.holds == holdsReply {
		return c.large
	}
	return c.reply[:c.small]
}

// OnInterim sets the function that receives the messages for the call that come before its reply. It is called on
// the reading goroutine. The frame is valid until f returns. If the call is given up, f may still be running
// afterwards.
func (c *Call) OnInterim(f func(frame []byte)) {
	if c.onInterim, c.has = f, c.has&^hasInterim; f != nil {
		c.has |= hasInterim
	}
}

// Interim returns the function set by OnInterim, or nil.
func (c *Call) Interim() func(frame []byte) {
	if c.has&hasInterim == 0 {
		return nil
	}
	return c.onInterim
}

// Attach stores a value of the owner in the call until Release.
func (c *Call) Attach(v any) { c.attachment, c.attached = v, true }

// Attached returns the value stored by Attach, or nil.
func (c *Call) Attached() any {
	if !c.attached {
		return nil
	}
	return c.attachment
}

// Err returns why the call failed, or nil if it has a reply. The error is a
// *slipstream.Error without Op.
func (c *Call) Err() error {
	if !c.failed {
		return nil
	}
	return c.err
}

// Generation returns a number that changes at Release. A handle that stores it
// can detect that the call is in use for another request.
func (c *Call) Generation() uint32 { return c.generation.Load() }

// Claim makes the holder of a handle the owner of the result. It reports whether the
// generation is still the given one, and changes it.
func (c *Call) Claim(generation uint32) bool {
	return c.generation.CompareAndSwap(generation, generation+1)
}

// Context returns the context that the call was submitted with, until Release.
func (c *Call) Context() context.Context { return c.ctx }

// Spent reports whether the call was given up while the engine still had it. Such a call
// must be released and cannot be submitted again.
func (c *Call) Spent() bool {
	s := c.state.Load()
	return s == stateDead || s == stateSwept
}

// Release returns the call to the pool. Neither the call nor its reply may be used afterwards.
func (c *Call) Release() {
	c.generation.Add(1)
	c.dropLent()
	// A call that has its reply is no longer given up, so usually a load is enough.
	if c.state.Load() == stateDead && c.state.CompareAndSwap(stateDead, stateLeft) {
		return // still in the table: the goroutine that removes it recycles it
	}
	c.recycle()
}

func (c *Call) recycle() {
	if cap(c.Frame) > keptFrame {
		c.Frame = c.frame[:]
	}
	c.Frame = c.Frame[:0]
	c.clear()
	c.route(nil, nil)
	if c.state.Load() != statePending {
		c.state.Store(stateOwned)
	}
	c.ctx, c.engine = nil, nil
	c.OneWay, c.Whole, c.ping = false, false, false
	c.Pin = Pin{}
	c.SlowFor, c.Replies = 0, 0
	if c.attached {
		c.attachment, c.attached = nil, false
	}
	if c.has != 0 {
		if c.has&hasWanted != 0 {
			c.wanted.room = nil
		}
		c.onInterim, c.has = nil, 0
	}
	calls.Put(c)
}

// route sets what is notified of the end: done, the waiter of the leader, or the waiter of the call.
func (c *Call) route(done Completer, leader *Call) {
	if c.routed || done != nil || leader != nil {
		c.completer, c.leader, c.routed = done, leader, done != nil || leader != nil
	}
}

// completes reports whether a completer is notified of the end.
func (c *Call) completes() bool { return c.routed && c.completer != nil }

// link copies a large frame into a buffer that the socket's buffer will own. The
// memory of the call belongs to its caller, which may have released the call before the write.
func (c *Call) link() {
	c.clearLarge()
	c.large, c.holds = append(buf.Get(len(c.Frame)), c.Frame...), holdsFrame
}

// unlink returns the copy of the frame, which no longer belongs to the call.
func (c *Call) unlink() []byte {
	b := c.large
	c.large, c.holds = nil, holdsNothing
	return b
}

func (c *Call) clearLarge() {
	if c.holds != holdsNothing {
		if c.holds != holdsPlaced {
			buf.Put(c.large[:0])
		}
		c.large, c.holds = nil, holdsNothing
	}
}

// clear removes the result of the call.
func (c *Call) clear() {
	c.small = 0
	c.clearLarge()
	if c.failed {
		c.err, c.written, c.failed = nil, 0, false
	}
	if c.several {
		c.several = false
		if c.ends != nil {
			if *c.ends = (*c.ends)[:0]; cap(*c.ends) > keptEnds {
				c.ends = nil
			}
		}
	}
}

// prepare prepares an owned call for submission, possibly again after it has
// failed.
func (c *Call) prepare(ctx context.Context, e *Engine) {
	c.clear()
	c.ctx = ctx
	c.size = len(c.Frame)
	linked := 0
	if c.lent != nil {
		linked = c.lent.size
		c.size += linked
	}
	// The frame is retained, in a buffer that may be larger, in addition to its copy in the
	// socket's buffer. Memory is bounded only if both count.
	copied := len(c.Frame)
	if copied >= e.cfg.choices.LinkedFrame {
		copied = buf.Size(copied) // a linked copy has a size class
	}
	// A charge greater than any socket accepts is represented by the maximum that the bits can
	// hold.
	c.charge = int64(min(c.places(), mostCalls+1))*oneCall + int64(linked+copied+cap(c.Frame)+callCost)
	c.gathering, c.ending.moves = false, 0
	if c.Replies > 1 {
		c.several, c.awaited = true, c.Replies
	}
	c.ending.reset()
	c.deadline, c.timer = 0, 0
	c.watched = ctx.Done() != nil
	if at, ok := ctx.Deadline(); ok {
		c.deadline = max(1, int64(at.Sub(e.epoch)))
	}
	if e.cfg.Timeout > 0 {
		at := int64(time.Since(e.epoch) + e.cfg.Timeout)
		if c.deadline == 0 || at < c.deadline {
			c.deadline = at
		}
	}
}

// setReply copies the reply. A small one is stored in the call.
func (c *Call) setReply(b []byte) {
	if len(b) <= len(c.reply) {
		c.small = uint8(copy(c.reply[:], b))
		return
	}
	c.adopt(append(buf.Get(len(b)), b...))
}

// adopt takes over the buffer of b as the reply.
func (c *Call) adopt(b []byte) { c.large, c.holds = b, holdsReply }

// timeIsUp returns why the call is to be given up, or nil if it is not.
func (c *Call) timeIsUp(now time.Duration) error {
	switch {
	case c.watched && c.ctx.Err() != nil:
		return c.ctx.Err()
	case c.deadline > 0 && int64(now) >= c.deadline:
		return context.DeadlineExceeded
	}
	return nil
}

// takeOut is called by the goroutine that removed the call from its table. It reports
// whether a caller still waits for the result.
func (c *Call) takeOut() bool {
	if c.state.Load() == statePending {
		return true
	}
	if !c.state.CompareAndSwap(stateDead, stateSwept) {
		c.recycle() // stateLeft
	}
	return false
}

// giveUp ends a call that stays in its table as a tombstone. The caller holds the socket's
// lock, and the call is in statePending.
func (c *Call) giveUp(outcome slipstream.Outcome, cause error) {
	c.fail(outcome, cause)
	if outcome != slipstream.NotSent {
		c.written = c.size
	} else if c.routed && c.leader != nil && c.leader.ending.members > 0 {
		c.leader.ending.members--
	}
	c.state.Store(stateDead)
}

// resolve notifies the waiter or the completer, and reports whether a caller was waiting. Afterwards the
// call does not belong to the engine.
func (c *Call) resolve() (woken bool) {
	switch {
	case !c.routed:
		return c.ending.reach()
	case c.completer != nil:
		c.engine.complete(c)
	default:
		leader := c.leader
		if leader.left.Add(-1) == 0 {
			return leader.ending.reach()
		}
	}
	return false
}

// fail records why the call has no reply. It is called before resolve.
func (c *Call) fail(outcome slipstream.Outcome, cause error) {
	c.failWith(&slipstream.Error{Addr: c.engine.cfg.Addr, Outcome: outcome, Err: cause})
}

func (c *Call) failWith(err error) { c.err, c.failed = err, true }
