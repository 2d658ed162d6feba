//go:build unix

package redis_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
	"github.com/slipstream-go/slipstream/redis"
)

// knows waits until a client is connected to a master and its replicas, and to no other server.
func knows(t *testing.T, c *redis.Client, master *rediscluster.Node, replicas int) {
	t.Helper()
	testkit.Eventually(t, 40*time.Second, func() error {
		nodes := c.Nodes()
		if len(nodes) != 1+replicas {
			return fmt.Errorf("%d servers: %+v", len(nodes), nodes)
		}
		for _, n := range nodes {
			if n.Stats.Connected == 0 || n.Replica == (n.Addr == master.Addr()) || n.Replica && n.Master != master.Addr() {
				return fmt.Errorf("the master is %v, but the client knows %+v", master, n)
			}
		}
		return nil
	})
}

// executed returns how often the running servers have executed a command.
func executed(t *testing.T, command string, servers ...*rediscluster.Node) (n int64) {
	t.Helper()
	for _, server := range servers {
		if server.Running() {
			n += server.Commands(t)[command]
		}
	}
	return n
}

// without returns the servers of a setup except one.
func without(s *rediscluster.Sentinels, n *rediscluster.Node) (others []*rediscluster.Node) {
	for _, server := range s.Servers() {
		if server != n {
			others = append(others, server)
		}
	}
	return others
}

// TestSentinelReadsFromReplicas: replicas listed by Sentinels execute reads, and nothing else.
// After a failover the old master, which sessions have left, is one of them. Reads continue when
// replicas die.
//
// mutant: sentinel-replicas-are-not-asked-for, sentinel-replicas-are-greeted-as-in-a-cluster, redis-cursor-of-a-replica
func TestSentinelReadsFromReplicas(t *testing.T) {
	testkit.NoLeaks(t)
	s := rediscluster.StartSentinels(t, rediscluster.SentinelOptions{})
	o := sentinelOptions(s)
	o.ReadFrom, o.DB = redis.ReadReplica, 1
	c := connectSentinel(t, o)
	ctx := t.Context()
	master := s.Master(t)
	knows(t, c, master, 2)
	const keys = 50
	for i := range keys {
		must(t, c.Set(ctx, strconv.Itoa(i), "v"))
	}
	if n, err := c.HSet(ctx, "hash", redis.Field{Name: "f", Value: "v"}); err != nil || n != 1 {
		t.Errorf("HSET: %d, %v", n, err)
	}
	testkit.Eventually(t, 20*time.Second, func() error { // until all replicas have the data
		for _, n := range without(s, master) {
			n.Do(t, "SELECT", "1")
			if v := n.Do(t, "EXISTS", "hash"); v.Int != 1 {
				return fmt.Errorf("%v has no hash", n)
			}
		}
		return nil
	})
	read := func(command string) (atMaster, atReplicas int64) {
		for i := range keys {
			if v, _, err := c.Get(ctx, strconv.Itoa(i)); err != nil || v != "v" {
				t.Fatalf("%q, %v", v, err)
			}
			must(t, c.Set(ctx, strconv.Itoa(i), "v"))
		}
		return executed(t, command, master), executed(t, command, without(s, master)...)
	}
	testkit.Eventually(t, 20*time.Second, func() error { // until earlier choices have expired
		for _, n := range s.Servers() {
			n.ResetCommands(t)
		}
		if at, others := read("get"); at != 0 || others != keys {
			return fmt.Errorf("the master executed %d reads, its replicas %d", at, others)
		}
		return nil
	})
	if at := executed(t, "set", master); at != keys {
		t.Errorf("the master executed %d writes of %d", at, keys)
	}
	// The master executes commands without a key, and commands that return a cursor.
	if n, err := c.DBSize(ctx); err != nil || n != keys+1 {
		t.Errorf("DBSIZE: %d, %v", n, err)
	}
	must(t, c.Do(ctx, nil, redis.Cmd("HSCAN", "hash", 0)))
	for _, command := range []string{"dbsize", "hscan"} {
		if at, others := executed(t, command, master), executed(t, command, without(s, master)...); at != 1 || others != 0 {
			t.Errorf("%s was executed %d times by the master, %d times by its replicas", command, at, others)
		}
	}
	servers := 0
	must(t, c.ForEachNode(ctx, func(ctx context.Context, n *redis.Client) error {
		servers++
		return n.Ping(ctx)
	}))
	if servers != 3 {
		t.Errorf("%d servers", servers)
	}

	session, err := c.Session(ctx)
	must(t, err)
	master = s.Failover(t)
	atMaster(t, c, master)
	testkit.Eventually(t, 40*time.Second, func() error {
		if err := session.Do(ctx, nil, redis.Cmd("WATCH", "k")); slipstream.OutcomeOf(err) != slipstream.NotSent {
			return fmt.Errorf("the session at the old master has not ended: %v", err)
		}
		return nil
	})
	session.Close()
	knows(t, c, master, 2)
	for i, replica := range without(s, master) {
		replica.Kill()
		read("get")
		knows(t, c, master, 1-i)
	}
	before := executed(t, "get", master)
	if at, _ := read("get"); at-before != keys {
		t.Errorf("without replicas the master executed %d of %d reads", at-before, keys)
	}
	must(t, c.Close())
}
