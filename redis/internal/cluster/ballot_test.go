package cluster

import (
	"testing"

	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// viewOf returns the view of a node at from, in which owner owns all slots.
func viewOf(from, owner string, epoch uint64, state State) *Topology {
	t := topologyOf([]string{owner}, nil)
	t.From, t.CurrentEpoch, t.State = from, epoch, state
	return t
}

func TestBallots(t *testing.T) {
	doubtful := viewOf("1", "a:1", 5, Up)
	doubtful.Doubt = "a slot without an owner"
	forgotten := topologyOf([]string{"f:1"}, func(int) int { return -1 })
	// some returns the view of a node that knows the owner of only a third of the slots.
	some := func(from, owner string, epoch uint64) *Topology {
		t := topologyOf([]string{owner}, func(s int) int { return -min(s/(slot.Count/3), 1) })
		t.From, t.CurrentEpoch, t.State = from, epoch, Up
		return t
	}
	for _, c := range []struct {
		name    string
		inForce *Topology
		olds    int
		answers []*Topology // the last one is enough, if any is
		enough  bool
		want    string // the owner, or the error
	}{
		{"one node that knows its epoch", nil, 0, []*Topology{viewOf("1", "a:1", 5, Up)}, true, "a:1"},
		{"the same epoch", viewOf("1", "a:1", 5, Up), 0, []*Topology{viewOf("1", "b:1", 5, Up)}, true, "b:1"},
		{"an older epoch", viewOf("1", "a:1", 5, Up), 0, []*Topology{viewOf("1", "b:1", 4, Up)}, false, ErrOldView.Error()},
		{"an older epoch, then a newer one", viewOf("1", "a:1", 5, Up), 0, []*Topology{viewOf("1", "b:1", 4, Up), viewOf("2", "c:1", 6, Up)}, true, "c:1"},
		{"two with the same old view", viewOf("1", "a:1", 5, Up), 0, []*Topology{viewOf("1", "b:1", 4, Up), viewOf("2", "b:1", 4, Up)}, false, ErrOldView.Error()},
		{"three older views", viewOf("1", "a:1", 5, Up), 1, []*Topology{viewOf("1", "b:1", 4, Up), viewOf("2", "b:1", 4, Up), viewOf("3", "b:1", 4, Up)}, true, ErrOldView.Error()},
		{"older views for the third time", viewOf("1", "a:1", 5, Up), 2, []*Topology{viewOf("1", "b:1", 1, Up), viewOf("2", "c:1", 2, Up), viewOf("3", "b:1", 1, Down)}, true, "b:1"},
		{"only nodes that are cut off, for the third time", viewOf("1", "a:1", 5, Up), 2, []*Topology{viewOf("1", "b:1", 1, Down)}, false, ErrOldView.Error()},
		{"a node that is cut off", nil, 0, []*Topology{viewOf("1", "a:1", 5, Down)}, false, "a:1"},
		{"a node that is cut off, and one that is not", nil, 0, []*Topology{viewOf("1", "a:1", 9, Down), viewOf("2", "b:1", 5, Up)}, true, "b:1"},
		{"two nodes that say the cluster is down", nil, 0, []*Topology{viewOf("1", "a:1", 5, Down), viewOf("2", "a:1", 5, Down)}, true, "a:1"},
		{"one node, heard twice", nil, 0, []*Topology{viewOf("1", "a:1", 5, Down), viewOf("1", "a:1", 5, Down)}, false, "a:1"},
		{"two that are down: the newer", nil, 0, []*Topology{viewOf("1", "a:1", 5, Down), viewOf("2", "b:1", 6, Down)}, false, "b:1"},
		{"a node that the cluster has forgotten", viewOf("1", "a:1", 5, Up), 0, []*Topology{forgotten}, false, ErrOldView.Error()},
		{"a cluster without slots", nil, 0, []*Topology{forgotten}, false, "f:1"},
		{"doubt", nil, 0, []*Topology{doubtful}, false, "a:1"},
		{"doubt, and a view that is clear", nil, 0, []*Topology{doubtful, viewOf("2", "b:1", 5, Up)}, true, "b:1"},
		{"a node that has forgotten the others", viewOf("1", "a:1", 5, Up), 0, []*Topology{some("1", "b:1", 5)}, false, "b:1"},
		{"a node that has forgotten the others, and one that has not", viewOf("1", "a:1", 5, Up), 0, []*Topology{some("1", "b:1", 5), viewOf("2", "c:1", 5, Up)}, true, "c:1"},
		{"a node that has forgotten the others, at the start", nil, 0, []*Topology{some("1", "b:1", 5), viewOf("2", "c:1", 5, Up)}, true, "c:1"},
		{"two nodes with the same slots that have no owner", viewOf("1", "a:1", 5, Up), 0, []*Topology{some("1", "b:1", 5), some("2", "b:1", 5)}, true, "b:1"},
		{"slots without an owner, as before", some("1", "a:1", 5), 0, []*Topology{some("1", "b:1", 5)}, true, "b:1"},
		{"fewer slots, and newer", viewOf("1", "a:1", 5, Up), 0, []*Topology{some("1", "b:1", 6), viewOf("2", "a:1", 5, Up)}, true, "b:1"},
		{"no epoch, the first", nil, 0, []*Topology{viewOf("1", "a:1", 0, Up)}, false, "a:1"},
		{"no epoch, the same owners", viewOf("1", "a:1", 0, Up), 0, []*Topology{viewOf("1", "a:1", 0, Up)}, true, "a:1"},
		{"no epoch, the only node", viewOf("1", "a:1", 0, Up), 0, []*Topology{viewOf("1", "b:1", 0, Up)}, false, "b:1"},
		{"no epoch, two agree", viewOf("1", "a:1", 0, Up), 0, []*Topology{viewOf("1", "b:1", 0, Up), viewOf("2", "b:1", 0, Up)}, true, "b:1"},
		{"no epoch, the majority", viewOf("1", "a:1", 0, Up), 0, []*Topology{viewOf("1", "c:1", 0, Up), viewOf("2", "b:1", 0, Up), viewOf("3", "b:1", 0, Up)}, true, "b:1"},
		{"no epoch, and all differ", viewOf("1", "a:1", 0, Up), 0, []*Topology{viewOf("1", "b:1", 0, Up), viewOf("2", "c:1", 0, Up), viewOf("3", "d:1", 0, Up)}, true, ErrDisagree.Error()},
		{"no epoch, all differ, at the start", nil, 0, []*Topology{viewOf("1", "b:1", 0, Up), viewOf("2", "c:1", 0, Up), viewOf("3", "d:1", 0, Up)}, true, "b:1"},
	} {
		b := ballot{inForce: c.inForce, olds: c.olds}
		for i, answer := range c.answers {
			if enough := b.add(answer); enough != (c.enough && i == len(c.answers)-1) {
				t.Errorf("%s: answer %d is enough: %v", c.name, i, enough)
			}
		}
		winner, err := b.winner()
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = winner.Nodes[0].Addr
		}
		if got != c.want {
			t.Errorf("%s: %s, expected %s", c.name, got, c.want)
		}
	}
}
