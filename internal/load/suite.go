package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Names of our own subjects.
const (
	Ours    = "slipstream"
	Control = "slipstream-control"
)

// A Suite is a set of scenarios whose results share one file.
type Suite struct {
	Name      string
	Scenarios []Scenario
}

// A Scenario compares subjects under one load.
type Scenario struct {
	Name string
	// Primary is the metric of the columns spread, ratio_lo and ratio_hi.
	Primary  Metric
	Subjects []Subject
	Goals    []Goal
	// Rounds is a fixed number of rounds. If zero, there are as many as the control requires.
	Rounds int
	// Close, if set, is called after the last round to release resources that the subjects share.
	Close func() error
}

// A Subject is measured once per round. A Run that fails may return what it measured until then, as
// a Sample with Partial set.
type Subject struct {
	Name string
	// Variant marks a subject of ours other than Ours and Control: it is not a
	// rival and gets its own interval against the best rival.
	Variant bool
	// Goals are the goals of a Variant, for its ratio to a rival. Ours has the goals of the
	// Scenario.
	Goals []Goal
	Run   func(ctx context.Context, round int) (Sample, error)
}

func (s Subject) rival() bool { return s.Name != Ours && s.Name != Control && !s.Variant }

// Options configure the run of a Suite. Directory, Command and Progress must be set.
type Options struct {
	// Directory is the directory of the results; raw rounds are stored in its subdirectory raw. The
	// results of a scenario that does not finish are stored in files of the same names below
	// PartialDirectory, and the complete results are left unchanged.
	Directory string
	Command   string // the command that repeats the measurement
	Progress  io.Writer

	// Filter holds names of scenarios, separated by commas. A name that no scenario has selects the
	// scenarios that begin with it or, if it starts with a slash, those that end with it. If empty,
	// all scenarios run.
	Filter string
	// Rounds is the number of rounds of every scenario that does not fix its
	// own. If zero, there are as many as the control requires.
	Rounds int
	// MaxRounds bounds the number of rounds while the control is not yet stable. 0 means 31.
	MaxRounds int
	// Seed determines the order of subjects in each round. If zero, it is derived
	// from the clock and printed.
	Seed uint64
}

// A Report holds the results of a Suite.
type Report struct {
	Rows     []Row
	Verdicts []Verdict
	Ratios   []RivalRatio
	Doubts   []Doubt
}

// A Doubt names the subjects of a scenario with rounds whose latencies say more
// about the generator than about the subject.
type Doubt struct {
	Scenario string
	Subjects []string
	Last     string // what was wrong in the last of these rounds
}

// A RivalRatio is the ratio of ours to one rival in one metric.
type RivalRatio struct {
	Scenario string
	Rival    string
	Metric   Metric
	Ratio    Ratio
}

// defaultMaxRounds bounds the number of rounds while the control is not yet stable.
const defaultMaxRounds = 31

// PartialDirectory is the subdirectory for the results of scenarios that did not
// finish.
const PartialDirectory = "partial"

// Run measures the scenarios one after the other and stores the results of each as soon as it has
// them. It ends with the first scenario that does not finish, whose rounds are stored in
// [PartialDirectory] and reported, marked as partial.
func (s Suite) Run(ctx context.Context, opts Options) (*Report, error) {
	chosen, err := s.choose(opts.Filter)
	if err != nil {
		return nil, err
	}
	if opts.Seed == 0 {
		opts.Seed = uint64(time.Now().UnixNano())
	}
	opts.MaxRounds = cmp.Or(opts.MaxRounds, defaultMaxRounds)
	fmt.Fprintf(opts.Progress, "%s: %d scenarios, seed %d, results in %s\n", s.Name, len(chosen), opts.Seed, opts.Directory)
	order := make([]string, len(s.Scenarios))
	for i, sc := range s.Scenarios {
		order[i] = sc.Name
	}
	env := Describe(opts.Command)
	report := &Report{}
	for i, sc := range chosen {
		m := &measurement{
			suite: s.Name, scenario: sc, opts: opts, env: env,
			position: fmt.Sprintf("%d/%d", i+1, len(chosen)),
			rounds:   map[string][]Sample{},
			rng:      rand.New(rand.NewPCG(opts.Seed, uint64(i))),
		}
		err := m.run(ctx)
		if sc.Close != nil {
			if closeErr := sc.Close(); err == nil {
				err = closeErr
			}
		}
		if err != nil {
			err = fmt.Errorf("load: %s %s: %w", s.Name, sc.Name, err)
			m.ended = strings.Join(strings.Fields(err.Error()), " ") // one line
			opts.Directory = filepath.Join(opts.Directory, PartialDirectory)
		}
		if storeErr := m.report(report, opts.Directory, order); storeErr != nil {
			return report, errors.Join(err, storeErr)
		}
		if err != nil {
			return report, err
		}
	}
	return report, nil
}

