package bench

import (
	"fmt"
	"io"
	"runtime"
	"strings"
)

// WriteBenchfmt writes the report in the format of Go benchmarks, which benchstat
// reads.
func (r *Report) WriteBenchfmt(w io.Writer) error {
	return writeBenchfmt(w, r, []RoundReport{{sideA, r}})
}

// WriteBenchfmt writes every run, with the subject in its name:
// benchstat -col /subject compares them.
func (c *Comparison) WriteBenchfmt(w io.Writer) error {
	if len(c.Rounds) == 0 {
		return nil
	}
	return writeBenchfmt(w, c.Rounds[0].Report, c.Rounds)
}

func writeBenchfmt(w io.Writer, about *Report, rounds []RoundReport) error {
	var b strings.Builder
	fmt.Fprintf(&b, "goos: %s\ngoarch: %s\ncpu: %s\nUnit req/s better=higher\n", runtime.GOOS, runtime.GOARCH, about.On.CPU)
	for _, round := range rounds {
		r := round.Report
		if r.Completed == 0 {
			continue
		}
		fmt.Fprintf(&b, "BenchmarkRequests/loop=%s/callers=%d/subject=%s-%d %d", r.Loop, r.Plan.Callers, strings.ReplaceAll(round.Subject, " ", "_"), about.On.Cores, r.Completed)
		fmt.Fprintf(&b, " %.1f req/s %d p50-ns %d p99-ns %.0f generator-cpu-ns/op", r.Rate, r.Latency.Quantile(0.50).Nanoseconds(), r.Latency.Quantile(0.99).Nanoseconds(), r.Costs[0].PerRequest)
		server := 0.0
		for _, cost := range r.Costs[1:] {
			server += cost.PerRequest
		}
		if len(r.Costs) > 1 {
			fmt.Fprintf(&b, " %.0f server-cpu-ns/op", server)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}
