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
// the failure of a socket, and the counters apply to streams unchanged. The frames sent later are calls without
// a reply that carry the ticket of the stream (stream_send.go); the frames received before the last
// one are parts (stream_receive.go).
//
// A stream is pinned to its connection. It ends once: by its last frame, with its socket, or by
// this side, through Close, its context, or because its reader is too slow. If this side ends it, its call is
// given up like any other: the ticket stays blocked until the last frame comes, and a reset frame
// requests that frame.

// Errors of streams that are in the chain of the errors that callers get.
var (
	// ErrNoStreams means that the protocol has no streams, or that replies do not carry tickets.
	ErrNoStreams = errors.New("the protocol has no streams")
	// ErrStreamOverflow means that a received frame did not fit into StreamConfig.ReceiveBytes.
	ErrStreamOverflow = errors.New("stream: a received frame exceeds the bound of unread bytes")
	// ErrStreamClosed means that Close ended the stream before its last frame came.
	ErrStreamClosed = errors.New("stream: closed before the last frame was received")
	// ErrStreamEnded means that a frame was not sent because the server had ended the stream.
	ErrStreamEnded = errors.New("stream: ended by the server")
	// ErrSendClosed means that a frame was not sent because CloseSend had been called.
	ErrSendClosed = errors.New("stream: send after CloseSend")

	// errCrowded informs the engine that streams take half of the window.
	errCrowded = errors.New("crowded")
)

// streamRoom bounds what the streams of an engine may receive together.
type streamRoom struct {
	freed broadcast // a stream has released its share

	// Atomics.
	reserved  atomic.Int64  // of StreamConfig.MaxBytes; a stream reserves its whole share when it is opened
	overflows atomic.Uint64 // written by readers
}

// A Stream is one call with many frames in both directions. It comes from Engine.OpenStream and must
// be closed, even after its end.
//
// Send, CloseSend and Close are safe for concurrent use. Recv must be called by one goroutine at a time, which
// may run concurrently with the others.
type Stream struct {
	// Immutable once it is open.
	socket *socket
	ticket uint64
	most   int           // bound of inbox.held
	done   chan struct{} // closed at the end
	turn   chan struct{} // capacity 1: full while a goroutine sends
	// admitted and arrived, of capacity 1, wake the sender and the receiver.
	admitted chan struct{}
	arrived  chan struct{}

	sending sending // guarded by the socket's lock

	// Owned by the goroutine that has the reader's role.
	over bool // its last frame was cut

	// untold is the number of bytes, by StreamTraits.Cost, that Recv has returned and for which the server has no
	// credit yet.
	untold atomic.Int64

	watching <-chan struct{} // of the context that watchRecv watches; owned by the receiver

	mu sync.Mutex
	// Guarded by mu, which is locked after the socket's.
	call    *Call // nil if the stream has ended
	inbox   inbox
	last    *Call       // has the last frame, which Recv has not returned
	err     error       // what Recv returns after all frames
	closed  bool        // Close was called
	settled bool        // its share of streamRoom was released
	stop    func() bool // stops watching the context
	unwatch func() bool // stops watching the context of Recv; nil if none is watched
}

// stream returns the stream that c has opened, or nil if c is another call.
func (c *Call) stream() *Stream {
	if !c.routed {
		return nil
	}
	st, _ := c.completer.(*Stream)
	return st
}

// OpenStream opens a stream with c as its first frame. Like other calls, it waits for a connection, and
// for room if Config.WaitWhenFull is set; if c has a Pin, it uses that connection. The stream ends
// when ctx ends, even after OpenStream has returned. Config.Timeout does not apply to it. If the error is nil, the
// stream owns c. Otherwise c was not sent and still belongs to the caller.
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
			c.route(nil, nil) // otherwise it must not wait
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
	c.prepare(context.Background(), s.engine) // the stream watches its own context
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
	s.recall()
	one := [1]*Call{c}
	wakeSweeper := s.queue(one[:])
	st.ticket = s.calls.ticketOf(c)
	s.flushQueued(wakeSweeper)
	return nil
}

