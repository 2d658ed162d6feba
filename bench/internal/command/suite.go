package command

import (
	"context"
	"errors"
	"flag"
	"io"

	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A Harness has the scenarios of a suite.
type Harness interface {
	Scenarios() []load.Scenario
	// Check prints what the rows say about targets that are no goals of a
	// scenario, and reports failed requests.
	Check(w io.Writer, rows []load.Row) error
	// Close ends what the scenarios shared.
	Close() error
}

// A Program is a command that is one suite and has no flags of its own.
type Program struct {
	Name        string
	Window      string // names the default of -duration
	Descriptors uint64 // that a load process needs
	MaxRounds   int    // ends the search for a calm control
	Open        func(s *Suite, p Place, progress io.Writer) (Harness, error)
}

// Run is the whole command.
func (p Program) Run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	var s Suite
	flags := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	if err := s.Register(flags, p.Window); err != nil {
		return err
	}
	if err := Parse(flags, args, stderr); err != nil {
		return err
	}
	place, err := s.Prepare(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.Close()) }()
	if s.Markdown {
		return place.WriteMarkdown(stdout, p.Name)
	}
	if err := proc.NeedDescriptors(p.Descriptors); err != nil {
		return err
	}
	h, err := p.Open(&s, place, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	suite := load.Suite{Name: p.Name, Scenarios: s.Restrict(h.Scenarios())}
	return s.Run(ctx, suite, place, p.MaxRounds, stdout, stderr, h.Check)
}
