package pipe

import (
	"context"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/buf"
)

const (
	// keptFrame is the capacity of a request's buffer that a pooled call keeps.
	// Larger ones are let go and never reused: a driver of a protocol without
	// tickets may lend memory that is not its call's own.
	keptFrame = 1 << 10
	// callCost is what a call is charged beside its frame: the object, its slot
	// in the table, and its share of the reply buffers.
	callCost = 640

	// A charge is what calls take of the bounds: their number in the bits from
	// chargeBits on, their bytes below, so that one addition reserves both.
	chargeBits       = 40
	oneCall    int64 = 1 << chargeBits
	mostCalls        = 1 << 22 // of a socket
)

// The states of a call. While it stands in a table only the holder of the
// socket's lock changes its state; taking it out of the table is the claim.
const (
	stateOwned   uint32 = iota // by its caller, before submission
	statePending               // submitted, and not given up, also when it has ended
	stateDead                  // in a table and given up: the caller has been woken
	stateLeft                  // in a table, and the caller has released it
	stateSwept                 // given up, out of the table, not yet released
)

// holding says what the large buffer of a call is.
type holding uint8

const (
	holdsNothing holding = iota
	holdsReply
	holdsFrame  // a copy of a large frame, until the call is queued
	holdsPlaced // nothing: the body of the reply lies in wanted
)

// What few calls have, as set before they were submitted.
const (
	hasInterim = 1 << iota // onInterim
	hasWanted              // wanted
)

