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

// StreamLimits bound the streams of a client or a server. The zero value has the defaults.
type StreamLimits struct {
	// Max is how many streams may be open. Further ones fail as Overloaded at a client, and are refused by a server. If
	// zero, it is 1,024 for a client and 16,384 for a server, of which a connection may have ServerConfig.MaxConnCalls.
	Max int
	// Window is how many bytes of a stream may have arrived without having been received by the program. Each message
	// counts 90 bytes in addition to its own, and must fit. Clients and servers of this package wait until there is
	// room. If zero, it is 256 KiB.
	Window int
	// Unread is the same bound for others, which do not wait: a stream with more is reset. If zero, it is 1 MiB. It is
	// at least 64 KiB more than Window.
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
	// Dialer, if not nil, opens connections in place of package net. The network is "tcp" or "unix".
	// TLS, if set, is spoken over what it returns.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

	// Connections is how many connections the streams share. If zero, there is one.
	Connections int
	// DialTimeout bounds opening a connection, and how long Open waits while there is none. If zero, it is 5 s.
	DialTimeout time.Duration
	// FailFast makes Open fail immediately while the server cannot be connected to.
	FailFast bool
	// Backoff is the first pause between attempts to connect; it doubles and is jittered. If zero, it is 20 ms.
	// MaxBackoff bounds it. If zero, it is 2 s.
	Backoff, MaxBackoff time.Duration

	// Limits bound the streams, and what they may hold.
	Limits StreamLimits
	// MaxMessage is how many bytes a message may have, with its header. If zero, it is 16 MiB. A message that is larger
	// is not sent; one that arrives ends its connection.
	MaxMessage int
	// MaxMemory limits the memory of a message that is received: see thrift.Reader.MaxMemory.
	MaxMemory int

	// Observer, if not nil, is notified of every stream when it is closed.
	Observer slipstream.Observer
	// OnEvent, if not nil, is notified when connections come and go. It must not block.
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

// check returns an error if a field has a value that it cannot have.
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
