package rediscluster

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"
)

// Failover makes a replica the master by CLUSTER FAILOVER, in agreement with its master, which
// becomes its replica.
func (c *Cluster) Failover(t testing.TB, replica *Node) {
	t.Helper()
	c.promote(t, replica)
}

// Takeover makes a replica the master by CLUSTER FAILOVER TAKEOVER, without a vote: its master may
// be dead.
func (c *Cluster) Takeover(t testing.TB, replica *Node) {
	t.Helper()
	c.promote(t, replica, "TAKEOVER")
}

func (c *Cluster) promote(t testing.TB, replica *Node, how ...string) {
	t.Helper()
	var asked time.Time
	c.await(t, replica.String()+" is a master", func() error {
		s, err := replica.self()
		if err != nil {
			return err
		}
		if s.master == "" {
			return nil
		}
		// The server gives up a failover that does not succeed within 5 s, for instance because
		// masters have voted too recently.
		if time.Since(asked) > 6*time.Second {
			if _, err := replica.Ask(append([]string{"CLUSTER", "FAILOVER"}, how...)...); err != nil {
				return fmt.Errorf("%s: %w", replica, err)
			}
			asked = time.Now()
		}
		return fmt.Errorf("%s is a replica of %s", replica, s.master)
	})
	c.Settle(t)
}

// AwaitMaster waits until another node than old is the master of the slot and the cluster has
// settled, and returns that node.
//
// A Redis 7.0 that has won an election less than 4 s ago, and is a replica again, counts the old
// votes when its new master dies. It then claims the slots with the old epoch, and the other nodes
// reject that forever. AwaitMaster gives it a new epoch.
func (c *Cluster) AwaitMaster(t testing.TB, slot int, old *Node) *Node {
	t.Helper()
	const tooLong = 3 * time.Second // for others to be notified
	var master *Node
	var since time.Time
	c.await(t, fmt.Sprintf("slot %d has another master than %s", slot, old), func() error {
		now := c.masterOf(slot)
		if now == nil || now == old {
			return fmt.Errorf("its master is %v", now)
		}
		if now != master {
			master, since = now, time.Now()
		}
		err := c.settled()
		if err != nil && time.Since(since) > tooLong {
			since = time.Now()
			if _, bump := master.Ask("CLUSTER", "BUMPEPOCH"); bump != nil {
				return bump
			}
		}
		return err
	})
	return master
}

// Restart kills the node if it is running, and starts it again on the same ports. It keeps its ID
// and its view of the cluster, but has no keys.
func (c *Cluster) Restart(t testing.TB, n *Node) {
	t.Helper()
	n.mu.Lock()
	port, bus := n.port, n.bus
	n.mu.Unlock()
	n.Kill()
	if err := n.launchAt(port, bus); err != nil {
		t.Fatal(err)
	}
	c.Settle(t)
}

// Move is like Restart, but uses other ports.
func (c *Cluster) Move(t testing.TB, n *Node) {
	t.Helper()
	n.Kill()
	if err := n.launch(); err != nil {
		t.Fatal(err)
	}
	c.Settle(t)
}

// Announce makes all nodes announce another port of the loopback address for a node, for instance
// that of a proxy, until the node is restarted. Its replicas connect there, too. Zero means the
// node's own port.
func (c *Cluster) Announce(t testing.TB, n *Node, port int) {
	t.Helper()
	setting := "cluster-announce-port"
	if c.setup.client != nil {
		setting = "cluster-announce-tls-port"
	}
	n.SetConfig(t, setting, strconv.Itoa(port))
	n.mu.Lock()
	n.announced = port
	n.mu.Unlock()
	c.Settle(t)
}

// AddMaster starts a new master without slots and waits until all know it. It takes at least 2 s,
// because a master that has just started refuses commands for that long.
func (c *Cluster) AddMaster(t testing.TB) *Node {
	t.Helper()
	n := c.join(t)
	c.Settle(t)
	return n
}

// AddReplica starts a new replica of a master and waits until it is in sync and all know it.
func (c *Cluster) AddReplica(t testing.TB, master *Node) *Node {
	t.Helper()
	n := c.join(t)
	n.Do(t, "CLUSTER", "REPLICATE", master.id)
	c.Settle(t)
	return n
}

// join starts a node and waits until all others know it.
func (c *Cluster) join(t testing.TB) *Node {
	t.Helper()
	n := c.newNode()
	if err := n.launch(); err != nil {
		t.Fatal(err)
	}
	n.setID(text(n.Do(t, "CLUSTER", "MYID")))
	c.meet(t, n, c.running())
	c.mu.Lock()
	c.nodes = append(c.nodes, n)
	c.mu.Unlock()
	c.await(t, "all nodes know "+n.String(), func() error { return c.acquainted(c.running()) })
	return n
}

// Forget removes a node from the cluster by CLUSTER FORGET. Its slots, if it has any, then have no
// master. A running node keeps running and does not notice.
func (c *Cluster) Forget(t testing.TB, n *Node) {
	t.Helper()
	c.mu.Lock()
	c.nodes = slices.DeleteFunc(c.nodes, func(other *Node) bool { return other == n })
	c.mu.Unlock()
	// A node that has forgotten it may learn of it again from a node that has not.
	c.await(t, "all nodes have forgotten "+n.String(), func() error {
		var problem error
		for _, other := range c.running() {
			seen, err := other.sightings()
			if err != nil {
				return err
			}
			if _, known := seen[n.id]; known {
				_, err = other.Ask("CLUSTER", "FORGET", n.id)
				problem = fmt.Errorf("%s knew it, %v", other, err)
			}
		}
		return problem
	})
}

// AwaitReplication waits until the running replicas have what their masters have executed
// before the call.
func (c *Cluster) AwaitReplication(t testing.TB) {
	t.Helper()
	type goal struct {
		replica *Node
		offset  int64
	}
	var goals []goal
	for _, n := range c.running() {
		s, err := n.self()
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(c.Nodes(), func(m *Node) bool { return m.id == s.master })
		if i < 0 || !c.Nodes()[i].Running() {
			continue
		}
		offset, err := replicationOffset(c.Nodes()[i], "master_repl_offset")
		if err != nil {
			t.Fatal(err)
		}
		goals = append(goals, goal{n, offset})
	}
	c.await(t, "replicas have everything", func() error {
		for _, g := range goals {
			offset, err := replicationOffset(g.replica, "slave_repl_offset")
			if err != nil {
				return err
			}
			if offset < g.offset {
				return fmt.Errorf("%s has %d of %d bytes", g.replica, offset, g.offset)
			}
		}
		return nil
	})
}

func replicationOffset(n *Node, field string) (int64, error) {
	f, err := n.info("replication")
	if err != nil {
		return 0, fmt.Errorf("%s: %w", n, err)
	}
	offset, err := strconv.ParseInt(f[field], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %s: %w", n, field, err)
	}
	return offset, nil
}

// SetConfig changes a setting of all running nodes.
func (c *Cluster) SetConfig(t testing.TB, name, value string) {
	t.Helper()
	for _, n := range c.running() {
		n.SetConfig(t, name, value)
	}
}

// Slot returns the slot of a key, as the servers compute it.
func (c *Cluster) Slot(t testing.TB, key string) int {
	t.Helper()
	return int(c.running()[0].Do(t, "CLUSTER", "KEYSLOT", key).Int)
}
