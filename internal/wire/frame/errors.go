package frame

import (
	"fmt"
	"strconv"
)

// Reason says why bytes are not a message.
type Reason uint8

// Reasons.
const (
	Unknown    Reason = iota + 1 // The bytes begin none of the supported transports.
	HTTP                         // The peer speaks HTTP.
	TLS                          // The peer begins a TLS handshake.
	THeader                      // The peer uses Apache's header transport, whose magic number is 0x0FFF.
	MeshHeader                   // The peer uses a mesh header, whose magic number is 0xFFAF.
	Zlib                         // The peer compresses messages.
	Streaming                    // The message is a frame of a stream.
	TooLarge                     // The message is larger than allowed.
	Malformed                    // The header, or the lengths around the message, contradict each other.
)

var reasons = [...]string{
	Unknown:    "the bytes are no Thrift message",
	HTTP:       "the peer speaks HTTP",
	TLS:        "the peer speaks TLS, for which this connection is not configured",
	THeader:    "the peer uses THeader (magic number 0x0FFF), which is not supported",
	MeshHeader: "the peer uses a mesh header (magic number 0xFFAF), which is not supported",
	Zlib:       "the peer uses the zlib transport, which is not supported",
	Streaming:  "the message is a frame of a stream, and no function of this server has streams, or the connection began with a call",
	TooLarge:   "the message is too large",
	Malformed:  "the message is malformed",
}

// String returns the reason in words.
func (r Reason) String() string {
	if int(r) < len(reasons) && reasons[r] != "" {
		return reasons[r]
	}
	return "unknown reason " + strconv.Itoa(int(r))
}

// Error says why bytes that a peer has sent are not a message. What follows them cannot be read.
type Error struct {
	Reason Reason
	Detail string // what was found, and what was expected; may be empty
}

// Error implements error.
func (e *Error) Error() string {
	text := "thrift/rpc: " + e.Reason.String()
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

func fail(r Reason, format string, args ...any) *Error {
	return &Error{r, fmt.Sprintf(format, args...)}
}

const expected = "expected the Binary or the Compact protocol, with the Buffered, Framed or TTHeader transport"
