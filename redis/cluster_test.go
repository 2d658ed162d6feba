package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
	"github.com/slipstream-go/slipstream/redis"
)

// connectCluster returns a client of a cluster.
func connectCluster(t *testing.T, c *rediscluster.Cluster, change ...func(*redis.ClusterOptions)) *redis.Client {
	t.Helper()
	o := redis.ClusterOptions{Seeds: c.Addrs()[:1]}
	for _, f := range change {
		f(&o)
	}
	client, err := redis.ConnectCluster(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func TestClusterRoutes(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{})
	c := connectCluster(t, cluster)
	ctx := t.Context()
	for _, n := range cluster.Nodes() {
		n.ResetCommands(t)
	}
	const keys = 300
	for i := range keys {
		key := "key:" + strconv.Itoa(i)
		if err := c.Set(ctx, key, key); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := c.Do(ctx, &got, redis.Cmd("GET", key)); err != nil || got != key {
			t.Fatalf("%s: %q, %v", key, got, err)
		}
	}
	sets := int64(0)
	for _, n := range cluster.Nodes() {
		commands := n.Commands(t)
		if commands["set"] < keys/10 {
			t.Errorf("%v executed %d of %d SETs", n, commands["set"], keys)
		}
		sets += commands["set"]
	}
	if sets != keys {
		t.Errorf("%d SETs were executed, want %d: none should be sent to a node that redirects", sets, keys)
	}
}

// flood makes calls in every way until the returned function is called, which checks that all of
// them succeeded.
func flood(t *testing.T, c *redis.Client, keys []string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	var calls, failed atomic.Int64
	var first atomic.Pointer[error]
	note := func(style string, err error) {
		calls.Add(1)
		if err != nil && ctx.Err() == nil {
			failed.Add(1)
			err = fmt.Errorf("%s: %w", style, err)
			first.CompareAndSwap(nil, &err)
		}
	}
	styles := map[string]func(key string){
		"typed": func(key string) {
			_, _, err := c.Get(ctx, key)
			note("typed", err)
		},
		"do": func(key string) { note("do", c.Do(ctx, nil, redis.Cmd("SET", key, "v"))) },
		"future": func(key string) {
			note("future", c.Start(ctx, redis.Cmd("GET", key)).Wait(nil))
		},
		"completer": func(key string) {
			done := make(ended, 1)
			if err := c.DoFunc(ctx, redis.Cmd("SET", key, "v"), done); err != nil {
				note("completer", err)
				return
			}
			note("completer", <-done)
		},
		"batch": func(key string) {
			var b redis.Batch
			for _, key := range keys {
				b.AddStrings(nil, "SET", key, "v")
			}
			note("batch", c.DoBatch(ctx, &b))
		},
		"transaction": func(key string) {
			var b redis.Batch
			b.AddStrings(nil, "SET", key, "v")
			b.AddStrings(nil, "GET", key)
			note("transaction", c.DoTransaction(ctx, &b))
		},
		"watch": func(key string) {
			err := c.Watch(ctx, func(tx *redis.Tx) error {
				tx.Add(nil, redis.Cmd("SET", key, "v"))
				return nil
			}, key)
			// It cannot watch a key that is not at the node that owns its slot.
			if e, ok := errors.AsType[*redis.ServerError](err); ok && e.Code == "ASK" && slipstream.OutcomeOf(err) == slipstream.Refused {
				err = nil
			}
			note("watch", err)
		},
		"many": func(string) {
			_, err := c.MGet(ctx, keys...)
			note("many", err)
		},
	}
	for _, style := range styles {
		// Ends with ctx; stop waits for it.
		callers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				style(keys[i%len(keys)])
			}
		})
	}
	return func() {
		t.Helper()
		cancel()
		callers.Wait()
		if n := failed.Load(); n > 0 {
			t.Errorf("%d of %d calls failed; first: %v", n, calls.Load(), *first.Load())
		}
		t.Logf("%d calls", calls.Load())
	}
}

type ended chan error

func (c ended) Complete(_ redis.Reply, err error) { c <- err }

