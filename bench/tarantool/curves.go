package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/plot"
	"github.com/slipstream-go/slipstream/internal/load"
)

// drawn lists the subjects in the order of the pictures and tables. Pictures have room only for
// short titles.
var drawn = []drawing{
	{load.Ours, load.Ours, "#2e7d32"},
	{goTarantool3Release, "v3-release", "#2a5db0"},
	{goTarantool3, "v3", "#b3491d"},
	{goTarantool2, "v2", "#7b4fa3"},
}

// A drawing says how a subject is shown.
type drawing struct{ name, title, colour string }

// drawnApart lists the subjects of scenarios with several sockets, drawnFloor those of scenarios
// with a floor.
var (
	drawnApart = append(slices.Clone(drawn), drawing{apart, "apart", "#8a8a00"})
	drawnFloor = append(slices.Clone(drawn), drawing{floor, "floor", "#9a9a9a"})
)

// A curve is one mode of the ladder over the number of its callers or pairs.
type curve struct {
	name     string // in the scenarios
	subjects []drawing
	suffix   string // after the subject
	counts   []int
	dashes   string
}

var (
	callersCurves = []curve{{syncCallers, drawnFloor, "", callerCounts, ""}}
	pairsCurves   = []curve{{async16, drawnApart, ", 16 sockets", pairCounts, "6 4"}, {asyncPairs, drawnFloor, ", 1 socket", pairCounts, ""}}
)

const (
	rateAxis = "requests/s"
	cpuAxis  = "us per request (logarithmic)"
)

// pictures are the pictures of the ladder, each of one figure.
var pictures = []struct {
	file, title, x, y string
	curves            []curve
	logY              bool
	of                func(load.Row) *float64
}{
	{"tarantool-sync-rate.svg", "Waiting callers: requests a second", "callers", rateAxis, callersCurves, false, rateOf},
	{"tarantool-sync-cpu.svg", "Waiting callers: CPU of the client", "callers", cpuAxis, callersCurves, true, clientOf},
	{"tarantool-async-rate.svg", "Senders and receivers: requests a second", "pairs", rateAxis, pairsCurves, false, rateOf},
	{"tarantool-async-cpu.svg", "Senders and receivers: CPU of the client", "pairs", cpuAxis, pairsCurves, true, clientOf},
}

func rateOf(r load.Row) *float64   { return r.RPS }
func clientOf(r load.Row) *float64 { return r.ClientUS }

// writeCurves draws the stored ladder into a directory and prints it as tables
// for docs/PERFORMANCE.md.
func writeCurves(results, dir string, w io.Writer) error {
	rows, err := load.ReadRows(results)
	if err != nil {
		return err
	}
	rows = load.Whole(rows)
	if len(rows) == 0 {
		return fmt.Errorf("%s has no results; measure with make bench SUITE=%s", results, suiteName)
	}
	var b strings.Builder
	for _, p := range pictures {
		picture := plot.Plot{Title: p.title + " (v2, v3: go-tarantool)", X: p.x, Y: p.y, LogY: p.logY}
		for _, c := range p.curves {
			picture.Lines = append(picture.Lines, c.lines(rows, p.of)...)
		}
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
	for _, t := range tables {
		writeTable(&b, rows, t.title, t.subjects, t.beginnings)
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// lines returns the subjects of a curve for one figure.
func (c curve) lines(rows []load.Row, of func(load.Row) *float64) (lines []plot.Line) {
	for _, s := range c.subjects {
		l := plot.Line{Name: s.title + c.suffix, Colour: s.colour, Dashes: c.dashes}
		for _, n := range c.counts {
			if row, ok := command.Find(rows, fmt.Sprint(c.name, n), s.name); ok && of(row) != nil {
				l.Points = append(l.Points, plot.Point{X: float64(n), Y: *of(row)})
			}
		}
		lines = append(lines, l)
	}
	return lines
}

// tables are the tables of the ladder: scenarios whose names have one of the prefixes.
var tables = []struct {
	title      string
	subjects   []drawing
	beginnings []string
}{
	{"Waiting callers", drawnFloor, []string{blocking, reuse, syncCallers}},
	{"Senders and receivers, one socket", drawnFloor, []string{asyncPairs}},
	{"Senders and receivers, 16 sockets", drawnApart, []string{async16}},
	{"With a context that can end", drawn, []string{ctxCallers, ctxPairs}},
	{"A server with default settings", drawn, []string{defaultServer}},
}

// writeTable prints a row for each scenario, with four columns for each subject.
func writeTable(b *strings.Builder, rows []load.Row, title string, subjects []drawing, beginnings []string) {
	var lines strings.Builder
	for _, r := range new(harness).rounds() {
		if !begins(r.scenario, beginnings) {
			continue
		}
		line, some := "| "+r.scenario+" |", false
		for _, s := range subjects {
			row, ok := command.Find(rows, r.scenario, s.name)
			some = some || ok
			line += fmt.Sprintf(" %s | %s | %s | %s |", whole(row.RPS), digits(row.ClientUS), digits(row.ServerUS), digits(row.Allocs))
			if row.Errors > 0 {
				line = strings.TrimSuffix(line, " |") + fmt.Sprintf(" (%d failed) |", row.Errors)
			}
		}
		if some {
			lines.WriteString(line + "\n")
		}
	}
	if lines.Len() == 0 {
		return
	}
	fmt.Fprintf(b, "**%s**\n\n| scenario |", title)
	for _, s := range subjects {
		fmt.Fprintf(b, " %s: requests/s | client us | server us | allocs |", s.name)
	}
	fmt.Fprintf(b, "\n|---|%s\n%s\n", strings.Repeat("---:|", 4*len(subjects)), lines.String())
}

func begins(name string, beginnings []string) bool {
	for _, b := range beginnings {
		if strings.HasPrefix(name, b) {
			return true
		}
	}
	return false
}

// whole formats a whole number with commas.
func whole(v *float64) string {
	if v == nil {
		return "-"
	}
	s := strconv.FormatFloat(*v, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// digits formats a number with about three digits.
func digits(v *float64) string {
	if v == nil {
		return "-"
	}
	switch {
	case *v >= 10:
		return strconv.FormatFloat(*v, 'f', 1, 64)
	case *v >= 1:
		return strconv.FormatFloat(*v, 'f', 2, 64)
	}
	return strconv.FormatFloat(*v, 'f', 3, 64)
}
