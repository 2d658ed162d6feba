package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/examples/foo/ladder"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Names of subjects in addition to ours, the control and the versions, which are named foo-1.0 and
// so on. Ours has the same name as a version.
const (
	onNetHTTP = "slipstream-nethttp" // ours on the server of net/http
	floorName = "floor"              // hashes and base64 only
	lastRung  = "foo-1.6"
)

const (
	cpuGoal     = 0.5  // of the CPU time of version 1.6, for a request over HTTP: twice the requests per CPU second
	stretchGoal = 0.4  // the same, as an ambitious target
	floorGoal   = 1.25 // of the floor, for the handler
)

// handlerScenario compares the handlers without a network.
const handlerScenario = "handler/1"

// A harness builds the server and measures its versions.
type harness struct {
	// Immutable after newHarness.
	window  time.Duration
	warmUp  time.Duration
	catalog *subject.Catalog
}

func newHarness(f *command.Flags, p command.Place, progress io.Writer) *harness {
	h := &harness{window: f.Window(1500*time.Millisecond, 300*time.Millisecond), warmUp: 500 * time.Millisecond}
	if f.Quick {
		h.warmUp = 100 * time.Millisecond
	}
	h.catalog = subject.NewCatalog(suiteName, progress, map[string]func(context.Context) (subject.Program, error){
		"ladder": func(ctx context.Context) (subject.Program, error) {
			return subject.BuildRival(ctx, p.Module, p.Scratch, suiteName, "ladder")
		},
	})
	return h
}

// A rung is a subject over HTTP: the server with its arguments.
type rung struct {
	name string
	args []string
}

// rungs are the subjects over HTTP.
func rungs() []rung {
	all := []rung{
		{load.Ours, []string{"-version", load.Ours, "-engine", "loop"}},
		{load.Control, []string{"-version", load.Ours, "-engine", "loop"}},
		{onNetHTTP, []string{"-version", load.Ours}},
	}
	for _, version := range ladder.Versions() {
		if version != load.Ours {
			all = append(all, rung{rivalName(version), []string{"-version", version}})
		}
	}
	return all
}

// rivalName is the name of a version that is not ours.
func rivalName(version string) string { return "foo-" + version }

// Scenarios implements [command.Harness].
func (h *harness) Scenarios() []load.Scenario {
	return []load.Scenario{
		h.overHTTP("c1/1", 1, asTagged), h.overHTTP("c30/30", 30, asTagged), h.overHTTP("c30-str_a/30", 30, asNamed), h.handlers(),
	}
}

// overHTTP compares the versions as servers. first is the name of the first member of objects.
func (h *harness) overHTTP(name string, callers int, first string) load.Scenario {
	sc := load.Scenario{Name: name, Primary: load.ServerUS, Goals: []load.Goal{{Metric: load.ServerUS, Rival: lastRung, Ratio: cpuGoal}}}
	for _, r := range rungs() {
		sc.Subjects = append(sc.Subjects, load.Subject{Name: r.name, Variant: r.name == onNetHTTP, Run: func(ctx context.Context, round int) (load.Sample, error) {
			return h.measure(ctx, r, callers, work{First: first}, round)
		}})
	}
	return sc
}

// measure runs one server for one window.
func (h *harness) measure(ctx context.Context, r rung, callers int, w work, round int) (load.Sample, error) {
	program, err := h.catalog.Program(ctx, "ladder")
	if err != nil {
		return load.Sample{}, err
	}
	running, err := program.(*subject.Rival).With(r.args...).Start(ctx)
	if err != nil {
		return load.Sample{}, err
	}
	spec := running.Spec()
	spec.Target, spec.Callers, spec.WarmUp, spec.Duration, spec.Seed = overHTTP, callers, h.warmUp, h.window, uint64(round)
	var outcome loadproc.Outcome
	if err = ask(&spec, w); err == nil {
		outcome, err = loadproc.Run(ctx, spec)
	}
	if stopErr := running.Stop(); err == nil {
		err = stopErr
	}
	if err != nil {
		return outcome.Part(), err
	}
	return outcome.Sample(), nil
}

// handlers compares the handlers, each in a separate process, and the minimum that any of them has to
// do.
func (h *harness) handlers() load.Scenario {
	sc := load.Scenario{Name: handlerScenario, Primary: load.ServerUS, Goals: []load.Goal{{Metric: load.ServerUS, Rival: floorName, Ratio: floorGoal}}}
	add := func(name, version string) {
		sc.Subjects = append(sc.Subjects, load.Subject{Name: name, Run: func(ctx context.Context, round int) (load.Sample, error) {
			return h.measureHandler(ctx, version, round)
		}})
	}
	add(load.Ours, load.Ours)
	add(load.Control, load.Ours)
	add(floorName, floorName)
	for _, version := range ladder.Versions() {
		if version != load.Ours {
			add(rivalName(version), version)
		}
	}
	return sc
}

// measureHandler calls a handler in the load process, so the CPU time and allocations of that
// process are those of the handler.
func (h *harness) measureHandler(ctx context.Context, version string, round int) (load.Sample, error) {
	spec := loadproc.Spec{Target: inProcess, Callers: 1, WarmUp: h.warmUp, Duration: h.window, Seed: uint64(round)}
	if err := ask(&spec, work{First: asTagged, Version: version}); err != nil {
		return load.Sample{}, err
	}
	outcome, err := loadproc.Run(ctx, spec)
	if err != nil {
		return outcome.Part(), err
	}
	r, s := outcome.Result, outcome.Sample()
	if r.Completed == 0 {
		return s, nil
	}
	s.Values[load.NsOp] = r.PerRequest(float64(r.Elapsed))
	s.Values[load.ServerUS] = s.Values[load.ClientUS]
	s.Values[load.Allocs], s.Values[load.BytesOp] = r.PerRequest(float64(r.Cost.Mallocs)), r.PerRequest(float64(r.Cost.Bytes))
	delete(s.Values, load.ClientUS)
	return s, nil
}

// ask adds the information that a target needs.
func ask(s *loadproc.Spec, w work) (err error) {
	s.Options, err = json.Marshal(w)
	return err
}

// Check implements [command.Harness]: it prints the figures of the article's tables, and the
// verdict on the stretch goal, based on medians.
func (h *harness) Check(w io.Writer, rows []load.Row) error {
	for _, row := range rows {
		if row.ServerUS == nil || row.BytesOp == nil || row.Allocs == nil || row.RPS == nil {
			continue
		}
		fmt.Fprintf(w, "%s: %s: %.0f requests a second, %.1f us of CPU, %.0f bytes and %.1f objects allocated for each\n",
			row.Scenario, row.Subject, *row.RPS, *row.ServerUS, *row.BytesOp, *row.Allocs)
	}
	for _, row := range rows {
		last, ok := command.Find(rows, row.Scenario, lastRung)
		if !ok || row.Subject != load.Ours || row.Scenario == handlerScenario || row.ServerUS == nil || last.ServerUS == nil || *last.ServerUS == 0 {
			continue
		}
		ratio := *row.ServerUS / *last.ServerUS
		fmt.Fprintf(w, "%s: stretch: server_us <= %.2fx of %s: %s (%.3f, of medians)\n", row.Scenario, stretchGoal, lastRung, command.Verdict(ratio <= stretchGoal), ratio)
	}
	return command.Failures(rows)
}

// Close implements [command.Harness].
func (h *harness) Close() error { return nil }
