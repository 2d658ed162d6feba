package bench

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/plot"
	"github.com/slipstream-go/slipstream/internal/load"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// A page is a report for a browser. Texts are escaped by the template, and those in drawings by
// package plot. The page needs no scripts and no external files.
type page struct {
	Title, What string
	Verdicts    []pageVerdict
	Sections    []section
	About       string
}

// A pageVerdict says whether the figures can be trusted. Its class is good, doubt or bad.
type pageVerdict struct{ Class, Text string }

// A section is a box of a page.
type section struct {
	Title, Note string
	Figures     []figure
	Head        []string
	Rows        [][]string
	Wide        bool // over all columns
}

// A figure is a drawing with the names of its series.
type figure struct {
	Keys []string
	SVG  template.HTML
}

// maxSeries is the number of colors for series.
const maxSeries = 6

func (p *page) write(w io.Writer) error {
	p.Sections = slices.DeleteFunc(p.Sections, func(s section) bool { return len(s.Figures) == 0 && len(s.Rows) == 0 && s.Note == "" })
	clean := func(texts ...*string) {
		for _, t := range texts {
			*t = plot.Text(*t)
		}
	}
	clean(&p.Title, &p.What, &p.About)
	for i := range p.Verdicts {
		clean(&p.Verdicts[i].Text)
	}
	for i := range p.Sections {
		s := &p.Sections[i]
		clean(&s.Title, &s.Note)
		for k := range s.Figures {
			s.Figures[k].Keys = slices.Clone(s.Figures[k].Keys)
			for n := range s.Figures[k].Keys {
				clean(&s.Figures[k].Keys[n])
			}
		}
		for _, row := range append(s.Rows, s.Head) {
			for k := range row {
				clean(&row[k])
			}
		}
	}
	return pageTemplate.Execute(w, p)
}

// draw returns the figure for a plot, or no figure if the plot is empty.
func draw(p *plot.Plot, keys ...string) []figure {
	p.Series = p.Series[:min(len(p.Series), maxSeries)]
	svg := p.SVG()
	if svg == "" {
		return nil
	}
	return []figure{{Keys: keys[:min(len(keys), maxSeries)], SVG: template.HTML(svg)}} // escaped by package plot
}

// WriteHTML writes the report as a page with plots.
func (r *Report) WriteHTML(w io.Writer) error {
	p := page{Title: r.Target, What: r.each(), Verdicts: r.verdicts(), About: about(&r.On)}
	p.Sections = append(p.Sections, r.requestsSection(), r.latencySection(), r.phasesSection())
	p.Sections = append(p.Sections, r.timelineSections()...)
	p.Sections = append(p.Sections, r.costsSection(), r.repliesSection(), r.failuresSection())
	p.Sections = append(p.Sections, r.profileSections()...)
	return p.write(w)
}

// about describes the machine on which the figures of a page were measured.
func about(on *load.Machine) string {
	return fmt.Sprintf("Measured by slipstream bench on %s, %s, kernel %s, with %s, at %s.", on.CPU, counted(uint64(on.Cores), "processor"), on.Kernel, on.Go, on.Time.Format(time.RFC3339))
}

// verdicts returns what is wrong with the run, or that nothing is.
func (r *Report) verdicts() (all []pageVerdict) {
	bad := func(format string, args ...any) { all = append(all, pageVerdict{"bad", fmt.Sprintf(format, args...)}) }
	if r.Partial != "" {
		bad("PARTIAL: %s", r.Partial)
	}
	if len(r.Limits) > 0 {
		bad("THE GENERATOR WAS THE LIMIT: these are its own figures, not those of the server: %s", strings.Join(r.Limits, "; "))
	}
	if n := r.Wrong(); n > 0 {
		bad("Wrong answers: %s.", grouped(n))
	}
	if r.Completed == 0 {
		bad("No request got a correct answer.")
	}
	for _, d := range r.Doubts {
		all = append(all, pageVerdict{"doubt", "Questionable: " + d})
	}
	if share := r.FailedShare(); share > 0 {
		all = append(all, pageVerdict{"doubt", fmt.Sprintf("%.3g %% of the requests failed or were never sent.", 100*share)})
	}
	if all == nil {
		all = []pageVerdict{{"good", "No problems were found: the generator was not the limit, and no request failed."}}
	}
	return all
}

