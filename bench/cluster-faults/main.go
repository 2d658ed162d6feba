// Command cluster-faults measures how clients of a Redis Cluster behave while nodes fail: each
// subject, in a separate process at a fixed rate, on its own cluster of three masters and three
// replicas:
//
//	cd bench && go run ./cluster-faults [-scenario kill,stop] [-subjects slipstream,rueidis] [-rate 20000] [-quick]
//
// It prints one table and keeps results/raw/cluster-faults.jsonl, one line for each scenario and
// subject. If a run is interrupted, the finished results are kept.
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
	"strconv"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/internal/load"
)

const suiteName = "cluster-faults"

// options are the flags.
type options struct {
	scenario, subjects string
	rate               float64 // calls a second
	callers            int
	deadline           time.Duration // of a call
	nodeTimeout        time.Duration
	lead, tail         time.Duration // before the fault and after it
	stop, outage       time.Duration // of SIGSTOP, and of other faults
	slots              int           // that migrate
	seed               uint64
	out, note          string
	quick, markdown    bool
}

// typical lists the default subjects, one of each library.
var typical = []string{load.Ours, "go-redis-pool", "rueidis", "redispipe", "radix"}

func main() {
	loadproc.Child(targets())
	command.Run(suiteName, run)
}

func parse(args []string, stderr io.Writer) (*options, error) {
	o := new(options)
	quick := os.Getenv("QUICK")
	flags := flag.NewFlagSet(suiteName, flag.ContinueOnError)
	flags.StringVar(&o.scenario, "scenario", os.Getenv("SCENARIO"), "run only these `scenarios`, separated by commas (SCENARIO)")
	flags.StringVar(&o.subjects, "subjects", os.Getenv("SUBJECTS"), "run these `subjects`, separated by commas (SUBJECTS); empty: "+strings.Join(typical, ","))
	flags.Float64Var(&o.rate, "rate", 20_000, "calls a second")
	flags.IntVar(&o.callers, "callers", 3000, "number of callers that share the rate; each has one call in flight and keys of one slot")
	flags.DurationVar(&o.deadline, "deadline", 10*time.Second, "of each call")
	flags.DurationVar(&o.nodeTimeout, "node-timeout", 2*time.Second, "cluster-node-timeout of the servers")
	flags.DurationVar(&o.lead, "lead", 4*time.Second, "load before the fault")
	flags.DurationVar(&o.tail, "tail", 8*time.Second, "load after the fault")
	flags.DurationVar(&o.stop, "stop", 5*time.Second, "of the scenario stop")
	flags.DurationVar(&o.outage, "outage", 8*time.Second, "of half-down, silent, one-way, split-view and cut-off")
	flags.IntVar(&o.slots, "slots", 4096, "number of slots that migrate, at most a third of all")
	flags.Uint64Var(&o.seed, "seed", 1, "`seed` of the planned instants")
	flags.StringVar(&o.out, "out", "", "the `file` of raw results; if empty, results/raw/"+suiteName+".jsonl, with -quick below results/quick")
	flags.StringVar(&o.note, "note", "", "a `text` for the head of the raw results, such as what else was running")
	flags.BoolVar(&o.quick, "quick", quick != "" && quick != "0", "600 calls a second and short faults, to check that everything works (QUICK=1)")
	flags.BoolVar(&o.markdown, "markdown", false, "print the stored results as a table and exit")
	if err := command.Parse(flags, args, stderr); err != nil {
		return nil, err
	}
	if o.quick {
		o.hurry()
	}
	if _, end := share(0); o.slots < 1 || o.slots > end {
		return nil, fmt.Errorf("%d slots, want 1 to %d", o.slots, end)
	}
	if o.callers < 1 || o.rate <= 0 {
		return nil, fmt.Errorf("%d callers and %v calls a second, want both positive", o.callers, o.rate)
	}
	return o, nil
}

// hurry makes everything short and small.
func (o *options) hurry() {
	o.rate, o.callers, o.nodeTimeout, o.slots = 600, 150, 500*time.Millisecond, 64
	o.lead, o.tail, o.stop, o.outage = 300*time.Millisecond, time.Second, 2*time.Second, time.Second
}

// typed returns the command that repeats the measurement.
func (o *options) typed() string {
	words := []string{"go run ./" + suiteName, "-rate " + strconv.FormatFloat(o.rate, 'f', -1, 64), "-callers " + strconv.Itoa(o.callers)}
	if o.quick {
		words = append(words, "-quick")
	}
	return strings.Join(words, " ")
}

// chosen returns the scenarios and the subjects to run.
func (o *options) chosen() ([]*scenario, []string, error) {
	var names []string
	if o.scenario != "" {
		names = strings.Split(o.scenario, ",")
	}
	var all []*scenario
	for i := range scenarios {
		if len(names) == 0 || slices.Contains(names, scenarios[i].name) {
			all = append(all, &scenarios[i])
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(sc *scenario) bool { return sc.name == name }) {
			return nil, nil, fmt.Errorf("no scenario %q", name)
		}
	}
	if o.subjects == "" {
		return all, typical, nil
	}
	subjects := strings.Split(o.subjects, ",")
	for _, name := range subjects {
		if targets()[name] == nil {
			return nil, nil, fmt.Errorf("no subject %q", name)
		}
	}
	return all, subjects, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	all, subjects, err := o.chosen()
	if err != nil {
		return err
	}
	if o.out == "" {
		module, err := proc.BenchModule(ctx)
		if err != nil {
			return err
		}
		o.out = filepath.Join(module, "results", "raw", suiteName+".jsonl")
		if o.quick {
			o.out = filepath.Join(module, "results", "quick", "raw", suiteName+".jsonl")
		}
	}
	results, err := openResults(o.out)
	if err != nil {
		return err
	}
	if o.markdown {
		return results.write(stdout)
	}
	if err := load.NeedDescriptors(uint64(4*o.callers) + 1000); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "slipstream-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	results.head = head{Command: o.typed(), Note: o.note}
	err = o.runAll(ctx, scratch, all, subjects, results, stderr)
	return errors.Join(err, results.write(stdout))
}

// runAll runs each subject in each scenario, one after another, and stores every row.
func (o *options) runAll(ctx context.Context, scratch string, all []*scenario, subjects []string, results *results, progress io.Writer) error {
	var problems []error
	for _, sc := range all {
		for _, subject := range subjects {
			began := time.Now()
			r, err := o.run(ctx, scratch, subject, sc)
			if r != nil {
				err = errors.Join(err, results.add(r))
			}
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: %s: %w", sc.name, subject, err))
				fmt.Fprintln(progress, problems[len(problems)-1])
			}
			if ctx.Err() != nil {
				return errors.Join(problems...)
			}
			fmt.Fprintf(progress, "%s: %s: %.0f s\n", sc.name, subject, time.Since(began).Seconds())
		}
	}
	return errors.Join(problems...)
}
