package redistest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
	"github.com/slipstream-go/slipstream/redis/redistest"
)

// twins are a real cluster and a fake one with the same structure: node n of one corresponds to
// node n of the other.
type twins struct {
	t     *testing.T
	real  *rediscluster.Cluster
	fake  *redistest.Cluster
	names map[string]string // names of nodes, by address, port and ID
}

// sides are the connections to both, the real one first.
type sides [2]*wire

func newTwins(t *testing.T) *twins {
	t.Helper()
	testkit.NoLeaks(t)
	p := &twins{t: t, real: rediscluster.Start(t, rediscluster.Options{ReplicasPer: 1}), names: make(map[string]string)}
	p.fake = redistest.NewCluster(redistest.ClusterOptions{ReplicasPer: 1})
	t.Cleanup(p.fake.Close)
	for i, n := range p.real.Nodes() {
		p.name(i, n.ID(), n.Addr())
	}
	for i, n := range p.fake.Nodes() {
		p.name(i, n.ID(), n.Addr())
	}
	return p
}

func (p *twins) name(i int, id, addr string) {
	_, port, _ := strings.Cut(addr, ":")
	name := "node" + strconv.Itoa(i)
	p.names[id], p.names[addr], p.names[port] = name, name, name
}

// open connects to the same node of both clusters.
func (p *twins) open(i int, greeting ...string) sides {
	p.t.Helper()
	s := sides{open(p.t, p.real.Nodes()[i].Addr()), open(p.t, p.fake.Nodes()[i].Addr())}
	for _, command := range greeting {
		s[0].value(command)
		s[1].value(command)
	}
	return s
}

// ask returns both answers, with names of nodes in place of addresses.
func (p *twins) ask(s sides, command string) (real, fake string) {
	p.t.Helper()
	var answers [2]string
	for i, w := range s {
		answers[i] = p.named(w.ask(command))
	}
	return answers[0], answers[1]
}

// named replaces the address in a redirect.
func (p *twins) named(answer string) string {
	words := strings.Fields(answer)
	if len(words) == 3 && (words[0] == "-MOVED" || words[0] == "-ASK") {
		return strings.Join([]string{words[0], words[1], p.names[words[2]]}, " ")
	}
	return answer
}

// same checks that both clusters give the same answer.
func (p *twins) same(s sides, command string) {
	p.t.Helper()
	if real, fake := p.ask(s, command); real != fake {
		p.t.Errorf("%s: the fake answers %s, a Redis %s", command, fake, real)
	}
}

// TestFakeClusterIsLikeARealOne compares the answers of a real and a fake cluster: about the
// clusters themselves, and to random commands while slots move and replicas become masters.
func TestFakeClusterIsLikeARealOne(t *testing.T) {
	p := newTwins(t)
	p.compareTopology()
	p.compareCommands()
	p.compareChannels()
	r := testkit.Rand(t)
	tags := []string{"{a}", "{b}", "{c}", "{d}"}
	for round, tag := range tags[:3] {
		slot := redistest.Slot(tag)
		p.compareRandom(r, tags)
		to := slices.Index(p.fake.Nodes(), p.fake.MasterOf((slot+redistest.Slots/3)%redistest.Slots))
		m := p.real.BeginMigration(t, slot, p.real.Nodes()[to])
		m.Replace = true
		p.fake.BeginMigration(slot, p.fake.Nodes()[to])
		p.compareRandom(r, tags)
		moved := []string{tag + "0", tag + "1"}
		m.MoveKey(t, moved...)
		p.fake.MoveKey(moved...)
		p.compareRandom(r, tags)
		p.compareRandom(r, []string{tag})
		p.compareTopology()
		m.Finish(t)
		p.fake.FinishMigration(slot)
		p.compareTopology()
		if round == 1 {
			replica := 3 + to%3
			p.real.Failover(t, p.real.Nodes()[replica])
			p.fake.Failover(p.fake.Nodes()[replica])
			p.compareTopology()
		}
	}
	p.compareRandom(r, tags)
}

// compareRandom sends random commands on connections to all nodes. The data of replicas depends on
// timing, so only their errors are compared.
func (p *twins) compareRandom(r *rand.Rand, tags []string) {
	p.t.Helper()
	p.real.AwaitReplication(p.t)
	type client struct {
		sides
		replica, multi bool
	}
	var clients []*client
	for i, n := range p.fake.Nodes() {
		replica := !p.owns(n)
		for _, greeting := range []string{"READWRITE", "READONLY"} {
			clients = append(clients, &client{sides: p.open(i, greeting), replica: replica})
		}
	}
	for range 600 {
		c := clients[r.IntN(len(clients))]
		command := randomClusterCommand(r, tags)
		// While its slot is being migrated, Redis 7.0 treats a channel in a transaction as a key;
		// Redis 8.0 does not.
		if name, _, _ := strings.Cut(command, " "); c.multi && slices.Contains([]string{"WATCH", "MULTI", "CLUSTER", "SPUBLISH"}, name) {
			continue
		}
		real, fake := p.ask(c.sides, command)
		if command == "MULTI" {
			c.multi = true
		} else if command == "EXEC" || command == "DISCARD" {
			c.multi = false
		}
		if c.replica && !strings.HasPrefix(real, "-") && !strings.HasPrefix(fake, "-") {
			continue
		}
		if real != fake {
			p.t.Fatalf("%s, to %s: the fake answers %s, a Redis %s\n%s", command, c.sides[1].conn.RemoteAddr(), fake, real, p.real.State())
		}
	}
	// Open transactions are ended.
	for _, c := range clients {
		c.sides[0].conn.Close()
		c.sides[1].conn.Close()
	}
}

