package pipe

import (
	"cmp"
	"context"
	"net"
	"time"

	"github.com/slipstream-go/slipstream"
)

// Config configures an Engine. The zero value of every field but Protocol and Dial is usable.
type Config struct {
	Protocol Protocol
	// Traits are the properties of Protocol.
	Traits Traits
	// Addr is the address in errors and events.
	Addr string
	// Dial opens a connection: TCP, unix or TLS. The engine sets the options of TCP
	// sockets.
	Dial func(ctx context.Context) (net.Conn, error)

	// Sockets is the number of connections, at most MaxSockets, until SetSockets changes it. If zero, it
	// defaults to 1, which makes the largest batches.
	Sockets int
	// MaxCalls bounds the calls that are queued or in flight. If zero, it defaults to 65,536. A socket has
	// at most 4,194,304.
	MaxCalls int
	// MaxBytes bounds the memory of the calls that are queued or in flight: the bytes of
	// their requests, twice because they are copied, and callCost for each call. If zero, it defaults to 64 MiB.
	MaxBytes int
	// WaitWhenFull makes a call wait for room until its context ends. If false, the call
	// fails immediately as Overloaded.
	WaitWhenFull bool
	// FailFast makes a call fail immediately as NotSent while there is no connection.
	// If false, the call waits for one until its context ends, at most DialTimeout.
	FailFast bool

	// DialTimeout bounds dialing and greeting. If zero, it defaults to 5 s.
	DialTimeout time.Duration
	// Backoff and MaxBackoff bound the pause between attempts to connect, which
	// doubles and is jittered. If zero, they default to 20 ms and 2 s.
	Backoff, MaxBackoff time.Duration
	// StallTimeout is how long a server that owes replies may be silent. If zero, it defaults to 5 s;
	// if negative, there is no limit.
	StallTimeout time.Duration
	// IdlePing is how long a socket may be idle before it is pinged. If zero, it defaults to 15 s;
	// if negative, idle sockets are not pinged.
	IdlePing time.Duration
	// Timeout is the deadline of calls whose context has no earlier one. If zero, there is none.
	Timeout time.Duration

	// Streams bound what streams hold.
	Streams StreamConfig

	// OnPush receives messages that answer no request, on the reading goroutine.
	// The frame is valid until OnPush returns; from is the connection that it came from. If
	// nil, such messages are dropped.
	OnPush func(from Pin, frame []byte)
	// OnEvent receives the events of connections, on the goroutine that keeps them. It must
	// not block.
	OnEvent func(slipstream.Event)
	// OnSilence, if set, is called about twice a second while the server owes replies and has been
	// silent for a second longer than its calls are known to take: long before StallTimeout, for a
	// driver that can ask other servers about this one. It must not block.
	OnSilence func()

	// OneOfSeveral says that the callers of this engine also call other engines, as those of a cluster do.
	OneOfSeveral bool

	// FlushFactor is k of the flush rule. If zero, k follows the round trip.
	FlushFactor int

	// choices are set only by this package's measurements.
	choices Choices
}

// StreamConfig bounds what streams hold. The zero value is usable. Bytes are counted as they are sent or
// received, with 64 more for each frame received and 640 more for each frame sent. The allocated
// memory may be up to twice as much.
type StreamConfig struct {
	// ReceiveBytes bounds what a stream has received and Recv has not returned. If zero, it defaults to
	// 64 KiB. A frame that does not fit ends the stream. The last frame of a stream always fits: it
	// is held like the reply to a call.
	ReceiveBytes int
	// SendBytes bounds what a stream has queued and not written. If zero, it defaults to 64 KiB. Send waits for
	// room. A larger frame is sent when nothing else of the stream is queued.
	SendBytes int
	// SocketBytes is the same bound for all streams of a connection together. If zero, it defaults to 256 KiB.
	SocketBytes int
	// MaxBytes bounds the sum of ReceiveBytes of the streams that are open or have frames that
	// Recv has not returned. If zero, it defaults to 64 MiB.
	MaxBytes int
}

func (c StreamConfig) withDefaults() StreamConfig {
	c.ReceiveBytes = max(cmp.Or(c.ReceiveBytes, 64<<10), 1)
	c.SendBytes = max(cmp.Or(c.SendBytes, 64<<10), 1)
	c.SocketBytes = max(cmp.Or(c.SocketBytes, 256<<10), 1)
	c.MaxBytes = max(cmp.Or(c.MaxBytes, 64<<20), c.ReceiveBytes)
	return c
}

// Choices disable single decisions of the engine, to measure them.
type Choices struct {
	NeverYield, AlwaysYield bool
	// ReaderYields makes readers yield also with one connection.
	ReaderYields bool
	// SoloAfter is the number of lone calls after which callers read their own
	// replies. If zero, it defaults to soloNeeded; if negative, they never do.
	SoloAfter int
	// FlushBytes replaces flushBytes, LinkedFrame linkedFrame, DirectReply directReply,
	// and SweepEvery sweepEvery, if not zero.
	FlushBytes, LinkedFrame, DirectReply int
	SweepEvery                           time.Duration
}

// WithChoices returns c with the given choices. Only measurements use it.
func (c Config) WithChoices(ch Choices) Config {
	c.choices = ch
	return c
}

// withDefaults returns c with every zero field replaced by its default.
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
