package rpc

import (
	"errors"

	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/thrift"
)

// Streams: docs/design/streaming.md is the overview.
//
//	streamclient.go  the client                 clientstream.go  a stream of a client
//	streamlink.go    a connection of a client   streamtyped.go   streams with types
//	streamserver.go  a connection of a server   serverstream.go  a stream of a handler
//	streaminbox.go   what a handler has not received yet
//	streamframes.go  frames                     streamconfig.go  configuration

// A StreamFunction is a function with streams, as clients open it.
type StreamFunction struct {
	Service string
	Name    string
}

// Errors of streams that are in the chain of those that callers and handlers get.
var (
	// ErrStreamOverflow means that the other side has sent more than StreamLimits.Unread bytes that were not received
	// by the program: it has no flow control, as Kitex has not, and the program was too slow.
	ErrStreamOverflow = pipe.ErrStreamOverflow
	// ErrStreamClosed means that the stream was closed by this side.
	ErrStreamClosed = pipe.ErrStreamClosed
	// ErrStreamEnded means that a message was not sent because the server had ended the stream. Recv returns why.
	ErrStreamEnded = pipe.ErrStreamEnded
	// ErrSendClosed means that a message was not sent because CloseSend had been called.
	ErrSendClosed = pipe.ErrSendClosed
	// ErrStreamReset means that the other side has reset the stream. The exception that it gave as the reason is in
	// the chain as well.
	ErrStreamReset = errors.New("the stream was reset by the other side")
	// ErrStreamLost means that the connection of the client of a stream has ended.
	ErrStreamLost = errors.New("the connection of the stream has ended")
)

// Names of keys in headers of frames. Frames with them, except for those that open streams, are of the kind meta, which
// Kitex ignores.
const (
	// keyWindow is how many bytes the other side may send on a stream before it gets credit. In the frame that opens a
	// stream it is that of the client for the stream; in a frame without a stream it is that of the server, for all
	// streams of the connection.
	keyWindow = "slipstream-window"
	// keyCredit is how many more bytes the other side of the stream may send.
	keyCredit = "slipstream-credit"
)

// firstCredit is how many bytes a client may send on a stream before it knows the window of the server.
const firstCredit = 64 << 10

// Kinds of the exceptions that say why a stream was reset. They are those of Kitex.
const (
	kindCanceled = 12007 // by the program
	kindInternal = 12011 // by the library
	kindDeadline = 12015
)

// resetError returns the error for a frame that resets a stream.
type resetError struct{ exception *thrift.ApplicationException }

// Error implements error.
func (e *resetError) Error() string { return ErrStreamReset.Error() + ": " + e.exception.Error() }

// Unwrap returns ErrStreamReset and the exception.
func (e *resetError) Unwrap() []error { return []error{ErrStreamReset, e.exception} }