// report adds the results to r and stores them. If nothing was measured, it does neither.
func (m *measurement) report(r *Report, directory string, order []string) error {
	rows, lines := m.rows(), m.raw()
	if m.ended != "" && len(rows) == 0 {
		return nil
	}
	r.Rows = append(r.Rows, rows...)
	r.Verdicts = append(r.Verdicts, m.verdicts()...)
	r.Ratios = append(r.Ratios, m.ratios()...)
	r.Doubts = append(r.Doubts, m.doubts()...)
	if m.ended != "" {
		fmt.Fprintf(m.opts.Progress, "%s %s: what was measured until then is in %s, marked as partial\n", m.suite, m.scenario.Name, directory)
	}
	return errors.Join(
		storeRows(filepath.Join(directory, m.suite+".json"), order, m.scenario.Name, rows),
		storeRaw(filepath.Join(directory, "raw", m.suite+".jsonl"), order, m.scenario.Name, lines))
}

func (s Suite) choose(filter string) ([]Scenario, error) {
	if filter == "" {
		return s.Scenarios, nil
	}
	wanted := map[string]bool{}
	for term := range strings.SplitSeq(filter, ",") {
		term = strings.TrimSpace(term)
		exact := slices.ContainsFunc(s.Scenarios, func(sc Scenario) bool { return sc.Name == term })
		for _, sc := range s.Scenarios {
			if sc.Name == term || !exact && strings.HasPrefix(sc.Name, term) ||
				strings.HasPrefix(term, "/") && strings.HasSuffix(sc.Name, term) {
				wanted[sc.Name] = true
			}
		}
	}
	var chosen []Scenario
	for _, sc := range s.Scenarios {
		if wanted[sc.Name] {
			chosen = append(chosen, sc)
		}
	}
	if len(chosen) == 0 {
		var names []string
		for _, sc := range s.Scenarios {
			names = append(names, sc.Name)
		}
		return nil, fmt.Errorf("load: no scenario of %s is named or begins with %q, want one of %s", s.Name, filter, strings.Join(names, ", "))
	}
	return chosen, nil
}

// A measurement is one scenario in progress.
type measurement struct {
	suite    string
	scenario Scenario
	opts     Options
	env      Environment
	position string
	rng      *rand.Rand

	rounds map[string][]Sample // by subject, in the order of the rounds; only complete ones
	// ended says why the scenario did not finish, and is empty if it did. If it did not, broken is
	// the unfinished round of the subject brokenOf.
	ended    string
	broken   *Sample
	brokenOf string
}

func (m *measurement) has(subject string) bool {
	return slices.ContainsFunc(m.scenario.Subjects, func(s Subject) bool { return s.Name == subject })
}

// limits returns the fewest and the most rounds to run.
func (m *measurement) limits() (least, most int) {
	switch {
	case m.scenario.Rounds > 0:
		return m.scenario.Rounds, m.scenario.Rounds
	case m.opts.Rounds > 0:
		return m.opts.Rounds, m.opts.Rounds
	case !m.has(Ours) || !m.has(Control):
		return minRounds, minRounds
	}
	return minRounds, max(minRounds, m.opts.MaxRounds)
}

