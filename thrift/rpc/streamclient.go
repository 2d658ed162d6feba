package rpc

import (
	"context"
	"fmt"
	"net"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/driver"
	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
)

// A StreamOpener opens streams. It is a [StreamClient] or a wrapper around one. Implementations must be safe for
// concurrent use.
type StreamOpener interface {
	// Open opens a stream, which ends when ctx does. The stream must be closed.
	Open(ctx context.Context, f *StreamFunction) (*ClientStream, error)
}

// A StreamClient opens streams to the services at one address. The streams share one or a few connections, which are
// not used for calls: a Kitex server decides by the first message of a connection whether it carries calls or streams.
// All methods are safe for concurrent use.
type StreamClient struct {
	// Immutable after NewStreamClient.
	config StreamConfig
	engine *pipe.Engine
	fail   driver.Errors
	hooks  driver.Hooks
}

// NewStreamClient returns a client that connects in the background. The client must be closed.
func NewStreamClient(config StreamConfig) (*StreamClient, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	c := &StreamClient{config: config.withDefaults(), fail: driver.Errors{Addr: config.Addr}}
	c.hooks.System, c.hooks.Addr, c.hooks.OnEvent, c.hooks.Observer = "thrift", config.Addr, config.OnEvent, config.Observer
	endpoint := &driver.Endpoint{Addr: config.Addr, TLS: config.TLS, Dialer: config.Dialer}
	limits := &c.config.Limits
	c.engine = pipe.New(pipe.Config{
		Protocol: streamProtocol{c},
		Traits: pipe.Traits{
			Match: pipe.ByTicket, TicketBits: 32, FirstTicket: 1, Place: pipe.LeastOutstanding,
			PutTicket: func(b []byte, ticket uint64) { frame.PutStream(b, uint32(ticket)) },
			Streams: &pipe.StreamTraits{
				AppendReset: appendReset, AppendCredit: appendCredit, Window: limits.Window,
				Credited: true, FirstCredit: firstCredit, Cost: frame.StreamCost,
			},
		},
		Addr: config.Addr, Dial: endpoint.Dial, Sockets: c.config.Connections,
		FailFast: config.FailFast, DialTimeout: c.config.DialTimeout, Backoff: c.config.Backoff, MaxBackoff: c.config.MaxBackoff,
		Streams: pipe.StreamConfig{ReceiveBytes: limits.Unread, MaxBytes: limits.Unread * limits.Max},
		OnPush:  takeCredit,
		OnEvent: c.hooks.Event,
	})
	return c, nil
}

// appendReset appends the frame that resets a stream.
func appendReset(b []byte, cause error) []byte {
	b, _ = appendEnd(b, 0, frame.StreamReset, resetReason(cause), nil) // a reset is small, so this cannot fail
	return b
}

// appendCredit appends the frame that allows the server to send n more bytes.
func appendCredit(b []byte, n int) []byte { return appendNotice(b, 0, keyCredit, n) }

// takeCredit grants a stream the credit in a message from the server.
func takeCredit(from pipe.Pin, message []byte) {
	if f, err := frame.OpenStream(message); err == nil && f.Info.Seq != 0 {
		from.Grant(uint64(uint32(f.Info.Seq)), number(f.Info.String(keyCredit)))
	}
}

// streamProtocol connects the codec to the engine.
type streamProtocol struct{ client *StreamClient }

// Greet implements [pipe.Protocol]. Streams have no greeting.
func (streamProtocol) Greet(context.Context, net.Conn) ([]byte, error) { return nil, nil }

// AppendPing implements [pipe.Protocol]. Streams have no ping.
func (streamProtocol) AppendPing(b []byte) []byte { return b }

// NewScanner implements [pipe.Protocol].
func (p streamProtocol) NewScanner() pipe.Scanner { return newStreamLink(p.client.config.MaxMessage) }

// Open implements [StreamOpener]. It waits for a connection, but not for the server. The deadline of ctx and its
// metadata (see [WithMeta]) are sent. Errors are of type *slipstream.Error.
func (c *StreamClient) Open(ctx context.Context, f *StreamFunction) (*ClientStream, error) {
	k := c.engine.Acquire()
	s, err := c.open(ctx, f, k)
	if err != nil {
		k.Release()
		return nil, err
	}
	return s, nil
}

// open implements Open with k, the call that opens the stream. If it returns an error, the caller must release k.
func (c *StreamClient) open(ctx context.Context, f *StreamFunction, k *pipe.Call) (*ClientStream, error) {
	var err error
	if len(f.Name)+len(f.Service) > mostFunctionName {
		err = fmt.Errorf("the service and function names have %d bytes; the limit is %d", len(f.Name)+len(f.Service), mostFunctionName)
	} else {
		k.Frame, err = appendOpening(ctx, k.Frame[:0], f, c.config.Limits.Window)
	}
	if err != nil {
		return nil, c.fail.NotSent(f.Name, &InvalidCallError{err})
	}
	s := newClientStream(ctx, c, f.Name)
	if s.stream, err = c.engine.OpenStream(ctx, k); err != nil {
		return nil, c.fail.Named(f.Name, err)
	}
	s.link = s.stream.Scanner().(*streamLink)
	s.link.join(s)
	return s, nil
}

// Connect waits until a connection is up. If the first attempt to connect fails, Connect returns its error, and
// attempts continue in the background. Calling Connect is optional.
func (c *StreamClient) Connect(ctx context.Context) error {
	if err := c.engine.Connect(ctx); err != nil {
		return c.fail.Named("connect", err)
	}
	return nil
}

// Close closes the client and ends all streams. It waits until all goroutines of the client have ended, so it must not
// be called from StreamConfig.OnEvent. Further calls do nothing.
func (c *StreamClient) Close() error { return c.engine.Close() }

// Shutdown stops opening streams, waits until the open ones have ended, and closes the client. If ctx ends first,
// Shutdown closes the client immediately and returns the error of ctx.
func (c *StreamClient) Shutdown(ctx context.Context) error { return c.engine.Shutdown(ctx) }

// StreamClientStats holds the counters of a client since it was created, and its current state.
type StreamClientStats struct {
	// Stats describes the connections. Each stream, and each frame sent on one, counts as a call.
	slipstream.Stats
	Open      int    // streams
	Overflows uint64 // streams that ended because the program received too slowly
}

// Stats returns the client's counters and current state.
func (c *StreamClient) Stats() StreamClientStats {
	s := c.engine.Snapshot()
	return StreamClientStats{driver.Stats(s, 0, c.hooks.Panics()), s.Streams, s.StreamOverflows}
}
