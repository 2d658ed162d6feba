package load

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"
)

// A Comparison is the result of the rounds of a scenario, without the files of a [Suite].
type Comparison struct {
	// Rounds holds the samples of each subject in the order of the rounds. If the last round was
	// cut short, some subjects have one sample less.
	Rounds map[string][]Sample
}

// Compare repeats rounds as a [Suite] does, but stores nothing. It returns the rounds that were
// finished and the error that ended them. Only opts.Progress must be set.
func (s Scenario) Compare(ctx context.Context, opts Options) (*Comparison, error) {
	opts.MaxRounds = cmp.Or(opts.MaxRounds, defaultMaxRounds)
	if opts.Seed == 0 {
		opts.Seed = uint64(time.Now().UnixNano())
	}
	m := &measurement{scenario: s, opts: opts, suite: "compare", position: "1/1", rounds: map[string][]Sample{}, rng: rand.New(rand.NewPCG(opts.Seed, 0))}
	err := m.run(ctx)
	return &Comparison{m.rounds}, err
}

// Against compares a subject with Ours in one metric. Control is the ratio of Ours to itself;
// settled reports whether it allows a verdict. The error says why there is no ratio.
func (c *Comparison) Against(subject string, metric Metric) (ratio, control Ratio, settled bool, err error) {
	n := min(len(c.Rounds[subject]), len(c.Rounds[Ours]), len(c.Rounds[Control]))
	values := func(of string) []float64 { return column(c.Rounds[of][:n], metric) }
	if ratio, err = PairedRatio(values(subject), values(Ours)); err != nil {
		return ratio, control, false, err
	}
	control, settled = Settled(values(Ours), values(Control))
	return ratio, control, settled, nil
}
