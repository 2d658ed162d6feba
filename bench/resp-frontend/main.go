// Command resp-frontend compares the gateway's Redis frontend with redis-server:
//
//	cd bench && go run ./resp-frontend [-scenario get-1k6/64] [-quick]
//
// It builds the subjects, runs each as a process of its own with the load in
// another, and writes results/resp-frontend.json and results/raw/resp-frontend.jsonl.
package main

import (
	"context"
	"io"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/pages"
)

// program is the command.
var program = command.Program{
	Name: suiteName, Window: "2s, or 500ms with -quick", Descriptors: 1000, MaxRounds: 16,
	Open: func(s *command.Suite, p command.Place, progress io.Writer) (command.Harness, error) {
		return newHarness(s, p, progress), nil
	},
}

func main() {
	loadproc.Child(pages.Targets())
	command.Main(suiteName, func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		return program.Run(ctx, args, stdout, stderr)
	})
}
