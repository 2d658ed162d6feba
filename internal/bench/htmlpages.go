package bench

import (
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/plot"
	"github.com/slipstream-go/slipstream/internal/bench/profiles"
	"github.com/slipstream-go/slipstream/internal/load"
)

// profileSections shows the profiles of all servers.
func (r *Report) profileSections() (all []section) {
	for _, set := range r.Profiles {
		all = append(all, setSections(set, r.base)...)
	}
	return all
}

// setSections shows the files of profiles, their top functions, and a flame graph. base may be nil.
func setSections(set *profiles.Set, base *baseline) (all []section) {
	files := section{Title: "Profiles of " + set.Of, Head: []string{"profile", "time", "content", "file"}, Wide: true}
	for _, p := range set.Profiles {
		if p.Missing != "" {
			files.Rows = append(files.Rows, []string{p.Name, "", "missing: " + p.Missing, ""})
			continue
		}
		length := "a moment"
		if p.Seconds > 0 {
			length = fmt.Sprintf("%.1f s", p.Seconds)
		}
		files.Rows = append(files.Rows, []string{p.Name, length, content(&p), p.File})
	}
	all = append(all, files)
	for _, p := range set.Profiles {
		if p.Tree != nil {
			all = append(all, flameSection(set.Of, &p)...)
		}
	}
	if now := cpuTree(set); now != nil && base != nil {
		all = append(all, changeSections(set.Of, base, now)...)
	}
	for _, shown := range shownTables {
		t := set.Table(shown.profile, shown.counts)
		if t == nil || t.Total <= 0 {
			continue
		}
		all = append(all, tableSection(shown.flat, t, t.Flat, false), tableSection(shown.cum, t, t.Cum, true), tableSection(shown.lines, t, t.Lines, false))
	}
	return all
}

// maxPageRows bounds the rows of a table of functions.
const maxPageRows = 10

// tableSection shows the rows of a table, sorted by their flat or cumulative figure. The section is
// empty if it has no title.
func tableSection(title string, t *profiles.Table, rows []profiles.Row, cum bool) section {
	if title == "" {
		return section{}
	}
	s := section{Title: title, Head: []string{"", "flat", "cum", "flat, share"}}
	if cum {
		s.Head[3] = "cum, share"
	}
	for _, row := range rows[:min(len(rows), maxPageRows)] {
		share := row.Flat
		if cum {
			share = row.Cum
		}
		s.Rows = append(s.Rows, []string{shortName(row.Name), amount(row.Flat, t.Unit), amount(row.Cum, t.Unit), fmt.Sprintf("%.1f%%", percent(share, t.Total))})
	}
	return s
}

// shortName shortens a function's package path to its last element. A source line in front of it is
// kept.
func shortName(name string) string {
	line, function, ok := strings.Cut(name, " ")
	if !ok {
		line, function = "", name
	}
	path := function
	if end := strings.IndexAny(function, "(["); end >= 0 {
		path = function[:end]
	}
	function = function[strings.LastIndexByte(path, '/')+1:]
	return strings.TrimSpace(line + " " + function)
}

// flameSection draws the stacks of a CPU profile.
func flameSection(of string, p *profiles.Profile) []section {
	svg := plot.Flame(boxes(p.Tree, p.Tree.Value), "CPU time of "+of+" by stacks", false)
	if svg == "" {
		return nil
	}
	return []section{{
		Title: "CPU time of " + of + ", by stacks", Wide: true,
		Note:    "Each box is a function. Its width is the CPU time of the function and everything it calls, which is shown below it. Point at a box to see its full name.",
		Figures: []figure{{SVG: template.HTML(svg)}}, // escaped by package plot
	}}
}

