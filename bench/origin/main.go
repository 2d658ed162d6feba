// Command origin measures the gateway over PostgreSQL: misses, the cost of triggers for writers,
// and how soon a commit is visible:
//
//	cd bench && go run ./origin [-scenario miss] [-quick]
//
// It creates a PostgreSQL cluster with a million departments, removed at the end, and writes
// results/origin.json and results/raw/origin.jsonl.
package main

import (
	"io"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
)

const suiteName = "origin"

// suite is the program. MaxRounds is chosen so that all of it ends within 20 minutes.
var suite = command.Suite{
	Name: suiteName, Window: "2s (1s: direct, writers), or 500ms with -quick; writers take whole seconds", Descriptors: 2048 + 500, MaxRounds: 10,
	Open: func(f *command.Flags, p command.Place, progress io.Writer) command.Harness {
		return newHarness(p, *f, progress)
	},
}

func main() {
	loadproc.Child(bareTargets)
	command.Main(suite)
}
