package cluster

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// topologyOf returns a topology of masters. The slots are divided into equal parts, in the given
// order, unless owner is set: it returns the owner of a slot, as an index in addrs, or -1.
func topologyOf(addrs []string, owner func(slot int) int) *Topology {
	t := &Topology{byAddr: make(map[string]int)}
	for i, addr := range addrs {
		t.Nodes = append(t.Nodes, Node{ID: "id-" + addr, Addr: addr, Master: -1})
		t.byAddr[addr] = i
	}
	if owner == nil {
		owner = func(s int) int { return s * len(addrs) / slot.Count }
	}
	for s := range slot.Count {
		i := owner(s)
		if n := len(t.Ranges); n > 0 && t.Ranges[n-1].Node == i && int(t.Ranges[n-1].Last) == s-1 {
			t.Ranges[n-1].Last++
		} else if i >= 0 {
			t.Ranges = append(t.Ranges, Range{First: uint16(s), Last: uint16(s), Node: i})
		}
	}
	t.digest()
	return t
}

// peer is the value that the tests add to a node.
type peer struct {
	addr   string
	closed atomic.Bool
}

func newTestMap() *Map[*peer] { return NewMap(func(n *Node) *peer { return &peer{addr: n.Addr} }) }

func ownerOf(m *Map[*peer], slot uint16) string {
	if member := m.Table().Route(slot); member != nil {
		return member.Node.Addr
	}
	return ""
}

