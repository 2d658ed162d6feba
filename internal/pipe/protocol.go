package pipe

import (
	"context"
	"net"
)

// A Protocol is supplied by a driver. It greets the server on a new socket, splits the received bytes
// into messages, and encodes a request that any healthy server answers.
// All other properties of a protocol are [Traits].
type Protocol interface {
	// Greet runs once on every new socket before any call, as plain blocking
	// code. The deadline of ctx has been set on c. Greet returns the bytes that it
	// has read after the greeting.
	Greet(ctx context.Context, c net.Conn) (rest []byte, err error)
	// NewScanner returns a scanner for a new socket.
	NewScanner() Scanner
	// AppendPing appends a request that is answered immediately, or nothing if the
	// protocol has no such request.
	AppendPing(b []byte) []byte
}

// A Verdict is the kind of message that a Scanner found.
type Verdict uint8

const (
	// Done means that a reply is complete.
	Done Verdict = iota
	// More means that the message is incomplete.
	More
	// Push means that a message that answers no request is complete.
	Push
	// Interim means that a message for the request with its ticket is complete, and that the reply
	// comes later. It is only for ByTicket.
	Interim
	// Part means that a frame of the stream with its ticket is complete, and that it is not the last. The last
	// frame of a stream is Done. It is only for Traits.Streams.
	Part
)

// A Frame is the message at the start of the received bytes.
type Frame struct {
	// Len is the length of the message. With More, it is a lower bound that is
	// greater than the number of bytes received.
	Len     int
	Verdict Verdict
	// Last means that the server accepts no more requests on this connection. The connection is
	// retired before the message is delivered: calls that were not sent move to another
	// connection, and the replies to those that were sent are awaited.
	Last bool
	// Ticket is the ticket of the reply, for ByTicket.
	Ticket uint64
}

// A Scanner splits the received bytes into messages. It is used by one goroutine at a time.
type Scanner interface {
	// Scan examines b, which starts with the current message. After
	// More it is called with the same bytes and more. An error closes the
	// socket, because nothing after it can be trusted.
	Scan(b []byte) (Frame, error)
}

// A Watcher is a Scanner that is informed of what happens to its connection. Its methods must not block. The
// scanners of probes are not informed.
type Watcher interface {
	Scanner
	// Opened is called once, before the connection can have calls that are pinned to it.
	Opened(p Pin)
	// Replied is called after n replies were matched, including those to calls that were given up, and
	// before their callers run. If overtaken is true, one of them answers a request that was sent before
	// one that was answered earlier.
	Replied(n int, overtaken bool)
	// Ended is called once, after the connection and all its calls have ended.
	Ended(cause error)
}

// A Completer is notified of the end of a call; no goroutine waits for the call.
type Completer interface {
	// Complete is called exactly once, on the goroutine that read the reply or
	// found the failure. It must not block, because all replies of that socket wait for
	// it. It owns c and must release it, now or later. A panic is recovered.
	Complete(c *Call)
}
