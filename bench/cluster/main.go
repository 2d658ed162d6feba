// Command cluster compares clients of a Redis Cluster, each in a separate process, against three
// masters:
//
//	cd bench && go run ./cluster [-scenario closed/128] [-quick]
//
// It writes results/cluster.json and results/raw/cluster.jsonl; with -profile it shows where one
// client spends its time.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/redisload"
)

const suiteName = "cluster"

// options are the flags.
type options struct {
	command.Flags
	profile string // subject to be profiled; if empty, none
	out     string // file of the profile; if empty, one in the system's temporary directory
}

func main() {
	loadproc.Child(redisload.Targets())
	command.Main(suite())
}

// suite is the program. A round of 13 subjects takes about 15 s.
func suite() command.Suite {
	var o options
	var h *harness
	return command.Suite{
		Name: suiteName, Window: "600ms (closed), 800ms (rates), 3s (-profile), or 150ms with -quick", Descriptors: 8192 + 500, MaxRounds: 16,
		Register: func(flags *flag.FlagSet) {
			flags.StringVar(&o.profile, "profile", "", "write a CPU profile of this `subject` in the scenario that follows the flags, print where its time goes and exit")
			flags.StringVar(&o.out, "out", "", "with -profile, the `file`; if empty, one in the system's temporary directory")
		},
		Parsed: func(f *command.Flags, rest []string) error {
			switch {
			case o.profile == "":
				return command.None(rest)
			case len(rest) == 1:
				f.Scenario = rest[0]
			case len(rest) > 1 || f.Scenario == "":
				return fmt.Errorf("arguments %q, want -profile SUBJECT SCENARIO", rest)
			}
			return nil
		},
		Open: func(f *command.Flags, p command.Place, _ io.Writer) command.Harness {
			o.Flags = *f
			h = newHarness(p.Scratch, o)
			return h
		},
		Instead: func(ctx context.Context, _ command.Place, stdout, _ io.Writer) (bool, error) {
			if o.profile == "" {
				return false, nil
			}
			return true, h.profile(ctx, stdout)
		},
	}
}
