package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

const suiteName = "gateway"

// ownAllocs is the maximum number of objects that a hit may allocate in our code, in addition to
// those of the server on net/http, which uses the same parser.
const ownAllocs = 2

// A harness builds what the chosen scenarios need on first use.
type harness struct {
	// Immutable after newHarness.
	module   string // directory of the module bench
	scratch  string
	options  options
	progress io.Writer
	window   time.Duration
	warmUp   time.Duration

	// Guarded by mu.
	mu       sync.Mutex
	programs map[string]subject.Program
	binary   string // of Slipstream, once it is built
	// everything holds what the scenarios with all features enabled share, once the first of them
	// has run.
	everything *full
}

func newHarness(module, scratch string, o options, progress io.Writer) *harness {
	h := &harness{
		module: module, scratch: scratch, options: o, progress: progress,
		window: o.Window(2*time.Second, 500*time.Millisecond), warmUp: time.Second,
		programs: map[string]subject.Program{},
	}
	if o.Quick {
		h.warmUp = 200 * time.Millisecond
	}
	return h
}

// rivals are the directories of the other servers, by subject.
var rivals = []struct{ name, directory string }{
	{"net/http", "nethttp"},
	{"fasthttp", "fasthttp"},
	{"article", "article"},
}

// Scenarios implements [command.Harness].
func (h *harness) Scenarios() []load.Scenario {
	var all []load.Scenario
	for _, callers := range []int{1, 64, 1024, 16384} {
		goals := []load.Goal{{Metric: load.ServerUS, Rival: "net/http", Ratio: 1.15}}
		switch callers {
		case 64:
			goals = append(goals, load.Goal{Metric: load.ServerUS, Rival: "article", Ratio: 0.85})
		case 1024:
			goals = append(goals, load.Goal{Metric: load.ServerUS, Rival: "article", Ratio: 0.95})
		}
		all = append(all, h.memoryHit(fmt.Sprintf("memory-hit/%d", callers), callers, goals))
	}
	for _, cores := range []int{1, 2} {
		name := fmt.Sprintf("gomaxprocs-%d/64", cores)
		all = append(all, h.memoryHit(name, 64, nil, fmt.Sprintf("GOMAXPROCS=%d", cores)))
	}
	all = append(all, h.fullScenarios()...)
	for _, coding := range []string{"", "gzip"} {
		all = append(all, h.batchHit(100, 16, coding))
	}
	all = append(all, h.coldKey(10_000), h.budget(512, 64))
	return all
}

// memoryHit compares all subjects with documents in memory.
func (h *harness) memoryHit(name string, callers int, goals []load.Goal, env ...string) load.Scenario {
	sc := load.Scenario{Name: name, Primary: load.ServerUS, Goals: goals}
	names := []string{load.Ours, load.Control}
	for _, r := range rivals {
		names = append(names, r.name)
	}
	for _, n := range names {
		sc.Subjects = append(sc.Subjects, load.Subject{Name: n, Run: func(ctx context.Context, round int) (load.Sample, error) {
			program, err := h.program(ctx, n)
			if err != nil {
				return load.Sample{}, err
			}
			return subject.Hit{Callers: callers, WarmUp: h.warmUp, Window: h.window, Seed: uint64(round), Env: env}.Run(ctx, program)
		}})
	}
	return sc
}

// program returns the program of a subject, built on first use.
func (h *harness) program(ctx context.Context, name string) (subject.Program, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if name == load.Control {
		name = load.Ours
	}
	if p := h.programs[name]; p != nil {
		return p, nil
	}
	fmt.Fprintf(h.progress, "%s: building %s\n", suiteName, name)
	p, err := h.build(ctx, name)
	if err == nil {
		h.programs[name] = p
	}
	return p, err
}

func (h *harness) build(ctx context.Context, name string) (subject.Program, error) {
	if name == load.Ours {
		binary, err := h.slipstream(ctx)
		if err != nil {
			return nil, err
		}
		return subject.NewSlipstream(ctx, binary, filepath.Join(h.scratch, "hit"), depts.Count, "512MiB")
	}
	for _, r := range rivals {
		if r.name == name {
			return subject.BuildRival(ctx, h.module, h.scratch, suiteName, r.directory)
		}
	}
	return nil, fmt.Errorf("no subject %q", name)
}

// slipstream builds our command. The caller holds mu.
func (h *harness) slipstream(ctx context.Context) (string, error) {
	if h.binary != "" {
		return h.binary, nil
	}
	binary := filepath.Join(h.scratch, "slipstream")
	if err := subject.BuildSlipstream(ctx, filepath.Dir(h.module), binary); err != nil {
		return "", err
	}
	h.binary = binary
	return binary, nil
}

// Check implements [command.Harness].
func (h *harness) Check(w io.Writer, rows []load.Row) error {
	var failed uint64
	base := map[string]float64{} // allocations of net/http by scenario
	for _, row := range rows {
		failed += row.Errors
		if row.Subject == "net/http" && row.Allocs != nil {
			base[row.Scenario] = *row.Allocs
		}
	}
	for _, row := range rows {
		of, known := base[row.Scenario]
		if !known || row.Subject != load.Ours || row.Allocs == nil || !strings.HasPrefix(row.Scenario, "memory-hit/") {
			continue
		}
		outcome := load.Missed
		if *row.Allocs <= of+ownAllocs {
			outcome = load.Met
		}
		fmt.Fprintf(w, "%s: allocs <= those of net/http + %d: %s (%.2f and %.2f)\n", row.Scenario, ownAllocs, outcome, *row.Allocs, of)
	}
	if failed > 0 {
		return fmt.Errorf("%d requests failed, want none", failed)
	}
	return nil
}
