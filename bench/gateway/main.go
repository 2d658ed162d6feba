// Command gateway measures the gateway beside servers that do the same job:
//
//	cd bench && go run ./gateway [-scenario memory-hit/64] [-quick]
//
// It builds the subjects, runs each as a process of its own with the load in a
// third process, and writes results/gateway.json and results/raw/gateway.jsonl.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// options are the flags; the Makefile sets their defaults by environment.
type options struct {
	scenario string
	subjects string
	quick    bool
	rounds   int
	seed     uint64
	duration time.Duration
	markdown bool
	profile  bool
}

func main() {
	loadproc.Child()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "gateway:", err)
		}
		stop()
		os.Exit(1)
	}
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
	flags.SetOutput(stderr)
	rounds := 0
	if text := os.Getenv("ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			return o, fmt.Errorf("ROUNDS=%q, want a number", text)
		}
	}
	quick := os.Getenv("QUICK")
	flags.StringVar(&o.scenario, "scenario", os.Getenv("SCENARIO"), "run only these `scenarios`, separated by commas; a beginning selects all that have it (SCENARIO)")
	flags.StringVar(&o.subjects, "subjects", os.Getenv("SUBJECTS"), "run only these `subjects`, separated by commas, and store nothing (SUBJECTS)")
	flags.BoolVar(&o.quick, "quick", quick != "" && quick != "0", "two short rounds, stored in results/quick: to see that everything works (QUICK=1)")
	flags.IntVar(&o.rounds, "rounds", rounds, "run exactly this `number` of rounds; 0: 6 to 31, until the control is calm (ROUNDS)")
	flags.Uint64Var(&o.seed, "seed", 0, "order of the subjects in each round; 0: from the clock")
	flags.DurationVar(&o.duration, "duration", 0, "of the measured window; 0: 2s, or 500ms with -quick")
	flags.BoolVar(&o.markdown, "markdown", false, "print the stored results as tables for docs/PERFORMANCE.md and end")
	flags.BoolVar(&o.profile, "profile", false, "print the shares of the CPU time of a memory hit with 64 connections and end")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("argument %q, want flags only", flags.Arg(0))
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	module, err := proc.BenchModule(ctx)
	if err != nil {
		return err
	}
	results := filepath.Join(module, "results")
	if o.quick {
		results = filepath.Join(results, "quick")
	}
	if o.markdown {
		rows, err := load.ReadRows(filepath.Join(results, suiteName+".json"))
		if err != nil {
			return err
		}
		return load.WriteMarkdown(stdout, rows)
	}
	if err := proc.NeedDescriptors(16384 + 500); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "slipstream-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if o.subjects != "" {
		results = filepath.Join(scratch, "results")
	}

	h := newHarness(module, scratch, o, stderr)
	if o.profile {
		return h.profile(ctx, 64, stdout)
	}
	suite := load.Suite{Name: suiteName, Scenarios: h.scenarios()}
	if len(suite.Scenarios) == 0 {
		return fmt.Errorf("no scenario has a subject %q", o.subjects)
	}
	opts := load.Options{
		Directory: results, Command: o.command(), Progress: stderr,
		Filter: o.scenario, Rounds: o.rounds, Seed: o.seed,
	}
	if o.quick && o.rounds == 0 {
		opts.Rounds = 2
	}
	report, err := suite.Run(ctx, opts)
	if report != nil {
		if textErr := report.WriteText(stdout); err == nil {
			err = textErr
		}
		if checkErr := h.check(stdout, report.Rows); err == nil {
			err = checkErr
		}
	}
	return err
}

// command is what a reader types to run the same.
func (o options) command() string {
	words := []string{"make bench SUITE=" + suiteName}
	if o.scenario != "" {
		words = append(words, "SCENARIO="+o.scenario)
	}
	if o.quick {
		words = append(words, "QUICK=1")
	}
	if o.rounds > 0 {
		words = append(words, fmt.Sprintf("ROUNDS=%d", o.rounds))
	}
	return strings.Join(words, " ")
}
