package rpc

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/driver"
	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
)

// ClientConfig configures a [Client]. All fields but Addr may be zero.
type ClientConfig struct {
	// Addr is host:port, or the path of a Unix socket if it begins with a slash. A host name is
	// resolved again whenever a connection is opened.
	Addr string
	// Transport is how messages are delimited. Apache Thrift servers need Framed or Buffered.
	Transport Transport
	// Compact selects the Compact protocol instead of the Binary protocol.
	Compact bool
	// Protobuf selects Protobuf messages, as Kitex sends them, instead of Thrift messages: see package protobufrpc. They
	// are always framed, so TTHeader is the same as TTHeaderFramed.
	Protobuf bool
	// Multiplexed prefixes function names with the service name, as Apache's TMultiplexedProtocol does. It is not for
	// TTHeader, which sends the service name in the header.
	Multiplexed bool
	// TLS, if not nil, encrypts connections. An empty ServerName is taken from Addr.
	TLS *tls.Config
	// Dialer, if not nil, opens connections in place of package net. The network is "tcp" or "unix". If TLS is set, it
	// runs over the returned connection.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

	// Timeout limits the duration of a call, including its retries. The earlier of it and the context's deadline applies.
	// If zero, it defaults to 10 s; if negative, only the context limits a call.
	Timeout time.Duration
	// DialTimeout limits how long opening a connection may take, and how long calls wait while there is none. If zero, it
	// defaults to 5 s.
	DialTimeout time.Duration
	// FailFast makes calls fail immediately, as NotSent, while the server is unreachable.
	FailFast bool
	// Retries is the maximum number of times that a failed call is retried. Only calls that are idempotent or were not
	// executed are retried. If zero, it defaults to 3; if negative, calls are not retried.
	Retries int
	// Budget, if not nil, bounds the retries of calls that the server may have received. The clients of a service may
	// share it.
	Budget *Budget
	// Backoff is the first pause between attempts to connect and between retries of a call; it doubles with each failure,
	// with jitter, up to MaxBackoff. If zero, they default to 20 ms and 2 s.
	Backoff, MaxBackoff time.Duration
	// Idempotent lists functions that are idempotent in addition to those declared so in the IDL: the name of a function,
	// or the names of service and function joined by a dot.
	Idempotent []string

	// MaxConnections is the maximum number of connections to a server that answers in order: calls wait when all are in
	// use. If zero, it defaults to 1,024, the maximum. A server that answers in any order needs only one.
	MaxConnections int
	// Depth is the number of idempotent calls in flight on one connection to such a server. If zero, it depends on how
	// fast the server is; 1 means one call at a time.
	Depth int
	// MaxCalls is the maximum number of calls in progress. Further ones fail with Overloaded. If zero, it defaults to
	// 65,536.
	MaxCalls int
	// MaxBytes bounds the encoded arguments of calls in progress, in bytes. They count twice because they are copied.
	// Calls that exceed it fail with Overloaded. If zero, it defaults to 256 MiB.
	MaxBytes int
	// MaxMessage is the maximum size of a message in bytes, including its header. If zero, it defaults to 16 MiB. A call
	// whose message would be larger fails; if a larger reply arrives, the connection is closed.
	MaxMessage int
	// MaxMemory limits the memory of a call's result: see thrift.Reader.MaxMemory.
	MaxMemory int

	// Observer, if not nil, is notified of every call.
	Observer slipstream.Observer
	// OnSlow is called for calls that take at least SlowThreshold. Both must be set, or neither.
	SlowThreshold time.Duration
	OnSlow        func(slipstream.Observation)
	// OnEvent, if not nil, is called when connections are opened and lost. It must not block.
	OnEvent func(slipstream.Event)
}

const (
	defaultClientCalls = 1 << 16
	defaultClientBytes = 256 << 20
	// mostFunctionName bounds the names that a client sends, so that its server accepts the messages.
	mostFunctionName = 16 << 10
)

// withDefaults returns c with zero fields replaced by their defaults.
func (c ClientConfig) withDefaults() ClientConfig {
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	if c.Timeout < 0 {
		c.Timeout = noDeadline
	}
	c.DialTimeout = cmp.Or(c.DialTimeout, 5*time.Second)
	c.Backoff = cmp.Or(c.Backoff, 20*time.Millisecond)
	c.MaxBackoff = max(cmp.Or(c.MaxBackoff, 2*time.Second), c.Backoff)
	c.MaxConnections = cmp.Or(c.MaxConnections, pipe.MaxSockets)
	c.MaxCalls = cmp.Or(c.MaxCalls, defaultClientCalls)
	c.MaxBytes = cmp.Or(c.MaxBytes, defaultClientBytes)
	c.MaxMessage = cmp.Or(c.MaxMessage, frame.DefaultMax)
	return c
}

// check returns an error if a field has an invalid value.
func (c *ClientConfig) check() error {
	const check driver.Check = "thrift/rpc"
	if err := check.Addr(c.Addr); err != nil {
		return err
	}
	return c.Validate()
}

// Validate returns an error if a field other than Addr has an invalid value.
func (c *ClientConfig) Validate() error {
	const check driver.Check = "thrift/rpc"
	if int(c.Transport) >= len(transports) {
		return fmt.Errorf("%s: %v, expected TTHeader, TTHeaderFramed, Framed or Buffered", check, c.Transport)
	}
	if c.Multiplexed && transports[c.Transport].HasHeader() {
		return fmt.Errorf("%s: Multiplexed is for the transports Framed and Buffered; %v sends the service name in its header", check, c.Transport)
	}
	if c.Protobuf && (c.Compact || c.Multiplexed || c.Transport == Buffered) {
		return fmt.Errorf("%s: Protobuf cannot be combined with Compact, Multiplexed or Buffered; use TTHeader or Framed", check)
	}
	for _, name := range c.Idempotent {
		if name == "" || strings.Count(name, ".") > 1 {
			return fmt.Errorf("%s: invalid idempotent function %q; expected a name such as get or Catalog.get", check, name)
		}
	}
	if err := check.Numbers(
		driver.Number{Name: "max connections", Value: c.MaxConnections, Max: pipe.MaxSockets},
		driver.Number{Name: "depth", Value: c.Depth, Max: 1 << 16},
		driver.Number{Name: "max calls", Value: c.MaxCalls, Max: math.MaxInt32},
		driver.Number{Name: "max bytes", Value: c.MaxBytes, Max: math.MaxInt},
		driver.Number{Name: "max message", Value: c.MaxMessage, Max: math.MaxInt32},
		driver.Number{Name: "max memory", Value: c.MaxMemory, Max: math.MaxInt},
	); err != nil {
		return err
	}
	if err := check.Durations(
		driver.Duration{Name: "dial timeout", Value: c.DialTimeout},
		driver.Duration{Name: "backoff", Value: c.Backoff},
		driver.Duration{Name: "max backoff", Value: c.MaxBackoff},
		driver.Duration{Name: "slow threshold", Value: c.SlowThreshold},
	); err != nil {
		return err
	}
	return check.Slow(c.SlowThreshold, c.OnSlow)
}