// owns reports whether the fake node is a master.
func (p *twins) owns(n *redistest.Node) bool {
	for slot := 0; slot < redistest.Slots; slot += 100 {
		if p.fake.MasterOf(slot) == n {
			return true
		}
	}
	return false
}

func randomClusterCommand(r *rand.Rand, tags []string) string {
	tag := func() string { return tags[r.IntN(len(tags))] }
	one := tag()
	key := func() string { // mostly in one slot
		if r.IntN(10) == 0 {
			return tag() + strconv.Itoa(r.IntN(4))
		}
		return one + strconv.Itoa(r.IntN(4))
	}
	switch r.IntN(18) {
	case 0, 1, 2:
		return "GET " + key()
	case 3, 4:
		return "SET " + key() + " v"
	case 5:
		return "MGET " + key() + " " + key()
	case 6:
		return "MSET " + key() + " x " + key() + " y"
	case 7:
		return "DEL " + key()
	case 8:
		return "EXISTS " + key() + " " + key() + " " + key()
	case 9, 10:
		return "ASKING"
	case 11:
		return "MULTI"
	case 12, 13:
		return "EXEC"
	case 14:
		return "WATCH " + key()
	case 15:
		return "CLUSTER COUNTKEYSINSLOT " + strconv.Itoa(redistest.Slot(one))
	case 16:
		return "APPEND " + key() + " x"
	}
	return []string{"DISCARD", "PING", "SPUBLISH " + key() + " m", "GET"}[r.IntN(4)]
}

// compareTopology compares all nodes' views of the cluster, in both versions of the protocol.
func (p *twins) compareTopology() {
	p.t.Helper()
	for i := range p.real.Nodes() {
		for _, protocol := range []string{"2", "3"} {
			s := p.open(i, "HELLO "+protocol)
			for _, question := range []struct {
				command string
				read    func(v resp.Value) string
			}{
				{"CLUSTER SHARDS", p.shards}, {"CLUSTER SLOTS", p.slots}, {"CLUSTER NODES", p.nodes}, {"CLUSTER INFO", infoOf},
				{"CLUSTER MYID", func(v resp.Value) string { return p.names[say(v)] }},
				{"HELLO " + protocol, func(v resp.Value) string { m := flat(v); return say(m["mode"]) + " " + say(m["role"]) }},
			} {
				real, fake := s[0].value(question.command), s[1].value(question.command)
				if real.Kind != fake.Kind {
					p.t.Errorf("%s: the fake answers a %s, a Redis a %s", question.command, fake.Kind, real.Kind)
				}
				if r, f := question.read(real), question.read(fake); r != f {
					p.t.Errorf("%s of node %d: the fake answers\n%s\na Redis\n%s", question.command, i, f, r)
				}
			}
			s[0].conn.Close()
			s[1].conn.Close()
		}
	}
}

// flat returns a map or a list of names and values as a map.
func flat(v resp.Value) map[string]resp.Value {
	m := make(map[string]resp.Value)
	for i := 0; i+1 < len(v.Elems); i += 2 {
		m[say(v.Elems[i])] = v.Elems[i+1]
	}
	return m
}

// lines sorts the lines and joins them.
func lines(list []string) string {
	sort.Strings(list)
	return strings.Join(list, "\n")
}

func (p *twins) shards(v resp.Value) string {
	var all []string
	for _, e := range v.Elems {
		shard := flat(e)
		text := fmt.Sprintf("%s %s slots %s:", e.Kind, shard["nodes"].Kind, say(shard["slots"]))
		var nodes []string
		for _, e := range shard["nodes"].Elems {
			n := flat(e)
			var names []string
			for name := range n {
				names = append(names, name)
			}
			sort.Strings(names)
			nodes = append(nodes, fmt.Sprint(" ", p.names[say(n["id"])], " ", p.names[say(n["port"])], " ", say(n["ip"]), " ", say(n["endpoint"]), " ",
				say(n["role"]), " ", say(n["health"]), " ", n["replication-offset"].Kind, " ", names))
		}
		all = append(all, text+lines(nodes))
	}
	return lines(all)
}

func (p *twins) slots(v resp.Value) string {
	var all []string
	for _, e := range v.Elems {
		text := say(e.Elems[0]) + "-" + say(e.Elems[1])
		for _, n := range e.Elems[2:] {
			text += fmt.Sprint(" ", say(n.Elems[0]), " ", p.names[say(n.Elems[1])], " ", p.names[say(n.Elems[2])], " ", n.Elems[3].Kind, len(n.Elems))
		}
		all = append(all, text)
	}
	return lines(all)
}

