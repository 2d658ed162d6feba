package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/buf"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
)

// A streamHandler is a streaming function, as stored in a [Method]. It is an interface, and all code that serves
// streams is reached only through it, so the linker omits that code from programs without streams.
type streamHandler interface {
	// host returns the state that a server with streaming functions needs.
	host(s *Server) streamHost
}

// A streamHost is the state that all streams of a server share.
type streamHost interface {
	// begin returns the server side of a stream connection.
	begin(x *session, c *loop.Conn) streamSession
	// streams returns the number of open streams.
	streams() int64
	// close waits until all handlers have returned.
	close()
}

// A streamSession is the session of a stream connection. All methods are called in the connection's turn.
type streamSession interface {
	data(c *loop.Conn, in []byte) (consumed int)
	received(c *loop.Conn, p *loop.Payload)
	drain(c *loop.Conn)
	ended(c *loop.Conn)
	closed(err error)
}

// begins reports whether a connection that starts with the bytes in carries streams.
func (x *session) begins(c *loop.Conn, in []byte) bool {
	is, known := frame.IsStream(in)
	if x.decided = known; is {
		x.streams = x.server.streams.begin(x, c)
	}
	return is
}

// streaming implements streamHost.
type streaming struct {
	server  *Server
	limits  StreamLimits
	workers *loop.Workers
	open    atomic.Int64 // handlers that are running or about to
}

func (*streamFunction) host(s *Server) streamHost {
	limits := s.config.Streams.withDefaults(defaultServerStreams)
	return &streaming{server: s, limits: limits, workers: loop.NewWorkers(limits.Max)}
}

func (h *streaming) streams() int64 { return h.open.Load() }

func (h *streaming) close() { h.workers.Close() }

func (h *streaming) begin(x *session, c *loop.Conn) streamSession {
	most := h.server.config.MaxConnCalls
	c.SetLimits(loop.Limits{MaxDeferred: most + 1}) // beyond that, streams are refused and the connection is still read
	return &streamConn{host: h, session: x, conn: c, most: most, scanner: frame.Scanner{Max: h.server.config.MaxMessage}, open: make(map[int32]*serverStream)}
}

// streamConn is the server side of a stream connection.
type streamConn struct {
	// Immutable.
	host    *streaming
	session *session
	conn    *loop.Conn
	most    int // streams

	// Owned by the turn.
	scanner   frame.Scanner
	open      map[int32]*serverStream // streams whose handlers have not returned
	announced bool                    // the client has been notified of the window
	told      bool                    // the client has been notified that the connection will be closed

	mu sync.Mutex
	// Guarded by mu, as are some fields of streams.
	out    []byte        // handlers' frames that the next turn sends; from package buf
	posted bool          // a turn has been requested for out
	room   chan struct{} // closed when out is taken; nil if no goroutine waits
	gone   error         // why the connection has ended; nil if it has not
}

// mostStreamOutput is the maximum number of bytes of handlers' frames that wait for a turn. A larger frame is queued
// when no other frame waits.
const mostStreamOutput = 256 << 10

func (s *streamConn) data(c *loop.Conn, in []byte) (consumed int) {
	for consumed < len(in) && !c.Full() {
		rest := in[consumed:]
		n, whole, err := s.scanner.Size(rest)
		switch {
		case err != nil:
			s.malformed(c, err)
			return len(in)
		case n > mostWhole:
			if err := c.Expect(n); err != nil {
				s.malformed(c, err)
				return len(in)
			}
			return consumed
		case !whole:
			return consumed
		}
		if err := s.frame(c, rest[:n]); err != nil {
			s.malformed(c, err)
			return len(in)
		}
		consumed += n
	}
	return consumed
}

// malformed ends the connection, because the data after a malformed frame cannot be read.
func (s *streamConn) malformed(c *loop.Conn, err error) {
	s.endAll(c, err, true)
	s.session.malformed(c, err)
}

// endAll ends all streams.
func (s *streamConn) endAll(c *loop.Conn, cause error, tell bool) {
	for _, st := range s.open {
		s.end(c, st, cause, tell)
	}
}

// ended ends all streams of a client that sends nothing more.
func (s *streamConn) ended(c *loop.Conn) { s.endAll(c, ErrStreamLost, false) }

func (s *streamConn) received(c *loop.Conn, p *loop.Payload) {
	defer p.Release()
	if err := s.frame(c, p.Bytes()); err != nil {
		s.malformed(c, err)
	}
}

// Errors for clients that violate the protocol.
var (
	errStreamTwice = errors.New("a stream was opened with an ID that is in use")
	errStreamZero  = errors.New("a stream was opened with ID 0")
)