func TestClusterMigration(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{})
	c := connectCluster(t, cluster)
	keys := make([]string, 40)
	for i := range keys {
		keys[i] = "{moving}:" + strconv.Itoa(i)
		if err := c.Set(t.Context(), keys[i], "v"); err != nil {
			t.Fatal(err)
		}
	}
	slot := cluster.Slot(t, keys[0])
	stop := flood(t, c, keys)
	for range 4 {
		from := cluster.MasterOf(t, slot)
		to := cluster.Nodes()[0]
		if to == from {
			to = cluster.Nodes()[1]
		}
		m := cluster.BeginMigration(t, slot, to)
		for m.MoveKeys(t, 7) > 0 {
			time.Sleep(20 * time.Millisecond)
		}
		m.Finish(t)
	}
	stop()
}

func TestClusterFailover(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{ReplicasPer: 1})
	c := connectCluster(t, cluster)
	keys := make([]string, 40)
	for i := range keys {
		keys[i] = "key:" + strconv.Itoa(i)
	}
	stop := flood(t, c, keys)
	old := cluster.MasterOf(t, cluster.Slot(t, keys[0]))
	cluster.Failover(t, cluster.ReplicasOf(t, old)[0])
	stop()

	// When a master dies, calls wait for the failover.
	old = cluster.MasterOf(t, cluster.Slot(t, keys[0]))
	old.Kill()
	if _, err := c.Incr(t.Context(), "n"+keys[0]); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Logf("the first call: %v", err)
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		_, _, err := c.Get(t.Context(), keys[0])
		return err
	})
}

