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

	// Sockets is the number of connections; 0: one, which gathers best.
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
	c.Sockets = max(c.Sockets, 1)
	c.MaxCalls = max(cmp.Or(c.MaxCalls, 65_536), 1)
	c.MaxBytes = max(cmp.Or(c.MaxBytes, 64<<20), 1)
	c.DialTimeout = cmp.Or(max(c.DialTimeout, 0), 5*time.Second)
	c.Backoff = cmp.Or(max(c.Backoff, 0), 20*time.Millisecond)
	c.MaxBackoff = max(cmp.Or(max(c.MaxBackoff, 0), 2*time.Second), c.Backoff)
	c.StallTimeout = cmp.Or(c.StallTimeout, 5*time.Second)
	c.IdlePing = cmp.Or(c.IdlePing, 15*time.Second)
	c.choices.SoloAfter = cmp.Or(c.choices.SoloAfter, soloNeeded)
	c.choices.FlushBytes = cmp.Or(c.choices.FlushBytes, flushBytes)
	c.choices.LinkedFrame = cmp.Or(c.choices.LinkedFrame, linkedFrame)
	c.choices.DirectReply = cmp.Or(c.choices.DirectReply, directReply)
	c.choices.SweepEvery = cmp.Or(c.choices.SweepEvery, sweepEvery)
	return c
}
