package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/slipstream-go/slipstream/bench/internal/redisload"
	"github.com/slipstream-go/slipstream/internal/load"
)

// aloneRivals are the rivals in the comparison with one caller.
var aloneRivals = []string{"redigo", "rueidis", "pascaldekloe", "go-redis-ap-full"}

// closedGoals are the targets of a closed loop. An empty rival stands for the best one in that
// metric.
func closedGoals(name string, callers int) []load.Goal {
	var goals []load.Goal
	client := 0.0
	switch {
	case name == "closed" && callers == 1:
		for _, rival := range aloneRivals {
			goals = append(goals, load.Goal{Metric: load.ClientUS, Rival: rival, Ratio: 1.15}, load.Goal{Metric: load.P50US, Rival: rival, Ratio: 1.15})
		}
		return goals
	case name == "closed-64k":
		client = 1
	case name != "closed":
		client = 0.85
	case callers >= 8192:
		client = 0.6
	default:
		client = 0.8
	}
	goals = append(goals, load.Goal{Metric: load.ClientUS, Ratio: client})
	switch {
	case callers >= 128:
		goals = append(goals, load.Goal{Metric: load.ServerUS, Ratio: 1.1})
	case callers >= 16:
		goals = append(goals, load.Goal{Metric: load.ServerUS, Ratio: 1.4})
	}
	return goals
}

// rateGoals are those targets of the rate-limited experiment that are ratios.
func rateGoals(rate int) []load.Goal {
	var goals []load.Goal
	if ratio, ok := map[int]float64{20_000: 2.0, 80_000: 1.8, 160_000: 1.5}[rate]; ok {
		goals = append(goals, load.Goal{Metric: load.ServerUS, Rival: "redispipe-150us", Ratio: ratio})
	}
	if ratio, ok := map[int]float64{5_000: 1.2, 20_000: 0.7, 80_000: 0.4}[rate]; ok {
		goals = append(goals, load.Goal{Metric: load.ClientUS, Rival: "redigo", Ratio: ratio})
	}
	return goals
}

// Check implements [command.Harness].
func (h *harness) Check(w io.Writer, rows []load.Row) error {
	h.checkLatency(w, rows)
	checkManyCallers(w, rows)
	checkAllocations(w, rows)
	checkMemory(w, rows)
	h.checkStopped(w)
	writeGrowth(w, rows)
	var failed uint64
	for _, row := range rows {
		failed += row.Errors
	}
	if failed > 0 {
		return fmt.Errorf("%d requests failed, want none", failed)
	}
	return nil
}

// verdict returns the word for a target that is not a ratio of paired rounds.
func verdict(met bool) load.Outcome {
	if met {
		return load.Met
	}
	return load.Missed
}

// find returns the row of a subject in a scenario.
func find(rows []load.Row, scenario, subject string) (load.Row, bool) {
	i := slices.IndexFunc(rows, func(r load.Row) bool { return r.Scenario == scenario && r.Subject == subject })
	if i < 0 {
		return load.Row{}, false
	}
	return rows[i], true
}

// checkLatency compares the median latency of ours at each rate of the
// experiment with that of the best rival that never waits, plus one round trip.
func (h *harness) checkLatency(w io.Writer, rows []load.Row) {
	for _, row := range rows {
		if row.Subject != load.Ours || row.P50US == nil || len(rateGoalsOf(row.Scenario)) == 0 {
			continue
		}
		best, name := math.Inf(1), ""
		for _, k := range redisload.Rivals {
			if r, ok := find(rows, row.Scenario, k.Name); ok && k.NoWait && r.P50US != nil && *r.P50US < best {
				best, name = *r.P50US, k.Name
			}
		}
		trip := redisload.Micros(h.trips[row.Scenario])
		fmt.Fprintf(w, "%s: p50 <= that of %s, the best rival that never waits, plus one round trip: %s (%.0f us; %.0f us and %.0f us)\n",
			row.Scenario, name, verdict(*row.P50US <= best+trip), *row.P50US, best, trip)
	}
}

// rateGoalsOf returns the targets of a scenario of the experiment. Variations have none.
func rateGoalsOf(scenario string) []load.Goal {
	for _, rate := range rates {
		for _, name := range []string{"rate-serial/", "rate-burst/"} {
			if scenario == name+rateName(rate) {
				return rateGoals(rate)
			}
		}
	}
	return nil
}

// manyCallers is the share of its best rate that ours must reach with 8,192 callers.
const manyCallers = 0.9

func checkManyCallers(w io.Writer, rows []load.Row) {
	best, most := 0.0, 0.0
	for _, row := range rows {
		if row.Subject != load.Ours || !strings.HasPrefix(row.Scenario, "closed/") || row.RPS == nil {
			continue
		}
		best = max(best, *row.RPS)
		if row.Scenario == "closed/8192" {
			most = *row.RPS
		}
	}
	if most > 0 {
		fmt.Fprintf(w, "closed/8192: rps >= %.1f of our best closed/N in this run: %s (%.0f and %.0f)\n", manyCallers, verdict(most >= manyCallers*best), most, best)
	}
}

// checkAllocations checks that a GET into a buffer allocates no objects. The generator and the
// runtime occasionally allocate a little.
func checkAllocations(w io.Writer, rows []load.Row) {
	const few = 0.05
	for _, row := range rows {
		if row.Subject != load.Ours || row.Allocs == nil || row.Scenario != "closed/1024" && row.Scenario != "ctx/1024" {
			continue
		}
		fmt.Fprintf(w, "%s: 0 allocations for a GET into a buffer: %s (%.3f)\n", row.Scenario, verdict(*row.Allocs < few), *row.Allocs)
	}
}

// writeGrowth prints how much the server's CPU use per second grows from a rate to four times that
// rate, which shows how a server handles a surge.
func writeGrowth(w io.Writer, rows []load.Row) {
	for _, name := range []string{"rate-serial", "rate-serial-768", "rate-burst", "rate-burst-768"} {
		for _, rate := range rates {
			line := ""
			for _, subject := range redisload.SubjectNames(nil) {
				low, found := find(rows, name+"/"+rateName(rate), subject)
				high, foundHigh := find(rows, name+"/"+rateName(4*rate), subject)
				if !found || !foundHigh || low.ServerUS == nil || high.ServerUS == nil || low.RPS == nil || high.RPS == nil {
					continue
				}
				line += fmt.Sprintf(" %s %.2f (%.1f times the requests)", subject, *high.ServerUS**high.RPS/(*low.ServerUS**low.RPS), *high.RPS / *low.RPS)
			}
			if line != "" {
				fmt.Fprintf(w, "%s: server CPU per second at %s divided by that at %s:%s\n", name, rateName(4*rate), rateName(rate), line)
			}
		}
	}
}
