package redistest

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// ClusterOptions configure [NewCluster]. The zero value means three masters without replicas.
type ClusterOptions struct {
	// Masters is the number of masters that share the slots. If zero, it defaults to 3.
	Masters int
	// ReplicasPer is the number of replicas of each master.
	ReplicasPer int
}

// A Cluster is an in-memory Redis Cluster, each of whose nodes listens on a port of the loopback
// address. Nodes answer like those of Redis 7.0: they serve the keys in their slots, and redirect
// clients with MOVED, ASK and the other errors of a cluster.
//
// Nothing happens automatically: slots move and replicas become masters immediately when the test
// requests it. A replica always has the same data as its master.
//
// All methods are safe for concurrent use, but a [Handler] must not call Close, or Stop of a node,
// because these wait for handlers.
type Cluster struct {
	// Guarded by mu, which the servers share.
	mu        sync.Mutex
	nodes     []*Node
	shards    []*shard
	owners    [Slots]*shard
	migrating map[int]*shard // by slot: its destination
	handlers  map[string]Handler
	changes   *uint64 // number of changes of keys
	down      bool
}

// shard is a master with its replicas, which have the same keys.
type shard struct {
	nodes  []*Node
	master *Node
	space  keyspace
	epoch  int
}

// inOrder returns the nodes, starting with the master.
func (s *shard) inOrder() []*Node {
	list := []*Node{s.master}
	for _, n := range s.nodes {
		if n != s.master {
			list = append(list, n)
		}
	}
	return list
}

// A Node is a server of a [Cluster].
type Node struct {
	// Immutable.
	cluster *Cluster
	server  *Server
	id      string

	// Guarded by cluster.mu.
	shard    *shard
	addr     string
	listener net.Listener // nil if the node is stopped

	switching sync.Mutex // held by Stop and Start
	accepting sync.WaitGroup
}

// NewCluster returns a cluster without keys, whose masters have equal shares of the slots. The
// cluster must be closed. NewCluster panics if it cannot listen on a port of the loopback address.
func NewCluster(o ClusterOptions) *Cluster {
	if o.Masters <= 0 {
		o.Masters = 3
	}
	c := &Cluster{migrating: make(map[int]*shard), handlers: make(map[string]Handler), changes: new(uint64)}
	for range o.Masters {
		c.AddMaster()
	}
	for i, s := range c.shards {
		for slot := i * Slots / o.Masters; slot < (i+1)*Slots/o.Masters; slot++ {
			c.owners[slot] = s
		}
	}
	for _, master := range c.Nodes() {
		for range o.ReplicasPer {
			c.AddReplica(master)
		}
	}
	return c
}

// AddMaster adds a master without slots and returns it.
func (c *Cluster) AddMaster() *Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &shard{space: make(keyspace), epoch: len(c.shards) + 1}
	s.master = c.add(s)
	c.shards = append(c.shards, s)
	return s.master
}

// AddReplica adds a replica to the shard of a node and returns it.
func (c *Cluster) AddReplica(of *Node) *Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.add(of.shard)
}

// add adds a node to a shard. The caller holds mu.
func (c *Cluster) add(s *shard) *Node {
	n := &Node{cluster: c, id: fmt.Sprintf("%040x", len(c.nodes)+1), shard: s, addr: "127.0.0.1:0"}
	n.server = newServer(&c.mu, s.space, c.changes)
	n.server.node = n
	if len(c.nodes) > 0 {
		n.server.now = c.nodes[0].server.now
	}
	for command, f := range c.handlers {
		n.server.handle(command, f)
	}
	n.listen()
	s.nodes, c.nodes = append(s.nodes, n), append(c.nodes, n)
	return n
}

// Addrs returns the addresses of all nodes, for the options of a client.
func (c *Cluster) Addrs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var addrs []string
	for _, n := range c.nodes {
		addrs = append(addrs, n.addr)
	}
	return addrs
}

// Nodes returns all nodes: the masters that NewCluster created, in the order of their slots, then
// the replicas of the first master and so on, then those that were added.
func (c *Cluster) Nodes() []*Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.nodes)
}

// MasterOf returns the master of a slot.
func (c *Cluster) MasterOf(slot int) *Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owners[slot].master
}

// ReplicasOf returns the replicas in the shard of a node.
func (c *Cluster) ReplicasOf(n *Node) []*Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return n.shard.inOrder()[1:]
}

// Handle calls [Server.Handle] of every node, including those that are added later.
func (c *Cluster) Handle(command string, f Handler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handlers[command] = f
	for _, n := range c.nodes {
		n.server.handle(command, f)
	}
}

// Advance advances the clock of all nodes; see [Server.Advance].
func (c *Cluster) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		n.server.advance(d)
	}
}

// SetDown makes all nodes answer CLUSTERDOWN to commands with keys, like the nodes of a cluster
// that has lost the master of a slot, or makes them serve again.
func (c *Cluster) SetDown(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
}

// BeginMigration starts moving a slot from its master to that of another shard. Until
// [Cluster.FinishMigration], the old master answers ASK for keys that it does not have, and the new
// one executes a command that follows ASKING. BeginMigration panics if the slot is already there or
// is being migrated.
func (c *Cluster) BeginMigration(slot int, to *Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begin(slot, to)
}

