package redis

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/driver"
	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// A NodeInfo describes a node of a cluster, as the client knows it.
type NodeInfo struct {
	// Addr is the address that the client dials. ID is the node ID.
	Addr, ID string
	// Replica says whether the node is a replica.
	Replica bool
	// Master is the address of the master of a replica. It is empty for masters, and for replicas
	// whose master is not listed.
	Master string
	// Zone is the availability zone that the node announces, if any.
	Zone string
	// Slots is the number of slots that the node owns.
	Slots int
	// Failed says whether the cluster, or the node that was asked, considers the node unreachable.
	Failed bool
	// Stats are the statistics of the shared connections to the node.
	Stats slipstream.Stats
}

// Nodes returns the nodes of the cluster, sorted by address. A client of a single server has one node.
func (c *Client) Nodes() []NodeInfo {
	if c.only != nil {
		return []NodeInfo{{Addr: c.only.fail.Addr, Stats: driver.Stats(c.only.engine.Snapshot(), 0, 0)}}
	}
	table := c.router.nodes.Table()
	members := table.Members()
	slots := make(map[*node]int, len(members))
	for s := range slot.Count {
		if member := table.Route(uint16(s)); member != nil {
			slots[member.Peer]++
		}
	}
	infos, masterOf := make([]NodeInfo, len(members)), make(map[*node]string)
	for _, member := range members {
		for _, replica := range member.Replicas {
			masterOf[replica.Peer] = member.Node.Addr
		}
	}
	for i, member := range members {
		infos[i] = nodeInfoOf(member.Node, masterOf[member.Peer], slots[member.Peer])
		infos[i].Stats = driver.Stats(member.Peer.engine.Snapshot(), 0, 0)
	}
	return infos
}

// ErrUnknownNode is in the chain of the error of [Client.Node] if no node has the address.
var ErrUnknownNode = errors.New("no node of the cluster has this address; Client.Nodes lists those that do")

// Node returns a client that sends all commands to the node at addr, which must be an address that
// [Client.Nodes] returns. The client shares the connections of c and ends when c is closed; closing
// it has no effect. It follows no redirects: a call fails with MOVED. To subscribe, use c.
func (c *Client) Node(addr string) (*Client, error) {
	if c.only != nil {
		if addr != c.only.fail.Addr {
			return nil, c.fail.NotSent("node", fmt.Errorf("%w: %s", ErrUnknownNode, addr))
		}
		return c, nil
	}
	member := c.router.nodes.Table().Find(addr)
	if member == nil {
		return nil, c.fail.NotSent("node", fmt.Errorf("%w: %s", ErrUnknownNode, addr))
	}
	return c.viewOf(member.Peer), nil
}

// viewOf returns a client that sends all commands to one node.
func (c *Client) viewOf(n *node) *Client {
	return &Client{core: c.core, fail: n.fail, only: n, hub: c.hub, view: true}
}

// ForEachMaster calls f with a client of each master in turn, and returns the joined errors. The
// single server of a client that is not for a cluster counts as its master.
func (c *Client) ForEachMaster(ctx context.Context, f func(ctx context.Context, master *Client) error) error {
	return c.forEach(ctx, false, f)
}

// ForEachNode is like [Client.ForEachMaster], but includes replicas.
func (c *Client) ForEachNode(ctx context.Context, f func(ctx context.Context, node *Client) error) error {
	return c.forEach(ctx, true, f)
}

func (c *Client) forEach(ctx context.Context, replicas bool, f func(context.Context, *Client) error) (err error) {
	if c.only != nil {
		return f(ctx, c)
	}
	for _, n := range c.router.each(replicas) {
		if of := f(ctx, c.viewOf(n)); of != nil {
			err = errors.Join(err, fmt.Errorf("node %s: %w", n.fail.Addr, of))
		}
	}
	return err
}

// Addr returns the address of the server. For a client of a cluster, it is the list of seeds; for a
// client returned by [Client.Node], it is the address of the node.
func (c *Client) Addr() string { return c.fail.Addr }

// scanAll implements [Client.Scan] over all masters.
func (c *Client) scanAll(ctx context.Context, o ScanOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, n := range c.router.each(false) {
			for key, err := range c.viewOf(n).Scan(ctx, o) {
				if !yield(key, err) || err != nil {
					return
				}
			}
		}
	}
}
