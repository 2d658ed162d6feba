package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/redis/internal/cluster"
	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// A Client has one node for all calls, or a router that finds a node for each call (router_ask.go
// contains its requests to nodes). A node is a server: its engine, whose calls fail immediately
// while there is no connection, and its options. The views of a client, which Client.Node returns,
// share a core: options, hooks, exclusive connections, and the cache.
// docs/decisions/0020-redis-cluster.md gives the reasons.
//
//   - Names of nodes: with TLS, a node's certificate must be valid for the name that the node
//     announces, from the next connection on (node.name). A name that is not a host name, or is an
//     IP address, counts as not announced: then the certificate must be valid for the address that
//     is dialed.
//   - Until the topology is known, with NoWait, calls go to a seed. The seed then becomes the node
//     with its address, or is closed if there is no such node.
//   - Failover: a connection that ends or cannot be opened requests a refresh, and so does a server
//     that owes replies and has been silent for 1 s, long before StallTimeout, because a replica
//     may have taken over its slots. While a master with slots has no connection or is silent, or a
//     node says that the cluster is down, refreshes come up to four times a second. Calls that
//     start once the new owner is known go there. The connection to a silent node that has failed
//     and lost its slots is closed (giveUp), so that calls in flight end. Other shards are not
//     affected, because they share no queue.

// A router sends the calls of a client to the nodes of a cluster. With Sentinels there is only one
// shard, whose master owns all slots. All methods are safe for concurrent use.
type router struct {
	// Immutable after newRouter and newSentinelRouter.
	core      *core
	hub       *hub
	sharded   bool // keys have slots; if false, all calls use slot 0
	split     bool // ClusterOptions.SplitMSet
	addresses cluster.Addresses
	nodes     *cluster.Map[*node]
	refresher refresher
	openSeed  func() *node // opens the node for calls before the first topology
	random    uint64       // identifies this client
	policy    cluster.Policy
	zone      string
	began     time.Time
	ctx       context.Context // ends with close
	cancel    context.CancelFunc

	mu sync.Mutex
	// Guarded by mu.
	opened map[*node]struct{} // for Close
	closed bool

	seedMu sync.Mutex
	seeded *node // guarded by seedMu: the node for calls while there is no topology, or nil

	leaving sync.WaitGroup // goroutines that close nodes; added to under mu

	// Atomics.
	delayed    atomic.Int64                     // calls of Completers that wait for their next attempt
	downUntil  atomic.Int64                     // the end of urgent refreshes while the cluster is down, as the time since began
	topology   atomic.Pointer[cluster.Topology] // the latest one; written by apply
	dialFailed atomic.Pointer[slipstream.Event] // the latest failed attempt to connect; nil if there was none
}

// A refresher keeps the topology of a router up to date. All methods are safe for concurrent use.
type refresher interface {
	// Request makes a refresh start soon.
	Request()
	// Ready waits until there is a topology, or the first refresh has failed.
	Ready(ctx context.Context) error
	// Verify reports whether a node has the address. It refreshes the topology if necessary.
	Verify(ctx context.Context, addr string) (cluster.Node, bool, error)
	// Close ends the refresher and all calls that wait for it.
	Close()
}

// maxDelayed bounds the calls of Completers that wait for their next attempt. Each has a goroutine.
const maxDelayed = 65_536

// makeRouter returns a router without a refresher.
func makeRouter(c *core, h *hub, addresses cluster.Addresses) *router {
	k := &router{core: c, hub: h, addresses: addresses, opened: make(map[*node]struct{}), random: rand.Uint64(), began: time.Now()}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	if c.cache != nil {
		c.cache.epochs, c.dropOf = make([]atomic.Uint32, slot.Count), k.dropOf
	}
	k.nodes = cluster.NewMap(k.member)
	return k
}

func newRouter(c *core, h *hub, o *ClusterOptions) *router {
	k := makeRouter(c, h, cluster.Addresses{TLS: o.TLS != nil, Map: o.MapAddr, Seeds: o.Seeds})
	k.sharded, k.split, k.policy, k.zone = true, o.SplitMSet, policies[o.ReadFrom], o.Zone
	k.openSeed = func() *node { return k.open(o.Seeds[rand.IntN(len(o.Seeds))], "") }
	assigned := make(chan struct{})
	k.refresher = cluster.NewRefresher(cluster.Config{
		Addresses: &k.addresses, Asker: k, Begin: k.nodes.Begin, Urgent: k.urgent,
		Apply: func(t *cluster.Topology, asked cluster.Round) {
			<-assigned // because apply opens nodes, which use k.refresher
			k.apply(t, asked)
		},
		Interval: o.RefreshEvery, Timeout: o.dialTimeout(),
	})
	close(assigned)
	return k
}

