// Package command implements the command line that the programs of this module share.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Run runs a program until it ends or is interrupted by a signal, and exits with status 1 if there
// was an error.
func Run(name string, run func(ctx context.Context, args []string, stdout, stderr io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err == nil {
		return
	}
	if !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	}
	os.Exit(1)
}

// Measurement holds the flags of programs that measure in rounds.
type Measurement struct {
	Rounds   int // the exact number; if 0, as many as the control requires
	Seed     uint64
	Duration time.Duration // of the measured window; if 0, the program's default
}

// Register adds the flags, with defaults from the environment, as the Makefile
// sets it. duration names the default of that flag.
func (m *Measurement) Register(flags *flag.FlagSet, duration string) error {
	rounds := 0
	if text := os.Getenv("ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("ROUNDS=%q, want a number", text)
		}
	}
	flags.IntVar(&m.Rounds, "rounds", rounds, "run exactly this `number` of rounds; if 0, as many as the control requires, at least 6 (ROUNDS)")
	flags.Uint64Var(&m.Seed, "seed", 0, "`seed` for the order of the subjects in each round; if 0, from the clock")
	flags.DurationVar(&m.Duration, "duration", 0, "length of the measured window; if 0, "+duration)
	return nil
}

// Flags holds the flags of every suite.
type Flags struct {
	Measurement
	Scenario string
	Subjects string
	Quick    bool
	Markdown bool
}

// Register adds the flags, with defaults from the environment.
func (f *Flags) Register(flags *flag.FlagSet, duration string) error {
	quick := os.Getenv("QUICK")
	flags.StringVar(&f.Scenario, "scenario", os.Getenv("SCENARIO"), "run only these `scenarios`, separated by commas; a prefix, or a suffix that begins with a slash, selects all scenarios that have it (SCENARIO)")
	flags.StringVar(&f.Subjects, "subjects", os.Getenv("SUBJECTS"), "run only these `subjects`, separated by commas, and store nothing (SUBJECTS)")
	flags.BoolVar(&f.Quick, "quick", quick != "" && quick != "0", "two short rounds, stored in results/quick, to check that everything works (QUICK=1)")
	flags.BoolVar(&f.Markdown, "markdown", false, "print the stored results as tables for docs/PERFORMANCE.md and exit")
	return f.Measurement.Register(flags, duration)
}

// Parse parses args, which may contain only flags.
func Parse(flags *flag.FlagSet, args []string, stderr io.Writer) error {
	flags.SetOutput(stderr)
	if err := flags.Parse(args); err != nil {
		return err
	}
	return None(flags.Args())
}

// None returns an error if arguments follow the flags.
func None(rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("argument %q; expected only flags", rest[0])
	}
	return nil
}

// Window returns the length of a window: usual, or quick with Quick.
func (f *Flags) Window(usual, quick time.Duration) time.Duration {
	switch {
	case f.Duration > 0:
		return f.Duration
	case f.Quick:
		return quick
	}
	return usual
}

// Fixed returns the field Rounds of a [load.Scenario] that needs exactly n rounds: 0 if the flags
// set the number of rounds.
func (f *Flags) Fixed(n int) int {
	if f.Quick || f.Rounds > 0 {
		return 0
	}
	return n
}

// Typed returns the command that runs the suite of that name in the same way.
func (f *Flags) Typed(name string) string {
	words := []string{"make bench SUITE=" + name}
	if f.Scenario != "" {
		words = append(words, "SCENARIO="+f.Scenario)
	}
	if f.Quick {
		words = append(words, "QUICK=1")
	}
	if f.Rounds > 0 {
		words = append(words, fmt.Sprintf("ROUNDS=%d", f.Rounds))
	}
	return strings.Join(words, " ")
}

// Restrict keeps only the requested subjects and drops scenarios that have none of them.
func (f *Flags) Restrict(all []load.Scenario) []load.Scenario {
	if f.Subjects == "" {
		return all
	}
	wanted := strings.Split(f.Subjects, ",")
	for i := range all {
		all[i].Subjects = slices.DeleteFunc(all[i].Subjects, func(s load.Subject) bool { return !slices.Contains(wanted, s.Name) })
	}
	return slices.DeleteFunc(all, func(sc load.Scenario) bool { return len(sc.Subjects) == 0 })
}

// A Place holds the directories of a suite: the module, the results, and one that is removed at the
// end.
type Place struct {
	Module  string
	Results string
	Scratch string
}

// Prepare finds the module and creates the directory for the files of the run.
func (f *Flags) Prepare(ctx context.Context) (Place, error) {
	module, err := proc.BenchModule(ctx)
	if err != nil {
		return Place{}, err
	}
	p := Place{Module: module, Results: filepath.Join(module, "results")}
	if f.Quick {
		p.Results = filepath.Join(p.Results, "quick")
	}
	if f.Markdown {
		return p, nil
	}
	if p.Scratch, err = os.MkdirTemp("", "slipstream-bench-"); err != nil {
		return p, err
	}
	if f.Subjects != "" {
		p.Results = filepath.Join(p.Scratch, "results")
	}
	return p, nil
}

// Close removes the directory of the run.
func (p Place) Close() error {
	if p.Scratch == "" {
		return nil
	}
	return os.RemoveAll(p.Scratch)
}

// WriteMarkdown prints the stored rows of a suite.
func (p Place) WriteMarkdown(w io.Writer, suite string) error {
	rows, err := load.ReadRows(filepath.Join(p.Results, suite+".json"))
	if err != nil {
		return err
	}
	return load.WriteMarkdown(w, rows)
}
