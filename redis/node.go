package redis

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/driver"
	"github.com/slipstream-go/slipstream/internal/pipe"
)

// A node is one server of a client: its shared connections, and what is needed to open dedicated
// connections.
type node struct {
	// Immutable.
	fail   driver.Errors
	opts   Options // with the address of the node
	aside  Options // opts for connections that are not used for cached reads
	engine *pipe.Engine

	// Atomics. For a master in a cluster; written by callers that read.
	reads atomic.Pointer[readChoice]
	// hostname is the name in the certificate of the node, or nil for the host of its address. For
	// a node of a cluster, it is written by apply.
	hostname atomic.Pointer[string]
}

// name sets the host name that new connections expect in the certificate of the node. If empty, they
// expect the host of its address.
func (n *node) name(hostname string) {
	if known := n.hostname.Load(); hostname == "" && known != nil {
		n.hostname.Store(nil)
	} else if hostname != "" && (known == nil || *known != hostname) {
		n.hostname.Store(&hostname)
	}
}

// dial opens a connection to the node with the given options. A ServerName in the options takes
// precedence over the host name of the node.
func (n *node) dial(ctx context.Context, o *Options) (net.Conn, error) {
	e := o.endpoint()
	if hostname := n.hostname.Load(); hostname != nil && e.TLS != nil && e.TLS.ServerName == "" {
		e.TLS = e.TLS.Clone()
		e.TLS.ServerName = *hostname
	}
	return e.Dial(ctx)
}

// newNode returns the server at the address in the options. Its connections are opened in the
// background. Hostname is the name in its certificate; if empty, the host of the address is
// expected. OnEvent, if set, is called when a connection is opened, lost, or cannot be opened, and
// onSilence while the server is silent: see pipe.Config.
func (c *core) newNode(o Options, hostname string, onEvent func(Event), onSilence func()) *node {
	n := &node{fail: driver.Errors{Addr: o.addr()}, opts: o, aside: o}
	n.aside.Cache = nil
	n.name(hostname)
	cfg := pipe.Config{
		Protocol: newProtocol(&n.opts), Traits: traits, Addr: o.addr(), Dial: func(ctx context.Context) (net.Conn, error) { return n.dial(ctx, &n.opts) },
		Sockets: o.Sockets, MaxCalls: o.MaxCalls, MaxBytes: o.MaxBytes, WaitWhenFull: o.WaitWhenFull, FailFast: o.FailFast,
		DialTimeout: o.DialTimeout, Backoff: o.Backoff, MaxBackoff: o.MaxBackoff,
		StallTimeout: o.StallTimeout, Timeout: o.Timeout, OneOfSeveral: c.several,
	}
	cfg.OnEvent, cfg.OnSilence = onEvent, onSilence
	if c.cache != nil {
		empty := c.cache.empty
		if c.cache.epochs != nil {
			empty = func() { c.dropOf(n) }
		}
		c.withCache(&cfg, empty)
	}
	n.engine = pipe.New(cfg)
	return n
}

// notLeased returns the error of a command for which there is no connection.
func (n *node) notLeased(op string, err error) *slipstream.Error { return notLeased(n.fail, op, err) }

func notLeased(fail driver.Errors, op string, err error) *slipstream.Error {
	outcome := slipstream.NotSent
	switch {
	case errors.Is(err, errTooManyExclusive):
		outcome = slipstream.Overloaded
	case errors.Is(err, ErrClosed):
		outcome = slipstream.Closed
	}
	return fail.With(op, outcome, err)
}
