package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/echo"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

const suiteName = "net"

// A harness builds the servers and measures them.
type harness struct {
	// Immutable after newHarness.
	window  time.Duration
	warmUp  time.Duration
	catalog *subject.Catalog
}

func newHarness(s *command.Flags, p command.Place, progress io.Writer) *harness {
	h := &harness{window: s.Window(2*time.Second, 300*time.Millisecond), warmUp: 500 * time.Millisecond}
	if s.Quick {
		h.warmUp = 100 * time.Millisecond
	}
	build := map[string]func(context.Context) (subject.Program, error){}
	for _, name := range []string{"floor", "loop", "std", "netpoll", "gnet"} {
		build[name] = func(ctx context.Context) (subject.Program, error) {
			return subject.BuildRival(ctx, p.Module, p.Scratch, suiteName, name)
		}
	}
	h.catalog = subject.NewCatalog(suiteName, progress, build)
	return h
}

// A server is a subject: a program of net/servers with its arguments.
type server struct {
	subject string
	program string
	args    []string
	variant bool // of ours
}

// servers are the subjects of the comparison.
var servers = []server{
	{subject: load.Ours, program: "loop"},
	{subject: load.Control, program: "loop"},
	{subject: "slipstream-goroutines", program: "loop", args: []string{"-backend", "goroutines"}, variant: true},
	{subject: "net", program: "std"},
	{subject: "floor-epoll", program: "floor"},
	{subject: "netpoll", program: "netpoll"},
	{subject: "gnet", program: "gnet"},
}

// choices are prototypes: each differs from the first in one flag.
var choices = []server{
	{subject: load.Ours, program: "floor", args: chosen()},
	{subject: load.Control, program: "floor", args: chosen()},
	{subject: "wait-block", program: "floor", args: chosen("-block")},
	{subject: "yield", program: "floor", args: chosen("-yield")},
	{subject: "park", program: "floor", args: chosen("-park")},
	{subject: "park-yield", program: "floor", args: chosen("-park", "-yield")},
	{subject: "table-map", program: "floor", args: chosen("-map")},
	{subject: "pool-one-size", program: "floor", args: chosen("-pool", "one")},
	{subject: "pool-none", program: "floor", args: chosen("-pool", "")},
}

// chosen returns the flags of the prototype, followed by those of a variant, which take precedence.
// The prototype first polls epoll without waiting, does not yield, sleeps in epoll_wait, finds
// connections in a table of slots, and reads into a buffer of internal/buf.
func chosen(other ...string) []string { return append([]string{"-pool", "classes"}, other...) }

// Scenarios implements [command.Harness].
func (h *harness) Scenarios() []load.Scenario {
	var all []load.Scenario
	for _, connections := range []int{1, 100, 1000, 10_000} {
		var goals []load.Goal
		if connections > 1 {
			for _, rival := range []string{"net", "netpoll", "gnet"} {
				goals = append(goals, load.Goal{Metric: load.ServerUS, Rival: rival, Ratio: 1})
			}
		}
		all = append(all, h.scenario("echo", connections, servers, goals))
	}
	for _, connections := range []int{1, 100, 1000} {
		all = append(all, h.scenario("choices", connections, choices, nil))
	}
	return all
}

func (h *harness) scenario(name string, connections int, subjects []server, goals []load.Goal) load.Scenario {
	sc := load.Scenario{Name: fmt.Sprintf("%s/%d", name, connections), Primary: load.ServerUS, Goals: goals}
	for _, s := range subjects {
		sc.Subjects = append(sc.Subjects, load.Subject{Name: s.subject, Variant: s.variant, Run: func(ctx context.Context, round int) (load.Sample, error) {
			return h.measure(ctx, s, connections, round)
		}})
	}
	return sc
}

func (h *harness) measure(ctx context.Context, s server, connections, round int) (load.Sample, error) {
	program, err := h.catalog.Program(ctx, s.program)
	if err != nil {
		return load.Sample{}, err
	}
	running, err := program.(*subject.Rival).With(s.args...).Start(ctx)
	if err != nil {
		return load.Sample{}, err
	}
	spec := running.Spec()
	spec.Target, spec.Callers, spec.Duration, spec.Seed = echo.TargetName, connections, h.window, uint64(round)
	// Every connection makes its first exchange before the window.
	spec.WarmUp = max(h.warmUp, time.Duration(connections)*time.Second/5000)
	outcome, err := loadproc.Run(ctx, spec)
	if stopErr := running.Stop(); err == nil {
		err = stopErr
	}
	if err != nil {
		return outcome.Part(), err
	}
	return outcome.Sample(), nil
}

// Check implements [command.Harness].
func (h *harness) Check(_ io.Writer, rows []load.Row) error { return command.Failures(rows) }

// Close implements [command.Harness].
func (h *harness) Close() error { return nil }
