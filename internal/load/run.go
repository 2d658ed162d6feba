package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Config describes one run. Callers and Duration must be set; the zero value of
// every other field is a usable default.
type Config struct {
	Callers  int
	Arrivals Arrivals      // if zero, a closed loop
	Duration time.Duration // of the measured window, without the drain
	WarmUp   time.Duration // before the window, not measured; if 0, there is none

	// SteadyAfter lets the warm-up end before WarmUp is over, as soon as rate and latency are
	// steady, but not before SteadyAfter. If zero, the warm-up takes all of WarmUp.
	SteadyAfter time.Duration

	// Requests ends a closed loop when each caller has sent that many, if that
	// is before Duration. If zero, there is no limit. It does not apply to the
	// warm-up.
	Requests int

	// Total ends the window when all callers together have started that many
	// requests, if that is before Duration. If zero, there is no limit. It does not
	// apply to the warm-up.
	Total int64

	// Batch is how many requests a BatchCaller gets at once: always that many in a closed loop, and
	// up to that many of those that are due in an open loop. 0 and 1 mean one at a time.
	Batch int

	// DrainLimit bounds how long requests may take to finish after the end of a window. Then the
	// callers are closed, and requests without an answer count as errors. 0 means 10 s.
	DrainLimit time.Duration

	// ConnectParallel is how many callers are created concurrently. 0 means 64,
	// which stays below every listener's backlog.
	ConnectParallel int

	Servers  []int     // pids whose CPU time is counted
	Counters []Counter // read before and after the measured window
	Seed     uint64    // of planned instants

	// Timeline requests a time line in the Result.
	Timeline bool
	// Progress, if set, is called by a goroutine of Run after each second of the warm-up and of the
	// window, with what was done in that second. It must not block.
	Progress func(Interval)
	// Ended, if set, is called by the goroutines of all callers with each request of the window
	// that has ended. It must not block.
	Ended func(Ended)
	// Window, if set, is called by a goroutine of Run when the window begins. Its
	// context ends when all requests of the window have ended; Run waits for it.
	Window func(ctx context.Context)
}

func (c *Config) fill() error {
	if c.Callers < 1 {
		return fmt.Errorf("load: %d callers, want at least 1", c.Callers)
	}
	if c.Duration <= 0 {
		return fmt.Errorf("load: duration %v, want a positive one", c.Duration)
	}
	if err := c.Arrivals.validate(); err != nil {
		return err
	}
	if c.Requests < 0 || c.Requests > 0 && c.Arrivals.open() {
		return fmt.Errorf("load: %d requests a caller, want a positive number and a closed loop", c.Requests)
	}
	if c.Total < 0 {
		return fmt.Errorf("load: %d requests of all callers, want a positive number", c.Total)
	}
	c.Batch = max(c.Batch, 1)
	if c.DrainLimit == 0 {
		c.DrainLimit = 10 * time.Second
	}
	if c.ConnectParallel == 0 {
		c.ConnectParallel = 64
	}
	return nil
}

// A runner is one Run in progress.
type runner struct {
	// Immutable after Run has started it.
	cfg     Config
	target  Target
	workers []*worker
	meters  []*ProcessMeter
	deaths  *deathWatch

	// Owned by the goroutine of Run, which sets them before a phase begins.
	pacers  []*pacer    // of the current phase
	line    *timeline   // of the current phase; nil if there is none
	bounded bool        // Config.Total applies to it
	steady  *steadiness // of a warm-up that may end early; nil otherwise
	// Written by phase before any request and after all have ended.
	beganAt, endedAt time.Time

	// Written before stopped is set; read after stopped was seen or the phase has ended.
	stopOnce  sync.Once
	stoppedAt time.Time
	why       error // nil unless the phase ended early

	// Written by supervise, read after the phase: the end of a server.
	died error

	// Atomics: read by every worker and pacer.
	begun     atomic.Int64 // requests of the phase, if it is bounded; may pass Config.Total
	measuring atomic.Bool  // set when the warm-up is over
	enough    atomic.Bool  // set when Config.Total requests have started
	stopped   atomic.Bool  // no further request may begin
	abandoned atomic.Bool  // the time to finish has passed, and callers are closed
}

// ErrServerEnded is the reason why a run ended early if one of its servers has ended.
var ErrServerEnded = errors.New("the server process ended during the run")

