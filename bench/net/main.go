// Command net compares event loops with each other and with a goroutine for each
// connection, and measures the choices of a loop one by one:
//
//	cd bench && go run ./net [-scenario echo/100] [-quick]
//
// It builds the servers, runs each as a process of its own with the load in a
// third process, and writes results/net.json and results/raw/net.jsonl.
package main

import (
	"context"
	"io"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/echo"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
)

// program is the command.
var program = command.Program{
	Name: suiteName, Window: "2s, or 300ms with -quick", Descriptors: 10_500, MaxRounds: 16,
	Open: func(s *command.Suite, p command.Place, progress io.Writer) (command.Harness, error) {
		return newHarness(s, p, progress), nil
	},
}

func main() {
	loadproc.Child(echo.Targets())
	command.Main(suiteName, func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		return program.Run(ctx, args, stdout, stderr)
	})
}
