package rpcsuite

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/internal/load"
)

// kitexModes are the modes of Kitex; the better one is our rival.
var kitexModes = []string{kitexPool, kitexMux}

// cpuShare is the maximum CPU time of ours, client and server together, relative to Kitex, with 100
// and 1,000 callers.
var cpuShare = map[string]float64{echo100: 0.2, echo1k: 0.25, echo32k: 0.6}

const (
	clientShare = 0.5 // CPU time of our client on other servers, relative to their own clients
	serverShare = 0.6 // CPU time of our server with Kitex's client, relative to Kitex's server
	sleepP99    = 1.1 // p99 of our client on other servers, relative to their own clients
	mixedP99    = 3   // p99, relative to that without additional large calls
)

// own maps our variants to the subjects with the same servers and their own clients.
var own = map[string]string{onKitex: kitexPool, onKitexMux: kitexMux, onApache: apache}

// goals returns those targets of a subject in a scenario that are ratios.
func goals(name string, r round) []load.Goal {
	switch {
	case name == load.Ours:
		return oursGoals(r)
	case own[name] != "" && (r.kind == echo100 || r.kind == echo1k) && r.callers == 100:
		return []load.Goal{{Metric: load.ClientUS, Rival: own[name], Ratio: clientShare}}
	case own[name] != "" && (r.kind == sleep1 || r.kind == sleep10):
		return []load.Goal{{Metric: load.P99US, Rival: own[name], Ratio: sleepP99}}
	case name == kitexOnUs && (r.kind == echo100 || r.kind == echo1k) && r.callers > 1:
		return []load.Goal{{Metric: load.ServerUS, Rival: kitexPool, Ratio: serverShare}}
	}
	return nil
}

func oursGoals(r round) (all []load.Goal) {
	share, echoes := cpuShare[r.kind]
	for _, mode := range kitexModes {
		switch {
		case echoes && r.callers > 1:
			all = append(all, load.Goal{Metric: bothUS, Rival: mode, Ratio: share}, load.Goal{Metric: load.P99US, Rival: mode, Ratio: 1})
		case echoes:
			all = append(all, load.Goal{Metric: reads, Rival: mode, Ratio: 1}, load.Goal{Metric: sleeps, Rival: mode, Ratio: 1})
		}
	}
	if r.kind == mixed {
		all = append(all, load.Goal{Metric: load.P99US, Rival: load.Ours + alone, Ratio: mixedP99})
	}
	return all
}

// An allocationBound is a target for our allocations per call in addition to those for the user's
// values: in the client the sent note, the returned note and its text, in the server a note and its
// text.
type allocationBound struct {
	metric load.Metric
	values float64 // of the user
	most   float64 // in addition to them
}

var allocationBounds = []allocationBound{{clientAllocs, 3, 2}, {serverAllocs, 2, 2}}

// checkAllocations checks the bounds in echoes with 100 callers.
func checkAllocations(w io.Writer, raw command.RawRounds, rows []load.Row) {
	for _, row := range rows {
		if row.Subject != load.Ours || !strings.HasPrefix(row.Scenario, "echo-") || !strings.HasSuffix(row.Scenario, "/100") || strings.HasPrefix(row.Scenario, echo1kTLS) {
			continue
		}
		for _, b := range allocationBounds {
			list := raw.Metric(row.Scenario, row.Subject, b.metric)
			if len(list) == 0 {
				continue
			}
			found := load.Median(list) - b.values
			fmt.Fprintf(w, "%s: %s <= %.0f in addition to the user's values: %s (%.2f)\n", row.Scenario, b.metric, b.most, command.Verdict(math.Round(found) <= b.most), found)
		}
	}
}

// writeTable prints the figures of a call that differ between client and server, and those that are
// not in the rows.
func writeTable(w io.Writer, raw command.RawRounds, rows []load.Row) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-18s %-36s %9s", "scenario", "subject", "calls/s")
	for _, c := range columns {
		fmt.Fprintf(&b, " %9s", c.title)
	}
	b.WriteByte('\n')
	for _, row := range rows {
		if raw[row.Scenario][row.Subject] == nil {
			continue
		}
		fmt.Fprintf(&b, "%-18s %-36s %9s", row.Scenario, row.Subject, cell(raw, row, load.RPS, 0))
		for _, c := range columns {
			fmt.Fprintf(&b, " %9s", cell(raw, row, c.metric, c.decimals))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// A column is a column of the table.
type column struct {
	title    string
	metric   load.Metric
	decimals int
}

var columns = []column{
	{"client us", load.ClientUS, 2}, {"server us", load.ServerUS, 2}, {"both us", bothUS, 2},
	{"p50 us", load.P50US, 0}, {"p90 us", p90US, 0}, {"p99 us", load.P99US, 0}, {"p999 us", load.P999US, 0},
	{"c.allocs", clientAllocs, 1}, {"s.allocs", serverAllocs, 1}, {"reads", reads, 2}, {"sleeps", sleeps, 2},
}

// cell returns the median of a metric over the rounds.
func cell(raw command.RawRounds, row load.Row, m load.Metric, decimals int) string {
	list := raw.Metric(row.Scenario, row.Subject, m)
	if len(list) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.*f", decimals, load.Median(list))
}

// writeMarkdown prints the table of all stored results.
func (p *plan) writeMarkdown(w io.Writer, place command.Place) error {
	raw, err := place.ReadRaw(p.name)
	if err != nil {
		return err
	}
	var rows []load.Row
	for _, sc := range (&harness{plan: p}).Scenarios() {
		for _, s := range sc.Subjects {
			rows = append(rows, load.Row{Scenario: sc.Name, Subject: s.Name})
		}
	}
	rows = slices.DeleteFunc(rows, func(r load.Row) bool { return raw[r.Scenario][r.Subject] == nil })
	if len(rows) == 0 {
		return nil
	}
	_, err = io.WriteString(w, "\n```text\n")
	if err == nil {
		err = writeTable(w, raw, rows)
	}
	if err == nil {
		_, err = io.WriteString(w, "```\n")
	}
	return err
}
