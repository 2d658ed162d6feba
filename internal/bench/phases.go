package bench

import (
	"fmt"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/httpload"
)

// PhaseReport holds the times of a phase of connections or requests. Quantiles are at most 1.6 %
// too high.
type PhaseReport struct {
	Name  string  `json:"name"` // DNS, connect, TLS or first byte
	Count uint64  `json:"count"`
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
	Max   float64 `json:"max_us"`
}

func phaseReports(phases []httpload.Phase) (all []PhaseReport) {
	us := func(d time.Duration) float64 { return float64(d) / 1e3 }
	for _, p := range phases {
		all = append(all, PhaseReport{p.Name, p.Took.Count(), us(p.Took.Quantile(0.50)), us(p.Took.Quantile(0.99)), us(p.Took.Max())})
	}
	return all
}

// cells returns the quantiles as strings.
func (p *PhaseReport) cells() (p50, p99, longest string) {
	text := func(us float64) string { return took(time.Duration(us * 1e3)) }
	return text(p.P50), text(p.P99), text(p.Max)
}

// phases returns the phases of a report. Only reports of HTTP have them.
func (r *Report) phases() []PhaseReport {
	if r.HTTP == nil {
		return nil
	}
	return r.HTTP.Phases
}

// writePhases writes a row for each phase.
func (r *Report) writePhases(b *strings.Builder) {
	phases := r.phases()
	if len(phases) == 0 {
		return
	}
	fmt.Fprintf(b, "%-10s %8s %10s %10s %10s\n", "", "count", "p50", "p99", "max")
	for i := range phases {
		p := &phases[i]
		p50, p99, longest := p.cells()
		what := "of each connection, including those before the window"
		if p.Name == httpload.FirstByte {
			what = "from sending a request"
		}
		fmt.Fprintf(b, "%-10s %8s %10s %10s %10s   %s\n", p.Name, grouped(p.Count), p50, p99, longest, what)
	}
	b.WriteByte('\n')
}

func (r *Report) phasesSection() section {
	s := section{Title: "Phases"}
	phases := r.phases()
	if len(phases) == 0 {
		return s
	}
	s.Note = "DNS, connect and TLS cover all connections, including those opened before the window. First byte is measured from sending a request, in the window."
	s.Head = []string{"", "count", "p50", "p99", "max"}
	for i := range phases {
		p50, p99, longest := phases[i].cells()
		s.Rows = append(s.Rows, []string{phases[i].Name, grouped(phases[i].Count), p50, p99, longest})
	}
	return s
}
