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
	// Options apply to every node. Addr must be empty, and DB must be 0, because a cluster has only
	// that database. MaxCalls and MaxBytes bound the calls to each node; MaxExclusive bounds the
	// dedicated connections to all nodes together. A call whose node is down waits until the node
	// is back or another node owns its slots, for at most DialTimeout, unless FailFast is set.
	Options
	// Seeds are the addresses of some nodes, in the form of Options.Addr. One that answers is enough.
	Seeds []string
	// MapAddr, if set, translates the address of a node, host:port as the cluster announces it, into
	// the address to dial. Clusters behind network address translation need it. It must be safe for
	// concurrent use and always return the same result for the same address.
	MapAddr func(addr string) string
	// RefreshEvery is the interval, with jitter, at which the client queries the map of slots when
	// nothing indicates that it has changed. If zero, it defaults to 60 s.
	RefreshEvery time.Duration
	// ReadFrom selects the nodes that execute commands that only read. Zone is the availability zone
	// of the program; only ReadZone uses it.
	ReadFrom ReadPolicy
	Zone     string
	// SplitMSet lets [Client.MSet] set keys in different slots by sending one command for each
	// slot. Such an MSET is not atomic. If SplitMSet is false, MSet with keys in different slots
	// fails.
	SplitMSet bool
}

// ErrCrossSlot is in the chain of the error of a command or transaction whose keys are in different
// slots of a cluster. It was not sent.
var ErrCrossSlot = errors.New("the keys are in different slots; give them the same hash tag, as in {user}:1 and {user}:2")

// ConnectCluster returns a client of a Redis Cluster once it knows the map of slots and is connected to
// the masters. After the first connection it waits at most 100 ms for the others. The client sends
// each command to the node that owns its keys and follows the cluster through failovers and
// migrations; see the package comment. Options.NoWait makes ConnectCluster return immediately. The
// client must be closed.
func ConnectCluster(ctx context.Context, o ClusterOptions) (*Client, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &Client{core: newCore(&o.Options), fail: driver.Errors{Addr: strings.Join(o.Seeds, ",")}}
	c.several, c.hooks.Addr = true, c.fail.Addr
	c.hub = newHub(c.core, c.fail, func() *node { return c.router.any() })
	c.hub.gone = func(n *node) bool { return c.router.gone(n) }
	c.router = newRouter(c.core, c.hub, &o)
	c.hub.shards = c.router
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
		return errors.New("redis: ClusterOptions.Seeds is empty; set the address of at least one node")
	case o.Addr != "":
		return fmt.Errorf("redis: ClusterOptions.Addr is %q; use Seeds instead", o.Addr)
	case o.DB != 0:
		return fmt.Errorf("redis: ClusterOptions.DB is %d; a cluster has only database 0", o.DB)
	}
	if o.ReadFrom > ReadZone {
		return fmt.Errorf("redis: ClusterOptions.ReadFrom is %d; use one of the constants of ReadPolicy", o.ReadFrom)
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
