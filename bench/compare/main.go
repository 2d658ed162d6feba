// Command compare compares the working tree with another commit. Both run as separate processes,
// interleaved in one run:
//
//	cd bench && go run ./compare -ref main [-suite http,redis] [-scenario redis-hit] [-callers 1,64]
//
// Of the gateway, the command slipstream of both commits is built and loaded over the network. Of
// the client libraries, one load program ([./client]) is built with the libraries of each.
// Scenarios that seem worse are measured again, and are reported if they are worse both times; then
// the command fails. Nothing is stored.
package main

import (
	"cmp"
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
	"github.com/slipstream-go/slipstream/bench/internal/pages"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// maxRounds bounds the number of rounds while the control is not yet stable.
const maxRounds = 12

func main() {
	loadproc.Child(pages.Targets())
	command.Run("compare", run)
}

// options are the flags.
type options struct {
	command.Measurement
	ref       string
	suites    string
	scenarios string
	callers   string
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.StringVar(&o.ref, "ref", os.Getenv("REF"), "commit, branch or tag to compare the working tree with (REF)")
	flags.StringVar(&o.suites, "suite", os.Getenv("SUITE"), "run these `suites`, separated by commas: "+strings.Join(suiteNames(), ", ")+", or all (SUITE)")
	flags.StringVar(&o.scenarios, "scenario", os.Getenv("SCENARIO"), "run these `scenarios`, separated by commas: "+strings.Join(kindNames(), ", ")+"; without a suite, memory-hit (SCENARIO)")
	flags.StringVar(&o.callers, "callers", os.Getenv("CALLERS"), "`numbers` of connections or callers, separated by commas, instead of the scenarios' own (CALLERS)")
	if err := o.Register(flags, "2s"); err != nil {
		return o, err
	}
	if err := command.Parse(flags, args, stderr); err != nil {
		return o, err
	}
	if o.ref == "" {
		return o, errors.New("no commit to compare with, want -ref")
	}
	if o.suites == "" && o.scenarios == "" {
		o.scenarios = "memory-hit"
	}
	return o, nil
}

// typed returns the command that repeats the measurement.
func (o options) typed() string {
	text := "make bench-compare REF=" + o.ref
	for name, value := range map[string]string{"SUITE": o.suites, "SCENARIO": o.scenarios, "CALLERS": o.callers} {
		if value != "" {
			text += " " + name + "=" + value
		}
	}
	return text
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	chosen, err := choose(o.suites, o.scenarios, o.callers)
	if err != nil {
		return err
	}
	if err := load.NeedDescriptors(4096); err != nil {
		return err
	}
	module, err := proc.BenchModule(ctx)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "slipstream-compare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	c := &comparison{
		module: module, scratch: scratch, window: cmp.Or(o.Duration, 2*time.Second), progress: stderr,
		opened: map[string]measurement{}, samples: map[string]map[string][]load.Sample{},
	}
	done, err := c.checkOut(ctx, o.ref)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close(), done()) }()
	return c.judge(ctx, chosen, o, stdout)
}

// measure runs the scenarios and returns the findings. If there is an error, it also returns the
// findings so far.
func (c *comparison) measure(ctx context.Context, chosen []scenario, o options) ([]finding, error) {
	suite := load.Suite{Name: "compare"}
	clear(c.samples)
	for _, s := range chosen {
		suite.Scenarios = append(suite.Scenarios, c.scenario(s))
	}
	report, err := suite.Run(ctx, load.Options{
		Directory: filepath.Join(c.scratch, "results"), Command: o.typed(), Progress: c.progress,
		Rounds: o.Rounds, MaxRounds: maxRounds, Seed: o.Seed,
	})
	if report == nil {
		return nil, err
	}
	if err == nil {
		err = command.Failures(report.Rows)
	}
	var all []finding
	for _, s := range chosen {
		row := slices.IndexFunc(report.Rows, func(r load.Row) bool { return r.Scenario == s.name() })
		if row >= 0 {
			all = append(all, findings(s, c.samples[s.name()], c.ref.name, report.Rows[row].Partial != "")...)
		}
	}
	return all, err
}

// judge measures the scenarios, and measures those that seem worse again.
func (c *comparison) judge(ctx context.Context, chosen []scenario, o options, stdout io.Writer) error {
	first, err := c.measure(ctx, chosen, o)
	if len(first) > 0 {
		err = errors.Join(err, writeFindings(stdout, first, c.ref.name))
	}
	if err != nil {
		return err
	}
	doubtful := suspects(chosen, first)
	if len(doubtful) == 0 {
		return nil
	}
	fmt.Fprintf(c.progress, "compare: repeating %d scenarios that seem to be worse\n", len(doubtful))
	second, err := c.measure(ctx, doubtful, o)
	if len(second) > 0 {
		_, writeErr := fmt.Fprintln(stdout, "\nRepeated:")
		err = errors.Join(err, writeErr, writeFindings(stdout, second, c.ref.name))
	}
	if err != nil {
		return err
	}
	return confirmed(first, second)
}
