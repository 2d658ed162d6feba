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
	// Transport says how messages are delimited. Apache Thrift needs Framed or Buffered.
	Transport Transport
	// Compact selects the Compact protocol, in place of the Binary protocol.
	Compact bool
	// Protobuf selects messages of Protobuf, as Kitex sends them, in place of those of Thrift: see package protobufrpc. They
	// are always in a frame, so TTHeader is the same as TTHeaderFramed.
	Protobuf bool
	// Multiplexed writes the name of the service before that of the function, as Apache's
	// TMultiplexedProtocol does. TTHeader has a different field for it.
	Multiplexed bool
	// TLS, if not nil, encrypts connections. An empty ServerName is taken from Addr.
	TLS *tls.Config
	// Dialer, if not nil, opens connections in place of package net. The network is "tcp" or "unix".
	// TLS, if set, is spoken over what it returns.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

	// Timeout bounds a call, including its retries. It is a deadline for calls whose contexts have
	// none or a later one. If zero, it is 10 s; if negative, only the context bounds a call.
	Timeout time.Duration
	// DialTimeout bounds opening a connection, and how long calls wait while there is none. If zero, it is
	// 5 s.
	DialTimeout time.Duration
	// FailFast makes calls fail immediately, as NotSent, while the server cannot be connected to.
	FailFast bool
	// Retries is how often a call that failed is sent again, if that cannot execute it twice. If zero, it is
	// 3; if negative, calls are not repeated.
	Retries int
	// Budget, if not nil, bounds repetitions of calls that the server may have got. Clients of one service may share it.
	Budget *Budget
	// Backoff is the first pause between attempts to connect and between retries of a call; it
	// doubles and is jittered. If zero, it is 20 ms. MaxBackoff bounds it. If zero, it is 2 s.
	Backoff, MaxBackoff time.Duration
	// Idempotent adds functions to those that are declared to be idempotent: the name of a function, or
	// that of its service, a dot, and that of the function.
	Idempotent []string

	// MaxConnections bounds the connections to a server that answers in order: calls wait when all are in use.
	// If zero, it is 1,024, the maximum. Servers that answer in any order need one.
	MaxConnections int
	// Depth is how many idempotent calls such a server may have of one connection. If zero, it is decided by
	// how fast the server is; 1 makes it one call at a time.
	Depth int
	// MaxCalls bounds the calls in progress. Further ones fail as Overloaded. If zero, it is 65,536.
	MaxCalls int
	// MaxBytes bounds the arguments of calls in progress, in bytes of their encoding, which count twice
	// because they are copied. Calls that exceed it fail as Overloaded. If zero, it is 256 MiB.
	MaxBytes int
	// MaxMessage is how many bytes a message may have, with its header. If zero, it is 16 MiB. A call whose
	// message would be larger fails; a larger reply ends its connection.
	MaxMessage int
	// MaxMemory limits the memory of the result of a call: see thrift.Reader.MaxMemory.
	MaxMemory int

	// Observer, if not nil, is notified of every call.
	Observer slipstream.Observer
	// Calls that take at least SlowThreshold are reported to OnSlow. Both must be set, or neither.
	SlowThreshold time.Duration
	OnSlow        func(slipstream.Observation)
	// OnEvent, if not nil, is notified when connections come and go. It must not block.
	OnEvent func(slipstream.Event)
}

const (
	defaultClientCalls = 1 << 16
	defaultClientBytes = 256 << 20
	// mostFunctionName bounds the names that a client calls, so that its messages are readable for its server.
	mostFunctionName = 16 << 10
)

// withDefaults returns c with the defaults of fields that are zero.
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

// check returns an error if a field has a value that it cannot have.
func (c *ClientConfig) check() error {
	const check driver.Check = "thrift/rpc"
	if err := check.Addr(c.Addr); err != nil {
		return err
	}
	return c.Validate()
}

// Validate returns an error if a field other than Addr has a value that it cannot have.
func (c *ClientConfig) Validate() error {
	const check driver.Check = "thrift/rpc"
	if int(c.Transport) >= len(transports) {
		return fmt.Errorf("%s: %v, expected TTHeader, TTHeaderFramed, Framed or Buffered", check, c.Transport)
	}
	if c.Multiplexed && transports[c.Transport].HasHeader() {
		return fmt.Errorf("%s: Multiplexed is for the transports Framed and Buffered; %v has the name of the service in its header", check, c.Transport)
	}
	if c.Protobuf && (c.Compact || c.Multiplexed || c.Transport == Buffered) {
		return fmt.Errorf("%s: Protobuf with Compact, Multiplexed or Buffered, which are for messages of Thrift; expected TTHeader or Framed", check)
	}
	for _, name := range c.Idempotent {
		if name == "" || strings.Count(name, ".") > 1 {
			return fmt.Errorf("%s: the idempotent function %q, expected a name such as get or Catalog.get", check, name)
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