func (p *twins) nodes(v resp.Value) string {
	var all []string
	for _, line := range strings.Split(strings.TrimSpace(say(v)), "\n") {
		f := strings.Fields(line)
		addr, _, _ := strings.Cut(f[1], "@")
		text := fmt.Sprint(p.names[f[0]], " ", p.names[addr], " ", f[2], " ", p.names[f[3]], " ", f[7])
		for _, slots := range f[8:] {
			if strings.HasPrefix(slots, "[") { // [slot->-id]
				slot, id := slots[:len(slots)-41], slots[len(slots)-41:len(slots)-1]
				slots = slot + p.names[id]
			}
			text += " " + slots
		}
		all = append(all, text)
	}
	return lines(all)
}

func infoOf(v resp.Value) string {
	var all []string
	for _, line := range strings.Split(say(v), "\r\n") {
		switch name, _, _ := strings.Cut(line, ":"); name {
		case "cluster_state", "cluster_slots_assigned", "cluster_slots_ok", "cluster_slots_pfail", "cluster_slots_fail", "cluster_known_nodes", "cluster_size":
			all = append(all, line)
		}
	}
	return lines(all)
}

// compareCommands compares answers that do not depend on the contents of the cluster.
func (p *twins) compareCommands() {
	s := p.open(0)
	for _, command := range []string{
		"CLUSTER KEYSLOT 123456789", "CLUSTER KEYSLOT {}k", "CLUSTER KEYSLOT a{b}{c}", "CLUSTER KEYSLOT a{{b}}c", "CLUSTER KEYSLOT a{b", "CLUSTER KEYSLOT a}b{c}",
		"CLUSTER KEYSLOT", "CLUSTER NOSUCH", "CLUSTER COUNTKEYSINSLOT 16384", "CLUSTER COUNTKEYSINSLOT x", "CLUSTER GETKEYSINSLOT 0 -1", "CLUSTER GETKEYSINSLOT 0 10",
		"SELECT 1", "SELECT 0", "READONLY", "READWRITE", "ASKING", "ASKING x",
		"COMMAND GETKEYS MSET a 1 b 2", "COMMAND GETKEYS GET k", "COMMAND GETKEYS PING", "COMMAND GETKEYS PING x", "COMMAND GETKEYS GET k x", "COMMAND GETKEYS NOSUCH k", "CLUSTER GETKEYSINSLOT 16384 1", "CLUSTER GETKEYSINSLOT 0 x", "COMMAND GETKEYS GET", "COMMAND INFO NOSUCH",
	} {
		p.same(s, command)
	}
	for _, name := range redistest.Commands() {
		describe := func(v resp.Value) string { // the name, whether it writes, and where the keys are
			e := v.Elems[0].Elems
			text := say(e[0])
			for _, flag := range e[2].Elems {
				if say(flag) == "write" {
					text += " write"
				}
			}
			return fmt.Sprint(text, " ", e[3].Int, e[4].Int, e[5].Int)
		}
		real, fake := describe(s[0].value("COMMAND INFO "+name)), describe(s[1].value("COMMAND INFO "+name))
		if real != fake {
			p.t.Errorf("COMMAND INFO: the fake says %s, a Redis %s", fake, real)
		}
	}
}

// compareChannels compares the messages to subscribers of a shard's channels, in both versions of the
// protocol, until the slot moves.
func (p *twins) compareChannels() {
	slot := redistest.Slot("ch")
	from := slices.Index(p.fake.Nodes(), p.fake.MasterOf(slot))
	to := (from + 1) % 3
	plain := p.open(to)
	subscribers := []sides{p.open(from), p.open(from, "HELLO 3"), p.open(from+3, "HELLO 3")}
	for _, s := range subscribers {
		for _, command := range []string{"SUNSUBSCRIBE", "SSUBSCRIBE ch", "SSUBSCRIBE {ch}2", "SSUBSCRIBE ch {a}", "SUNSUBSCRIBE {ch}2", "SUNSUBSCRIBE none{ch}", "PING", "GET {ch}"} {
			p.same(s, command)
		}
	}
	for i, command := range []string{"SPUBLISH ch m", "SPUBLISH {ch}2 m", "SSUBSCRIBE ch", "SUNSUBSCRIBE ch"} {
		p.same(plain, command)
		if i < 2 {
			p.same(p.open(from), command)
		}
	}
	heard := func(what string) {
		p.t.Helper()
		for i, s := range subscribers {
			if real, fake := say(s[0].next()), say(s[1].next()); real != fake {
				p.t.Errorf("%s, subscriber %d: the fake says %s, a Redis %s", what, i, fake, real)
			}
		}
	}
	heard("a message")
	p.real.Migrate(p.t, p.real.Nodes()[to], slot)
	p.fake.MoveSlots(p.fake.Nodes()[to], slot)
	heard("the slot has moved")
	for _, s := range subscribers {
		p.same(s, "SSUBSCRIBE ch")
	}
}
