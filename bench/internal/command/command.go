// Package command is the command line that the programs of this module share.
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

// Main runs a program until it ends or is asked to, and ends the process with
// status 1 if there was an error.
func Main(name string, run func(ctx context.Context, args []string, stdout, stderr io.Writer) error) {
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

// Measurement are the flags of everything that measures in rounds.
type Measurement struct {
	Rounds   int // exactly; 0: as many as the control asks for
	Seed     uint64
	Duration time.Duration // of the measured window; 0: the program's default
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
	flags.IntVar(&m.Rounds, "rounds", rounds, "run exactly this `number` of rounds; 0: as many as the control asks for, at least 6 (ROUNDS)")
	flags.Uint64Var(&m.Seed, "seed", 0, "order of the subjects in each round; 0: from the clock")
	flags.DurationVar(&m.Duration, "duration", 0, "of the measured window; 0: "+duration)
	return nil
}

// Suite are the flags of a suite.
type Suite struct {
	Measurement
	Scenario string
	Subjects string
	Quick    bool
	Markdown bool
}

// Register adds the flags, with defaults from the environment.
func (s *Suite) Register(flags *flag.FlagSet, duration string) error {
	quick := os.Getenv("QUICK")
	flags.StringVar(&s.Scenario, "scenario", os.Getenv("SCENARIO"), "run only these `scenarios`, separated by commas; a beginning selects all that have it (SCENARIO)")
	flags.StringVar(&s.Subjects, "subjects", os.Getenv("SUBJECTS"), "run only these `subjects`, separated by commas, and store nothing (SUBJECTS)")
	flags.BoolVar(&s.Quick, "quick", quick != "" && quick != "0", "two short rounds, stored in results/quick: to see that everything works (QUICK=1)")
	flags.BoolVar(&s.Markdown, "markdown", false, "print the stored results as tables for docs/PERFORMANCE.md and end")
	return s.Measurement.Register(flags, duration)
}

// Parse parses args, which hold flags only.
func Parse(flags *flag.FlagSet, args []string, stderr io.Writer) error {
	flags.SetOutput(stderr)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("argument %q, want flags only", flags.Arg(0))
	}
	return nil
}

// Typed is what a reader types to run the suite of that name the same way.
func (s *Suite) Typed(name string) string {
	words := []string{"make bench SUITE=" + name}
	if s.Scenario != "" {
		words = append(words, "SCENARIO="+s.Scenario)
	}
	if s.Quick {
		words = append(words, "QUICK=1")
	}
	if s.Rounds > 0 {
		words = append(words, fmt.Sprintf("ROUNDS=%d", s.Rounds))
	}
	return strings.Join(words, " ")
}

// Restrict leaves the subjects that were asked for and drops scenarios that have
// none of them.
func (s *Suite) Restrict(all []load.Scenario) []load.Scenario {
	if s.Subjects == "" {
		return all
	}
	wanted := strings.Split(s.Subjects, ",")
	for i := range all {
		all[i].Subjects = slices.DeleteFunc(all[i].Subjects, func(s load.Subject) bool { return !slices.Contains(wanted, s.Name) })
	}
	return slices.DeleteFunc(all, func(sc load.Scenario) bool { return len(sc.Subjects) == 0 })
}

// A Place is where a suite works: the module, its results and a directory that
// is removed at the end.
type Place struct {
	Module  string
	Results string
	Scratch string
}

// Prepare finds the module and makes the directory for what the run needs.
func (s *Suite) Prepare(ctx context.Context) (Place, error) {
	module, err := proc.BenchModule(ctx)
	if err != nil {
		return Place{}, err
	}
	p := Place{Module: module, Results: filepath.Join(module, "results")}
	if s.Quick {
		p.Results = filepath.Join(p.Results, "quick")
	}
	if s.Markdown {
		return p, nil
	}
	if p.Scratch, err = os.MkdirTemp("", "slipstream-bench-"); err != nil {
		return p, err
	}
	if s.Subjects != "" {
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

// Run measures a suite as the flags say, prints what was found, and then calls
// check with the rows.
func (s *Suite) Run(ctx context.Context, suite load.Suite, p Place, maxRounds int, stdout, stderr io.Writer, check func(io.Writer, []load.Row) error) error {
	if len(suite.Scenarios) == 0 {
		return fmt.Errorf("no scenario has a subject %q", s.Subjects)
	}
	opts := load.Options{
		Directory: p.Results, Command: s.Typed(suite.Name), Progress: stderr,
		Filter: s.Scenario, Rounds: s.Rounds, MaxRounds: maxRounds, Seed: s.Seed,
	}
	if s.Quick && s.Rounds == 0 {
		opts.Rounds = 2
	}
	report, err := suite.Run(ctx, opts)
	if report != nil {
		if textErr := report.WriteText(stdout); err == nil {
			err = textErr
		}
		if checkErr := check(stdout, report.Rows); err == nil {
			err = checkErr
		}
	}
	return err
}
