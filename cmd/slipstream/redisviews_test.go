package main

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/slipstream-go/slipstream/redis"
)

// abc is the topology of three nodes as one of them has it. Owners are ranges of a, b and c.
func abc(from string, slots ...redis.SlotRange) redis.Topology {
	t := redis.Topology{From: from, Slots: slots}
	for _, name := range []string{"a", "b", "c"} {
		t.Nodes = append(t.Nodes, redis.NodeInfo{Addr: name + ":1", ID: "id-" + name})
	}
	return t
}

func TestViewsAreComparedSlotBySlot(t *testing.T) {
	whole := []redis.SlotRange{{First: 0, Last: 99, Node: "a:1"}, {First: 100, Last: 16383, Node: "b:1"}}
	for _, test := range []struct {
		name  string
		views []redis.Topology
		want  []splitReport
	}{
		{"the same", []redis.Topology{abc("a:1", whole...), abc("b:1", whole...)}, []splitReport{}},
		{
			"another owner", []redis.Topology{abc("a:1", whole...), abc("b:1", redis.SlotRange{First: 0, Last: 89, Node: "a:1"}, redis.SlotRange{First: 90, Last: 16383, Node: "b:1"})},
			[]splitReport{{Slots: "90-99", Claims: []claimReport{{Owner: "a:1", By: []string{"a:1"}}, {Owner: "b:1", By: []string{"b:1"}}}}},
		},
		{
			"no owner", []redis.Topology{abc("a:1", whole...), abc("b:1", whole...), abc("c:1", redis.SlotRange{First: 0, Last: 99, Node: "a:1"}, redis.SlotRange{First: 101, Last: 16383, Node: "b:1"})},
			[]splitReport{{Slots: "100", Claims: []claimReport{{Owner: "", By: []string{"c:1"}}, {Owner: "b:1", By: []string{"a:1", "b:1"}}}}},
		},
		{
			"two kinds side by side", []redis.Topology{abc("a:1", whole...), abc("b:1", redis.SlotRange{First: 0, Last: 98, Node: "a:1"}, redis.SlotRange{First: 99, Last: 99, Node: "b:1"}, redis.SlotRange{First: 100, Last: 100, Node: "c:1"}, redis.SlotRange{First: 101, Last: 16383, Node: "b:1"})},
			[]splitReport{
				{Slots: "99", Claims: []claimReport{{Owner: "a:1", By: []string{"a:1"}}, {Owner: "b:1", By: []string{"b:1"}}}},
				{Slots: "100", Claims: []claimReport{{Owner: "b:1", By: []string{"a:1"}}, {Owner: "c:1", By: []string{"b:1"}}}},
			},
		},
	} {
		v := newViews(abc("a:1", whole...))
		for _, view := range test.views {
			v.add(view)
		}
		if r, _ := v.report(); !reflect.DeepEqual(r.Slots, test.want) || r.Answered != len(test.views) {
			t.Errorf("%s: %+v, expected %+v", test.name, r, test.want)
		}
	}
}

// TestViewsAreComparedByID: a node may be known by another address to another node.
func TestViewsAreComparedByID(t *testing.T) {
	whole := redis.SlotRange{First: 0, Last: 16383, Node: "a:1"}
	other := abc("b:1", redis.SlotRange{First: 0, Last: 16383, Node: "10.0.0.1:1"})
	other.Nodes[0].Addr = "10.0.0.1:1"
	v := newViews(abc("a:1", whole))
	v.add(abc("a:1", whole))
	v.add(other)
	if r, _ := v.report(); len(r.Slots) > 0 || len(r.Members) > 0 {
		t.Errorf("disagreement: %+v", r)
	}
}

// TestViewsOfMembers: which nodes are missing, called failed, or strangers.
func TestViewsOfMembers(t *testing.T) {
	v := newViews(abc("a:1"))
	one, two := abc("a:1"), abc("b:1")
	one.Nodes[1].Failed = true
	two.Nodes = append(two.Nodes[:2], redis.NodeInfo{Addr: "d:1", ID: "id-d", Failed: true})
	v.add(one)
	v.add(two)
	want := []string{"b:1 has failed according to a:1", "c:1 is not known to b:1", "d:1 is not in the topology of the client, but is in that of b:1"}
	if r, _ := v.report(); !slices.Equal(r.Members, want) {
		t.Errorf("%q, expected %q", r.Members, want)
	}
}

// TestMovingSlotsSayWhichNodeKnows: a migration that only one of its nodes knows of is half open.
func TestMovingSlotsSayWhichNodeKnows(t *testing.T) {
	v := newViews(abc("a:1"))
	a, b := abc("a:1"), abc("b:1")
	a.Moving = []redis.MovingSlot{{Slot: 7, From: "a:1", To: "b:1"}, {Slot: 3, From: "a:1", To: "b:1"}}
	b.Moving = []redis.MovingSlot{{Slot: 7, From: "a:1", To: "b:1"}, {Slot: 9, From: "c:1", To: "b:1"}}
	v.add(a)
	v.add(b)
	want := []movingReport{{3, "a:1", "b:1", true, false}, {7, "a:1", "b:1", true, true}, {9, "c:1", "b:1", false, true}}
	if _, moving := v.report(); !slices.Equal(moving, want) {
		t.Errorf("%+v, expected %+v", moving, want)
	}
}

// TestDisagreementsAreBounded: thousands of nodes, each with a different claim about every slot, do
// not make the report long.
func TestDisagreementsAreBounded(t *testing.T) {
	const nodes = 110
	v := newViews(abc("a:1"))
	for i := range nodes {
		view := redis.Topology{From: fmt.Sprintf("n%d:1", i)}
		for j := range nodes {
			view.Nodes = append(view.Nodes, redis.NodeInfo{Addr: fmt.Sprintf("x%d-%d:1", i, j), ID: fmt.Sprintf("id-%d-%d", i, j)})
		}
		for slot := range allSlots {
			view.Slots = append(view.Slots, redis.SlotRange{First: slot, Last: slot, Node: view.Nodes[(slot+i)%nodes].Addr})
		}
		for slot := range 1000 {
			view.Moving = append(view.Moving, redis.MovingSlot{Slot: slot, From: view.From, To: "a:1"})
		}
		v.add(view)
	}
	report := &clusterReport{}
	report.take(abc("a:1"))
	report.Views, report.Moving = v.report()
	report.decide("master")
	if len(report.Views.Slots) > maxListed || len(report.Views.Members) > 3*maxListed || len(report.Moving) > maxListed || len(report.Problems) > maxListed+1 || report.Views.Omitted == 0 {
		t.Errorf("%d ranges, %d members, %d moving slots, %d problems, %d omitted", len(report.Views.Slots), len(report.Views.Members), len(report.Moving), len(report.Problems), report.Views.Omitted)
	}
	if n := len(printed(t, report)); n > 64<<10 {
		t.Errorf("%d bytes are printed", n)
	}
}
