package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/slipstream-go/slipstream/internal/load"
)

// ComparisonSchema identifies the meaning of the fields of a Comparison.
const ComparisonSchema = "slipstream-bench-comparison/1"

// A Side is one of the two servers of a comparison, with the requests for it.
type Side struct {
	Plan Plan
	// Open returns the workload for a round.
	Open func(ctx context.Context) (Workload, error)
}

// Names of the subjects of a comparison. A takes part twice, and any difference between the two is
// noise.
const (
	sideA     = "A"
	sideAgain = "A again"
	sideB     = "B"
)

// CompareOptions limits the number of rounds of a comparison. Progress must be set.
type CompareOptions struct {
	Rounds   int // if 0, from 6 to Most, until A equals itself
	Most     int // if 0, 31
	Seed     uint64
	Progress io.Writer
}

// A Comparison is the result of the rounds of two servers.
type Comparison struct {
	Schema   string        `json:"schema"`
	A        string        `json:"a"`
	B        string        `json:"b"`
	Rounds   []RoundReport `json:"rounds"`
	Verdicts []SideVerdict `json:"verdicts"`
	Limits   []string      `json:"generator_limits,omitempty"` // reached in some rounds, see Report
	Limited  int           `json:"rounds_limited"`             // the number of these rounds
	Partial  string        `json:"partial,omitempty"`
	// ProfiledA and ProfiledB are runs after the rounds in which profiles were taken; nil if none
	// were requested.
	ProfiledA *Report `json:"profiled_a,omitempty"`
	ProfiledB *Report `json:"profiled_b,omitempty"`

	samples *load.Comparison // nil after reading JSON
}

// A RoundReport is one round of a subject: A, A again, or B.
type RoundReport struct {
	Subject string  `json:"subject"`
	Report  *Report `json:"report"`
}

// A SideVerdict compares B with A in one figure.
type SideVerdict struct {
	Metric load.Metric `json:"metric"`
	// Word describes B: faster, slower, cheaper, costlier or cannot tell.
	Word string  `json:"word"`
	Why  string  `json:"why,omitempty"`
	A    float64 `json:"a"` // median over the rounds
	B    float64 `json:"b"`
	// Ratio is the ratio of B to A, the median over the pairs of the rounds, with its interval.
	// Control is the ratio of A to itself.
	Ratio     float64 `json:"ratio"`
	Lo        float64 `json:"lo"`
	Hi        float64 `json:"hi"`
	ControlLo float64 `json:"control_lo"`
	ControlHi float64 `json:"control_hi"`
	Pairs     int     `json:"rounds"`
}

const cannotTell = "cannot tell"

// Compare runs A, A again and B in every round, in random order, and compares them pair by pair. If
// it ends early, it returns the result of the complete rounds, marked as partial, in addition to
// the error. Profiles are taken in runs after the rounds.
func Compare(ctx context.Context, a, b Side, o CompareOptions) (*Comparison, error) {
	c := &Comparison{Schema: ComparisonSchema}
	if err := errors.Join(a.lookForProfiles(ctx), b.lookForProfiles(ctx)); err != nil {
		return c, err
	}
	metrics := []load.Metric{load.P50US, load.P99US, load.ServerUS}
	primary := load.P50US
	if a.Plan.Rate == 0 && a.Plan.Trace == nil {
		primary = load.RPS
		metrics = slices.Insert(metrics, 0, load.RPS)
	}
	scenario := load.Scenario{Name: "A, A again and B", Primary: primary, Subjects: []load.Subject{
		{Name: load.Ours, Run: c.run(a.withoutProfiles(), sideA, &c.A)},
		{Name: load.Control, Run: c.run(a.withoutProfiles(), sideAgain, &c.A)},
		{Name: sideB, Run: c.run(b.withoutProfiles(), sideB, &c.B)},
	}}
	samples, err := scenario.Compare(ctx, load.Options{Rounds: o.Rounds, MaxRounds: o.Most, Seed: o.Seed, Progress: o.Progress})
	if err == nil {
		err = c.takeProfiles(ctx, a, b, o.Progress)
	}
	if err != nil {
		c.Partial = err.Error()
	}
	c.samples = samples
	for _, m := range metrics {
		if v, ok := c.judge(m); ok {
			c.Verdicts = append(c.Verdicts, v)
		}
	}
	return c, err
}

// run returns the function that measures one round of a subject.
func (c *Comparison) run(side Side, subject string, name *string) func(context.Context, int) (load.Sample, error) {
	return func(ctx context.Context, round int) (load.Sample, error) {
		w, err := side.Open(ctx)
		if err != nil {
			return load.Sample{}, err
		}
		*name = w.Name()
		plan := side.Plan
		plan.Seed += uint64(round)
		r, err := plan.Run(ctx, w)
		if closeErr := w.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return load.Sample{}, err
		}
		if r.Completed == 0 {
			return load.Sample{}, fmt.Errorf("no request got a correct answer: %s", r.FirstFailed)
		}
		c.Rounds = append(c.Rounds, RoundReport{subject, r})
		if len(r.Limits) > 0 {
			c.Limited++
			c.Limits = r.Limits
		}
		return r.sample(), nil
	}
}

