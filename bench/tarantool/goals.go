package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/internal/load"
)

// clientShare is the maximum CPU time of ours as a fraction of that of the best
// rival.
var clientShare = map[string]float64{
	syncCallers + "512": 0.30, syncCallers + "8192": 0.40,
	asyncPairs + "16": 0.22, asyncPairs + "64": 0.22, asyncPairs + "512": 0.22,
}

// ctxShare is the maximum relative cost of a context that can end.
const ctxShare = 1.05

// goals returns those targets of a scenario that are ratios.
func goals(scenario string) []load.Goal {
	if share, ok := clientShare[scenario]; ok {
		return []load.Goal{{Metric: load.ClientUS, Rival: goTarantool3Release, Ratio: share}}
	}
	if withContext(scenario) {
		return []load.Goal{{Metric: load.ClientUS, Rival: background, Ratio: ctxShare}}
	}
	return nil
}

func withContext(scenario string) bool {
	return strings.HasPrefix(scenario, ctxCallers) || strings.HasPrefix(scenario, ctxPairs)
}

// Check implements [command.Harness].
func (h *harness) Check(w io.Writer, rows []load.Row) error {
	checkManyCallers(w, rows)
	checkAllocations(w, rows)
	return command.Failures(expected(w, rows))
}

// unsound reports whether calls of a subject fail or hang in a scenario: releasing a future whose
// request has a context is not safe in go-tarantool v3.0.0.
func unsound(subject, scenario string) bool {
	return subject == goTarantool3Release && withContext(scenario)
}

// expected returns the rows in which no request should fail, and prints the failures of the others.
func expected(w io.Writer, rows []load.Row) (others []load.Row) {
	for _, row := range rows {
		if !unsound(row.Subject, row.Scenario) {
			others = append(others, row)
			continue
		}
		if row.Errors > 0 {
			fmt.Fprintf(w, "%s: %d requests of %s failed\n", row.Scenario, row.Errors, row.Subject)
		}
	}
	return others
}

// manyCallers is the share of its best rate that ours must reach with 8,192 callers.
const manyCallers = 0.9

func checkManyCallers(w io.Writer, rows []load.Row) {
	best, most := 0.0, 0.0
	for _, row := range rows {
		if row.Subject != load.Ours || !strings.HasPrefix(row.Scenario, syncCallers) || row.RPS == nil {
			continue
		}
		best = max(best, *row.RPS)
		if row.Scenario == syncCallers+"8192" {
			most = *row.RPS
		}
	}
	if most > 0 {
		fmt.Fprintf(w, "%s8192: rps >= %.1f of our best %sN in this run: %s (%.0f and %.0f)\n",
			syncCallers, manyCallers, syncCallers, command.Verdict(most >= manyCallers*best), most, best)
	}
}

// fewAllocations is the number below which there are considered to be no allocations: the generator
// and the runtime occasionally allocate a little.
const fewAllocations = 0.01

// ownAllocations returns the number of objects that the generator allocates in a window: two for
// each caller and some hundred.
func ownAllocations(callers int) int { return 2*callers + 300 }

// checkAllocations checks that a typed result allocates no objects. If there are few requests for
// the number of callers, the objects of the generator itself dominate.
func checkAllocations(w io.Writer, rows []load.Row) {
	for _, r := range new(harness).rounds() {
		row, ok := command.Find(rows, r.scenario, load.Ours)
		if !ok || row.Allocs == nil || row.RPS == nil || r.work.Mode == modeNaive {
			continue
		}
		verdict := string(command.Verdict(*row.Allocs < fewAllocations))
		own := float64(ownAllocations(r.callers)) / (*row.RPS * r.window.Seconds())
		if *row.Allocs >= fewAllocations && *row.Allocs < 4*own { // these are medians, and some rounds have fewer requests
			verdict = fmt.Sprintf("cannot tell, the generator's own are %.4f", own)
		}
		fmt.Fprintf(w, "%s: 0 allocations for a typed result: %s (%.4f)\n", r.scenario, verdict, *row.Allocs)
	}
}
