package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Without a pause, a caller whose requests fail immediately would spin and starve the others. Each
// consecutive error doubles the pause.
const (
	errorPauseMin = time.Millisecond
	errorPauseMax = 100 * time.Millisecond
)

// errAbandoned is the outcome of a request cut off by the drain limit, unless the caller reports
// another error.
var errAbandoned = errors.New("load: no answer within the drain limit")

// A worker is one caller with what it has recorded.
type worker struct {
	// Immutable after newWorker.
	index  int
	caller Caller
	batch  BatchCaller // nil for one request at a time
	cfg    *Config
	// released receives a token from the pacer for each wait that the pacer ends.
	released chan struct{}

	// Owned by the worker's goroutine during a phase, by Run between phases.
	service, intended, pacing Histogram
	completed, errors, unsent uint64
	cut                       uint64            // failed after ctx had ended
	kinds                     map[string]uint64 // of the errors; nil if there were none
	firstError                error
	firstErrorAt              time.Time
	errorsInRow               int
	outcomes                  []error

	// Atomic: the planned instant that the caller waits for, plus 1; 0 if it does not wait.
	// Whichever side resets it to 0 ends the wait: the pacer, which then sends the token, or the
	// caller itself.
	waitsFor atomic.Int64

	closeOnce sync.Once
}

func newWorker(i int, caller Caller, cfg *Config) *worker {
	w := &worker{index: i, caller: caller, cfg: cfg, outcomes: make([]error, cfg.Batch), released: make(chan struct{}, 1)}
	if b, ok := caller.(BatchCaller); ok && cfg.Batch > 1 {
		w.batch = b
	}
	return w
}

// reset discards the records of a warm-up.
func (w *worker) reset() {
	w.service.Reset()
	w.intended.Reset()
	w.pacing.Reset()
	w.completed, w.errors, w.unsent, w.cut = 0, 0, 0, 0
	w.kinds, w.firstError, w.errorsInRow = nil, nil, 0
}

func (w *worker) closeCaller() { w.closeOnce.Do(func() { _ = w.caller.Close() }) }

// closed issues one request after another until end or, if limit is not 0, until it has issued
// limit requests.
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
		if n = r.take(n); n == 0 {
			return
		}
		issued += n
		w.issue(ctx, n)
		now = time.Now()
		if w.settle(ctx, n, sent, sent, now, r) > 0 {
			w.pause(r)
			now = time.Now()
		}
	}
}

// open issues requests at the planned instants before start+d, each as soon as
// the previous one has finished.
func (w *worker) open(ctx context.Context, r *runner, start time.Time, d time.Duration, arrivals *arrivalCounter) {
	plan := w.cfg.Arrivals.plan(w.index, w.cfg.Callers, w.cfg.Seed)
	for {
		at, due := plan.next()
		if at >= d {
			return
		}
		planned := start.Add(at)
		if r.stopped.Load() {
			if planned.After(r.stoppedAt) || r.enough.Load() {
				return
			}
			w.unsent += uint64(due)
			continue // counts the rest of the plan that was due
		}
		w.await(at, start, r)
		for due > 0 && !r.stopped.Load() {
			n := 1
			if w.batch != nil {
				n = min(due, len(w.outcomes))
			}
			if n = r.take(n); n == 0 {
				return
			}
			due -= n
			sent := time.Now()
			arrivals.add(sent.Sub(start), n)
			w.issue(ctx, n)
			if w.settle(ctx, n, planned, sent, time.Now(), r) > 0 {
				w.pause(r)
			}
		}
		if due > 0 && !planned.After(r.stoppedAt) && !r.enough.Load() {
			w.unsent += uint64(due)
		}
	}
}

// await returns at the planned instant, or at once if that has passed or the
// run is stopped.
//
// The order matters: the caller sets waitsFor and then reads the clock, the pacer reads the clock
// and then waitsFor. Therefore no caller misses its instant.
func (w *worker) await(at time.Duration, start time.Time, r *runner) {
	if time.Since(start) >= at {
		return
	}
	waitsFor := int64(at) + 1
	w.waitsFor.Store(waitsFor)
	if r.stopped.Load() || time.Since(start) >= at {
		if w.waitsFor.CompareAndSwap(waitsFor, 0) {
			return
		}
	}
	<-w.released
	if late := time.Since(start) - at; late >= 0 {
		w.pacing.Record(late)
	}
}

// issue performs n requests and stores their outcomes in w.outcomes.
func (w *worker) issue(ctx context.Context, n int) {
	if w.batch != nil {
		clear(w.outcomes[:n])
		w.batch.DoBatch(ctx, w.outcomes[:n])
		return
	}
	w.outcomes[0] = w.caller.Do(ctx)
}

// Ended is a request of the window that has ended.
type Ended struct {
	// Index is the number of the caller, and Caller is the caller itself, which may have more
	// information.
	Index  int
	Caller Caller
	// Intended and Sent are measured from the start of the window; in a closed loop they are the
	// same. Latency is measured from Intended.
	Intended, Sent, Latency time.Duration
	Err                     error // nil if the answer was right
}

// tell passes a request to Config.Ended.
func (r *runner) tell(w *worker, planned, sent, done time.Time, err error) {
	if r.cfg.Ended != nil && r.measuring.Load() {
		r.cfg.Ended(Ended{w.index, w.caller, planned.Sub(r.beganAt), sent.Sub(r.beganAt), done.Sub(planned), err})
	}
}

// settle records n outcomes and returns how many of them were errors. Only completed requests are
// included in the latencies. A request that failed after ctx ended counts as cut, since the end of
// ctx may be the reason.
func (w *worker) settle(ctx context.Context, n int, planned, sent, done time.Time, r *runner) (failed int) {
	cut := 0
	for _, err := range w.outcomes[:n] {
		if err != nil && ctx.Err() == nil && r.abandoned.Load() {
			err = fmt.Errorf("%w: %w", errAbandoned, err)
		}
		r.tell(w, planned, sent, done, err)
		if err != nil {
			if ctx.Err() != nil {
				cut++
				r.interrupted(ctx)
				continue
			}
			failed++
			if w.kinds == nil {
				w.kinds = map[string]uint64{}
			}
			w.kinds[ErrorKind(err)]++
			if w.firstError == nil {
				w.firstError, w.firstErrorAt = err, done
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
	w.cut += uint64(cut)
	if r.line != nil {
		r.line.record(w.index, done.Sub(planned), n-failed-cut, failed)
	}
	if failed == 0 {
		w.errorsInRow = 0
	} else {
		w.errorsInRow++
	}
	return failed
}

// pause waits after an error, longer with each consecutive error.
func (w *worker) pause(r *runner) {
	if r.stopped.Load() {
		return
	}
	time.Sleep(min(errorPauseMin<<min(w.errorsInRow-1, 7), errorPauseMax))
}
