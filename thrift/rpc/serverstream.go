package rpc

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/buf"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
)

// streamFunction is a streaming function.
type streamFunction struct {
	handle func(ctx context.Context, s *ServerStream) error
}

// StreamMethod returns a streaming function with untyped messages: see [BidiMethod], [ServerMethod] and [ClientMethod]
// for typed ones. The stream ends when the handler returns: the client receives io.EOF, or the error as with other
// functions. Declared exceptions of the function are sent untyped in streams, as in Kitex.
func StreamMethod(name string, handle func(ctx context.Context, s *ServerStream) error) Method {
	return Method{Name: name, stream: &streamFunction{handle}}
}

// A ServerStream is the handler's side of an untyped stream. Send is safe for concurrent use. Recv must be called by
// one goroutine at a time, which may run concurrently with Send. Neither may be called after the handler has returned.
type ServerStream struct{ stream *serverStream }

// Recv receives the next message into m. It blocks until a message arrives or ctx ends; ctx may be the handler's
// context. After the client's last message it returns io.EOF. If the stream ended in another way, it returns the cause.
func (s *ServerStream) Recv(ctx context.Context, m thrift.Struct) error {
	return s.stream.recv(ctx, m)
}

// Send sends a message. It blocks until the client's window and the connection have room for it, or until ctx or the
// stream ends.
func (s *ServerStream) Send(ctx context.Context, m thrift.Struct) error {
	return s.stream.send(ctx, m)
}

// serverStream is the server's side of a stream. It is also the handler's context.
type serverStream struct {
	context.Context // the handler's context, except for Value; immutable

	// Immutable after newServerStream and streamConn.refusal.
	conn     *streamConn
	function *function
	handler  *streamFunction
	cancel   context.CancelCauseFunc
	stop     context.CancelFunc // releases the timer of the deadline
	id       int32
	window   int // the client's window; 0 if it has no flow control
	name     string
	meta     []Meta
	start    time.Time

	deferred loop.Deferred // owned by the connection
	ticket   loop.Ticket   // immutable after streamConn.begin

	// Guarded by conn.mu.
	over    bool // no more frames are sent
	credit  int
	granted chan struct{} // closed when credit grows; nil if no goroutine waits

	inbox streamInbox
	extra handlerMeta

	// Owned by the receiving goroutine.
	reader thrift.Reader
	untold int // bytes received for which the client has not been given credit

	// Atomics.
	unread         atomic.Int64 // cost of the messages in inbox; added by the turn, subtracted by the receiver
	sent, received atomic.Int64 // bytes of frames
}

func newServerStream(s *streamConn, f *frame.Stream) *serverStream {
	st := &serverStream{conn: s, id: f.Info.Seq, window: number(f.Info.String(keyWindow)), start: time.Now(), meta: readMeta(&f.Info)}
	st.credit = st.window
	st.inbox.arrived = make(chan struct{}, 1)
	st.reader.MaxMemory = s.host.server.config.MaxMemory
	var parent context.Context
	parent, st.cancel = context.WithCancelCause(context.Background()) // streamConn.closed ends it with the connection
	st.Context, st.stop = parent, func() {}
	if ms := number(f.Info.Int(frame.KeyTimeout)); ms > 0 {
		st.Context, st.stop = context.WithDeadline(parent, st.start.Add(time.Duration(ms)*time.Millisecond))
	}
	return st
}

// Value implements [context.Context].
func (st *serverStream) Value(key any) any {
	if key == (callKey{}) {
		return st
	}
	return st.Context.Value(key)
}

func (st *serverStream) inbound() ([]Meta, Peer) {
	return st.meta, Peer{st.conn.conn.RemoteAddr(), st.conn.session.tls}
}

// cause returns the reason why the stream has ended.
func (st *serverStream) cause() error {
	if err := context.Cause(st.Context); err != nil {
		return err
	}
	return ErrStreamEnded
}

// receive puts a message into the inbox. If there is no room for it, it returns false.
func (st *serverStream) receive(message []byte, size int) bool {
	cost := messageCost(len(message))
	if st.unread.Add(cost) > int64(st.conn.host.limits.Unread) {
		st.unread.Add(-cost)
		return false
	}
	st.conn.session.hold(cost)
	if !st.inbox.put(message) { // the stream has ended
		st.release(cost)
	}
	st.received.Add(int64(size))
	return true
}

// release subtracts the cost of messages that the stream no longer holds.
func (st *serverStream) release(cost int64) {
	st.unread.Add(-cost)
	st.conn.session.hold(-cost)
}