// open returns the node at an address. Hostname is the name in its certificate, if the node
// announces one.
func (k *router) open(addr, hostname string) *node {
	return k.add(k.core.newNode(k.nodeOptions(addr), hostname, k.event, k.lost))
}

// add records a node for Close.
func (k *router) add(n *node) *node {
	k.mu.Lock()
	closed := k.closed
	if !closed {
		k.opened[n] = struct{}{}
	}
	k.mu.Unlock()
	if closed {
		_ = n.engine.Close()
	}
	return n
}

// nodeOptions returns the options of the node at an address. Calls fail immediately while the node
// has no connection: the router waits instead of the node, because another node may get the slots.
func (k *router) nodeOptions(addr string) Options {
	o := k.core.opts
	o.Addr, o.FailFast, o.readOnly = addr, true, k.sharded && k.policy != cluster.MasterOnly
	if o.Dialer == nil {
		o.Dialer = k.dial
	}
	return o
}

// dial opens a connection. It refuses names that resolve to an address that no node should have.
func (k *router) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		if at, err := netip.ParseAddrPort(address); err == nil && !k.addresses.Allowed(at.Addr()) {
			return fmt.Errorf("%v is not an address that a node should have, but a link-local address or one of a cloud service; if a node has this address, add it to the addresses in the options", at.Addr())
		}
		return nil
	}}
	return d.DialContext(ctx, network, addr)
}

// event is called when a connection to a node is opened or lost.
func (k *router) event(e slipstream.Event) {
	if e.Kind != slipstream.Connected {
		k.refresher.Request()
	}
	if e.Kind == slipstream.DialFailed {
		k.dialFailed.Store(&e)
	}
	k.core.hooks.Event(e)
}

// lost records that calls do not reach a node, or that it does not answer them.
func (k *router) lost() { k.refresher.Request() }

// urgent reports whether calls wait for a failover: a master that owns slots has no connection or is
// silent, or a node says that the cluster is down.
func (k *router) urgent(t *cluster.Topology) bool {
	if int64(time.Since(k.began)) < k.downUntil.Load() {
		return true
	}
	table := k.nodes.Table()
	for _, owned := range t.Ranges {
		if member := table.Find(t.Nodes[owned.Node].Addr); member != nil {
			if up, _ := member.Peer.engine.Up(); up == 0 || member.Peer.engine.Silent() {
				return true
			}
		}
	}
	return false
}

// delay reserves a slot for a call of a Completer that waits for its next attempt. It returns false
// if there is none.
func (k *router) delay() bool {
	if k.delayed.Add(1) > maxDelayed {
		k.delayed.Add(-1)
		return false
	}
	return true
}

// apply makes a topology the current one. Nodes that have left are closed once their calls have
// ended.
func (k *router) apply(t *cluster.Topology, asked cluster.Round) {
	before := k.owners()
	left := k.nodes.Apply(t, asked)
	k.topology.Store(t)
	for _, member := range k.nodes.Table().Members() {
		member.Peer.name(member.Node.Hostname)
	}
	k.dropMoved(before)
	k.hub.remap()
	for _, member := range left {
		k.leave(member.Peer)
	}
	k.leaveSeed()
	k.giveUp(t)
}

// giveUp closes the connections to nodes that are silent, have failed according to the cluster, and
// no longer own slots: a reply that still came would be from a master that was replaced.
func (k *router) giveUp(t *cluster.Topology) {
	owns := make([]bool, len(t.Nodes))
	for _, owned := range t.Ranges {
		owns[owned.Node] = true
	}
	table := k.nodes.Table()
	for i := range t.Nodes {
		if n := &t.Nodes[i]; n.Flags&cluster.Failed != 0 && !owns[i] {
			if member := table.Find(n.Addr); member != nil {
				member.Peer.engine.GiveUp()
			}
		}
	}
}

// leave closes a node that is no longer in the table, once its calls have ended.
func (k *router) leave(n *node) {
	k.hub.leave(n)
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, open := k.opened[n]; !open {
		return // close does the rest
	}
	// Ends when the calls in progress have ended, at the latest after DialTimeout or when close is
	// called, which waits for it. Until then the node stays in opened, so that close closes it.
	k.leaving.Go(func() {
		ctx, cancel := context.WithTimeout(k.ctx, k.core.opts.dialTimeout())
		defer cancel()
		// If the node is silent, its calls would not end. Those that are retried need a connection,
		// which the node that has replaced it may not have yet.
		if next := k.one(); next != nil && next != n {
			_ = next.engine.Connect(ctx)
		}
		n.engine.GiveUp()
		_ = n.engine.Shutdown(ctx)
		k.core.exclusives.leave(ctx, n)
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.opened, n)
	})
}

// gone reports whether a node is no longer in the table.
func (k *router) gone(n *node) bool {
	table := k.nodes.Table()
	if len(table.Members()) == 0 {
		return false
	}
	member := table.Find(n.fail.Addr)
	return member == nil || member.Peer != n
}

