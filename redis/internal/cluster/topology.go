package cluster

import (
	"cmp"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
)

// Replies are the replies of one node, by [Command]. A command that was not sent has no reply.
type Replies [4][]byte

// A Topology describes what one node knows about its cluster. It is immutable.
type Topology struct {
	// Nodes are the nodes that have a usable address, sorted by address, without duplicates.
	Nodes []Node
	// Ranges are the owners of slots, in order and without overlaps. Slots that are not in any range
	// have no owner, or one without a usable address.
	Ranges []Range
	// Moving are the slots that are being migrated to or from the node that was asked. Only CLUSTER
	// NODES reports them.
	Moving []Moving
	// From is the address of the node that was asked, and Source the command whose reply contains
	// the owners of slots.
	From   string
	Source Command
	// State is the state of the cluster according to that node.
	State State
	// CurrentEpoch is the current epoch of the cluster according to CLUSTER INFO; zero if unknown.
	CurrentEpoch uint64
	// ConfigEpoch is the highest config epoch of a node according to CLUSTER NODES; zero if
	// unknown.
	ConfigEpoch uint64
	// Doubt says why slots may seem to have no owner although they have one. It is empty if the replies
	// are clear.
	Doubt string

	byAddr map[string]int
	owners uint64 // a digest of Ranges with addresses
	whole  uint64 // a digest of everything that matters to a client
}

// A Node is a node of a cluster.
type Node struct {
	// ID is the name that the node chose for itself. Redis 3 omits it in CLUSTER SLOTS.
	ID string
	// Addr is the address to dial, host:port.
	Addr string
	// Aliases are other addresses that servers may use for the node, for example in redirects.
	Aliases []string
	// Hostname is the host name that the node announces, if any: the name in its certificate.
	Hostname string
	// Zone is the availability zone of the node, if Valkey announces it.
	Zone string
	// Replica says whether the node is a replica.
	Replica bool
	// Master is the index in Nodes of the master of a replica, or -1.
	Master int
	// Flags contains the state of the node.
	Flags Flags
	// Offset is the replication offset, or -1 if unknown.
	Offset int64
	// Epoch is the config epoch, or zero if unknown.
	Epoch uint64
}

// A Range is a range of slots with the same owner.
type Range struct {
	First, Last uint16
	// Node is the index in Nodes of the owner.
	Node int
}

// A Moving is a slot that is being migrated.
type Moving struct {
	Slot uint16
	// From and To are indexes in Nodes, or -1 for a node that is not listed.
	From, To int
}

// Find returns the index in Nodes of the node with the address, or -1.
func (t *Topology) Find(addr string) int {
	if i, ok := t.byAddr[addr]; ok {
		return i
	}
	return -1
}

// Covered returns the number of slots that have an owner.
func (t *Topology) Covered() int {
	n := 0
	for _, r := range t.Ranges {
		n += int(r.Last) - int(r.First) + 1
	}
	return n
}

// olderThan reports whether t is known to be an older view of the cluster than other.
func (t *Topology) olderThan(other *Topology) bool {
	return t.CurrentEpoch != 0 && t.CurrentEpoch < other.CurrentEpoch ||
		t.ConfigEpoch != 0 && t.ConfigEpoch < other.ConfigEpoch
}

// sameOwners reports whether the same addresses own the same slots.
func (t *Topology) sameOwners(other *Topology) bool { return t.owners == other.owners }

// same reports whether nothing that matters to a client differs.
func (t *Topology) same(other *Topology) bool { return t.whole == other.whole }