// changeSections compares two CPU profiles.
func changeSections(of string, base *baseline, now *profiles.Tree) []section {
	before := base.tree
	svg := plot.Flame(changedBoxes(before, now, base, now.Value), "Change of the CPU time of "+of+" by stacks", true)
	if svg == "" {
		return nil
	}
	flame := section{
		Title: "CPU time of " + of + ", compared with that of " + base.of, Wide: true,
		Note: "The width of the boxes is that in this profile. Red boxes have a larger share of all CPU time than in that of " + base.of + ", blue ones a smaller share; deep colors mean a change of 5 % or more. " +
			"Functions that are called only there have no box.",
		Figures: []figure{{SVG: template.HTML(svg)}}, // escaped by package plot
	}
	table := section{Title: "Shares of CPU time that differ most, by functions themselves", Head: []string{"", base.before, base.now, "change"}}
	changes := profiles.Changes(before, now)
	for _, c := range changes[:min(len(changes), maxPageRows)] {
		table.Rows = append(table.Rows, []string{shortName(c.Name), fmt.Sprintf("%.1f%%", 100*c.Before), fmt.Sprintf("%.1f%%", 100*c.Now), fmt.Sprintf("%+.1f%%", 100*(c.Now-c.Before))})
	}
	return []section{flame, table}
}

// changedBoxes returns the boxes of now with the change of their shares. before is the same stack
// in the baseline, or nil if it is not there.
func changedBoxes(before, now *profiles.Tree, base *baseline, total int64) *plot.Box {
	was := int64(0)
	children := map[string]*profiles.Tree{}
	if before != nil {
		was = before.Value
		for _, c := range before.Children {
			children[c.Name] = c
		}
	}
	name := now.Name
	if name == "" {
		name = "all"
	}
	first, second := percent(was, base.tree.Value), percent(now.Value, total)
	b := &plot.Box{Name: shortName(name), Title: fmt.Sprintf("%s: %.1f %%, %s %.1f %%", name, second, base.before, first), Value: float64(now.Value), Change: (second - first) / 100}
	for _, c := range now.Children {
		b.Children = append(b.Children, changedBoxes(children[c.Name], c, base, total))
	}
	return b
}

// boxes returns the boxes of a flame graph.
func boxes(t *profiles.Tree, total int64) *plot.Box {
	name := t.Name
	if name == "" {
		name = "all"
	}
	b := &plot.Box{Name: shortName(name), Title: fmt.Sprintf("%s: %s, %.1f %%", name, took(time.Duration(t.Value)), percent(t.Value, total)), Value: float64(t.Value)}
	for _, c := range t.Children {
		b.Children = append(b.Children, boxes(c, total))
	}
	return b
}

// WriteHTML writes the comparison as a page with the figures of all rounds.
func (c *Comparison) WriteHTML(w io.Writer) error {
	p := page{Title: "A: " + c.A + ", B: " + c.B}
	if len(c.Rounds) > 0 {
		first := c.Rounds[0].Report
		p.What, p.About = "Each run: "+first.each()+". Runs of A, A again and B are in random order.", about(&first.On)
	}
	if c.Partial != "" {
		p.Verdicts = append(p.Verdicts, pageVerdict{"bad", "PARTIAL: " + c.Partial})
	}
	if c.Limited > 0 {
		p.Verdicts = append(p.Verdicts, pageVerdict{"bad", fmt.Sprintf("THE GENERATOR WAS THE LIMIT in %d of %d runs, for example: %s", c.Limited, len(c.Rounds), c.Limits[0])})
	}
	if share, first, wrong := c.Failed(); share > 0 || wrong > 0 {
		p.Verdicts = append(p.Verdicts, pageVerdict{"doubt", fmt.Sprintf("%.3g %% of the requests failed, for example: %s", share*100, shorten(first))})
	}
	table := section{Title: "B compared with A", Wide: true, Head: []string{"", "A", "B", "B/A", "interval", "A/A, which is noise", "B is"},
		Note: "95 % intervals, paired by round."}
	for _, v := range c.Verdicts {
		class, word := "good", "B is "+v.Word
		if v.Word == cannotTell {
			class, word = "doubt", v.Word+": "+v.Why
		}
		p.Verdicts = append(p.Verdicts, pageVerdict{class, titles[v.Metric] + ": " + word})
		table.Rows = append(table.Rows, []string{titles[v.Metric], v.show(v.A), v.show(v.B), fmt.Sprintf("%.3f", v.Ratio),
			fmt.Sprintf("%.3f-%.3f", v.Lo, v.Hi), fmt.Sprintf("%.3f-%.3f", v.ControlLo, v.ControlHi), v.Word})
	}
	p.Sections = append(p.Sections, table)
	for _, v := range c.Verdicts {
		p.Sections = append(p.Sections, c.roundsSection(v.Metric))
	}
	p.Sections = append(p.Sections, c.profileSections()...)
	return p.write(w)
}

