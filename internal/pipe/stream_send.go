package pipe

import (
	"context"
	"errors"
	"slices"

	"github.com/slipstream-go/slipstream"
)

// Frames of streams are calls without a reply, queued like others and written by the same flushes. What
// a stream has queued is bounded, and so is what all streams of a socket have queued: so much at most is
// before a call. Streams that wait for room of the socket get it in turn, one frame each.
//
// All of it is guarded by the socket's lock, which a frame takes anyway: when it is queued, and with
// all others of its write when that has ended.

// sending is the sender's side of a stream.
type sending struct {
	live   bool // the stream has not ended
	closed bool // by CloseSend
	ready  bool // in socketStreams.ready
	unsent int  // cost of the frames that are queued or being written
	credit int  // bytes that the server still admits, if it gives credit
	// want is the cost of the frame that waits to be queued, 0 if there is none, and spends what it
	// takes of the credit.
	want, spends int
	// telling: a frame with credit for the server is being made, queued, or written. Then it is credits.
	telling bool
	credits *Call
}

// socketStreams are the streams of a socket.
type socketStreams struct {
	// Guarded by the socket's lock.
	live   int       // streams that have not ended
	unsent int       // cost of the frames that are queued or being written
	ready  []*Stream // with a frame that only the bound of the socket holds back, in turn

	// Owned by the goroutine that has the reader's role.
	parts []part
}

// streamFrames is a stream as the owner of its frames: it is told of the end of each of them.
type streamFrames Stream

// Complete implements Completer.
func (f *streamFrames) Complete(c *Call) { c.Release() }

// frameOf returns the stream that c is a further frame of, nil if it is another call.
func (c *Call) frameOf() *Stream {
	if !c.routed {
		return nil
	}
	f, _ := c.completer.(*streamFrames)
	return (*Stream)(f)
}

// frameCost is what a frame counts while it is queued or being written.
func frameCost(c *Call) int { return c.size + callCost }

// Send queues c as a frame of the stream. It waits while the server admits no more, and while as
// much is queued as StreamConfig allows, until ctx ends. It does not wait until the frame is
// written: what has become of it is told by Recv. After nil the stream owns c; an error means that c was
// not sent and is still the caller's. If the stream goes on, the outcome of the error is NotSent;
// otherwise the error is why the stream has ended.
func (st *Stream) Send(ctx context.Context, c *Call) error { return st.send(ctx, c, false) }

// CloseSend is Send with the last frame of this side. If c is nil, no frame is sent. Frames are
// received as before.
func (st *Stream) CloseSend(ctx context.Context, c *Call) error { return st.send(ctx, c, true) }

func (st *Stream) send(ctx context.Context, c *Call, closes bool) error {
	s := st.socket
	if ctx.Err() != nil {
		return s.engine.unsent(ctx.Err())
	}
	select {
	case st.turn <- struct{}{}:
	case <-ctx.Done():
		return s.engine.unsent(ctx.Err())
	}
	defer func() { <-st.turn }()
	if c == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		err := st.mayQueue()
		st.sending.closed = err == nil || st.sending.closed
		return err
	}
	st.prepare(c)
	if len(c.Frame) >= s.engine.cfg.choices.LinkedFrame && c.lent == nil {
		c.link()
	}
	s.mu.Lock()
	err := st.mayQueue()
	if err == nil {
		err = st.admission(ctx, c)
	}
	if err != nil {
		s.mu.Unlock()
		c.unprepare()
		return err
	}
	st.sending.closed = closes
	s.flushQueued(st.queueFrame(c))
	return nil
}

// prepare makes c ready to be queued as a frame of the stream.
func (st *Stream) prepare(c *Call) {
	c.Pin, c.OneWay = Pin{st.socket}, true
	c.route((*streamFrames)(st), nil)
	c.prepare(context.Background(), st.socket.engine)
	c.deadline = 0
}

// unprepare makes c a call of its owner's again.
func (c *Call) unprepare() {
	c.Pin, c.OneWay = Pin{}, false
	c.route(nil, nil)
}

