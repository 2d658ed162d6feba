// Command generators compares slipstream bench as a load generator with wrk and
// redis-benchmark:
//
//	cd bench && go run ./generators [-scenario http/64] [-quick]
//
// Each generator is a separate process that loads the same server in a closed loop. They are
// compared by the CPU time of the whole process, from its start to its end, divided by its
// requests. It writes results/generators.json and results/raw/generators.jsonl.
//
// With -calls it measures nothing: strace counts the system calls of the server.
package main

import (
	"context"
	"flag"
	"io"

	"github.com/slipstream-go/slipstream/bench/internal/command"
)

func main() { command.Main(newSuite()) }

// newSuite returns the program.
func newSuite() command.Suite {
	var calls bool
	var h *harness
	return command.Suite{
		Name: suiteName, Window: "4s, or 1s with -quick", Descriptors: 10_500, MaxRounds: 16,
		Register: func(flags *flag.FlagSet) {
			flags.BoolVar(&calls, "calls", false, "count the system calls of the server per request with strace, which slows everything down, and store nothing")
		},
		Open: func(f *command.Flags, p command.Place, progress io.Writer) command.Harness {
			h = newHarness(f, p, progress)
			return h
		},
		Instead: func(ctx context.Context, _ command.Place, stdout, _ io.Writer) (bool, error) {
			if !calls {
				return false, nil
			}
			return true, h.countCalls(ctx, stdout)
		},
		Markdown: func(stdout io.Writer, p command.Place) error { return writeCosts(stdout, p) },
	}
}
