package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/redisload"
	"github.com/slipstream-go/slipstream/internal/load"
)

func quick(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t.TempDir(), options{Flags: command.Flags{Quick: true}}, io.Discard)
	t.Cleanup(func() {
		if err := h.stage.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// scenarioOf returns the scenario of that name.
func scenarioOf(t *testing.T, h *harness, name string) load.Scenario {
	t.Helper()
	for _, sc := range h.Scenarios() {
		if sc.Name == name {
			return sc
		}
	}
	t.Fatalf("no scenario %s", name)
	return load.Scenario{}
}

// One complete window of one subject has all figures: for a closed loop, stores, bursts at a rate,
// a wrong design, and contexts.
func TestWindowsHaveAllFigures(t *testing.T) {
	for _, name := range []string{"closed/16", "closed-set/16", "rate-serial/5k", "rate-burst-768/5k", "rate-serial-precise/20k", "rate-burst-precise/20k", "wrong-design-c/80k", "ctx/128"} {
		t.Run(name, func(t *testing.T) {
			h := quick(t)
			sc := scenarioOf(t, h, name)
			for _, subject := range sc.Subjects {
				if subject.Name != "rueidis" && subject.Name != load.Ours {
					continue
				}
				sample, err := subject.Run(t.Context(), 1)
				if err != nil {
					t.Fatal(err)
				}
				if sample.Errors != 0 {
					t.Errorf("%s: %d errors: %s", subject.Name, sample.Errors, sample.ErrorSample)
				}
				for _, m := range []load.Metric{load.RPS, load.ClientUS, load.ServerUS, load.P50US, load.P99US} {
					if !(sample.Values[m] > 0) {
						t.Errorf("%s: %s is %v", subject.Name, m, sample.Values[m])
					}
				}
				for _, m := range []load.Metric{load.Allocs, load.BytesOp} {
					if v, ok := sample.Values[m]; !ok || math.IsNaN(v) {
						t.Errorf("%s: %s is %v", subject.Name, m, v)
					}
				}
			}
		})
	}
}

// The proxy between client and server adds the delay in the name of a scenario.
func TestDelayIsAdded(t *testing.T) {
	for delay, most := range map[time.Duration]time.Duration{200 * time.Microsecond: 5 * time.Millisecond, 50 * time.Millisecond: 70 * time.Millisecond} {
		h := quick(t)
		st, err := h.open(t.Context(), "x", 16, path{delay: delay})
		if err != nil {
			t.Fatal(err)
		}
		if st.trip < delay || st.trip > most {
			t.Errorf("a round trip with %v added takes %v", delay, st.trip)
		}
		if err := h.stage.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Programs read the names, and the goals belong to the right scenarios.
func TestScenarios(t *testing.T) {
	h := quick(t)
	goals := map[string]int{}
	for _, sc := range h.Scenarios() {
		if _, twice := goals[sc.Name]; twice {
			t.Errorf("two scenarios are named %q", sc.Name)
		}
		goals[sc.Name] = len(sc.Goals)
		if strings.HasPrefix(sc.Name, "closed") && sc.Name != "closed-blocked/128" && len(sc.Subjects) != len(redisload.Kinds())+1 {
			t.Errorf("%s has %d subjects", sc.Name, len(sc.Subjects))
		}
		if sc.Close == nil {
			t.Errorf("%s does not stop its server", sc.Name)
		}
	}
	wants := map[string]int{
		"closed/1": 8, "closed/16": 2, "closed/8192": 2, "closed-set/16": 2, "closed-1k/8192": 2, "closed-64k/1": 1, "closed-64k/128": 2,
		"rate-serial/5k": 1, "rate-serial/20k": 2, "rate-serial/80k": 2, "rate-serial/160k": 1, "rate-burst/80k": 2, "rate-serial/320k": 0,
		"rate-serial-768/160k": 0, "rate-burst-nutcracker/80k": 0, "rate-serial-0.2ms/20k": 0, "rate-burst-50ms/80k": 0,
		"design-right/80k": 0, "wrong-design-b/80k": 0, "ctx/1024": 1, "memory-idle/1000": 0, "memory-burst/1000": 0, "memory-stopped/10000": 0, "cached/128": 1, "closed-blocked/128": 1, "batch-1000/8": 5,
	}
	if _, err := nutcrackerPath(); err != nil {
		delete(wants, "rate-burst-nutcracker/80k") // it is omitted if the program is not installed
	}
	for name, want := range wants {
		if got, ok := goals[name]; !ok || got != want {
			t.Errorf("%s has %d goals, want %d", name, got, want)
		}
	}
}

func TestClosedGoals(t *testing.T) {
	for _, c := range []struct {
		name    string
		callers int
		want    string
	}{
		{"closed", 16, "[client_us <= 0.80x of the best rival server_us <= 1.40x of the best rival]"},
		{"closed", 1024, "[client_us <= 0.80x of the best rival server_us <= 1.10x of the best rival]"},
		{"closed", 8192, "[client_us <= 0.60x of the best rival server_us <= 1.10x of the best rival]"},
		{"closed-1k", 128, "[client_us <= 0.85x of the best rival server_us <= 1.10x of the best rival]"},
		{"closed-64k", 1, "[client_us <= 1.00x of the best rival]"},
	} {
		if got := fmt.Sprint(closedGoals(c.name, c.callers)); got != c.want {
			t.Errorf("%s/%d: %s, want %s", c.name, c.callers, got, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	value := func(v float64) *float64 { return &v }
	row := func(scenario, subject string, rps, server, p50 float64) load.Row {
		return load.Row{Scenario: scenario, Subject: subject, RPS: &rps, ServerUS: &server, P50US: &p50, Allocs: value(0), BytesOp: value(30 << 10)}
	}
	rows := []load.Row{
		row("closed/1024", load.Ours, 500_000, 1, 1), row("closed/8192", load.Ours, 440_000, 1, 1),
		row("rate-serial/20k", load.Ours, 20_000, 6, 170), row("rate-serial/20k", "rueidis", 20_000, 10, 110), row("rate-serial/20k", "redispipe-50us", 20_000, 10, 90),
		row("rate-serial/80k", load.Ours, 80_000, 3, 300), row("rate-serial/80k", "rueidis", 80_000, 10, 200),
		row("memory-idle/1000", load.Ours, 0, 0, 0),
	}
	h := quick(t)
	h.trips["rate-serial/20k"], h.trips["rate-serial/80k"] = 70*time.Microsecond, 70*time.Microsecond
	h.refused = map[string]float64{"bytes": 70 << 20, "bound": 64 << 20, "refused_p99_us": 60, "cancel_max_us": 9000}
	var out bytes.Buffer
	if err := h.Check(&out, rows); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		"closed/8192: rps >= 0.9 of our best closed/N in this run: missed",
		"closed/1024: 0 allocations for a GET into a buffer: met",
		"rate-serial/20k: p50 <= that of rueidis, the best rival that never waits, plus one round trip: met",
		"rate-serial/80k: p50 <= that of rueidis, the best rival that never waits, plus one round trip: missed",
		"rate-serial: server CPU per second at 80k divided by that at 20k: rueidis 4.00 (4.0 times the requests) slipstream 2.00",
		"memory-idle/1000: an idle connection of slipstream takes 30720 bytes, want < 24576: missed",
		"memory <= bound + 10 %: met",
		"refused submissions return within 50µs in p99: missed",
		"a cancelled call returns within 10ms: met",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	rows[0].Errors = 3
	if err := h.Check(io.Discard, rows); err == nil || !strings.Contains(err.Error(), "3 requests failed") {
		t.Errorf("error %v", err)
	}
}
