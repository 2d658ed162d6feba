package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

const three = "10.0.0.1:7001; 10.0.0.1:7002; 10.0.0.1:7003; 10.0.0.1:7004 of 10.0.0.1:7001; " +
	"0-5460 10.0.0.1:7001; 5461-10922 10.0.0.1:7002; 10923-16383 10.0.0.1:7003"

func TestTheThreeRepliesSayTheSame(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		for c, reply := range map[Command]any{Shards: threeShards(), Nodes: threeNodes(), SlotRanges: threeRanges()} {
			topology, err := parse(protocol, &Addresses{}, map[Command]any{c: reply, Info: info("ok", 7)})
			if err != nil {
				t.Fatal(err)
			}
			if got := describe(topology); got != three {
				t.Errorf("%v in RESP%d: %s\nexpected %s", c, protocol, got, three)
			}
			if topology.CurrentEpoch != 7 || topology.State != Up || topology.Covered() != slot.Count || topology.Doubt != "" || topology.From != "10.0.0.1:7001" {
				t.Errorf("%v: epoch %d, state %d, %d slots, doubt %q, from %s", c, topology.CurrentEpoch, topology.State, topology.Covered(), topology.Doubt, topology.From)
			}
		}
	}
}

func TestNodesOfReplies(t *testing.T) {
	for _, c := range []struct {
		name    string
		tls     bool
		replies map[Command]any
		want    string // the result of describe; not checked if empty
		check   func(*Topology) any
		expect  any
	}{
		{
			name:    "an endpoint that is null, empty or ? is the host that was asked",
			replies: map[Command]any{Shards: []any{shard([]any{0, 16383}, shardNode("a", 1, "master", "endpoint", nil, "ip", "10.9.9.9"), shardNode("b", 2, "replica", "endpoint", "", "ip", ""), shardNode("c", 3, "replica", "endpoint", "?", "ip", ""))}},
			want:    "10.0.0.1:1; 10.0.0.1:2 of 10.0.0.1:1; 10.0.0.1:3 of 10.0.0.1:1; 0-16383 10.0.0.1:1",
		},
		{
			name:    "? is the IP address if that is known",
			replies: map[Command]any{SlotRanges: []any{[]any{0, 16383, []any{"?", 1, id("a"), fields{"ip", "10.0.0.9"}}}}},
			want:    "10.0.0.9:1; 0-16383 10.0.0.9:1",
		},
		{
			name:    "a node without a port has no address and is left out",
			replies: map[Command]any{SlotRanges: []any{[]any{0, 5, []any{"", 0, id("a")}}, []any{6, 9, []any{"10.0.0.2", 1, id("b")}}}},
			want:    "10.0.0.2:1; 6-9 10.0.0.2:1",
		},
		{
			name:    "an endpoint that is an empty array is not known",
			replies: map[Command]any{SlotRanges: []any{[]any{6, 9, []any{"10.0.0.2", 1, id("b")}, []any{[]any{}, 0, id("a")}}}},
			want:    "10.0.0.2:1; 6-9 10.0.0.2:1",
		},
		{
			name:    "noaddr is left out, handshake is marked",
			replies: map[Command]any{Nodes: node("a", "10.0.0.1:1@2", "master", "-", 1, "0-9") + node("b", ":0@0", "master,noaddr", "-", 1, "") + node("c", "10.0.0.3:1@2", "handshake", "-", 0, "")},
			want:    "10.0.0.1:1; 10.0.0.3:1 handshake; 0-9 10.0.0.1:1",
		},
		{
			name:    "masters without slots are nodes",
			replies: map[Command]any{Shards: append(threeShards(), shard([]any{}, shardNode("e", 7005, "master")))},
			want:    strings.Replace(three, "7004 of 10.0.0.1:7001;", "7004 of 10.0.0.1:7001; 10.0.0.1:7005;", 1),
		},
		{
			name:    "a master that failed keeps its slots and is marked",
			replies: map[Command]any{Shards: []any{shard([]any{0, 16383}, shardNode("a", 1, "master", "health", "fail"), shardNode("b", 2, "replica", "health", "loading"))}},
			want:    "10.0.0.1:1 fail; 10.0.0.1:2 of 10.0.0.1:1 loading; 0-16383 10.0.0.1:1",
		},
		{
			name:    "of two masters of a shard, the one that has not failed owns the slots",
			replies: map[Command]any{Shards: []any{shard([]any{0, 16383}, shardNode("a", 1, "master", "health", "failed"), shardNode("b", 2, "master"))}},
			want:    "10.0.0.1:1 fail; 10.0.0.1:2; 0-16383 10.0.0.1:2",
		},
		{
			name: "flags of CLUSTER NODES",
			replies: map[Command]any{Nodes: node("a", "10.0.0.1:1@2", "myself,master", "-", 1, "0-1 3 5-6") + node("b", "10.0.0.2:1@2", "master,fail?", "-", 1, "2") +
				node("c", "10.0.0.3:1@2", "slave,fail,nofailover", "b", 1, "") + strings.Replace(node("d", "10.0.0.4:1@2", "slave", "x", 1, ""), " connected", " disconnected", 1)},
			want: "10.0.0.1:1; 10.0.0.2:1 fail?; 10.0.0.3:1 of 10.0.0.2:1 fail; 10.0.0.4:1 of ? disconnected; 0-1 10.0.0.1:1; 2-2 10.0.0.2:1; 3-3 10.0.0.1:1; 5-6 10.0.0.1:1",
		},
		{
			name:    "CLUSTER NODES of Redis 3, of a node that knows no address of itself",
			replies: map[Command]any{Nodes: node("a", ":7009", "myself,master", "-", 1, "0-9") + node("b", "fd00::1:7002", "master", "-", 1, "10")},
			want:    "10.0.0.1:7009; [fd00::1]:7002; 0-9 10.0.0.1:7009; 10-10 [fd00::1]:7002",
		},
		{
			name:    "CLUSTER SLOTS of Redis 3, which has no IDs",
			replies: map[Command]any{SlotRanges: []any{[]any{0, 9, []any{"10.0.0.1", 1}, []any{"10.0.0.1", 2}}, []any{10, 19, []any{"10.0.0.1", 3}}, []any{20, 29, []any{"10.0.0.1", 1}, []any{"10.0.0.1", 2}}}},
			want:    "10.0.0.1:1; 10.0.0.1:2 of 10.0.0.1:1; 10.0.0.1:3; 0-9 10.0.0.1:1; 10-19 10.0.0.1:3; 20-29 10.0.0.1:1",
		},
		{
			name: "the TLS port is dialed with TLS", tls: true,
			replies: map[Command]any{Shards: []any{shard([]any{0, 16383}, shardNode("a", 0, "master", "tls-port", 91), shardNode("b", 2, "replica"), shardNode("c", 3, "replica", "tls-port", 93))}},
			want:    "10.0.0.1:2 of 10.0.0.1:91; 10.0.0.1:91; 10.0.0.1:93 of 10.0.0.1:91; 0-16383 10.0.0.1:91",
		},
		{
			name:    "and not without",
			replies: map[Command]any{Shards: []any{shard([]any{0, 16383}, shardNode("a", 1, "master", "tls-port", 91), shardNode("b", 0, "replica", "tls-port", 92))}},
			want:    "10.0.0.1:1; 0-16383 10.0.0.1:1",
		},
		{
			name:    "two IDs at one address: the process is the one that has not failed",
			replies: map[Command]any{Nodes: node("a", "10.0.0.1:1@2", "master,fail", "-", 9, "0-9") + node("b", "10.0.0.1:1@2", "master", "-", 1, "10-19")},
			want:    "10.0.0.1:1; 0-19 10.0.0.1:1",
		},
		{
			name: "host names, zones and offsets",
			replies: map[Command]any{Shards: []any{fields{"id", id("s"), "slots", []any{0, 16383}, "nodes", []any{
				shardNode("a", 1, "master", "endpoint", "A.example.com", "hostname", "a.example.com", "availability-zone", "west-1", "replication-offset", 77, "new-field", []any{1, fields{"x", "y"}})}}}},
			check: func(t *Topology) any {
				n := t.Nodes[0]
				return fmt.Sprintln(n.Addr, n.Aliases, n.Hostname, n.Zone, n.Offset, t.Find("10.0.0.1:1"))
			},
			expect: "a.example.com:1 [10.0.0.1:1] a.example.com west-1 77 0\n",
		},
		{
			name:    "slots that move",
			replies: map[Command]any{Nodes: node("a", "10.0.0.1:1@2", "myself,master", "-", 1, "0-9 [3->-"+id("b")+"] [77-<-"+id("b")+"] [5->-"+id("x")+"]") + node("b", "10.0.0.2:1@2,b.example.com", "master", "-", 12, "10-99")},
			check: func(t *Topology) any {
				return fmt.Sprintln(t.Moving, t.ConfigEpoch, t.Nodes[1].Hostname, t.Find("b.example.com:1"))
			},
			expect: "[{3 0 1} {77 1 0} {5 0 -1}] 12 b.example.com 1\n",
		},
		{
			name:    "owners of CLUSTER NODES, endpoints of CLUSTER SHARDS",
			replies: map[Command]any{Nodes: threeNodes(), Shards: []any{shard([]any{}, shardNode("a", 7001, "master", "endpoint", "a.example.com", "hostname", "a.example.com", "availability-zone", "z"), shardNode("b", 7002, "master"))}},
			want: "10.0.0.1:7002; 10.0.0.1:7003; 10.0.0.1:7004 of a.example.com:7001; a.example.com:7001; " +
				"0-5460 a.example.com:7001; 5461-10922 10.0.0.1:7002; 10923-16383 10.0.0.1:7003",
		},
		{
			name:    "a loopback address of a server elsewhere is the host that was asked",
			replies: map[Command]any{SlotRanges: []any{[]any{0, 9, []any{"127.0.0.1", 7009, id("a")}}, []any{10, 19, []any{"localhost", 7010, id("b")}}}},
			want:    "10.0.0.1:7009; 10.0.0.1:7010; 0-9 10.0.0.1:7009; 10-19 10.0.0.1:7010",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			topology := mustParse(t, &Addresses{TLS: c.tls}, c.replies)
			if got := describe(topology); c.want != "" && got != c.want {
				t.Errorf("%s\nexpected %s", got, c.want)
			}
			if c.check != nil && c.check(topology) != c.expect {
				t.Errorf("%v, expected %v", c.check(topology), c.expect)
			}
		})
	}
}

