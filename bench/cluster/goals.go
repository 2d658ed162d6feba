package main

import (
	"fmt"
	"io"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/redisload"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Targets that are ratios to the best rival: of client CPU, and of the commands that the servers
// receive per read.
const (
	clientGoal  = 0.8
	perReadGoal = 1.0
)

// routingGoal is the maximum share of the client's CPU time for finding the node of a command.
const routingGoal = 0.03

// goals are the targets of every scenario but topology: none has fewer than 15 callers.
func goals() []load.Goal {
	return []load.Goal{{Metric: load.ClientUS, Ratio: clientGoal}, {Metric: load.PerRead, Ratio: perReadGoal}}
}

// Check implements [command.Harness].
func (h *harness) Check(w io.Writer, rows []load.Row) error {
	checkPerRead(w, rows)
	checkCost(w, rows)
	h.writeQuestions(w)
	return command.Failures(rows)
}

// checkPerRead compares ours with the best rival that never waits for more commands. The goal also
// includes rivals that wait, which send the most commands per read but answer late.
func checkPerRead(w io.Writer, rows []load.Row) {
	for _, row := range rows {
		if row.Subject != load.Ours || row.PerRead == nil {
			continue
		}
		best, name := 0.0, ""
		for _, k := range redisload.Rivals {
			if r, ok := command.Find(rows, row.Scenario, k.Name); ok && k.NoWait && r.PerRead != nil && *r.PerRead > best {
				best, name = *r.PerRead, k.Name
			}
		}
		if name != "" {
			fmt.Fprintf(w, "%s: per_read >= that of %s, the best rival that never waits: %s (%.2f and %.2f)\n",
				row.Scenario, name, command.Verdict(*row.PerRead >= best), *row.PerRead, best)
		}
	}
}

// checkCost prints what a cluster costs ours compared with a single server.
func checkCost(w io.Writer, rows []load.Row) {
	for _, row := range rows {
		if row.Subject != load.Ours || row.ClientUS == nil {
			continue
		}
		if one, ok := command.Find(rows, row.Scenario, single); ok && one.ClientUS != nil && *one.ClientUS > 0 {
			fmt.Fprintf(w, "%s: client_us of ours is %.2f of that over one server (%.2f and %.2f)\n",
				row.Scenario, *row.ClientUS / *one.ClientUS, *row.ClientUS, *one.ClientUS)
		}
	}
}

// writeQuestions prints how often clients requested the topology, and how often they were
// redirected.
func (h *harness) writeQuestions(w io.Writer) {
	for _, subject := range redisload.SubjectNames(clustered) {
		q := h.asked[subject]
		if q == nil {
			continue
		}
		fmt.Fprintf(w, "%s: %.0f redirections in all windows", subject, q.moved)
		if q.seconds > 0 {
			fmt.Fprintf(w, ", %.3f requests for the topology a second and client in the %.0f s of %s",
				q.topology/q.seconds/redisload.RateClients, q.seconds, topology)
		}
		fmt.Fprintln(w)
	}
}
