package rpc

import (
	"cmp"
	"context"
	"crypto/tls"
	"math"
	"net"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/driver"
	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
)

// StreamLimits bounds the streams of a client or a server. The zero value selects the defaults.
type StreamLimits struct {
	// Max is the maximum number of open streams. A client fails further ones with Overloaded, and a server refuses them.
	// If zero, it defaults to 1,024 for a client and 16,384 for a server. A server also allows at most
	// ServerConfig.MaxConnCalls streams per connection.
	Max int
	// Window is the maximum number of bytes of a stream that may have arrived but not yet been received by the program.
	// Each message counts as its size plus 90 bytes, and must fit in the window. Peers that use this package wait until
	// there is room. If zero, it defaults to 256 KiB.
	Window int
	// Unread is the same bound for other peers, which do not wait: a stream that exceeds it is reset. If zero, it defaults
	// to 1 MiB. It is raised to at least Window plus 64 KiB.
	Unread int
}

const (
	defaultWindow        = 256 << 10
	defaultUnread        = 1 << 20
	defaultClientStreams = 1 << 10
	defaultServerStreams = 16 << 10
	leastWindow          = 1 << 10
)

func (l StreamLimits) withDefaults(most int) StreamLimits {
	if l.Max <= 0 {
		l.Max = most
	}
	if l.Window <= 0 {
		l.Window = defaultWindow
	}
	l.Window = max(l.Window, leastWindow)
	if l.Unread <= 0 {
		l.Unread = defaultUnread
	}
	l.Unread = max(l.Unread, l.Window+firstCredit)
	return l
}

// StreamConfig configures a [StreamClient]. All fields but Addr may be zero.
type StreamConfig struct {
	// Addr is host:port, or the path of a Unix socket if it begins with a slash. A host name is
	// resolved again whenever a connection is opened.
	Addr string
	// TLS, if not nil, encrypts connections. An empty ServerName is taken from Addr.
	TLS *tls.Config
	// Dialer, if not nil, opens connections in place of package net. The network is "tcp" or "unix". If TLS is set, it
	// runs over the returned connection.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

	// Connections is the number of connections that the streams share. If zero, it defaults to 1.
	Connections int
	// DialTimeout limits how long opening a connection may take, and how long Open waits while there is none. If zero, it
	// defaults to 5 s.
	DialTimeout time.Duration
	// FailFast makes Open fail immediately while the server is unreachable.
	FailFast bool
	// Backoff is the first pause between attempts to connect; it doubles with each failure, with jitter, up to MaxBackoff.
	// If zero, they default to 20 ms and 2 s.
	Backoff, MaxBackoff time.Duration

	// Limits bounds the streams and the memory that they hold.
	Limits StreamLimits
	// MaxMessage is the maximum size of a message in bytes, including its header. If zero, it defaults to 16 MiB. A larger
	// message is not sent; if one arrives, the connection is closed.
	MaxMessage int
	// MaxMemory limits the memory of a received message: see thrift.Reader.MaxMemory.
	MaxMemory int

	// Observer, if not nil, is notified when a stream is closed.
	Observer slipstream.Observer
	// OnEvent, if not nil, is called when connections are opened and lost. It must not block.
	OnEvent func(slipstream.Event)
}

func (c StreamConfig) withDefaults() StreamConfig {
	c.Connections = cmp.Or(c.Connections, 1)
	c.DialTimeout = cmp.Or(c.DialTimeout, 5*time.Second)
	c.Backoff = cmp.Or(c.Backoff, 20*time.Millisecond)
	c.MaxBackoff = max(cmp.Or(c.MaxBackoff, 2*time.Second), c.Backoff)
	c.Limits = c.Limits.withDefaults(defaultClientStreams)
	c.MaxMessage = cmp.Or(c.MaxMessage, frame.DefaultMax)
	return c
}

// check returns an error if a field has an invalid value.
func (c *StreamConfig) check() error {
	const check driver.Check = "thrift/rpc"
	if err := check.Addr(c.Addr); err != nil {
		return err
	}
	if err := check.Numbers(
		driver.Number{Name: "connections", Value: c.Connections, Max: pipe.MaxSockets},
		driver.Number{Name: "max streams", Value: c.Limits.Max, Max: 1 << 20},
		driver.Number{Name: "window of streams", Value: c.Limits.Window, Max: math.MaxInt32},
		driver.Number{Name: "unread bytes of streams", Value: c.Limits.Unread, Max: math.MaxInt32},
		driver.Number{Name: "max message", Value: c.MaxMessage, Max: math.MaxInt32},
		driver.Number{Name: "max memory", Value: c.MaxMemory, Max: math.MaxInt},
	); err != nil {
		return err
	}
	return check.Durations(
		driver.Duration{Name: "dial timeout", Value: c.DialTimeout},
		driver.Duration{Name: "backoff", Value: c.Backoff},
		driver.Duration{Name: "max backoff", Value: c.MaxBackoff},
	)
}
