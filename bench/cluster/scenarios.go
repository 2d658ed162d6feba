package main

import (
	"context"
	"fmt"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/redisload"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Windows: long enough for 100,000 requests of the fast clients.
const (
	closedWindow = 600 * time.Millisecond
	rateWindow   = 800 * time.Millisecond
	// topologyWindow is longer than the time between two refreshes of those that refresh often.
	topologyWindow = 12 * time.Second
)

// topology is the scenario that counts requests for the topology, at the lowest rate.
const topology = "topology/5k"

// valueSize is the size of values.
const valueSize = 16

// callers of the closed loops, and rates of the rate-limited scenarios in requests a second.
var (
	callers = []int{16, 128, 1024, 8192}
	rates   = []int{5_000, 20_000, 80_000, 160_000}
)

// single is ours over a single server without a cluster: it shows the cost of a cluster for ours.
const single = load.Ours + "-single"

// clustered reports whether a client supports clusters.
func clustered(k redisload.Kind) bool { return k.Clustered() }

// kindOf returns the kind of a subject.
func kindOf(subject string) (redisload.Kind, bool) {
	if subject == single {
		subject = load.Ours
	}
	return redisload.KindOf(subject)
}

// rounds returns the rounds of all scenarios.
func (h *harness) rounds() []round {
	var all []round
	for _, n := range callers {
		all = append(all, round{
			scenario: fmt.Sprintf("closed/%d", n), callers: n, window: h.options.Window(closedWindow, quickWindow),
			work: redisload.Work{Operation: redisload.OpPair, Size: valueSize},
		})
	}
	for _, rate := range rates {
		all = append(all, h.limited(fmt.Sprintf("rate/%dk", rate/1000), rate, rateWindow))
	}
	return append(all, h.limited(topology, rates[0], topologyWindow))
}

// limited returns a round at a fixed rate.
func (h *harness) limited(name string, rate int, window time.Duration) round {
	return round{
		scenario: name, callers: rate / 1000 * redisload.RateCallers, sent: true, window: h.options.Window(window, quickWindow),
		work: redisload.Work{
			Operation: redisload.OpPair, Size: valueSize, Clients: redisload.RateClients,
			Design: redisload.DesignRight, Rate: float64(rate),
		},
	}
}

// Scenarios implements [command.Harness].
func (h *harness) Scenarios() []load.Scenario {
	var all []load.Scenario
	for _, r := range h.rounds() {
		sc := load.Scenario{Name: r.scenario, Primary: load.ClientUS, Close: h.stage.Close, Goals: goals()}
		names := append(redisload.SubjectNames(clustered), single)
		if r.scenario == topology {
			sc.Goals, sc.Rounds = nil, h.options.Fixed(1)
			names = redisload.SubjectNames(func(k redisload.Kind) bool { return k.Clustered() && !k.Variant })
		}
		for _, name := range names {
			sc.Subjects = append(sc.Subjects, load.Subject{Name: name, Variant: name == single, Run: func(ctx context.Context, number int) (load.Sample, error) {
				return h.run(ctx, name, r, number)
			}})
		}
		all = append(all, sc)
	}
	return all
}
