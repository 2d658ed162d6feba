// Command pacing measures the load generator itself: how late it releases requests, and how much
// CPU time and how many context switches it needs for a request, in an open loop at a fixed rate
// and in a closed loop.
//
//	cd bench && go run ./pacing [-rate 50000] [-callers 64] [-rounds 6]
//
// Two targets are loaded: null, which answers immediately, and echo, an echo server in a separate
// process. Each round of each load is a separate process. With -other, the path of this program
// built from another commit, every round measures both programs, in random order.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

func main() {
	loadproc.Child(targets())
	command.Run("pacing", run)
}

// options are the flags.
type options struct {
	rate     float64
	callers  int
	rounds   int
	duration time.Duration
	process  string
	only     string
	other    string
	seed     uint64
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("pacing", flag.ContinueOnError)
	flags.Float64Var(&o.rate, "rate", 50_000, "`requests` a second of the open loops")
	flags.IntVar(&o.callers, "callers", 64, "`number` of callers")
	flags.IntVar(&o.rounds, "rounds", 6, "`number` of rounds")
	flags.DurationVar(&o.duration, "duration", 2*time.Second, "length of the measured window")
	flags.StringVar(&o.process, "arrivals", string(load.Poisson), "arrival `process`: constant, poisson or bursts")
	flags.StringVar(&o.only, "load", "", "measure only the loads whose name has this `prefix`, such as \"null open\"")
	flags.StringVar(&o.other, "other", "", "`program` built from this package at another commit, to compare with this one")
	flags.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "`seed` for the order in each round")
	return o, command.Parse(flags, args, stderr)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	module, scratch, err := workspace(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	program, err := subject.BuildRival(ctx, module, scratch, "net", "floor")
	if err != nil {
		return err
	}
	server, err := program.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	loads := o.loads(server.Address)
	m, err := o.measure(ctx, loads, stderr)
	if err != nil {
		fmt.Fprintln(stdout, "PARTIAL: the table contains only the finished rounds.")
	}
	return errors.Join(err, m.write(stdout, loads))
}

// measure runs all loads once per round. If there is an error, it also returns the results of the
// loads that finished.
func (o options) measure(ctx context.Context, loads []namedLoad, progress io.Writer) (measured, error) {
	m := measured{}
	rng := rand.New(rand.NewPCG(o.seed, 1))
	for round := 1; round <= o.rounds; round++ {
		fmt.Fprintf(progress, "pacing: round %d of %d\n", round, o.rounds)
		for _, i := range rng.Perm(len(loads)) {
			l := loads[i]
			l.spec.Seed = uint64(round)
			outcome, err := loadproc.Run(ctx, l.spec)
			if err != nil {
				return m, fmt.Errorf("%s, round %d: %w", l.name, round, err)
			}
			m[l.name] = append(m[l.name], outcome.Result)
		}
	}
	return m, nil
}

// A named load is a row of the table.
type namedLoad struct {
	name string
	spec loadproc.Spec
}

// loads returns the rows of the table, in order.
func (o options) loads(address string) []namedLoad {
	programs := []struct{ name, path string }{{"this", ""}}
	if o.other != "" {
		programs = append(programs, struct{ name, path string }{"other", o.other})
	}
	var all []namedLoad
	for _, target := range []string{nullTarget, echoTarget} {
		for _, open := range []bool{true, false} {
			for _, p := range programs {
				spec := loadproc.Spec{
					Target: target, Address: address, Program: p.path,
					Callers: o.callers, WarmUp: o.duration / 4, Duration: o.duration,
				}
				loop := "closed"
				if open {
					loop = "open"
					spec.Arrivals = load.Arrivals{Process: load.Process(o.process), Rate: o.rate}
				}
				if name := fmt.Sprintf("%s %s %s", target, loop, p.name); strings.HasPrefix(name, o.only) {
					all = append(all, namedLoad{name, spec})
				}
			}
		}
	}
	return all
}
