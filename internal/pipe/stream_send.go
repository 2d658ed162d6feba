package pipe

import (
	"context"
	"errors"
	"slices"

	"github.com/slipstream-go/slipstream"
)

// Frames of streams are calls without a reply, queued like others and written by the same flushes. The bytes queued by
// a stream are bounded, and so are those queued by all streams of a socket. This bounds what is
// ahead of a call. Streams that wait for room of the socket get it in turn, one frame each.
//
// All of this is guarded by the socket's lock, which is locked for a frame anyway: when it is queued, and
// when the write that contains it has ended.

// sending is the sending side of a stream.
type sending struct {
	live   bool // the stream has not ended
	closed bool // by CloseSend
	ready  bool // in socketStreams.ready
	unsent int  // cost of the frames that are queued or being written
	credit int  // bytes that the server still admits, if it gives credit
	// want is the cost of the frame that waits to be queued, or 0 if there is none. spends is what it
	// takes of the credit.
	want, spends int
	// telling means that a frame with credit for the server is being encoded, queued, or written. When it is
	// queued, it is credits.
	telling bool
	credits *Call
}

// socketStreams are the streams of a socket.
type socketStreams struct {
	// Guarded by the socket's lock.
	live   int       // number of streams that have not ended
	unsent int       // cost of the frames that are queued or being written
	ready  []*Stream // streams with a frame that only the bound of the socket delays, in turn

	// Owned by the goroutine that has the reader's role.
	parts []part

	// Guarded by the socket's lock.
	waited *Stream // the last stream whose receiver had to wait
	loan   streamLoan
}

// streamFrames is the completer of the frames of a stream.
type streamFrames Stream

// Complete implements Completer.
func (f *streamFrames) Complete(c *Call) { c.Release() }

// frameOf returns the stream of which c is a frame after the first, or nil if c is another call.
func (c *Call) frameOf() *Stream {
	if !c.routed {
		return nil
	}
	f, _ := c.completer.(*streamFrames)
	return (*Stream)(f)
}

// frameCost is what a frame counts while it is queued or being written.
func frameCost(c *Call) int { return c.size + callCost }

// Send queues c as a frame of the stream. While the server gives no credit, and while as
// much is queued as StreamConfig allows, it waits until ctx ends. It does not wait until the frame is
// written: later errors are returned by Recv. If the error is nil, the stream owns c. Otherwise c was
// not sent and still belongs to the caller. If the stream continues, the outcome of the error is NotSent;
// otherwise the error is the cause of the end of the stream.
func (st *Stream) Send(ctx context.Context, c *Call) error { return st.send(ctx, c, false) }

// CloseSend is like Send, and no frame can be sent afterwards. If c is nil, no frame is sent. Frames are
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

// prepare prepares c to be queued as a frame of the stream.
func (st *Stream) prepare(c *Call) {
	c.Pin, c.OneWay = Pin{st.socket}, true
	c.route((*streamFrames)(st), nil)
	c.prepare(context.Background(), st.socket.engine)
	c.deadline = 0
}

// unprepare reverts prepare.
func (c *Call) unprepare() {
	c.Pin, c.OneWay = Pin{}, false
	c.route(nil, nil)
}

// reserve reserves the charge of c, which is admitted, and waits for room. It is called with the socket's lock
// held and releases it while it waits.
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

// mayQueue returns why no more frames can be queued, or nil if one can. The caller holds the socket's
// lock.
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

// admission waits until c may be queued, counts it as queued, and reserves its charge. If it returns an error, c is not
// counted. It is called with the socket's lock held and releases it while it waits.
func (st *Stream) admission(ctx context.Context, c *Call) (err error) {
	s, out := st.socket, &st.sending
	out.want, out.spends = frameCost(c), 0
	if t := s.engine.cfg.Traits.Streams; t.Credited {
		out.spends = t.cost(c.Frame, c.size)
	}
	st.schedule()
	for out.want > 0 && err == nil {
		s.recall() // what it waits for may have to be read
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

// schedule puts the stream in the queue for the room of the socket, if it has a frame that nothing else
// delays. The caller holds the socket's lock.
func (st *Stream) schedule() {
	s, out := st.socket, &st.sending
	if !out.ready && st.fits() {
		out.ready = true
		s.streams.ready = append(s.streams.ready, st)
		s.admitFrames()
	}
}

// fits reports whether the stream has a frame to queue that its own bound and its credit allow. The caller holds
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

// admitFrames admits one frame of each stream in turn, as far as the bound of the socket
// allows. The caller holds mu.
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

// queueOwn queues a frame of the engine, which no bound delays: a stream has at most one with credit
// and one that resets it. The caller holds the socket's lock.
func (st *Stream) queueOwn(c *Call) (wakeSweeper bool) {
	st.socket.reserve(c.charge, true)
	st.sending.unsent += frameCost(c)
	st.socket.streams.unsent += frameCost(c)
	return st.queueFrame(c)
}

// queueFrame queues a frame that is already counted. It reports whether the sweeper must be woken. The caller holds
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

// framesSent records that frames were written. The caller holds mu.
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

// leave removes the stream from its socket: its queued frames are not sent. The caller holds the socket's lock and
// must release the returned frames without locks.
func (st *Stream) leave(cause error) (dropped []*Call) {
	s, out := st.socket, &st.sending
	out.live = false
	s.streams.live--
	if s.streams.waited == st {
		s.streams.waited = nil
	}
	s.recall()
	s.interruptReceiver(st)
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

// newFrame returns a call with a frame of the engine, or none if nothing was appended.
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

// Grant permits the stream with the given ticket on this connection to send n more bytes. It is for protocols whose
// servers give credit, and is safe for concurrent use. It ignores a ticket without an open stream.
func (p Pin) Grant(ticket uint64, n int) {
	s := p.s
	s.mu.Lock()
	defer s.mu.Unlock()
	st, _ := s.calls.streamOf(ticket)
	if st != nil {
		st.grant(n)
	}
}

// maxCredit bounds the credit that a server can give.
const maxCredit = 1 << 30