func TestTableRoutesAndLearns(t *testing.T) {
	m := newTestMap()
	if m.Table().Owner(0) != -1 || m.Table().Route(0) != nil || m.Table().Member(-1) != nil || m.Table().Find("a:1") != nil || len(m.Table().Members()) != 0 {
		t.Fatal("an empty map has a node")
	}
	m.Apply(topologyOf([]string{"a:1", "b:1"}, nil), m.Begin())
	table := m.Table()
	a, b := table.Find("a:1"), table.Find("b:1")
	if a == nil || b == nil || table.Route(0) != a || table.Route(slot.Count-1) != b || table.Member(table.Owner(0)) != a || len(table.Members()) != 2 {
		t.Fatal("the slots do not have the owners of the topology")
	}
	if !table.Move(0, b) || table.Route(0) != b || table.Route(1) != a {
		t.Error("a slot that moved has the wrong owner, or another slot moved")
	}
	asked := m.Begin()
	if left := m.Apply(topologyOf([]string{"a:1", "b:1"}, nil), asked); len(left) != 0 || ownerOf(m, 0) != "a:1" {
		t.Errorf("a reply to a query after the MOVED does not count: %s owns slot 0", ownerOf(m, 0))
	}
	if m.Table().Find("a:1").Peer != a.Peer {
		t.Error("a node that stays has another peer")
	}
	if n := testing.AllocsPerRun(100, func() { table.Route(5); table.Move(5, table.Find("a:1")) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMovedIsNewerThanAReplyAskedForBefore(t *testing.T) {
	m := newTestMap()
	m.Apply(topologyOf([]string{"a:1", "b:1"}, nil), m.Begin())
	asked := m.Begin()
	m.Table().Move(0, m.Table().Find("b:1"))
	m.Table().Move(1, m.Table().Find("b:1"))
	m.Apply(topologyOf([]string{"a:1", "b:1"}, nil), asked)
	if got := ownerOf(m, 0); got != "b:1" {
		t.Errorf("%s owns slot 0, which has moved to b:1 since the topology was queried", got)
	}
	m.Apply(topologyOf([]string{"a:1", "c:1"}, nil), asked)
	if got := ownerOf(m, 0); got != "a:1" {
		t.Errorf("%s owns slot 0, which had moved to a node that has left", got)
	}
	m.Apply(topologyOf([]string{"a:1", "b:1"}, nil), m.Begin())
	if got := ownerOf(m, 1); got != "a:1" {
		t.Errorf("%s owns slot 1 after a newer reply", got)
	}
}

// After many refreshes, the round of an old MOVED must not look newer than the current round.
func TestRoundsWrapAround(t *testing.T) {
	m := newTestMap()
	two := topologyOf([]string{"a:1", "b:1"}, nil)
	m.Apply(two, m.Begin())
	m.Table().Move(0, m.Table().Find("b:1"))
	holes := topologyOf([]string{"a:1", "b:1"}, func(slot int) int { return min(slot, 1)*2 - 1 })
	m.Apply(holes, m.Begin()) // slot 0 keeps b
	for range 1 << 15 {
		m.Begin()
	}
	m.Apply(two, m.Begin())
	if got := ownerOf(m, 0); got != "a:1" {
		t.Errorf("%s owns slot 0", got)
	}
	for range 3 << 16 {
		if m.Begin() == 0 {
			t.Fatal("a round is zero, which means none")
		}
	}
}

func TestSlotsWithoutAnOwnerKeepTheLast(t *testing.T) {
	m := newTestMap()
	m.Apply(topologyOf([]string{"a:1", "b:1"}, nil), m.Begin())
	none := func(int) int { return -1 }
	m.Apply(topologyOf([]string{"a:1", "c:1"}, none), m.Begin())
	if a, b := ownerOf(m, 0), ownerOf(m, slot.Count-1); a != "a:1" || b != "" {
		t.Errorf("the slots of a listed node belong to %q, and those of a departed node to %q", a, b)
	}
}

func TestMembersOfATable(t *testing.T) {
	topology := mustParse(t, &Addresses{}, map[Command]any{Nodes: threeNodes() + node("h", "10.0.0.1:7009@1", "handshake", "-", 0, "") +
		node("e", "10.0.0.1:7005@1,e.example.com", "slave", "a", 0, "")})
	m := newTestMap()
	m.Apply(topology, m.Begin())
	table := m.Table()
	if table.Find("10.0.0.1:7009") != nil || len(table.Members()) != 5 {
		t.Error("a node in a handshake is in the table")
	}
	var replicas []string
	for _, r := range table.Route(0).Replicas {
		replicas = append(replicas, r.Node.Addr)
	}
	if want := []string{"10.0.0.1:7004", "10.0.0.1:7005"}; !slices.Equal(replicas, want) {
		t.Errorf("replicas %v, expected %v", replicas, want)
	}
	if e := table.Find("e.example.com:7005"); e == nil || e.Node.Addr != "10.0.0.1:7005" {
		t.Error("a node is not found by its host name")
	}
}

func TestNodesThatLeave(t *testing.T) {
	m := newTestMap()
	m.Apply(topologyOf([]string{"a:1", "b:1"}, nil), m.Begin())
	table := m.Table()
	b, index := table.Find("b:1"), table.Owner(slot.Count-1)
	left := m.Apply(topologyOf([]string{"a:1", "c:1"}, nil), m.Begin())
	if len(left) != 1 || left[0] != b {
		t.Fatalf("%d nodes have left, expected b", len(left))
	}
	if table.Member(index) != nil || table.Find("b:1") != nil || ownerOf(m, slot.Count-1) != "c:1" || table.Owner(slot.Count-1) == index {
		t.Error("the node is still there, or another one has its index")
	}
	if table.Move(0, b) || ownerOf(m, 0) != "a:1" || table.Move(0, nil) {
		t.Error("a slot moved to a node that has left")
	}
	m.Apply(topologyOf([]string{"a:1", "b:1"}, nil), m.Begin())
	if m.Table().Find("b:1").Peer == b.Peer {
		t.Error("a node that came back has the peer that was closed")
	}
}

// A table is replaced before its indexes are used up. What is learned about the old one is lost,
// but nothing wrong is learned.
func TestTablesAreReplaced(t *testing.T) {
	const spare = 32
	m := newTestMap()
	m.spare = spare
	first := m.Table()
	replaced := 0
	for i := range 5 * spare {
		before := m.Table()
		addrs := []string{"a:1", fmt.Sprintf("n%d:1", i)}
		m.Apply(topologyOf(addrs, nil), m.Begin())
		if before != m.Table() {
			replaced++
			if before.Route(0).Peer != m.Table().Route(0).Peer {
				t.Fatal("a node that stays has another peer in the new table")
			}
			if m.Table().Move(0, before.Route(slot.Count-1)) || before.Move(0, m.Table().Route(0)) {
				t.Fatal("a table has learned about a member of another table")
			}
		}
		if n := len(m.Table().list.Load().members); n > spare+4 {
			t.Fatalf("%d indexes", n)
		}
		if a, b := ownerOf(m, 0), ownerOf(m, slot.Count-1); a != addrs[0] || b != addrs[1] {
			t.Fatalf("owners %s and %s, expected %v", a, b, addrs)
		}
	}
	if replaced < 4 || first == m.Table() {
		t.Errorf("replaced %d times", replaced)
	}
}

// TestModel compares the map with plain maps under random topologies and redirects.
func TestModel(t *testing.T) {
	type slotModel struct {
		owner string
		moved int // the refresh during which it moved, or -1 if it was not moved by a MOVED
	}
	const every = 64 // one slot in 64 is checked
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := newTestMap()
		var model [slot.Count]slotModel
		listed := map[string]bool{}
		refresh, rounds := 0, []Round{m.Begin()}
		for range 30 {
			switch r.IntN(4) {
			case 0:
				refresh++
				rounds = append(rounds, m.Begin())
			case 1, 2:
				for range r.IntN(200) {
					at, addr := r.IntN(slot.Count/every)*every, fmt.Sprintf("n%d:1", r.IntN(10))
					moved := m.Table().Move(uint16(at), m.Table().Find(addr))
					if moved != listed[addr] {
						t.Fatalf("seed %d: a MOVED to %s counts: %v", seed, addr, moved)
					}
					if moved {
						model[at] = slotModel{addr, refresh}
					}
				}
			case 3:
				var addrs []string
				for _, i := range r.Perm(10)[:1+r.IntN(6)] {
					addrs = append(addrs, fmt.Sprintf("n%d:1", i))
				}
				slices.Sort(addrs)
				step, holes := 1+r.IntN(3000), r.IntN(3)
				owner := func(s int) int { return (s/step)%(len(addrs)+holes) - holes }
				topology := topologyOf(addrs, func(s int) int { return max(owner(s), -1) })
				asked := r.IntN(len(rounds))
				m.Apply(topology, rounds[asked])
				clear(listed)
				for _, addr := range addrs {
					listed[addr] = true
				}
				for at := 0; at < slot.Count; at += every {
					s, i := &model[at], owner(at)
					switch {
					case listed[s.owner] && s.moved >= asked:
					case i >= 0:
						*s = slotModel{addrs[i], -1}
					case listed[s.owner]:
						s.moved = -1
					default:
						*s = slotModel{"", -1}
					}
				}
			}
			for at := 0; at < slot.Count; at += every {
				if got := ownerOf(m, uint16(at)); got != model[at].owner {
					t.Fatalf("seed %d: %q owns slot %d, expected %q", seed, got, at, model[at].owner)
				}
			}
		}
	}
}

// Readers never find a node at an index that belonged to another one, and a slot is never left with
// a departed node, whatever the order of MOVED and Apply.
func TestTableUnderRaces(t *testing.T) {
	m := newTestMap()
	m.Apply(topologyOf([]string{"n0:1", "n1:1"}, nil), m.Begin())
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for i := range 2 {
		// Ended by stop; awaited below.
		readers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 2))
			var table *Table[*peer]
			var known map[int]string
			for {
				select {
				case <-stop:
					return
				default:
				}
				if now := m.Table(); now != table {
					table, known = now, map[int]string{}
				}
				runtime.Gosched()
				slot := uint16(r.IntN(64))
				index := table.Owner(slot)
				member := table.Member(index)
				if member == nil {
					continue
				}
				if addr, ok := known[index]; ok && addr != member.Node.Addr {
					t.Errorf("index %d is %s and was %s", index, member.Node.Addr, addr)
					return
				}
				known[index] = member.Node.Addr
				if member.Peer.addr != member.Node.Addr {
					t.Errorf("%s has the peer of %s", member.Node.Addr, member.Peer.addr)
					return
				}
				if members := table.Members(); len(members) > 0 {
					table.Move(slot, members[r.IntN(len(members))])
				}
			}
		})
	}
	r := rand.New(rand.NewPCG(9, 9))
	for range 50 {
		var addrs []string
		for _, i := range r.Perm(6)[:2+r.IntN(3)] {
			addrs = append(addrs, fmt.Sprintf("n%d:1", i))
		}
		slices.Sort(addrs)
		for _, left := range m.Apply(topologyOf(addrs, nil), m.Begin()) {
			left.Peer.closed.Store(true)
		}
	}
	close(stop)
	readers.Wait()
	for slot := range uint16(64) {
		if index := m.Table().Owner(slot); index >= 0 && (m.Table().Member(index) == nil || m.Table().Member(index).Peer.closed.Load()) {
			t.Errorf("slot %d belongs to a node that has left", slot)
		}
	}
}

