// Command handler measures what a handler of net/http does for one request, without a network:
// ours, and two that encode structs as JSON for each request.
//
//	cd bench && go run ./handler [-quick]
//
// The article on a read-through cache in Go compares encoding/json with gojay in this
// way, on a department with ten employees. Each round of each subject is a separate process; the
// scenario steps/1 shows what each part of the HTTP surface costs. Results go to results/handler.json
// and results/raw/handler.jsonl.
package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/internal/load"
)

const suiteName = "handler"

// suite is the program.
var suite = command.Suite{
	Name: suiteName, Window: "1s, or 200ms with -quick", MaxRounds: 31,
	Open: func(f *command.Flags, _ command.Place, _ io.Writer) command.Harness {
		return harness{f.Window(time.Second, 200*time.Millisecond)}
	},
}

func main() {
	child()
	command.Main(suite)
}

// A harness provides the scenarios with one length of the window.
type harness struct{ window time.Duration }

// Scenarios implements [command.Harness].
func (h harness) Scenarios() []load.Scenario {
	return []load.Scenario{scenario(h.window), ladder(h.window)}
}

// Close implements [command.Harness].
func (harness) Close() error { return nil }

// scenario repeatedly calls a handler on one goroutine.
func scenario(window time.Duration) load.Scenario {
	sc := load.Scenario{Name: "hit/1", Primary: load.NsOp}
	for _, name := range []string{load.Ours, load.Control, gojaySubject, jsonSubject} {
		sc.Subjects = append(sc.Subjects, load.Subject{Name: name, Run: func(ctx context.Context, round int) (load.Sample, error) {
			return measure(ctx, job{Subject: name, Seed: uint64(round), WarmUp: window / 4, Window: window})
		}})
	}
	return sc
}

// ladder has a subject for each part of the HTTP surface. The parts are not rivals: what matters is
// the difference of each row to that of step-off.
func ladder(window time.Duration) load.Scenario {
	sc := load.Scenario{Name: stepsScenario, Primary: load.NsOp}
	for _, s := range steps {
		sc.Subjects = append(sc.Subjects, load.Subject{Name: s.name, Run: func(ctx context.Context, round int) (load.Sample, error) {
			return measure(ctx, job{Subject: s.name, Seed: uint64(round), WarmUp: window / 4, Window: window})
		}})
	}
	return sc
}

// Check implements [command.Harness]: it prints the columns that only this suite has.
func (harness) Check(w io.Writer, rows []load.Row) error {
	for _, row := range rows {
		if row.NsOp != nil && row.BytesOp != nil && row.Allocs != nil && row.ServerUS != nil {
			fmt.Fprintf(w, "%s: %s: %.0f ns, %.0f bytes and %.1f objects allocated, %.2f us of CPU a request\n",
				row.Scenario, row.Subject, *row.NsOp, *row.BytesOp, *row.Allocs, *row.ServerUS)
		}
	}
	return command.Failures(rows)
}
