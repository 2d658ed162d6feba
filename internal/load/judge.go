package load

import (
	"fmt"
	"math"
)

// An Outcome says whether a target was met.
type Outcome string

const (
	Met        Outcome = "met"
	Missed     Outcome = "missed"
	CannotTell Outcome = "cannot tell"
)

// A Goal requires that the ratio of ours to a rival in one metric be at most
// Ratio, or at least Ratio if more of the metric is better.
type Goal struct {
	Metric Metric
	Rival  string // if empty, the best rival of the scenario in this metric
	Ratio  float64
}

func (g Goal) String() string {
	sign := "<="
	if g.Metric.MoreIsBetter() {
		sign = ">="
	}
	rival := g.Rival
	if rival == "" {
		rival = "the best rival"
	}
	return fmt.Sprintf("%s %s %.2fx of %s", g.Metric, sign, g.Ratio, rival)
}

const (
	// The control is a second copy of ours. Its interval must contain 1 and be narrower than this
	// before any comparison of the same rounds is trusted.
	controlWidth = 0.10
	// A lucky interval is not enough to meet a target: the median may miss it by no more than this
	// factor.
	medianSlack = 1.05
)

// A Verdict is the outcome of one Goal with the figures on which it is based.
type Verdict struct {
	Scenario string
	Subject  string // of ours
	Goal     Goal
	Outcome  Outcome
	Ratio    Ratio // subject / rival
	Control  Ratio // ours / control
	Why      string
}

// Settled reports whether the rounds allow a verdict: the 95 % interval of ours divided by the
// control contains 1 and is narrower than 10 %.
//
// Adding rounds until this holds does not bias the comparison with the rivals, because the rule
// does not depend on their figures.
func Settled(ours, control []float64) (Ratio, bool) {
	r, err := PairedRatio(ours, control)
	if err != nil {
		return Ratio{Median: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}, false
	}
	return r, r.Pairs >= minRounds && r.Lo <= 1 && 1 <= r.Hi && r.Hi-r.Lo < controlWidth
}

// Judge decides whether ours meets goal against rival. The three series hold the goal's metric for
// the same rounds, in the order of the rounds.
func Judge(goal Goal, ours, rival, control []float64) Verdict {
	return judge(goal, ours, rival, ours, control)
}

// judge is like Judge, for any of our subjects.
func judge(goal Goal, subject, rival, ours, control []float64) Verdict {
	v := Verdict{Goal: goal, Outcome: CannotTell}
	var err error
	if v.Ratio, err = PairedRatio(subject, rival); err != nil {
		v.Why = err.Error()
		return v
	}
	var settled bool
	if v.Control, settled = Settled(ours, control); !settled {
		switch {
		case v.Ratio.Pairs < minRounds:
			v.Why = fmt.Sprintf("%d rounds, but a 95 %% interval needs %d", v.Ratio.Pairs, minRounds)
		case v.Control.Hi-v.Control.Lo >= controlWidth:
			v.Why = fmt.Sprintf("ours against itself has an interval of %.2f-%.2f: too wide", v.Control.Lo, v.Control.Hi)
		default:
			v.Why = fmt.Sprintf("ours against itself has an interval of %.2f-%.2f: not 1", v.Control.Lo, v.Control.Hi)
		}
		return v
	}
	v.Outcome = Missed
	if goal.Metric.MoreIsBetter() {
		if v.Ratio.Hi >= goal.Ratio && v.Ratio.Median >= goal.Ratio/medianSlack {
			v.Outcome = Met
		}
	} else if v.Ratio.Lo <= goal.Ratio && v.Ratio.Median <= goal.Ratio*medianSlack {
		v.Outcome = Met
	}
	return v
}

// unjudged returns the verdict for figures that must not be compared.
func unjudged(goal Goal, why string) Verdict {
	none := Ratio{Median: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}
	return Verdict{Goal: goal, Outcome: CannotTell, Ratio: none, Control: none, Why: why}
}

func (v Verdict) String() string {
	goal := v.Goal.String()
	if v.Subject != "" && v.Subject != Ours {
		goal = v.Subject + " " + goal
	}
	if v.Ratio.Pairs == 0 {
		return fmt.Sprintf("%s: %s: %s: %s", v.Scenario, goal, v.Outcome, v.Why)
	}
	s := fmt.Sprintf("%s: %s: %s (ratio %.3f, interval %.3f-%.3f of %d rounds; control %.3f-%.3f)",
		v.Scenario, goal, v.Outcome, v.Ratio.Median, v.Ratio.Lo, v.Ratio.Hi, v.Ratio.Pairs, v.Control.Lo, v.Control.Hi)
	if v.Why != "" {
		s += ": " + v.Why
	}
	return s
}
