package pipe

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
)

// A stream is a call that sends further frames and receives many. Its opening frame is a call like
// any other: it takes a ticket, and its last frame is the reply. So the table, the rule of tickets,
// the failure of a socket, and the counts know streams already. Frames that follow are calls without
// a reply that carry the ticket of the stream (stream_send.go); frames that come before the last
// one are parts (stream_receive.go).
//
// A stream is pinned to its connection. It ends once: by its last frame, with its socket, or from
// this side, by Close, its context, or because its reader is too slow. From this side its call is
// given up as any other is: the ticket stays blocked until the last frame comes, and a reset frame
// asks for it.

// Errors of streams that callers find in the chain of what they get.
var (
	// ErrNoStreams: the protocol has no streams, or replies do not carry tickets.
	ErrNoStreams = errors.New("the protocol has no streams")
	// ErrStreamOverflow: a frame came that StreamConfig.ReceiveBytes had no room for.
	ErrStreamOverflow = errors.New("stream: more was received than its reader has taken and its bound allows")
	// ErrStreamClosed: Close ended the stream before its last frame came.
	ErrStreamClosed = errors.New("stream: it was closed before its last frame came")
	// ErrStreamEnded: a frame was not sent because the server had ended the stream.
	ErrStreamEnded = errors.New("stream: the server has ended it")
	// ErrSendClosed: a frame was not sent because CloseSend was called before.
	ErrSendClosed = errors.New("stream: nothing can be sent after CloseSend")

	// errCrowded tells the engine that streams have their half of what may be at the server.
	errCrowded = errors.New("crowded")
)

// streamRoom is what the streams of an engine may receive together.
type streamRoom struct {
	freed broadcast // a stream has given its share back

	// Atomics.
	reserved  atomic.Int64  // of StreamConfig.MaxBytes; a stream has its whole share from its opening on
	overflows atomic.Uint64 // written by readers
}

// A Stream is one call with many frames in both directions. It comes from Engine.OpenStream and must
// be closed, also after its end.
//
// Send and CloseSend may be called by several goroutines, beside one that calls Recv. Close may be
// called by any goroutine at any time.
type Stream struct {
	// Immutable once it is open.
	socket *socket
	ticket uint64
	most   int           // bound of held
	done   chan struct{} // closed at the end
	turn   chan struct{} // capacity 1: full while a goroutine sends
	// admitted and arrived, of capacity 1, tell the sender and the receiver to look again.
	admitted chan struct{}
	arrived  chan struct{}

	sending sending // guarded by the socket's lock

	// Owned by the goroutine that has the reader's role.
	over bool // its last frame was cut

	untold atomic.Int64 // bytes taken, by StreamTraits.Cost, that the server was not told of

	mu sync.Mutex
	// Guarded by mu, which is locked after the socket's.
	call    *Call // nil: the stream has ended
	inbox   inbox
	last    *Call       // has the last frame, which Recv has not taken
	err     error       // what Recv returns after all frames
	closed  bool        // by Close: nobody receives any more
	settled bool        // its share of streamRoom was given back
	stop    func() bool // ends the watch of the context
}

// stream returns the stream that c has opened, nil if it is another call.
func (c *Call) stream() *Stream {
	if !c.routed {
		return nil
	}
	st, _ := c.completer.(*Stream)
	return st
}

// OpenStream makes c the opening frame of a stream. Like other calls it waits for a connection, and
// for room if Config.WaitWhenFull is set; if c has a Pin, it uses that connection. The stream ends
// with ctx, also after OpenStream has returned; Config.Timeout does not hold for it. After nil the
// stream owns c; an error means that c was not sent and is still the caller's.
func (e *Engine) OpenStream(ctx context.Context, c *Call) (*Stream, error) {
	switch t := &e.cfg.Traits; {
	case t.Match != ByTicket || t.Streams == nil:
		return nil, e.unsent(ErrNoStreams)
	case e.draining.Load():
		return nil, e.closedError()
	case ctx.Err() != nil:
		return nil, e.unsent(ctx.Err())
	}
	if err := e.reserveStream(ctx); err != nil {
		return nil, err
	}
	st := &Stream{
		most: e.cfg.Streams.ReceiveBytes, done: make(chan struct{}), turn: make(chan struct{}, 1),
		admitted: make(chan struct{}, 1), arrived: make(chan struct{}, 1),
	}
	st.sending.credit = e.cfg.Traits.Streams.FirstCredit
	if err := e.openOnSocket(ctx, st, c); err != nil {
		c.route(nil, nil)
		e.freeStream()
		return nil, err
	}
	st.watch(ctx)
	return st, nil
}

