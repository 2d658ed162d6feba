package load

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// WriteText prints a report for people: the rows, ours against each rival, and the verdicts.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-22s %-20s %6s %10s %9s %9s %9s %9s %9s %7s %8s %7s %6s\n",
		"scenario", "subject", "rounds", "rps", "client us", "server us", "p50 us", "p99 us", "p999 us", "allocs", "per read", "spread", "errors")
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "%-22s %-20s %6d %10s %9s %9s %9s %9s %9s %7s %8s %7s %6d%s\n",
			row.Scenario, row.Subject, row.Rounds, figure(row.RPS), figure(row.ClientUS), figure(row.ServerUS),
			figure(row.P50US), figure(row.P99US), figure(row.P999US), figure(row.Allocs), figure(row.PerRead), figure(row.Spread), row.Errors, mark(row))
	}
	for i, row := range r.Rows {
		if row.Partial != "" && (i == 0 || r.Rows[i-1].Scenario != row.Scenario) {
			fmt.Fprintf(&b, "%s: partial: %s\n", row.Scenario, row.Partial)
		}
	}
	for _, ratio := range r.Ratios {
		fmt.Fprintf(&b, "%s: %s of ours is %.3f of %s, interval %.3f-%.3f (%.1f %% of %d rounds)\n", ratio.Scenario, ratio.Metric,
			ratio.Ratio.Median, ratio.Rival, ratio.Ratio.Lo, ratio.Ratio.Hi, 100*ratio.Ratio.Confidence, ratio.Ratio.Pairs)
	}
	for _, d := range r.Doubts {
		fmt.Fprintf(&b, "%s: questionable latency: %s; for example: %s\n", d.Scenario, strings.Join(d.Subjects, ", "), d.Last)
	}
	for _, v := range r.Verdicts {
		fmt.Fprintln(&b, v)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteMarkdown prints rows as one table per scenario, without the columns that are empty in all of
// its rows.
func WriteMarkdown(w io.Writer, rows []Row) error {
	type column struct {
		name  string
		value func(Row) *float64
	}
	columns := []column{
		{"requests/s", func(r Row) *float64 { return r.RPS }},
		{"client us", func(r Row) *float64 { return r.ClientUS }},
		{"server us", func(r Row) *float64 { return r.ServerUS }},
		{"p50 us", func(r Row) *float64 { return r.P50US }},
		{"p99 us", func(r Row) *float64 { return r.P99US }},
		{"p99.9 us", func(r Row) *float64 { return r.P999US }},
		{"ns/op", func(r Row) *float64 { return r.NsOp }},
		{"B/op", func(r Row) *float64 { return r.BytesOp }},
		{"allocs/op", func(r Row) *float64 { return r.Allocs }},
		{"commands/read", func(r Row) *float64 { return r.PerRead }},
		{"spread", func(r Row) *float64 { return r.Spread }},
		{"ratio from", func(r Row) *float64 { return r.RatioLo }},
		{"to", func(r Row) *float64 { return r.RatioHi }},
	}
	var b strings.Builder
	for start := 0; start < len(rows); {
		end := start
		for end < len(rows) && rows[end].Scenario == rows[start].Scenario {
			end++
		}
		group := rows[start:end]
		start = end
		used := slices.DeleteFunc(slices.Clone(columns), func(c column) bool {
			return !slices.ContainsFunc(group, func(r Row) bool { return c.value(r) != nil })
		})
		fmt.Fprintf(&b, "**%s**\n\n| subject |", group[0].Scenario)
		for _, c := range used {
			fmt.Fprintf(&b, " %s |", c.name)
		}
		b.WriteString(" errors | rounds |\n|---|" + strings.Repeat("---:|", len(used)+2) + "\n")
		for _, row := range group {
			fmt.Fprintf(&b, "| %s%s |", row.Subject, mark(row))
			for _, c := range used {
				fmt.Fprintf(&b, " %s |", figure(c.value(row)))
			}
			fmt.Fprintf(&b, " %d | %d |\n", row.Errors, row.Rounds)
		}
		b.WriteByte('\n')
		if why := group[0].Partial; why != "" {
			fmt.Fprintf(&b, "Partial: %s\n\n", why)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// mark returns the mark for a row that must not be compared with others, or an empty string.
func mark(r Row) string {
	if r.Partial == "" {
		return ""
	}
	return " (partial)"
}

// figure prints three significant digits, whole numbers above 1000, and a dash
// for inapplicable values.
func figure(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case *v >= 1000 || *v <= -1000:
		return strconv.FormatFloat(*v, 'f', 0, 64)
	}
	return strconv.FormatFloat(*v, 'g', 3, 64)
}