// frame handles a frame, which is valid only during the turn. Frames for streams that are not open are dropped: the
// client may have sent them before it knew that the stream had ended.
func (s *streamConn) frame(c *loop.Conn, b []byte) error {
	c.Spend(1 + len(b)>>9)
	f, err := frame.OpenStream(b)
	if err != nil {
		return err
	}
	c.Prove()
	if f.Kind == frame.StreamHeader {
		return s.begin(c, &f)
	}
	st := s.open[f.Info.Seq]
	if st == nil {
		return nil
	}
	switch f.Kind {
	case frame.StreamData:
		if !st.receive(f.Payload, len(b)) {
			s.reset(c, st, ErrStreamOverflow)
		}
	case frame.StreamTrailer:
		st.inbox.finish(lastOf(&f))
	case frame.StreamReset:
		s.leave(c, st, lastOf(&f))
	case frame.StreamMeta:
		s.grant(st, number(f.Info.String(keyCredit)))
	}
	return nil
}

// begin opens a stream.
func (s *streamConn) begin(c *loop.Conn, f *frame.Stream) error {
	id := f.Info.Seq
	if id == 0 {
		return errStreamZero
	}
	if other := s.open[id]; other != nil && !s.isOver(other) {
		return errStreamTwice
	}
	st := newServerStream(s, f)
	if st.window > 0 && !s.announced {
		s.announced = true
		s.notify(c, keyWindow, s.host.limits.Window)
	}
	s.tellEnd(c)
	if failure := s.refusal(c, st, f); failure != nil {
		s.refuse(c, st, failure)
		return nil
	}
	s.open[id] = st
	st.ticket = c.DeferAnyOrderInto(&st.deferred, st)
	s.host.server.jobs.Add(1)
	s.host.workers.Start(st) // ends when the handler returns
	return nil
}

// refusal returns the reason for refusing a stream. It returns nil, and counts the stream as open, if the stream is
// accepted.
func (s *streamConn) refusal(c *loop.Conn, st *serverStream, f *frame.Stream) *thrift.ApplicationException {
	h := s.host
	service, name := f.Info.String(frame.KeyService), f.Info.Int(frame.KeyToMethod)
	st.name = string(name)
	function, failure := h.server.registry.find(service, name, false)
	switch {
	case failure != nil:
		h.server.figures.unknown.Add(1)
		return failure
	case function.stream == nil:
		h.server.figures.unknown.Add(1)
		return unknown("the function %s is not a streaming function", function.Name)
	}
	st.function, st.handler = function, function.stream.(*streamFunction)
	if at, ok := st.Deadline(); ok && !time.Now().Before(at) {
		return refusal("its deadline had passed")
	}
	switch n := h.open.Add(1); {
	case n > int64(h.limits.Max):
		h.open.Add(-1)
		return refusal("the server has too many streams")
	case c.Owed() >= s.most:
		h.open.Add(-1)
		return refusal("the connection has too many streams")
	}
	return nil
}

// refuse answers a stream that is not opened.
func (s *streamConn) refuse(c *loop.Conn, st *serverStream, e *thrift.ApplicationException) {
	st.cancel(e)
	st.stop()
	var keys func(*frame.Writer)
	if e.Kind == KindRefused {
		s.host.server.figures.refused.Add(1)
		keys = func(w *frame.Writer) { w.String(keyRefused, e.Message) }
	}
	s.append(c, func(b []byte) ([]byte, error) { return appendEnd(b, st.id, frame.StreamTrailer, e, keys) })
	st.report(e, e.Kind == KindRefused)
}

// append appends a frame to the output, after the handlers' frames that wait.
func (s *streamConn) append(c *loop.Conn, encode func(b []byte) ([]byte, error)) {
	s.flush(c)
	o := c.Output()
	start := len(o.B)
	var err error
	if o.B, err = encode(o.B); err != nil {
		o.B = o.B[:start]
	}
}

// notify sends a frame about the connection.
func (s *streamConn) notify(c *loop.Conn, key string, value int) {
	s.append(c, func(b []byte) ([]byte, error) { return appendNotice(b, 0, key, value), nil })
}

func (s *streamConn) drain(c *loop.Conn) { s.tellEnd(c) }

// tellEnd notifies a client that uses this package, once, that the connection will be closed because the server is
// draining.
func (s *streamConn) tellEnd(c *loop.Conn) {
	if s.announced && !s.told && c.Draining() {
		s.told = true
		s.notify(c, frame.KeyReset, 1)
	}
}

// isOver reports whether a stream has ended.
func (s *streamConn) isOver(st *serverStream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return st.over
}

// leave ends a stream that the client has reset. A client that uses this package gets a reply, because it does not
// reuse the ID until then.
func (s *streamConn) leave(c *loop.Conn, st *serverStream, cause error) {
	if cause == io.EOF {
		cause = ErrStreamReset
	}
	s.end(c, st, cause, st.window > 0)
}

