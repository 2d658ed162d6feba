package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/redisclusters"
	"github.com/slipstream-go/slipstream/internal/testkit/faultproxy"
	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
	"github.com/slipstream-go/slipstream/redis/redistest"
)

// masters is the number of masters of the cluster, each with one replica.
const masters = 3

// times are the events of a run.
type times struct {
	began    time.Time // the first call
	fault    time.Time
	restored time.Time // when the servers serve the affected slots again; zero if they always did
	// safe is the latest time at which a reply of a replaced master may have arrived. Writes that
	// such a master had acknowledged but not replicated were lost by Redis. It is zero if no master
	// was replaced without its agreement.
	safe  time.Time
	over  time.Time // end of the fault and its repair
	ended time.Time // end of the load
}

// A stage is a cluster, and one client under load on it while a fault happens.
type stage struct {
	// Immutable after newStage.
	ctx     context.Context // of the run
	options *options
	cluster *redisclusters.Cluster

	// Owned by the goroutine of the run, and by that of an operation while it waits for it.
	proxy    *faultproxy.Proxy // of the first master; nil if there is none
	affected [rediscluster.Slots]bool
	times    times
	// topology and failovers are sums of what nodes had counted and logged when their processes
	// ended, and at the end.
	topology  int64
	failovers int
}

func newStage(ctx context.Context, scratch string, o *options, sc *scenario) (*stage, error) {
	cluster, err := redisclusters.StartWith(ctx, scratch, rediscluster.Options{
		Masters: masters, ReplicasPer: 1, NodeTimeout: o.nodeTimeout, Partitions: sc.parted,
		Args: []string{"--cluster-require-full-coverage", "no", "--maxclients", "10000"},
	})
	if err != nil {
		return nil, err
	}
	return &stage{ctx: ctx, options: o, cluster: cluster}, nil
}

// An operator injects a fault, as a test would.
type operator struct {
	*stage
	testing.TB
	kit *rediscluster.Cluster
}

// operate calls f with an operator of the cluster.
func (s *stage) operate(f func(o *operator)) error {
	return s.cluster.Operate(func(t testing.TB, kit *rediscluster.Cluster) { f(&operator{s, t, kit}) })
}

// master returns the i-th master of the original cluster, and replica its replica.
func (o *operator) master(i int) *rediscluster.Node  { return o.kit.Nodes()[i] }
func (o *operator) replica(i int) *rediscluster.Node { return o.kit.Nodes()[masters+i] }

// affects records that the slots from first up to end are affected.
func (o *operator) affects(first, end int) {
	for slot := first; slot < end; slot++ {
		o.affected[slot] = true
	}
}

// share returns the slots of the i-th master: from first up to end.
func share(i int) (first, end int) {
	return i * rediscluster.Slots / masters, (i + 1) * rediscluster.Slots / masters
}

// sleep waits, and ends the operation if the run ends.
func (o *operator) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-o.ctx.Done():
		o.Fatal(context.Cause(o.ctx))
	}
}

// fault records that the fault begins.
func (o *operator) fault() { o.times.fault = time.Now() }

// until waits until cond holds, checking it frequently.
func (o *operator) until(what string, cond func() bool) {
	deadline := time.Now().Add(rediscluster.Patience)
	for !cond() {
		if time.Now().After(deadline) {
			o.Fatal(what, "not true after", rediscluster.Patience)
		}
		o.sleep(2 * time.Millisecond)
	}
}

// awaitRole waits until a node reports a role, and returns the time.
func (o *operator) awaitRole(n *rediscluster.Node, role string) time.Time {
	o.until(n.String()+" has the role "+role, func() bool {
		v, err := n.Ask("ROLE")
		return err == nil && len(v.Elems) > 0 && string(v.Elems[0].Str) == role
	})
	return time.Now()
}

// awaitService waits until a node executes commands on a slot, and returns the time.
func (o *operator) awaitService(n *rediscluster.Node, slot int) time.Time {
	key := keyAt(slot)
	o.until(n.String()+" serves a slot", func() bool {
		_, err := n.Ask("EXISTS", key)
		return err == nil
	})
	return time.Now()
}

// keyAt returns a key of a slot, which no caller uses.
func keyAt(slot int) string {
	for i := 0; ; i++ {
		if key := "probe:" + strconv.Itoa(i); redistest.Slot(key) == slot {
			return key
		}
	}
}

// promoted calls promote to make a node the master, and returns when it had become one.
func (o *operator) promoted(n *rediscluster.Node, promote func(t testing.TB, n *rediscluster.Node)) time.Time {
	at := make(chan time.Time, 1)
	// Ends when the node is a master, or with the run; waited for below.
	go func() {
		defer close(at)
		at <- o.awaitRole(n, "master")
	}()
	promote(o, n)
	return <-at
}

// retire records what a node has counted and logged before its process ends.
func (o *operator) retire(n *rediscluster.Node) {
	o.stage.topology += topologyRequests(n.CommandsOfClients(o))
	o.stage.failovers += strings.Count(n.Log(), "Failover election won")
}

func topologyRequests(calls map[string]int64) (n int64) {
	for _, name := range []string{"cluster|shards", "cluster|nodes", "cluster|slots"} {
		n += calls[name]
	}
	return n
}

// resetCounters resets the counters of the nodes.
func (o *operator) resetCounters() {
	for _, n := range o.kit.Nodes() {
		n.ResetCommands(o)
	}
}

// count adds what the running nodes have counted and logged.
func (o *operator) count() {
	for _, n := range o.kit.Nodes() {
		if n.Running() {
			o.retire(n)
		}
	}
}

// seeds returns the addresses passed to clients: all of them, so that the results do not depend on
// luck.
func (o *operator) seeds() []string {
	seeds := o.kit.Addrs()
	if o.proxy != nil {
		seeds[0] = o.proxy.Addr()
	}
	return seeds
}

// lists returns the contents of the callers' lists on the servers.
func (o *operator) lists(callers int) ([][]int32, error) {
	nodes := slices.DeleteFunc(o.kit.Nodes(), func(n *rediscluster.Node) bool { return !n.Running() })
	all := make([][]int32, callers)
	for i := range all {
		var err error
		for j := range nodes {
			if all[i], err = list(nodes[j], listKey(i)); err == nil {
				nodes[0], nodes[j] = nodes[j], nodes[0] // likely to have the next one
				break
			}
		}
		if err != nil {
			return nil, fmt.Errorf("no node has the list %s: %w", listKey(i), err)
		}
	}
	return all, nil
}

// list reads a list from a node. It is an error if another node has the list.
func list(n *rediscluster.Node, key string) ([]int32, error) {
	v, err := n.Ask("LRANGE", key, "0", "-1")
	if err != nil {
		return nil, err
	}
	values := make([]int32, len(v.Elems))
	for i, e := range v.Elems {
		seq, err := strconv.ParseInt(string(e.Str), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%s has %q: %w", key, e.Str, err)
		}
		values[i] = int32(seq)
	}
	return values, nil
}

// port returns the port of a proxy.
func port(p *faultproxy.Proxy) int {
	_, text, _ := strings.Cut(p.Addr(), ":")
	n, _ := strconv.Atoi(text) // of a listener
	return n
}
