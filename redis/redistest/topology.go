package redistest

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/redis"
)

// cluster answers CLUSTER.
func (c *Conn) cluster(args []string) any {
	n := c.server.node
	if n == nil {
		return errNoCluster
	}
	name, args := args[0], args[1:]
	sub, ok := subcommands[strings.ToUpper(name)]
	switch {
	case !ok:
		return errSubcommand("CLUSTER", name)
	case len(args) != sub.args:
		return errArguments("cluster|" + strings.ToLower(name))
	}
	return sub.run(n, args)
}

// subcommands are the subcommands of CLUSTER.
var subcommands = map[string]struct {
	args int
	run  func(n *Node, args []string) any
}{
	"SHARDS":  {0, func(n *Node, _ []string) any { return n.cluster.shardsReply() }},
	"SLOTS":   {0, func(n *Node, _ []string) any { return n.cluster.slotsReply() }},
	"NODES":   {0, func(n *Node, _ []string) any { return verbatim(n.nodesReply()) }},
	"INFO":    {0, func(n *Node, _ []string) any { return verbatim(n.infoReply()) }},
	"MYID":    {0, func(n *Node, _ []string) any { return n.id }},
	"KEYSLOT": {1, func(_ *Node, args []string) any { return Slot(args[0]) }},
	"COUNTKEYSINSLOT": {1, func(n *Node, args []string) any {
		slot, err := integer(args[0])
		switch {
		case err != nil:
			return err
		case slot < 0 || slot >= Slots:
			return &redis.ServerError{Code: "ERR", Message: "Invalid slot"}
		}
		return len(n.server.space.in(int(slot)))
	}},
	"GETKEYSINSLOT": {2, func(n *Node, args []string) any {
		slot, err := integer(args[0])
		if err != nil {
			return err
		}
		most, err := integer(args[1])
		switch {
		case err != nil:
			return err
		case slot < 0 || slot >= Slots || most < 0:
			return &redis.ServerError{Code: "ERR", Message: "Invalid slot or number of keys"}
		}
		keys := n.server.space.in(int(slot))
		return keys[:min(most, int64(len(keys)))]
	}},
}

// in returns the keys in a slot, sorted.
func (k keyspace) in(slot int) []string {
	keys := []string{}
	for key := range k {
		if Slot(key) == slot {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// span is a range of slots of one shard.
type span struct {
	first, last int
	owner       *shard
}

// spans returns all ranges of slots, in order.
func (c *Cluster) spans() []span {
	var all []span
	for slot, owner := range &c.owners {
		if n := len(all); n > 0 && all[n-1].owner == owner {
			all[n-1].last = slot
			continue
		}
		all = append(all, span{slot, slot, owner})
	}
	return all
}

func (n *Node) role() string {
	if n.shard.master == n {
		return "master"
	}
	return "replica"
}

// host returns the host and the port of the node.
func (n *Node) host() (ip string, port int) {
	ip, text, _ := net.SplitHostPort(n.addr)
	port, _ = strconv.Atoi(text) // valid, because it is the address of a listener
	return ip, port
}

func (c *Cluster) shardsReply() any {
	spans := c.spans()
	list := []any{}
	for _, s := range c.shards {
		slots, nodes := []any{}, []any{}
		for _, r := range spans {
			if r.owner == s {
				slots = append(slots, r.first, r.last)
			}
		}
		for _, n := range s.inOrder() {
			ip, port := n.host()
			health := "online"
			if n.listener == nil {
				health = "fail"
			}
			nodes = append(nodes, map[string]any{
				"id": n.id, "port": port, "ip": ip, "endpoint": ip, "role": n.role(), "replication-offset": int64(*c.changes), "health": health,
			})
		}
		list = append(list, map[string]any{"slots": slots, "nodes": nodes})
	}
	return list
}

func (c *Cluster) slotsReply() any {
	list := []any{}
	for _, r := range c.spans() {
		entry := []any{r.first, r.last}
		for _, n := range r.owner.inOrder() {
			if n.listener == nil && n != r.owner.master {
				continue
			}
			ip, port := n.host()
			entry = append(entry, []any{ip, port, n.id, map[string]any{}})
		}
		list = append(list, entry)
	}
	return list
}

// nodesReply returns the reply to CLUSTER NODES.
func (n *Node) nodesReply() string {
	c := n.cluster
	var b strings.Builder
	for _, other := range c.nodes {
		flags, master, link := "slave", other.shard.master.id, "connected"
		if other.shard.master == other {
			flags, master = "master", "-"
		}
		if other == n {
			flags = "myself," + flags
		}
		if other.listener == nil {
			flags, link = flags+",fail", "disconnected"
		}
		_, port := other.host()
		fmt.Fprintf(&b, "%s %s@%d %s %s 0 0 %d %s", other.id, other.addr, port+10000, flags, master, other.shard.epoch, link)
		if other.shard.master == other {
			for _, r := range c.spans() {
				switch {
				case r.owner != other.shard:
				case r.first == r.last:
					fmt.Fprintf(&b, " %d", r.first)
				default:
					fmt.Fprintf(&b, " %d-%d", r.first, r.last)
				}
			}
		}
		if other == n && n.shard.master == n {
			b.WriteString(c.openSlots(n.shard))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// openSlots returns the slots that the shard is migrating or importing, in the notation of its
// master.
func (c *Cluster) openSlots(s *shard) string {
	var b strings.Builder
	for slot := range Slots {
		switch target := c.migrating[slot]; {
		case target == nil:
		case c.owners[slot] == s:
			fmt.Fprintf(&b, " [%d->-%s]", slot, target.master.id)
		case target == s:
			fmt.Fprintf(&b, " [%d-<-%s]", slot, c.owners[slot].master.id)
		}
	}
	return b.String()
}

// infoReply returns the reply to CLUSTER INFO.
func (n *Node) infoReply() string {
	c := n.cluster
	state, size, epoch := "ok", 0, 0
	if c.down {
		state = "fail"
	}
	for _, s := range c.shards {
		epoch = max(epoch, s.epoch)
		if slices.Contains(c.owners[:], s) {
			size++
		}
	}
	return fmt.Sprintf("cluster_state:%s\r\ncluster_slots_assigned:%d\r\ncluster_slots_ok:%d\r\ncluster_slots_pfail:0\r\ncluster_slots_fail:0\r\n"+
		"cluster_known_nodes:%d\r\ncluster_size:%d\r\ncluster_current_epoch:%d\r\ncluster_my_epoch:%d\r\n",
		state, Slots, Slots, len(c.nodes), size, epoch, n.shard.epoch)
}