func (e *Engine) unsent(cause error) error {
	return &slipstream.Error{Addr: e.cfg.Addr, Outcome: slipstream.NotSent, Err: cause}
}

// reserveStream reserves the share of a stream, and waits for it as a call waits for room.
func (e *Engine) reserveStream(ctx context.Context) error {
	share, most := int64(e.cfg.Streams.ReceiveBytes), int64(e.cfg.Streams.MaxBytes)
	for {
		freed := e.streams.freed.next()
		for now := e.streams.reserved.Load(); now+share <= most; now = e.streams.reserved.Load() {
			if e.streams.reserved.CompareAndSwap(now, now+share) {
				return nil
			}
		}
		if !e.cfg.WaitWhenFull {
			return e.refusal
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return e.overloaded(ctx.Err())
		case <-e.ctx.Done():
			return e.closedError()
		}
	}
}

func (e *Engine) freeStream() {
	e.streams.reserved.Add(-int64(e.cfg.Streams.ReceiveBytes))
	e.streams.freed.send()
}

// openOnSocket finds a connection and queues the opening frame there.
func (e *Engine) openOnSocket(ctx context.Context, st *Stream, c *Call) error {
	pin, chosen := c.Pin, c.Pin.s != nil
	for {
		var err error
		if !chosen {
			if pin, err = e.Place(ctx); err != nil {
				return err
			}
		}
		switch err = pin.s.open(st, c); err {
		case errFull:
			c.route(nil, nil) // else it may not wait
			err = e.waitForRoom(ctx, pin.s, []*Call{c})
		case errGone:
			if err = nil; chosen {
				err = e.unsent(ErrPinLost)
			}
		case errCrowded:
			pin.s.refuse(1)
			err = e.refusal
		case errDraining:
			err = e.closedError()
		case nil:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// open queues the opening frame. If it returns an error, nothing was queued.
func (s *socket) open(st *Stream, c *Call) error {
	c.route(st, nil)
	c.prepare(context.Background(), s.engine) // the stream watches its context itself
	c.deadline = 0
	if !s.reserve(c.charge, false) {
		if (Pin{s}).Alive() {
			return errFull
		}
		return errGone
	}
	if len(c.Frame) >= s.engine.cfg.choices.LinkedFrame && c.lent == nil {
		c.link()
	}
	s.mu.Lock()
	if err := s.mayOpen(); err != nil {
		s.mu.Unlock()
		s.free(c.charge)
		return err
	}
	c.Pin = Pin{s} // it does not move
	st.socket, st.call = s, c
	st.sending.live = true
	s.streams.live++
	s.lone, s.pace.crowd = 0, crowdLasts
	one := [1]*Call{c}
	wakeSweeper := s.queue(one[:])
	st.ticket = s.calls.ticketOf(c)
	s.flushQueued(wakeSweeper)
	return nil
}

// mayOpen returns why no stream can be opened, nil if one can. What may be at the server is never all
// streams: calls have the other half. Under mu.
func (s *socket) mayOpen() error {
	switch {
	case s.life.closed || s.life.retiring.Load() || s.life.muted.Load():
		return errGone
	case s.engine.draining.Load(): // Shutdown has set it before it looked at our calls
		return errDraining
	case s.calls.full(1):
		return errFull
	case s.pace.window > 0 && s.streams.live >= s.pace.window/2:
		return errCrowded
	}
	return nil
}

// flushQueued writes what was queued if the flush rule allows that and nobody writes. If nobody reads,
// it gives the reader's role to the keeper. Called with mu held; returns with mu released.
func (s *socket) flushQueued(wakeSweeper bool) {
	switch {
	case s.role == roleFree:
		s.role, s.out.writing = roleCaller, true
		s.mu.Unlock()
		s.reclaim()
	case s.out.writing:
		s.mu.Unlock()
	default:
		if reason := s.rule(true); reason != NotYet {
			s.startFlush(reason)
		} else {
			wakeSweeper = s.hold() || wakeSweeper
			s.mu.Unlock()
		}
	}
	s.engine.wakeSweeper(wakeSweeper)
}

// watch ends the stream with ctx. A function of the context's costs an allocation, which is nothing for
// a stream, while the sweeper would visit it every 4 ms for as long as it is open.
func (st *Stream) watch(ctx context.Context) {
	if ctx.Done() == nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { st.end(ctx.Err()) })
	st.mu.Lock()
	ended := st.call == nil
	if !ended {
		st.stop = stop
	}
	st.mu.Unlock()
	if ended {
		stop()
	}
}

// Complete implements Completer: the opening call has its reply, which is the last frame of the
// stream, or has failed.
func (st *Stream) Complete(c *Call) {
	s := st.socket
	s.mu.Lock()
	dropped := st.leave(ErrStreamEnded)
	st.mu.Lock()
	switch {
	case st.err != nil: // Close has said how it ends
	case c.failed:
		st.err = c.Err()
	case !st.closed:
		st.last, c = c, nil
	}
	stop := st.finish()
	st.mu.Unlock()
	s.mu.Unlock()
	stop()
	releaseAll(dropped)
	if c != nil {
		c.Release()
	}
}

// end ends the stream from this side because of cause, unless it has ended or its last frame is being
// handed over.
func (st *Stream) end(cause error) {
	select {
	case <-st.done:
		return
	default:
	}
	reset := st.newReset(cause)
	s := st.socket
	s.mu.Lock()
	st.mu.Lock()
	c := st.call
	if c == nil || !s.calls.holds(c) || c.state.Load() != statePending {
		st.mu.Unlock()
		s.mu.Unlock()
		releaseAll(reset)
		return
	}
	sent := c.start < s.out.taken
	s.abandon(c, cause)
	st.err = c.Err()
	stop := st.finish()
	st.mu.Unlock()
	released := append(st.leave(cause), c)
	if !sent || s.life.closed || len(reset) == 0 {
		s.mu.Unlock()
		released = append(released, reset...)
	} else {
		s.flushQueued(st.queueOwn(reset[0]))
	}
	stop()
	releaseAll(released)
	s.endIfOver()
}

// newReset returns the frame that tells the server of the end, if the protocol has one.
func (st *Stream) newReset(cause error) []*Call {
	appendReset := st.socket.engine.cfg.Traits.Streams.AppendReset
	if appendReset == nil {
		return nil
	}
	return st.newFrame(func(b []byte) []byte { return appendReset(b, cause) })
}

// finish notes the end, and returns a function that is to be called without locks. Under mu, once.
func (st *Stream) finish() (stop func()) {
	st.call = nil
	close(st.done)
	st.notify()
	if st.stop == nil {
		return func() {}
	}
	cancel := st.stop
	return func() { cancel() }
}

// notify tells the receiver to look again.
func (st *Stream) notify() {
	select {
	case st.arrived <- struct{}{}:
	default:
	}
}

func releaseAll(calls []*Call) {
	for _, c := range calls {
		c.Release()
	}
}

// Close ends the stream if it has not ended: the server is told by a reset frame. Frames that were not
// taken by Recv are dropped, and Recv returns an error from then on. Close may be called
// more than once; it does not wait.
func (st *Stream) Close() {
	st.mu.Lock()
	st.closed = true
	st.mu.Unlock()
	st.end(ErrStreamClosed)
	st.mu.Lock()
	st.inbox.drop()
	last := st.last
	st.last = nil
	if st.err == nil { // the last frame was there, or is being handed over
		st.err = &slipstream.Error{Addr: st.socket.engine.cfg.Addr, Outcome: slipstream.Executed, Err: ErrStreamClosed}
	}
	st.settle()
	st.notify()
	st.mu.Unlock()
	if last != nil {
		last.Release()
	}
}

// settle gives the share of the stream back. Under mu.
func (st *Stream) settle() {
	if !st.settled {
		st.settled = true
		st.socket.engine.freeStream()
	}
}

// endStreamsOf ends the streams of a retired connection that still has its place, because too many
// others were retired, if no connection has taken calls for DialTimeout: the streams would keep the next
// connection from being dialed. By the sweeper.
func (e *Engine) endStreamsOf(s *socket, now time.Duration) {
	w := &s.watch
	if !s.life.retiring.Load() || (Pin{e.anySocket()}).Alive() || !e.has(s) {
		w.blocked = 0
		return
	}
	if w.blocked == 0 {
		w.blocked = now
	}
	if now-w.blocked < e.cfg.DialTimeout {
		return
	}
	var streams []*Stream
	s.mu.Lock()
	for c := range s.calls.each {
		if st := c.stream(); st != nil && c.state.Load() == statePending {
			streams = append(streams, st)
		}
	}
	s.mu.Unlock()
	for _, st := range streams {
		st.end(ErrRetired)
	}
}
