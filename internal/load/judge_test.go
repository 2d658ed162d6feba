package load

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// machine simulates rounds on a machine whose speed drifts, with independent noise for every run.
type machine struct {
	rng   *rand.Rand
	noise float64
	drift float64 // factor between the first and the last round
}

func (m machine) rounds(n int, factors ...float64) [][]float64 {
	out := make([][]float64, len(factors))
	for i := range n {
		pace := math.Pow(m.drift, float64(i)/float64(n))
		for j, f := range factors {
			out[j] = append(out[j], 20*pace*f*math.Exp(m.noise*m.rng.NormFloat64()))
		}
	}
	return out
}

func TestJudge(t *testing.T) {
	// One 95 % interval in twenty misses 1 by chance, so "met" becomes "cannot tell" with some
	// seeds, but not with this one.
	rng := rand.New(rand.NewPCG(5, 7))
	for _, tc := range []struct {
		name                 string
		ours, rival, control float64
		noise, drift         float64
		rounds               int
		goal                 Goal
		want                 Outcome
		whyContains          string
		ratioLow, ratioHigh  float64 // bounds of the median
	}{
		{name: "well below the target", ours: 0.8, rival: 1, control: 0.8, noise: 0.01, drift: 1, rounds: 10,
			goal: Goal{ServerUS, "net/http", 1.15}, want: Met, ratioLow: 0.78, ratioHigh: 0.82},
		{name: "well above", ours: 1.4, rival: 1, control: 1.4, noise: 0.01, drift: 1, rounds: 10,
			goal: Goal{ServerUS, "net/http", 1.15}, want: Missed, ratioLow: 1.37, ratioHigh: 1.43},
		{name: "a machine that becomes three times slower", ours: 0.8, rival: 1, control: 0.8, noise: 0.02, drift: 3, rounds: 12,
			goal: Goal{ServerUS, "article", 0.85}, want: Met, ratioLow: 0.77, ratioHigh: 0.83},
		{name: "drift does not hide a miss", ours: 1.0, rival: 1, control: 1.0, noise: 0.02, drift: 3, rounds: 12,
			goal: Goal{ServerUS, "article", 0.85}, want: Missed, ratioLow: 0.97, ratioHigh: 1.03},
		{name: "noise", ours: 0.8, rival: 1, control: 0.8, noise: 0.3, drift: 1, rounds: 31,
			goal: Goal{ServerUS, "article", 0.85}, want: CannotTell, whyContains: "too wide", ratioLow: 0.5, ratioHigh: 1.2},
		{name: "ours differs from itself", ours: 0.8, rival: 1, control: 0.7, noise: 0.01, drift: 1, rounds: 12,
			goal: Goal{ServerUS, "article", 0.85}, want: CannotTell, whyContains: "not 1", ratioLow: 0.7, ratioHigh: 0.9},
		{name: "too few rounds", ours: 0.8, rival: 1, control: 0.8, noise: 0.001, drift: 1, rounds: 5,
			goal: Goal{ServerUS, "article", 0.85}, want: CannotTell, whyContains: "needs 6", ratioLow: 0.7, ratioHigh: 0.9},
		{name: "a rate above its target", ours: 1.5, rival: 1, control: 1.5, noise: 0.01, drift: 2, rounds: 10,
			goal: Goal{RPS, "article", 1.3}, want: Met, ratioLow: 1.45, ratioHigh: 1.55},
		{name: "a rate below", ours: 1.1, rival: 1, control: 1.1, noise: 0.01, drift: 2, rounds: 10,
			goal: Goal{RPS, "article", 1.3}, want: Missed, ratioLow: 1.05, ratioHigh: 1.15},
		{name: "more commands by a read", ours: 1.5, rival: 1, control: 1.5, noise: 0.01, drift: 1, rounds: 10,
			goal: Goal{PerRead, "article", 1}, want: Met, ratioLow: 1.45, ratioHigh: 1.55},
		{name: "fewer commands by a read", ours: 0.8, rival: 1, control: 0.8, noise: 0.01, drift: 1, rounds: 10,
			goal: Goal{PerRead, "article", 1}, want: Missed, ratioLow: 0.78, ratioHigh: 0.82},
	} {
		m := machine{rng: rng, noise: tc.noise, drift: tc.drift}
		series := m.rounds(tc.rounds, tc.ours, tc.rival, tc.control)
		v := Judge(tc.goal, series[0], series[1], series[2])
		if v.Outcome != tc.want {
			t.Errorf("%s: %v", tc.name, v)
		}
		if v.Ratio.Median < tc.ratioLow || v.Ratio.Median > tc.ratioHigh {
			t.Errorf("%s: median ratio %.3f", tc.name, v.Ratio.Median)
		}
		if tc.whyContains != "" && !strings.Contains(v.Why, tc.whyContains) {
			t.Errorf("%s: reason %q, want one that contains %q", tc.name, v.Why, tc.whyContains)
		}
	}
}

// An interval that touches the target is not enough: the median may exceed it
// by 5 % at most.
func TestJudgeNeedsMedianAndInterval(t *testing.T) {
	one := []float64{1, 1, 1, 1, 1, 1, 1}
	for _, tc := range []struct {
		ours []float64
		goal Goal
		want Outcome
	}{
		{[]float64{0.99, 1.04, 1.04, 1.04, 1.04, 1.04, 1.04}, Goal{ServerUS, "", 1}, Missed}, // lo is 1.015
		{[]float64{0.90, 1.04, 0.95, 1.04, 1.04, 1.04, 1.04}, Goal{ServerUS, "", 1}, Met},
		{[]float64{0.90, 1.06, 0.95, 1.06, 1.06, 1.06, 1.06}, Goal{ServerUS, "", 1}, Missed},
		{[]float64{1.10, 0.96, 1.05, 0.96, 0.96, 0.96, 0.96}, Goal{RPS, "", 1}, Met},
		{[]float64{1.10, 0.94, 1.05, 0.94, 0.94, 0.94, 0.94}, Goal{RPS, "", 1}, Missed},
	} {
		if v := Judge(tc.goal, tc.ours, one, tc.ours); v.Outcome != tc.want {
			t.Errorf("ours %v: %v", tc.ours, v)
		}
	}
}

// This checks how often the rule errs in the embarrassing direction: a subject that misses its
// target by 12 % must hardly ever pass.
func TestJudgeRarelyPassesAMiss(t *testing.T) {
	m := machine{rng: rand.New(rand.NewPCG(21, 22)), noise: 0.05, drift: 2}
	passed, told := 0, 0
	for range 400 {
		s := m.rounds(16, 0.95, 1, 0.95)
		switch Judge(Goal{ServerUS, "article", 0.85}, s[0], s[1], s[2]).Outcome {
		case Met:
			passed++
			told++
		case Missed:
			told++
		}
	}
	if told < 200 || passed > told/20 {
		t.Errorf("of %d verdicts, %d passed a subject 12 %% above its target", told, passed)
	}
}

func TestVerdictNamesItsGoal(t *testing.T) {
	v := Judge(Goal{RPS, "", 2}, []float64{1}, []float64{1}, nil)
	if s := v.String(); !strings.Contains(s, "rps >= 2.00x of the best rival") || v.Outcome != CannotTell {
		t.Errorf("verdict %q", s)
	}
	if v := Judge(Goal{ServerUS, "x", 1}, []float64{1}, []float64{0}, []float64{1}); v.Outcome != CannotTell || v.Why == "" {
		t.Errorf("a rival without figures gave %v", v)
	}
}
