package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/redisclusters"
	"github.com/slipstream-go/slipstream/bench/internal/redisload"
	"github.com/slipstream-go/slipstream/bench/internal/redisserver"
	"github.com/slipstream-go/slipstream/internal/load"
)

// masters is the number of masters of the cluster.
const masters = 3

// A harness holds what the scenarios share. Subjects run one at a time.
type harness struct {
	// Immutable after newHarness.
	scratch string
	options options
	warmUp  time.Duration

	// Owned by the goroutine that runs the suite.
	stage command.Stage[*stage]
	asked map[string]*questions // by subject
}

// questions are the requests of a subject to the servers in addition to its work.
type questions struct {
	moved             float64 // redirections in all windows
	seconds, topology float64 // of the scenario topology: its windows, and requests for the topology
}

func newHarness(scratch string, o options) *harness {
	h := &harness{scratch: scratch, options: o, warmUp: 200 * time.Millisecond, asked: map[string]*questions{}}
	if o.Quick {
		h.warmUp = 50 * time.Millisecond
	}
	return h
}

// quickWindow is the window of every scenario with -quick.
const quickWindow = 150 * time.Millisecond

// A stage is what the clients of a scenario connect to: a cluster, and a single server for the
// subject single.
type stage struct {
	cluster *redisclusters.Cluster
	server  *redisserver.Server
	trip    time.Duration // of a request to a master, over a plain connection
}

// open returns the stage of the current scenario.
func (h *harness) open(ctx context.Context) (*stage, error) {
	return h.stage.Open(func() (*stage, error) {
		s := &stage{}
		var err error
		if s.cluster, err = redisclusters.Start(ctx, h.scratch, masters); err == nil {
			s.server, err = redisserver.Start(ctx, h.scratch, 0)
		}
		if err == nil {
			s.trip, err = redisserver.RoundTrip(ctx, s.cluster.Addresses()[0], 101)
		}
		return s, err
	})
}

// Close ends what was started.
func (s *stage) Close() error {
	var errs []error
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
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
	work     redisload.Work
	callers  int
	window   time.Duration
	profile  string // file of a CPU profile of the window; if empty, none
	// sent measures latency from the sending of a request, not from the planned instant.
	sent bool
}

// run runs one subject in a separate process.
func (h *harness) run(ctx context.Context, subject string, r round, number int) (load.Sample, error) {
	k, ok := kindOf(subject)
	if !ok {
		return load.Sample{}, fmt.Errorf("no subject %q", subject)
	}
	st, err := h.open(ctx)
	if err != nil {
		return load.Sample{}, err
	}
	spec := loadproc.Spec{
		Target: k.Name, Callers: r.callers, WarmUp: h.warmUp, Duration: r.window, Seed: uint64(number), Profile: r.profile,
	}
	if subject == single {
		spec.Address, spec.PID = st.server.Address, st.server.PID()
		r.work.Counted = []string{st.server.Address}
	} else {
		pids := st.cluster.PIDs()
		spec.PID, spec.Also = pids[0], pids[1:]
		r.work.Cluster = st.cluster.Addresses()
		r.work.Counted = r.work.Cluster
	}
	if spec.Options, err = json.Marshal(r.work); err != nil {
		return load.Sample{}, err
	}
	outcome, err := loadproc.Run(ctx, spec)
	if err != nil {
		err = fmt.Errorf("%s: %w", subject, err)
		if !outcome.Partial() {
			return load.Sample{}, err
		}
	}
	sample := redisload.Sample(outcome.Result, st.trip, r.sent)
	if err == nil {
		h.ask(subject, r.scenario, outcome.Result, sample)
	}
	return sample, err
}

// ask records the requests that a subject has sent in a window in addition to its work.
func (h *harness) ask(subject, scenario string, result *load.Result, sample load.Sample) {
	d, ok := sample.Details.(redisload.Details)
	if !ok || d.Servers == nil {
		return
	}
	q := h.asked[subject]
	if q == nil {
		q = &questions{}
		h.asked[subject] = q
	}
	q.moved += d.Servers.Moved
	if scenario == topology {
		q.seconds += result.Elapsed.Seconds()
		q.topology += d.Servers.Topology
	}
}
