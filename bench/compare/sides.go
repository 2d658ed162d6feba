package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A side is one of the two commits.
type side struct {
	// Immutable.
	name   string // of the subject
	source string // directory of the module
	dir    string // for its files

	// Owned by the goroutine that runs the scenarios: paths of the programs built, empty before
	// that.
	gateway string
	client  string
}

// A comparison holds what the scenarios of a run share.
type comparison struct {
	// Immutable after checkOut.
	module   string // of the benchmarks
	scratch  string
	window   time.Duration
	progress io.Writer
	ours     *side
	ref      *side

	// Owned by the goroutine that runs the scenarios.
	opened  map[string]measurement              // by kind
	closers []func() error                      // of resources that the kinds opened
	samples map[string]map[string][]load.Sample // by scenario and subject, of the current run
}

// sides returns both sides.
func (c *comparison) sides() []*side { return []*side{c.ours, c.ref} }

// checkOut creates a worktree of the other commit, which done removes.
func (c *comparison) checkOut(ctx context.Context, ref string) (done func() error, err error) {
	c.ours = &side{name: load.Ours, source: filepath.Dir(c.module), dir: filepath.Join(c.scratch, "ours")}
	c.ref = &side{name: ref, source: filepath.Join(c.scratch, "source"), dir: filepath.Join(c.scratch, "other")}
	for _, s := range c.sides() {
		if err := os.MkdirAll(s.dir, 0o755); err != nil {
			return nil, err
		}
	}
	if err := git(ctx, c.module, "worktree", "add", "--detach", c.ref.source, ref); err != nil {
		return nil, err
	}
	done = func() error {
		// Also if interrupted, because a worktree that is not removed stays registered.
		return git(context.WithoutCancel(ctx), c.module, "worktree", "remove", "--force", c.ref.source)
	}
	return done, nil
}

func git(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	return nil
}

// buildGateway returns the command of a side, built on first use.
func (c *comparison) buildGateway(ctx context.Context, s *side) (string, error) {
	if s.gateway != "" {
		return s.gateway, nil
	}
	fmt.Fprintf(c.progress, "compare: building the gateway of %s\n", s.name)
	binary := filepath.Join(s.dir, "slipstream")
	if err := subject.BuildSlipstream(ctx, s.source, binary); err != nil {
		return "", err
	}
	s.gateway = binary
	return binary, nil
}

// buildClient returns the load program with the libraries of a side, built on first use. The source
// of the program is that of the working tree on both sides, and so is that of the generator.
func (c *comparison) buildClient(ctx context.Context, s *side) (string, error) {
	if s.client != "" {
		return s.client, nil
	}
	fmt.Fprintf(c.progress, "compare: building the load program with the libraries of %s\n", s.name)
	binary := filepath.Join(s.dir, "client")
	if s == c.ours {
		if err := proc.Build(ctx, c.module, "./compare/client", binary); err != nil {
			return "", err
		}
		s.client = binary
		return binary, nil
	}
	generator := filepath.Join(s.source, "internal", "load")
	if err := os.RemoveAll(generator); err != nil {
		return "", err
	}
	if err := os.CopyFS(generator, os.DirFS(filepath.Join(c.ours.source, "internal", "load"))); err != nil {
		return "", err
	}
	modfile, err := c.modfile(s)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-mod=mod", "-modfile="+modfile, "-o", binary, "./compare/client")
	cmd.Dir = c.module
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the load program with the libraries of %s: %w\n%s", s.name, err, text)
	}
	s.client = binary
	return binary, nil
}

// modfile writes the module's go.mod and go.sum with the libraries of a side instead of
// those of the working tree.
func (c *comparison) modfile(s *side) (string, error) {
	mod, err := os.ReadFile(filepath.Join(c.module, "go.mod"))
	if err != nil {
		return "", err
	}
	const here = "=> ../\n"
	if strings.Count(string(mod), here) != 1 {
		return "", fmt.Errorf("go.mod of the benchmarks contains no line that ends with %q", here)
	}
	path := filepath.Join(s.dir, "go.mod")
	if err := os.WriteFile(path, []byte(strings.Replace(string(mod), here, "=> "+s.source+"\n", 1)), 0o644); err != nil {
		return "", err
	}
	var sums []byte
	for _, from := range []string{filepath.Join(c.module, "go.sum"), filepath.Join(s.source, "go.sum")} {
		text, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		sums = append(sums, text...)
	}
	return path, os.WriteFile(filepath.Join(s.dir, "go.sum"), sums, 0o644)
}

// A measurement is one round of one side.
type measurement func(ctx context.Context, s *side, callers, round int) (load.Sample, error)

// scenario is a comparison of both sides, and of ours with itself.
func (c *comparison) scenario(s scenario) load.Scenario {
	sc := load.Scenario{Name: s.name(), Primary: s.kind.cpu}
	found := map[string][]load.Sample{}
	c.samples[s.name()] = found
	for _, name := range []string{load.Ours, load.Control, c.ref.name} {
		side := c.ours
		if name == c.ref.name {
			side = c.ref
		}
		sc.Subjects = append(sc.Subjects, load.Subject{Name: name, Run: func(ctx context.Context, round int) (load.Sample, error) {
			measure, err := c.open(ctx, s.kind)
			if err != nil {
				return load.Sample{}, err
			}
			sample, err := measure(ctx, side, s.callers, round)
			if err == nil {
				found[name] = append(found[name], sample)
			}
			return sample, err
		}})
	}
	return sc
}

// open prepares what the scenarios of a kind need, once.
func (c *comparison) open(ctx context.Context, k *kind) (measurement, error) {
	if m := c.opened[k.name]; m != nil {
		return m, nil
	}
	m, err := k.open(ctx, c, k)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.name, err)
	}
	c.opened[k.name] = m
	return m, nil
}

// close ends servers and databases.
func (c *comparison) close() error {
	var errs []error
	for _, end := range c.closers {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// load runs a load for a window.
func (c *comparison) load(ctx context.Context, k *kind, spec loadproc.Spec, callers, round int) (load.Sample, error) {
	spec.Callers, spec.WarmUp, spec.Duration, spec.Seed, spec.Calls = callers, c.window/4, c.window, uint64(round), true
	outcome, err := loadproc.Run(ctx, spec)
	if err != nil {
		return outcome.Part(), err
	}
	return sampleOf(outcome, k), nil
}
