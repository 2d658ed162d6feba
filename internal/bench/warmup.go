package bench

import (
	"fmt"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/plot"
	"github.com/slipstream-go/slipstream/internal/load"
)

// WarmUpReport is what was done before the measured window.
type WarmUpReport struct {
	Seconds   float64 `json:"seconds"`
	Completed uint64  `json:"completed"`
	Failed    uint64  `json:"failed"`
	// End says why it ended: planned, steady or changing, see [load.WarmUpEnd].
	End load.WarmUpEnd `json:"end,omitempty"`
	// SteadyFrom is since when, from its start, rate and latency were steady, if that was its
	// end; absent: from the start.
	SteadyFrom float64 `json:"steady_from_seconds,omitempty"`
	// Timeline is what was done each second of it.
	Timeline []IntervalReport `json:"timeline,omitempty"`
}

const (
	// leastSteady is how long a warm-up of which nothing else is said takes at least, if the
	// window is not shorter, and mostSteady how long it takes at most.
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

// doubts says that the window may hold a part of the start.
func (r *WarmUpReport) doubts() []string {
	if r.End != load.WarmUpChanging {
		return nil
	}
	return []string{"rate or latency still changed at the end of the warm-up; --warm-up asks for a longer one"}
}

// reason says why it ended.
func (r *WarmUpReport) reason() string {
	switch {
	case r.End == load.WarmUpChanging:
		return "rate or latency still changed"
	case r.End != load.WarmUpSteady:
		return "its length was given"
	case r.SteadyFrom == 0:
		return "rate and latency were steady from its start"
	}
	return fmt.Sprintf("rate and latency were steady after %s", seconds(r.SteadyFrom))
}

// write says what was cut, and why it ended there. It writes nothing if there was none.
func (r *WarmUpReport) write(b *strings.Builder) {
	if r.Seconds > 0 {
		fmt.Fprintf(b, "warm-up: %s cut (%s): %s, %s failed\n", seconds(r.Seconds), r.reason(), counted(r.Completed, "request"), grouped(r.Failed))
	}
}

// each says how every run of several was made.
func (r *Report) each() string {
	if r.WarmUp.Seconds == 0 {
		return r.summary()
	}
	return fmt.Sprintf("%s, after a warm-up of %s, which was cut", r.summary(), seconds(r.WarmUp.Seconds))
}

// overTime returns the series of a figure of each interval. The warm-up is before 0.
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

// shadeNote says what is shaded.
func (r *Report) shadeNote() string {
	if len(r.WarmUp.Timeline) == 0 {
		return ""
	}
	return fmt.Sprintf("Shaded: the warm-up of %s, which was cut; %s.", seconds(r.WarmUp.Seconds), r.WarmUp.reason())
}
