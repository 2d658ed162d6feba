package pipe

import (
	"cmp"
	"context"
	"net"
	"time"

	"github.com/slipstream-go/slipstream"
)

// Config says how an Engine works. Its zero value works once Protocol and Dial
// are set.
type Config struct {
	Protocol Protocol
	// Traits say what Protocol is.
	Traits Traits
	// Addr stands in errors and events.
	Addr string
	// Dial opens a connection: TCP, unix or TLS. The engine sets options of TCP
	// sockets itself.
	Dial func(ctx context.Context) (net.Conn, error)

	// Sockets is the number of connections, at most MaxSockets, until SetSockets changes it; 0: one,
	// which gathers best.
	Sockets int
	// MaxCalls bounds the calls queued and under way; 0: 65,536; at most 4,194,304
	// a socket.
	MaxCalls int
	// MaxBytes bounds the memory of the calls queued and under way: the bytes of
	// their requests, twice because they are copied, and callCost each; 0: 64 MiB.
	MaxBytes int
	// WaitWhenFull lets a call wait for room until its context ends. Otherwise it
	// fails at once as Overloaded.
	WaitWhenFull bool
	// FailFast fails a call as NotSent at once while there is no connection.
	// Otherwise it waits for one until its context ends, at most DialTimeout.
	FailFast bool

	// DialTimeout bounds dialling and greeting; 0: 5 s.
	DialTimeout time.Duration
	// Backoff and MaxBackoff bound the pause between attempts to connect, which
	// doubles and is jittered; 0: 20 ms and 2 s.
	Backoff, MaxBackoff time.Duration
	// StallTimeout is how long a server that owes replies may be silent; 0: 5 s,
	// negative: for ever.
	StallTimeout time.Duration
	// IdlePing is how long a socket may be idle before it is pinged; 0: 15 s,
	// negative: for ever.
	IdlePing time.Duration
	// Timeout is the deadline of calls whose context has no earlier one; 0: none.
	Timeout time.Duration

	// Streams bound what streams hold.
	Streams StreamConfig

	// OnPush is given messages that answer no request, on the reading goroutine;
	// frame is valid during the call, and the connection that it came from may be
	// pinned. nil: they are dropped.
	OnPush func(from Pin, frame []byte)
	// OnEvent is told of connections, on the goroutine that keeps them. It must
	// not block.
	OnEvent func(slipstream.Event)

	// FlushFactor is k of the flush rule; 0: from the round trip.
	FlushFactor int

	// choices are set by this package's measurements alone.
	choices Choices
}

// StreamConfig bounds what streams hold. Its zero value works. Bytes are counted as they are sent or
// received, with 64 more for each frame received and 640 more for each frame sent; memory comes in
// sizes that are up to twice as much.
type StreamConfig struct {
	// ReceiveBytes is how much a stream may hold that was received and that Recv has not taken; 0:
	// 64 KiB. A frame that does not fit ends the stream. The last frame of a stream always fits: it
	// is held as the reply to a call is.
	ReceiveBytes int
	// SendBytes is how much of a stream may be queued and not written; 0: 64 KiB. Send waits for
	// room. A larger frame is sent when nothing else of the stream is queued.
	SendBytes int
	// SocketBytes is the same for all streams of a connection together; 0: 256 KiB.
	SocketBytes int
	// MaxBytes bounds the sum of ReceiveBytes of the streams that are open, or that have frames that
	// Recv has not taken; 0: 64 MiB.
	MaxBytes int
}

func (c StreamConfig) withDefaults() StreamConfig {
	c.ReceiveBytes = max(cmp.Or(c.ReceiveBytes, 64<<10), 1)
	c.SendBytes = max(cmp.Or(c.SendBytes, 64<<10), 1)
	c.SocketBytes = max(cmp.Or(c.SocketBytes, 256<<10), 1)
	c.MaxBytes = max(cmp.Or(c.MaxBytes, 64<<20), c.ReceiveBytes)
	return c
}

// Choices switch single decisions of the engine off, to measure them.
type Choices struct {
	NeverYield, AlwaysYield bool
	// SoloAfter is the number of lone calls after which callers read their own
	// replies; 0: soloNeeded, negative: never.
	SoloAfter int
	// FlushBytes replaces flushBytes, LinkedFrame linkedFrame, DirectReply directReply,
	// SweepEvery sweepEvery; if zero, they are as they are.
	FlushBytes, LinkedFrame, DirectReply int
	SweepEvery                           time.Duration
}

// WithChoices returns c with decisions changed. Only measurements use it.
func (c Config) WithChoices(ch Choices) Config {
	c.choices = ch
	return c
}

// withDefaults returns c with every zero field replaced.
func (c Config) withDefaults() Config {
	c.Sockets = min(max(c.Sockets, 1), MaxSockets)
	c.MaxCalls = max(cmp.Or(c.MaxCalls, 65_536), 1)
	c.MaxBytes = max(cmp.Or(c.MaxBytes, 64<<20), 1)
	c.DialTimeout = cmp.Or(max(c.DialTimeout, 0), 5*time.Second)
	c.Backoff = cmp.Or(max(c.Backoff, 0), 20*time.Millisecond)
	c.MaxBackoff = max(cmp.Or(max(c.MaxBackoff, 0), 2*time.Second), c.Backoff)
	c.StallTimeout = cmp.Or(c.StallTimeout, 5*time.Second)
	c.IdlePing = cmp.Or(c.IdlePing, 15*time.Second)
	c.Streams = c.Streams.withDefaults()
	c.choices.SoloAfter = cmp.Or(c.choices.SoloAfter, soloNeeded)
	c.choices.FlushBytes = cmp.Or(c.choices.FlushBytes, flushBytes)
	c.choices.LinkedFrame = cmp.Or(c.choices.LinkedFrame, linkedFrame)
	c.choices.DirectReply = cmp.Or(c.choices.DirectReply, directReply)
	c.choices.SweepEvery = cmp.Or(c.choices.SweepEvery, sweepEvery)
	return c
}
