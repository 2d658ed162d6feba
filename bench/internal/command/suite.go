package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/slipstream-go/slipstream/internal/load"
)

// A Harness provides the scenarios of a suite.
type Harness interface {
	Scenarios() []load.Scenario
	// Check evaluates the rows for targets that are not goals of a scenario,
	// prints the results, and reports failed requests.
	Check(w io.Writer, rows []load.Row) error
	// Close ends what the scenarios shared.
	Close() error
}

// A Suite is a program that measures scenarios. Name, Window, MaxRounds and Open must be
// set.
type Suite struct {
	Name        string
	Window      string // text for the default of -duration
	Descriptors uint64 // that a load process needs
	MaxRounds   int    // bounds the number of rounds while the control is not yet stable
	Open        func(f *Flags, p Place, progress io.Writer) Harness

	// Register adds the suite's own flags. If nil, there are none.
	Register func(flags *flag.FlagSet)
	// Parsed checks all flags and the arguments after them. If nil, there must be no arguments.
	Parsed func(f *Flags, rest []string) error
	// Markdown prints what -markdown adds to the rows. If nil, it adds nothing.
	Markdown func(stdout io.Writer, p Place) error
	// Stored prints the stored results in another way if that was requested, and reports
	// whether it was. If nil, there is no other way.
	Stored func(stdout io.Writer, p Place) (bool, error)
	// Instead does something other than measuring the scenarios if that was requested, and
	// reports whether it was. If nil, there is nothing else.
	Instead func(ctx context.Context, p Place, stdout, stderr io.Writer) (bool, error)
}

// Main implements the whole program. A program that starts itself as a load process must handle
// that first.
func Main(s Suite) { Run(s.Name, s.run) }

// Parse reads the command line.
func (s Suite) Parse(args []string, stderr io.Writer) (*Flags, error) {
	f := new(Flags)
	flags := flag.NewFlagSet(s.Name, flag.ContinueOnError)
	if err := f.Register(flags, s.Window); err != nil {
		return nil, err
	}
	if s.Register != nil {
		s.Register(flags)
	}
	flags.SetOutput(stderr)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if s.Parsed != nil {
		return f, s.Parsed(f, flags.Args())
	}
	return f, None(flags.Args())
}

func (s Suite) run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	f, err := s.Parse(args, stderr)
	if err != nil {
		return err
	}
	place, err := f.Prepare(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.Close()) }()
	if s.Stored != nil {
		if done, err := s.Stored(stdout, place); done || err != nil {
			return err
		}
	}
	if f.Markdown {
		err := place.WriteMarkdown(stdout, s.Name)
		if s.Markdown != nil {
			err = errors.Join(err, s.Markdown(stdout, place))
		}
		return err
	}
	if err := load.NeedDescriptors(s.Descriptors); err != nil {
		return err
	}
	h := s.Open(f, place, stderr)
	defer func() { err = errors.Join(err, h.Close()) }()
	if s.Instead != nil {
		if done, err := s.Instead(ctx, place, stdout, stderr); done || err != nil {
			return err
		}
	}
	return s.measure(ctx, f, place, h, stdout, stderr)
}

// measure runs the scenarios selected by the flags, prints the results, and makes the harness check
// the rows. If a run ends early, by Ctrl-C or with an error, it prints and stores what was measured
// until then; the harness checks only scenarios that finished.
func (s Suite) measure(ctx context.Context, f *Flags, p Place, h Harness, stdout, stderr io.Writer) error {
	suite := load.Suite{Name: s.Name, Scenarios: f.Restrict(h.Scenarios())}
	if len(suite.Scenarios) == 0 {
		return fmt.Errorf("no scenario has a subject %q", f.Subjects)
	}
	opts := load.Options{
		Directory: p.Results, Command: f.Typed(s.Name), Progress: stderr,
		Filter: f.Scenario, Rounds: f.Rounds, MaxRounds: s.MaxRounds, Seed: f.Seed,
	}
	if f.Quick && f.Rounds == 0 {
		opts.Rounds = 2
	}
	report, err := suite.Run(ctx, opts)
	if report == nil {
		return err
	}
	return errors.Join(err, report.WriteText(stdout), h.Check(stdout, load.Whole(report.Rows)))
}
