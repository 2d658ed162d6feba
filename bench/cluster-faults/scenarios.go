package main

import (
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit/faultproxy"
	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
)

// A scenario is a fault. Its functions run on the goroutine of an operation.
type scenario struct {
	name, about string
	failovers   int // the number of failovers that belong to it
	// prepare changes the cluster before the load. If nil, the cluster is not changed.
	prepare func(o *operator)
	// inject causes the fault, and returns when it is over.
	inject func(o *operator)
	parted bool // the cluster bus can be cut
}

// scenarios are all of them, in the order of the table.
var scenarios = []scenario{
	{"kill", "kill -9 of a master; its replica is promoted", 1, firstShard, kill, false},
	{"stop", "SIGSTOP of a master for 5 s; its replica is promoted in the meantime", 1, firstShard, stop, false},
	{"migrate", "4,096 slots move to another master", 0, migrating, migrate, false},
	{"roll", "all nodes restart, one at a time; replicas are promoted first with CLUSTER FAILOVER", 3, nil, roll, false},
	{"half-down", "the master and the replica of half of the slots are killed, and the master restarts without data", 0, halve, halfDown, false},
	{"silent", "traffic between a master and its clients is lost, while the cluster is healthy", 0, proxied, silent, false},
	{"one-way", "replies of a master to its clients are lost, while the cluster is healthy", 0, proxied, oneWay, false},
	{"address", "a node restarts on another port, and becomes the master again", 2, firstShard, address, false},
	{"split-view", "a master has forgotten all other nodes, and another one is replaced", 1, firstShard, splitView, false},
	{"cut-off", "a master is partitioned from the other nodes, clients reach all; its replica is promoted", 1, firstShard, cutOff, true},
}

// firstShard is for faults that affect the slots of the first master.
func firstShard(o *operator) { o.affects(share(0)) }

func kill(o *operator) {
	o.retire(o.master(0))
	o.fault()
	o.master(0).Kill()
	o.times.restored = o.awaitRole(o.replica(0), "master")
	o.times.safe = o.times.restored
}

func stop(o *operator) {
	o.fault()
	o.master(0).Stop(o)
	o.times.restored = o.awaitRole(o.replica(0), "master")
	o.sleep(time.Until(o.times.fault.Add(o.options.stop)))
	o.master(0).Cont(o)
	o.times.safe = o.awaitRole(o.master(0), "slave")
}

// migrating affects the first slots of the first master.
func migrating(o *operator) {
	first, _ := share(0)
	o.affects(first, first+o.options.slots)
}

func migrate(o *operator) {
	var moving []int
	for slot, affected := range o.affected {
		if affected {
			moving = append(moving, slot)
		}
	}
	o.fault()
	o.kit.Migrate(o, o.master(1), moving...)
}

// roll restarts the replicas, and then each master once its replica has taken over.
func roll(o *operator) {
	o.fault()
	for i := range masters {
		o.retire(o.replica(i))
		o.kit.Restart(o, o.replica(i))
	}
	for i := range masters {
		o.kit.Failover(o, o.replica(i))
		o.retire(o.master(i))
		o.kit.Restart(o, o.master(i))
	}
}

// halve gives half of the slots to the first master, all of which are affected. The others keep the
// majority of the masters.
func halve(o *operator) {
	_, end := share(0)
	var moving []int
	for slot := end; slot < rediscluster.Slots/2; slot++ {
		moving = append(moving, slot)
	}
	o.kit.Migrate(o, o.master(0), moving...)
	o.affects(0, rediscluster.Slots/2)
}

func halfDown(o *operator) {
	o.retire(o.replica(0))
	o.retire(o.master(0))
	o.fault()
	o.replica(0).Kill()
	o.master(0).Kill()
	o.sleep(o.options.outage)
	serving := make(chan time.Time, 1)
	// Ends when the node serves, or with the stage; waited for below.
	go func() {
		defer close(serving)
		serving <- o.awaitService(o.master(0), 0)
	}()
	defer func() {
		o.times.restored = <-serving
		o.times.safe = o.times.restored
	}()
	o.kit.Restart(o, o.master(0))
}

// proxied puts a proxy in front of the first master. Its replica uses the proxy, too; the cluster
// bus does not.
func proxied(o *operator) {
	firstShard(o)
	o.proxy = faultproxy.Start(o, o.master(0).Addr(), faultproxy.Options{})
	o.kit.Announce(o, o.master(0), port(o.proxy))
}

func silent(o *operator) { o.partition(o.proxy.Stall) }

func oneWay(o *operator) { o.partition(o.proxy.StallReplies) }

func (o *operator) partition(begin func()) {
	o.fault()
	begin()
	o.sleep(o.options.outage)
	o.proxy.Resume()
	o.times.restored = time.Now()
}

// address restarts a node at another port while its replica is the master, as an operator does, and
// makes it the master again. Clients have to find its new address.
func address(o *operator) {
	o.fault()
	o.kit.Failover(o, o.replica(0))
	o.retire(o.master(0))
	o.kit.Move(o, o.master(0))
	o.times.restored = o.promoted(o.master(0), o.kit.Failover)
}

// splitView lets the last master forget all others. It continues to serve its slots, and reports a
// cluster that has only these. The connections to a replica, which no call uses, are closed, so that
// clients that react to this query the topology. Then the first master is replaced.
func splitView(o *operator) {
	last := o.master(masters - 1)
	o.fault()
	for _, n := range o.kit.Nodes() {
		if n != last {
			last.Do(o, "CLUSTER", "FORGET", n.ID())
		}
	}
	for range 8 {
		o.replica(1).Do(o, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		o.sleep(o.options.outage / 16)
	}
	o.times.restored = o.promoted(o.replica(0), func(t testing.TB, n *rediscluster.Node) { n.Do(t, "CLUSTER", "FAILOVER") })
	o.sleep(o.options.outage / 2)
}

// cutOff separates the first master from the other nodes. Its replica is promoted, and it stops
// serving when it has noticed. When the partition ends, it is a replica, and has lost the writes
// that it acknowledged after the promotion.
func cutOff(o *operator) {
	o.fault()
	o.kit.Partition(o, o.master(0))
	o.times.restored = o.awaitRole(o.replica(0), "master")
	o.until("the master that is cut off refuses writes", func() bool {
		_, err := o.master(0).Ask("PERSIST", keyAt(0))
		return err != nil
	})
	o.times.safe = time.Now()
	o.sleep(o.options.outage)
	o.kit.Heal(o)
}
