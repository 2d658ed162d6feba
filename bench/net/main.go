// Command net compares event loops with each other and with a goroutine for each connection, and
// measures the design choices of a loop individually:
//
//	cd bench && go run ./net [-scenario echo/100] [-quick]
//
// It builds the servers, runs each as a separate process with the load in a third
// process, and writes results/net.json and results/raw/net.jsonl.
package main

import (
	"io"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/echo"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
)

// suite is the program.
var suite = command.Suite{
	Name: suiteName, Window: "2s, or 300ms with -quick", Descriptors: 10_500, MaxRounds: 16,
	Open: func(f *command.Flags, p command.Place, progress io.Writer) command.Harness {
		return newHarness(f, p, progress)
	},
}

func main() {
	loadproc.Child(echo.Targets())
	command.Main(suite)
}