// owners returns the owner of each slot, or nil if replies are not cached.
func (k *router) owners() []*node {
	if k.core.cache == nil {
		return nil
	}
	owners, table := make([]*node, slot.Count), k.nodes.Table()
	for s := range owners {
		if member := table.Route(uint16(s)); member != nil {
			owners[s] = member.Peer
		}
	}
	return owners
}

// dropMoved drops the cached replies of slots whose owner has changed.
func (k *router) dropMoved(before []*node) {
	for s, now := range k.owners() {
		if before[s] != now {
			k.core.cache.drop(s)
		}
	}
}

// dropOf drops the cached replies of the slots that a node owns.
func (k *router) dropOf(n *node) {
	table := k.nodes.Table()
	for s := range slot.Count {
		if member := table.Route(uint16(s)); member != nil && member.Peer == n {
			k.core.cache.drop(s)
		}
	}
}

// move gives a slot to a node.
func (k *router) move(s uint16, to *cluster.Member[*node]) {
	table := k.nodes.Table()
	before := table.Route(s)
	if table.Move(s, to) && k.core.cache != nil && (before == nil || before.Peer != to.Peer) {
		k.core.cache.drop(int(s))
	}
}

// owner returns the node that owns a slot, or any node if none is known.
func (k *router) owner(slot int32) *node {
	if slot >= 0 {
		if member := k.nodes.Table().Route(uint16(slot)); member != nil {
			return member.Peer
		}
	}
	return k.any()
}

// any returns the node for calls without keys: a connected master if there is one. The choice depends
// on the time and stays the same for a while, so that such calls share writes.
func (k *router) any() *node {
	members := k.nodes.Table().Members()
	for len(members) == 0 {
		if seed := k.seed(); seed != nil {
			return seed
		}
		members = k.nodes.Table().Members() // there is a topology now
	}
	from := int(cluster.Seed(k.random, time.Since(k.began)) % uint64(len(members)))
	var replica, down *node
	for i := range members {
		member := members[(from+i)%len(members)]
		up, _ := member.Peer.engine.Up()
		switch {
		case up == 0:
			down = member.Peer
		case member.Node.Replica:
			replica = member.Peer
		default:
			return member.Peer
		}
	}
	if replica != nil {
		return replica
	}
	return down
}

// one returns the node for calls that any master can execute.
func (k *router) one() *node {
	if !k.sharded {
		return k.owner(0)
	}
	return k.any()
}

// each returns the masters, or with replicas all nodes, of the current topology.
func (k *router) each(replicas bool) (nodes []*node) {
	for _, member := range k.nodes.Table().Members() {
		if replicas || !member.Node.Replica {
			nodes = append(nodes, member.Peer)
		}
	}
	if nodes == nil {
		nodes = append(nodes, k.any())
	}
	return nodes
}

// routeKey returns the node for a command with this key. An empty key means that the command has no
// keys, unless it must have one.
func (k *router) routeKey(in *commandInfo, key string) (*node, route) {
	if !k.sharded {
		return k.nodeFor(in, 0), route{}
	}
	if key == "" && !in.keyed() {
		return k.any(), route{slot: noSlot}
	}
	s := int32(slot.Of(key))
	return k.nodeFor(in, s), route{slot: s}
}

// routeOf returns the node for a command. All of its keys must be in the same slot.
func (k *router) routeOf(cmd *Command) (*node, route, error) {
	if !k.sharded {
		return k.nodeFor(cmd.info, 0), route{}, nil
	}
	s, err := slotOf(cmd.info, cmd.frame)
	if err != nil {
		return nil, route{}, err
	}
	return k.nodeFor(cmd.info, s), route{slot: s, guessed: cmd.info.guessed()}, nil
}

// nodeFor returns the node for a command whose keys are in a slot. A command that has no keys is executed by
// the master that Sentinels name, because SCAN is one of them.
func (k *router) nodeFor(in *commandInfo, slot int32) *node {
	if k.policy != cluster.MasterOnly && in.readsReplica() && (k.sharded || in.keyed()) && !in.iterates() {
		return k.reader(slot)
	}
	return k.owner(slot)
}

// all returns all open nodes.
func (k *router) all() (nodes []*node) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for n := range k.opened {
		nodes = append(nodes, n)
	}
	return nodes
}

// close closes all nodes and waits until their goroutines have ended.
func (k *router) close() (err error) {
	k.refresher.Close()
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.cancel()
	for _, n := range k.all() {
		err = errors.Join(err, n.engine.Close())
	}
	k.leaving.Wait()
	return err
}

// shutdown waits until the calls in progress have ended or ctx ends, and then closes all nodes.
func (k *router) shutdown(ctx context.Context) (err error) {
	for _, n := range k.all() {
		err = errors.Join(err, n.engine.Shutdown(ctx))
	}
	return errors.Join(err, k.close())
}