func TestShardsInDoubtAreMarked(t *testing.T) {
	twoMasters := threeShards()
	twoMasters[0] = shard([]any{0, 5460}, shardNode("a", 7001, "master"), shardNode("d", 7004, "master"))
	noMaster := threeShards()
	noMaster[1] = shard([]any{5461, 10922}, shardNode("b", 7002, "replica"))
	noSlots := threeShards()
	noSlots[2] = shard([]any{}, shardNode("x", 7009, "master", "health", "fail"), shardNode("c", 7003, "master"))
	for name, reply := range map[string][]any{"two masters": twoMasters, "no master": noMaster, "no slots": noSlots} {
		topology := mustParse(t, &Addresses{}, map[Command]any{Shards: reply})
		if topology.Doubt == "" {
			t.Errorf("%s: no doubt", name)
		}
		for other, second := range map[Command]any{Nodes: threeNodes(), SlotRanges: threeRanges()} {
			topology := mustParse(t, &Addresses{}, map[Command]any{Shards: reply, other: second})
			if topology.Doubt != "" || topology.Covered() != slot.Count {
				t.Errorf("%s, after %v: %d slots, doubt %q", name, other, topology.Covered(), topology.Doubt)
			}
		}
	}
}

// Each reply is rejected with an error that says where the reply is wrong, what it contains, and
// what was expected.
func TestRepliesThatAreRefused(t *testing.T) {
	lines := func(slots string) string { return threeNodes() + node("e", "10.0.0.1:7005@1", "master", "-", 1, slots) }
	inShard := func(slots []any, nodes ...any) []any { return []any{shard(slots, nodes...)} }
	many := func(n int, v any) []any {
		list := make([]any, n)
		for i := range list {
			list[i] = v
		}
		return list
	}
	a := shardNode("a", 1, "master")
	for _, c := range []struct {
		name    string
		command Command
		reply   any
		want    string
	}{
		{"no array", Shards, "x", `reply to CLUSTER SHARDS: bulk string "x", expected an array of shards`},
		{"null", SlotRanges, nil, `reply to CLUSTER SLOTS: null, expected an array of ranges`},
		{"number", Nodes, 1, `reply to CLUSTER NODES: integer "1", expected text`},
		{"nothing", SlotRanges, []any{}, `reply to CLUSTER SLOTS: no node with a usable address, expected at least one`},
		{"too many shards", Shards, many(maxNodes+1, []any{}), `reply to CLUSTER SHARDS: array of 4097, expected an array of shards of 0 to 4096`},
		{"a shard that is a number", Shards, []any{1}, `reply to CLUSTER SHARDS, shard 0: integer "1", expected a shard of at most 64 fields`},
		{"odd slots", Shards, inShard([]any{0, 1, 2}, a), `reply to CLUSTER SHARDS, shard 0: an odd number of slots, expected the first and the last slot of each range`},
		{"slot out of range", Shards, inShard([]any{0, 16384}, a), `reply to CLUSTER SHARDS, shard 0: 16384, expected a slot from 0 to 16383`},
		{"negative slot", SlotRanges, []any{[]any{-1, 5, slotNodeOf("a", 1)}}, `reply to CLUSTER SLOTS, range 0: -1, expected a slot from 0 to 16383`},
		{"backwards", SlotRanges, []any{[]any{6, 5, slotNodeOf("a", 1)}}, `reply to CLUSTER SLOTS, range 0: the slots 6 to 5, expected slots from 0 to 16383`},
		{"two owners", SlotRanges, []any{[]any{0, 5, slotNodeOf("a", 1)}, []any{5, 6, slotNodeOf("b", 2)}}, `reply to CLUSTER SLOTS, range 1, node 0: slot 5 with a second owner, expected one owner of each slot`},
		{"a range twice", Shards, inShard([]any{0, 5, 0, 5}, a), `reply to CLUSTER SHARDS, shard 0: slot 0 with a second owner, expected one owner of each slot`},
		{"two roles", SlotRanges, []any{[]any{0, 5, slotNodeOf("a", 1)}, []any{6, 7, slotNodeOf("b", 2), slotNodeOf("a", 1)}}, `reply to CLUSTER SLOTS, range 1, node 1: the node "` + id("a") + `" in two roles, expected each node in one role`},
		{"an ID at two places", SlotRanges, []any{[]any{0, 5, slotNodeOf("a", 1)}, []any{6, 7, slotNodeOf("a", 2)}}, `reply to CLUSTER SLOTS, range 1, node 0: the node "` + id("a") + `" a second time, expected each node once`},
		{"an invalid port", SlotRanges, []any{[]any{0, 5, slotNodeOf("a", 65536)}}, `reply to CLUSTER SLOTS, range 0, node 0: 65536, expected a port from 0 to 65535`},
		{"no nodes", SlotRanges, []any{[]any{0, 5}}, `reply to CLUSTER SLOTS, range 0: array of 2, expected slots and nodes of 3 to 4098`},
		{"an invalid role", Shards, inShard([]any{0, 1}, shardNode("a", 1, "chief")), `reply to CLUSTER SHARDS, shard 0, node 0: the role "chief", expected master or replica`},
		{"no ID", Shards, inShard([]any{0, 1}, shardNode("a", 1, "master", "id", "")), `reply to CLUSTER SHARDS, shard 0, node 0: an ID of 0 bytes, expected 1 to 64`},
		{"an ID with a blank", Shards, inShard([]any{0, 1}, shardNode("a", 1, "master", "id", "a b")), `reply to CLUSTER SHARDS, shard 0, node 0: the ID "a b", expected letters and digits`},
		{"a long host", Shards, inShard([]any{0, 1}, shardNode("a", 1, "master", "endpoint", strings.Repeat("h", 254))), `reply to CLUSTER SHARDS, shard 0, node 0: a string of 254 bytes, expected an endpoint of at most 253`},
		{"an invalid host", Shards, inShard([]any{0, 1}, shardNode("a", 1, "master", "endpoint", "a b")), `reply to CLUSTER SHARDS, node ` + id("a") + `: the host "a b", expected an IP address or a host name`},
		{"short line", Nodes, threeNodes() + "x y z\n", `reply to CLUSTER NODES, line 4: 3 fields, expected at least 8`},
		{"a line's slot", Nodes, lines("16384"), `reply to CLUSTER NODES, line 4: the slots "16384", expected numbers from 0 to 16383`},
		{"a line's range", Nodes, lines("5-"), `reply to CLUSTER NODES, line 4: the slots "5-", expected numbers from 0 to 16383`},
		{"a line's owner", Nodes, lines("7"), `reply to CLUSTER NODES, line 4: slot 7 with a second owner, expected one owner of each slot`},
		{"a line's migration", Nodes, lines("[7->" + id("a") + "]"), `reply to CLUSTER NODES, line 4: the slot "[7->` + id("a") + `]", expected [slot->-id] or [slot-<-id]`},
		{"a line's address", Nodes, node("a", "10.0.0.1", "master", "-", 1, "0"), `reply to CLUSTER NODES, line 0: the address "10.0.0.1", expected ip:port@busport`},
		{"a line's ID", Nodes, threeNodes() + node("a", "10.0.0.9:1@2", "master", "-", 1, ""), `reply to CLUSTER NODES, line 4: the node "` + id("a") + `" a second time, expected each node once`},
		{"an epoch", Nodes, strings.Replace(threeNodes(), " 2 connected", " two connected", 1), `reply to CLUSTER NODES, line 1: the config epoch "two", expected a number`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, protocol := range []int{2, 3} {
				_, err := parse(protocol, &Addresses{}, map[Command]any{c.command: c.reply})
				var wrong *ReplyError
				if !errors.As(err, &wrong) || err.Error() != c.want {
					t.Errorf("RESP%d: %v\nexpected %s", protocol, err, c.want)
				}
			}
		})
	}
}

