//go:build unix

package redis_test

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/faultproxy"
	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
	"github.com/slipstream-go/slipstream/redis"
)

// keyOf returns a key whose slot belongs to a node.
func keyOf(t *testing.T, cluster *rediscluster.Cluster, n *rediscluster.Node) string {
	t.Helper()
	for i := 0; ; i++ {
		if key := fmt.Sprint("n:", i); cluster.MasterOf(t, cluster.Slot(t, key)) == n {
			return key
		}
	}
}

// check compares the value of the key with the results of the calls: no acknowledged increment is
// missing, and none was executed twice.
func (i *increments) check(t *testing.T, c *redis.Client) {
	t.Helper()
	i.end()
	value, _, err := c.Get(t.Context(), i.key)
	must(t, err)
	n, err := strconv.ParseInt(value, 10, 64)
	must(t, err)
	if least, most := i.acknowledged.Load(), i.acknowledged.Load()+i.doubtful.Load(); n < least || n > most {
		t.Errorf("%s: %d increments, want %d that were acknowledged to %d that may have been made", i.key, n, least, most)
	}
}

// TestClusterRollsAndMoves: all nodes restart under load, one at a time, masters after their
// replicas have taken over, and one node returns at another address. Only calls that were in flight
// at a node when it ended may fail.
func TestClusterRollsAndMoves(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{ReplicasPer: 1})
	c := connectCluster(t, cluster, func(o *redis.ClusterOptions) { o.DialTimeout = time.Minute })
	nodes := cluster.Nodes()
	masters, replicas := nodes[:3], nodes[3:]
	var loads []*increments
	for _, n := range masters {
		loads = append(loads, increment(t, c, keyOf(t, cluster, n), 3, 0))
	}
	more := func() {
		t.Helper()
		for _, load := range loads {
			load.awaitMore(t, 50)
		}
	}
	more()
	for _, n := range replicas {
		cluster.Restart(t, n)
	}
	for i, n := range masters {
		cluster.Failover(t, replicas[i])
		more()
		cluster.Restart(t, n)
	}
	before := masters[0].Addr()
	cluster.Move(t, masters[0])
	cluster.Failover(t, masters[0])
	more()
	for _, load := range loads {
		load.check(t, c)
		made, doubtful := load.acknowledged.Load(), load.doubtful.Load()
		t.Logf("%s: %d increments, %d in doubt", load.key, made, doubtful)
		if doubtful > 3+made/1000 { // each caller may have one call in flight
			t.Errorf("%s: %d of %d calls failed", load.key, doubtful, made)
		}
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		known := make(map[string]bool)
		for _, n := range c.Nodes() {
			known[n.Addr] = true
		}
		if known[before] || !known[masters[0].Addr()] || len(known) != len(nodes) {
			return fmt.Errorf("the client knows %v; the node moved from %s to %s", known, before, masters[0].Addr())
		}
		return nil
	})
}

// TestClusterShardIsDown: no node serves the slots of a shard. Calls to it fail after DialTimeout
// with an error that says that they were not executed, calls to other shards succeed, and calls
// succeed again when the master returns.
func TestClusterShardIsDown(t *testing.T) {
	testkit.OnlyInMatrix(t)
	cluster := rediscluster.Start(t, rediscluster.Options{ReplicasPer: 1, Args: []string{"--cluster-require-full-coverage", "no"}})
	c := connectCluster(t, cluster, func(o *redis.ClusterOptions) { o.DialTimeout = 2 * time.Second })
	master, replica := cluster.Nodes()[0], cluster.Nodes()[3]
	key, other := keyOf(t, cluster, master), keyOf(t, cluster, cluster.Nodes()[1])
	others := increment(t, c, other, 2, time.Millisecond)
	others.awaitMore(t, 10)
	replica.Kill()
	master.Kill()
	// A call before the client has noticed this would be written to a dead connection.
	testkit.Eventually(t, 20*time.Second, func() error {
		for _, n := range c.Nodes() {
			if n.Addr == master.Addr() && n.Stats.Connected > 0 {
				return errors.New("the client is connected to the master")
			}
		}
		return nil
	})
	for range 3 {
		began := time.Now()
		_, err := c.Incr(t.Context(), key)
		switch slipstream.OutcomeOf(err) {
		case slipstream.NotSent, slipstream.Refused:
		default:
			t.Errorf("a call to the shard that is down: %v", err)
		}
		if took := time.Since(began); took < 2*time.Second {
			t.Errorf("%v after %v", err, took)
		}
	}
	cluster.Restart(t, master)
	testkit.Eventually(t, 30*time.Second, func() error {
		n, err := c.Incr(t.Context(), key)
		if err == nil && n < 1 {
			t.Errorf("INCR: %d", n)
		}
		return err
	})
	others.awaitMore(t, 100)
	if n := others.doubtful.Load(); n > 0 {
		t.Errorf("%d errors of another shard", n)
	}
	others.check(t, c)
}

// TestClusterMasterAndClientsDoNotHearEachOther: no packets, or no replies, pass between a master
// and the client, while the rest of the cluster is healthy. Calls in flight end after StallTimeout,
// and none is executed twice; calls to other shards continue. When packets pass again, calls
// succeed.
func TestClusterMasterAndClientsDoNotHearEachOther(t *testing.T) {
	testkit.OnlyInMatrix(t)
	for name, stall := range map[string]func(*faultproxy.Proxy){"silent": (*faultproxy.Proxy).Stall, "one way": (*faultproxy.Proxy).StallReplies} {
		t.Run(name, func(t *testing.T) {
			cluster := rediscluster.Start(t, rediscluster.Options{})
			master := cluster.Nodes()[0]
			proxy := faultproxy.Start(t, master.Addr(), faultproxy.Options{})
			_, text, err := net.SplitHostPort(proxy.Addr())
			must(t, err)
			port, err := strconv.Atoi(text)
			must(t, err)
			key, other := keyOf(t, cluster, master), keyOf(t, cluster, cluster.Nodes()[1])
			cluster.Announce(t, master, port)
			c := connectCluster(t, cluster, func(o *redis.ClusterOptions) {
				o.Seeds, o.StallTimeout, o.DialTimeout = cluster.Addrs()[1:], 2*time.Second, time.Minute
			})
			load, others := increment(t, c, key, 8, 0), increment(t, c, other, 1, time.Millisecond)
			load.awaitMore(t, 100)
			stall(proxy)
			made := others.acknowledged.Load()
			testkit.Eventually(t, 30*time.Second, func() error {
				if load.doubtful.Load() == 0 { // the others were not sent and wait for a connection
					return errors.New("no call has ended")
				}
				if others.acknowledged.Load() == made {
					return errors.New("a call to another shard waits")
				}
				return nil
			})
			proxy.Resume()
			load.awaitMore(t, 100)
			if n := others.doubtful.Load(); n > 0 {
				t.Errorf("%d errors of another shard", n)
			}
			load.check(t, c)
			others.check(t, c)
		})
	}
}
