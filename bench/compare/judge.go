package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// calls is the number of system calls that read or write, per request: see [loadproc.Spec].
const calls load.Metric = "calls"

// sampleOf converts an outcome to the figures of a round. Allocations and calls are those of the
// process whose CPU time is compared.
func sampleOf(outcome loadproc.Outcome, k *kind) load.Sample {
	sample, r := outcome.Sample(), outcome.Result
	name := loadproc.ServerCalls
	if k.cpu == load.ClientUS {
		name = loadproc.ClientCalls
		sample.Values[load.Allocs] = r.PerRequest(float64(r.Cost.Mallocs))
		sample.Values[load.BytesOp] = r.PerRequest(float64(r.Cost.Bytes))
	}
	sample.Values[calls] = r.PerRequest(r.Cost.Counters[name])
	return sample
}

// A finding is one figure of a scenario on both sides.
type finding struct {
	scenario string
	metric   load.Metric
	ours     float64 // medians
	other    float64
	// ratio says how much worse ours is: above 1, the working tree needs more of the metric, or
	// completes fewer requests a second. control is the ratio of ours to itself.
	ratio   load.Ratio
	control load.Ratio
	rounds  int
	partial bool // the scenario did not finish and gets no verdict
	worse   bool
}

const (
	// leastRounds is the minimum number of rounds for a 95 % interval.
	leastRounds = 6
	// worseRatio is the maximum median ratio of times.
	worseRatio = 1.10
	// worseCount and worseShare are the minimum absolute and relative increase of a count that is
	// reported.
	worseCount = 0.01
	worseShare = 1.01
)

// findings returns the findings of a scenario, in the order of the table. A scenario that did not
// finish has medians but no ratios, because its sides may have different numbers of rounds.
func findings(s scenario, samples map[string][]load.Sample, ref string, partial bool) []finding {
	var all []finding
	for _, metric := range []load.Metric{load.RPS, s.kind.cpu, load.Allocs, load.BytesOp, calls} {
		ours, control, other := column(samples[load.Ours], metric), column(samples[load.Control], metric), column(samples[ref], metric)
		f := finding{scenario: s.name(), metric: metric, ours: load.Median(ours), other: load.Median(other), rounds: len(ours), partial: partial}
		if partial {
			all = append(all, f)
			continue
		}
		if metric == load.RPS { // higher is better
			f.ratio, f.control = ratio(other, ours), ratio(control, ours)
		} else {
			f.ratio, f.control = ratio(ours, other), ratio(ours, control)
		}
		switch {
		case len(ours) < leastRounds:
		case metric == load.RPS || metric == s.kind.cpu:
			f.worse = f.ratio.Median > worseRatio && f.ratio.Lo > 1
		default:
			f.worse = more(slices.Concat(ours, control), other)
		}
		all = append(all, f)
	}
	return all
}

func column(rounds []load.Sample, metric load.Metric) []float64 {
	var values []float64
	for _, s := range rounds {
		values = append(values, s.Values[metric])
	}
	return values
}

// ratio returns the zero Ratio if there is none, as for counts that are 0.
func ratio(x, y []float64) load.Ratio {
	r, err := load.PairedRatio(x, y)
	if err != nil {
		return load.Ratio{}
	}
	return r
}

// more reports whether every round of ours counted more than every round of the other, by more than
// an additional garbage collection or timer would explain. Counts hardly differ from round to
// round, so a threshold of 1.10 would hide additions.
func more(ours, other []float64) bool {
	least, most := slices.Min(ours), slices.Max(other)
	return least > most+worseCount && least > most*worseShare
}

// suspects returns the scenarios in which something is worse.
func suspects(chosen []scenario, all []finding) []scenario {
	var some []scenario
	for _, s := range chosen {
		if slices.ContainsFunc(all, func(f finding) bool { return f.worse && f.scenario == s.name() }) {
			some = append(some, s)
		}
	}
	return some
}

// errWorse reports that the working tree is worse than the other commit.
var errWorse = errors.New("worse in two runs")

// confirmed returns an error that names what is worse in both runs.
func confirmed(first, second []finding) error {
	var worse []string
	for _, f := range second {
		if f.worse && slices.ContainsFunc(first, func(g finding) bool { return g.worse && g.scenario == f.scenario && g.metric == f.metric }) {
			worse = append(worse, fmt.Sprintf("%s of %s", title(f.metric), f.scenario))
		}
	}
	if worse == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", errWorse, strings.Join(worse, ", "))
}

// title returns the name of a metric in the table.
func title(m load.Metric) string {
	return map[load.Metric]string{
		load.RPS: "requests/s", load.ServerUS: "server CPU us/op", load.ClientUS: "client CPU us/op",
		load.Allocs: "allocations/op", load.BytesOp: "bytes/op", calls: "read+write calls/op",
	}[m]
}

// writeFindings prints a table.
func writeFindings(w io.Writer, all []finding, ref string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-20s %-20s %12s %12.12s %7s %-13s %-13s\n", "scenario", "figure", "this tree", ref, "ratio", "interval", "control")
	for _, f := range all {
		verdict := ""
		switch {
		case f.partial:
			verdict = " partial"
		case f.worse:
			verdict = " WORSE"
		case f.rounds < leastRounds:
			verdict = " too few rounds"
		}
		line := fmt.Sprintf("%-20s %-20s %12s %12s %7s %-13s %-13s%s", f.scenario, title(f.metric), figure(f.ours), figure(f.other),
			median(f.ratio), interval(f.ratio), interval(f.control), verdict)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteString("A ratio above 1 is worse: this tree needs more, or completes fewer requests a second. The control is this tree compared with itself.\n" +
		"Allocations, bytes and calls are those of the process whose CPU time is shown. Calls are the kernel's counts of reads and\n" +
		"writes (/proc/PID/io), including sockets, but not epoll_wait, futex and others.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func median(r load.Ratio) string {
	if r.Pairs == 0 {
		return "-"
	}
	return strconv.FormatFloat(r.Median, 'f', 3, 64)
}

func interval(r load.Ratio) string {
	if r.Pairs == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f-%.3f", r.Lo, r.Hi)
}

func figure(v float64) string {
	if v >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}