func TestManyRangesAreRefused(t *testing.T) {
	var slots []any
	for i := range maxRanges {
		slots = append(slots, i, i)
	}
	topology := mustParse(t, &Addresses{}, map[Command]any{Shards: []any{shard(slots, shardNode("a", 1, "master"))}})
	if len(topology.Ranges) != 1 || topology.Covered() != slot.Count {
		t.Errorf("%d ranges of %d slots", len(topology.Ranges), topology.Covered())
	}
	_, err := parse(3, &Addresses{}, map[Command]any{Shards: []any{shard(slots, shardNode("a", 1, "master")), shard([]any{0, 0}, shardNode("b", 2, "master"))}})
	if err == nil || !strings.Contains(err.Error(), "too many ranges of slots, expected at most 16384") {
		t.Error(err)
	}
}

func TestRefusedCommandsArePassedOver(t *testing.T) {
	unknown := errors.New("ERR Unknown subcommand or wrong number of arguments for 'shards'. Try CLUSTER HELP.")
	topology := mustParse(t, &Addresses{}, map[Command]any{Shards: unknown, Nodes: threeNodes(), Info: errors.New("NOPERM no")})
	if got := describe(topology); got != three || topology.CurrentEpoch != 0 || topology.State != Unknown {
		t.Errorf("%s, epoch %d, state %d", got, topology.CurrentEpoch, topology.State)
	}
	_, err := parse(2, &Addresses{}, map[Command]any{Shards: unknown})
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Command != "CLUSTER SHARDS" || refused.Text != unknown.Error() {
		t.Error(err)
	}
	if _, err := parse(2, &Addresses{}, map[Command]any{Shards: threeShards(), Info: "cluster_current_epoch:x"}); err == nil {
		t.Error("an epoch that is not a number was accepted")
	}
	if _, err := Parse("10.0.0.1:1", &Addresses{}, Replies{}); err == nil {
		t.Error("a set of replies without a topology was accepted")
	}
}

