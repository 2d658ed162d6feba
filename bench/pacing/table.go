package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// workspace returns the module and a directory that the caller removes.
func workspace(ctx context.Context) (module, scratch string, err error) {
	if module, err = proc.BenchModule(ctx); err != nil {
		return "", "", err
	}
	scratch, err = os.MkdirTemp("", "slipstream-pacing-")
	return module, scratch, err
}

// Names of the counters of context switches.
const (
	slept     = "switches_voluntary"
	preempted = "switches_involuntary"
)

// measured holds the results of each load, in the order of the rounds.
type measured map[string][]*load.Result

// columns are the metrics of a round. One that does not apply is negative.
var columns = []struct {
	name string
	of   func(*load.Result) float64
}{
	{"requests/s", (*load.Result).Rate},
	{"CPU us", func(r *load.Result) float64 { return r.PerRequest(micros(r.Cost.Client)) }},
	{"switches", func(r *load.Result) float64 {
		if r.Cost.Counters == nil {
			return -1
		}
		return r.PerRequest(r.Cost.Counters[slept] + r.Cost.Counters[preempted])
	}},
	{"pacing p50", func(r *load.Result) float64 { return quantile(r.Pacing, 0.50) }},
	{"pacing p99", func(r *load.Result) float64 { return quantile(r.Pacing, 0.99) }},
	{"release p50", func(r *load.Result) float64 { return quantile(r.Release, 0.50) }},
	{"release p99", func(r *load.Result) float64 { return quantile(r.Release, 0.99) }},
	{"latency p50", func(r *load.Result) float64 { return quantile(r.Latency(), 0.50) }},
	{"latency p99", func(r *load.Result) float64 { return quantile(r.Latency(), 0.99) }},
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func quantile(h *load.Histogram, q float64) float64 {
	if h == nil || h.Count() == 0 {
		return -1
	}
	return micros(h.Quantile(q))
}

// write prints the medians over the rounds.
func (m measured) write(w io.Writer, loads []namedLoad) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-18s", "load")
	for _, c := range columns {
		fmt.Fprintf(&b, " %11s", c.name)
	}
	fmt.Fprintf(&b, " %7s\n", "errors")
	for _, l := range loads {
		fmt.Fprintf(&b, "%-18s", l.name)
		for _, c := range columns {
			var values []float64
			for _, r := range m[l.name] {
				values = append(values, c.of(r))
			}
			fmt.Fprintf(&b, " %11s", figure(load.Median(values)))
		}
		var errors uint64
		for _, r := range m[l.name] {
			errors += r.Errors + r.Unsent + r.WarmUpErrors
		}
		fmt.Fprintf(&b, " %7d\n", errors)
	}
	b.WriteString("CPU time (us) and context switches of the generator per request; pacing and latency in us; medians over the rounds.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func figure(v float64) string {
	switch {
	case v < 0 || math.IsNaN(v): // does not apply, or was not measured
		return "-"
	case v >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
