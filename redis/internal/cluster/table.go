package cluster

import (
	"sync"
	"sync/atomic"

	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// A Round identifies a refresh. [Map.Apply] uses it to keep changes that came later.
type Round uint16

// A Map is the current topology, in which each node has a value of type P that the client adds,
// such as its connections. All methods are safe for concurrent use.
type Map[P any] struct {
	// Immutable.
	open  func(*Node) P
	spare int // number of indexes of departed nodes after which a table is replaced

	mu sync.Mutex // held by Apply

	// Atomics.
	table  atomic.Pointer[Table[P]] // written under mu
	rounds atomic.Uint32            // its low 16 bits are the latest round, never zero
}

// NewMap returns a map without nodes. Open is called for each node that is added to the map, before
// the node can be found. It must not block and must not call the map.
func NewMap[P any](open func(*Node) P) *Map[P] {
	m := &Map[P]{open: open, spare: spareIndexes}
	m.rounds.Store(1)
	m.table.Store(newTable(&m.rounds, &list[P]{}))
	return m
}

// Table returns the current table. It must be loaded again for each call or batch of calls: an old
// table keeps working, but is not updated.
func (m *Map[P]) Table() *Table[P] { return m.table.Load() }

// Begin returns the round of a refresh that starts now.
func (m *Map[P]) Begin() Round {
	for {
		if n := m.rounds.Add(1); Round(n) != 0 {
			return Round(n)
		}
	}
}

// A Table contains the owner of each slot. All methods are safe for concurrent use and allocate
// nothing; lookups take no lock.
//
// Each slot has two bytes of a word for the index of its owner plus one, or zero: all slots
// together fit into a first-level cache. A node keeps its index while it is in the table, and an
// index is never reused for another node. So a caller that has loaded an index and then loads the
// list finds that node there, or finds that it has left. The list therefore grows, until Apply
// replaces the whole table. An index is in the list before it is in any slot, and is removed from
// all slots before it is removed from the list.
type Table[P any] struct {
	// Immutable.
	rounds *atomic.Uint32 // of the map

	// Atomics, written under mu.
	owners [slot.Count / slotsAWord]atomic.Uint64
	list   atomic.Pointer[list[P]]

	mu sync.Mutex
	// Guarded by mu.
	moved [slot.Count]Round // the round of the MOVED that has set the owner, or zero
}

const (
	slotsAWord = 64 / slotBits
	slotBits   = 16
	slotMask   = 1<<slotBits - 1
)

// list contains the nodes of a table. It is immutable.
type list[P any] struct {
	members []*Member[P] // by index; nil if it has left
	live    []*Member[P] // members that have not left, sorted by address
	byAddr  map[string]*Member[P]
}

// A Member is a node of a table. It is immutable: when something about the node changes, another
// member takes its place.
type Member[P any] struct {
	// Node is what the cluster knows about the node. Its index Master has no meaning here.
	Node *Node
	// Peer is the value that the client has added.
	Peer P
	// Replicas are the replicas of a master.
	Replicas []*Member[P]

	table *Table[P]
	index int
}

func newTable[P any](rounds *atomic.Uint32, l *list[P]) *Table[P] {
	t := &Table[P]{rounds: rounds}
	t.list.Store(l)
	return t
}

// Owner returns the index of the owner of a slot, or -1. It is one atomic load.
func (t *Table[P]) Owner(s uint16) int {
	word := t.owners[s%slot.Count/slotsAWord].Load()
	return int(uint16(word>>(s%slotsAWord*slotBits))) - 1
}

// setOwner sets the owner of a slot, which is an index plus one. The caller holds mu.
func (t *Table[P]) setOwner(s, owner uint16) {
	word, shift := &t.owners[s/slotsAWord], s%slotsAWord*slotBits
	word.Store(word.Load()&^(slotMask<<shift) | uint64(owner)<<shift)
}

// Member returns the member with an index that [Table.Owner] has returned. It returns nil if the
// node has left the cluster, or if index is -1.
func (t *Table[P]) Member(index int) *Member[P] {
	members := t.list.Load().members
	if uint(index) >= uint(len(members)) {
		return nil
	}
	return members[index]
}

// Route returns the owner of a slot, or nil.
func (t *Table[P]) Route(s uint16) *Member[P] {
	for {
		index := t.Owner(s)
		if m := t.Member(index); m != nil || index < 0 || t.Owner(s) == index {
			return m
		}
		// The slot got another owner before the node left, so load it again.
	}
}

// Find returns the member at an address, as [Redirect.Addr] returns it, or nil.
func (t *Table[P]) Find(addr string) *Member[P] { return t.list.Load().byAddr[addr] }

// Members returns all members, sorted by address. The slice must not be changed.
func (t *Table[P]) Members() []*Member[P] { return t.list.Load().live }

// Move gives a slot to a member of this table, after a MOVED from a server. If the member has left,
// it returns false and the slot keeps its owner. It waits while Apply changes the slots.
func (t *Table[P]) Move(s uint16, to *Member[P]) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if to == nil || to.table != t || t.Member(to.index) == nil {
		return false
	}
	s %= slot.Count
	t.setOwner(s, uint16(to.index+1))
	t.moved[s] = Round(t.rounds.Load())
	return true
}