// sample returns those figures of a run that are compared.
func (r *Report) sample() load.Sample {
	s := load.Sample{Values: map[load.Metric]float64{
		load.RPS:   r.Rate,
		load.P50US: micros(r.Latency, 0.50),
		load.P99US: micros(r.Latency, 0.99),
	}}
	if len(r.Costs) > 1 {
		for _, cost := range r.Costs[1:] {
			s.Values[load.ServerUS] += cost.PerRequest / 1e3
		}
	}
	return s
}

func micros(h *load.Histogram, q float64) float64 { return float64(h.Quantile(q)) / 1e3 }

// judge compares B with A in each figure that was measured.
func (c *Comparison) judge(metric load.Metric) (SideVerdict, bool) {
	median := func(subject string) float64 {
		var values []float64
		for _, s := range c.samples.Rounds[subject] {
			if v, ok := s.Values[metric]; ok {
				values = append(values, v)
			}
		}
		return load.Median(values)
	}
	v := SideVerdict{Metric: metric, Word: cannotTell, A: median(load.Ours), B: median(sideB)}
	if math.IsNaN(v.A) || math.IsNaN(v.B) {
		return v, false
	}
	ratio, control, settled, err := c.samples.Against(sideB, metric)
	if err != nil {
		v.Why = err.Error()
		return v, true
	}
	v.Ratio, v.Lo, v.Hi, v.Pairs = ratio.Median, ratio.Lo, ratio.Hi, ratio.Pairs
	if !math.IsNaN(control.Lo) { // JSON has no NaN
		v.ControlLo, v.ControlHi = control.Lo, control.Hi
	}
	switch {
	case !settled:
		v.Why = fmt.Sprintf("the ratio of A to itself is %.2f-%.2f after %d rounds, which is too uncertain", v.ControlLo, v.ControlHi, v.Pairs)
	case ratio.Lo <= 1 && ratio.Hi >= 1:
		v.Why = "no difference was found"
	default:
		v.Word = words[metric == load.ServerUS][(ratio.Lo > 1) == metric.MoreIsBetter()]
	}
	return v, true
}

// Failed returns the share of failed requests in all runs together, the first error of the last run
// that has one, and the number of wrong answers.
func (c *Comparison) Failed() (share float64, first string, wrong uint64) {
	var failed, all uint64
	for _, round := range c.Rounds {
		r := round.Report
		failed += r.Failed + r.Unsent
		all += r.Failed + r.Unsent + r.Completed
		wrong += r.Wrong()
		if r.FirstFailed != "" {
			first = r.FirstFailed
		}
	}
	return float64(failed) / float64(max(all, 1)), first, wrong
}

// words returns the words for costs and those for all other figures, by whether B is better.
var words = map[bool]map[bool]string{
	true:  {true: "cheaper", false: "costlier"},
	false: {true: "faster", false: "slower"},
}

// WriteJSON writes the comparison as indented JSON.
func (c *Comparison) WriteJSON(w io.Writer) error {
	return writeJSON(w, c)
}

// titles are the names of the figures in reports for people.
var titles = map[load.Metric]string{load.RPS: "rate", load.P50US: "p50", load.P99US: "p99", load.ServerUS: "server CPU"}

// show formats a value of the metric.
func (v *SideVerdict) show(f float64) string {
	if v.Metric == load.RPS {
		return rate(f) + "/s"
	}
	return three(f) + " us"
}

// WriteText writes how B compares with A.
func (c *Comparison) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "A  %s\nB  %s\n", c.A, c.B)
	if len(c.Rounds) > 0 {
		fmt.Fprintf(&b, "each run: %s\n", c.Rounds[0].Report.each())
	}
	if len(c.Verdicts) > 0 {
		fmt.Fprintf(&b, "\n%-10s %12s %12s %8s %15s %15s\n", "", "A", "B", "B/A", "interval", "A/A")
	}
	for _, v := range c.Verdicts {
		fmt.Fprintf(&b, "%-10s %12s %12s %8.3f %15s %15s   ", titles[v.Metric], v.show(v.A), v.show(v.B), v.Ratio,
			fmt.Sprintf("%.3f-%.3f", v.Lo, v.Hi), fmt.Sprintf("%.3f-%.3f", v.ControlLo, v.ControlHi))
		if v.Word == cannotTell {
			fmt.Fprintf(&b, "%s: %s\n", v.Word, v.Why)
		} else {
			fmt.Fprintf(&b, "B is %s\n", v.Word)
		}
	}
	if len(c.Verdicts) > 0 {
		b.WriteString("\n95 % intervals, paired by round. A/A is A compared with itself, which is noise.\n")
	}
	c.writeProfiles(&b)
	if share, first, _ := c.Failed(); share > 0 {
		fmt.Fprintf(&b, "\nfailed: %.3g %% of the requests, for example: %s\n", share*100, first)
	}
	if c.Partial != "" {
		fmt.Fprintf(&b, "\nPARTIAL: %s\n", c.Partial)
	}
	if c.Limited > 0 {
		fmt.Fprintf(&b, "\nTHE GENERATOR WAS THE LIMIT in %d of %d runs, for example:\n  %s\n", c.Limited, len(c.Rounds), strings.Join(c.Limits, "\n  "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