// run repeats rounds, with each subject once in random order, until the control is stable or the
// rounds are used up.
func (m *measurement) run(ctx context.Context) error {
	least, most := m.limits()
	started := time.Now()
	for round := 1; round <= most; round++ {
		for _, i := range m.rng.Perm(len(m.scenario.Subjects)) {
			subject := m.scenario.Subjects[i]
			sample, err := subject.Run(ctx, round)
			if err == nil && sample.Partial != "" {
				err = errors.New(sample.Partial)
			}
			if err != nil {
				if sample.Values != nil {
					sample.Partial = cmp.Or(sample.Partial, err.Error())
					m.broken, m.brokenOf = &sample, subject.Name
				}
				return fmt.Errorf("%s, round %d: %w", subject.Name, round, err)
			}
			m.rounds[subject.Name] = append(m.rounds[subject.Name], sample)
			if sample.Errors > 0 {
				fmt.Fprintf(m.opts.Progress, "  %s: %d requests failed, for example: %s\n", subject.Name, sample.Errors, sample.ErrorSample)
			}
		}
		m.progress(round, least, most, time.Since(started))
		if round >= least && m.settled() {
			break
		}
	}
	return nil
}

func (m *measurement) progress(round, least, most int, elapsed time.Duration) {
	each := elapsed / time.Duration(round)
	remaining := fmt.Sprintf("%v", (each * time.Duration(max(least-round, 0))).Round(time.Second))
	if most > least {
		remaining += fmt.Sprintf(" to %v", (each * time.Duration(most-round)).Round(time.Second))
	}
	control := ""
	if m.has(Ours) && m.has(Control) {
		r, _ := Settled(column(m.rounds[Ours], m.scenario.Primary), column(m.rounds[Control], m.scenario.Primary))
		control = fmt.Sprintf(", control %.3f-%.3f", r.Lo, r.Hi)
	}
	fmt.Fprintf(m.opts.Progress, "%s %s %s: round %d of %d to %d, elapsed %v, remaining %s%s\n",
		m.suite, m.position, m.scenario.Name, round, least, most, elapsed.Round(time.Second), remaining, control)
}

// settled reports whether the control is stable in every metric that has a goal.
func (m *measurement) settled() bool {
	metrics := []Metric{m.scenario.Primary}
	for _, g := range m.scenario.Goals {
		metrics = append(metrics, g.Metric)
	}
	for _, s := range m.scenario.Subjects {
		for _, g := range s.Goals {
			metrics = append(metrics, g.Metric)
		}
	}
	for _, metric := range metrics {
		if _, ok := Settled(column(m.rounds[Ours], metric), column(m.rounds[Control], metric)); !ok {
			return false
		}
	}
	return true
}

// bestRival returns the rival with the best median of metric, if there is one.
func (m *measurement) bestRival(metric Metric) (string, bool) {
	best, bestMedian := "", math.NaN()
	for _, s := range m.scenario.Subjects {
		if !s.rival() {
			continue
		}
		median := Median(present(column(m.rounds[s.Name], metric)))
		if math.IsNaN(median) {
			continue
		}
		if best == "" || (median > bestMedian) == metric.MoreIsBetter() {
			best, bestMedian = s.Name, median
		}
	}
	return best, best != ""
}