// A Call is one request and its reply. It comes from [Engine.Acquire] and goes
// back by Release, exactly once.
//
// Of ten thousand calls under way none is in a cache: what a call costs is how many of its lines
// of 64 bytes are touched, and most calls touch four of the six. TestCallLayout holds that.
type Call struct {
	// The first line is for all: submitter, sweeper, reader, and who waits.
	ending     ending
	charge     int64  // against MaxCalls and MaxBytes
	start      uint64 // offset of the frame in the bytes of its socket
	size       int    // of the frame as it was submitted
	state      atomic.Uint32
	slot       uint32        // of ByTicket
	generation atomic.Uint32 // written by Release and Claim, read by handles
	timer      uint32        // of the deadline, in the wheel of the socket; 0: none
	watched    bool          // ctx can be canceled
	several    bool          // Replies > 1
	gathering  bool          // with several: the reader adds to large; see gather.go
	failed     bool          // err is set, and perhaps written
	routed     bool          // completer or leader is set
	holds      holding       // what large is
	small      uint8
	// Whole marks one of several calls of DoAll that make sense only together, such as those
	// of a transaction: if it is given up while its bytes are queued, they are sent all the
	// same, because those of the others may have been.
	Whole bool

	// The second line, which processors fetch with the first.
	reply [inlineReply]byte // if small is not 0

	// Frame is the encoded request. It is unchanged until Release, but for the
	// ticket that the engine puts in, so that a repeated call can send it again.
	Frame    []byte // the third line, which is the submitter's, as the fourth is
	ctx      context.Context
	engine   *Engine
	deadline int64 // since the engine's epoch; 0: none
	// Pin, if set, lets the call travel on that connection or not at all.
	Pin Pin

	attached bool  // attachment is set
	has      uint8 // hasInterim and hasWanted
	ping     bool
	// OneWay marks a call without a reply: it ends when it has been written.
	OneWay bool
	// Replies is how many replies the call has, if its frame is of several requests; 0: one.
	// It is for protocols that answer in order. See [Call.Received].
	Replies int32
	// SlowFor is how long the server may be silent for this call, on top of the
	// stall time-out.
	SlowFor time.Duration
	frame   [inlineFrame]byte // small requests

	// The last two lines are what most calls do not have.
	large      []byte // see holds
	err        error
	completer  Completer
	leader     *Call // of DoAll: the first of its calls, which holds the wake-up
	onInterim  func(frame []byte)
	attachment any
	ends       *[]int // with several: where in large each of the replies ends
	lent       *lent  // nil: all is in Frame
	wanted     *wanted
	written    int          // bytes of the frame that the server may have; of a call that failed
	awaited    int32        // with several: how many are to come; guarded by the socket's lock
	left       atomic.Int32 // of a leader: calls not yet resolved; written by whoever resolves
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

// OnInterim lets f have the messages that come for the call before its reply, on the reading
// goroutine. The frame is valid until f returns. It may still be running when the call has been
// given up.
func (c *Call) OnInterim(f func(frame []byte)) {
	if c.onInterim, c.has = f, c.has&^hasInterim; f != nil {
		c.has |= hasInterim
	}
}

// Interim returns what OnInterim was given last, nil if it was not called.
func (c *Call) Interim() func(frame []byte) {
	if c.has&hasInterim == 0 {
		return nil
	}
	return c.onInterim
}

// Attach keeps something of the owner's with the call, until Release.
func (c *Call) Attach(v any) { c.attachment, c.attached = v, true }

// Attached returns what Attach was given, nil if it was not called.
func (c *Call) Attached() any {
	if !c.attached {
		return nil
	}
	return c.attachment
}

// Err returns why the call failed, nil if it has a reply. It is a
// *slipstream.Error without Op.
func (c *Call) Err() error {
	if !c.failed {
		return nil
	}
	return c.err
}

// Generation returns a number that changes at Release. A handle that keeps it
// can tell that the call is another one's now.
func (c *Call) Generation() uint32 { return c.generation.Load() }

// Claim makes a handle's holder the one who takes the result: it reports whether the
// generation is still that one, and changes it.
func (c *Call) Claim(generation uint32) bool {
	return c.generation.CompareAndSwap(generation, generation+1)
}

// Context returns the context that the call was submitted with, until Release.
func (c *Call) Context() context.Context { return c.ctx }

// Spent reports whether the call was given up while the engine still had it: it
// must be released and cannot be submitted again.
func (c *Call) Spent() bool {
	s := c.state.Load()
	return s == stateDead || s == stateSwept
}

// Release gives the call back. Neither it nor its reply may be used afterwards.
func (c *Call) Release() {
	c.generation.Add(1)
	c.dropLent()
	// A call that has its reply is not given up any more, so a look is enough for most.
	if c.state.Load() == stateDead && c.state.CompareAndSwap(stateDead, stateLeft) {
		return // still in the table: whoever takes it out recycles it
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

// route says who is told of the end: done, the leader's waiter, or who waits for the call.
func (c *Call) route(done Completer, leader *Call) {
	if c.routed || done != nil || leader != nil {
		c.completer, c.leader, c.routed = done, leader, done != nil || leader != nil
	}
}

// completes reports whether a completer is told of the end.
func (c *Call) completes() bool { return c.routed && c.completer != nil }

// link copies a large frame into a buffer that the socket's buffer will own: the
// call's memory is its caller's, who may be gone before the write.
func (c *Call) link() {
	c.clearLarge()
	c.large, c.holds = append(buf.Get(len(c.Frame)), c.Frame...), holdsFrame
}

// unlink returns the copy of the frame, which is not the call's any more.
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

// clear forgets what came of the call.
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

// prepare makes an owned call ready to be submitted, once more if it has failed
// before.
func (c *Call) prepare(ctx context.Context, e *Engine) {
	c.clear()
	c.ctx = ctx
	c.size = len(c.Frame)
	linked := 0
	if c.lent != nil {
		linked = c.lent.size
		c.size += linked
	}
	// The frame is kept, in a buffer that may be larger, beside its copy in the
	// socket's buffer: memory is bounded only if both count.
	copied := len(c.Frame)
	if copied >= e.cfg.choices.LinkedFrame && copied <= buf.MaxPooled {
		copied = 1 << bits.Len(uint(copied-1)) // a linked copy has a size class
	}
	// More than any socket takes is as good as the most that the bits hold.
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

// setReply copies the reply. Small ones lie in the call itself.
func (c *Call) setReply(b []byte) {
	if len(b) <= len(c.reply) {
		c.small = uint8(copy(c.reply[:], b))
		return
	}
	c.adopt(append(buf.Get(len(b)), b...))
}

// adopt takes the buffer that b lies in as the reply.
func (c *Call) adopt(b []byte) { c.large, c.holds = b, holdsReply }

// timeIsUp returns why the call is to be given up, nil if it is not.
func (c *Call) timeIsUp(now time.Duration) error {
	switch {
	case c.watched && c.ctx.Err() != nil:
		return c.ctx.Err()
	case c.deadline > 0 && int64(now) >= c.deadline:
		return context.DeadlineExceeded
	}
	return nil
}

// takeOut is called by whoever took the call out of its table. It reports
// whether somebody still waits for the result.
func (c *Call) takeOut() bool {
	if c.state.Load() == statePending {
		return true
	}
	if !c.state.CompareAndSwap(stateDead, stateSwept) {
		c.recycle() // stateLeft
	}
	return false
}

// giveUp ends a call that stays in its table as a tombstone. Under the socket's
// lock, and only in statePending.
func (c *Call) giveUp(outcome slipstream.Outcome, cause error) {
	c.fail(outcome, cause)
	if outcome != slipstream.NotSent {
		c.written = c.size
	} else if c.routed && c.leader != nil && c.leader.ending.members > 0 {
		c.leader.ending.members--
	}
	c.state.Store(stateDead)
}

// resolve tells whoever waits. The call is not ours afterwards.
func (c *Call) resolve() {
	switch {
	case !c.routed:
		c.ending.reach()
	case c.completer != nil:
		c.engine.complete(c)
	default:
		leader := c.leader
		if leader.left.Add(-1) == 0 {
			leader.ending.reach()
		}
	}
}

// fail notes why a call has no reply. Before anybody is told.
func (c *Call) fail(outcome slipstream.Outcome, cause error) {
	c.failWith(&slipstream.Error{Addr: c.engine.cfg.Addr, Outcome: outcome, Err: cause})
}

func (c *Call) failWith(err error) { c.err, c.failed = err, true }
