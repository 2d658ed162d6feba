// Command tarantool compares Tarantool clients, each in a separate process,
// against a dedicated tarantool:
//
//	cd bench && go run ./tarantool [-scenario sync/512] [-quick]
//
// It writes results/tarantool.json and results/raw/tarantool.jsonl; with -curves
// it plots them, with -profile it shows where one client spends its time.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"path/filepath"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
)

const suiteName = "tarantool"

// options are the flags.
type options struct {
	command.Flags
	curves  string // directory for the pictures; if empty, measure
	profile string // subject to be profiled; if empty, none
	out     string // file of the profile; if empty, one in the system's temporary directory
}

func main() {
	loadproc.Child(targets())
	command.Main(suite())
}

// suite is the program. A round takes 6 s, with pairs 12 s.
func suite() command.Suite {
	var o options
	var h *harness
	return command.Suite{
		Name: suiteName, Window: "600ms (one caller to 8,192), 1s (pairs), 3s (-profile), or 150ms with -quick", MaxRounds: 16,
		Register: func(flags *flag.FlagSet) {
			flags.StringVar(&o.curves, "curves", "", "draw the stored ladder into this `directory`, print it as tables and exit")
			flags.StringVar(&o.profile, "profile", "", "write a CPU profile of this `subject` in the scenario that follows the flags, print a summary and exit")
			flags.StringVar(&o.out, "out", "", "with -profile, the `file`; if empty, one in the system's temporary directory")
		},
		Parsed: func(f *command.Flags, rest []string) error {
			f.Markdown = f.Markdown || o.curves != "" // both read stored results, and need no scratch directory
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
		Stored: func(stdout io.Writer, p command.Place) (bool, error) {
			if o.curves == "" {
				return false, nil
			}
			return true, writeCurves(filepath.Join(p.Results, suiteName+".json"), o.curves, stdout)
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