func (r *Report) requestsSection() section {
	s := section{Title: "Requests", Rows: [][]string{{"completed", grouped(r.Completed)}, {"failed", grouped(r.Failed)}}}
	if r.Unsent > 0 {
		s.Rows = append(s.Rows, []string{"due and never sent", grouped(r.Unsent)})
	}
	if r.Cut > 0 {
		s.Rows = append(s.Rows, []string{"cut off by the end", grouped(r.Cut)})
	}
	s.Rows = append(s.Rows, []string{"a second", rate(r.Rate)})
	if r.Plan.Rate > 0 {
		s.Rows = append(s.Rows, []string{"a second, planned", rate(r.Plan.Rate)})
	}
	s.Rows = append(s.Rows, r.replayRows()...)
	return s
}

// latencies returns the histograms of a report with their names.
func (r *Report) latencies() (names []string, all []*load.Histogram) {
	if !r.open() {
		return []string{"latency"}, []*load.Histogram{r.Service}
	}
	return []string{"latency", "service", "pacing"}, []*load.Histogram{r.Latency, r.Service, r.Pacing}
}

func (r *Report) latencySection() section {
	s := section{Title: "Latency", Head: []string{"", "p50", "p90", "p99", "p99.9", "max"}}
	s.Note = "Latency is measured from the intended time of a request, service time from sending. Pacing is the delay caused by the generator, which is part of the latency."
	if !r.open() {
		s.Note = "Measured from sending. A closed loop sends nothing while it waits, so a server that stalls gets fewer requests."
	}
	p := plot.Plot{
		Label: "Latency by percentile",
		X:     plot.Axis{Title: "percentile", Zero: true, Ticks: percentiles},
		Y:     plot.Axis{Log: true, Format: tickTime},
	}
	names, histograms := r.latencies()
	for i, h := range histograms {
		if h == nil || h.Count() == 0 {
			s.Rows = append(s.Rows, []string{names[i], "-", "-", "-", "-", "-"})
			p.Series = append(p.Series, plot.Series{})
			continue
		}
		s.Rows = append(s.Rows, []string{names[i], took(h.Quantile(0.50)), took(h.Quantile(0.90)), took(h.Quantile(0.99)), took(h.Quantile(0.999)), took(h.Max())})
		p.Series = append(p.Series, quantiles(h))
	}
	s.Figures = draw(&p, names...)
	return s
}

// percentiles are the ticks of an axis on which each additional nine takes the same width.
var percentiles = []plot.Tick{{At: nines(0.5), Text: "p50"}, {At: 1, Text: "p90"}, {At: 2, Text: "p99"}, {At: 3, Text: "p99.9"}, {At: 4, Text: "p99.99"}, {At: 5, Text: "p99.999"}, {At: 6, Text: "p99.9999"}}

func nines(q float64) float64 { return -math.Log10(1 - q) }

// quantiles returns the curve of a histogram, up to the last percentile that is based on more than
// a few values.
func quantiles(h *load.Histogram) (s plot.Series) {
	const points = 150
	end := min(math.Log10(float64(max(h.Count(), 2))), 6)
	for i := range points + 1 {
		at := end * float64(i) / points
		s.X = append(s.X, at)
		s.Y = append(s.Y, float64(h.Quantile(1-math.Pow(10, -at)))/1e3)
	}
	return s
}

// tickTime formats microseconds for an axis.
func tickTime(us float64) string {
	switch {
	case us < 1e3:
		return fmt.Sprintf("%.3g us", us)
	case us < 1e6:
		return fmt.Sprintf("%.3g ms", us/1e3)
	}
	return fmt.Sprintf("%.3g s", us/1e6)
}

// tickNumber formats numbers for an axis.
func tickNumber(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.3g M", v/1e6)
	case v >= 10_000:
		return fmt.Sprintf("%.3g k", v/1e3)
	}
	return fmt.Sprintf("%.4g", v)
}

