package redis_test

import (
	"errors"
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

// TestClusterMasterDies kills a master under load: no increment is executed twice, other shards
// continue to serve, and calls succeed again soon after the failover.
func TestClusterMasterDies(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{ReplicasPer: 1, Args: []string{"--cluster-require-full-coverage", "no"}})
	c := connectCluster(t, cluster)
	ctx := t.Context()
	old := cluster.MasterOf(t, cluster.Slot(t, "n"))
	other := ""
	for i := 0; other == ""; i++ {
		if key := "other:" + strconv.Itoa(i); cluster.MasterOf(t, cluster.Slot(t, key)) != old {
			other = key
		}
	}
	stop := make(chan struct{})
	var callers sync.WaitGroup
	var acknowledged, doubtful atomic.Int64
	var slowest atomic.Int64 // of the calls to the other shard
	var last atomic.Int64    // success at the shard whose master dies
	for range 8 {
		callers.Go(func() { // ends with stop
			for {
				select {
				case <-stop:
					return
				default:
				}
				_, err := c.Incr(ctx, "n")
				switch {
				case err == nil:
					acknowledged.Add(1)
					last.Store(time.Now().UnixNano())
				case slipstream.OutcomeOf(err) == slipstream.MaybeExecuted:
					doubtful.Add(1)
				default:
					t.Errorf("INCR: %v", err)
				}
			}
		})
	}
	callers.Go(func() { // ends with stop
		for {
			select {
			case <-stop:
				return
			default:
			}
			began := time.Now()
			if _, err := c.Incr(ctx, other); err != nil {
				t.Errorf("INCR of another shard: %v", err)
			}
			slowest.Store(max(slowest.Load(), int64(time.Since(began))))
			time.Sleep(time.Millisecond)
		}
	})
	testkit.Eventually(t, 20*time.Second, func() error {
		if acknowledged.Load() < 1000 {
			return errors.New("too few increments")
		}
		return nil
	})
	before := acknowledged.Load()
	killed := time.Now()
	old.Kill()
	cluster.AwaitMaster(t, cluster.Slot(t, "n"), old)
	failedOver := time.Now()
	testkit.Eventually(t, 20*time.Second, func() error {
		if last.Load() < failedOver.UnixNano() {
			return errors.New("no increment since the failover")
		}
		return nil
	})
	t.Logf("failover after %v, the next increment %v later; %d increments before, slowest call of another shard %v",
		failedOver.Sub(killed), time.Duration(last.Load()-failedOver.UnixNano()), before, time.Duration(slowest.Load()))
	close(stop)
	callers.Wait()
	value, _, err := c.Get(ctx, "n")
	if err != nil {
		t.Fatal(err)
	}
	// The replica may not have received the last acknowledged increments.
	n, _ := strconv.ParseInt(value, 10, 64)
	if most := acknowledged.Load() + doubtful.Load(); n > most {
		t.Errorf("%d increments were executed, %d were acknowledged and %d may have been: some were executed twice", n, acknowledged.Load(), doubtful.Load())
	}
}

// TestClusterGrows migrates slots to a new master under load, with every form of the topology.
func TestClusterGrows(t *testing.T) {
	testkit.OnlyInMatrix(t)
	for name, refused := range map[string][]string{"SHARDS": nil, "NODES": {"-cluster|shards"}, "SLOTS": {"-cluster|shards", "-cluster|nodes"}} {
		t.Run(name, func(t *testing.T) {
			cluster := rediscluster.Start(t, rediscluster.Options{})
			c := connectClusterWith(t, cluster, refused)
			keys := make([]string, 20)
			for i := range keys {
				keys[i] = "{grows}:" + strconv.Itoa(i)
			}
			stop := flood(t, c, keys)
			joined := cluster.AddMaster(t)
			if len(refused) > 0 {
				joined.Do(t, append([]string{"ACL", "SETUSER", "visitor", "on", ">secret", "~*", "&*", "+@all"}, refused...)...)
			}
			slot := cluster.Slot(t, keys[0])
			m := cluster.BeginMigration(t, slot, joined)
			for m.MoveKeys(t, 5) > 0 {
				time.Sleep(20 * time.Millisecond)
			}
			m.Finish(t)
			testkit.Eventually(t, 20*time.Second, func() error {
				for _, n := range c.Nodes() {
					if n.Addr == joined.Addr() && n.Slots > 0 {
						return nil
					}
				}
				return errors.New("the client does not know that the new node owns a slot")
			})
			stop()
		})
	}
}

// connectClusterWith returns a client of a user with restricted permissions.
func connectClusterWith(t *testing.T, cluster *rediscluster.Cluster, refused []string) *redis.Client {
	if len(refused) == 0 {
		return connectCluster(t, cluster)
	}
	for _, n := range cluster.Nodes() {
		n.Do(t, append([]string{"ACL", "SETUSER", "visitor", "on", ">secret", "~*", "&*", "+@all"}, refused...)...)
	}
	return connectCluster(t, cluster, func(o *redis.ClusterOptions) { o.User, o.Password = "visitor", "secret" })
}

// TestClusterConnectionsEnd repeatedly cuts the connections to all nodes under load: no increment
// is executed twice, and no acknowledged one is missing.
func TestClusterConnectionsEnd(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{})
	// Calls wait this long for a node, because on a busy machine the next connection may be cut as
	// well.
	c := connectCluster(t, cluster, func(o *redis.ClusterOptions) { o.DialTimeout = time.Minute })
	ctx := t.Context()
	const keys = 9
	var acknowledged, doubtful [keys]atomic.Int64
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for i := range 2 * keys {
		callers.Go(func() { // ends with stop
			key := "n:" + strconv.Itoa(i%keys)
			for {
				select {
				case <-stop:
					return
				default:
				}
				_, err := c.Incr(ctx, key)
				switch {
				case err == nil:
					acknowledged[i%keys].Add(1)
				case slipstream.OutcomeOf(err) == slipstream.MaybeExecuted:
					doubtful[i%keys].Add(1)
				default:
					t.Errorf("INCR: %v", err)
				}
			}
		})
	}
	total := func(of *[keys]atomic.Int64) (n int64) {
		for i := range of {
			n += of[i].Load()
		}
		return n
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		for _, n := range cluster.Nodes() {
			n.Do(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		}
		if total(&acknowledged) < 2000 || total(&doubtful) < 30 {
			return errors.New("too few calls, or too few of them in doubt")
		}
		return nil
	})
	close(stop)
	callers.Wait()
	for i := range keys {
		value, _, err := c.Get(ctx, "n:"+strconv.Itoa(i))
		if err != nil {
			t.Fatal(err)
		}
		n, _ := strconv.ParseInt(value, 10, 64)
		if least, most := acknowledged[i].Load(), acknowledged[i].Load()+doubtful[i].Load(); n < least || n > most {
			t.Errorf("key %d: %d increments, want %d that were acknowledged to %d that may have been made", i, n, least, most)
		}
	}
}
