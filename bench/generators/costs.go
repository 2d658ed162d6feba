package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/internal/load"
)

// writeCosts prints the figures by which generators are compared, from the raw results: requests
// per CPU second of the generator, and the cost of their requests for the server.
func writeCosts(w io.Writer, p command.Place) error {
	rounds, err := p.ReadRaw(suiteName)
	if err != nil {
		return err
	}
	h := newHarness(&command.Flags{}, p, io.Discard)
	for _, s := range h.settings {
		if len(rounds[s.name]) == 0 {
			continue
		}
		var b strings.Builder
		fmt.Fprintf(&b, "\n**%s**, medians\n\n| generator | requests per CPU second | relative to the first | CPU of the server, us per request | its reads and writes per request | rounds |\n|---|---:|---:|---:|---:|---:|\n", s.name)
		first := 0.0
		for _, g := range s.generators {
			lines := rounds[s.name][g.name]
			if len(lines) == 0 || g.name == load.Control {
				continue
			}
			calls, err := callsOf(lines)
			if err != nil {
				return err
			}
			each := 1e6 / load.Median(rounds.Metric(s.name, g.name, load.ClientUS))
			if first == 0 {
				first = each
			}
			fmt.Fprintf(&b, "| %s | %.0f | %.2f | %.2f | %.2f | %d |\n", g.name, each, each/first, load.Median(rounds.Metric(s.name, g.name, load.ServerUS)), load.Median(calls), len(lines))
		}
		if _, err := io.WriteString(w, b.String()); err != nil {
			return err
		}
	}
	return nil
}

// callsOf returns the system calls of the server per request in each round.
func callsOf(lines []command.RawRound) ([]float64, error) {
	all := make([]float64, len(lines))
	for i, line := range lines {
		var d details
		if err := json.Unmarshal(line.Details, &d); err != nil {
			return nil, fmt.Errorf("details of %s in %s: %w", line.Subject, line.Scenario, err)
		}
		all[i] = d.Calls
	}
	return all, nil
}

// chosen reports whether the flags select a setting for -calls.
func (h *harness) chosen(s *setting) bool {
	return h.filter == "" || slices.ContainsFunc(strings.Split(h.filter, ","), func(beginning string) bool {
		return strings.HasPrefix(s.name, beginning)
	})
}
