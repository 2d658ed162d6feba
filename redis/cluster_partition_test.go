//go:build unix

package redis_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
	"github.com/slipstream-go/slipstream/redis"
)

// increments are callers that increment a key until end is called, and the results of their calls.
type increments struct {
	key     string
	callers sync.WaitGroup
	stop    chan struct{}
	once    sync.Once // for stop

	acknowledged, doubtful atomic.Int64
	slowest                atomic.Int64 // duration of the slowest call
}

// increment starts callers, each of which pauses between its calls. A call may fail only with an
// outcome that says that it may have been executed.
func increment(t *testing.T, c *redis.Client, key string, callers int, each time.Duration) *increments {
	i := &increments{key: key, stop: make(chan struct{})}
	t.Cleanup(i.end)
	for range callers {
		// Ends with stop; end waits for it.
		i.callers.Go(func() {
			for {
				select {
				case <-i.stop:
					return
				case <-time.After(each):
				}
				began := time.Now()
				_, err := c.Incr(t.Context(), key)
				i.slowest.Store(max(i.slowest.Load(), int64(time.Since(began)))) // approximately
				switch {
				case err == nil:
					i.acknowledged.Add(1)
				case t.Context().Err() != nil: // the test has failed
					return
				case slipstream.OutcomeOf(err) == slipstream.MaybeExecuted:
					i.doubtful.Add(1)
				default:
					t.Errorf("INCR %s: %v", key, err)
				}
			}
		})
	}
	return i
}

// end stops the callers.
func (i *increments) end() {
	i.once.Do(func() { close(i.stop) })
	i.callers.Wait()
}

// awaitMore waits until n further increments have been acknowledged.
func (i *increments) awaitMore(t *testing.T, n int64) {
	t.Helper()
	since := i.acknowledged.Load()
	testkit.Eventually(t, 30*time.Second, func() error {
		if made := i.acknowledged.Load() - since; made < n {
			return fmt.Errorf("%d increments of %s", made, i.key)
		}
		return nil
	})
}

// number returns the value of a key at a node.
func number(t *testing.T, n *rediscluster.Node, key string) int64 {
	t.Helper()
	v, err := strconv.ParseInt(string(n.Do(t, "GET", key).Str), 10, 64)
	must(t, err)
	return v
}

