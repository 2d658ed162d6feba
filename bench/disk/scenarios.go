package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

const (
	// cpuGoal is the minimum ratio of requests per CPU second of ours to those of the article over
	// its file; oneGoal is the ratio with a single connection.
	cpuGoal = 1.6
	oneGoal = 1.3
	// manyGoal is the share of its highest rate that ours should reach with 4,096 and 16,384
	// connections.
	manyGoal = 0.7
)

// hits is the prefix of the names of the scenarios with documents on disk.
const hits = "disk-hit/"

// Scenarios implements [command.Harness].
func (h *harness) Scenarios() []load.Scenario {
	var all []load.Scenario
	for _, connections := range []int{1, 64, 1024, 4096, 16384} {
		all = append(all, h.diskHit(connections))
	}
	all = append(all, h.fillScenario())
	return append(all, h.curves()...)
}

// goalOf returns the target for a number of connections.
func goalOf(connections int) float64 {
	if connections == 1 {
		return oneGoal
	}
	return cpuGoal
}

// diskHit compares ours with the article, each with documents in its own file.
func (h *harness) diskHit(connections int) load.Scenario {
	sc := load.Scenario{
		Name: fmt.Sprintf(hits+"%d", connections), Primary: load.ServerUS,
		// The goals for requests per CPU second, expressed as goals for CPU time per request.
		Goals: []load.Goal{{Metric: load.ServerUS, Rival: articleBBolt, Ratio: 1 / goalOf(connections)}},
	}
	for _, name := range []string{load.Ours, load.Control, articleBBolt} {
		sc.Subjects = append(sc.Subjects, load.Subject{Name: name, Run: func(ctx context.Context, round int) (load.Sample, error) {
			p, err := h.program(ctx, name)
			if err != nil {
				return load.Sample{}, err
			}
			status := diskStatus
			if name == articleBBolt {
				status = ""
			}
			return h.hit(connections, round, status).Run(ctx, p)
		}})
	}
	return sc
}

// hit is a window over all documents. Its first pass compares each of them with
// package depts, and touches every page of a mapped file.
func (h *harness) hit(connections, round int, status string, env ...string) subject.Hit {
	return subject.Hit{
		Callers: connections, WarmUp: h.warmUp, Window: h.window, Seed: uint64(round), Env: env,
		Ask: func(s *loadproc.Spec) {
			s.Keys, s.Depts, s.Learners, s.CacheStatus = h.options.documents, true, learners, status
		},
	}
}

// checkHits prints the requests per CPU second, from medians; the verdicts on the goals are based
// on the rounds.
func checkHits(w io.Writer, rows []load.Row) {
	for _, row := range rows {
		if row.Subject != load.Ours || !strings.HasPrefix(row.Scenario, hits) {
			continue
		}
		ours, article, err := bothCosts(rows, row.Scenario)
		if err != nil {
			fmt.Fprintf(w, "%s: %v\n", row.Scenario, err)
			continue
		}
		var connections int
		_, _ = fmt.Sscanf(strings.TrimPrefix(row.Scenario, hits), "%d", &connections) // 0 has the usual goal
		fmt.Fprintf(w, "%s: requests per CPU second: %.0f, %s %.0f: %.2fx, goal >= %.1fx\n", row.Scenario,
			1e6/ours, articleBBolt, 1e6/article, article/ours, goalOf(connections))
	}
}

// bothCosts returns the server's CPU time per request of ours and of the article.
func bothCosts(rows []load.Row, scenario string) (ours, article float64, err error) {
	a, okA := command.Find(rows, scenario, load.Ours)
	b, okB := command.Find(rows, scenario, articleBBolt)
	if !okA || !okB || a.ServerUS == nil || b.ServerUS == nil || *a.ServerUS == 0 {
		return 0, 0, errors.New("requests per CPU second: not measured for both")
	}
	return *a.ServerUS, *b.ServerUS, nil
}

// checkMany compares the rates of ours with very many connections with its best.
func checkMany(w io.Writer, rows []load.Row) {
	best, at, measured := 0.0, "", 0
	for _, row := range rows {
		if row.Subject != load.Ours || !strings.HasPrefix(row.Scenario, hits) || row.RPS == nil {
			continue
		}
		measured++
		if *row.RPS > best {
			best, at = *row.RPS, row.Scenario
		}
	}
	for _, scenario := range []string{hits + "4096", hits + "16384"} {
		many, ok := command.Find(rows, scenario, load.Ours)
		if !ok || many.RPS == nil || measured < 2 {
			continue // nothing to compare with
		}
		share := *many.RPS / best
		fmt.Fprintf(w, "%s: requests a second >= %.1fx of %s, the best: %s (%.2f, of medians)\n", scenario, manyGoal, at,
			command.Verdict(share >= manyGoal), share)
	}
}
