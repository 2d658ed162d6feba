package redis

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// TestACommandIsCutBySlots: each command has the keys of one slot with their values, in the order
// of the original command, and every key is in one of them. The slots are in the order of their
// first keys.
func TestACommandIsCutBySlots(t *testing.T) {
	for _, test := range []struct {
		name string
		step int
		keys []string
	}{
		{"MGET", 1, []string{"a", "{a}1", "b", "", "{b}", "a"}},
		{"DEL", 1, []string{"a", "b"}},
		{"MSET", 2, []string{"a", "b", "{a}2", "c"}},
		{"MGET", 1, manyKeys(3 * fewSlots)},
		{"MSET", 2, manyKeys(3 * fewSlots)},
	} {
		var args []string
		for i, key := range test.keys {
			args = append(args, key)
			for v := range test.step - 1 {
				args = append(args, fmt.Sprint("value ", i, v))
			}
		}
		in := known(test.name)
		whole := Command{name: in.name}
		whole.encodeStrings(nil, in, args)
		cmds, groups := cutBySlot(in, whole.frame)
		if len(cmds) != len(groups) {
			t.Fatalf("%s: %d commands and %d groups", test.name, len(cmds), len(groups))
		}
		var all, firsts []int
		for g, group := range groups {
			want := resp.AppendArrayHeader(nil, 1+test.step*len(group))
			want = resp.AppendBulkString(want, in.name)
			for _, i := range group {
				if slot.Of(test.keys[i]) != slot.Of(test.keys[group[0]]) {
					t.Errorf("%s: keys %q and %q in one command", test.name, test.keys[i], test.keys[group[0]])
				}
				for _, arg := range args[i*test.step : (i+1)*test.step] {
					want = resp.AppendBulkString(want, arg)
				}
			}
			if !bytes.Equal(cmds[g].frame, want) || cmds[g].info != in || cmds[g].err != nil || cmds[g].unshared != nil {
				t.Errorf("%s: command %d is %q, want %q", test.name, g, cmds[g].frame, want)
			}
			if !slices.IsSorted(group) {
				t.Errorf("%s: keys %v out of order", test.name, group)
			}
			all, firsts = append(all, group...), append(firsts, group[0])
		}
		slices.Sort(all)
		for i := range test.keys {
			if i >= len(all) || all[i] != i {
				t.Fatalf("%s: of %d keys, the result has %v", test.name, len(test.keys), all)
			}
		}
		if !slices.IsSorted(firsts) {
			t.Errorf("%s: the first keys are %v", test.name, firsts)
		}
		slots := map[int]bool{}
		for _, key := range test.keys {
			slots[slot.Of(key)] = true
		}
		if len(slots) != len(groups) {
			t.Errorf("%s: %d commands for %d slots", test.name, len(groups), len(slots))
		}
	}
}

// manyKeys returns n keys, some of which have the same slot.
func manyKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "{" + strconv.Itoa(i*2/3) + "}" + strconv.Itoa(i)
	}
	return keys
}

// TestOutcomeOfACommandThatWasCut: the original command may have been executed if any of its parts
// was, or may have been, whichever part failed first.
func TestOutcomeOfACommandThatWasCut(t *testing.T) {
	for _, test := range []struct {
		replies  int
		failures []slipstream.Outcome
		want     slipstream.Outcome
	}{
		{0, []slipstream.Outcome{slipstream.NotSent, slipstream.NotSent}, slipstream.NotSent},
		{1, []slipstream.Outcome{slipstream.NotSent}, slipstream.MaybeExecuted},
		{0, []slipstream.Outcome{slipstream.NotSent, slipstream.MaybeExecuted}, slipstream.MaybeExecuted},
		{0, []slipstream.Outcome{slipstream.Refused, slipstream.Executed}, slipstream.MaybeExecuted},
		{0, []slipstream.Outcome{slipstream.Refused, slipstream.Refused}, slipstream.Refused},
	} {
		var j joint
		for range test.replies {
			j.frames = append(j.frames, []byte(":1\r\n"))
		}
		for i, outcome := range test.failures {
			j.fail(i, &slipstream.Error{Outcome: outcome, Err: errNotJoined})
		}
		if got := slipstream.OutcomeOf(j.join(nil, &request{info: infoDel, name: "DEL"}, nil)); got != test.want {
			t.Errorf("%d replies and failures %v: outcome %v, want %v", test.replies, test.failures, got, test.want)
		}
	}
	var j joint
	j.fail(0, errNotJoined) // an error of another type does not panic
	if err := j.join(nil, &request{info: infoDel, name: "DEL"}, nil); err == nil {
		t.Error("no error")
	}
}
