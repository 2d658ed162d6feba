// Command gateway measures the gateway beside servers that do the same job:
//
//	cd bench && go run ./gateway [-scenario memory-hit/64] [-quick]
//
// It builds the subjects, runs each as a process of its own with the load in a
// third process, and writes results/gateway.json and results/raw/gateway.jsonl.
package main

import (
	"context"
	"flag"
	"io"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// maxRounds ends the search for a calm control.
const maxRounds = 31

// options are the flags.
type options struct {
	command.Suite
	profile  bool
	profiles string // directory for what pprof reads; empty: nothing is kept
}

func main() {
	loadproc.Child()
	command.Main(suiteName, run)
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet(suiteName, flag.ContinueOnError)
	if err := o.Register(flags, "2s, or 500ms with -quick"); err != nil {
		return o, err
	}
	flags.BoolVar(&o.profile, "profile", false, "print the shares of the CPU time of a memory hit with 64 connections and end; with -scenario memory-hit-full, -identity or -key also of everything off")
	flags.StringVar(&o.profiles, "profiles", "", "`directory` to keep the profiles of -profile in, for go tool pprof -base")
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
	defer func() {
		if closeErr := place.Close(); err == nil {
			err = closeErr
		}
	}()
	if o.Markdown {
		return place.WriteMarkdown(stdout, suiteName)
	}
	if err := proc.NeedDescriptors(16384 + 500); err != nil {
		return err
	}
	h := newHarness(place.Module, place.Scratch, o, stderr)
	defer func() {
		if closeErr := h.close(); err == nil {
			err = closeErr
		}
	}()
	if o.profile {
		return h.profile(ctx, 64, stdout)
	}
	suite := load.Suite{Name: suiteName, Scenarios: h.scenarios()}
	return o.Run(ctx, suite, place, maxRounds, stdout, stderr, h.check)
}
