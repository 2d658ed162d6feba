// Command choices measures single decisions of the client engine, each against
// its alternatives, with a dedicated redis-server:
//
//	cd bench && go run ./choices [-question k,yield] [-quick]
//
// Every variant runs in a separate process, in random order within a round. The
// program writes results/raw/choices.jsonl, one line per round, load and variant;
// -markdown prints the stored results as tables.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/internal/load"
)

const suiteName = "choices"

const (
	usualRounds = 3
	usualWindow = 450 * time.Millisecond
	usualWarmUp = 100 * time.Millisecond
	quickWindow = 60 * time.Millisecond
	quickWarmUp = 20 * time.Millisecond
)

// options are the flags.
type options struct {
	command.Measurement
	questions string
	quick     bool
	markdown  bool
}

// children runs a measurement and exits if the process was started for one.
func children() {
	loadproc.Child(targets())
	microChild()
}

func main() {
	children()
	command.Run(suiteName, run)
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet(suiteName, flag.ContinueOnError)
	if err := o.Register(flags, fmt.Sprintf("%v, or %v with -quick", usualWindow, quickWindow)); err != nil {
		return o, err
	}
	quick := os.Getenv("QUICK")
	flags.StringVar(&o.questions, "question", os.Getenv("SCENARIO"), "measure only these `questions`, separated by commas (SCENARIO): "+strings.Join(names(questions()), ", "))
	flags.BoolVar(&o.quick, "quick", quick != "" && quick != "0", "one short round, stored in results/quick, to check that everything works (QUICK=1)")
	flags.BoolVar(&o.markdown, "markdown", false, "print the stored results as tables and exit")
	if err := command.Parse(flags, args, stderr); err != nil {
		return o, err
	}
	if o.Rounds == 0 {
		o.Rounds = usualRounds
		if o.quick {
			o.Rounds = 1
		}
	}
	if o.Rounds < 0 || o.Duration < 0 {
		return o, fmt.Errorf("%d rounds of %v, want positive numbers", o.Rounds, o.Duration)
	}
	if o.Seed == 0 {
		o.Seed = uint64(time.Now().UnixNano())
	}
	return o, nil
}

// typed returns the command that repeats the measurement.
func (o options) typed() string {
	if o.Duration > 0 {
		// make has no parameter for the window.
		return fmt.Sprintf("cd bench && go run ./%s -question=%s -quick=%v -rounds=%d -duration=%v", suiteName, o.questions, o.quick, o.Rounds, o.Duration)
	}
	words := []string{"make bench SUITE=" + suiteName}
	if o.questions != "" {
		words = append(words, "SCENARIO="+o.questions)
	}
	if o.quick {
		words = append(words, "QUICK=1")
	}
	return strings.Join(append(words, fmt.Sprintf("ROUNDS=%d", o.Rounds)), " ")
}

// times are the window and the warm-up of one variant under one load.
func (o options) times() (window, warmUp time.Duration) {
	window, warmUp = usualWindow, usualWarmUp
	if o.quick {
		window, warmUp = quickWindow, quickWarmUp
	}
	if o.Duration > 0 {
		window = o.Duration
	}
	return window, warmUp
}

func names(qs []question) []string {
	var all []string
	for _, q := range qs {
		all = append(all, q.name)
	}
	return all
}

// selected returns the questions named in text, or all if it is empty.
func selected(qs []question, text string) ([]question, error) {
	if text == "" {
		return qs, nil
	}
	wanted := strings.Split(text, ",")
	for _, name := range wanted {
		if !slices.Contains(names(qs), name) {
			return nil, fmt.Errorf("question %q, want one of %s", name, strings.Join(names(qs), ", "))
		}
	}
	return slices.DeleteFunc(qs, func(q question) bool { return !slices.Contains(wanted, q.name) }), nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	module, err := proc.BenchModule(ctx)
	if err != nil {
		return err
	}
	asked, err := selected(questions(), o.questions)
	if err != nil {
		return err
	}
	path := filepath.Join(module, "results", "raw", suiteName+".jsonl")
	if o.quick {
		path = filepath.Join(module, "results", "quick", "raw", suiteName+".jsonl")
	}
	if o.markdown {
		rows, err := readRows(path)
		if err != nil {
			return err
		}
		return writeMarkdown(stdout, asked, rows)
	}
	scratch, err := os.MkdirTemp("", "slipstream-bench-")
	if err != nil {
		return err
	}
	b := &bench{options: o, path: path, environment: load.Describe(o.typed()), stage: newStage(scratch), progress: stderr}
	defer func() { err = errors.Join(err, b.stage.close(), os.RemoveAll(scratch)) }()
	for _, q := range asked {
		rows, askErr := b.ask(ctx, q)
		if rows != nil {
			askErr = errors.Join(askErr, writeMarkdown(stdout, []question{q}, rows))
		}
		if err = errors.Join(err, askErr); ctx.Err() != nil {
			return err
		}
	}
	return err
}