// spareIndexes is the default of Map.spare. The indexes of a table must be less than 1<<16, and a
// reply has at most maxNodes.
const spareIndexes = 1024

// Apply makes t, which was queried in the given round, the current topology. It returns the members
// of nodes that have left; the client closes their peers. Nodes in a handshake are omitted. A slot
// without an owner in t keeps its previous owner if that is still listed, because a node that no
// longer owns a slot may report it so. A slot that was moved since the query also keeps its owner.
func (m *Map[P]) Apply(t *Topology, asked Round) (left []*Member[P]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	table := m.table.Load()
	before := table.list.Load()
	if n := len(before.members); n-len(before.live) > max(m.spare, len(before.live)) {
		table = m.compact(table)
		before = table.list.Load()
	}
	after := m.listOf(table, before, t)
	both := *after
	both.members = append([]*Member[P](nil), after.members...)
	for i, member := range before.members {
		if member != nil && both.members[i] == nil {
			both.members[i] = member
			left = append(left, member)
		}
	}
	wanted := new([slot.Count]uint16)
	for _, r := range t.Ranges {
		if owner := after.byAddr[t.Nodes[r.Node].Addr]; owner != nil {
			for s := int(r.First); s <= int(r.Last); s++ {
				wanted[s] = uint16(owner.index + 1)
			}
		}
	}
	table.change(&both, after, wanted, asked)
	m.table.Store(table)
	return left
}

// change makes a list the current one, and gives each slot its wanted owner unless it is to keep
// its present one. Both contains the nodes of the previous list and of the new one.
func (t *Table[P]) change(both, after *list[P], wanted *[slot.Count]uint16, asked Round) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list.Store(both)
	for s, owner := range wanted {
		index := t.Owner(uint16(s))
		if index >= 0 && after.members[index] != nil {
			if moved := t.moved[s]; moved != 0 && int16(moved-asked) >= 0 {
				continue
			}
			if owner == 0 {
				owner = uint16(index + 1)
			}
		}
		if t.moved[s] = 0; int(owner) != index+1 {
			t.setOwner(uint16(s), owner)
		}
	}
	t.list.Store(after)
}

// listOf returns the list for a topology: nodes that were already in the previous list keep their
// indexes and their peers.
func (m *Map[P]) listOf(table *Table[P], before *list[P], t *Topology) *list[P] {
	l := &list[P]{members: make([]*Member[P], len(before.members), len(before.members)+len(t.Nodes)), byAddr: make(map[string]*Member[P], len(t.Nodes))}
	members := make([]*Member[P], len(t.Nodes)) // by node
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if n.Flags&Handshake != 0 {
			continue
		}
		member := &Member[P]{Node: n, table: table}
		if old := before.byAddr[n.Addr]; old != nil && old.Node.Addr == n.Addr {
			member.index, member.Peer = old.index, old.Peer
			l.members[old.index] = member
		} else {
			member.index, member.Peer = len(l.members), m.open(n)
			l.members = append(l.members, member)
		}
		members[i] = member
		l.live = append(l.live, member)
	}
	for i, member := range members {
		if member == nil {
			continue
		}
		l.byAddr[member.Node.Addr] = member
		if master := t.Nodes[i].Master; master >= 0 && members[master] != nil {
			members[master].Replicas = append(members[master].Replicas, member)
		}
	}
	for addr, i := range t.byAddr {
		if _, there := l.byAddr[addr]; !there && members[i] != nil {
			l.byAddr[addr] = members[i]
		}
	}
	return l
}

// compact returns a table without the indexes of departed nodes. What the old table learns from now
// on is lost: another MOVED will repeat it.
func (m *Map[P]) compact(old *Table[P]) *Table[P] {
	before := old.list.Load()
	l := &list[P]{byAddr: make(map[string]*Member[P], len(before.byAddr))}
	fresh := newTable(&m.rounds, l)
	index := make([]uint16, len(before.members)) // plus one, by the old index
	for i, member := range before.live {
		moved := *member
		moved.table, moved.index = fresh, i
		index[member.index] = uint16(i + 1)
		l.members = append(l.members, &moved)
	}
	l.live = l.members
	for addr, member := range before.byAddr {
		l.byAddr[addr] = l.members[index[member.index]-1]
	}
	old.mu.Lock()
	defer old.mu.Unlock()
	for s := range uint16(slot.Count) {
		if i := old.Owner(s); i >= 0 && index[i] != 0 {
			fresh.setOwner(s, index[i])
			fresh.moved[s] = old.moved[s]
		}
	}
	return fresh
}
