// Command thrift-codec measures encoding and decoding of Thrift's Binary protocol: ours and other
// codecs for Thrift, protobuf and Cap'n Proto.
//
//	cd bench && go run ./thrift-codec [-scenario encode/20KB] [-quick]
//
// It generates the code of all subjects with their own tools, builds one program with it, and runs
// that program once per round for each subject. Results go to results/thrift-codec.json and
// results/raw/thrift-codec.jsonl.
package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/internal/load"
)

const suiteName = "thrift-codec"

var suite = command.Suite{
	Name: suiteName, Window: "200ms, or 20ms with -quick", MaxRounds: 16,
	Open: func(f *command.Flags, p command.Place, progress io.Writer) command.Harness {
		h := &harness{window: f.Window(200*time.Millisecond, 20*time.Millisecond), place: p, progress: progress}
		h.rivals, h.missing = available()
		return h
	},
	Markdown: writeTables,
}

func main() { command.Main(suite) }

// A harness provides the scenarios and the measuring program.
type harness struct {
	window   time.Duration
	place    command.Place
	progress io.Writer
	rivals   []rival
	missing  []error
	program  string // built by the first subject that needs it
}

// Close implements [command.Harness].
func (*harness) Close() error { return nil }

// run measures one subject in one scenario.
func (h *harness) run(ctx context.Context, s step) (load.Sample, error) {
	if h.program == "" {
		fmt.Fprintf(h.progress, "%s: generating and building the code of all subjects\n", suiteName)
		program, err := build(ctx, h.place, h.rivals)
		if err != nil {
			return load.Sample{}, err
		}
		h.program = program
	}
	return s.measure(ctx, h.program, h.window)
}

// Check implements [command.Harness]: it prints the columns that only this suite has, and checks
// the numbers of allocations.
func (h *harness) Check(w io.Writer, rows []load.Row) error {
	command.ReportMissing(w, h.missing)
	fmt.Fprintf(w, "%-26s %-20s %14s %12s %14s\n", "scenario", "subject", "CPU ns/op", "allocs/op", "bytes/op")
	for _, row := range rows {
		if row.NsOp != nil && row.Allocs != nil && row.BytesOp != nil {
			fmt.Fprintf(w, "%-26s %-20s %14.1f %12.1f %14.0f\n", row.Scenario, row.Subject, *row.NsOp, *row.Allocs, *row.BytesOp)
		}
	}
	for _, b := range allocationBounds {
		b.judge(w, rows)
	}
	return command.Failures(rows)
}
