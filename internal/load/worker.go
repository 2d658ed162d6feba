package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A caller whose requests fail at once would otherwise spin and starve the
// callers that work. Each error in a row doubles the pause.
const (
	errorPauseMin = time.Millisecond
	errorPauseMax = 100 * time.Millisecond
)

// errAbandoned is the outcome of a request cut off by the drain limit, if the
// caller did not know better.
var errAbandoned = errors.New("load: no answer within the drain limit")

// A worker is one caller with what it has recorded.
type worker struct {
	// Immutable after newWorker.
	index  int
	caller Caller
	batch  BatchCaller // nil: one request at a time
	cfg    *Config

	// Owned by the worker's goroutine during a phase, by Run between phases.
	service, intended, pacing Histogram
	completed, errors, unsent uint64
	firstError                error
	firstErrorAt              time.Time
	errorsInRow               int
	outcomes                  []error

	closeOnce sync.Once
}

func newWorker(i int, caller Caller, cfg *Config) *worker {
	w := &worker{index: i, caller: caller, cfg: cfg, outcomes: make([]error, cfg.Batch)}
	if b, ok := caller.(BatchCaller); ok && cfg.Batch > 1 {
		w.batch = b
	}
	return w
}

// reset forgets what a warm-up recorded.
func (w *worker) reset() {
	w.service.Reset()
	w.intended.Reset()
	w.pacing.Reset()
	w.completed, w.errors, w.unsent = 0, 0, 0
	w.firstError, w.errorsInRow = nil, 0
}

func (w *worker) closeCaller() { w.closeOnce.Do(func() { _ = w.caller.Close() }) }

// closed issues one request after the other until end or until it has issued
// limit of them, if that is not 0.
func (w *worker) closed(ctx context.Context, r *runner, end time.Time, limit int) {
	now := time.Now()
	for issued := 0; now.Before(end) && !r.stopped.Load() && (limit == 0 || issued < limit); {
		sent := now
		n := 1
		if w.batch != nil {
			n = len(w.outcomes)
			if limit > 0 {
				n = min(n, limit-issued)
			}
		}
		issued += n
		w.issue(ctx, n)
		now = time.Now()
		if w.settle(n, sent, sent, now, r) > 0 {
			w.pause(r)
			now = time.Now()
		}
	}
}

// open issues requests at the planned instants before start+d, each as soon as
// the one before has finished.
func (w *worker) open(ctx context.Context, r *runner, start time.Time, d time.Duration, arrivals *arrivalCounter) {
	sleeper := newSleeper()
	defer sleeper.close()
	plan := w.cfg.Arrivals.plan(w.index, w.cfg.Callers, w.cfg.Seed)
	for {
		at, due := plan.next()
		if at >= d {
			return
		}
		if r.stopped.Load() {
			w.unsent += uint64(due)
			continue // counts the rest of the plan
		}
		planned := start.Add(at)
		w.await(sleeper, planned, r)
		for due > 0 && !r.stopped.Load() {
			n := 1
			if w.batch != nil {
				n = min(due, len(w.outcomes))
			}
			due -= n
			sent := time.Now()
			arrivals.add(sent.Sub(start), n)
			w.issue(ctx, n)
			if w.settle(n, planned, sent, time.Now(), r) > 0 {
				w.pause(r)
			}
		}
		w.unsent += uint64(due)
	}
}

// await returns at the planned instant, or at once if that has passed.
func (w *worker) await(s *sleeper, planned time.Time, r *runner) {
	slept := false
	for !r.stopped.Load() {
		wait := time.Until(planned)
		if wait <= 0 {
			if slept {
				w.pacing.Record(-wait)
			}
			return
		}
		slept = true
		s.sleep(wait)
	}
}

// issue performs n requests and leaves their outcomes in w.outcomes.
func (w *worker) issue(ctx context.Context, n int) {
	if w.batch != nil {
		clear(w.outcomes[:n])
		w.batch.DoBatch(ctx, w.outcomes[:n])
		return
	}
	w.outcomes[0] = w.caller.Do(ctx)
}

// settle records n outcomes and returns how many of them were errors. Only
// requests that completed count in the latencies.
func (w *worker) settle(n int, planned, sent, done time.Time, r *runner) (failed int) {
	for _, err := range w.outcomes[:n] {
		if err != nil {
			failed++
			if w.firstError == nil {
				w.firstError, w.firstErrorAt = err, done
				if r.abandoned.Load() {
					w.firstError = fmt.Errorf("%w: %w", errAbandoned, err)
				}
			}
			continue
		}
		w.completed++
		w.service.Record(done.Sub(sent))
		if w.cfg.Arrivals.open() {
			w.intended.Record(done.Sub(planned))
		}
	}
	w.errors += uint64(failed)
	if failed == 0 {
		w.errorsInRow = 0
	} else {
		w.errorsInRow++
	}
	return failed
}

// pause waits after an error, longer with each error in a row.
func (w *worker) pause(r *runner) {
	if r.stopped.Load() {
		return
	}
	time.Sleep(min(errorPauseMin<<min(w.errorsInRow-1, 7), errorPauseMax))
}
