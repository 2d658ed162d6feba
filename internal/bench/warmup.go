package bench

import (
	"fmt"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/plot"
	"github.com/slipstream-go/slipstream/internal/load"
)

// WarmUpReport describes what was done before the measured window.
type WarmUpReport struct {
	Seconds   float64 `json:"seconds"`
	Completed uint64  `json:"completed"`
	Failed    uint64  `json:"failed"`
	// End is the reason why it ended: planned, steady or changing, see [load.WarmUpEnd].
	End load.WarmUpEnd `json:"end,omitempty"`
	// SteadyFrom is the time, from its start, since which rate and latency were steady, if End is
	// steady. It is absent if they were steady from the start.
	SteadyFrom float64 `json:"steady_from_seconds,omitempty"`
	// Timeline is what was done in each second of it.
	Timeline []IntervalReport `json:"timeline,omitempty"`
}

const (
	// leastSteady is the default minimum length of a warm-up, if the window is not shorter, and
	// mostSteady is the maximum.
	leastSteady = 2 * time.Second
	mostSteady  = 30 * time.Second
)

// UntilSteady lets the warm-up of the plan end when rate and latency are steady.
func (p *Plan) UntilSteady() {
	p.SteadyAfter = min(p.Duration, leastSteady)
	p.WarmUp = min(p.Duration, mostSteady)
}

func newWarmUpReport(w *load.WarmUp) WarmUpReport {
	r := WarmUpReport{Seconds: w.Elapsed.Seconds(), Completed: w.Completed, Failed: w.Errors, End: w.End, SteadyFrom: w.SteadyFrom.Seconds()}
	for _, i := range w.Timeline {
		r.Timeline = append(r.Timeline, newIntervalReport(i))
	}
	return r
}

// doubts returns a warning if the window may contain a part of the start.
func (r *WarmUpReport) doubts() []string {
	if r.End != load.WarmUpChanging {
		return nil
	}
	return []string{"rate or latency was still changing at the end of the warm-up; use --warm-up for a longer one"}
}

// reason returns why the warm-up ended.
func (r *WarmUpReport) reason() string {
	switch {
	case r.End == load.WarmUpChanging:
		return "rate or latency was still changing"
	case r.End != load.WarmUpSteady:
		return "fixed length"
	case r.SteadyFrom == 0:
		return "rate and latency were steady from its start"
	}
	return fmt.Sprintf("rate and latency were steady after %s", seconds(r.SteadyFrom))
}

// write writes what was excluded as the warm-up, and why it ended there. It writes nothing if there
// was no warm-up.
func (r *WarmUpReport) write(b *strings.Builder) {
	if r.Seconds > 0 {
		fmt.Fprintf(b, "warm-up: %s cut (%s): %s, %s failed\n", seconds(r.Seconds), r.reason(), counted(r.Completed, "request"), grouped(r.Failed))
	}
}

// each describes how each of several runs was made.
func (r *Report) each() string {
	if r.WarmUp.Seconds == 0 {
		return r.summary()
	}
	return fmt.Sprintf("%s, after a warm-up of %s, which is not included", r.summary(), seconds(r.WarmUp.Seconds))
}

// overTime returns a series with one figure for each interval. The warm-up has negative times.
func (r *Report) overTime(figure func(i *IntervalReport) float64) (s plot.Series) {
	add := func(line []IntervalReport, from float64) {
		for k := range line {
			i := &line[k]
			s.X = append(s.X, from+i.At+i.Seconds/2)
			s.Y = append(s.Y, figure(i))
		}
	}
	add(r.WarmUp.Timeline, -r.WarmUp.Seconds)
	add(r.Timeline, 0)
	return s
}

// shade marks the warm-up in a plot over time.
func (r *Report) shade(p *plot.Plot) {
	if len(r.WarmUp.Timeline) > 0 {
		p.Shade = plot.Range{From: -r.WarmUp.Seconds, To: 0}
	}
}

// shadeNote returns the note on what is shaded.
func (r *Report) shadeNote() string {
	if len(r.WarmUp.Timeline) == 0 {
		return ""
	}
	return fmt.Sprintf("Shaded: the warm-up of %s, which is not included; %s.", seconds(r.WarmUp.Seconds), r.WarmUp.reason())
}
