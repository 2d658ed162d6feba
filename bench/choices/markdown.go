package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/slipstream-go/slipstream/internal/load"
)

// writeMarkdown prints a table for each question, with variants as rows and loads as columns.
func writeMarkdown(w io.Writer, qs []question, rows []row) error {
	var out strings.Builder
	for _, q := range qs {
		t := tableOf(q, rows)
		if len(t.rounds) == 0 {
			continue
		}
		t.write(&out)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// A place is a cell of a table.
type place struct{ variant, load string }

// A table holds the rows of one question.
type table struct {
	question question
	rounds   map[place]map[int]row
	commit   string
	command  string
	doubts   int
	errors   uint64
}

func tableOf(q question, rows []row) table {
	t := table{question: q, rounds: map[place]map[int]row{}}
	for _, r := range rows {
		if r.Question != q.name {
			continue
		}
		p := place{r.Variant, r.Load}
		if t.rounds[p] == nil {
			t.rounds[p] = map[int]row{}
		}
		t.rounds[p][r.Round] = r
		t.commit, t.command = r.Commit, r.Command
		t.errors += r.Errors
		if len(r.Doubts) > 0 {
			t.doubts++
		}
	}
	return t
}

// column returns a metric of a cell over its rounds.
func (t table) column(p place, m load.Metric) []float64 {
	var values []float64
	for _, r := range t.rounds[p] {
		if v, ok := r.Values[m]; ok {
			values = append(values, v)
		}
	}
	return values
}

// ratio compares a variant with the base in one metric, round by round. It
// reports false if no round has both figures.
func (t table) ratio(p place, m load.Metric) (load.Ratio, bool) {
	var x, y []float64
	base := t.rounds[place{t.question.base, p.load}]
	for round, r := range t.rounds[p] {
		a, b := r.Values[m], base[round].Values[m]
		if a > 0 && b > 0 {
			x, y = append(x, a), append(y, b)
		}
	}
	if len(x) == 0 {
		return load.Ratio{}, false
	}
	r, err := load.PairedRatio(x, y)
	return r, err == nil
}

// legend explains the cells.
func (q question) legend() string {
	const interval = " with its interval (below six rounds: lowest to highest) · "
	switch {
	case q.cpuOnly:
		return fmt.Sprintf("Row %s: ns. Other rows: ratio to it%sns.", q.base, interval)
	case q.micro != nil:
		return fmt.Sprintf("Row %s: ns · CPU ns of the process. Other rows: ratio of ns to it%sratio of CPU · ns.", q.base, interval)
	}
	return fmt.Sprintf("Row %s: client µs · server µs · p50 µs. Other rows: ratio of client CPU to it%sratio of server CPU · p50 µs.", q.base, interval)
}

func (t table) write(out *strings.Builder) {
	q := t.question
	fmt.Fprintf(out, "### %s\n\n%s\n\n", q.name, q.asks)
	fmt.Fprintf(out, "%s\n\n", q.legend())
	out.WriteString("| variant |")
	for _, l := range q.loads {
		fmt.Fprintf(out, " %s |", l.name)
	}
	out.WriteString("\n|---|" + strings.Repeat("---|", len(q.loads)) + "\n")
	for _, v := range q.variants {
		fmt.Fprintf(out, "| %s |", v.name)
		for _, l := range q.loads {
			fmt.Fprintf(out, " %s |", t.cell(place{v.name, l.name}))
		}
		out.WriteString("\n")
	}
	fmt.Fprintf(out, "\nMedians of %d rounds; %d of %d runs questionable, %d wrong replies; commit %.12s, `%s`.\n\n", t.most(), t.doubts, t.runs(), t.errors, t.commit, t.command)
}

// most is the maximum number of rounds of a cell.
func (t table) most() int {
	n := 0
	for _, rounds := range t.rounds {
		n = max(n, len(rounds))
	}
	return n
}

func (t table) runs() int {
	n := 0
	for _, rounds := range t.rounds {
		n += len(rounds)
	}
	return n
}

const nothing = "–"

func (t table) cell(p place) string {
	if len(t.rounds[p]) == 0 {
		return nothing
	}
	absolute := func(m load.Metric, scale float64) string { return figure(load.Median(t.column(p, m)) * scale) }
	ratio := func(m load.Metric, interval bool) string {
		r, ok := t.ratio(p, m)
		switch {
		case !ok:
			return nothing
		case interval && r.Pairs > 1:
			return fmt.Sprintf("%.2f (%.2f–%.2f)", r.Median, r.Lo, r.Hi)
		}
		return fmt.Sprintf("%.2f", r.Median)
	}
	base := p.variant == t.question.base
	var words []string
	switch {
	case t.question.cpuOnly && base:
		words = []string{absolute(load.NsOp, 1)}
	case t.question.cpuOnly:
		words = []string{ratio(load.NsOp, true), absolute(load.NsOp, 1)}
	case t.question.micro != nil && base:
		// The CPU time of an op is stored in microseconds.
		words = []string{absolute(load.NsOp, 1), absolute(load.ClientUS, 1000)}
	case t.question.micro != nil:
		words = []string{ratio(load.NsOp, true), ratio(load.ClientUS, false), absolute(load.NsOp, 1)}
	case base:
		words = []string{absolute(load.ClientUS, 1), absolute(load.ServerUS, 1), absolute(load.P50US, 1)}
	default:
		words = []string{ratio(load.ClientUS, true), ratio(load.ServerUS, false), absolute(load.P50US, 1)}
	}
	return strings.Join(words, " · ")
}

// figure formats a number with three digits.
func figure(v float64) string {
	switch {
	case v != v:
		return nothing
	case v >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
