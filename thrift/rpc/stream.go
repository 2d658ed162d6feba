package rpc

import (
	"errors"

	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/thrift"
)

// Streams: docs/design/streaming.md is the overview.
//
//	streamclient.go  the client                 clientstream.go  a client's stream
//	streamlink.go    a client connection        streamtyped.go   typed streams
//	streamserver.go  a server connection        serverstream.go  a handler's stream
//	streaminbox.go   messages that a handler has not received yet
//	streamframes.go  frames                     streamconfig.go  configuration
//	streammeta.go    headers and trailers

// A StreamFunction names a streaming function that a client can open.
type StreamFunction struct {
	Service string
	Name    string
}

// Stream errors that callers and handlers can find in the chain of the errors they get.
var (
	// ErrStreamOverflow means that more than StreamLimits.Unread bytes arrived before the program received them. It
	// happens only with peers that have no flow control, such as Kitex.
	ErrStreamOverflow = pipe.ErrStreamOverflow
	// ErrStreamClosed means that this side closed the stream.
	ErrStreamClosed = pipe.ErrStreamClosed
	// ErrStreamEnded means that a message was not sent because the server had ended the stream. Recv returns the reason.
	ErrStreamEnded = pipe.ErrStreamEnded
	// ErrSendClosed means that a message was not sent because CloseSend had been called.
	ErrSendClosed = pipe.ErrSendClosed
	// ErrStreamReset means that the peer reset the stream. The chain also has the exception with the peer's reason.
	ErrStreamReset = errors.New("the stream was reset by the peer")
	// ErrStreamLost means that the client's connection has ended.
	ErrStreamLost = errors.New("the stream's connection has ended")
)

// Keys in frame headers. Except in frames that open streams, they are sent in meta frames, which Kitex ignores.
const (
	// keyWindow is the number of bytes that the peer may send on a stream before it gets credit. In the frame that opens a
	// stream, it is the client's window for that stream; in a frame without a stream, it is the server's window for each
	// stream of the connection.
	keyWindow = "slipstream-window"
	// keyCredit is the number of additional bytes that the peer may send on the stream.
	keyCredit = "slipstream-credit"
)

// firstCredit is the number of bytes that a client may send on a stream before it knows the server's window.
const firstCredit = 64 << 10

// Kinds of exceptions that give the reason for a reset, as Kitex defines them.
const (
	kindCanceled = 12007 // by the program
	kindInternal = 12011 // by the library
	kindDeadline = 12015
)

// A resetError is the error for a frame that resets a stream.
type resetError struct{ exception *thrift.ApplicationException }

// Error implements error.
func (e *resetError) Error() string { return ErrStreamReset.Error() + ": " + e.exception.Error() }

// Unwrap returns ErrStreamReset and the exception.
func (e *resetError) Unwrap() []error { return []error{ErrStreamReset, e.exception} }
