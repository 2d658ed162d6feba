// Command gateway compares the gateway with servers that do the same job:
//
//	cd bench && go run ./gateway [-scenario memory-hit/64] [-quick]
//
// It builds the subjects, runs each as a separate process with the load in a third
// process, and writes results/gateway.json and results/raw/gateway.jsonl.
package main

import (
	"context"
	"flag"
	"io"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
)

// options are the flags.
type options struct {
	command.Flags
	profile  bool
	profiles string // directory for files for pprof; if empty, none are kept
}

func main() {
	loadproc.Child()
	command.Main(suite())
}

// suite is the program.
func suite() command.Suite {
	var o options
	var h *harness
	return command.Suite{
		Name: suiteName, Window: "2s, or 500ms with -quick", Descriptors: 16384 + 500, MaxRounds: 31,
		Register: func(flags *flag.FlagSet) {
			flags.BoolVar(&o.profile, "profile", false, "print the shares of the CPU time of a memory hit with 64 connections and exit; with -scenario memory-hit-full, -identity or -key also with everything off")
			flags.StringVar(&o.profiles, "profiles", "", "`directory` to keep the profiles of -profile in, for go tool pprof -base")
		},
		Open: func(f *command.Flags, p command.Place, progress io.Writer) command.Harness {
			o.Flags = *f
			h = newHarness(p.Module, p.Scratch, o, progress)
			return h
		},
		Instead: func(ctx context.Context, _ command.Place, stdout, _ io.Writer) (bool, error) {
			if !o.profile {
				return false, nil
			}
			return true, h.profile(ctx, 64, stdout)
		},
	}
}
