package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/tarantoolserver"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A harness holds what the scenarios share. Subjects run one at a time.
type harness struct {
	// Immutable after newHarness.
	scratch string
	options options

	// Owned by the goroutine that runs the suite.
	server *tarantoolserver.Server // of the current scenario; nil if there is none yet
}

func newHarness(scratch string, o options) *harness {
	return &harness{scratch: scratch, options: o}
}

// warmUp returns the time before the window. Pairs need more, because an object is allocated for
// each future that can be in flight.
func (h *harness) warmUp(w work) time.Duration {
	switch {
	case h.options.Quick:
		return 50 * time.Millisecond
	case w.Mode == modePairs:
		return 500 * time.Millisecond
	}
	return 200 * time.Millisecond
}

// quickWindow is the window of every scenario with -quick.
const quickWindow = 150 * time.Millisecond

// Close implements [command.Harness].
func (h *harness) Close() error { return h.closeServer() }

// closeServer is the Close of every scenario.
func (h *harness) closeServer() error {
	s := h.server
	h.server = nil
	if s == nil {
		return nil
	}
	return s.Stop()
}

// A round is what one subject does in one round.
type round struct {
	scenario string
	settings string // of the server
	work     work
	callers  int // or pairs
	window   time.Duration
	profile  string // file of a CPU profile of the window; if empty, none
}

// slack is the time that a load process may take in addition to the warm-up and the window: both
// end with waiting for the last reply, for which the generator has a limit. If a subject may hang,
// the time is shorter.
const (
	slack        = 90 * time.Second
	slackHanging = 15 * time.Second
)

// run runs one subject in a separate process, against the server of the scenario.
func (h *harness) run(ctx context.Context, subject string, r round, number int) (load.Sample, error) {
	k, ok := kindOf(subject)
	if !ok {
		return load.Sample{}, fmt.Errorf("no subject %q", subject)
	}
	if h.server == nil {
		var err error
		if h.server, err = tarantoolserver.Start(ctx, h.scratch, r.settings); err != nil {
			return load.Sample{}, err
		}
	}
	switch subject {
	case background:
		r.work.Deadline = false
	case apart:
		r.work.Apart = true
	}
	text, err := json.Marshal(r.work)
	if err != nil {
		return load.Sample{}, err
	}
	warmUp, limit := h.warmUp(r.work), slack
	if unsound(subject, r.scenario) {
		limit = slackHanging
	}
	limited, cancel := context.WithTimeout(ctx, warmUp+r.window+limit)
	defer cancel()
	outcome, err := loadproc.Run(limited, loadproc.Spec{
		Target: k.name, Options: text, Address: h.server.Address, PID: h.server.PID(),
		Callers: r.callers, WarmUp: warmUp, Duration: r.window, Seed: uint64(number), Profile: r.profile,
	})
	switch {
	case err != nil && ctx.Err() == nil && unsound(subject, r.scenario):
		return load.Sample{Errors: 1, ErrorSample: "the whole process: " + err.Error()}, nil
	case err != nil && outcome.Partial():
		return sampleOf(outcome.Result), fmt.Errorf("%s: %w", k.name, err)
	case err != nil:
		return load.Sample{}, fmt.Errorf("%s: %w", k.name, err)
	}
	return sampleOf(outcome.Result), nil
}

// sampleOf converts the result of a load process to the figures of a round. The program under test
// is the load process itself.
func sampleOf(result *load.Result) load.Sample {
	sample := result.Sample()
	if result.Completed > 0 {
		sample.Values[load.Allocs] = result.PerRequest(float64(result.Cost.Mallocs))
		sample.Values[load.BytesOp] = result.PerRequest(float64(result.Cost.Bytes))
	}
	return sample
}

// profileWindow is the length of a profile: at a hundred samples per second this
// is enough to detect functions that take a hundredth of the time.
const profileWindow = 3 * time.Second

// profile writes a CPU profile of one subject in one scenario.
func (h *harness) profile(ctx context.Context, w io.Writer) (err error) {
	o := h.options
	for _, r := range h.rounds() {
		if r.scenario != o.Scenario {
			continue
		}
		if r.profile, err = command.ProfileFile(o.out, suiteName, o.profile, r.scenario); err != nil {
			return err
		}
		r.window = h.options.Window(profileWindow, quickWindow)
		sample, err := h.run(ctx, o.profile, r, 1)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s in %s: %.0f requests/s, %.3f us of CPU a request, %.2f allocations, %d errors\ngo tool pprof -top %s\n",
			o.profile, r.scenario, sample.Values[load.RPS], sample.Values[load.ClientUS], sample.Values[load.Allocs], sample.Errors, r.profile)
		if sample.Errors > 0 {
			err = errors.Join(err, fmt.Errorf("%d requests failed, for example: %s", sample.Errors, sample.ErrorSample))
		}
		return err
	}
	return fmt.Errorf("no scenario %q", o.Scenario)
}