// Run drives target as configured by cfg. It returns no result if the configuration is wrong, a
// caller could not be created, a meter could not be read at the start, or the run ended before the
// measured window.
//
// If ctx ends or a server process of the configuration ends during the window, or a meter cannot be
// read at its end, Run returns both the error and what was measured until then, as a result marked
// partial. Failed requests are not an error of Run: the Result counts them.
func Run(ctx context.Context, cfg Config, target Target) (*Result, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	r := &runner{cfg: cfg, target: target, deaths: watchDeaths(cfg.Servers)}
	defer r.deaths.close()
	for _, pid := range cfg.Servers {
		r.meters = append(r.meters, NewProcessMeter(pid))
	}
	defer r.close()
	if err := r.connect(ctx); err != nil {
		return nil, err
	}
	warmUp, err := r.warmUp(ctx)
	if err != nil {
		return nil, err
	}
	before, err := r.readBefore(ctx)
	if err != nil {
		return nil, err
	}
	r.bounded = cfg.Total > 0
	r.measuring.Store(true)
	r.newLine(false, r.used(before))
	started := time.Now()
	arrivals := r.phase(ctx, cfg.Duration, cfg.Requests)
	elapsed := r.endedAt.Sub(started)
	after, err := r.readAfter(ctx)
	err = both(r.why, err)
	result := r.result(before, after)
	result.Elapsed, result.Started = elapsed, r.beganAt
	if r.line != nil {
		r.line.finish(elapsed, r.used(after))
		result.Timeline = r.intervals()
	}
	result.WarmUpErrors, result.WarmUp = warmUp.Errors, warmUp
	if err == nil && result.Cut > 0 { // the last requests were in flight
		err = fmt.Errorf("load: interrupted: %w", context.Cause(ctx))
	}
	if arrivals != nil {
		result.Dispersion = arrivals.dispersion(elapsed)
		if math.IsNaN(result.Dispersion) {
			result.Dispersion = 0 // nothing was sent; JSON has no NaN
		}
	}
	if err != nil {
		result.Partial = err.Error()
	}
	return result, err
}

// both joins two errors on one line.
func both(a, b error) error {
	if a == nil || b == nil {
		return errors.Join(a, b)
	}
	return fmt.Errorf("%w; %w", a, b)
}

// CallerError reports which caller of a run could not be created, and why.
type CallerError struct {
	Caller, Callers int
	Err             error
}

// Error returns the number of the caller and the cause.
func (e *CallerError) Error() string {
	return fmt.Sprintf("load: caller %d of %d: %v", e.Caller, e.Callers, e.Err)
}

// Unwrap returns the cause.
func (e *CallerError) Unwrap() error { return e.Err }

// connect creates the callers, a few at a time.
func (r *runner) connect(ctx context.Context) error {
	r.workers = make([]*worker, r.cfg.Callers)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(r.cfg.ConnectParallel, r.cfg.Callers) {
		// Ends when no caller is left or one failed; connect waits for it.
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= r.cfg.Callers {
					return
				}
				caller, err := r.target.NewCaller(ctx, i)
				if err != nil {
					cancel(&CallerError{i, r.cfg.Callers, err})
					return
				}
				r.workers[i] = newWorker(i, caller, &r.cfg)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (r *runner) close() {
	for _, w := range r.workers {
		if w != nil {
			w.closeCaller()
		}
	}
}

// phase runs all workers for d, in a closed loop for at most limit requests each (if 0, there is no
// limit), and returns when each has finished its last request. In an open loop it returns the
// actual arrivals.
func (r *runner) phase(ctx context.Context, d time.Duration, limit int) *arrivalCounter {
	finished := make(chan struct{})
	var supervisor, wg sync.WaitGroup
	// Ends when finished is closed below; phase waits for it.
	supervisor.Go(func() { r.supervise(ctx, d, finished) })
	during, end := context.WithCancel(ctx)
	defer end()
	if r.line != nil {
		// Ends with its context, which is ended by end; phase waits for it.
		supervisor.Go(func() { r.follow(during) })
	}
	if r.cfg.Window != nil && r.measuring.Load() {
		// Ends with its context, as above.
		supervisor.Go(func() { r.cfg.Window(during) })
	}

	var arrivals *arrivalCounter
	start := time.Now()
	r.beganAt = start
	if r.cfg.Arrivals.open() {
		arrivals = newArrivalCounter(d)
		r.pacers = newPacers(r, start, d)
		for _, p := range r.pacers {
			// Ends with the plans of its callers, or when stopped is set; phase waits for it.
			wg.Go(p.run)
		}
	}
	for _, w := range r.workers {
		// Ends after d, or when stopped is set; phase waits for it. Close interrupts a Do that
		// never returns once the drain limit has passed.
		wg.Go(func() {
			if arrivals != nil {
				w.open(ctx, r, start, d, arrivals)
			} else {
				w.closed(ctx, r, start.Add(d), limit)
			}
		})
	}
	wg.Wait()
	r.endedAt = time.Now()
	end()
	close(finished)
	supervisor.Wait()
	return arrivals
}

// endLimit bounds how long requests may take to finish after a phase was ended
// early, if the drain limit is not shorter.
const endLimit = 2 * time.Second

// supervise ends a phase early when ctx or a server ends, and closes the callers
// when the time to finish has passed. It returns when the phase has finished.
func (r *runner) supervise(ctx context.Context, d time.Duration, finished <-chan struct{}) {
	limit := time.NewTimer(d + r.cfg.DrainLimit)
	defer limit.Stop()
	ended, died := ctx.Done(), r.deaths.died
	for {
		select {
		case <-finished:
			return
		case <-ended:
			r.interrupted(ctx)
		case err := <-died:
			r.stop(err)
			r.died = err
		case <-limit.C:
			r.abandoned.Store(true)
			r.stop(nil)
			r.close()
			<-finished
			return
		}
		ended, died = nil, nil
		limit.Reset(min(endLimit, r.cfg.DrainLimit))
	}
}

// newLine starts a time line, if one is needed. used holds the current readings of the meters.
func (r *runner) newLine(warmUp bool, used []float64) {
	r.line = nil
	if r.cfg.Timeline || r.cfg.Progress != nil || r.steady != nil {
		r.line = newTimeline(warmUp, r.cfg.Callers, used)
	}
}

// interrupted ends a phase because ctx has ended. The first caller that fails
// for that reason calls it too, so that none begins another request.
func (r *runner) interrupted(ctx context.Context) {
	r.stop(fmt.Errorf("load: interrupted: %w", context.Cause(ctx)))
}

// take returns how many of n requests may begin. The first caller that gets 0 ends the phase, so
// that no pacer waits for the rest of the plans.
func (r *runner) take(n int) int {
	if !r.bounded {
		return n
	}
	before := r.begun.Add(int64(n)) - int64(n)
	allowed := int(max(0, min(int64(n), r.cfg.Total-before)))
	if allowed == 0 {
		r.enough.Store(true)
		r.stop(nil)
	}
	return allowed
}

// stop lets every worker finish its request and begin no other. Only the first call has an effect.
func (r *runner) stop(why error) {
	r.stopOnce.Do(func() {
		r.stoppedAt, r.why = time.Now(), why
		r.stopped.Store(true)
	})
}

// readBefore takes all readings before the window. Reading a server's counters costs that server
// CPU time, so readBefore reads the counters before the CPU meters, and readAfter reads them after.
func (r *runner) readBefore(ctx context.Context) (reading, error) {
	var now reading
	if err := r.readCounters(ctx, &now); err != nil {
		return now, err
	}
	return now, r.readMeters(&now)
}

// readAfter is the counterpart of readBefore. It reads everything that can be read, even if ctx has
// ended, and returns the first error.
func (r *runner) readAfter(ctx context.Context) (reading, error) {
	if r.why != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), endLimit)
		defer cancel()
	}
	var now reading
	err := r.readMeters(&now)
	if counterErr := r.readCounters(ctx, &now); err == nil {
		err = counterErr
	}
	return now, err
}

