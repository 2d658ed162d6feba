package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/redisload"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Windows: long enough for 100,000 requests of the fast clients.
const (
	closedWindow = 600 * time.Millisecond
	rateWindow   = 800 * time.Millisecond
)

// sideRounds is the number of rounds of scenarios that have no goals.
const sideRounds = 6

// rates are the total rates of all clients.
var rates = []int{5_000, 20_000, 80_000, 160_000, 320_000}

func rateName(rate int) string { return fmt.Sprintf("%dk", rate/1000) }

// Scenarios implements [command.Harness].
func (h *harness) Scenarios() []load.Scenario {
	var all []load.Scenario
	for _, c := range []struct {
		name    string
		work    redisload.Work
		callers []int
	}{
		{"closed", redisload.Work{Operation: redisload.OpGet, Size: 16}, []int{1, 16, 128, 1024, 8192}},
		{"closed-set", redisload.Work{Operation: redisload.OpSet, Size: 16}, []int{16, 128, 1024, 8192}},
		{"closed-1k", redisload.Work{Operation: redisload.OpGet, Size: 1024}, []int{16, 128, 1024, 8192}},
		{"closed-64k", redisload.Work{Operation: redisload.OpGet, Size: 64 << 10}, []int{1, 16, 128}},
	} {
		for _, callers := range c.callers {
			all = append(all, h.closed(c.name, c.work, callers))
		}
	}
	for _, burst := range []bool{false, true} {
		all = append(all, h.rateLimited(burst)...)
	}
	for _, design := range []string{redisload.DesignRight, redisload.DesignA, redisload.DesignB, redisload.DesignC} {
		all = append(all, h.design(design, 80_000))
	}
	all = append(all, h.contexts()...)
	all = append(all, h.cached(), h.blocked(), h.batches(1), h.batches(8))
	return append(append(all, h.memory()...), h.stopped())
}

// scenario returns a comparison of the subjects that match.
func (h *harness) scenario(r round, match func(redisload.Kind) bool) load.Scenario {
	sc := load.Scenario{Name: r.scenario, Primary: load.ClientUS, Close: h.stage.Close}
	for _, name := range redisload.SubjectNames(match) {
		k, _ := redisload.KindOf(name)
		sc.Subjects = append(sc.Subjects, h.subject(name, k.Name, r))
	}
	return sc
}

func (h *harness) subject(name, target string, r round) load.Subject {
	r.target = target
	return load.Subject{Name: name, Run: func(ctx context.Context, number int) (load.Sample, error) {
		return h.run(ctx, r, number)
	}}
}

// closed has callers that wait for their reply before their next request.
func (h *harness) closed(name string, w redisload.Work, callers int) load.Scenario {
	r := round{scenario: fmt.Sprintf("%s/%d", name, callers), work: w, callers: callers, warmUp: h.warmUp, window: h.options.Window(closedWindow, quickWindow)}
	sc := h.scenario(r, nil)
	sc.Goals = closedGoals(name, callers)
	return sc
}

// rateLimited returns the article's experiment and its variations.
func (h *harness) rateLimited(burst bool) []load.Scenario {
	name := "rate-serial"
	if burst {
		name = "rate-burst"
	}
	some := []int{20_000, 80_000}
	proxied := some
	if _, err := nutcrackerPath(); err != nil && !strings.Contains(h.options.Scenario, "nutcracker") {
		fmt.Fprintf(h.progress, "%s: omitted %s-nutcracker: %v\n", suiteName, name, err)
		proxied = nil
	}
	var all []load.Scenario
	for _, v := range []struct {
		suffix  string
		size    int
		way     path
		precise bool
		rates   []int
	}{
		{"", 16, path{}, false, rates},
		{"-768", 768, path{}, false, rates},
		{"-precise", 16, path{}, true, some},
		{"-nutcracker", 16, path{nutcracker: true}, false, proxied},
		{"-0.2ms", 16, path{delay: 200 * time.Microsecond}, false, some},
		{"-1ms", 16, path{delay: time.Millisecond}, false, some},
		{"-50ms", 16, path{delay: 50 * time.Millisecond}, false, some},
	} {
		for _, rate := range v.rates {
			r := round{
				scenario: name + v.suffix + "/" + rateName(rate),
				work:     redisload.Work{Operation: redisload.OpGet, Size: v.size, Clients: redisload.RateClients}, way: v.way,
				callers: rate / 1000 * redisload.RateCallers,
				warmUp:  h.warmUp, window: h.options.Window(rateWindow, quickWindow), sent: true,
			}
			switch {
			case !v.precise:
				r.work.Design, r.work.Rate, r.work.Burst = redisload.DesignRight, float64(rate), burst
			case burst:
				r.batch = redisload.SeriesMax
				fallthrough
			default:
				r.arrivals = load.Arrivals{Process: load.Bursts, Rate: float64(rate)}
			}
			sc := h.scenario(r, nil)
			if v.suffix == "" {
				sc.Goals = rateGoals(rate)
			} else {
				sc.Rounds = h.options.Fixed(sideRounds)
			}
			all = append(all, sc)
		}
	}
	return all
}