// Four slots share a word. What is learned about one of them does not change the others.
func TestSlotsOfAWordMoveApart(t *testing.T) {
	m := newTestMap()
	m.Apply(topologyOf([]string{"a:1", "b:1"}, nil), m.Begin())
	table := m.Table()
	members := table.Members()
	var movers sync.WaitGroup
	for s := range uint16(2 * slotsAWord) {
		// Ends without a signal; awaited below.
		movers.Go(func() {
			for i := range 2000 {
				to := members[(i+int(s))%2]
				if !table.Move(s, to) || table.Route(s) != to {
					t.Errorf("slot %d does not have the owner that it moved to", s)
					return
				}
				if i%100 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	movers.Wait()
}

// A MOVED to a node that is leaving arrives while Apply goes through the slots, of which slot 0 is
// the first.
func TestSlotsAreNotLeftWithANodeThatLeaves(t *testing.T) {
	for range 100 {
		m := newTestMap()
		m.Apply(topologyOf([]string{"a:1", "b:1"}, nil), m.Begin())
		table := m.Table()
		b := table.Find("b:1")
		stop, moving := make(chan struct{}), make(chan struct{})
		var mover sync.WaitGroup
		// Ended by stop; awaited below.
		mover.Go(func() {
			table.Move(0, b)
			close(moving)
			for {
				select {
				case <-stop:
					return
				default:
					table.Move(0, b)
				}
			}
		})
		<-moving
		m.Apply(topologyOf([]string{"a:1", "c:1"}, nil), m.Begin())
		close(stop)
		mover.Wait()
		if index := table.Owner(0); index >= 0 && table.Member(index) == nil {
			t.Fatal("slot 0 belongs to a node that has left")
		}
	}
}

func BenchmarkRoute(b *testing.B) {
	m := newTestMap()
	m.Apply(topologyOf([]string{"a:1", "b:1", "c:1"}, nil), m.Begin())
	b.ReportAllocs()
	slot := uint16(0)
	for b.Loop() {
		slot += 977
		if m.Table().Route(slot) == nil {
			b.Fatal("no owner")
		}
	}
}

func BenchmarkApply(b *testing.B) {
	m := newTestMap()
	var addrs []string
	for i := range 100 {
		addrs = append(addrs, fmt.Sprintf("n%02d:1", i))
	}
	topology := topologyOf(addrs, nil)
	b.ReportAllocs()
	for b.Loop() {
		m.Apply(topology, m.Begin())
	}
}