// reset ends a stream because of data that the client sent.
func (s *streamConn) reset(c *loop.Conn, st *serverStream, cause error) { s.end(c, st, cause, true) }

// end ends a stream before its handler has returned. If tell is set, the client is notified.
func (s *streamConn) end(c *loop.Conn, st *serverStream, cause error, tell bool) {
	s.mu.Lock()
	already := st.over
	st.over = true
	s.mu.Unlock()
	if already {
		return
	}
	if tell {
		s.append(c, func(b []byte) ([]byte, error) { return appendEnd(b, st.id, frame.StreamReset, resetReason(cause), nil) })
	}
	st.inbox.finish(cause)
	st.cancel(cause)
}

// grant allows a handler to send n more bytes.
func (s *streamConn) grant(st *serverStream, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.credit = min(st.credit+min(n, mostPermit), max(st.credit, mostPermit))
	if st.granted != nil {
		close(st.granted)
		st.granted = nil
	}
}

// send queues a handler's frame, which uses cost bytes of the stream's credit. It waits for credit and room until ctx
// or the stream ends.
func (s *streamConn) send(ctx context.Context, st *serverStream, b []byte, cost int) error {
	s.mu.Lock()
	for {
		var wait chan struct{}
		switch {
		case s.gone != nil || st.over:
			s.mu.Unlock()
			return st.cause()
		case st.window > 0 && st.credit < cost:
			wait = waitFor(&st.granted)
		case len(s.out) > 0 && len(s.out)+len(b) > mostStreamOutput:
			wait = waitFor(&s.room)
		default:
			st.credit -= cost
			post := s.queue(b)
			s.mu.Unlock()
			s.post(post)
			return nil
		}
		s.mu.Unlock()
		select {
		case <-wait:
		case <-st.Done():
			return st.cause()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		s.mu.Lock()
	}
}

// waitFor returns a channel that the owner of c closes.
func waitFor(c *chan struct{}) chan struct{} {
	if *c == nil {
		*c = make(chan struct{})
	}
	return *c
}

// queue adds a frame to those that wait for a turn, and reports whether a turn must be requested. The caller must hold
// mu.
func (s *streamConn) queue(b []byte) (post bool) {
	s.out = append(grow(s.out, len(b)), b...)
	s.session.hold(int64(len(b)))
	post = !s.posted
	s.posted = true
	return post
}

// post requests a turn.
func (s *streamConn) post(needed bool) {
	if needed {
		_ = s.conn.Post(s, 0) // fails only if the connection has ended; only one such task is pending at a time
	}
}

// sendOwn queues a frame of the stream without waiting for credit or room.
func (s *streamConn) sendOwn(st *serverStream, b []byte) {
	s.mu.Lock()
	if s.gone != nil || st.over {
		s.mu.Unlock()
		return
	}
	post := s.queue(b)
	s.mu.Unlock()
	s.post(post)
}

// finish queues the last frame of a stream whose handler has returned, unless the stream has ended.
func (s *streamConn) finish(st *serverStream, b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone == nil && !st.over {
		st.over = true
		s.out = append(grow(s.out, len(b)), b...)
		s.session.hold(int64(len(b)))
	}
}

// Run implements [loop.Task].
func (s *streamConn) Run(c *loop.Conn) {
	s.mu.Lock()
	s.posted = false
	s.mu.Unlock()
	s.flush(c)
}

// Drop implements [loop.Task].
func (s *streamConn) Drop() {}

// flush moves the handlers' frames to the output.
func (s *streamConn) flush(c *loop.Conn) {
	s.mu.Lock()
	out, room := s.out, s.room
	s.out, s.room = nil, nil
	s.mu.Unlock()
	if room != nil {
		close(room)
	}
	if out == nil {
		return
	}
	s.session.hold(-int64(len(out)))
	c.Spend(1 + len(out)>>12)
	o := c.Output()
	if len(out) >= linkFrom {
		o.LinkOwned(out, answerMemory(out))
		return
	}
	o.B = append(o.B, out...)
	buf.Put(out)
}

// closed ends all streams, because the connection has ended.
func (s *streamConn) closed(err error) {
	cause := ErrStreamLost
	if err != nil {
		cause = fmt.Errorf("%w: %w", ErrStreamLost, err)
	}
	s.mu.Lock()
	s.gone = cause
	out := s.out
	s.out = nil
	room := s.room
	s.room = nil
	s.mu.Unlock()
	if room != nil {
		close(room)
	}
	if out != nil {
		s.session.hold(-int64(len(out)))
		buf.Put(out)
	}
	for _, st := range s.open {
		st.inbox.finish(cause)
		st.cancel(cause)
	}
	clear(s.open)
}