// rows returns the medians over the complete rounds. In a scenario that did not finish, rows are
// marked and have no ratios, and a subject without a complete round has the figures of the
// unfinished round, or no row.
func (m *measurement) rows() []Row {
	primary := m.scenario.Primary
	best, found := m.bestRival(primary)
	var rows []Row
	for _, s := range m.scenario.Subjects {
		if m.ended != "" {
			rounds := m.rounds[s.Name]
			if len(rounds) == 0 {
				if m.broken == nil || m.brokenOf != s.Name {
					continue
				}
				rounds = []Sample{*m.broken}
			}
			row := newRow(m.suite, m.scenario.Name, s.Name, rounds, primary)
			row.Rounds, row.Partial = len(m.rounds[s.Name]), m.ended
			rows = append(rows, row)
			continue
		}
		row := newRow(m.suite, m.scenario.Name, s.Name, m.rounds[s.Name], primary)
		if found && (s.Name == Ours || s.Variant) {
			if r, err := PairedRatio(column(m.rounds[s.Name], primary), column(m.rounds[best], primary)); err == nil {
				row.RatioLo, row.RatioHi = number(r.Lo), number(r.Hi)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// verdicts returns the verdicts on all goals. A scenario that did not finish has none.
func (m *measurement) verdicts() []Verdict {
	out := m.judge(Ours, m.scenario.Goals)
	for _, s := range m.scenario.Subjects {
		out = append(out, m.judge(s.Name, s.Goals)...)
	}
	return out
}

// judge returns the verdicts on the goals of one subject. The control is that of ours.
func (m *measurement) judge(subject string, goals []Goal) []Verdict {
	var out []Verdict
	for _, goal := range goals {
		if goal.Rival == "" {
			goal.Rival, _ = m.bestRival(goal.Metric)
		}
		twice := func(v Verdict) bool { return v.Goal == goal } // the best rival may also have a goal that names it
		if !m.has(subject) || !m.has(goal.Rival) || slices.ContainsFunc(out, twice) {
			continue
		}
		var v Verdict
		if m.ended != "" {
			v = unjudged(goal, "partial: "+m.ended)
		} else {
			values := func(of string) []float64 { return column(m.rounds[of], goal.Metric) }
			v = judge(goal, values(subject), values(goal.Rival), values(Ours), values(Control))
		}
		v.Scenario, v.Subject = m.scenario.Name, subject
		out = append(out, v)
	}
	return out
}

// ratios compares ours with every other subject in the primary metric. A
// scenario that did not finish has none.
func (m *measurement) ratios() []RivalRatio {
	if m.ended != "" {
		return nil
	}
	var out []RivalRatio
	for _, s := range m.scenario.Subjects {
		if s.Name == Ours || !m.has(Ours) {
			continue
		}
		r, err := PairedRatio(column(m.rounds[Ours], m.scenario.Primary), column(m.rounds[s.Name], m.scenario.Primary))
		if err == nil {
			out = append(out, RivalRatio{Scenario: m.scenario.Name, Rival: s.Name, Metric: m.scenario.Primary, Ratio: r})
		}
	}
	return out
}

func (m *measurement) doubts() []Doubt {
	d := Doubt{Scenario: m.scenario.Name}
	for _, s := range m.scenario.Subjects {
		rounds := 0
		for _, sample := range m.rounds[s.Name] {
			if len(sample.Doubts) > 0 {
				rounds++
				d.Last = strings.Join(sample.Doubts, "; ")
			}
		}
		if rounds > 0 {
			d.Subjects = append(d.Subjects, fmt.Sprintf("%s (%d of %d rounds)", s.Name, rounds, len(m.rounds[s.Name])))
		}
	}
	if d.Subjects == nil {
		return nil
	}
	return []Doubt{d}
}

func (m *measurement) raw() []rawLine {
	var lines []rawLine
	for _, s := range m.scenario.Subjects {
		rounds := slices.Clone(m.rounds[s.Name])
		if m.broken != nil && m.brokenOf == s.Name {
			rounds = append(rounds, *m.broken)
		}
		for i, sample := range rounds {
			values := map[Metric]*float64{}
			for metric, v := range sample.Values {
				values[metric] = number(v)
			}
			lines = append(lines, rawLine{
				Suite: m.suite, Scenario: m.scenario.Name, Subject: s.Name, Round: i + 1, Values: values,
				Errors: sample.Errors, Error: sample.ErrorSample, Doubts: sample.Doubts, Partial: sample.Partial,
				Details: sample.Details, Seed: m.opts.Seed, Environment: m.env,
			})
		}
	}
	for _, v := range m.verdicts() {
		lines = append(lines, rawLine{Suite: m.suite, Scenario: m.scenario.Name, Verdict: v.String(), Seed: m.opts.Seed, Environment: m.env})
	}
	return lines
}
