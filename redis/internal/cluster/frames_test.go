package cluster

import (
	"strconv"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// fields is a list of alternating names and values. It becomes a map in RESP3 and an array in
// RESP2.
type fields []any

// encode encodes a reply, which is nil, an error, string, int, []any or fields.
func encode(b []byte, protocol int, v any) []byte {
	switch v := v.(type) {
	case nil:
		if protocol == 2 {
			return resp.AppendNullBulk(b)
		}
		return resp.AppendNull(b)
	case error:
		return resp.AppendError(b, v.Error())
	case string:
		return resp.AppendBulkString(b, v)
	case int:
		return resp.AppendInt(b, int64(v))
	case []any:
		b = resp.AppendArrayHeader(b, len(v))
		for _, e := range v {
			b = encode(b, protocol, e)
		}
		return b
	case fields:
		if protocol == 2 {
			return encode(b, protocol, []any(v))
		}
		b = resp.AppendMapHeader(b, len(v)/2)
		for _, e := range v {
			b = encode(b, protocol, e)
		}
		return b
	}
	panic("no such reply")
}

// id returns a node ID that ends in name.
func id(name string) string { return strings.Repeat("0", 40-len(name)) + name }

// shardNode returns a node for CLUSTER SHARDS; more replaces and adds fields.
func shardNode(name string, port int, role string, more ...any) fields {
	f := fields{
		"id", id(name), "port", port, "ip", "10.0.0.1", "endpoint", "10.0.0.1", "role", role,
		"replication-offset", 100, "health", "online",
	}
next:
	for i := 0; i < len(more); i += 2 {
		for j := 0; j < len(f); j += 2 {
			if f[j] == more[i] {
				f[j+1] = more[i+1]
				continue next
			}
		}
		f = append(f, more[i], more[i+1])
	}
	return f
}

func shard(slots []any, nodes ...any) fields { return fields{"slots", slots, "nodes", nodes} }

// threeShards returns a whole cluster: masters at ports 7001 to 7003, and a replica of the first
// master at 7004.
func threeShards() []any {
	return []any{
		shard([]any{0, 5460}, shardNode("a", 7001, "master"), shardNode("d", 7004, "replica")),
		shard([]any{5461, 10922}, shardNode("b", 7002, "master")),
		shard([]any{10923, 16383}, shardNode("c", 7003, "master")),
	}
}

// node returns a line of CLUSTER NODES.
func node(name, addr, flags, master string, epoch int, slots string) string {
	if master != "-" {
		master = id(master)
	}
	return strings.TrimSuffix(id(name)+" "+addr+" "+flags+" "+master+" 0 1700000000000 "+strconv.Itoa(epoch)+" connected "+slots, " ") + "\n"
}

// threeNodes returns the cluster of threeShards in the form of CLUSTER NODES.
func threeNodes() string {
	return node("a", "10.0.0.1:7001@17001", "myself,master", "-", 1, "0-5460") +
		node("b", "10.0.0.1:7002@17002", "master", "-", 2, "5461-10922") +
		node("c", "10.0.0.1:7003@17003", "master", "-", 3, "10923-16383") +
		node("d", "10.0.0.1:7004@17004", "slave", "a", 1, "")
}

func slotNodeOf(name string, port int) []any { return []any{"10.0.0.1", port, id(name), fields{}} }

// threeRanges returns the cluster of threeShards in the form of CLUSTER SLOTS.
func threeRanges() []any {
	return []any{
		[]any{0, 5460, slotNodeOf("a", 7001), slotNodeOf("d", 7004)},
		[]any{5461, 10922, slotNodeOf("b", 7002)},
		[]any{10923, 16383, slotNodeOf("c", 7003)},
	}
}

func info(state string, epoch int) string {
	return "cluster_state:" + state + "\r\ncluster_slots_assigned:16384\r\ncluster_current_epoch:" + strconv.Itoa(epoch) + "\r\ncluster_my_epoch:1\r\n"
}

// parse encodes replies, by command, and parses them as replies of the node at 10.0.0.1:7001.
func parse(protocol int, a *Addresses, replies map[Command]any) (*Topology, error) {
	var frames Replies
	for c, v := range replies {
		frames[c] = encode(nil, protocol, v)
	}
	return Parse("10.0.0.1:7001", a, frames)
}

func mustParse(t *testing.T, a *Addresses, replies map[Command]any) *Topology {
	t.Helper()
	topology, err := parse(3, a, replies)
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

// describe returns a topology as a string: nodes, then ranges.
func describe(t *Topology) string {
	var b strings.Builder
	for _, n := range t.Nodes {
		b.WriteString(n.Addr)
		if n.Replica {
			b.WriteString(" of ")
			if n.Master >= 0 {
				b.WriteString(t.Nodes[n.Master].Addr)
			} else {
				b.WriteString("?")
			}
		}
		for i, name := range []string{"fail", "fail?", "handshake", "noaddr", "loading", "disconnected"} {
			if n.Flags&(1<<i) != 0 {
				b.WriteString(" " + name)
			}
		}
		b.WriteString("; ")
	}
	for _, r := range t.Ranges {
		b.WriteString(strconv.Itoa(int(r.First)) + "-" + strconv.Itoa(int(r.Last)) + " " + t.Nodes[r.Node].Addr + "; ")
	}
	return strings.TrimSuffix(b.String(), "; ")
}