// reserve reserves what c, which is admitted, is charged, and waits for room. Called with the socket's lock
// held, which it releases while it waits.
func (st *Stream) reserve(ctx context.Context, c *Call) error {
	s := st.socket
	for !s.reserve(c.charge, false) {
		if !s.mayFit(c.charge) {
			s.refuse(1)
			return s.engine.refusal
		}
		s.mu.Unlock()
		err := st.awaitRoom(ctx, c.charge)
		s.mu.Lock()
		if ended := st.mayQueue(); ended != nil {
			return ended
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitRoom waits until the socket may have room.
func (st *Stream) awaitRoom(ctx context.Context, charge int64) error {
	s := st.socket
	room := s.roomAfter()
	if s.fits(s.charged.Load() + charge) {
		return nil
	}
	select {
	case <-room:
	case <-st.done:
	case <-ctx.Done():
		return s.engine.unsent(ctx.Err())
	}
	return nil
}

// mayQueue returns why no frame can be queued any more, nil if one can. Under the socket's lock.
func (st *Stream) mayQueue() error {
	s := st.socket
	switch {
	case !st.sending.live:
		st.mu.Lock()
		defer st.mu.Unlock()
		var e *slipstream.Error
		if errors.As(st.err, &e) {
			return e
		}
		return &slipstream.Error{Addr: s.engine.cfg.Addr, Outcome: slipstream.Executed, Err: ErrStreamEnded}
	case s.life.closed:
		return &slipstream.Error{Addr: s.engine.cfg.Addr, Outcome: slipstream.MaybeExecuted, Err: s.life.cause}
	case st.sending.closed:
		return s.engine.unsent(ErrSendClosed)
	}
	return nil
}

// admission waits until c may be queued, counts it as queued, and reserves what it is charged. If it returns an error, it does not
// count. Called with the socket's lock held, which it releases while it waits.
func (st *Stream) admission(ctx context.Context, c *Call) (err error) {
	s, out := st.socket, &st.sending
	out.want, out.spends = frameCost(c), 0
	if t := s.engine.cfg.Traits.Streams; t.Credited {
		out.spends = t.cost(c.Frame, c.size)
	}
	st.schedule()
	for out.want > 0 && err == nil {
		s.mu.Unlock()
		select {
		case <-st.admitted:
		case <-st.done:
		case <-ctx.Done():
			err = s.engine.unsent(ctx.Err())
		}
		s.mu.Lock()
		if ended := st.mayQueue(); ended != nil {
			err = ended
		}
	}
	if err == nil {
		err = st.reserve(ctx, c)
	}
	switch {
	case err == nil:
	case out.want > 0:
		out.want = 0
	default: // it was admitted
		out.unsent -= frameCost(c)
		out.credit += out.spends
		s.streams.unsent -= frameCost(c)
		s.admitFrames()
	}
	return err
}

// schedule lets the stream have its turn at the room of the socket, if it has a frame that nothing else
// holds back. Under the socket's lock.
func (st *Stream) schedule() {
	s, out := st.socket, &st.sending
	if !out.ready && st.fits() {
		out.ready = true
		s.streams.ready = append(s.streams.ready, st)
		s.admitFrames()
	}
}

// fits reports whether the stream has a frame to queue that its own bound and its credit allow. Under
// the socket's lock.
func (st *Stream) fits() bool {
	cfg, out := &st.socket.engine.cfg, &st.sending
	switch {
	case !out.live || out.want == 0:
		return false
	case out.unsent > 0 && out.unsent+out.want > cfg.Streams.SendBytes:
		return false
	}
	return !cfg.Traits.Streams.Credited || out.spends <= out.credit
}

// admitFrames lets the streams whose turn it is queue a frame each, as far as the bound of the socket
// allows. Under mu.
func (s *socket) admitFrames() {
	all := &s.streams
	n := 0
	for ; n < len(all.ready); n++ {
		st := all.ready[n]
		out := &st.sending
		if st.fits() {
			if all.unsent > 0 && all.unsent+out.want > s.engine.cfg.Streams.SocketBytes {
				break
			}
			out.unsent += out.want
			all.unsent += out.want
			out.credit -= out.spends
			out.want = 0
			select {
			case st.admitted <- struct{}{}:
			default:
			}
		}
		out.ready = false
	}
	all.ready = slices.Delete(all.ready, 0, n)
}

// queueOwn queues a frame of the engine's own, which no bound holds back: a stream has one with credit
// and one that resets it at most. Under the socket's lock.
func (st *Stream) queueOwn(c *Call) (wakeSweeper bool) {
	st.socket.reserve(c.charge, true)
	st.sending.unsent += frameCost(c)
	st.socket.streams.unsent += frameCost(c)
	return st.queueFrame(c)
}

// queueFrame queues a frame that counts already. It reports whether the sweeper must be woken. Under
// the socket's lock.
func (st *Stream) queueFrame(c *Call) (wakeSweeper bool) {
	s := st.socket
	s.lone = 0
	if s.streams.live > 1 || s.calls.size() > s.streams.live {
		s.pace.crowd = crowdLasts
	}
	one := [1]*Call{c}
	return s.queue(one[:])
}

// framesSent notes that frames were written. Under mu.
func (s *socket) framesSent(calls []*Call) {
	for _, c := range calls {
		st := c.frameOf()
		if st == nil {
			continue
		}
		out := &st.sending
		out.unsent -= frameCost(c)
		s.streams.unsent -= frameCost(c)
		if out.credits == c {
			out.credits, out.telling = nil, false
		}
		st.schedule()
	}
	s.admitFrames()
}

// leave takes the stream off its socket: its queued frames are not sent. They must be released without
// locks. Under the socket's lock.
func (st *Stream) leave(cause error) (dropped []*Call) {
	s, out := st.socket, &st.sending
	out.live = false
	s.streams.live--
	for _, c := range s.out.oneWays {
		if c.frameOf() == st && c.state.Load() == statePending {
			c.giveUp(slipstream.NotSent, cause)
			s.out.dead++
			out.unsent -= frameCost(c)
			s.streams.unsent -= frameCost(c)
			dropped = append(dropped, c)
		}
	}
	s.admitFrames()
	return dropped
}

// newFrame returns a call with a frame of the engine's own; none if nothing was appended.
func (st *Stream) newFrame(appendTo func(b []byte) []byte) []*Call {
	s := st.socket
	c := s.engine.Acquire()
	err := contain(func() error {
		c.Frame = appendTo(c.Frame[:0])
		return nil
	})
	if err != nil || len(c.Frame) == 0 {
		c.Release()
		return nil
	}
	st.prepare(c)
	return []*Call{c}
}

// Grant lets the stream with that ticket on this connection send n more bytes. It is for protocols whose
// servers give credit, and may be called by any goroutine. A ticket without an open stream is passed over.
func (p Pin) Grant(ticket uint64, n int) {
	s := p.s
	s.mu.Lock()
	defer s.mu.Unlock()
	st, _ := s.calls.streamOf(ticket)
	if st == nil || !st.sending.live || n <= 0 {
		return
	}
	st.sending.credit = min(st.sending.credit+n, max(st.sending.credit, maxCredit))
	st.schedule()
}

// maxCredit bounds what a server can admit.
const maxCredit = 1 << 30
