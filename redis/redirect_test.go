package redis

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/redis/internal/cluster"
)

// noRefresher does nothing.
type noRefresher struct{}

func (noRefresher) Request()                    {}
func (noRefresher) Ready(context.Context) error { return nil }
func (noRefresher) Close()                      {}
func (noRefresher) Verify(context.Context, string) (cluster.Node, bool, error) {
	return cluster.Node{}, false, nil
}

// routerOfOne returns a router whose only node has no connection.
func routerOfOne(o Options) *router {
	k := makeRouter(newCore(&o), nil, cluster.Addresses{})
	k.refresher = noRefresher{}
	k.nodes = cluster.NewMap(func(n *cluster.Node) *node { return &node{} })
	k.nodes.Apply(cluster.Single("10.0.0.1:1"), k.nodes.Begin())
	return k
}

// mutant: redis-node-that-left-is-the-client
func TestCallAtANodeThatHasLeftGoesOn(t *testing.T) {
	for _, o := range []Options{{}, {FailFast: true}} {
		k := routerOfOne(o)
		failure := &slipstream.Error{Outcome: slipstream.Closed, Err: ErrClosed}
		r := &request{node: &node{}}
		if d := k.judge(r, failure); d.how != goNow || d.node != k.owner(0) || failure.Outcome != slipstream.NotSent {
			t.Errorf("%+v, outcome %v", d, failure.Outcome)
		}
		close(k.core.closing)
		failure.Outcome = slipstream.Closed
		if d := k.judge(r, failure); d.how != goEnd || failure.Outcome != slipstream.Closed {
			t.Errorf("after Close: %+v, outcome %v", d, failure.Outcome)
		}
	}
}

// mutant: sentinel-follows-redirects
func TestMasterThatSentinelsNameDoesNotRedirect(t *testing.T) {
	k := routerOfOne(Options{})
	for _, code := range []string{"MOVED", "ASK"} {
		failure := &slipstream.Error{Outcome: slipstream.Refused, Err: &ServerError{Code: code, Message: "0 10.0.0.1:1"}}
		if d := k.judge(&request{node: &node{}}, failure); d.how != goEnd {
			t.Errorf("%s: %+v", code, d)
		}
	}
	failure := &slipstream.Error{Outcome: slipstream.Refused, Err: &ServerError{Code: "READONLY"}}
	if d := k.judge(&request{node: k.owner(0)}, failure); d.how != goPause {
		t.Errorf("READONLY: %+v", d)
	}
}

// mutant: sentinel-watch-ends-at-a-replica
func TestWatchBeginsAnewAtTheNewMaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := routerOfOne(Options{})
		old := k.owner(0)
		refused := &slipstream.Error{Outcome: slipstream.Refused, Err: &ServerError{Code: "READONLY"}}
		time.AfterFunc(time.Second, func() { k.nodes.Apply(cluster.Single("10.0.0.1:2"), k.nodes.Begin()) })
		began := time.Now()
		if !k.follows(t.Context(), old, nil, refused) || time.Since(began) < time.Second || k.owner(0) == old {
			t.Errorf("the call continues after %v", time.Since(began))
		}
		if began = time.Now(); k.follows(t.Context(), k.owner(0), nil, refused) || time.Since(began) > defaultDial+time.Second {
			t.Errorf("without another master, the call continues after %v", time.Since(began))
		}
		k.cancel()
	})
}

// Calls of a client for a node that has left fail like those for an unreachable node, because the
// client itself is open.
func TestViewOfANodeThatHasLeft(t *testing.T) {
	n := &node{}
	c := &Client{core: newCore(&Options{}), only: n, view: true}
	closed := &slipstream.Error{Outcome: slipstream.Closed, Err: ErrClosed}
	if f := c.failure(&request{node: n}, closed); f.Outcome != slipstream.NotSent || errors.Is(f, ErrClosed) {
		t.Error(f)
	}
	close(c.closing)
	if f := c.failure(&request{node: n}, closed); f.Outcome != slipstream.Closed {
		t.Error(f)
	}
}
