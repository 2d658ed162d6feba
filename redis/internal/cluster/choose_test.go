package cluster

import (
	"slices"
	"testing"
	"time"
)

// chosen returns all candidates that a policy selects for some seed.
func chosen(policy Policy, zone string, candidates []Candidate) (all []int) {
	for seed := range uint64(12) {
		if i := Choose(policy, candidates, zone, seed); !slices.Contains(all, i) {
			all = append(all, i)
		}
	}
	slices.Sort(all)
	return all
}

func TestPolicies(t *testing.T) {
	ms := time.Millisecond
	master := Candidate{Master: true, RoundTrip: 2 * ms, Zone: "x"}
	near := Candidate{RoundTrip: ms, Zone: "y"}
	far := Candidate{RoundTrip: 9 * ms, Zone: "z"}
	alsoNear := Candidate{RoundTrip: ms + ms/4, Zone: "y"}
	sick := func(c Candidate, h Health) Candidate { c.Health = h; return c }
	unmeasured := Candidate{Zone: "y"}
	for _, c := range []struct {
		name       string
		policy     Policy
		zone       string
		candidates []Candidate
		want       []int
	}{
		{"the master, whatever its health", MasterOnly, "", []Candidate{near, sick(master, Unfit)}, []int{1}},
		{"no master", MasterOnly, "", []Candidate{near}, []int{-1}},
		{"nobody", AnyNode, "", nil, []int{-1}},
		{"replicas", PreferReplica, "", []Candidate{master, near, far}, []int{1, 2}},
		{"replicas that are well", PreferReplica, "", []Candidate{master, sick(near, Doubtful), far}, []int{2}},
		{"a master that is well before a replica in doubt", PreferReplica, "", []Candidate{master, sick(near, Doubtful)}, []int{0}},
		{"a replica in doubt before a master that failed", PreferReplica, "", []Candidate{sick(master, Unfit), sick(near, Doubtful)}, []int{1}},
		{"the master if all are unfit", PreferReplica, "", []Candidate{sick(near, Unfit), sick(master, Unfit)}, []int{1}},
		{"a replica that is unfit if there is no master", PreferReplica, "", []Candidate{sick(near, Unfit)}, []int{0}},
		{"all", AnyNode, "", []Candidate{master, near, far}, []int{0, 1, 2}},
		{"all that are well", AnyNode, "", []Candidate{sick(master, Doubtful), near, sick(far, Unfit)}, []int{1}},
		{"the nearest", Nearest, "", []Candidate{master, near, far}, []int{1}},
		{"the nearest, about", Nearest, "", []Candidate{master, near, far, alsoNear}, []int{1, 3}},
		{"the nearest that is well", Nearest, "", []Candidate{master, sick(near, Doubtful), far}, []int{0}},
		{"what was not measured is not near", Nearest, "", []Candidate{master, unmeasured}, []int{0}},
		{"nothing was measured", Nearest, "", []Candidate{unmeasured, unmeasured}, []int{0, 1}},
		{"replicas in the zone", SameZone, "y", []Candidate{master, near, far, alsoNear}, []int{1, 3}},
		{"the master in the zone", SameZone, "x", []Candidate{master, near, far}, []int{0}},
		{"replicas elsewhere", SameZone, "q", []Candidate{master, near, far}, []int{1, 2}},
		{"the master elsewhere", SameZone, "q", []Candidate{master}, []int{0}},
		{"no zone is not the same zone", SameZone, "", []Candidate{{Master: true}, {}}, []int{1}},
	} {
		if got := chosen(c.policy, c.zone, c.candidates); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, expected %v", c.name, got, c.want)
		}
	}
	candidates := []Candidate{master, near, far}
	if n := testing.AllocsPerRun(100, func() { Choose(Nearest, candidates, "y", 7) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSeedStaysForItsSlice(t *testing.T) {
	const process = 42
	changes, last := 0, Seed(process, 0)
	seen := make(map[uint64]int)
	for now := time.Duration(0); now < 4*time.Second; now += time.Millisecond {
		s := Seed(process, now)
		if s != last {
			changes++
		}
		last = s
		seen[s%3]++
	}
	if want := int(4*time.Second/seedSlice) - 1; changes != want {
		t.Errorf("%d changes, expected %d", changes, want)
	}
	for k := range uint64(3) {
		if seen[k] < 400 {
			t.Errorf("candidate %d of 3 was selected for %d of 4000 ms", k, seen[k])
		}
	}
	if Seed(1, 0)%1000 == Seed(2, 0)%1000 && Seed(3, 0)%1000 == Seed(4, 0)%1000 {
		t.Error("processes select the same nodes")
	}
}

func TestHealthOfNodes(t *testing.T) {
	for flags, want := range map[Flags]Health{
		0: Well, Failed: Unfit, Loading: Unfit, Handshake: Unfit, NoAddress: Unfit, MaybeFailed: Doubtful, Disconnected: Doubtful, Failed | Disconnected: Unfit,
	} {
		if got := (&Node{Flags: flags}).Health(); got != want {
			t.Errorf("flags %b: %d, expected %d", flags, got, want)
		}
	}
}
