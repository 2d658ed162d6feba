package rpc

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/slipstream-go/slipstream/thrift"
)

// A StreamStub is the common part of generated streaming clients.
type StreamStub struct {
	Opener  StreamOpener
	Service string // the name of the service
}

func (s StreamStub) open(ctx context.Context, function string) (*ClientStream, error) {
	return s.Opener.Open(ctx, &StreamFunction{Service: s.Service, Name: function})
}

// asStruct returns m as a struct. Generated code passes only structs.
func asStruct(m any) thrift.Struct { return m.(thrift.Struct) }

// newMessage returns a message with its default values.
func newMessage[T any]() (*T, thrift.Struct) {
	m := new(T)
	if r, ok := any(m).(interface{ Reset() }); ok {
		r.Reset()
	}
	return m, asStruct(m)
}

// A receiver receives messages: a [ClientStream] or a [ServerStream].
type receiver interface {
	Recv(ctx context.Context, m thrift.Struct) error
}

func recv[T any](ctx context.Context, s receiver) (*T, error) {
	m, v := newMessage[T]()
	if err := s.Recv(ctx, v); err != nil {
		return nil, err
	}
	return m, nil
}

// all iterates over the messages of a stream.
func all[T any](ctx context.Context, s receiver) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for {
			m, err := recv[T](ctx, s)
			if err == io.EOF || !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// clientSide has the methods that all streams of clients have.
type clientSide struct{ stream *ClientStream }

// Header returns the header that the handler has set, when it is known: see [ClientStream.Header].
func (s clientSide) Header(ctx context.Context) (map[string]string, error) {
	return s.stream.Header(ctx)
}

// Trailer returns the trailer that the handler has set, after the stream has ended: see [ClientStream.Trailer].
func (s clientSide) Trailer() map[string]string { return s.stream.Trailer() }

// Close ends the stream, if it has not ended.
func (s clientSide) Close() { s.stream.Close() }

// serverSide has the methods that all streams of handlers have.
type serverSide struct{ stream *ServerStream }

// SetHeader adds to the header, which is sent before the first response: see [ServerStream.SetHeader].
func (s serverSide) SetHeader(values map[string]string) error { return s.stream.SetHeader(values) }

// SendHeader adds to the header and sends it.
func (s serverSide) SendHeader(values map[string]string) error { return s.stream.SendHeader(values) }

// SetTrailer adds to the trailer, which is sent at the end: see [ServerStream.SetTrailer].
func (s serverSide) SetTrailer(values map[string]string) error { return s.stream.SetTrailer(values) }

// A ServerStreamingClient is the client's side of a server-streaming function: it receives a stream of responses. It
// must be closed, even after the stream has ended.
type ServerStreamingClient[Res any] struct{ clientSide }

// OpenServer opens a stream of a server-streaming function and sends the request.
func OpenServer[Req, Res any](ctx context.Context, stub StreamStub, function string, request *Req) (*ServerStreamingClient[Res], error) {
	s, err := stub.open(ctx, function)
	if err != nil {
		return nil, err
	}
	if err = s.Send(ctx, asStruct(request)); err == nil {
		err = s.CloseSend(ctx)
	}
	if err != nil && !errors.Is(err, ErrStreamEnded) { // for ErrStreamEnded, Recv returns the reason
		s.Close()
		return nil, err
	}
	return &ServerStreamingClient[Res]{clientSide{s}}, nil
}

// Recv receives the next response, or io.EOF after the last one: see [ClientStream.Recv].
func (s *ServerStreamingClient[Res]) Recv(ctx context.Context) (*Res, error) {
	return recv[Res](ctx, s.stream)
}

// All iterates over the responses. After an error, it ends.
func (s *ServerStreamingClient[Res]) All(ctx context.Context) iter.Seq2[*Res, error] {
	return all[Res](ctx, s.stream)
}

// A ClientStreamingClient is the client's side of a client-streaming function: it sends a stream of requests. It must
// be closed, even after the stream has ended.
type ClientStreamingClient[Req, Res any] struct{ clientSide }

// OpenClient opens a stream of a client-streaming function.
func OpenClient[Req, Res any](ctx context.Context, stub StreamStub, function string) (*ClientStreamingClient[Req, Res], error) {
	s, err := stub.open(ctx, function)
	if err != nil {
		return nil, err
	}
	return &ClientStreamingClient[Req, Res]{clientSide{s}}, nil
}

// Send sends a request: see [ClientStream.Send].
func (s *ClientStreamingClient[Req, Res]) Send(ctx context.Context, request *Req) error {
	return s.stream.Send(ctx, asStruct(request))
}

// CloseAndRecv ends the requests, waits for the response, and closes the stream.
func (s *ClientStreamingClient[Req, Res]) CloseAndRecv(ctx context.Context) (*Res, error) {
	defer s.stream.Close()
	if err := s.stream.CloseSend(ctx); err != nil {
		return nil, err
	}
	response, err := recv[Res](ctx, s.stream)
	switch {
	case err == io.EOF:
		return nil, s.stream.client.fail.Executed(s.stream.name, &thrift.ApplicationException{Kind: thrift.MissingResult, Message: "the stream ended without a response"})
	case err != nil:
		return nil, err
	}
	// The handler may have failed after it sent the response.
	switch _, err := recv[Res](ctx, s.stream); {
	case err == io.EOF:
		return response, nil
	case err != nil:
		return nil, err
	}
	return nil, s.stream.client.fail.Executed(s.stream.name, &thrift.ApplicationException{Kind: thrift.ProtocolError, Message: "the stream has more than one response"})
}

// A BidiStreamingClient is the client's side of a bidirectional-streaming function. It must be closed, even after the
// stream has ended.
type BidiStreamingClient[Req, Res any] struct{ clientSide }

// OpenBidi opens a stream of a bidirectional-streaming function.
func OpenBidi[Req, Res any](ctx context.Context, stub StreamStub, function string) (*BidiStreamingClient[Req, Res], error) {
	s, err := stub.open(ctx, function)
	if err != nil {
		return nil, err
	}
	return &BidiStreamingClient[Req, Res]{clientSide{s}}, nil
}

// Send sends a request: see [ClientStream.Send].
func (s *BidiStreamingClient[Req, Res]) Send(ctx context.Context, request *Req) error {
	return s.stream.Send(ctx, asStruct(request))
}

// CloseSend ends the requests.
func (s *BidiStreamingClient[Req, Res]) CloseSend(ctx context.Context) error {
	return s.stream.CloseSend(ctx)
}

// Recv receives the next response, or io.EOF after the last one: see [ClientStream.Recv].
func (s *BidiStreamingClient[Req, Res]) Recv(ctx context.Context) (*Res, error) {
	return recv[Res](ctx, s.stream)
}

// All iterates over the responses. After an error, it ends.
func (s *BidiStreamingClient[Req, Res]) All(ctx context.Context) iter.Seq2[*Res, error] {
	return all[Res](ctx, s.stream)
}

// A ServerStreamingServer is the handler's side of a server-streaming function: it sends a stream of responses.
type ServerStreamingServer[Res any] struct{ serverSide }

// ServerMethod returns a server-streaming function.
func ServerMethod[Req, Res any](name string, handle func(ctx context.Context, request *Req, s *ServerStreamingServer[Res]) error) Method {
	return StreamMethod(name, func(ctx context.Context, s *ServerStream) error {
		request, err := recv[Req](ctx, s)
		if err == io.EOF {
			return &thrift.ApplicationException{Kind: thrift.ProtocolError, Message: "the stream has no request"}
		}
		if err != nil {
			return err
		}
		return handle(ctx, request, &ServerStreamingServer[Res]{serverSide{s}})
	})
}

// Send sends a response: see [ServerStream.Send].
func (s *ServerStreamingServer[Res]) Send(ctx context.Context, response *Res) error {
	return s.stream.Send(ctx, asStruct(response))
}

// A ClientStreamingServer is the handler's side of a client-streaming function: it receives a stream of requests.
type ClientStreamingServer[Req any] struct{ serverSide }

// ClientMethod returns a client-streaming function.
func ClientMethod[Req, Res any](name string, handle func(ctx context.Context, s *ClientStreamingServer[Req]) (*Res, error)) Method {
	return StreamMethod(name, func(ctx context.Context, s *ServerStream) error {
		response, err := handle(ctx, &ClientStreamingServer[Req]{serverSide{s}})
		switch {
		case err != nil:
			return err
		case response == nil:
			return &thrift.ApplicationException{Kind: thrift.MissingResult, Message: "the handler of " + name + " returned no result"}
		}
		return s.Send(ctx, asStruct(response))
	})
}

// Recv receives the next request, or io.EOF after the last one: see [ServerStream.Recv].
func (s *ClientStreamingServer[Req]) Recv(ctx context.Context) (*Req, error) {
	return recv[Req](ctx, s.stream)
}

// All iterates over the requests. After an error, it ends.
func (s *ClientStreamingServer[Req]) All(ctx context.Context) iter.Seq2[*Req, error] {
	return all[Req](ctx, s.stream)
}

// A BidiStreamingServer is the handler's side of a bidirectional-streaming function.
type BidiStreamingServer[Req, Res any] struct{ serverSide }

// BidiMethod returns a bidirectional-streaming function.
func BidiMethod[Req, Res any](name string, handle func(ctx context.Context, s *BidiStreamingServer[Req, Res]) error) Method {
	return StreamMethod(name, func(ctx context.Context, s *ServerStream) error {
		return handle(ctx, &BidiStreamingServer[Req, Res]{serverSide{s}})
	})
}

// Recv receives the next request, or io.EOF after the last one: see [ServerStream.Recv].
func (s *BidiStreamingServer[Req, Res]) Recv(ctx context.Context) (*Req, error) {
	return recv[Req](ctx, s.stream)
}

// All iterates over the requests. After an error, it ends.
func (s *BidiStreamingServer[Req, Res]) All(ctx context.Context) iter.Seq2[*Req, error] {
	return all[Req](ctx, s.stream)
}

// Send sends a response: see [ServerStream.Send].
func (s *BidiStreamingServer[Req, Res]) Send(ctx context.Context, response *Res) error {
	return s.stream.Send(ctx, asStruct(response))
}
