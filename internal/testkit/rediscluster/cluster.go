package rediscluster

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Slots is the number of slots of a cluster.
const Slots = 16384

// Patience bounds the time of every wait.
const Patience = 60 * time.Second

// Options are the options of [Start]. The zero value describes three masters without replicas.
type Options struct {
	// Masters is how many masters share the slots. Zero means 3.
	Masters int
	// ReplicasPer is how many replicas each master has. A cluster with replicas is formed
	// faster: see form.
	ReplicasPer int
	// Binary is the server program. If empty, it is the one that testkit.StartRedis starts.
	Binary string
	// NodeTimeout is cluster-node-timeout. Zero means 1 s.
	NodeTimeout time.Duration
	// Password is the password of clients and replicas. If empty, no login is required.
	Password string
	// TLS encrypts the connections of clients, replicas and the cluster bus; see
	// [Cluster.TLS].
	TLS bool
	// Partitions allows [Cluster.Partition] and [Cluster.Mute]: nodes reach each other's cluster
	// buses through relays. It cannot be combined with TLS.
	Partitions bool
	// Args are additional arguments for every server. They follow those of the package, so they
	// take precedence.
	Args []string
}

// A Cluster is a running Redis Cluster without persistence. Its methods may be called from any
// goroutine that may fail the test, one operation at a time.
type Cluster struct {
	// Immutable.
	options Options
	setup   *setup
	bus     *bus // if nil, nodes reach each other without relays

	// Guarded by mu.
	mu    sync.Mutex
	nodes []*Node
}

// Start starts a cluster whose masters have equal shares of the slots, in the order of
// [Cluster.Nodes]; the replicas follow. It returns when every node is ready and knows all others,
// and the replicas are in sync.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	o.Masters, o.NodeTimeout = cmp.Or(o.Masters, 3), cmp.Or(o.NodeTimeout, time.Second)
	c := &Cluster{options: o, setup: newSetup(t, o.Binary, o.TLS)}
	if o.Partitions {
		if o.TLS {
			t.Fatal("Options.Partitions cannot be combined with Options.TLS")
		}
		c.bus = &bus{mute: make(map[way]bool), links: make(map[*link]struct{})}
	}
	nodes := make([]*Node, o.Masters*(1+o.ReplicasPer))
	for i := range nodes {
		nodes[i] = c.newNode()
	}
	if err := launchAll(nodes); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		n.setID(text(n.Do(t, "CLUSTER", "MYID")))
	}
	c.nodes = nodes
	c.form(t)
	return c
}

// newNode returns a node that has not been started.
func (c *Cluster) newNode() *Node {
	n := &Node{setup: c.setup, dir: c.setup.owner.TempDir(), password: c.options.Password}
	if c.bus != nil {
		n.relayed = c.bus.relay(c.setup.owner, n)
	}
	n.args = func(bus int) []string {
		args := []string{
			"--bind", "127.0.0.1", "--protected-mode", "no", "--dir", n.dir, "--save", "", "--appendonly", "no",
			"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-port", strconv.Itoa(bus),
			"--cluster-node-timeout", strconv.FormatInt(c.options.NodeTimeout.Milliseconds(), 10),
			// A replica may fail over no matter how long it was disconnected, and only for its own
			// master.
			"--cluster-replica-validity-factor", "0", "--cluster-allow-replica-migration", "no",
			"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1",
		}
		if c.options.Password != "" {
			args = append(args, "--requirepass", c.options.Password, "--masterauth", c.options.Password)
		}
		if c.options.TLS {
			args = append(args, "--tls-cluster", "yes")
		}
		if n.relayed != 0 {
			args = append(args, "--cluster-announce-bus-port", strconv.Itoa(n.relayed))
		}
		return append(args, c.options.Args...)
	}
	return n
}

// launchAll starts nodes together.
func launchAll(nodes []*Node) error {
	problems := make([]error, len(nodes))
	var launching sync.WaitGroup
	for i, n := range nodes {
		// Ends when the node runs or cannot; launchAll waits for it.
		launching.Go(func() { problems[i] = n.launch() })
	}
	launching.Wait()
	return errors.Join(problems...)
}

