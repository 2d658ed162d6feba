// Command foo measures the versions of the service in examples/foo, the last of which is ours:
//
//	cd bench && go run ./foo [-scenario c30/30] [-quick]
//	cd bench && go run ./foo -drive localhost:6060 -duration 30s
//
// It builds a server, runs each version as a separate process with the load in a third process, and
// writes results/foo.json and results/raw/foo.jsonl. With -drive it only loads a service that is
// already running.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/internal/load"
)

const suiteName = "foo"

// options are the flags.
type options struct {
	*command.Flags
	drive   string
	callers int
}

func main() {
	loadproc.Child(targets())
	command.Main(suite())
}

// suite is the program. A round of twelve subjects takes about 30 s.
func suite() command.Suite {
	var o options
	return command.Suite{
		Name: suiteName, Window: "1500ms, or 300ms with -quick; with -drive 10s", MaxRounds: 16,
		Register: func(flags *flag.FlagSet) {
			flags.StringVar(&o.drive, "drive", "", "put the article's request on the service at this `address`, print the rate and exit")
			flags.IntVar(&o.callers, "callers", 30, "with -drive, the number of connections")
		},
		Open: func(f *command.Flags, p command.Place, progress io.Writer) command.Harness {
			o.Flags = f
			return newHarness(f, p, progress)
		},
		Instead: func(ctx context.Context, _ command.Place, stdout, _ io.Writer) (bool, error) {
			if o.drive == "" {
				return false, nil
			}
			return true, drive(ctx, o, stdout)
		},
	}
}

// drive puts load on a service that is already running.
func drive(ctx context.Context, o options, stdout io.Writer) error {
	spec := loadproc.Spec{Target: overHTTP, Address: o.drive, Callers: o.callers, Duration: o.Window(10*time.Second, time.Second), Seed: 1}
	if err := ask(&spec, work{First: asTagged}); err != nil {
		return err
	}
	outcome, err := loadproc.Run(ctx, spec)
	if err != nil {
		return err
	}
	s := outcome.Sample()
	fmt.Fprintf(stdout, "%.0f requests a second over %d connections; latency: mean %.0f us, p99 %.0f us\n",
		s.Values[load.RPS], o.callers, s.Values[load.MeanUS], s.Values[load.P99US])
	if s.Errors > 0 {
		return fmt.Errorf("%d requests failed, for example: %s", s.Errors, s.ErrorSample)
	}
	return nil
}