// roundsSection draws a metric for all rounds.
func (c *Comparison) roundsSection(metric load.Metric) section {
	subjects := []string{sideA, sideAgain, sideB}
	p := plot.Plot{Label: titles[metric] + " by round", X: plot.Axis{Title: "round"}, Y: plot.Axis{Zero: true, Format: tickTime}, Series: make([]plot.Series, len(subjects))}
	if metric == load.RPS {
		p.Y.Format = tickNumber
	}
	for i, subject := range subjects {
		s := &p.Series[i]
		for _, round := range c.Rounds {
			if v, ok := round.Report.sample().Values[metric]; round.Subject == subject && ok {
				s.X, s.Y = append(s.X, float64(len(s.X)+1)), append(s.Y, v)
			}
		}
	}
	return section{Title: titles[metric] + " by round", Figures: draw(&p, subjects...)}
}

// WriteHTML writes the curve as a page with plots.
func (k *Knee) WriteHTML(w io.Writer) error {
	first := k.Points[0]
	limit := time.Duration(k.P99 * 1e3)
	p := page{Title: k.Target, What: "The highest rate with a 99th percentile below " + took(limit) + ". Each run: " + first.each() + ".", About: about(&first.On)}
	class := "good"
	switch {
	case k.Partial != "":
		class = "bad"
	case k.Rate == 0 || k.Capped:
		class = "doubt"
	}
	p.Verdicts = []pageVerdict{{class, k.conclusion()}}
	latency := plot.Plot{Label: "Latency by rate", X: plot.Axis{Title: "requests a second, planned", Log: true, Format: tickNumber}, Y: plot.Axis{Log: true, Format: tickTime}, Series: make([]plot.Series, 3)}
	latency.Series[2].Dashed = true
	cpu := plot.Plot{Label: "CPU time of a request by rate", X: latency.X, Y: plot.Axis{Zero: true, Format: tickTime}, Series: make([]plot.Series, len(first.Costs))}
	table := section{Title: "All rates that were tried", Wide: true, Head: []string{"planned/s", "done/s", "p50", "p99"}}
	var names []string
	for _, c := range first.Costs {
		names = append(names, c.Of)
		table.Head = append(table.Head, "CPU of "+c.Of)
	}
	table.Head = append(table.Head, "limit")
	for _, r := range k.Points {
		p50, p99 := micros(r.Latency, 0.50), micros(r.Latency, 0.99)
		for i, us := range []float64{p50, p99, k.P99} {
			s := &latency.Series[i]
			s.X, s.Y = append(s.X, r.Plan.Rate), append(s.Y, us)
		}
		row := []string{rate(r.Plan.Rate), rate(r.Rate), took(r.Latency.Quantile(0.50)), took(r.Latency.Quantile(0.99))}
		for i := range first.Costs {
			if i >= len(r.Costs) { // the run is partial
				row = append(row, "-")
				continue
			}
			s := &cpu.Series[i]
			s.X, s.Y = append(s.X, r.Plan.Rate), append(s.Y, r.Costs[i].PerRequest/1e3)
			row = append(row, took(time.Duration(r.Costs[i].PerRequest)))
		}
		kept := "kept"
		if why := r.misses(limit); why != "" {
			kept = why[len(", "):]
		}
		table.Rows = append(table.Rows, append(row, kept))
	}
	p.Sections = []section{
		{Title: "Latency", Figures: draw(&latency, "p50", "p99", "limit")},
		{Title: "CPU time of a request", Figures: draw(&cpu, names...)},
		table,
	}
	if k.Profiled != nil {
		p.Sections = append(p.Sections, k.Profiled.profileSections()...)
	}
	return p.write(w)
}