// design returns one of the article's benchmark designs at one rate.
func (h *harness) design(design string, rate int) load.Scenario {
	name := "wrong-design-" + design
	if design == redisload.DesignRight {
		name = "design-right"
	}
	sc := h.scenario(round{
		scenario: name + "/" + rateName(rate),
		work:     redisload.Work{Operation: redisload.OpGet, Size: 16, Clients: redisload.RateClients, Design: design, Rate: float64(rate)},
		callers:  rate / 1000 * redisload.RateCallers, warmUp: h.warmUp, window: h.options.Window(rateWindow, quickWindow), sent: true,
	}, func(k redisload.Kind) bool {
		return k.Name == "redigo" || strings.HasPrefix(k.Name, "redispipe") || k.Name == "rueidis" || k.Name == load.Ours
	})
	sc.Rounds = h.options.Fixed(sideRounds)
	return sc
}

// background is ours without a context that can end, in scenarios whose
// subjects otherwise have one.
const background = load.Ours + "-background"

// contexts compares clients whose callers wait with a cancelable context that has a deadline. Each
// subject also appears with context.Background, as a variant.
func (h *harness) contexts() []load.Scenario {
	var all []load.Scenario
	for _, callers := range []int{128, 1024} {
		with := round{
			scenario: fmt.Sprintf("ctx/%d", callers), work: redisload.Work{Operation: redisload.OpGet, Size: 16, Deadline: true},
			callers: callers, warmUp: h.warmUp, window: h.options.Window(closedWindow, quickWindow),
		}
		without := with
		without.work.Deadline = false
		sc := h.scenario(with, contextual)
		for _, k := range redisload.Kinds() {
			if contextual(k) {
				subject := h.subject(k.Name+"-background", k.Name, without)
				subject.Variant = true
				sc.Subjects = append(sc.Subjects, subject)
			}
		}
		sc.Goals = []load.Goal{{Metric: load.ClientUS, Rival: background, Ratio: 1.05}}
		all = append(all, sc)
	}
	return all
}

// cached compares client-side caches: after the first request for a key no other is sent.
func (h *harness) cached() load.Scenario {
	r := round{
		scenario: "cached/128", work: redisload.Work{Operation: redisload.OpGet, Size: 128, Cached: true},
		callers: 128, warmUp: h.warmUp, window: h.options.Window(closedWindow, quickWindow),
	}
	sc := h.scenario(r, func(k redisload.Kind) bool { return k.Name == "rueidis" || k.Name == load.Ours })
	sc.Goals = []load.Goal{{Metric: load.ClientUS, Rival: "rueidis", Ratio: 1}}
	return sc
}

// batches has callers with explicit batches of 1,000 GETs; an operation is a batch.
func (h *harness) batches(callers int) load.Scenario {
	sc := h.scenario(round{
		scenario: fmt.Sprintf("batch-1000/%d", callers), work: redisload.Work{Operation: redisload.OpBatch, Size: 16},
		callers: callers, warmUp: h.warmUp, window: h.options.Window(closedWindow, quickWindow),
	}, func(k redisload.Kind) bool {
		switch k.Name {
		case "redigo", "go-redis-pool", "rueidis", "redispipe", "radix", load.Ours:
			return true
		}
		return false
	})
	for _, rival := range []string{"redigo", "go-redis-pool", "rueidis", "redispipe", "radix"} {
		sc.Goals = append(sc.Goals, load.Goal{Metric: load.ClientUS, Rival: rival, Ratio: 0.9})
	}
	return sc
}

// unblocked is ours without waiting calls.
const unblocked = load.Ours + "-unblocked"

// blocked has 128 callers on the shared connection while 1,000 calls of the same client wait at the
// server.
func (h *harness) blocked() load.Scenario {
	with := round{
		scenario: "closed-blocked/128", work: redisload.Work{Operation: redisload.OpGet, Size: 16, Blocked: 1000},
		callers: 128, warmUp: h.warmUp, window: h.options.Window(closedWindow, quickWindow),
	}
	without := with
	without.work.Blocked = 0
	sc := h.scenario(with, func(k redisload.Kind) bool { return k.Name == load.Ours })
	sc.Subjects = append(sc.Subjects, h.subject(unblocked, load.Ours, without))
	sc.Goals = []load.Goal{{Metric: load.ClientUS, Rival: unblocked, Ratio: 1.05}}
	return sc
}

// contextual lists the clients for which the cost of a context is measured: ours and the rivals
// that pipeline and support contexts.
func contextual(k redisload.Kind) bool {
	switch k.Name {
	case "rueidis", "redispipe", "go-redis-ap-full", load.Ours:
		return true
	}
	return false
}