// Parse parses the replies of the node at asked, which is the address that was dialed. The owners
// of slots are taken from CLUSTER NODES if that was sent, otherwise from CLUSTER SHARDS unless they
// are in doubt, and otherwise from CLUSTER SLOTS. The endpoints are taken from CLUSTER SHARDS if
// that was sent. Refused commands are ignored as long as one of the three was answered. The error
// is a [*ReplyError] or a [*RefusedError].
func Parse(asked string, a *Addresses, replies Replies) (*Topology, error) {
	var views [3]*view
	var failure error
	for c, parse := range [...]func([]byte) (*view, error){parseShards, parseNodes, parseSlots} {
		if replies[c] == nil {
			continue
		}
		v, err := parse(replies[c])
		if err != nil {
			failure = err
			continue
		}
		views[c] = v
	}
	b := builder{asked: asked, addresses: a, owners: cmp.Or(views[Nodes], views[Shards], views[SlotRanges])}
	if b.owners != nil && b.owners.doubt != "" {
		b.owners = cmp.Or(views[SlotRanges], b.owners)
	}
	if b.owners == nil {
		if failure == nil {
			failure = &ReplyError{Command: Shards.String(), Wrong: "no reply", Expected: "one"}
		}
		return nil, failure
	}
	if b.endpoints = cmp.Or(views[Shards], views[SlotRanges]); b.endpoints == b.owners {
		b.endpoints = nil
	}
	var info information
	if replies[Info] != nil {
		var err error
		if info, err = parseInfo(replies[Info]); err != nil {
			if _, refused := err.(*RefusedError); !refused {
				return nil, err
			}
		}
	}
	t, err := b.build()
	if err != nil {
		return nil, err
	}
	t.State, t.CurrentEpoch = info.state, info.epoch
	return t, nil
}

// A builder makes a topology from views.
type builder struct {
	asked     string
	addresses *Addresses
	owners    *view // the owners of slots
	endpoints *view // if not nil, the endpoints of the nodes, by ID
	nodes     []Node
	byAddr    map[string]int
	nodeOf    []int // by member of owners; -1 if omitted
}

func (b *builder) build() (*Topology, error) {
	if err := b.collect(); err != nil {
		return nil, err
	}
	if len(b.nodes) == 0 {
		return nil, &ReplyError{Command: b.owners.command.String(), Wrong: "no node with a usable address", Expected: "at least one"}
	}
	b.sort()
	b.link()
	t := &Topology{Nodes: b.nodes, From: b.asked, Source: b.owners.command, Doubt: b.owners.doubt, byAddr: b.byAddr}
	t.Ranges = b.ranges()
	for _, m := range b.owners.moving {
		self, peer := b.nodeOf[m.self], -1
		if i, ok := b.owners.byID[m.peer]; ok {
			peer = b.nodeOf[i]
		}
		if m.importing {
			self, peer = peer, self
		}
		t.Moving = append(t.Moving, Moving{Slot: m.slot, From: self, To: peer})
	}
	for _, m := range b.owners.members {
		t.ConfigEpoch = max(t.ConfigEpoch, m.epoch)
	}
	t.digest()
	return t, nil
}

// collect builds the nodes. Two members may have the same address if the process at that address
// has a new ID and the cluster still lists the old one.
func (b *builder) collect() error {
	b.byAddr = make(map[string]int, len(b.owners.members))
	b.nodeOf = make([]int, len(b.owners.members))
	for i := range b.owners.members {
		m := &b.owners.members[i]
		b.nodeOf[i] = -1
		at := b.endpoint(m)
		addr, wrong := b.addresses.dial(b.asked, at.endpoint, b.port(at))
		if wrong != nil {
			return &ReplyError{Command: b.owners.command.String(), Where: "node " + m.id, Wrong: wrong.wrong, Expected: wrong.expected}
		}
		if addr == "" || m.flags&NoAddress != 0 {
			continue
		}
		n := Node{
			ID: m.id, Addr: addr, Hostname: nameOf(at), Zone: at.zone, Replica: m.replica, Master: -1,
			Flags: m.flags, Offset: at.offset, Epoch: m.epoch,
		}
		for _, host := range [...]string{at.ip, at.hostname} {
			alias, wrong := b.addresses.dial(b.asked, host, b.port(at))
			if host != "" && wrong == nil && alias != addr && alias != "" {
				n.Aliases = append(n.Aliases, alias)
			}
		}
		j, there := b.byAddr[addr]
		switch {
		case !there:
			j = len(b.nodes)
			b.byAddr[addr] = j
			b.nodes = append(b.nodes, n)
		case n.livelier(&b.nodes[j]):
			b.nodes[j] = n
		}
		b.nodeOf[i] = j
	}
	return nil
}

