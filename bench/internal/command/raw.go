package command

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/slipstream-go/slipstream/internal/load"
)

// A RawRound is a line of the raw results: one subject in one round of a scenario.
type RawRound struct {
	Scenario string                   `json:"scenario"`
	Subject  string                   `json:"subject"`
	Values   map[load.Metric]*float64 `json:"values"` // nil if a figure is not a number
	Details  json.RawMessage          `json:"details"`
}

// RawRounds holds the rounds of every subject, by scenario and subject.
type RawRounds map[string]map[string][]RawRound

// ReadRaw reads the raw rounds of a suite. If there are no results, it returns none.
func (p Place) ReadRaw(suite string) (RawRounds, error) {
	r := make(RawRounds)
	file, err := os.Open(filepath.Join(p.Results, "raw", suite+".jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line RawRound
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
		if line.Subject == "" || line.Values == nil {
			continue // a verdict
		}
		if r[line.Scenario] == nil {
			r[line.Scenario] = make(map[string][]RawRound)
		}
		r[line.Scenario][line.Subject] = append(r[line.Scenario][line.Subject], line)
	}
	return r, lines.Err()
}

// Metric returns the values of a metric in the rounds of a subject that have it.
func (r RawRounds) Metric(scenario, subject string, m load.Metric) (list []float64) {
	for _, line := range r[scenario][subject] {
		if v := line.Values[m]; v != nil {
			list = append(list, *v)
		}
	}
	return list
}