// readMeters reads all meters and returns the first error. A meter that fails has the value noCPU
// in the reading.
func (r *runner) readMeters(now *reading) (err error) {
	if now.client, err = ownCPU(); err != nil {
		now.client, err = noCPU, fmt.Errorf("load: own cpu time: %w", err)
	}
	now.wait = ownWait()
	now.mallocs, now.bytes = allocations()
	for _, m := range r.meters {
		cpu, meterErr := m.CPU()
		if meterErr != nil {
			now.servers = noCPU
			return cmp.Or(err, meterErr)
		}
		now.servers += cpu
	}
	return err
}

// readCounters reads all counters and returns the first error. A counter that fails has the value
// NaN in the reading.
func (r *runner) readCounters(ctx context.Context, now *reading) (err error) {
	for _, c := range r.cfg.Counters {
		v, counterErr := c.Read(ctx)
		if counterErr != nil {
			v, err = math.NaN(), cmp.Or(err, fmt.Errorf("load: counter %s: %w", c.Name, counterErr))
		}
		now.counters = append(now.counters, v)
	}
	return err
}

// result adds up what the workers recorded between two readings.
func (r *runner) result(before, after reading) *Result {
	res := &Result{Callers: r.cfg.Callers, Service: new(Histogram)}
	if r.cfg.Arrivals.open() {
		res.PlannedRate = r.cfg.Arrivals.planned(r.cfg.Duration, r.cfg.Total)
		res.Intended, res.Pacing, res.Release = new(Histogram), new(Histogram), new(Histogram)
		for _, p := range r.pacers {
			res.Release.Merge(&p.release)
		}
	}
	var first error
	var firstAt time.Time
	for _, w := range r.workers {
		res.Completed += w.completed
		res.Errors += w.errors
		res.Unsent += w.unsent
		res.Cut += w.cut
		for kind, n := range w.kinds {
			if res.ErrorKinds == nil {
				res.ErrorKinds = map[string]uint64{}
			}
			res.ErrorKinds[kind] += n
		}
		res.Service.Merge(&w.service)
		if r.cfg.Arrivals.open() {
			res.Intended.Merge(&w.intended)
			res.Pacing.Merge(&w.pacing)
		}
		if w.firstError != nil && (first == nil || w.firstErrorAt.Before(firstAt)) {
			first, firstAt = w.firstError, w.firstErrorAt
		}
	}
	if first != nil {
		res.ErrorSample = first.Error()
	}
	res.Cost = after.since(before)
	for i, c := range r.cfg.Counters {
		if v := after.counters[i] - before.counters[i]; !math.IsNaN(v) {
			if res.Cost.Counters == nil {
				res.Cost.Counters = map[string]float64{}
			}
			res.Cost.Counters[c.Name] = v
		}
	}
	return res
}
