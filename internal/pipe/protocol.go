package pipe

import (
	"context"
	"net"
)

// Protocol is what a driver supplies: how a socket is greeted, how messages are
// cut off the bytes that arrive, and a request that any healthy server answers.
// Everything else that the engine has to know is in [Traits].
type Protocol interface {
	// Greet runs once on every new socket before any call, as plain blocking
	// code; the deadline of ctx is set on c already. It returns the bytes it
	// has read beyond the greeting.
	Greet(ctx context.Context, c net.Conn) (rest []byte, err error)
	// NewScanner is called once for each socket.
	NewScanner() Scanner
	// AppendPing appends a request that is answered at once, or nothing if the
	// protocol has none.
	AppendPing(b []byte) []byte
}

// Verdict is what a Scanner found.
type Verdict uint8

const (
	// Done: a reply is complete.
	Done Verdict = iota
	// More: the message is not complete.
	More
	// Push: a message that answers no request is complete.
	Push
	// Interim: a message that belongs to the request with its ticket, which goes on,
	// is complete. Only ByTicket.
	Interim
	// Part: a frame of the stream with its ticket, which goes on, is complete; the last frame of a
	// stream is Done. Only with Traits.Streams.
	Part
)

// A Frame is a message at the front of what was received.
type Frame struct {
	// Len is the length of the message; with More, a lower bound of it that is
	// greater than what is there.
	Len     int
	Verdict Verdict
	// Last: the server takes no requests on this connection after those that it has. The connection is
	// retired before anybody is given the message: calls that were not sent move to another
	// one, and those that were sent are awaited.
	Last bool
	// Ticket is the reply's, for ByTicket.
	Ticket uint64
}

// A Scanner cuts messages. It is used by one goroutine at a time.
type Scanner interface {
	// Scan looks at b, which begins where the current message begins: after
	// More it is called with the same bytes and more. An error closes the
	// socket, because nothing behind it can be trusted.
	Scan(b []byte) (Frame, error)
}

// A Completer is told of the end of a call, instead of somebody who waits.
type Completer interface {
	// Complete is called exactly once, on the goroutine that read the reply or
	// found the failure. It must not block: all replies of that socket wait for
	// it. It owns c and must release it, now or later. A panic is contained.
	Complete(c *Call)
}
