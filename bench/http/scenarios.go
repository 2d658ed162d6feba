package main

import (
	"context"
	"fmt"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

// depth is how many requests a pipelining client sends in one write.
const depth = 16

// Scenarios implements [command.Harness].
func (h *harness) Scenarios() []load.Scenario {
	var all []load.Scenario
	for _, connections := range []int{64, 1024, 16384} {
		all = append(all, h.hit(fmt.Sprintf("hit/%d", connections), connections, hitGoals(connections), nil))
	}
	pipelined := []load.Goal{{Metric: load.ServerUS, Rival: floorName, Ratio: 1.25}}
	all = append(all, h.hit(fmt.Sprintf("pipelined-%d/64", depth), 64, pipelined, func(s *loadproc.Spec) { s.Batch = depth }))
	all = append(all, h.fullHit(64), h.idle(10_000))
	all = append(all, h.tlsScenarios()...)
	for _, rival := range h.present(rivals...) {
		if rival != "fasthttp-64k" { // one goal against fasthttp is enough
			all = append(all, h.halfRate(rival, 64))
		}
	}
	if sc, ok := h.foreign(64); ok {
		all = append(all, sc)
	}
	return all
}

// hitGoals returns the targets for a hit with the given number of connections.
func hitGoals(connections int) []load.Goal {
	article, ok := map[int]float64{64: 0.33, 1024: 0.43}[connections]
	if !ok {
		return nil
	}
	var goals []load.Goal
	for _, g := range []struct {
		rival string
		ratio float64
	}{{floorName, 1.15}, {"nginx", 0.8}, {"varnish", 0.8}, {"fasthttp", 0.75}, {"article", article}} {
		goals = append(goals, load.Goal{Metric: load.ServerUS, Rival: g.rival, Ratio: g.ratio})
	}
	return goals
}

// hit compares all subjects with documents in memory. ask may change the load.
func (h *harness) hit(name string, connections int, goals []load.Goal, ask func(*loadproc.Spec)) load.Scenario {
	names := h.present(append([]string{load.Ours, load.Control, onNetHTTP}, rivals...)...)
	return h.scenario(name, load.ServerUS, goals, names, func(ctx context.Context, name string, round int) (load.Sample, error) {
		return h.hitOnce(ctx, name, connections, round, ask, nil)
	})
}

// scenario measures each of names once per round.
func (h *harness) scenario(name string, primary load.Metric, goals []load.Goal, names []string,
	run func(ctx context.Context, name string, round int) (load.Sample, error)) load.Scenario {
	sc := load.Scenario{Name: name, Primary: primary, Goals: goals}
	for _, n := range names {
		sc.Subjects = append(sc.Subjects, load.Subject{Name: n, Variant: n == onNetHTTP || n == off || n == clearText, Run: func(ctx context.Context, round int) (load.Sample, error) {
			return run(ctx, n, round)
		}})
	}
	return sc
}

// hitOnce measures one subject with a fresh process.
func (h *harness) hitOnce(ctx context.Context, name string, connections, round int, ask func(*loadproc.Spec), prove func(context.Context, *subject.Server) error) (load.Sample, error) {
	p, err := h.program(ctx, name)
	if err != nil {
		return load.Sample{}, err
	}
	hit := subject.Hit{Callers: connections, WarmUp: h.warmUp, Window: h.window, Seed: uint64(round), Prove: prove}
	hit.Ask = func(s *loadproc.Spec) {
		s.Depts = true
		if ask != nil {
			ask(s)
		}
	}
	return hit.Run(ctx, p)
}

// halfRate compares latencies with one rival while both run at half the maximum
// rate of the slower one: at the limit, the latency is that of the queue.
func (h *harness) halfRate(rival string, connections int) load.Scenario {
	goals := []load.Goal{{Metric: load.P99US, Rival: rival, Ratio: 1}}
	run := func(ctx context.Context, name string, round int) (load.Sample, error) {
		rate, err := h.weaker(ctx, rival, connections)
		if err != nil {
			return load.Sample{}, err
		}
		var prove func(context.Context, *subject.Server) error
		if name == load.Ours || name == load.Control {
			prove = h.lateEvents("half-rate-" + rival)
		}
		return h.hitOnce(ctx, name, connections, round, func(s *loadproc.Spec) {
			s.Arrivals = load.Arrivals{Process: load.Poisson, Rate: rate / 2}
		}, prove)
	}
	return h.scenario(fmt.Sprintf("half-rate-%s/%d", rival, connections), load.P99US, goals, []string{load.Ours, load.Control, rival}, run)
}

// lateEvents returns a function that, when called for the second time, prints how many connections may have been ready
// for more than a millisecond while another loop of the gateway slept.
func (h *harness) lateEvents(scenario string) func(context.Context, *subject.Server) error {
	const events, late = "slipstream_engine_events_total", "slipstream_engine_late_events_total"
	var before map[string]float64
	return func(ctx context.Context, server *subject.Server) error {
		page, err := loadproc.Scrape(ctx, server.Metrics)
		if err != nil || before == nil {
			before = page
			return err
		}
		all, tardy := page[events]-before[events], page[late]-before[late]
		fmt.Fprintf(h.progress, "%s: %s: %.0f of %.0f ready connections (%.3f %%) may have waited 1 ms while another loop slept\n",
			suiteName, scenario, tardy, all, 100*tardy/max(1, all))
		return nil
	}
}

// weaker returns the rate of the slower of ours and a rival in a closed loop, measured once per run
// of the suite.
func (h *harness) weaker(ctx context.Context, rival string, connections int) (float64, error) {
	for _, name := range []string{load.Ours, rival} {
		if h.rates[name] > 0 {
			continue
		}
		sample, err := h.hitOnce(ctx, name, connections, 0, nil, nil)
		if err != nil {
			return 0, fmt.Errorf("maximum rate of %s: %w", name, err)
		}
		if sample.Errors > 0 || !(sample.Values[load.RPS] > 0) {
			return 0, fmt.Errorf("maximum rate of %s: %d requests failed: %s", name, sample.Errors, sample.ErrorSample)
		}
		h.rates[name] = sample.Values[load.RPS]
		fmt.Fprintf(h.progress, "%s: the maximum rate of %s is %.0f requests a second over %d connections in %v\n",
			suiteName, name, h.rates[name], connections, h.window.Round(time.Millisecond))
	}
	return min(h.rates[load.Ours], h.rates[rival]), nil
}
