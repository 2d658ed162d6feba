package redis

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/redis/internal/cluster"
	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// TestVerdictsOnErrors checks what happens to a call that a node has refused, for each error. The
// page docs/operations/redis-client.md has the same table for users.
//
// mutant: cluster-down-is-not-urgent, cluster-slot-without-an-owner-is-urgent, cluster-ask-refreshes, cluster-ask-is-learned,
// cluster-loading-replica-is-waited-for
func TestVerdictsOnErrors(t *testing.T) {
	const own, master, other, unlisted = "12539 ", "10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"
	const down, unserved = "The cluster is down", "Hash slot not served"
	for _, test := range []struct {
		code, message string
		at            string // the node that has refused; if empty, the owner of the slot
		how           course
		to            string // for goNow and goVerify
		asking        bool
		refreshes     int64
		learned       bool // the other node becomes the owner of the slot
		urgent        bool
	}{
		{code: "MOVED", message: own + other, how: goNow, to: other, refreshes: 1, learned: true},
		{code: "ASK", message: own + other, how: goNow, to: other, asking: true},
		{code: "MOVED", message: own + unlisted, how: goVerify, to: unlisted, refreshes: 1},
		{code: "ASK", message: own + unlisted, how: goVerify, to: unlisted, asking: true},
		{code: "MOVED", message: "1 " + other, how: goEnd, refreshes: 1},
		{code: "MOVED", message: "nonsense", how: goEnd, refreshes: 1},
		{code: "TRYAGAIN", message: "Multiple keys request during rehashing of slot", how: goPause},
		{code: "CLUSTERDOWN", message: down, how: goPause, refreshes: 1, urgent: true},
		{code: "CLUSTERDOWN", message: down + " and only accepts read commands", how: goPause, refreshes: 1, urgent: true},
		{code: "CLUSTERDOWN", message: unserved, how: goPause, refreshes: 1},
		{code: "READONLY", message: "You can't write against a read only replica.", how: goPause, refreshes: 1},
		{code: "LOADING", message: "Redis is loading the dataset in memory", how: goPause},
		{code: "LOADING", message: "Redis is loading the dataset in memory", at: other, how: goNow, to: master},
		{code: "MASTERDOWN", message: "Link with MASTER is down", how: goPause, refreshes: 1},
		{code: "MASTERDOWN", message: "Link with MASTER is down", at: other, how: goNow, to: master, refreshes: 1},
		{code: "BUSY", message: "Redis is busy running a script.", how: goPause},
		{code: "CROSSSLOT", message: "Keys in request don't hash to the same slot", how: goEnd},
		{code: "NOPERM", message: "no", how: goEnd},
	} {
		t.Run(test.code+" "+test.message, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPipedCluster(t)
				k := p.router
				r := &request{node: k.owner(0), route: route{slot: int32(slot.Of("key"))}}
				if test.at != "" {
					r.node = k.nodes.Table().Find(test.at).Peer
				}
				d := k.judge(r, &slipstream.Error{Outcome: slipstream.Refused, Err: &ServerError{Code: test.code, Message: test.message}})
				to := d.addr
				if d.node != nil {
					to = d.node.fail.Addr
				}
				if d.how != test.how || to != test.to || d.asking != test.asking {
					t.Errorf("course %d to %q, asking: %t; want %d, %q, %t", d.how, to, d.asking, test.how, test.to, test.asking)
				}
				if n := p.refresher.requests.Load(); n != test.refreshes {
					t.Errorf("%d refreshes were requested, want %d", n, test.refreshes)
				}
				if owner := k.owner(r.route.slot).fail.Addr; (owner == other) != test.learned {
					t.Errorf("%s owns the slot", owner)
				}
				if got := k.urgent(new(cluster.Topology)); got != test.urgent {
					t.Errorf("refreshes are urgent: %t", got)
				}
				time.Sleep(downFor)
				if k.urgent(new(cluster.Topology)) {
					t.Errorf("refreshes are still urgent %v later", downFor)
				}
			})
		})
	}
}
