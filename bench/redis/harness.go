package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/finetimer"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/redisload"
	"github.com/slipstream-go/slipstream/bench/internal/redisserver"
	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/internal/testkit/faultproxy"
)

// A harness holds what the scenarios share. Subjects run one at a time.
type harness struct {
	// Immutable after newHarness.
	scratch  string
	options  options
	progress io.Writer
	warmUp   time.Duration

	// Owned by the goroutine that runs the suite.
	stage command.Stage[*stage]
	trips map[string]time.Duration // round trips by scenario
	// refused is the result of the last round of memory-stopped, or nil if there was none.
	refused map[string]float64
}

func newHarness(scratch string, o options, progress io.Writer) *harness {
	h := &harness{scratch: scratch, options: o, progress: progress, warmUp: 200 * time.Millisecond, trips: map[string]time.Duration{}}
	if o.Quick {
		h.warmUp = 50 * time.Millisecond
	}
	return h
}

// quickWindow is the window of every scenario with -quick.
const quickWindow = 150 * time.Millisecond

// A stage is what the clients of a scenario connect to.
type stage struct {
	server  *redisserver.Server
	address string        // that clients connect to
	trip    time.Duration // of a request, over a plain connection to address
	proxy   *nutcracker   // nil if there is none
	delay   *faultproxy.Proxy
	fine    func() // ends fine timers; nil without them
}

// A path describes the connection from the clients to the server.
type path struct {
	nutcracker bool
	delay      time.Duration // added to a round trip
}

// open returns the stage of the current scenario.
func (h *harness) open(ctx context.Context, scenario string, size int, way path) (*stage, error) {
	return h.stage.Open(func() (*stage, error) {
		s := &stage{}
		err := s.build(ctx, h.scratch, size, way)
		if err == nil {
			s.trip, err = redisserver.RoundTrip(ctx, s.address, 101)
			h.trips[scenario] = s.trip
		}
		return s, err
	})
}

func (s *stage) build(ctx context.Context, scratch string, size int, way path) error {
	var err error
	if s.server, err = redisserver.Start(ctx, scratch, size); err != nil {
		return err
	}
	s.address = s.server.Address
	if way.nutcracker {
		if s.proxy, err = startNutcracker(ctx, scratch, s.address); err != nil {
			return err
		}
		s.address = s.proxy.address
	}
	if way.delay > 0 {
		link := faultproxy.Link{Delay: way.delay / 2}
		s.delay, err = faultproxy.Listen(s.address, faultproxy.Options{Plan: faultproxy.Always(faultproxy.Plan{Up: link, Down: link})})
		if err != nil {
			return err
		}
		s.address = s.delay.Addr()
		s.fine, err = finetimer.Start(50 * time.Microsecond)
	}
	return err
}

// Close ends what was started.
func (s *stage) Close() error {
	var errs []error
	if s.fine != nil {
		s.fine()
	}
	if s.delay != nil {
		errs = append(errs, s.delay.Close())
	}
	if s.proxy != nil {
		errs = append(errs, s.proxy.Stop())
	}
	if s.server != nil {
		errs = append(errs, s.server.Stop())
	}
	return errors.Join(errs...)
}

// Close implements [command.Harness].
func (h *harness) Close() error { return h.stage.Close() }

// A round is what one subject does in one round.
type round struct {
	scenario string
	target   string // name of the kind
	work     redisload.Work
	way      path
	callers  int
	arrivals load.Arrivals
	batch    int
	warmUp   time.Duration
	window   time.Duration
	// sent measures latency from the sending of a request or burst, not from the planned instant.
	sent bool
}

// run runs one subject in a separate process.
func (h *harness) run(ctx context.Context, r round, number int) (load.Sample, error) {
	st, err := h.open(ctx, r.scenario, r.work.Size, r.way)
	if err != nil {
		return load.Sample{}, err
	}
	if st.proxy != nil {
		r.work.Proxy = st.proxy.PID()
	}
	r.work.Plain = r.way.nutcracker
	text, err := json.Marshal(r.work)
	if err != nil {
		return load.Sample{}, err
	}
	outcome, err := loadproc.Run(ctx, loadproc.Spec{
		Target: r.target, Options: text, Address: st.address, PID: st.server.PID(),
		Callers: r.callers, Arrivals: r.arrivals, Batch: r.batch, WarmUp: r.warmUp, Duration: r.window, Seed: uint64(number),
	})
	if err != nil {
		err = fmt.Errorf("%s: %w", r.target, err)
		if !outcome.Partial() {
			return load.Sample{}, err
		}
	}
	return redisload.Sample(outcome.Result, st.trip, r.sent), err
}
