package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// longest bounds the load of a run, which is ended when the fault is over.
const longest = 10 * time.Minute

// loadavg returns the load averages of the machine, or an empty string if they are not available.
func loadavg() string {
	text, _ := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

// run runs one subject in one scenario, on a separate cluster. If there is an error, the row, if not
// nil, has the results until then.
func (o *options) run(ctx context.Context, scratch, subject string, sc *scenario) (*row, error) {
	dir, err := os.MkdirTemp(scratch, "run-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r := &row{
		Scenario: sc.name, Subject: subject, About: load.Describe(o.typed()), LoadAvg: loadavg(), Rate: o.rate, Callers: o.callers,
	}
	s, err := newStage(ctx, dir, o, sc)
	if err != nil {
		return nil, err
	}
	defer s.cluster.Discard()
	w := work{Ledger: filepath.Join(dir, "ledger"), Started: filepath.Join(dir, "started"), Deadline: o.deadline}
	err = s.operate(func(o *operator) {
		if sc.prepare != nil {
			sc.prepare(o)
		}
		w.Seeds = o.seeds()
		o.resetCounters()
	})
	if err != nil {
		return nil, err
	}
	outcome, err := s.underLoad(subject, w, func() error {
		err := s.operate(func(o *operator) {
			o.sleep(o.options.lead)
			sc.inject(o)
			o.times.over = time.Now()
			o.sleep(o.options.tail)
		})
		if s.times.over.IsZero() {
			s.times.over = time.Now()
		}
		return err
	})
	l, ledgerErr := readLedger(w.Ledger)
	if ledgerErr != nil {
		return nil, errors.Join(err, ledgerErr)
	}
	if err != nil {
		r.Partial = err.Error()
	}
	r.LoadAvg += "; " + loadavg()
	if s.times.fault.IsZero() {
		s.times.fault = s.times.ended
	}
	r.analyze(l, &s.times, func(caller int) bool { return s.affected[slotOf(caller)] })
	if outcome.Result != nil && outcome.Result.Pacing != nil {
		r.LateP99MS, r.LateMaxMS = millis(outcome.Result.Pacing.Quantile(0.99)), millis(outcome.Result.Pacing.Max())
	}
	return r, errors.Join(err, s.look(r, l))
}

// look adds what the servers report at the end.
func (s *stage) look(r *row, l *ledger) error {
	var lists [][]int32
	var problem error
	err := s.operate(func(o *operator) {
		lists, problem = o.lists(r.Callers)
		o.count()
	})
	r.Unasked = max(0, s.failovers-scenarios[place(r.Scenario)].failovers)
	if r.Topology = float64(s.topology) / s.times.ended.Sub(s.times.began).Seconds(); problem == nil && lists != nil {
		r.audit(l, &s.times, lists)
	}
	if r.Partial != "" {
		return problem // err has been reported before
	}
	return errors.Join(err, problem)
}

// underLoad calls act while a subject is under load, and ends the load after it.
func (s *stage) underLoad(subject string, w work, act func() error) (loadproc.Outcome, error) {
	spec := loadproc.Spec{
		Target: subject, Callers: s.options.callers, Duration: longest, Seed: s.options.seed,
		Arrivals: load.Arrivals{Process: load.Poisson, Rate: s.options.rate},
	}
	var err error
	if spec.Options, err = json.Marshal(w); err != nil {
		return loadproc.Outcome{}, err
	}
	ctx, end := context.WithCancel(s.ctx)
	defer end()
	type ending struct {
		outcome loadproc.Outcome
		err     error
	}
	ended := make(chan ending, 1)
	// Ends with the load process, which end terminates; waited for below.
	go func() {
		outcome, err := loadproc.Run(ctx, spec)
		ended <- ending{outcome, err}
	}()
	if !s.begun(w.Started, func() bool { return len(ended) > 0 }) {
		end()
		e := <-ended
		return e.outcome, fmt.Errorf("the load did not begin: %w", errors.Join(e.err, s.ctx.Err()))
	}
	s.times.began = time.Now()
	problem := act()
	end()
	e := <-ended
	s.times.ended = time.Now()
	if !e.outcome.Partial() && e.err != nil {
		problem = errors.Join(problem, fmt.Errorf("%s: %w", subject, e.err))
	}
	return e.outcome, problem
}

// begun waits for the file that the load process creates with its first call. It returns false if
// the load or the run ends first.
func (s *stage) begun(path string, ended func() bool) bool {
	for {
		if _, err := os.Stat(path); err == nil {
			return true
		}
		if ended() {
			return false
		}
		select {
		case <-s.ctx.Done():
			return false
		case <-time.After(2 * time.Millisecond):
		}
	}
}