// nameOf returns the host name that a member announces, or "" if it announces none. The string
// comes from a server, so it may be anything: a string that is not a host name is ignored. An IP
// address is ignored, too, because the address that is dialed is known.
func nameOf(m *member) string {
	if !isHostName(m.hostname) {
		return ""
	}
	return m.hostname
}

// livelier reports whether n, as opposed to other, is the process at their address.
func (n *Node) livelier(other *Node) bool {
	const dead = Failed | Handshake
	if a, b := n.Flags&dead != 0, other.Flags&dead != 0; a != b {
		return b
	}
	return n.Epoch > other.Epoch
}

// endpoint returns the member that contains the address of m.
func (b *builder) endpoint(m *member) *member {
	if b.endpoints != nil {
		if i, ok := b.endpoints.byID[m.id]; ok {
			return &b.endpoints.members[i]
		}
	}
	return m
}

func (b *builder) port(m *member) int {
	if b.addresses.TLS && m.tlsPort != 0 {
		return m.tlsPort
	}
	return m.port
}

// sort sorts the nodes by address.
func (b *builder) sort() {
	order := make([]int, len(b.nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(b.nodes[i].Addr, b.nodes[j].Addr) })
	sorted, place := make([]Node, len(order)), make([]int, len(order))
	for to, from := range order {
		sorted[to], place[from] = b.nodes[from], to
	}
	b.nodes = sorted
	for i, j := range b.nodeOf {
		if j >= 0 {
			b.nodeOf[i] = place[j]
		}
	}
	for i := range sorted {
		b.byAddr[sorted[i].Addr] = i
	}
	// This is done last, so that an alias never hides the address of another node.
	for i := range sorted {
		for _, alias := range sorted[i].Aliases {
			if _, there := b.byAddr[alias]; !there {
				b.byAddr[alias] = i
			}
		}
	}
}

// link finds the masters of replicas.
func (b *builder) link() {
	for i, m := range b.owners.members {
		j, master := b.nodeOf[i], m.master
		if m.masterID != "" {
			if k, ok := b.owners.byID[m.masterID]; ok {
				master = k
			}
		}
		if j >= 0 && b.nodes[j].ID == m.id && m.replica && master >= 0 && b.nodeOf[master] != j {
			b.nodes[j].Master = b.nodeOf[master]
		}
	}
}

func (b *builder) ranges() (ranges []Range) {
	for slot, owner := range b.owners.owners {
		if owner == 0 || b.nodeOf[owner-1] < 0 {
			continue
		}
		node := b.nodeOf[owner-1]
		if n := len(ranges); n > 0 && ranges[n-1].Node == node && int(ranges[n-1].Last) == slot-1 {
			ranges[n-1].Last++
			continue
		}
		ranges = append(ranges, Range{First: uint16(slot), Last: uint16(slot), Node: node})
	}
	return ranges
}

// digest computes the digests.
func (t *Topology) digest() {
	h := fnv.New64a()
	for _, r := range t.Ranges {
		io.WriteString(h, t.Nodes[r.Node].Addr+" "+strconv.Itoa(int(r.First))+"-"+strconv.Itoa(int(r.Last))+"\n")
	}
	t.owners = h.Sum64()
	for i := range t.Nodes {
		n := &t.Nodes[i]
		master := ""
		if n.Master >= 0 {
			master = t.Nodes[n.Master].Addr
		}
		const matters = Failed | Handshake | Loading
		io.WriteString(h, n.Addr+" "+n.ID+" "+n.Hostname+" "+n.Zone+" "+master+" "+strconv.FormatBool(n.Replica)+strconv.Itoa(int(n.Flags&matters))+"\n")
	}
	t.whole = h.Sum64()
}
