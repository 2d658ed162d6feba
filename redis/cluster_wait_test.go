//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
	"github.com/slipstream-go/slipstream/redis"
)

// awaitBlocked waits until n clients are blocked at a node.
func awaitBlocked(t *testing.T, at *rediscluster.Node, n int) {
	t.Helper()
	testkit.Eventually(t, 20*time.Second, func() error {
		v, err := at.Ask("INFO", "clients")
		if err != nil {
			return err
		}
		if !strings.Contains(string(v.Str), fmt.Sprintf("blocked_clients:%d\r", n)) {
			return fmt.Errorf("%v does not have %d blocked clients: %s", at, n, v.Str)
		}
		return nil
	})
}

// refusedWith fails the test unless a server has refused a command with the given error code.
func refusedWith(t *testing.T, what string, err error, code string) {
	t.Helper()
	e, ok := errors.AsType[*redis.ServerError](err)
	if !ok || e.Code != code || slipstream.OutcomeOf(err) != slipstream.Refused {
		t.Errorf("%s: %v, want %s, refused", what, err, code)
	}
}

// TestWhatWaitsInASlotThatMoves: a blocked command, made in any way, continues at the new owner of
// its slot. A session stays at its node, and WATCH of a key that is being moved fails, both with
// the error of the server.
//
// mutant: redis-cluster-waiting-command-ends-with-its-slot
func TestWhatWaitsInASlotThatMoves(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{})
	c := connectCluster(t, cluster)
	ctx := t.Context()
	const list, key = "{moving}list", "{moving}key"
	slot := cluster.Slot(t, list)
	from := cluster.MasterOf(t, slot)
	to := cluster.Nodes()[0]
	if to == from {
		to = cluster.Nodes()[1]
	}
	session, err := c.Session(ctx, key)
	must(t, err)
	defer session.Close()
	must(t, session.Do(ctx, nil, redis.Cmd("WATCH", key)))
	const styles = 3
	popped := make(chan error, styles+1)
	for style := range styles {
		// Ends when the list has elements, or at the latest with the test; waited for below.
		go func() { popped <- inStyle(t, style, c, redis.Cmd("BLPOP", list, 0)) }()
	}
	awaitBlocked(t, from, styles)
	m := cluster.BeginMigration(t, slot, to)
	// Ends like the goroutines above.
	go func() { popped <- c.Do(ctx, nil, redis.Cmd("BLPOP", list, 0)) }()
	awaitBlocked(t, to, 1)
	refusedWith(t, "a session, while the slot moves", session.Do(ctx, nil, redis.Cmd("GET", key)), "ASK")
	refusedWith(t, "WATCH, while the slot moves", c.Watch(ctx, func(*redis.Tx) error { return nil }, key), "ASK")
	m.Finish(t)
	awaitBlocked(t, to, styles+1)
	if n, err := c.RPush(ctx, list, "a", "b", "c", "d"); err != nil || n != styles+1 {
		t.Errorf("RPUSH: %d, %v", n, err)
	}
	for range styles + 1 {
		if err := <-popped; err != nil {
			t.Errorf("BLPOP: %v", err)
		}
	}
	refusedWith(t, "a session, after the slot has moved", session.Do(ctx, nil, redis.Cmd("GET", key)), "MOVED")
	must(t, c.Watch(ctx, func(tx *redis.Tx) error {
		tx.Add(nil, redis.Cmd("SET", key, "v"))
		return nil
	}, key))
}

// TestSubscriptionSurvivesItsNode: a subscription to a channel moves to another node when its node
// dies, and receives a Gap where messages may be missing.
func TestSubscriptionSurvivesItsNode(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{ReplicasPer: 1})
	c := connectCluster(t, cluster)
	s, err := c.Subscribe(t.Context(), redis.Topics{Channels: []string{"news"}})
	must(t, err)
	defer s.Close()
	var its, other *rediscluster.Node
	for _, n := range cluster.Nodes() {
		if v := n.Do(t, "PUBSUB", "NUMSUB", "news"); len(v.Elems) == 2 && v.Elems[1].Int > 0 {
			its = n
		} else {
			other = n
		}
	}
	if its == nil || other == nil {
		t.Fatalf("the subscription is at %v, want %v", its, other)
	}
	its.Kill()
	gap := false
	testkit.Eventually(t, 20*time.Second, func() error {
		other.Do(t, "PUBLISH", "news", "after")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		m, err := s.Receive(ctx)
		switch {
		case err != nil:
			return err
		case m.Kind == redis.Gap:
			gap = true
			return errors.New("a Gap, but no message yet")
		case !gap:
			t.Errorf("%+v without a Gap before it", m)
		}
		return nil
	})
}

// TestOtherShardsDoNotWait: calls to a silent master wait in the client, in the queue for that node
// only. Calls to other masters are answered meanwhile, and none of them is queued.
func TestOtherShardsDoNotWait(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{NodeTimeout: time.Minute})
	c := connectCluster(t, cluster, func(o *redis.ClusterOptions) { o.StallTimeout = time.Hour })
	ctx := t.Context()
	silent := cluster.Nodes()[1]
	keys := make(map[bool][]string) // by whether the silent node has them
	for i := 0; len(keys[true]) < 20 || len(keys[false]) < 20; i++ {
		key := fmt.Sprint("key", i)
		at := cluster.MasterOf(t, cluster.Slot(t, key)) == silent
		keys[at] = append(keys[at], key)
		must(t, c.Set(ctx, key, "v"))
	}
	silent.Stop(t)
	const calls = 2000
	var waiting []redis.Future
	for i := range calls {
		waiting = append(waiting, c.Start(ctx, redis.Cmd("GET", keys[true][i%20])))
	}
	for i := range calls {
		if v, _, err := c.Get(ctx, keys[false][i%20]); err != nil || v != "v" {
			t.Fatalf("another shard: %q, %v", v, err)
		}
	}
	testkit.Eventually(t, 20*time.Second, func() error { // the client queries the topology meanwhile
		for _, n := range c.Nodes() {
			wait := n.Stats.Outstanding + n.Stats.Queued
			if n.Addr == silent.Addr() && wait < calls || n.Addr != silent.Addr() && wait > 0 {
				return fmt.Errorf("%d calls wait for %s", wait, n.Addr)
			}
		}
		return nil
	})
	silent.Cont(t)
	for _, f := range waiting {
		must(t, f.Wait(nil))
	}
}

// TestShutdownOfAClusterClient: Shutdown waits until the calls in flight at all nodes have ended,
// and refuses new ones.
func TestShutdownOfAClusterClient(t *testing.T) {
	testkit.NoLeaks(t)
	release := make(chan struct{})
	var n *scriptedNode
	n = startScripted(t, shards(func() []string { return []string{n.addr} }, func(args []string) string {
		if args[0] == "GET" {
			<-release
		}
		return "$1\r\nv\r\n"
	}))
	c := connectScripted(t, redis.ClusterOptions{Seeds: []string{n.addr}})
	f := c.Start(t.Context(), redis.Cmd("GET", "key"))
	ended := make(chan error, 1)
	// Ends when the call has ended; received below.
	go func() { ended <- c.Shutdown(context.Background()) }()
	testkit.Eventually(t, 10*time.Second, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := c.Do(ctx, nil, redis.Cmd("SET", "key", "v")); slipstream.OutcomeOf(err) != slipstream.Closed {
			return fmt.Errorf("a call after Shutdown: %v", err)
		}
		return nil
	})
	select {
	case err := <-ended:
		t.Fatalf("Shutdown returned %v before the call had ended", err)
	default:
	}
	close(release)
	if err := f.Wait(nil); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