// timelineSections draws what was done in each second.
func (r *Report) timelineSections() []section {
	if len(r.Timeline) < 2 {
		return nil
	}
	axis := plot.Axis{Title: "seconds", Zero: true}
	unless0 := func(v float64) float64 {
		if v == 0 {
			return math.NaN()
		}
		return v
	}
	rates := plot.Plot{Label: "Requests each second", X: axis, Y: plot.Axis{Zero: true, Format: tickNumber}, Series: []plot.Series{
		r.overTime(func(i *IntervalReport) float64 { return float64(i.Completed) / i.Seconds }),
		r.overTime(func(i *IntervalReport) float64 { return float64(i.Failed) / i.Seconds }),
	}}
	keys := []string{"completed", "failed"}
	if r.Plan.Rate > 0 && r.Loop != string(load.Replay) {
		planned := r.overTime(func(*IntervalReport) float64 { return r.Plan.Rate })
		planned.Dashed = true
		rates.Series, keys = append(rates.Series, planned), append(keys, "planned")
	}
	latencies := plot.Plot{Label: "Latency each second", X: axis, Y: plot.Axis{Log: true, Format: tickTime}, Series: []plot.Series{
		r.overTime(func(i *IntervalReport) float64 { return unless0(i.P50) }),
		r.overTime(func(i *IntervalReport) float64 { return unless0(i.P99) }),
		r.overTime(func(i *IntervalReport) float64 { return unless0(i.Max) }),
	}}
	cpu := plot.Plot{Label: "CPU time each second", X: axis, Y: plot.Axis{Zero: true}}
	var names []string
	for _, c := range r.Costs {
		cpu.Series = append(cpu.Series, r.overTime(func(i *IntervalReport) float64 {
			if used, ok := i.CPU[c.Of]; ok {
				return used / i.Seconds
			}
			return math.NaN()
		}))
		names = append(names, c.Of)
	}
	note := r.shadeNote()
	if first := r.Timeline[0].Seconds; first > 1.5 {
		note = strings.TrimSpace(fmt.Sprintf("Each point is %.0f s. %s", first, note))
	}
	for _, p := range []*plot.Plot{&rates, &latencies, &cpu} {
		r.shade(p)
	}
	return []section{
		{Title: "Requests a second", Note: note, Figures: draw(&rates, keys...)},
		{Title: "Latency over time", Note: note, Figures: draw(&latencies, "p50", "p99", "max")},
		{Title: "Processors in use", Note: note, Figures: draw(&cpu, names...)},
	}
}

func (r *Report) costsSection() section {
	s := section{Title: "Costs", Head: []string{"CPU time of", "a request", "in all", "waited"}}
	for _, c := range r.Costs {
		each, waited := "-", "-"
		if r.Completed > 0 {
			each = took(time.Duration(c.PerRequest))
		}
		if c.WaitSeconds > 0 {
			waited = seconds(c.WaitSeconds)
		}
		s.Rows = append(s.Rows, []string{c.Of, each, seconds(c.CPUSeconds), waited})
	}
	return s
}

func (r *Report) repliesSection() section {
	s := section{Title: "Replies"}
	if h := r.HTTP; h != nil {
		for _, status := range slices.Sorted(maps.Keys(h.Statuses)) {
			s.Rows = append(s.Rows, []string{fmt.Sprintf("status %d", status), grouped(h.Statuses[status])})
		}
		s.Rows = append(s.Rows, []string{"bodies, total", size(float64(h.Bytes))}, []string{"connections opened in the window", grouped(h.Opened)}, []string{"that no request asked for", grouped(h.Duplicates)})
	}
	var others strings.Builder
	r.writeReplies(&others)
	s.Note = strings.TrimSpace(strings.TrimPrefix(others.String(), "replies"))
	return s
}

// maxShown bounds the length of a text that comes from a server.
const maxShown = 1000

func (r *Report) failuresSection() section {
	s := section{Title: "Failures"}
	if r.Failed == 0 {
		return s
	}
	for _, kind := range r.failureKinds() {
		s.Rows = append(s.Rows, []string{shorten(kind), grouped(r.Failures[kind])})
	}
	s.Note = "The first: " + shorten(r.FirstFailed)
	return s
}

func shorten(text string) string {
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "..."
	}
	return text
}

// failureKinds returns the kinds of failures, the most frequent first.
func (r *Report) failureKinds() []string {
	return slices.SortedFunc(maps.Keys(r.Failures), func(x, y string) int {
		return cmp.Or(cmp.Compare(r.Failures[y], r.Failures[x]), cmp.Compare(x, y))
	})
}
