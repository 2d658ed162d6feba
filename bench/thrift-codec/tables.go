package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/thrift-codec/measure"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A table holds the stored scenarios of one operation, with a column for each shape and a row for
// each subject.
type table struct {
	operation        string
	shapes, subjects []string
}

// writeTables prints the tables of stored results.
func writeTables(w io.Writer, p command.Place) error {
	r, err := p.ReadRaw(suiteName)
	if err != nil {
		return err
	}
	var tables []table
	for _, sc := range (&harness{rivals: allRivals}).Scenarios() {
		if r[sc.Name] == nil {
			continue
		}
		operation, shape, _ := strings.Cut(sc.Name, "/")
		if n := len(tables); n == 0 || tables[n-1].operation != operation {
			tables = append(tables, table{operation: operation})
		}
		t := &tables[len(tables)-1]
		t.shapes = append(t.shapes, shape)
		for _, s := range sc.Subjects {
			if r[sc.Name][s.Name] != nil && !slices.Contains(t.subjects, s.Name) {
				t.subjects = append(t.subjects, s.Name)
			}
		}
	}
	for _, t := range tables {
		if err := t.write(w, r); err != nil {
			return err
		}
	}
	return nil
}

func (t table) write(w io.Writer, r command.RawRounds) error {
	var b strings.Builder
	gogc := 0
	for _, lines := range r[t.operation+"/"+t.shapes[0]] {
		var found measure.Finding
		if err := json.Unmarshal(lines[0].Details, &found); err != nil {
			return err
		}
		gogc = found.GOGC
	}
	fmt.Fprintf(&b, "**%s**, GOGC=%d, %d MiB of live heap in addition to the subject's\n\n| |", t.operation, gogc, live)
	for _, shape := range t.shapes {
		fmt.Fprintf(&b, " %s |", shape)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(t.shapes)) + "\n")
	for _, subject := range t.subjects {
		fmt.Fprintf(&b, "| %s |", subject)
		for _, shape := range t.shapes {
			fmt.Fprintf(&b, " %s |", cell(r, t.operation+"/"+shape, subject))
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

// cell returns the time of ours or, for others, the ratio of ours to the subject with its interval.
// If a subject allocates, it adds the number of allocations.
func cell(r command.RawRounds, scenario, subject string) string {
	theirs := r.Metric(scenario, subject, load.NsOp)
	if len(theirs) == 0 {
		return "-"
	}
	text := duration(load.Median(theirs))
	if subject != load.Ours {
		ratio, err := load.PairedRatio(r.Metric(scenario, load.Ours, load.NsOp), theirs)
		if err != nil {
			text = fmt.Sprintf("%.2f", load.Median(r.Metric(scenario, load.Ours, load.NsOp))/load.Median(theirs))
		} else {
			text = fmt.Sprintf("%.2f (%.2f-%.2f)", ratio.Median, ratio.Lo, ratio.Hi)
		}
	}
	if allocs := math.Round(load.Median(r.Metric(scenario, subject, load.Allocs))); allocs > 0 {
		text += fmt.Sprintf("; %.0f", allocs)
	}
	return text
}

// duration formats nanoseconds.
func duration(ns float64) string {
	switch {
	case ns < 1000:
		return fmt.Sprintf("%.3g ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.3g us", ns/1e3)
	}
	return fmt.Sprintf("%.3g ms", ns/1e6)
}