func TestOlderViewsAreKnown(t *testing.T) {
	at := func(replies map[Command]any) *Topology { return mustParse(t, &Addresses{}, replies) }
	five := at(map[Command]any{Shards: threeShards(), Info: info("ok", 5)})
	six := at(map[Command]any{Shards: threeShards(), Info: info("ok", 6)})
	nodes := at(map[Command]any{Nodes: threeNodes()}) // config epoch 3
	newer := at(map[Command]any{Nodes: strings.Replace(threeNodes(), " 3 connected", " 4 connected", 1)})
	none := at(map[Command]any{Shards: threeShards()})
	for _, c := range []struct {
		a, b *Topology
		want bool
	}{
		{five, six, true}, {six, five, false}, {five, five, false}, {nodes, newer, true}, {newer, nodes, false},
		{five, nodes, false}, {nodes, six, false}, {none, six, false}, {six, none, false},
	} {
		if got := c.a.olderThan(c.b); got != c.want {
			t.Errorf("epochs %d and %d are older than %d and %d: %v", c.a.CurrentEpoch, c.a.ConfigEpoch, c.b.CurrentEpoch, c.b.ConfigEpoch, got)
		}
	}
	moved := threeShards()
	moved[0] = shard([]any{0, 5459}, shardNode("a", 7001, "master"), shardNode("d", 7004, "replica"))
	moved[1] = shard([]any{5460, 10922}, shardNode("b", 7002, "master"))
	other := at(map[Command]any{Shards: moved})
	failed := threeShards()
	failed[2] = shard([]any{10923, 16383}, shardNode("c", 7003, "master", "health", "fail"))
	down := at(map[Command]any{Shards: failed})
	if !five.sameOwners(nodes) || five.sameOwners(other) || !five.sameOwners(down) || five.same(down) || !five.same(six) || !five.same(nodes) {
		t.Error("topologies are compared wrongly")
	}
}