// form creates a cluster from nodes that do not know each other yet.
//
// A master that has just started refuses commands for 2 s, but a replica does not, and it keeps
// that state when it becomes a master. So the slots are first given to a node that will be a
// replica, and then the master takes over.
func (c *Cluster) form(t testing.TB) {
	t.Helper()
	o := c.options
	masters, owners := c.nodes[:o.Masters], c.nodes[:o.Masters]
	if o.ReplicasPer > 0 {
		owners = c.nodes[o.Masters : 2*o.Masters]
	}
	for i, n := range c.nodes {
		n.Do(t, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
	}
	for i, n := range owners {
		n.Do(t, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*Slots/o.Masters), strconv.Itoa((i+1)*Slots/o.Masters-1))
	}
	for i := range c.nodes {
		c.meet(t, c.nodes[i], c.nodes[i+1:])
	}
	c.await(t, "all nodes know each other", func() error { return c.acquainted(c.nodes) })
	if o.ReplicasPer > 0 {
		for i, n := range masters {
			n.Do(t, "CLUSTER", "REPLICATE", owners[i].id)
		}
		for _, n := range masters {
			c.await(t, n.String()+" is ready", func() error { return isReady(n) })
			n.Do(t, "CLUSTER", "FAILOVER", "TAKEOVER")
			// Nodes report a replica as online once it has received anything.
			n.Do(t, "FLUSHALL")
		}
		// A replica does not follow a master that becomes a replica, so the other replicas get
		// their master later.
		for i, n := range c.nodes[2*o.Masters:] {
			c.await(t, n.String()+" is a replica", func() error {
				_, err := n.Ask("CLUSTER", "REPLICATE", masters[i%o.Masters].id)
				return err
			})
		}
	}
	c.Settle(t)
}

// meet introduces a node to others.
func (c *Cluster) meet(t testing.TB, n *Node, others []*Node) {
	t.Helper()
	for _, other := range others {
		other.mu.Lock()
		port, bus := other.port, cmp.Or(other.relayed, other.bus)
		other.mu.Unlock()
		n.Do(t, "CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(port), strconv.Itoa(bus))
	}
}

// TLS returns the configuration of clients, or nil if connections are not encrypted.
func (c *Cluster) TLS() *tls.Config {
	if c.setup.client == nil {
		return nil
	}
	return c.setup.client.Clone()
}

// AuthorityFile returns the path of the authority's certificate (PEM), if connections are encrypted.
func (c *Cluster) AuthorityFile() string { return c.setup.files[2] }

// Nodes returns all nodes except forgotten ones, whether they run or not.
func (c *Cluster) Nodes() []*Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.nodes)
}

// Addrs returns the addresses of all nodes.
func (c *Cluster) Addrs() []string {
	var addrs []string
	for _, n := range c.Nodes() {
		addrs = append(addrs, n.Addr())
	}
	return addrs
}

// running returns the nodes that run.
func (c *Cluster) running() []*Node {
	return slices.DeleteFunc(c.Nodes(), func(n *Node) bool { return !n.Running() })
}

// await waits until cond returns nil.
func (c *Cluster) await(t testing.TB, what string, cond func() error) {
	t.Helper()
	await(t, Patience, what, c.State, cond)
}

func await(t testing.TB, patience time.Duration, what string, state func() string, cond func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := cond()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not true after %v: %s\n%v\n%s", patience, what, err, state())
		}
		time.Sleep(pause)
	}
}

// State describes every node, for messages of tests that fail.
func (c *Cluster) State() string {
	var b []byte
	for _, n := range c.Nodes() {
		b = fmt.Appendf(b, "--- %s, running: %t\n", n, n.Running())
		if !n.Running() {
			continue
		}
		for _, question := range [][]string{{"CLUSTER", "INFO"}, {"INFO", "replication"}, {"CLUSTER", "NODES"}} {
			v, err := n.Ask(question...)
			if err != nil {
				b = fmt.Appendf(b, "%v: %v\n", question, err)
				continue
			}
			b = append(b, text(v)...)
		}
	}
	return string(b)
}