// awaitRole waits until a node reports the given role, and returns the time at which it did.
func awaitRole(t *testing.T, n *rediscluster.Node, role string) time.Time {
	t.Helper()
	deadline := time.Now().Add(rediscluster.Patience)
	for time.Now().Before(deadline) {
		if v, err := n.Ask("ROLE"); err == nil && len(v.Elems) > 0 && string(v.Elems[0].Str) == role {
			return time.Now()
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Fatalf("%v has not become a %s", n, role)
	return time.Time{}
}

// awaitRefusal waits until a node refuses to write a key, and returns the time at which it did.
func awaitRefusal(t *testing.T, n *rediscluster.Node, key string) time.Time {
	t.Helper()
	testkit.Eventually(t, rediscluster.Patience, func() error {
		if _, err := n.Ask("PERSIST", key); err == nil {
			return fmt.Errorf("%v writes", n)
		}
		return nil
	})
	return time.Now()
}

// TestMasterThatIsCutOff: the other nodes receive nothing from a master, and in one of the cases it
// receives nothing from them either, but clients reach all of them. Its replica takes over, and the
// old master stops serving. Calls wait for that and continue at the new master. None is executed
// twice, and no call is lost that was acknowledged after the old master had stopped. Other shards
// have no errors. When the partition ends, calls continue.
func TestMasterThatIsCutOff(t *testing.T) {
	testkit.OnlyInMatrix(t)
	for name, part := range map[string]func(*rediscluster.Cluster, testing.TB, ...*rediscluster.Node){
		"both ways": (*rediscluster.Cluster).Partition, "one way": (*rediscluster.Cluster).Mute,
	} {
		t.Run(name, func(t *testing.T) {
			cluster := rediscluster.Start(t, rediscluster.Options{
				ReplicasPer: 1, Partitions: true, Args: []string{"--cluster-require-full-coverage", "no"},
			})
			// Calls wait this long for the failover, even on a busy machine.
			c := connectCluster(t, cluster, func(o *redis.ClusterOptions) { o.DialTimeout = time.Minute })
			const key = "n"
			slot := cluster.Slot(t, key)
			old := cluster.MasterOf(t, slot)
			next := cluster.ReplicasOf(t, old)[0]
			other := ""
			for i := 0; other == ""; i++ {
				if key := fmt.Sprint("other:", i); cluster.MasterOf(t, cluster.Slot(t, key)) != old {
					other = key
				}
			}
			const callers = 8
			load, others := increment(t, c, key, callers, 0), increment(t, c, other, 1, time.Millisecond)
			load.awaitMore(t, 500)
			cut := time.Now()
			part(cluster, t, old)
			promoted := awaitRole(t, next, "master")
			stopped := awaitRefusal(t, old, key)
			kept, acknowledged := number(t, next, key), load.acknowledged.Load()
			load.awaitMore(t, 2*callers) // the first ones may have been executed earlier
			t.Logf("promoted after %v, the old master refuses writes after %v; slowest calls: %v, of another shard %v", promoted.Sub(cut), stopped.Sub(cut),
				time.Duration(load.slowest.Load()), time.Duration(others.slowest.Load()))

			// A client that knows only the node that is cut off finds the new master.
			late := connectCluster(t, cluster, func(o *redis.ClusterOptions) { o.Seeds, o.DialTimeout = []string{old.Addr()}, time.Minute })
			if _, err := late.Incr(t.Context(), key); err != nil {
				t.Errorf("a client that knows the old master: %v", err)
			}
			if in, ok := late.Topology(); !ok || ownerIn(in, slot) != next.Addr() {
				t.Errorf("a client that knows the old master: %+v", in.Slots)
			}
			load.awaitMore(t, 100)
			cluster.Heal(t)
			load.awaitMore(t, 100)
			load.end()
			others.end()
			if n := others.doubtful.Load(); n > 0 {
				t.Errorf("%d errors of another shard", n)
			}
			executed, made := number(t, next, key), load.acknowledged.Load()+1 // the increment of late
			if most := made + load.doubtful.Load(); executed > most {
				t.Errorf("%d increments were executed, %d were acknowledged and %d may have been: some were executed twice", executed, made, load.doubtful.Load())
			}
			if least := kept + made - acknowledged - callers; executed < least {
				t.Errorf("%d increments were executed, at least %d were acknowledged by the new master", executed, least)
			}
		})
	}
}

// ownerIn returns the address of the node that owns a slot in a topology, or "".
func ownerIn(t redis.Topology, slot int) string {
	for _, r := range t.Slots {
		if r.First <= slot && slot <= r.Last {
			return r.Node
		}
	}
	return ""
}

// ownsIn reports whether a reply to CLUSTER NODES says that a node owns slots.
func ownsIn(view string, n *rediscluster.Node) bool {
	for line := range strings.Lines(view) {
		if strings.HasPrefix(line, n.ID()) {
			return len(strings.Fields(line)) > 8
		}
	}
	return false
}

// TestViewOfANodeThatIsCutOff: a node that has not learned of a failover reports the old master. A
// client that knows only this node, and gets its view first, finds the new master and does not
// return to the old one.
func TestViewOfANodeThatIsCutOff(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{ReplicasPer: 1, Partitions: true})
	const key = "n"
	slot := cluster.Slot(t, key)
	old := cluster.MasterOf(t, slot)
	next := cluster.ReplicasOf(t, old)[0]
	var apart *rediscluster.Node
	for _, n := range cluster.Nodes()[3:] {
		if n != next {
			apart = n
		}
	}
	cluster.Partition(t, apart)
	asked := time.Time{}
	testkit.Eventually(t, rediscluster.Patience, func() error {
		v, err := next.Ask("ROLE")
		switch {
		case err != nil:
			return err
		case len(v.Elems) > 0 && string(v.Elems[0].Str) == "master":
			return nil
		case time.Since(asked) > 6*time.Second: // a server gives up a failover after 5 s
			asked = time.Now()
			_, err = next.Ask("CLUSTER", "FAILOVER")
		}
		return fmt.Errorf("no failover yet, %v", err)
	})
	awaitRole(t, old, "slave")
	if view := string(apart.Do(t, "CLUSTER", "NODES").Str); !ownsIn(view, old) || ownsIn(view, next) {
		t.Fatalf("the node that is cut off has learned of the failover:\n%s", view)
	}
	testkit.Eventually(t, rediscluster.Patience, func() error {
		if info := string(apart.Do(t, "CLUSTER", "INFO").Str); !strings.Contains(info, "cluster_state:fail") {
			return fmt.Errorf("the node does not know that it is cut off: %s", info)
		}
		return nil
	})
	apart.ResetCommands(t)
	c := connectCluster(t, cluster, func(o *redis.ClusterOptions) {
		o.Seeds, o.RefreshEvery, o.DialTimeout = []string{apart.Addr()}, time.Millisecond, time.Minute
	})
	if err := c.Set(t.Context(), key, "v"); err != nil {
		t.Fatal(err)
	}
	old.ResetCommands(t)
	testkit.Eventually(t, 30*time.Second, func() error {
		in, ok := c.Topology()
		if !ok || ownerIn(in, slot) != next.Addr() {
			t.Fatalf("the client has gone back to %s of %+v", ownerIn(in, slot), in)
		}
		if _, _, err := c.Get(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		refreshes := 0
		for _, n := range cluster.Nodes() {
			refreshes += int(n.CommandsOfClients(t)["cluster|shards"])
		}
		if refreshes < 300 {
			return fmt.Errorf("%d refreshes", refreshes)
		}
		return nil
	})
	if n := apart.CommandsOfClients(t)["cluster|shards"]; n == 0 {
		t.Error("the node that is cut off was not queried")
	}
	if n := old.CommandsOfClients(t)["get"]; n != 0 {
		t.Errorf("the old master got %d reads", n)
	}
	cluster.Heal(t)
	if err := c.Set(t.Context(), key, "v"); err != nil {
		t.Error(err)
	}
}
