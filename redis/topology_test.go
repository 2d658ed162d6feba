package redis_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
	"github.com/slipstream-go/slipstream/redis/redistest"
)

// fakeCluster starts an in-memory cluster and connects a client to it. Both are closed when the
// test ends.
func fakeCluster(t *testing.T, o redistest.ClusterOptions, prepare func(*redistest.Cluster)) (*redistest.Cluster, *redis.Client) {
	t.Helper()
	testkit.NoLeaks(t)
	cluster := redistest.NewCluster(o)
	t.Cleanup(cluster.Close)
	if prepare != nil {
		prepare(cluster)
	}
	c, err := redis.ConnectCluster(t.Context(), redis.ClusterOptions{Seeds: cluster.Addrs()})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return cluster, c
}

var errUnknown = &redis.ServerError{Code: "ERR", Message: "unknown subcommand"}

func unknown(*redistest.Conn, []string) any { return errUnknown }

// TestTopologyNamesItsSource: Source is the command whose reply contains the owners of slots.
func TestTopologyNamesItsSource(t *testing.T) {
	for _, test := range []struct {
		source  string
		unknown []string
	}{
		{"CLUSTER SHARDS", nil},
		{"CLUSTER NODES", []string{"CLUSTER SHARDS"}},
		{"CLUSTER SLOTS", []string{"CLUSTER SHARDS", "CLUSTER NODES"}},
	} {
		t.Run(test.source, func(t *testing.T) {
			cluster, c := fakeCluster(t, redistest.ClusterOptions{Masters: 2, ReplicasPer: 1}, func(cluster *redistest.Cluster) {
				for _, command := range test.unknown {
					cluster.Handle(command, unknown)
				}
			})
			in, ok := c.Topology()
			if !ok || in.Source != test.source || !slices.Contains(cluster.Addrs(), in.From) || in.Epoch != 2 || in.Down {
				t.Errorf("topology known: %t, %+v; expected source %s", ok, in, test.source)
			}
			want := []redis.SlotRange{{First: 0, Last: 8191, Node: cluster.MasterOf(0).Addr()}, {First: 8192, Last: 16383, Node: cluster.MasterOf(8192).Addr()}}
			if len(in.Nodes) != 4 || !slices.Equal(in.Slots, want) {
				t.Errorf("%d nodes, slots %v; expected 4 and %v", len(in.Nodes), in.Slots, want)
			}
			asked, err := c.AskTopology(t.Context(), cluster.Addrs()[3])
			must(t, err)
			if test.source != "CLUSTER SLOTS" && asked.Source != "CLUSTER NODES" || asked.From != cluster.Addrs()[3] || !slices.Equal(asked.Slots, want) {
				t.Errorf("asked: %+v", asked)
			}
		})
	}
}

// TestTopologyHasWhatRedirectsTold: a MOVED changes the topology before a node is queried again.
func TestTopologyHasWhatRedirectsTold(t *testing.T) {
	cluster, c := fakeCluster(t, redistest.ClusterOptions{Masters: 2}, nil)
	to := cluster.MasterOf(16383)
	key := "b" // slot 3300
	cluster.MoveSlots(to, redis.Slot(key))
	must(t, c.Set(t.Context(), key, "v"))
	in, _ := c.Topology()
	at := slices.IndexFunc(in.Slots, func(r redis.SlotRange) bool { return r.First <= redis.Slot(key) && redis.Slot(key) <= r.Last })
	if at < 0 || in.Slots[at].Node != to.Addr() {
		t.Errorf("slot %d: %v, expected %s", redis.Slot(key), in.Slots, to.Addr())
	}
}

// TestAskTopologyIsTheViewOfThatNode: an outdated view of a node is returned as it is, and the
// moving slots are those reported by the node that was asked.
func TestAskTopologyIsTheViewOfThatNode(t *testing.T) {
	cluster, c := fakeCluster(t, redistest.ClusterOptions{Masters: 2}, nil)
	nodes := cluster.Nodes()
	cluster.BeginMigration(100, nodes[1])
	nodes[1].Handle("CLUSTER NODES", func(*redistest.Conn, []string) any {
		return strings.Join([]string{
			nodes[0].ID() + " " + nodes[0].Addr() + "@1 master,fail - 0 0 1 disconnected 0-99 101-8191",
			nodes[1].ID() + " " + nodes[1].Addr() + "@1 myself,master - 0 0 2 connected 100 8192-16383",
		}, "\n")
	})
	right, err := c.AskTopology(t.Context(), nodes[0].Addr())
	must(t, err)
	if want := []redis.MovingSlot{{Slot: 100, From: nodes[0].Addr(), To: nodes[1].Addr()}}; !slices.Equal(right.Moving, want) || len(right.Slots) != 2 {
		t.Errorf("moving %v, expected %v; slots %v", right.Moving, want, right.Slots)
	}
	other, err := c.AskTopology(t.Context(), nodes[1].Addr())
	must(t, err)
	at := slices.IndexFunc(other.Nodes, func(n redis.NodeInfo) bool { return n.ID == nodes[0].ID() })
	if len(other.Moving) != 0 || len(other.Slots) != 4 || at < 0 || !other.Nodes[at].Failed {
		t.Errorf("the other view: %+v", other)
	}
	if in, _ := c.Topology(); len(in.Slots) != 2 {
		t.Errorf("the client uses the answer: %v", in.Slots)
	}
	if _, err := c.AskTopology(t.Context(), "127.0.0.1:1"); !errors.Is(err, redis.ErrUnknownNode) {
		t.Errorf("a node that is not listed: %v", err)
	}
}

// TestTopologyIsThatOfAClusterOnly: a client of a single server has no topology, and says so.
func TestTopologyIsThatOfAClusterOnly(t *testing.T) {
	server := redistest.NewServer()
	defer server.Close()
	c := connect(t, server.Options())
	if topology, ok := c.Topology(); ok {
		t.Errorf("topology of one server: %+v", topology)
	}
	if _, err := c.AskTopology(t.Context(), c.Addr()); err == nil || !strings.Contains(err.Error(), "use ConnectCluster") {
		t.Errorf("one server: %v", err)
	}
}
