package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/foreign"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

const suiteName = "generators"

// A harness builds slipstream, starts the servers and runs the generators.
type harness struct {
	// Immutable after newHarness.
	filter   string // of scenarios, for -calls
	window   time.Duration
	place    command.Place
	progress io.Writer
	settings []setting
	missing  []error // programs that are not installed

	// Owned by the running subject.
	binary string            // of slipstream; empty until it is built
	most   map[string]uint64 // requests of redis-benchmark in a window, by setting
}

// A setting is a load that all generators of a scenario produce.
type setting struct {
	name        string
	connections int
	depth       int // of the pipeline
	start       func(ctx context.Context) (*server, error)
	generators  []generator
	goal        load.Goal // of all our own generators
}

// A generator is a subject.
type generator struct {
	name    string
	variant bool // whether it is a variant of ours
	// command returns the program with its arguments for a load of about the window.
	command func(ctx context.Context, s *setting, at *server) (foreign.Generator, error)
}

func newHarness(f *command.Flags, p command.Place, progress io.Writer) *harness {
	h := &harness{filter: f.Scenario, window: f.Window(4*time.Second, time.Second), place: p, progress: progress, most: map[string]uint64{}}
	h.settings = append(h.httpSettings(), h.redisSettings()...)
	return h
}

// find returns the paths of programs, or false if one is missing, which the report mentions.
func (h *harness) find(names ...string) ([]string, bool) {
	paths := make([]string, len(names))
	found := true
	for i, name := range names {
		var err error
		if paths[i], err = subject.Find(name); err != nil {
			h.missing, found = append(h.missing, err), false
		}
	}
	return paths, found
}

// slipstream returns the path of our program, which it builds on first use.
func (h *harness) slipstream(ctx context.Context) (string, error) {
	if h.binary != "" {
		return h.binary, nil
	}
	fmt.Fprintf(h.progress, "%s: building slipstream\n", suiteName)
	binary := filepath.Join(h.place.Scratch, "slipstream")
	if err := subject.BuildSlipstream(ctx, filepath.Dir(h.place.Module), binary); err != nil {
		return "", err
	}
	h.binary = binary
	return binary, nil
}

// ours returns slipstream bench with arguments for a closed loop of a setting. what are the
// arguments of the command, and rest those after its flags.
func (h *harness) ours(ctx context.Context, s *setting, what []string, rest ...string) (foreign.Generator, error) {
	binary, err := h.slipstream(ctx)
	if err != nil {
		return foreign.Generator{}, err
	}
	args := append([]string{"bench"}, what...)
	args = append(args, "-c", fmt.Sprint(s.connections), "-z", h.window.String(), "-t", "30s", "--warm-up", "0", "--json", "-")
	return foreign.Generator{Program: binary, Args: append(args, rest...), Parse: foreign.ParseSlipstream, Accept: foreign.Limited}, nil
}

// Scenarios implements [command.Harness].
func (h *harness) Scenarios() []load.Scenario {
	var all []load.Scenario
	for i := range h.settings {
		s := &h.settings[i]
		sc := load.Scenario{Name: s.name, Primary: load.ClientUS, Goals: []load.Goal{s.goal}}
		for _, g := range s.generators {
			one := load.Subject{Name: g.name, Variant: g.variant, Run: func(ctx context.Context, _ int) (load.Sample, error) {
				return h.run(ctx, s, g)
			}}
			if g.variant {
				one.Goals = []load.Goal{s.goal}
			}
			sc.Subjects = append(sc.Subjects, one)
		}
		all = append(all, sc)
	}
	return all
}

// details are stored in the raw results of a round in addition to the figures.
type details struct {
	foreign.Run
	// Calls is the number of reading and writing system calls (see proc.Calls) that the server made
	// per request, including those for opening and closing connections.
	Calls float64 `json:"server_calls_per_request"`
}

// run measures a generator once, with a separate server.
func (h *harness) run(ctx context.Context, s *setting, g generator) (load.Sample, error) {
	at, err := s.start(ctx)
	if err != nil {
		return load.Sample{}, err
	}
	sample, err := h.measure(ctx, s, g, at)
	return sample, errors.Join(err, at.Stop())
}

func (h *harness) measure(ctx context.Context, s *setting, g generator, at *server) (load.Sample, error) {
	program, err := g.command(ctx, s, at)
	if err != nil {
		return load.Sample{}, err
	}
	before, err := calls(at.pids)
	if err != nil {
		return load.Sample{}, err
	}
	r, err := program.Measure(ctx, at.pids)
	if err != nil {
		return load.Sample{}, err
	}
	after, err := calls(at.pids)
	if err != nil {
		return load.Sample{}, err
	}
	sample, err := r.Sample()
	if err != nil {
		return sample, err
	}
	sample.Details = details{r, float64(after-before) / float64(r.Completed)}
	return sample, nil
}

// calls sums up the system calls of processes.
func calls(pids []int) (sum int64, err error) {
	for _, pid := range pids {
		n, err := proc.Calls(pid)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// Check implements [command.Harness].
func (h *harness) Check(w io.Writer, rows []load.Row) error {
	command.ReportMissing(w, h.missing)
	return errors.Join(writeCosts(w, h.place), command.Failures(rows))
}

// Close implements [command.Harness].
func (h *harness) Close() error { return nil }
