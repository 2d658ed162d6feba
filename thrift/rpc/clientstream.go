package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/buf"
	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
)

// A ClientStream is the client's side of an untyped stream: see [OpenBidi], [OpenServer] and [OpenClient] for typed
// ones. It must be closed, even after the stream has ended.
//
// Send, CloseSend and Close are safe for concurrent use. Recv must be called by one goroutine at a time, which may run
// concurrently with the others.
type ClientStream struct {
	// Immutable after Open.
	client *StreamClient
	name   string
	ctx    context.Context
	start  time.Time
	stream *pipe.Stream
	link   *streamLink

	closed    chan struct{} // closed by Close
	closeOnce sync.Once

	// Owned by the receiving goroutine.
	reader thrift.Reader
	meta   clientMeta

	// Atomics.
	last           atomic.Pointer[slipstream.Error] // how the stream ended; errEndOfStream after the last message. Written by the receiving goroutine
	spent          atomic.Int64                     // bytes sent since the last grant, to a server without flow control
	messages       atomic.Int64                     // sent
	sent, received atomic.Int64                     // bytes of messages
}

// errEndOfStream stands for io.EOF.
var errEndOfStream = &slipstream.Error{Err: io.EOF}

func newClientStream(ctx context.Context, c *StreamClient, name string) *ClientStream {
	s := &ClientStream{client: c, name: name, ctx: ctx, start: time.Now(), closed: make(chan struct{})}
	s.reader.MaxMemory = c.config.MaxMemory
	return s
}

// mostPermit is the number of bytes granted at a time if the server has no flow control.
const mostPermit = 1 << 29

// permit lets the stream send as much as the server's window allows.
func (s *ClientStream) permit(window int64) {
	s.stream.Grant(int(min(window, mostPermit)) - firstCredit)
}

// Send sends a message. It blocks while the server's window is full or too much output is waiting to be written, until
// ctx ends. It does not wait until the message has been written. Errors are of type *slipstream.Error; if the stream
// continues, the outcome is NotSent.
func (s *ClientStream) Send(ctx context.Context, m thrift.Struct) error {
	b, err := messageOfStream(0, m, s.client.config.MaxMessage)
	if err != nil {
		return s.client.fail.NotSent(s.name, &InvalidCallError{err})
	}
	defer buf.Put(b)
	cost := frame.StreamCost(b, len(b))
	if err := s.admit(ctx, cost); err != nil {
		return s.client.fail.NotSent(s.name, err)
	}
	k := s.client.engine.Acquire()
	k.Frame = append(k.Frame[:0], b...)
	if err := s.stream.Send(ctx, k); err != nil {
		k.Release()
		return s.named(err)
	}
	s.messages.Add(1)
	s.sent.Add(int64(len(b)))
	if s.link.window.Load() == endless && s.spent.Add(int64(cost)) > mostPermit/2 {
		s.stream.Grant(int(s.spent.Swap(0)))
	}
	return nil
}

// admit waits until the server's window is known, if cost requires that, and returns an error if the message exceeds
// it.
func (s *ClientStream) admit(ctx context.Context, cost int) error {
	if cost <= firstCredit {
		return nil
	}
	select {
	case <-s.link.known:
	default:
		select {
		case <-s.link.known:
		case <-s.closed:
			return ErrStreamClosed
		case <-s.ctx.Done():
			return s.ctx.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if window := s.link.window.Load(); int64(cost) > window {
		return &InvalidCallError{fmt.Errorf("the message counts as %d bytes; the server allows %d: split the message, or raise the server's ServerConfig.Streams.Window", cost, window)}
	}
	return nil
}

// CloseSend notifies the server that no more messages follow. Recv can still receive. Further calls do nothing.
func (s *ClientStream) CloseSend(ctx context.Context) error {
	k := s.client.engine.Acquire()
	var err error
	if k.Frame, err = appendEnd(k.Frame[:0], 0, frame.StreamTrailer, nil, nil); err == nil {
		err = s.stream.CloseSend(ctx, k)
	}
	if err == nil {
		return nil
	}
	k.Release()
	if errors.Is(err, ErrSendClosed) || errors.Is(err, ErrStreamEnded) {
		return nil
	}
	return s.named(err)
}

// Recv receives the next message into m. It blocks until a message arrives or ctx ends; the end of ctx does not end the
// stream. After the last message it returns io.EOF. Other errors are of type *slipstream.Error; if the handler returned
// an error, they wrap a *StatusError or a *thrift.ApplicationException.
func (s *ClientStream) Recv(ctx context.Context, m thrift.Struct) error {
	if s.last.Load() != nil {
		return s.end()
	}
	for {
		b, f, err := s.next(ctx)
		if err != nil {
			return err
		}
		if f.Kind == frame.StreamData {
			s.meta.begun = true
			s.received.Add(int64(len(b)))
			if _, err := s.reader.Read(f.Payload, 0, m); err != nil {
				return s.client.fail.Executed(s.name, err)
			}
			return nil
		}
		if err := s.control(&f); err != nil {
			return err
		}
		if s.last.Load() != nil {
			return s.end()
		}
	}
}

// next returns the next frame, which is valid until the next call.
func (s *ClientStream) next(ctx context.Context) (b []byte, f frame.Stream, err error) {
	if b = s.meta.ahead; b != nil {
		s.meta.ahead = nil
	} else if b, err = s.stream.Recv(ctx); err != nil {
		failure := s.client.fail.Named(s.name, err)
		if ctx.Err() == nil || !errors.Is(err, ctx.Err()) || s.ctx.Err() != nil {
			s.last.Store(failure)
		}
		return nil, f, failure
	}
	if f, err = frame.OpenStream(b); err != nil { // the scanner has read it before
		return nil, f, s.client.fail.Executed(s.name, err)
	}
	return b, f, nil
}

// end returns the error with which the stream ended.
func (s *ClientStream) end() error {
	if last := s.last.Load(); last != errEndOfStream {
		return last
	}
	return io.EOF
}

// result returns the error for the last frame, or errEndOfStream.
func (s *ClientStream) result(f *frame.Stream) *slipstream.Error {
	err := lastOf(f)
	if err == io.EOF {
		return errEndOfStream
	}
	outcome := slipstream.Executed
	if e, ok := errors.AsType[*thrift.ApplicationException](err); ok {
		outcome = e.DeliveryOutcome()
		if e.Kind == KindRefused || f.Info.String(keyRefused) != nil {
			outcome = slipstream.Refused
		}
	}
	return s.client.fail.With(s.name, outcome, err)
}

// named adds the name of the function to an error of the engine.
func (s *ClientStream) named(err error) error { return s.client.fail.Named(s.name, err) }

// Close ends the stream, unless it has ended, which ends the handler's context. Messages that were not received are
// dropped. Close does not wait; further calls do nothing.
func (s *ClientStream) Close() {
	s.closeOnce.Do(func() {
		close(s.closed)
		s.link.leave(s)
		s.stream.Close()
		s.observe()
	})
}

// observe notifies the observer.
func (s *ClientStream) observe() {
	h := &s.client.hooks
	if !h.Observing() {
		return
	}
	o := slipstream.Observation{Op: s.name, Start: s.start, Requests: int(max(s.messages.Load(), 1)), Attempts: 1, RequestBytes: int(s.sent.Load()), ReplyBytes: int(s.received.Load())}
	if last := s.last.Load(); last != nil && last != errEndOfStream {
		o.Err = last
	}
	h.Observe(s.ctx, o)
}
