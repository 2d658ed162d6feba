// Command redis compares Redis clients, each in a separate process, against a
// dedicated redis-server:
//
//	cd bench && go run ./redis [-scenario closed/128] [-quick]
//
// It writes results/redis.json and results/raw/redis.jsonl; with -evil it connects the clients to a
// hostile server instead and writes results/redis-evil.json.
package main

import (
	"context"
	"flag"
	"io"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/redisload"
)

const suiteName = "redis"

// options are the flags.
type options struct {
	command.Flags
	evil  bool
	cases string
	limit time.Duration
}

// children does its job and exits if the process was started as a load process or for a probe.
func children() {
	loadproc.Child(redisload.Targets())
	probeChild()
}

func main() {
	children()
	command.Main(suite())
}

// suite is the program. A round of 14 subjects takes about 16 s.
func suite() command.Suite {
	var o options
	return command.Suite{
		Name: suiteName, Window: "600ms (closed), 800ms (rates), or 150ms with -quick", Descriptors: 8192 + 500, MaxRounds: 16,
		Register: func(flags *flag.FlagSet) {
			flags.BoolVar(&o.evil, "evil", false, "connect the clients to a hostile server, store the results in results/redis-evil.json and exit")
			flags.StringVar(&o.cases, "cases", "", "with -evil, run only `cases` whose names begin with one of these, separated by commas, and store nothing")
			flags.DurationVar(&o.limit, "limit", evilLimit, "with -evil, how long a client may take for one case")
		},
		Markdown: func(stdout io.Writer, p command.Place) error { return writeEvilMarkdown(stdout, p.Results) },
		Open: func(f *command.Flags, p command.Place, progress io.Writer) command.Harness {
			o.Flags = *f
			return newHarness(p.Scratch, o, progress)
		},
		Instead: func(ctx context.Context, p command.Place, stdout, stderr io.Writer) (bool, error) {
			if !o.evil {
				return false, nil
			}
			return true, runEvil(ctx, o, p, stdout, stderr)
		},
	}
}
