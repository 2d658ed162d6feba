// Command redis measures Redis clients beside each other, each in a process of
// its own, against a redis-server of its own:
//
//	cd bench && go run ./redis [-scenario closed/128] [-quick]
//
// It writes results/redis.json and results/raw/redis.jsonl; with -evil it puts
// the clients before a hostile server instead and writes results/redis-evil.json.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/internal/load"
)

const suiteName = "redis"

// maxRounds ends the search for a calm control: a round of 14 subjects takes
// about 16 s.
const maxRounds = 16

// options are the flags.
type options struct {
	command.Suite
	evil  bool
	cases string
	limit time.Duration
}

// children ends the process if it was started as a load process or as one for
// probes.
func children() {
	loadproc.Child(targets())
	probeChild()
}

func main() {
	children()
	command.Main(suiteName, run)
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet(suiteName, flag.ContinueOnError)
	if err := o.Register(flags, "600ms (closed), 800ms (rates), or 150ms with -quick"); err != nil {
		return o, err
	}
	flags.BoolVar(&o.evil, "evil", false, "put the clients before a hostile server, store what happens in results/redis-evil.json and end")
	flags.StringVar(&o.cases, "cases", "", "with -evil: only `cases` whose names begin with one of these, separated by commas; nothing is stored")
	flags.DurationVar(&o.limit, "limit", evilLimit, "with -evil: how long a client may take with one case")
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
		return errors.Join(place.WriteMarkdown(stdout, suiteName), writeEvilMarkdown(stdout, place.Results))
	}
	if o.evil {
		return runEvil(ctx, o, place, stdout, stderr)
	}
	if err := proc.NeedDescriptors(8192 + 500); err != nil {
		return err
	}
	h := newHarness(place.Scratch, o, stderr)
	suite := load.Suite{Name: suiteName, Scenarios: o.Restrict(h.scenarios())}
	return o.Run(ctx, suite, place, maxRounds, stdout, stderr, h.check)
}
