package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/driver"
)

// ClusterOptions configure the [Client] of a Redis Cluster. Only Seeds are necessary.
type ClusterOptions struct {
	// Options are those of every node. Addr must be empty and DB 0, which is the only database of
	// a cluster. MaxCalls and MaxBytes bound the calls to each node, MaxExclusive the dedicated
	// connections to all. A call whose node is away waits until the node is back or another one
	// has its slots, at most for DialTimeout, unless FailFast is set.
	Options
	// Seeds are addresses of nodes, each as Options.Addr. One that answers is enough.
	Seeds []string
	// MapAddr, if set, translates the address of each node, host:port as the cluster states it,
	// into the one that is dialed: for clusters behind network address translation. It must be
	// safe for concurrent use and return the same address each time.
	MapAddr func(addr string) string
	// RefreshEvery is how often the map of slots is asked for, with jitter, when nothing says that
	// it has changed. If zero, it is 60 s.
	RefreshEvery time.Duration
	// ReadFrom selects the nodes of commands that only read. Zone is the availability zone of the
	// program, for ReadZone.
	ReadFrom ReadPolicy
	Zone     string
	// SplitMSet lets [Client.MSet] set keys of several slots, one command for each slot. MSET
	// across slots is not atomic; otherwise it is an error.
	SplitMSet bool
}

// ErrCrossSlot is in the chain of the error of a command or transaction whose keys have several
// slots, in a cluster. It was not sent.
var ErrCrossSlot = errors.New("the keys have several slots; give them one hash tag, as in {user}:1 and {user}:2")

// ConnectCluster returns a client of a Redis Cluster once the map of its slots is known and
// connections to its masters are up. For masters after the first one it waits at most 100 ms. The
// client sends each command to the node of its keys and follows the cluster through failovers and
// migrations; see the package comment. Options.NoWait makes it return immediately. The client must
// be closed.
func ConnectCluster(ctx context.Context, o ClusterOptions) (*Client, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &Client{core: newCore(&o.Options), fail: driver.Errors{Addr: strings.Join(o.Seeds, ",")}}
	c.hooks.Addr = c.fail.Addr
	c.hub = newHub(c.core, c.fail, func() *node { return c.router.any() })
	c.hub.clustered, c.hub.gone = true, func(n *node) bool { return c.router.gone(n) }
	c.router = newRouter(c.core, c.hub, &o)
	if o.NoWait {
		return c, nil
	}
	if err := c.router.connect(ctx); err != nil {
		c.Close()
		return nil, c.fail.NotSent("connect", err)
	}
	return c, nil
}

func (o *ClusterOptions) check() error {
	const check driver.Check = "redis"
	switch {
	case len(o.Seeds) == 0:
		return errors.New("redis: a cluster without Seeds")
	case o.Addr != "":
		return fmt.Errorf("redis: address %q of a cluster; use Seeds", o.Addr)
	case o.DB != 0:
		return fmt.Errorf("redis: database %d of a cluster, which has only 0", o.DB)
	}
	if o.ReadFrom > ReadZone {
		return fmt.Errorf("redis: read policy %d, expected one of the constants", o.ReadFrom)
	}
	for _, seed := range o.Seeds {
		if err := check.Addr(seed); err != nil {
			return err
		}
	}
	if err := check.Durations(driver.Duration{Name: "refresh interval", Value: o.RefreshEvery}); err != nil {
		return err
	}
	return o.Options.check()
}
