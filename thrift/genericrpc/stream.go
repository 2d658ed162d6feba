package genericrpc

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/generic"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// Messages of streams are structs of the Binary protocol: the argument of the function in one direction, its result in
// the other. A message is converted like arguments and results:
//
//	JSON --> generic.Codec --> Raw --> rpc.ClientStream --> Raw --> generic.Codec --> JSON

// Messages returns the structs that a streaming function sends and receives. It fails if the annotation
// streaming.mode has an unknown value, or if the function does not have one struct as its argument and one as its
// result. For other functions, the mode is [idl.NoStreams].
func Messages(f *idl.Function) (mode idl.StreamMode, request, response *idl.Struct, err error) {
	mode, wrong := f.Streams()
	switch {
	case wrong != nil:
		return mode, nil, nil, fmt.Errorf("genericrpc: the annotation %s of %s.%s is %.100q; expected bidirectional, client, server or unary", wrong.Key, f.Service.Name, f.Name, wrong.Value)
	case mode == idl.NoStreams:
		return mode, nil, nil, nil
	case len(f.Args) == 1 && !f.Oneway && f.Result.Kind != idl.Void:
		request, response = f.Args[0].Type.Struct(), f.Result.Struct()
	}
	if request == nil || response == nil {
		return mode, nil, nil, fmt.Errorf("genericrpc: %s.%s is a streaming function; expected one argument and a result that are structs", f.Service.Name, f.Name)
	}
	return mode, request, response, nil
}

// A StreamClient opens the streams of a service. It is created by [NewStreamClient]. All methods are safe for concurrent
// use.
type StreamClient struct {
	// Immutable.
	opener  rpc.StreamOpener
	service *idl.Service
	codec   generic.Codec
}

// NewStreamClient returns a client of the streams of a service, which must come from a checked file. The opener is an
// *[rpc.StreamClient] or a wrapper of one. Streams do not support the Compact protocol.
func NewStreamClient(opener rpc.StreamOpener, service *idl.Service, config Config) (*StreamClient, error) {
	switch {
	case service == nil:
		return nil, errNoService
	case config.Compact:
		return nil, errors.New("genericrpc: messages of streams are in the Binary protocol; Config.Compact must be false")
	}
	codec := generic.Codec{Strict: !config.AllowUnknown, MaxMemory: config.MaxMemory, JSON: config.JSON}
	return &StreamClient{opener, service, codec}, nil
}

// Open opens a stream of a function, which ends with ctx. It must be closed.
func (c *StreamClient) Open(ctx context.Context, function string) (*Stream, error) {
	f := c.service.Function(function)
	if f == nil {
		return nil, notSent(c.service.Name, noFunction(c.service, function))
	}
	mode, request, response, err := Messages(f)
	switch {
	case err != nil:
		return nil, notSent(f.Name, err)
	case mode == idl.NoStreams:
		return nil, notSent(f.Name, fmt.Errorf("genericrpc: %s.%s is not a streaming function; call it with a Client", c.service.Name, f.Name))
	}
	s, err := c.opener.Open(ctx, &rpc.StreamFunction{Service: c.service.Name, Name: f.Name})
	if err != nil {
		return nil, err
	}
	return &Stream{stream: s, codec: c.codec, function: f.Name, mode: mode, request: request, response: response}, nil
}

// A Stream is an open stream, with messages in JSON. It must be closed, even after the stream has ended.
//
// Send and CloseSend must be called by one goroutine at a time, and so must Recv, Header and Trailer; the former may run
// concurrently with the latter.
type Stream struct {
	// Immutable.
	stream            *rpc.ClientStream
	codec             generic.Codec
	function          string
	mode              idl.StreamMode
	request, response *idl.Struct

	sent int // messages; owned by the goroutine that sends

	// Owned by the goroutine that receives.
	received int // messages
	raw      Raw
}

// errOneRequest is the error for a second message to a function without a stream of requests.
var errOneRequest = errors.New("genericrpc: the function takes one request, which has already been sent")

// Send sends a message, an object with the fields of the argument. It waits as [rpc.ClientStream.Send] does. If the
// error is about the message, the stream continues.
func (s *Stream) Send(ctx context.Context, message []byte) error {
	if s.sent > 0 && s.mode == idl.ServerStreams {
		return notSent(s.function, errOneRequest)
	}
	var encoded []byte
	values, err := s.codec.FromJSON(message, s.request)
	if err == nil {
		encoded, err = s.codec.Append(nil, s.request, values)
	}
	if err != nil {
		return notSent(s.function, err)
	}
	if err := s.stream.Send(ctx, &Raw{Bytes: encoded}); err != nil {
		return err
	}
	s.sent++
	return nil
}

// CloseSend notifies the server that no more messages follow. Recv can still receive.
func (s *Stream) CloseSend(ctx context.Context) error { return s.stream.CloseSend(ctx) }

// Recv returns the next message from the server, in JSON, or io.EOF after the last one: see [rpc.ClientStream.Recv]. It
// fails if a function without a stream of responses sends none, or more than one.
func (s *Stream) Recv(ctx context.Context) ([]byte, error) {
	err := s.stream.Recv(ctx, &s.raw)
	one := s.mode == idl.ClientStreams
	switch {
	case err == io.EOF && one && s.received == 0:
		return nil, executed(s.function, &thrift.ApplicationException{Kind: thrift.MissingResult, Message: "the stream ended without a response"})
	case err != nil:
		return nil, err
	case one && s.received > 0:
		return nil, executed(s.function, &thrift.ApplicationException{Kind: thrift.ProtocolError, Message: "the stream has more than one response"})
	}
	s.received++
	values, _, err := s.codec.Read(s.raw.Bytes, 0, s.response)
	if err != nil {
		return nil, executed(s.function, err)
	}
	text, err := s.codec.AppendJSON(nil, s.response, values)
	if err != nil {
		return nil, executed(s.function, err)
	}
	return text, nil
}

// Header returns the header that the handler has set: see [rpc.ClientStream.Header].
func (s *Stream) Header(ctx context.Context) (map[string]string, error) { return s.stream.Header(ctx) }

// Trailer returns the trailer that the handler has set, after the end: see [rpc.ClientStream.Trailer].
func (s *Stream) Trailer() map[string]string { return s.stream.Trailer() }

// Close ends the stream, if it has not ended.
func (s *Stream) Close() { s.stream.Close() }