func (c *Cluster) begin(slot int, to *Node) {
	if c.owners[slot] == to.shard || c.migrating[slot] != nil {
		panic(fmt.Sprintf("redistest: slot %d is already at %s, or is being migrated", slot, to.addr))
	}
	c.migrating[slot] = to.shard
}

// MoveKey moves keys, whose slot is being migrated, to their new master, and replaces the values
// there. Keys that the old master does not have are ignored. MoveKey panics if the slot is not
// being migrated.
func (c *Cluster) MoveKey(keys ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		c.move(Slot(key), key)
	}
}

func (c *Cluster) move(slot int, keys ...string) {
	from, to := c.owners[slot], c.migrating[slot]
	if to == nil {
		panic(fmt.Sprintf("redistest: slot %d is not being migrated", slot))
	}
	for _, key := range keys {
		if v := from.space[key]; v != nil {
			to.space[key] = v
			delete(from.space, key)
		}
	}
}

// FinishMigration moves the remaining keys and gives the slot to its new master. Subscriptions to
// channels in the slot end, and clients are notified. FinishMigration panics if the slot is not
// being migrated.
func (c *Cluster) FinishMigration(slot int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finish(slot)
}

func (c *Cluster) finish(slot int) {
	from, to := c.owners[slot], c.migrating[slot]
	c.move(slot, from.space.in(slot)...)
	delete(c.migrating, slot)
	c.owners[slot] = to
	c.claim(to)
	from.dropChannels(func(other int) bool { return other == slot })
}

// claim gives a shard the highest epoch.
func (c *Cluster) claim(s *shard) {
	for _, other := range c.shards {
		s.epoch = max(s.epoch, other.epoch+1)
	}
}

// MoveSlots moves slots to a master by a complete migration. Slots that are already there are
// ignored.
func (c *Cluster) MoveSlots(to *Node, slots ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, slot := range slots {
		if c.owners[slot] != to.shard {
			c.begin(slot, to)
			c.finish(slot)
		}
	}
}

// Failover makes a replica the master of its shard, and the master its replica, whether they are
// running or not. Subscriptions to channels of the shard end, and clients are notified. If the node
// is already the master, nothing happens.
func (c *Cluster) Failover(replica *Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := replica.shard
	if s.master == replica {
		return
	}
	s.master = replica
	c.claim(s)
	s.dropChannels(func(int) bool { return true })
}

// Close stops all nodes.
func (c *Cluster) Close() {
	for _, n := range c.Nodes() {
		n.Stop()
	}
}

// Addr returns the address of the node: host:port.
func (n *Node) Addr() string {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	return n.addr
}

// ID returns the ID of the node: 40 hexadecimal digits.
func (n *Node) ID() string { return n.id }

// Handle calls [Server.Handle] of the node.
func (n *Node) Handle(command string, f Handler) { n.server.Handle(command, f) }

// Seen calls [Server.Seen] of the node. It omits READONLY and CLUSTER, which clients send on their
// own.
func (n *Node) Seen() [][]string { return n.server.Seen() }

// HangUp closes all connections to the node.
func (n *Node) HangUp() { n.server.HangUp() }

// Stop closes all connections to the node and refuses new ones. The other nodes report that it has
// failed. The test decides what happens to its slots; see [Cluster.Failover].
func (n *Node) Stop() {
	n.switching.Lock()
	defer n.switching.Unlock()
	n.cluster.mu.Lock()
	l := n.listener
	n.listener, n.server.closed = nil, true
	n.cluster.mu.Unlock()
	if l != nil {
		l.Close()
	}
	n.accepting.Wait()
	n.server.Close()
}

// Start makes a stopped node listen again, at the same address. It has the keys of its shard. Start
// panics if it cannot listen there.
func (n *Node) Start() { n.start(n.Addr()) }

// StartElsewhere is like Start, but uses another address.
func (n *Node) StartElsewhere() { n.start("127.0.0.1:0") }

func (n *Node) start(addr string) {
	n.switching.Lock()
	defer n.switching.Unlock()
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	if n.listener != nil {
		panic("redistest: the node at " + n.addr + " was not stopped")
	}
	n.addr = addr
	n.listen()
}

// listen accepts connections at the address of the node. The caller holds cluster.mu.
func (n *Node) listen() {
	l, err := net.Listen("tcp", n.addr)
	if err != nil {
		panic("redistest: " + err.Error())
	}
	n.listener, n.addr, n.server.closed = l, l.Addr().String(), false
	// Ends when the listener is closed, by Stop, which waits for it.
	n.accepting.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n.server.mu.Lock()
			n.server.serve(conn)
			n.server.mu.Unlock()
		}
	})
}

// ask answers ASKING.
func (c *Conn) ask([]string) any {
	if c.server.node == nil {
		return errNoCluster
	}
	c.asking = true
	return Simple("OK")
}

// readOnly answers READONLY and READWRITE.
func readOnly(on bool) func(*Conn, []string) any {
	return func(c *Conn, _ []string) any {
		if c.server.node == nil {
			return errNoCluster
		}
		c.readOnly = on
		return Simple("OK")
	}
}

// Node returns the cluster node at the other end of the connection, or nil.
func (c *Conn) Node() *Node { return c.server.node }
