// Command tarantool measures Tarantool clients beside each other, each in a
// process of its own, against a tarantool of its own:
//
//	cd bench && go run ./tarantool [-scenario sync/512] [-quick]
//
// It writes results/tarantool.json and results/raw/tarantool.jsonl; with -curves
// it draws what they say, with -profile it looks where one client spends its time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/internal/load"
)

const suiteName = "tarantool"

// maxRounds ends the search for a calm control: a round takes 6 s, with pairs
// 12 s.
const maxRounds = 16

// options are the flags.
type options struct {
	command.Suite
	curves  string // directory for the pictures; empty: measure
	profile string // subject to be profiled; empty: none
	out     string // file of the profile; empty: one in the system's temporary directory
}

func main() {
	loadproc.Child(targets())
	command.Main(suiteName, run)
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet(suiteName, flag.ContinueOnError)
	if err := o.Register(flags, "600ms (one caller to 8,192), 1s (pairs), 3s (-profile), or 150ms with -quick"); err != nil {
		return o, err
	}
	flags.StringVar(&o.curves, "curves", "", "draw the stored ladder into this `directory`, print it as tables and end")
	flags.StringVar(&o.profile, "profile", "", "write a CPU profile of this `subject` in the scenario that follows the flags, print what it did and end")
	flags.StringVar(&o.out, "out", "", "with -profile: the `file`; empty: one in the system's temporary directory")
	flags.SetOutput(stderr)
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case o.profile != "" && flags.NArg() == 1:
		o.Scenario = flags.Arg(0)
	case o.profile != "" && (flags.NArg() > 1 || o.Scenario == ""):
		return o, fmt.Errorf("arguments %q, want -profile SUBJECT SCENARIO", flags.Args())
	case o.profile == "" && flags.NArg() > 0:
		return o, fmt.Errorf("argument %q, want flags only", flags.Arg(0))
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	o.Markdown = o.Markdown || o.curves != "" // both read what is stored, and need no place to work
	place, err := o.Prepare(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.Close()) }()
	switch {
	case o.curves != "":
		return writeCurves(filepath.Join(place.Results, suiteName+".json"), o.curves, stdout)
	case o.Markdown:
		return place.WriteMarkdown(stdout, suiteName)
	}
	h := newHarness(place.Scratch, o)
	defer func() { err = errors.Join(err, h.closeServer()) }()
	if o.profile != "" {
		return h.profile(ctx, stdout)
	}
	suite := load.Suite{Name: suiteName, Scenarios: o.Restrict(h.scenarios())}
	return o.Run(ctx, suite, place, maxRounds, stdout, stderr, check)
}
