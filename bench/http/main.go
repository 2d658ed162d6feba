// Command http compares the gateway's own event loop with other servers of ready
// answers, in Go and in C:
//
//	cd bench && go run ./http [-scenario hit/64] [-quick]
//
// It builds the subjects, runs each as a process of its own with the load in a
// third process, and writes results/http.json and results/raw/http.jsonl.
package main

import (
	"context"
	"io"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
)

// program is the command.
var program = command.Program{
	Name: suiteName, Window: "2s, or 500ms with -quick", Descriptors: 16384 + 500, MaxRounds: 16,
	Open: func(s *command.Suite, p command.Place, progress io.Writer) (command.Harness, error) {
		return newHarness(s, p, progress), nil
	},
}

func main() {
	loadproc.Child()
	command.Main(suiteName, func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		return program.Run(ctx, args, stdout, stderr)
	})
}