func (st *serverStream) recv(ctx context.Context, m thrift.Struct) error {
	for ended := false; ; {
		b, err := st.inbox.take()
		switch {
		case err != nil:
			return err
		case b != nil:
			_, err := st.reader.Read(b, 0, m)
			st.taken(len(b))
			if err != nil {
				st.conn.host.server.figures.malformed.Add(1)
				return &thrift.ApplicationException{Kind: thrift.ProtocolError, Message: fmt.Sprintf("a message of %s: %v", st.name, err)}
			}
			return nil
		case ended:
			return st.cause()
		}
		select {
		case <-st.inbox.arrived:
		case <-st.Done():
			ended = true
		case <-ctx.Done():
			if ended = st.Err() != nil; !ended {
				return context.Cause(ctx)
			}
		}
	}
}

// taken records that the handler has received a message of n bytes, and sends credit if enough has accumulated.
func (st *serverStream) taken(n int) {
	cost := messageCost(n)
	st.release(cost)
	if st.window == 0 {
		return
	}
	if st.untold += int(cost); st.untold >= st.conn.host.limits.Window/creditShare {
		var room [frameOfCredit]byte
		b := appendNotice(room[:0], st.id, keyCredit, st.untold)
		st.untold = 0
		st.conn.sendOwn(st, b)
	}
}

const (
	// creditShare divides the window: credit is sent in steps of at least Window/creditShare.
	creditShare = 4
	// frameOfCredit is the size of a credit frame, rounded up.
	frameOfCredit = 80
)

func (st *serverStream) send(ctx context.Context, m thrift.Struct) error {
	b, err := messageOfStream(st.id, m, st.conn.host.server.config.MaxMessage)
	if err != nil {
		return &InvalidCallError{err}
	}
	defer buf.Put(b)
	cost := frame.StreamCost(b, len(b))
	if st.window > 0 && cost > st.window {
		return &InvalidCallError{fmt.Errorf("the message counts as %d bytes; the client allows %d: split the message, or raise the client's StreamConfig.Limits.Window", cost, st.window)}
	}
	st.sendHeader()
	if err := st.conn.send(ctx, st, b, cost); err != nil {
		return err
	}
	st.sent.Add(int64(len(b)))
	return nil
}

// Work implements [loop.Job].
func (st *serverStream) Work() {
	s := st.conn
	defer s.host.server.jobs.Done()
	err := st.run()
	st.sendHeader()
	if b, encodeErr := st.last(err); encodeErr == nil {
		s.finish(st, b)
	}
	st.stop()
	st.cancel(ErrStreamEnded)
	st.release(st.inbox.close())
	st.report(err, false)
	s.host.open.Add(-1)
	st.ticket.Complete()
}

// run calls the handler.
func (st *serverStream) run() (err error) {
	server := st.conn.host.server
	defer func() {
		if v := recover(); v != nil {
			server.figures.panics.Add(1)
			server.warn("a handler panicked", "service", st.function.service, "function", st.name, "panic", v, "stack", string(debug.Stack()))
			err = &thrift.ApplicationException{Kind: thrift.InternalError, Message: "the handler of " + st.name + " panicked"}
		}
	}()
	err = st.handler.handle(st, &ServerStream{st})
	server.figures.done.Add(1)
	return err
}

// last returns the last frame for the error that the handler returned.
func (st *serverStream) last(err error) ([]byte, error) {
	e, status := endOf(err)
	if e != nil {
		st.conn.host.server.figures.failed.Add(1)
	}
	trailer := st.extra.takeTrailer()
	var keys func(*frame.Writer)
	if status != nil || len(trailer) > 0 {
		keys = func(w *frame.Writer) {
			if status != nil {
				writeStatus(w, status)
			}
			writePairs(w, trailer)
		}
	}
	b, failed := appendEnd(nil, st.id, frame.StreamTrailer, e, keys)
	if failed != nil { // the status is too large
		e = &thrift.ApplicationException{Kind: thrift.InternalError, Message: failed.Error()}
		return appendEnd(nil, st.id, frame.StreamTrailer, e, func(w *frame.Writer) { writePairs(w, trailer) })
	}
	return b, nil
}

// Write implements [loop.Reply]: the handler has returned.
func (st *serverStream) Write(c *loop.Conn) {
	s := st.conn
	if s.open[st.id] == st {
		delete(s.open, st.id)
	}
	s.flush(c)
}

// Drop implements [loop.Reply].
func (st *serverStream) Drop() {}

// report notifies ServerConfig.OnCall of the end of the stream. It recovers panics of OnCall.
func (st *serverStream) report(err error, refused bool) {
	server := st.conn.host.server
	if server.config.OnCall == nil {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			server.warn("OnCall panicked", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	r := CallReport{Name: st.name, Peer: st.conn.conn.RemoteAddr(), Format: "TTHeader, stream", Start: st.start, Took: time.Since(st.start),
		Received: int(st.received.Load()), Sent: int(st.sent.Load()), Err: err, Refused: refused}
	if st.function != nil {
		r.Service, r.Method = st.function.service, st.function.Name
	}
	server.config.OnCall(r)
}
