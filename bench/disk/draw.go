package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/bench/internal/plot"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A figure holds the results of a subject in a mode with a number of connections: medians over the
// rounds.
type figure struct {
	rate           float64 // requests a second
	meanMS, p99MS  float64
	errors, rounds int
}

// measured holds the stored figures of the curves, by mode, subject and connections.
type measured map[string]map[string]map[int]figure

// rawRound holds the fields that are used of a line of the raw results.
type rawRound struct {
	Scenario string                   `json:"scenario"`
	Subject  string                   `json:"subject"`
	Values   map[load.Metric]*float64 `json:"values"`
	Errors   uint64                   `json:"errors"`
	Partial  string                   `json:"partial"`
}

// readCurves reads the raw results, because rows contain no mean latency. Unfinished rounds are
// omitted.
func readCurves(path string) (measured, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; measure with make bench SUITE=%s SCENARIO=%s", err, suiteName, curve)
	}
	if err != nil {
		return nil, err
	}
	rounds := map[string][]rawRound{} // by scenario and subject
	var order []string
	for line := range bytes.Lines(text) {
		var r rawRound
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("raw results %s: %w", path, err)
		}
		if !strings.HasPrefix(r.Scenario, curve) || r.Subject == "" || r.Partial != "" {
			continue
		}
		key := r.Scenario + "/" + r.Subject
		if rounds[key] == nil {
			order = append(order, key)
		}
		rounds[key] = append(rounds[key], r)
	}
	all := measured{}
	for _, key := range order {
		words := strings.Split(strings.TrimPrefix(key, curve), "/")
		if len(words) != 3 {
			return nil, fmt.Errorf("scenario and subject %q, want a mode, a number and a subject", key)
		}
		connections, err := strconv.Atoi(words[1])
		if err != nil {
			return nil, fmt.Errorf("scenario and subject %q: %w", key, err)
		}
		all.put(words[0], words[2], connections, summary(rounds[key]))
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no scenario %sMODE/N", path, curve)
	}
	return all, nil
}

func (m measured) put(mode, subject string, connections int, f figure) {
	if m[mode] == nil {
		m[mode] = map[string]map[int]figure{}
	}
	if m[mode][subject] == nil {
		m[mode][subject] = map[int]figure{}
	}
	m[mode][subject][connections] = f
}

func summary(rounds []rawRound) figure {
	median := func(metric load.Metric) float64 {
		var values []float64
		for _, r := range rounds {
			if v := r.Values[metric]; v != nil {
				values = append(values, *v)
			}
		}
		return load.Median(values)
	}
	f := figure{rate: median(load.RPS), meanMS: median(load.MeanUS) / 1000, p99MS: median(load.P99US) / 1000, rounds: len(rounds)}
	for _, r := range rounds {
		f.errors += int(r.Errors)
	}
	return f
}

// drawn lists the subjects in the order of the pictures and tables.
var drawn = []struct{ name, title, dashes string }{
	{load.Ours, "2 processors", ""},
	{oursOnOne, "1 processor", "6 4"},
	{article, "the article, 2", "2 3"},
}

// colors of the modes.
var colours = map[string]string{"direct": "#b3491d", "bbolt": "#2a5db0", "memory": "#2e7d32"}

// pictures are the same as in the article: each shows one figure over the number of connections.
var pictures = []struct {
	file, title, y string
	logY           bool
	of             func(figure) float64
}{
	{"curve-rate.svg", "Requests a second", "requests/s", false, func(f figure) float64 { return f.rate }},
	{"curve-rate-log.svg", "Requests a second (logarithmic)", "requests/s", true, func(f figure) float64 { return f.rate }},
	{"curve-mean-log.svg", "Mean time of a request (logarithmic)", "ms", true, func(f figure) float64 { return f.meanMS }},
	{"curve-p99.svg", "99th percentile", "ms", false, func(f figure) float64 { return f.p99MS }},
	{"curve-p99-log.svg", "99th percentile (logarithmic)", "ms", true, func(f figure) float64 { return f.p99MS }},
}

// writeCurves draws the stored curves into a directory and prints them as tables for
// docs/PERFORMANCE.md.
func writeCurves(raw, dir string, w io.Writer) error {
	all, err := readCurves(raw)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, p := range pictures {
		picture := plot.Plot{Title: p.title, X: "connections", Y: p.y, LogY: p.logY, Lines: all.lines(p.of)}
		var svg bytes.Buffer
		if err := picture.WriteSVG(&svg); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, p.file), svg.Bytes(), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&b, "![%s](images/%s)\n", p.title, p.file)
	}
	b.WriteByte('\n')
	for _, m := range modes {
		all.writeTable(&b, m.name)
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// lines returns all modes of all subjects for one figure.
func (m measured) lines(of func(figure) float64) (lines []plot.Line) {
	for _, mode := range modes {
		for _, s := range drawn {
			l := plot.Line{Name: mode.name + ", " + s.title, Colour: colours[mode.name], Dashes: s.dashes}
			for _, n := range curveConnections {
				if f, ok := m[mode.name][s.name][n]; ok {
					l.Points = append(l.Points, plot.Point{X: float64(n), Y: of(f)})
				}
			}
			lines = append(lines, l)
		}
	}
	return lines
}

// writeTable prints one mode, with a row for each number of connections and three columns for each
// subject.
func (m measured) writeTable(b *strings.Builder, mode string) {
	if m[mode] == nil {
		return
	}
	fmt.Fprintf(b, "**%s**\n\n| connections |", mode)
	for _, s := range drawn {
		fmt.Fprintf(b, " %s: requests/s | mean ms | p99 ms |", s.title)
	}
	b.WriteString("\n|---:|" + strings.Repeat("---:|", 3*len(drawn)) + "\n")
	for _, n := range curveConnections {
		line := fmt.Sprintf("| %s |", thousands(float64(n)))
		some := false
		for _, s := range drawn {
			f, ok := m[mode][s.name][n]
			if !ok {
				line += " - | - | - |"
				continue
			}
			some = true
			line += fmt.Sprintf(" %s | %s | %s |", thousands(f.rate), milliseconds(f.meanMS), milliseconds(f.p99MS))
			if f.errors > 0 {
				line = strings.TrimSuffix(line, " |") + fmt.Sprintf(" (%d failed) |", f.errors)
			}
		}
		if some {
			b.WriteString(line + "\n")
		}
	}
	b.WriteByte('\n')
}

// thousands formats a whole number with commas.
func thousands(v float64) string {
	s := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// milliseconds formats a duration in milliseconds with three digits.
func milliseconds(v float64) string {
	if v >= 100 {
		return thousands(v)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
