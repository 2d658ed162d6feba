package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/load"
)

// rounds returns six rounds with the same figures plus a little noise.
func rounds(rps, cpu, allocs float64) []load.Sample {
	var all []load.Sample
	for i := range 6 {
		noise := 1 + 0.01*float64(i%3)
		all = append(all, load.Sample{Values: map[load.Metric]float64{
			load.RPS: rps / noise, load.ClientUS: cpu * noise, load.Allocs: allocs, load.BytesOp: 100, calls: 2,
		}})
	}
	return all
}

func TestWorse(t *testing.T) {
	s := scenario{&kind{name: "x", cpu: load.ClientUS}, 1}
	for name, c := range map[string]struct {
		ours []load.Sample
		want []load.Metric
	}{
		"the same":        {rounds(1000, 5, 3), nil},
		"better":          {rounds(2000, 2, 1), nil},
		"a little slower": {rounds(950, 5.3, 3), nil},
		"slower":          {rounds(800, 5, 3), []load.Metric{load.RPS}},
		"costs more":      {rounds(1000, 6, 3), []load.Metric{load.ClientUS}},
		"one object more": {rounds(1000, 5, 4), []load.Metric{load.Allocs}},
		"a trace more":    {rounds(1000, 5, 3.005), nil},
	} {
		all := findings(s, map[string][]load.Sample{load.Ours: c.ours, load.Control: c.ours, "main": rounds(1000, 5, 3)}, "main", false)
		var got []load.Metric
		for _, f := range all {
			if f.worse {
				got = append(got, f.metric)
			}
		}
		if len(all) != 5 || len(got) != len(c.want) || len(got) > 0 && got[0] != c.want[0] {
			t.Errorf("%s: %d figures, worse are %v, want %v", name, len(all), got, c.want)
		}
		if some := suspects([]scenario{s}, all); (len(some) == 1) != (c.want != nil) {
			t.Errorf("%s: %d scenarios are repeated", name, len(some))
		}
	}
}

// A single worse result does not count, and too few rounds prove nothing.
func TestWorseTwice(t *testing.T) {
	s := scenario{&kind{name: "x", cpu: load.ClientUS}, 1}
	of := func(ours []load.Sample) []finding {
		n := len(ours)
		return findings(s, map[string][]load.Sample{load.Ours: ours, load.Control: ours, "main": rounds(1000, 5, 3)[:n]}, "main", false)
	}
	same, dear, slow := of(rounds(1000, 5, 3)), of(rounds(1000, 6, 3)), of(rounds(800, 5, 3))
	for _, pair := range [][2][]finding{{dear, same}, {same, dear}, {dear, slow}} {
		if err := confirmed(pair[0], pair[1]); err != nil {
			t.Errorf("error %v, want none", err)
		}
	}
	if err := confirmed(dear, dear); !errors.Is(err, errWorse) || !strings.Contains(err.Error(), "client CPU us/op of x/1") {
		t.Errorf("error %v, want the CPU time of x/1", err)
	}
	few := of(rounds(100, 50, 30)[:5])
	if suspects([]scenario{s}, few) != nil {
		t.Error("there is a verdict after five rounds")
	}
	var out strings.Builder
	if err := writeFindings(&out, append(few, dear...), "main"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"too few rounds", "1.200 1.200-1.200", "WORSE"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// A scenario that did not finish is shown and marked, but gets no verdict.
func TestFindingsOfAScenarioThatDidNotFinish(t *testing.T) {
	s := scenario{kind: &kind{name: "k", cpu: load.ServerUS}, callers: 1}
	var ours []load.Sample
	for range 8 {
		ours = append(ours, load.Sample{Values: map[load.Metric]float64{load.RPS: 1, load.ServerUS: 100, load.Allocs: 9}})
	}
	all := findings(s, map[string][]load.Sample{load.Ours: ours}, "main", true)
	var out strings.Builder
	if err := writeFindings(&out, all, "main"); err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.worse || f.ratio.Pairs != 0 {
			t.Errorf("judged %+v", f)
		}
	}
	if got := strings.Count(out.String(), " partial\n"); got != len(all) || got == 0 {
		t.Errorf("%d of %d lines marked in\n%s", got, len(all), &out)
	}
	if len(suspects([]scenario{s}, all)) != 0 {
		t.Error("suspects a scenario that did not finish")
	}
}
