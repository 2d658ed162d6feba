// Command origin measures the gateway over PostgreSQL: misses, what triggers
// cost writers, and how soon a commit is visible:
//
//	cd bench && go run ./origin [-scenario miss] [-quick]
//
// It makes a PostgreSQL cluster with a million departments, removed at the end,
// and writes results/origin.json and results/raw/origin.jsonl.
package main

import (
	"context"
	"errors"
	"flag"
	"io"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/internal/load"
)

const suiteName = "origin"

// maxRounds ends the search for a calm control: the whole suite is to end within
// 20 minutes.
const maxRounds = 10

func main() {
	loadproc.Child(bareTargets)
	command.Main(suiteName, run)
}

func parse(args []string, stderr io.Writer) (command.Suite, error) {
	var o command.Suite
	flags := flag.NewFlagSet(suiteName, flag.ContinueOnError)
	if err := o.Register(flags, "2s (1s: direct, writers), or 500ms with -quick; writers take whole seconds"); err != nil {
		return o, err
	}
	return o, command.Parse(flags, args, stderr)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	place, err := o.Prepare(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.Close()) }()
	if o.Markdown {
		return place.WriteMarkdown(stdout, suiteName)
	}
	if err := proc.NeedDescriptors(2048 + 500); err != nil {
		return err
	}
	h := newHarness(place, o, stderr)
	defer func() { err = errors.Join(err, h.close()) }()
	suite := load.Suite{Name: suiteName, Scenarios: o.Restrict(h.scenarios())}
	return o.Run(ctx, suite, place, maxRounds, stdout, stderr, h.check)
}
