package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/tarantoolserver"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Windows: long enough for 100,000 requests of the fast clients, and for pairs much longer than the
// time in which their channels fill and drain.
const (
	callersWindow = 600 * time.Millisecond
	pairsWindow   = time.Second
)

// sideRounds is the number of rounds of scenarios that have no goals.
const sideRounds = 6

// Prefixes of the names of scenarios, followed by the number of callers.
const (
	blocking      = "blocking/"
	reuse         = "reuse/"
	syncCallers   = "sync/"
	asyncPairs    = "async/"
	async16       = "async-16conn/"
	ctxCallers    = "ctx/"
	ctxPairs      = "ctx-async/"
	defaultServer = "default/" // precedes the name of a scenario whose server is not tarantoolserver.Tuned
)

// manySockets is the number of connections of async-16conn.
const manySockets = 16

var (
	callerCounts = []int{1, 8, 64, 512, 1024, 8192}
	pairCounts   = []int{1, 4, 16, 64, 512}
)

// Variants of ours: background has no context that can end, in scenarios whose subjects otherwise
// have one; apart has a client for each socket, in scenarios with several.
const (
	background = load.Ours + "-background"
	apart      = load.Ours + "-apart"
)

// rounds returns the rounds of all scenarios, in order.
func (h *harness) rounds() (all []round) {
	add := func(name string, callers int, w work) {
		r := round{scenario: fmt.Sprint(name, callers), settings: tarantoolserver.Tuned, work: w, callers: callers, window: h.options.Window(callersWindow, quickWindow)}
		if w.Mode == modePairs {
			r.window = h.options.Window(pairsWindow, quickWindow)
		}
		if strings.HasPrefix(name, defaultServer) {
			r.settings = ""
		}
		all = append(all, r)
	}
	add(blocking, 1, work{Mode: modeNaive})
	add(reuse, 1, work{Mode: modePrepared})
	for _, n := range callerCounts {
		add(syncCallers, n, work{Mode: modeTyped})
	}
	for _, n := range pairCounts {
		add(asyncPairs, n, work{Mode: modePairs})
	}
	for _, n := range pairCounts {
		add(async16, n, work{Mode: modePairs, Sockets: manySockets})
	}
	add(ctxCallers, 512, work{Mode: modeTyped, Deadline: true})
	add(ctxPairs, 16, work{Mode: modePairs, Deadline: true})
	add(defaultServer+syncCallers, 512, work{Mode: modeTyped})
	add(defaultServer+syncCallers, 8192, work{Mode: modeTyped})
	add(defaultServer+asyncPairs, 16, work{Mode: modePairs})
	return all
}

// Scenarios implements [command.Harness]: all subjects are compared in each of the rounds.
func (h *harness) Scenarios() (all []load.Scenario) {
	for _, r := range h.rounds() {
		sc := load.Scenario{Name: r.scenario, Primary: load.ClientUS, Goals: goals(r.scenario), Close: h.closeServer}
		for _, k := range kinds() {
			sc.Subjects = append(sc.Subjects, h.subject(k.name, r))
		}
		sc.Subjects = append(sc.Subjects, h.subject(load.Control, r))
		for name, here := range map[string]bool{
			background: r.work.Deadline, apart: r.work.Sockets > 1,
			floor: begins(r.scenario, []string{syncCallers, asyncPairs}),
		} {
			if here {
				variant := h.subject(name, r)
				variant.Variant = true
				sc.Subjects = append(sc.Subjects, variant)
			}
		}
		if sc.Goals == nil {
			sc.Rounds = h.options.Fixed(sideRounds)
		}
		all = append(all, sc)
	}
	return all
}

func (h *harness) subject(name string, r round) load.Subject {
	return load.Subject{Name: name, Run: func(ctx context.Context, number int) (load.Sample, error) {
		return h.run(ctx, name, r, number)
	}}
}