// mayOpen returns why no stream can be opened, or nil if one can. Streams may take at most half of the
// window; the rest is for calls. The caller holds mu.
func (s *socket) mayOpen() error {
	switch {
	case s.life.closed || s.life.retiring.Load() || s.life.muted.Load():
		return errGone
	case s.engine.draining.Load(): // Shutdown sets it before it checks for calls
		return errDraining
	case s.calls.full(1):
		return errFull
	case s.pace.window > 0 && s.streams.live >= s.pace.window/2:
		return errCrowded
	}
	return nil
}

// flushQueued writes what was queued if the flush rule allows it and no other goroutine writes. If the reader's role is
// free, it returns the role to the keeper. It is called with mu held and returns with mu released.
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

// watch makes the stream end when ctx ends. It uses context.AfterFunc: its allocation is cheap for
// a stream, whereas the sweeper would visit the stream every 4 ms for as long as it is open.
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

// Complete implements Completer. The opening call has its reply, which is the last frame of the
// stream, or has failed.
func (st *Stream) Complete(c *Call) {
	s := st.socket
	s.mu.Lock()
	dropped := st.leave(ErrStreamEnded)
	st.mu.Lock()
	switch {
	case st.err != nil: // set by Close
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
// delivered.
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

// newReset returns the frame that informs the server of the end, if the protocol has one.
func (st *Stream) newReset(cause error) []*Call {
	appendReset := st.socket.engine.cfg.Traits.Streams.AppendReset
	if appendReset == nil {
		return nil
	}
	return st.newFrame(func(b []byte) []byte { return appendReset(b, cause) })
}

// finish records the end, and returns a function that must be called without locks. It is called once, with mu held.
func (st *Stream) finish() (stop func()) {
	st.call = nil
	close(st.done)
	st.notify()
	cancel, unwatch := st.stop, st.unwatch
	return func() {
		if cancel != nil {
			cancel()
		}
		if unwatch != nil {
			unwatch()
		}
	}
}

// notify wakes the receiver.
func (st *Stream) notify() {
	select {
	case st.arrived <- struct{}{}:
	default:
	}
}

// Scanner returns the scanner of the connection of the stream, for drivers that keep there what they know about the
// server. It is safe for concurrent use only as far as the scanner is.
func (st *Stream) Scanner() Scanner { return st.socket.in.scanner }

// Grant permits the stream to send n more bytes, as [Pin.Grant] does.
func (st *Stream) Grant(n int) {
	s := st.socket
	s.mu.Lock()
	defer s.mu.Unlock()
	st.grant(n)
}

// grant is Grant. The caller holds the socket's lock.
func (st *Stream) grant(n int) {
	if !st.sending.live || n <= 0 {
		return
	}
	st.sending.credit = min(st.sending.credit+n, max(st.sending.credit, maxCredit))
	st.schedule()
}

func releaseAll(calls []*Call) {
	for _, c := range calls {
		c.Release()
	}
}

// Close ends the stream if it has not ended, and informs the server by a reset frame. Frames that Recv has not
// returned are dropped, and Recv returns an error from then on. Close may be called
// more than once. It does not wait.
func (st *Stream) Close() {
	st.mu.Lock()
	st.closed = true
	st.mu.Unlock()
	st.end(ErrStreamClosed)
	st.mu.Lock()
	st.inbox.drop()
	last := st.last
	st.last = nil
	if st.err == nil { // the last frame was received or is being delivered
		st.err = &slipstream.Error{Addr: st.socket.engine.cfg.Addr, Outcome: slipstream.Executed, Err: ErrStreamClosed}
	}
	st.settle()
	st.notify()
	st.mu.Unlock()
	if last != nil {
		last.Release()
	}
}

// settle releases the share of the stream. The caller holds mu.
func (st *Stream) settle() {
	if !st.settled {
		st.settled = true
		st.socket.engine.freeStream()
	}
}

// endStreamsOf ends the streams of a retired connection that still has its place, because too many
// others were retired, if no connection has accepted calls for DialTimeout: the streams would keep the next
// connection from being dialed. Only the sweeper calls it.
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
