package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// WriteText writes a report that fits on one screen: what was done, how long it took, what it cost,
// and whether the figures can be trusted.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", r.Target, r.summary())
	r.WarmUp.write(&b)
	b.WriteByte('\n')
	fmt.Fprintf(&b, "requests  %s completed, %s failed", grouped(r.Completed), grouped(r.Failed))
	if r.Unsent > 0 {
		fmt.Fprintf(&b, ", %s due and never sent", grouped(r.Unsent))
	}
	if r.Cut > 0 {
		fmt.Fprintf(&b, ", %s cut off", grouped(r.Cut))
	}
	fmt.Fprintf(&b, "    %s a second", rate(r.Rate))
	if r.Plan.Rate > 0 {
		fmt.Fprintf(&b, " of %s planned", rate(r.Plan.Rate))
	}
	b.WriteString("\n\n")
	r.writeLatencies(&b)
	r.writePhases(&b)
	r.writeCosts(&b)
	r.writeReplay(&b)
	r.writeResponses(&b)
	r.writeReplies(&b)
	r.writeFailures(&b)
	if r.Raw != nil {
		fmt.Fprintf(&b, "%-8s %s in %s\n", "rows", grouped(r.Raw.Rows), r.Raw.File)
	}
	r.writeProfiles(&b)
	r.writeVerdict(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// summary describes how the requests were made.
func (r *Report) summary() string {
	var b strings.Builder
	switch {
	case r.Loop == string(load.Replay):
		b.WriteString("open loop, at the times of the file, ")
	case r.open():
		fmt.Fprintf(&b, "open loop, %s arrivals, ", r.Loop)
	default:
		b.WriteString("closed loop, ")
	}
	b.WriteString(counted(uint64(r.Plan.Callers), "caller"))
	if r.Plan.Batch > 1 {
		fmt.Fprintf(&b, " with %d requests at once", r.Plan.Batch)
	}
	fmt.Fprintf(&b, ", %s", seconds(r.Seconds))
	return b.String()
}

func (r *Report) writeLatencies(b *strings.Builder) {
	fmt.Fprintf(b, "%-8s %10s %10s %10s %10s %10s\n", "", "p50", "p90", "p99", "p99.9", "max")
	row := func(name string, h *load.Histogram, what string) {
		if h.Count() == 0 {
			fmt.Fprintf(b, "%-8s %10s %10s %10s %10s %10s   %s\n", name, "-", "-", "-", "-", "-", what)
			return
		}
		fmt.Fprintf(b, "%-8s %10s %10s %10s %10s %10s   %s\n", name, took(h.Quantile(0.50)), took(h.Quantile(0.90)), took(h.Quantile(0.99)),
			took(h.Quantile(0.999)), took(h.Max()), what)
	}
	if !r.open() {
		row("latency", r.Service, "from sending; a closed loop sends nothing while it waits")
	} else {
		row("latency", r.Latency, "from the intended time")
		row("service", r.Service, "from sending")
		row("pacing", r.Pacing, "the generator's own delay, which is part of the latency")
	}
	b.WriteByte('\n')
}

func (r *Report) writeCosts(b *strings.Builder) {
	for i, c := range r.Costs {
		name := ""
		if i == 0 {
			name = "CPU"
		}
		each := "-"
		if r.Completed > 0 {
			each = took(time.Duration(c.PerRequest))
		}
		fmt.Fprintf(b, "%-8s %10s per request, %s in total: %s", name, each, seconds(c.CPUSeconds), c.Of)
		if c.WaitSeconds > 0 {
			fmt.Fprintf(b, ", which also waited %s for a processor", seconds(c.WaitSeconds))
		}
		b.WriteByte('\n')
	}
}

func (r *Report) writeResponses(b *strings.Builder) {
	h := r.HTTP
	if h == nil || len(h.Statuses) == 0 {
		return
	}
	responses := uint64(0)
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(h.Statuses)) {
		responses += h.Statuses[status]
		parts = append(parts, fmt.Sprintf("%s with status %d", grouped(h.Statuses[status]), status))
	}
	fmt.Fprintf(b, "%-8s %10s of body on average: %s", "received", size(float64(h.Bytes)/float64(responses)), strings.Join(parts, ", "))
	if h.Opened > 0 {
		fmt.Fprintf(b, "; %s opened in the window", counted(h.Opened, "connection"))
	}
	if h.Duplicates > 0 {
		fmt.Fprintf(b, "; %s that belong to no request", counted(h.Duplicates, "response"))
	}
	b.WriteByte('\n')
}

func (r *Report) writeFailures(b *strings.Builder) {
	if r.Failed == 0 {
		return
	}
	kinds := r.failureKinds()
	for i, kind := range kinds {
		kinds[i] = grouped(r.Failures[kind]) + " " + kind
	}
	fmt.Fprintf(b, "%-8s %s\n%-8s the first: %s\n", "failed", strings.Join(kinds, ", "), "", r.FirstFailed)
}

// writeVerdict writes whether the figures can be trusted.
func (r *Report) writeVerdict(b *strings.Builder) {
	if r.Partial == "" && len(r.Limits) == 0 && len(r.Doubts) == 0 {
		return
	}
	b.WriteByte('\n')
	if r.Partial != "" {
		fmt.Fprintf(b, "PARTIAL: %s\n", r.Partial)
	}
	for _, d := range r.Doubts {
		fmt.Fprintf(b, "questionable: %s\n", d)
	}
	if len(r.Limits) > 0 {
		fmt.Fprintf(b, "THE GENERATOR WAS THE LIMIT: these are its own figures, not those of the server\n  %s\n", strings.Join(r.Limits, "\n  "))
	}
}

// took formats a duration with three digits.
func took(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return three(float64(d)/1e3) + " us"
	case d < time.Second:
		return three(float64(d)/1e6) + " ms"
	}
	return three(float64(d)/1e9) + " s"
}

// seconds formats a number of seconds.
func seconds(s float64) string { return strconv.FormatFloat(s, 'f', 2, 64) + " s" }

// size formats a number of bytes.
func size(n float64) string {
	for _, unit := range []string{"B", "KiB", "MiB"} {
		if n < 1024 {
			return three(n) + " " + unit
		}
		n /= 1024
	}
	return three(n) + " GiB"
}

// three formats a number with three significant digits, and whole numbers with all digits.
func three(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// rate formats a number of requests a second.
func rate(v float64) string {
	if v < 100 {
		return three(v)
	}
	return grouped(uint64(v + 0.5))
}

// grouped formats a number with thousands separators.
func grouped(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// counted formats a number with its noun.
func counted(n uint64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return grouped(n) + " " + thing + "s"
}
