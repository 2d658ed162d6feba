// Command http compares the gateway's own event loop with other servers of prepared responses, in
// Go and in C:
//
//	cd bench && go run ./http [-scenario hit/64] [-quick]
//
// It builds the subjects, runs each as a separate process with the load in a third
// process, and writes results/http.json and results/raw/http.jsonl.
package main

import (
	"io"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
)

// suite is the program.
var suite = command.Suite{
	Name: suiteName, Window: "2s, or 500ms with -quick", Descriptors: 16384 + 500, MaxRounds: 16,
	Open: func(f *command.Flags, p command.Place, progress io.Writer) command.Harness {
		return newHarness(f, p, progress)
	},
}

func main() {
	loadproc.Child()
	command.Main(suite)
}