func TestClusterSpreadsCommands(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{})
	c := connectCluster(t, cluster)
	ctx := t.Context()
	var keys []string
	for i := range 100 {
		keys = append(keys, "key:"+strconv.Itoa(i))
		if err := c.Set(ctx, keys[i], "v"+strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	asked := append([]string{"none"}, keys...)
	items, err := c.MGet(ctx, asked...)
	if err != nil || len(items) != len(asked) || items[0].Found {
		t.Fatalf("MGET: %v, %v", items, err)
	}
	for i, item := range items[1:] {
		if item.Value != "v"+strconv.Itoa(i) {
			t.Errorf("%s has the value %q", keys[i], item.Value)
		}
	}
	for _, key := range []string{"{a}1", "{b}1", "{a}2", "{b}2"} { // keys of one slot are not adjacent
		if err := c.Set(ctx, key, key); err != nil {
			t.Fatal(err)
		}
	}
	if items, err := c.MGet(ctx, "{a}1", "{b}1", "{a}2", "{b}2"); err != nil || fmt.Sprint(items) != "[{{a}1 true} {{b}1 true} {{a}2 true} {{b}2 true}]" {
		t.Errorf("MGET: %v, %v", items, err)
	}
	if n, err := c.Del(ctx, "{a}1", "{b}1", "{a}2", "{b}2"); err != nil || n != 4 {
		t.Errorf("DEL: %d, %v", n, err)
	}
	if n, err := c.Exists(ctx, asked...); err != nil || n != 100 {
		t.Errorf("EXISTS: %d, %v", n, err)
	}
	var touched int64
	if err := c.Do(ctx, &touched, redis.Cmd("TOUCH", keys[0], keys[1], keys[2], "none")); err != nil || touched != 3 {
		t.Errorf("TOUCH: %d, %v", touched, err)
	}
	if err := c.Start(ctx, redis.Cmd("EXISTS", keys[0], keys[1], keys[2], "none")).Wait(&touched); err != nil || touched != 3 {
		t.Errorf("EXISTS by a future: %d, %v", touched, err)
	}
	if n, err := c.DBSize(ctx); err != nil || n != 100 {
		t.Errorf("DBSIZE: %d, %v", n, err)
	}
	if found, err := c.Keys(ctx, "key:*"); err != nil || len(found) != 100 {
		t.Errorf("KEYS: %d keys, %v", len(found), err)
	}
	scanned := map[string]bool{}
	for key, err := range c.Scan(ctx, redis.ScanOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		scanned[key] = true
	}
	if len(scanned) != 100 {
		t.Errorf("SCAN: %d keys", len(scanned))
	}
	const source = "return redis.call('GET', KEYS[1])"
	hash, err := c.ScriptLoad(ctx, source)
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range keys[:10] {
		var got string
		if err := c.EvalSha(ctx, &got, hash, []string{key}); err != nil || got != "v"+strconv.Itoa(i) {
			t.Errorf("EVALSHA %s: %q, %v", key, got, err)
		}
	}
	if known, err := c.ScriptExists(ctx, hash, "0"); err != nil || fmt.Sprint(known) != "[1 0]" {
		t.Errorf("SCRIPT EXISTS: %v, %v", known, err)
	}
	for name, f := range map[string]func() error{
		"MSET": func() error {
			return c.MSet(ctx, redis.KeyValue{Key: "a", Value: "1"}, redis.KeyValue{Key: "b", Value: "2"})
		},
		"SUNION": func() error { _, err := c.SUnion(ctx, "a", "b"); return err },
		"RENAME": func() error { return c.Do(ctx, nil, redis.Cmd("RENAME", "a", "b")) },
		"EVAL":   func() error { return c.Eval(ctx, nil, source, []string{"a", "b"}) },
		"transaction": func() error {
			var b redis.Batch
			b.AddStrings(nil, "SET", "a", "1")
			b.AddStrings(nil, "SET", "b", "1")
			return c.DoTransaction(ctx, &b)
		},
		"WATCH": func() error { return c.Watch(ctx, func(*redis.Tx) error { return nil }, "a", "b") },
	} {
		if err := f(); !errors.Is(err, redis.ErrCrossSlot) {
			t.Errorf("%s with keys of two slots: %v", name, err)
		}
	}
	if n, err := c.Del(ctx, asked...); err != nil || n != 100 {
		t.Errorf("DEL: %d, %v", n, err)
	}
	if err := c.FlushAll(ctx); err != nil {
		t.Error(err)
	}
	split := connectCluster(t, cluster, func(o *redis.ClusterOptions) { o.SplitMSet = true })
	if err := split.MSet(ctx, redis.KeyValue{Key: "a", Value: "1"}, redis.KeyValue{Key: "b", Value: "2"}); err != nil {
		t.Error(err)
	}
	if v, _, err := split.Get(ctx, "b"); err != nil || v != "2" {
		t.Errorf("after MSET: %q, %v", v, err)
	}
}

func TestClusterSessions(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{})
	c := connectCluster(t, cluster)
	ctx := t.Context()
	for i := range 6 {
		key := "n:" + strconv.Itoa(i)
		err := c.Watch(ctx, func(tx *redis.Tx) error {
			var n *int
			if err := tx.Do(ctx, &n, redis.Cmd("GET", key)); err != nil {
				return err
			}
			tx.Add(nil, redis.Cmd("INCR", key))
			return nil
		}, key)
		if err != nil {
			t.Fatal(err)
		}
		if v, _, err := c.Get(ctx, key); err != nil || v != "1" {
			t.Errorf("%s: %q, %v", key, v, err)
		}
		list := "list:" + strconv.Itoa(i)
		f := c.Start(ctx, redis.Cmd("BLPOP", list, 5))
		if _, err := c.RPush(ctx, list, "x"); err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := f.Wait(&got); err != nil || len(got) != 2 {
			t.Errorf("BLPOP %s: %v, %v", list, got, err)
		}
	}
	s, err := c.Subscribe(ctx, redis.Topics{Channels: []string{"news"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := c.Do(ctx, nil, redis.Cmd("PUBLISH", "news", "hello")); err != nil {
		t.Fatal(err)
	}
	if m, err := s.Receive(ctx); err != nil || m.Payload != "hello" {
		t.Errorf("%+v, %v", m, err)
	}
	var nodes int
	if err := c.ForEachMaster(ctx, func(ctx context.Context, n *redis.Client) error {
		nodes++
		return n.Ping(ctx)
	}); err != nil || nodes != 3 {
		t.Errorf("%d masters, %v", nodes, err)
	}
	slots := 0
	for _, n := range c.Nodes() {
		slots += n.Slots
	}
	if slots != 16384 {
		t.Errorf("the nodes own %d slots", slots)
	}
}

func TestClusterReadsFromReplicas(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{ReplicasPer: 1})
	c := connectCluster(t, cluster, func(o *redis.ClusterOptions) { o.ReadFrom = redis.ReadReplica })
	ctx := t.Context()
	const keys = 100
	for i := range keys {
		if err := c.Set(ctx, "key:"+strconv.Itoa(i), "v"); err != nil {
			t.Fatal(err)
		}
	}
	cluster.AwaitReplication(t)
	testkit.Eventually(t, 10*time.Second, func() error { // until there are connections to all replicas
		for _, n := range c.Nodes() {
			if n.Stats.Connected == 0 {
				return errors.New("no connection to " + n.Addr)
			}
		}
		return nil
	})
	time.Sleep(50 * time.Millisecond) // older choices expire
	for _, n := range cluster.Nodes() {
		n.ResetCommands(t)
	}
	for i := range keys {
		if v, _, err := c.Get(ctx, "key:"+strconv.Itoa(i)); err != nil || v != "v" {
			t.Fatalf("%q, %v", v, err)
		}
		if err := c.Set(ctx, "key:"+strconv.Itoa(i), "v"); err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range cluster.Nodes() {
		commands, master := n.Commands(t), i < 3
		if master && (commands["get"] != 0 || commands["set"] == 0) || !master && commands["get"] == 0 {
			t.Errorf("%v, a master: %t, executed %v", n, master, commands)
		}
	}
	// Without its replica, a shard is read from the master.
	for _, n := range cluster.Nodes()[3:] {
		n.Kill()
	}
	for i := range keys {
		if v, _, err := c.Get(ctx, "key:"+strconv.Itoa(i)); err != nil || v != "v" {
			t.Fatalf("without replicas: %q, %v", v, err)
		}
	}
}

func TestClusterCache(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{})
	var lostConnections atomic.Int64
	c := connectCluster(t, cluster, func(o *redis.ClusterOptions) {
		o.Cache = &redis.CacheOptions{}
		o.OnEvent = func(e redis.Event) {
			if e.Kind == redis.Disconnected {
				lostConnections.Add(1)
			}
		}
	})
	writer := connectCluster(t, cluster)
	ctx := t.Context()
	const keys = 60
	key := func(i int) string { return "key:" + strconv.Itoa(i) }
	read := func(want string) (hits uint64) {
		t.Helper()
		before := c.Stats().Cache.Hits
		for i := range keys {
			if v, _, err := c.GetCached(ctx, key(i)); err != nil || v != want {
				t.Fatalf("%s: %q, %v; want %q", key(i), v, err, want)
			}
		}
		return c.Stats().Cache.Hits - before
	}
	for i := range keys {
		if err := writer.Set(ctx, key(i), "1"); err != nil {
			t.Fatal(err)
		}
	}
	read("1")
	if hits := read("1"); hits != keys {
		t.Errorf("%d hits of %d", hits, keys)
	}
	invalidated := func(n uint64) {
		t.Helper()
		testkit.Eventually(t, 10*time.Second, func() error {
			if got := c.Stats().Cache.Invalidated; got < n {
				return fmt.Errorf("%d invalidations", got)
			}
			return nil
		})
	}
	for i := range keys {
		if err := writer.Set(ctx, key(i), "2"); err != nil {
			t.Fatal(err)
		}
	}
	invalidated(keys)
	read("2")

	// The end of a connection drops the replies that were read on it, and nothing else.
	lost := cluster.Nodes()[0]
	share := 0
	for i := range keys {
		if cluster.MasterOf(t, cluster.Slot(t, key(i))) == lost {
			share++
		}
	}
	lost.Do(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	testkit.Eventually(t, 10*time.Second, func() error {
		if lostConnections.Load() == 0 {
			return errors.New("the connection is still there")
		}
		return nil
	})
	if hits := read("2"); hits != uint64(keys-share) || share == 0 {
		t.Errorf("%d hits of %d after the loss of a node with %d keys", hits, keys, share)
	}

	// The absence of a key is cached, and its old node is not notified when the slot has moved.
	const none = "none"
	slot := cluster.Slot(t, none)
	for range 2 {
		if _, found, err := c.GetCached(ctx, none); err != nil || found {
			t.Fatal(found, err)
		}
	}
	to := cluster.Nodes()[0]
	if cluster.MasterOf(t, slot) == to {
		to = cluster.Nodes()[1]
	}
	cluster.Migrate(t, to, slot)
	if err := writer.Set(ctx, none, "now"); err != nil {
		t.Fatal(err)
	}
	if err := c.Set(ctx, "{"+none+"}", "x"); err != nil { // the client learns that the slot has moved
		t.Fatal(err)
	}
	if v, found, err := c.GetCached(ctx, none); err != nil || v != "now" {
		t.Errorf("after the slot has moved: %q, %t, %v", v, found, err)
	}
}
