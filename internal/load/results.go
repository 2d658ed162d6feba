package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// A Row is one subject of one scenario in the results file: medians over the
// rounds, null where a figure does not apply.
type Row struct {
	Suite    string   `json:"suite"`
	Scenario string   `json:"scenario"`
	Subject  string   `json:"subject"`
	Rounds   int      `json:"rounds"`
	RPS      *float64 `json:"rps"`
	ClientUS *float64 `json:"client_us"`
	ServerUS *float64 `json:"server_us"`
	P50US    *float64 `json:"p50_us"`
	P99US    *float64 `json:"p99_us"`
	P999US   *float64 `json:"p999_us"`
	NsOp     *float64 `json:"ns_op"`
	BytesOp  *float64 `json:"bytes_op"`
	Allocs   *float64 `json:"allocs"`
	PerRead  *float64 `json:"per_read,omitempty"` // in suites that count it
	Errors   uint64   `json:"errors"`             // of all rounds together
	// Spread is the interquartile range of the scenario's primary metric
	// divided by its median.
	Spread *float64 `json:"spread"`
	// RatioLo and RatioHi are the 95 % interval, paired by round, of ours against the best rival in
	// the primary metric. Only rows of ours have them.
	RatioLo *float64 `json:"ratio_lo"`
	RatioHi *float64 `json:"ratio_hi"`
	// Partial is the reason why the scenario did not finish, or empty if it did. Rounds then counts
	// the complete rounds; if there are none, the figures are those of an unfinished round.
	Partial string `json:"partial,omitempty"`
}

// Whole returns the rows of scenarios that finished. Only these are compared or drawn.
func Whole(rows []Row) []Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Partial != "" })
}

// number returns v rounded to four decimals, or nil if it is not a number.
func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	v = math.Round(v*1e4) / 1e4
	return &v
}

func newRow(suite, scenario, subject string, rounds []Sample, primary Metric) Row {
	median := func(m Metric) *float64 { return number(Median(present(column(rounds, m)))) }
	row := Row{
		Suite: suite, Scenario: scenario, Subject: subject, Rounds: len(rounds),
		RPS: median(RPS), ClientUS: median(ClientUS), ServerUS: median(ServerUS),
		P50US: median(P50US), P99US: median(P99US), P999US: median(P999US),
		NsOp: median(NsOp), BytesOp: median(BytesOp), Allocs: median(Allocs), PerRead: median(PerRead),
		Spread: number(Spread(present(column(rounds, primary)))),
	}
	for _, s := range rounds {
		row.Errors += s.Errors
	}
	return row
}

// A rawLine is one line of the raw results: a round of a subject, or a verdict.
type rawLine struct {
	Suite    string              `json:"suite"`
	Scenario string              `json:"scenario"`
	Subject  string              `json:"subject,omitempty"`
	Round    int                 `json:"round,omitempty"`
	Values   map[Metric]*float64 `json:"values,omitempty"`
	Errors   uint64              `json:"errors"`
	Error    string              `json:"error_sample,omitempty"`
	Doubts   []string            `json:"doubts,omitempty"`
	Partial  string              `json:"partial,omitempty"`
	Details  any                 `json:"details,omitempty"`
	Verdict  string              `json:"verdict,omitempty"`
	Seed     uint64              `json:"seed"`
	Environment
}

// ReadRows reads a results file. If the file does not exist, there are no rows.
func ReadRows(path string) ([]Row, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var rows []Row
	if err := json.Unmarshal(data, &rows); err != nil {
		return nil, fmt.Errorf("load: results %s: %w", path, err)
	}
	return rows, nil
}

// storeRows replaces the rows of one scenario in the results file and keeps the others, so that
// part of a suite can be measured again. order lists the scenarios of the suite; rows of scenarios
// that are not listed are removed.
func storeRows(path string, order []string, scenario string, rows []Row) error {
	old, err := ReadRows(path)
	if err != nil {
		return err
	}
	all := slices.DeleteFunc(old, func(r Row) bool {
		return r.Scenario == scenario || !slices.Contains(order, r.Scenario)
	})
	all = append(all, rows...)
	slices.SortStableFunc(all, func(a, b Row) int {
		return slices.Index(order, a.Scenario) - slices.Index(order, b.Scenario)
	})
	var out bytes.Buffer
	out.WriteString("[\n")
	for i, row := range all {
		line, err := json.Marshal(row)
		if err != nil {
			return fmt.Errorf("load: results %s: %w", path, err)
		}
		out.Write(line)
		if i < len(all)-1 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
	}
	out.WriteString("]\n")
	return replaceFile(path, out.Bytes())
}

// storeRaw replaces the lines of one scenario in the raw results.
func storeRaw(path string, order []string, scenario string, lines []rawLine) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var out bytes.Buffer
	for line := range bytes.Lines(old) {
		var head struct {
			Scenario string `json:"scenario"`
		}
		if err := json.Unmarshal(line, &head); err != nil {
			return fmt.Errorf("load: raw results %s: %w", path, err)
		}
		if head.Scenario != scenario && slices.Contains(order, head.Scenario) {
			out.Write(line)
		}
	}
	for _, l := range lines {
		line, err := json.Marshal(l)
		if err != nil {
			return fmt.Errorf("load: raw results %s: %w", path, err)
		}
		out.Write(line)
		out.WriteByte('\n')
	}
	return replaceFile(path, out.Bytes())
}

// replaceFile replaces the file at path atomically: a crash leaves either the old or the new
// content.
func replaceFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, data, 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
