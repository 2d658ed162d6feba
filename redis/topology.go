package redis

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipstream-go/slipstream/redis/internal/cluster"
	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// Client.Topology returns the table, including what the client has learned from MOVED. AskTopology
// returns the view of one node, parsed by the same code. The command slipstream redis cluster
// compares the views by node ID, because nodes may know each other by different addresses.

// A Topology describes the nodes of a cluster and which of them own its slots.
type Topology struct {
	// From is the address of the node that was asked, and Source is the command whose reply
	// contained the owners of slots: "CLUSTER SHARDS", "CLUSTER NODES" or "CLUSTER SLOTS".
	From, Source string
	// Epoch is the current epoch of the cluster according to the node that was asked, or 0 if that
	// node does not report it.
	Epoch uint64
	// Down says whether that node considers the cluster down.
	Down bool
	// Nodes are the nodes, sorted by address. Nodes that are about to join are omitted.
	Nodes []NodeInfo
	// Slots are the slots that have an owner, in order and without overlaps.
	Slots []SlotRange
	// Moving are the slots that are being migrated. A node lists only the slots that it migrates or
	// imports itself, and only in its reply to CLUSTER NODES.
	Moving []MovingSlot
}

// A SlotRange is a range of slots, from First to Last, that the node at the address Node owns.
type SlotRange struct {
	First, Last int
	Node        string
}

// A MovingSlot is a slot that moves from one node to another. From and To are their addresses, or
// empty if a node is not listed.
type MovingSlot struct {
	Slot     int
	From, To string
}

// Slot returns the slot of a key in a cluster, from 0 to 16383. If the key has a hash tag, such as
// "user" in "{user}:1", only the tag counts.
func Slot(key string) int { return slot.Of(key) }

// Topology returns the topology that the client of a cluster uses, including what it has learned
// from redirects. It returns false if the client does not know one yet, or is not a client of a
// cluster.
func (c *Client) Topology() (t Topology, ok bool) {
	if !c.sharded() {
		return Topology{}, false
	}
	said := c.router.topology.Load()
	if said == nil {
		return Topology{}, false
	}
	t = topologyOf(said)
	t.Nodes = c.Nodes()
	t.Slots = nil
	table := c.router.nodes.Table()
	for s := range slot.Count {
		member := table.Route(uint16(s))
		if member == nil {
			continue
		}
		if n := len(t.Slots); n > 0 && t.Slots[n-1].Last == s-1 && t.Slots[n-1].Node == member.Node.Addr {
			t.Slots[n-1].Last = s
			continue
		}
		t.Slots = append(t.Slots, SlotRange{First: s, Last: s, Node: member.Node.Addr})
	}
	return t, true
}

var errNotCluster = errors.New("the client is not a client of a cluster; use ConnectCluster")

// AskTopology queries the node at addr, which must be an address returned by [Client.Nodes], for
// its view of the cluster. The client does not use the answer. The owners of slots are those in
// CLUSTER NODES if the node permits this command. The Stats of the nodes are zero.
func (c *Client) AskTopology(ctx context.Context, addr string) (Topology, error) {
	const op = "topology"
	if !c.sharded() {
		return Topology{}, c.fail.NotSent(op, errNotCluster)
	}
	member := c.router.nodes.Table().Find(addr)
	if member == nil {
		return Topology{}, c.fail.NotSent(op, fmt.Errorf("%w: %s", ErrUnknownNode, addr))
	}
	addr = member.Node.Addr
	commands := []cluster.Command{cluster.Nodes, cluster.Shards, cluster.SlotRanges, cluster.Info}
	frames, err := c.router.Ask(ctx, addr, commands)
	if err != nil {
		return Topology{}, member.Peer.fail.Named(op, err)
	}
	var replies cluster.Replies
	for i, command := range commands {
		replies[command] = frames[i]
	}
	view, err := cluster.Parse(addr, &c.router.addresses, replies)
	if err != nil {
		return Topology{}, member.Peer.fail.Executed(op, err)
	}
	return topologyOf(view), nil
}

// topologyOf converts a topology to the exported type.
func topologyOf(of *cluster.Topology) Topology {
	t := Topology{From: of.From, Source: of.Source.String(), Epoch: of.CurrentEpoch, Down: of.State == cluster.Down}
	addr := func(node int) string {
		if node < 0 {
			return ""
		}
		return of.Nodes[node].Addr
	}
	slots := make([]int, len(of.Nodes))
	for _, r := range of.Ranges {
		slots[r.Node] += int(r.Last) - int(r.First) + 1
		t.Slots = append(t.Slots, SlotRange{First: int(r.First), Last: int(r.Last), Node: addr(r.Node)})
	}
	for i := range of.Nodes {
		n := &of.Nodes[i]
		if n.Flags&cluster.Handshake == 0 {
			t.Nodes = append(t.Nodes, nodeInfoOf(n, addr(n.Master), slots[i]))
		}
	}
	for _, m := range of.Moving {
		t.Moving = append(t.Moving, MovingSlot{Slot: int(m.Slot), From: addr(m.From), To: addr(m.To)})
	}
	return t
}

// nodeInfoOf returns what the cluster says about a node.
func nodeInfoOf(n *cluster.Node, master string, slots int) NodeInfo {
	return NodeInfo{
		Addr: n.Addr, ID: n.ID, Zone: n.Zone, Replica: n.Replica, Master: master, Slots: slots,
		Failed: n.Flags&(cluster.Failed|cluster.MaybeFailed) != 0,
	}
}
