// Command resp-frontend compares the gateway's Redis frontend with redis-server:
//
//	cd bench && go run ./resp-frontend [-scenario get-1k6/64] [-quick]
//
// It builds the subjects, runs each as a separate process with the load in another, and
// writes results/resp-frontend.json and results/raw/resp-frontend.jsonl.
package main

import (
	"io"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/pages"
)

// suite is the program.
var suite = command.Suite{
	Name: suiteName, Window: "2s, or 500ms with -quick", Descriptors: 1000, MaxRounds: 16,
	Open: func(f *command.Flags, p command.Place, progress io.Writer) command.Harness {
		return newHarness(f, p, progress)
	},
}

func main() {
	loadproc.Child(pages.Targets())
	command.Main(suite)
}
