package redis

import (
	"errors"
	"sync/atomic"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/driver"
	"github.com/slipstream-go/slipstream/internal/pipe"
)

// A node is one server of a client: the connections that its callers share, and what is needed to
// open connections that one caller has for itself.
type node struct {
	// Immutable.
	fail   driver.Errors
	opts   Options // with the address of the node
	aside  Options // opts of connections on which nothing is read for the cache
	engine *pipe.Engine

	// Atomics. Of a master in a cluster: written by callers that read.
	reads atomic.Pointer[readChoice]
}

// newNode returns the server that options lead to. Its connections are opened in the background.
// OnEvent, if set, is called when they come and go.
func (c *core) newNode(o Options, onEvent func(Event)) *node {
	n := &node{fail: driver.Errors{Addr: o.addr()}, opts: o, aside: o}
	n.aside.Cache = nil
	cfg := pipe.Config{
		Protocol: newProtocol(&n.opts), Traits: traits, Addr: o.addr(), Dial: n.opts.endpoint().Dial,
		Sockets: o.Sockets, MaxCalls: o.MaxCalls, MaxBytes: o.MaxBytes, WaitWhenFull: o.WaitWhenFull, FailFast: o.FailFast,
		DialTimeout: o.DialTimeout, Backoff: o.Backoff, MaxBackoff: o.MaxBackoff,
		StallTimeout: o.StallTimeout, Timeout: o.Timeout,
	}
	cfg.OnEvent = onEvent
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

// notLeased is the error of a command for which there is no connection.
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
