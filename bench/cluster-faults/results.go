package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// head is the first line of the raw results.
type head struct {
	Command string `json:"command"`
	Note    string `json:"note,omitempty"`
}

// results holds all rows of a file, which contains the latest row for each scenario and subject.
type results struct {
	path string
	head head
	rows []row
}

func openResults(path string) (*results, error) {
	r := &results{path: path}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var one row
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if one.Scenario != "" {
			r.rows = append(r.rows, one)
		} else if err := json.Unmarshal(line, &r.head); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return r, nil
}

// add stores a row, which replaces an earlier one of the same scenario and subject. A row of a run
// that did not finish does not replace one of a run that did.
func (r *results) add(one *row) error {
	same := func(other row) bool { return other.Scenario == one.Scenario && other.Subject == one.Subject }
	if i := slices.IndexFunc(r.rows, same); i >= 0 && one.Partial != "" && r.rows[i].Partial == "" {
		return nil
	}
	r.rows = append(slices.DeleteFunc(r.rows, same), *one)
	slices.SortStableFunc(r.rows, func(a, b row) int {
		return cmp.Or(place(a.Scenario)-place(b.Scenario), slices.Index(typical, a.Subject)-slices.Index(typical, b.Subject))
	})
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(r.head); err != nil {
		return err
	}
	for i := range r.rows {
		if err := encoder.Encode(&r.rows[i]); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(r.path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(r.path+".new", out.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(r.path+".new", r.path)
}

// place returns the position of a scenario in the table.
func place(name string) int {
	return slices.IndexFunc(scenarios, func(sc scenario) bool { return sc.name == name })
}

// columns are the columns of the table.
var columns = []struct {
	name string
	of   func(r *row) string
}{
	{"scenario", func(r *row) string { return r.Scenario }},
	{"subject", func(r *row) string { return r.Subject }},
	{"calls/s", func(r *row) string { return fmt.Sprintf("%.0f", r.Reached) }},
	{"calls", func(r *row) string { return fmt.Sprint(r.Requests) }},
	{"not sent", func(r *row) string { return fmt.Sprint(r.NotSent) }},
	{"unknown", func(r *row) string { return fmt.Sprint(r.Unknown) }},
	{"server error", func(r *row) string { return fmt.Sprint(r.Answered) }},
	{"errors", func(r *row) string { return fmt.Sprintf("%.3f %%", 100*r.Share) }},
	{"lost", func(r *row) string { return fmt.Sprint(r.Lost) }},
	{"lost by Redis", func(r *row) string { return fmt.Sprint(r.LostByRedis) }},
	{"twice", func(r *row) string { return fmt.Sprint(r.Twice) }},
	{"restored ms", func(r *row) string { return optional(r.RestoredMS) }},
	{"first ms", func(r *row) string { return optional(r.FirstMS) }},
	{"steady ms", func(r *row) string { return optional(r.SteadyMS) }},
	{"p99 before ms", func(r *row) string { return fmt.Sprintf("%.1f", r.BeforeP99MS) }},
	{"others' errors", func(r *row) string { return fmt.Sprint(r.OthersErrors) }},
	{"others' p99 ms", func(r *row) string { return fmt.Sprintf("%.1f", r.OthersP99MS) }},
	{"others' slowest ms", func(r *row) string { return fmt.Sprintf("%.0f", r.OthersMaxMS) }},
	{"topology/s", func(r *row) string { return fmt.Sprintf("%.2f", r.Topology) }},
	{"unresolved", func(r *row) string { return fmt.Sprint(r.Unresolved) }},
	{"late p99 ms", func(r *row) string { return fmt.Sprintf("%.1f", r.LateP99MS) }},
	{"", func(r *row) string { return remark(r) }},
}

func optional(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f", *v)
}

// remark lists the anomalies.
func remark(r *row) string {
	var all []string
	for _, c := range []struct {
		n    int
		text string
	}{
		{r.Wrong, "wrong answers"}, {r.Denied, "executed although the error said otherwise"},
		{r.Reordered, "acknowledged out of order"}, {r.Unasked, "failovers because the servers lacked CPU time"}, {r.Missing, "keys that the servers have lost"},
	} {
		if c.n > 0 {
			all = append(all, fmt.Sprintf("%d %s", c.n, c.text))
		}
	}
	if r.Partial != "" {
		line, _, _ := strings.Cut(r.Partial, "\n")
		all = append(all, "not finished: "+line)
	}
	return strings.Join(all, ", ")
}

// write prints the table.
func (r *results) write(w io.Writer) error {
	var b bytes.Buffer
	for i, c := range columns {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "| %s", c.name)
	}
	b.WriteString(" |\n" + strings.Repeat("|---", len(columns)) + "|\n")
	for i := range r.rows {
		for _, c := range columns {
			fmt.Fprintf(&b, "| %s ", c.of(&r.rows[i]))
		}
		b.WriteString("|\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}
