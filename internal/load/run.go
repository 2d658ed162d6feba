package load

import (
	"context"
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
	Arrivals Arrivals      // zero: closed loop
	Duration time.Duration // of the measured window, without the drain
	WarmUp   time.Duration // before it, not measured; 0: none

	// Requests ends a closed loop when each caller has sent that many, if that
	// is before Duration. 0: no limit. It does not apply to the warm-up.
	Requests int

	// Batch is how many requests a BatchCaller gets at once: always that many
	// in a closed loop, up to that many of those due in an open one. 0 and 1
	// mean one at a time.
	Batch int

	// DrainLimit bounds how long requests may take to finish after the end of a
	// window; the callers are closed then, and what is still missing counts as
	// an error. 0 means 10 s.
	DrainLimit time.Duration

	// ConnectParallel is how many callers are created at once. 0 means 64,
	// which stays below every listener's backlog.
	ConnectParallel int

	Servers  []int     // pids whose CPU time is counted
	Counters []Counter // read before and after the measured window
	Seed     uint64    // of planned instants
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
	c.Batch = max(c.Batch, 1)
	if c.DrainLimit == 0 {
		c.DrainLimit = 10 * time.Second
	}
	if c.ConnectParallel == 0 {
		c.ConnectParallel = 64
	}
	return nil
}

// Result is what one run measured.
type Result struct {
	Callers int           `json:"callers"`
	Elapsed time.Duration `json:"elapsed_ns"` // of the window, drain included

	// Completed counts requests with a right answer, Errors those with a wrong
	// or no answer; Unsent counts requests of an open loop that were due but
	// not sent when the drain limit passed. ErrorSample is the first error.
	Completed   uint64 `json:"completed"`
	Errors      uint64 `json:"errors"`
	Unsent      uint64 `json:"unsent"`
	ErrorSample string `json:"error_sample,omitempty"`

	// WarmUpErrors counts the errors outside of the measured window.
	WarmUpErrors uint64 `json:"warmup_errors,omitempty"`

	// Service runs from sending to answer. Intended (open loop only) runs from
	// the planned instant. Pacing (open loop only) is how late a caller with
	// nothing to do was woken: the error of the generator's own clock, which is
	// part of Intended.
	Service  *Histogram `json:"service"`
	Intended *Histogram `json:"intended,omitempty"`
	Pacing   *Histogram `json:"pacing,omitempty"`

	// PlannedRate and Dispersion (variance over mean of the requests sent in
	// each millisecond) belong to open loops.
	PlannedRate float64 `json:"planned_rate,omitempty"`
	Dispersion  float64 `json:"dispersion,omitempty"`

	Cost Cost `json:"cost"`
}

// Rate returns completed requests a second.
func (r *Result) Rate() float64 { return float64(r.Completed) / r.Elapsed.Seconds() }

// Latency returns the honest latency: intended-time in an open loop, service
// time in a closed one.
func (r *Result) Latency() *Histogram {
	if r.Intended != nil {
		return r.Intended
	}
	return r.Service
}

// PerRequest divides by completed requests; NaN if there were none. Suites that
// measure the client's side use it on Cost.Mallocs and Cost.Bytes.
func (r *Result) PerRequest(total float64) float64 {
	if r.Completed == 0 {
		return math.NaN()
	}
	return total / float64(r.Completed)
}

// Doubts tells in words what makes the latencies of the run questionable, in words.
func (r *Result) Doubts() []string {
	var doubts []string
	if s := r.Cost.starved(); s != "" {
		doubts = append(doubts, s)
	}
	if r.PlannedRate > 0 {
		if rate := r.Rate(); rate < 0.95*r.PlannedRate {
			doubts = append(doubts, fmt.Sprintf("overloaded: %.0f requests a second of %.0f planned", rate, r.PlannedRate))
		}
		if late := r.Pacing.Quantile(0.99); late > 5*time.Millisecond {
			doubts = append(doubts, fmt.Sprintf("coarse pacing: 1 %% of the idle callers woke more than %v late", late))
		}
	}
	return doubts
}

// A runner is one Run under way.
type runner struct {
	// Immutable after Run has started it.
	cfg     Config
	target  Target
	workers []*worker
	meters  []*ProcessMeter

	// Atomics: set by the watchdog or the end of ctx, read by every worker.
	stopped   atomic.Bool // begin no further request
	abandoned atomic.Bool // the drain limit passed: callers are closed
}

// Run drives target as cfg says. It returns an error if the configuration is
// wrong, a caller could not be created, a meter could not be read or ctx ended;
// failed requests are counted in the Result.
func Run(ctx context.Context, cfg Config, target Target) (*Result, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	r := &runner{cfg: cfg, target: target}
	for _, pid := range cfg.Servers {
		r.meters = append(r.meters, NewProcessMeter(pid))
	}
	defer r.close()
	if err := r.connect(ctx); err != nil {
		return nil, err
	}
	var warmUpErrors uint64
	if cfg.WarmUp > 0 {
		r.phase(ctx, cfg.WarmUp, 0)
		for _, w := range r.workers {
			warmUpErrors += w.errors
			w.reset()
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.abandoned.Load() {
		return nil, fmt.Errorf("load: requests of the warm-up did not finish within %v", cfg.DrainLimit)
	}
	before, err := r.readBefore(ctx)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	arrivals := r.phase(ctx, cfg.Duration, cfg.Requests)
	elapsed := time.Since(started)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	after, err := r.readAfter(ctx)
	if err != nil {
		return nil, err
	}
	result := r.result(before, after)
	result.Elapsed = elapsed
	result.WarmUpErrors = warmUpErrors
	if arrivals != nil {
		result.Dispersion = arrivals.dispersion()
		if math.IsNaN(result.Dispersion) {
			result.Dispersion = 0 // nothing was sent; JSON knows no NaN
		}
	}
	return result, nil
}

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
					cancel(fmt.Errorf("load: caller %d of %d: %w", i, r.cfg.Callers, err))
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

// phase runs all workers for d, in a closed loop for at most limit requests each
// (0: no limit), and returns when each has finished its last
// request. In an open loop it returns the arrivals that were achieved.
func (r *runner) phase(ctx context.Context, d time.Duration, limit int) *arrivalCounter {
	unwatch := context.AfterFunc(ctx, func() { r.stopped.Store(true) })
	defer unwatch()
	watchdog := time.AfterFunc(d+r.cfg.DrainLimit, func() {
		r.abandoned.Store(true)
		r.stopped.Store(true)
		r.close()
	})
	defer watchdog.Stop()

	var arrivals *arrivalCounter
	if r.cfg.Arrivals.open() {
		arrivals = newArrivalCounter(d)
	}
	var wg sync.WaitGroup
	start := time.Now()
	for _, w := range r.workers {
		// Ends by itself after d, or by stopped; phase waits for it. A Do that
		// never returns is broken by Close once the drain limit has passed.
		wg.Go(func() {
			if arrivals != nil {
				w.open(ctx, r, start, d, arrivals)
			} else {
				w.closed(ctx, r, start.Add(d), limit)
			}
		})
	}
	wg.Wait()
	return arrivals
}

// readBefore takes all readings before the window. Reading a server's counters
// costs that server CPU, so the counters are read on the outer side of the CPU
// meters, here and in readAfter.
func (r *runner) readBefore(ctx context.Context) (reading, error) {
	var now reading
	if err := r.readCounters(ctx, &now); err != nil {
		return now, err
	}
	return now, r.readMeters(&now)
}

// readAfter is the mirror image of readBefore.
func (r *runner) readAfter(ctx context.Context) (reading, error) {
	var now reading
	if err := r.readMeters(&now); err != nil {
		return now, err
	}
	return now, r.readCounters(ctx, &now)
}

func (r *runner) readMeters(now *reading) error {
	var err error
	if now.client, err = ownCPU(); err != nil {
		return fmt.Errorf("load: own cpu time: %w", err)
	}
	now.wait = ownWait()
	now.mallocs, now.bytes = allocations()
	for _, m := range r.meters {
		cpu, err := m.CPU()
		if err != nil {
			return err
		}
		now.servers += cpu
	}
	return nil
}

func (r *runner) readCounters(ctx context.Context, now *reading) error {
	for _, c := range r.cfg.Counters {
		v, err := c.Read(ctx)
		if err != nil {
			return fmt.Errorf("load: counter %s: %w", c.Name, err)
		}
		now.counters = append(now.counters, v)
	}
	return nil
}

// result adds up what the workers recorded between two readings.
func (r *runner) result(before, after reading) *Result {
	res := &Result{Callers: r.cfg.Callers, Service: new(Histogram)}
	if r.cfg.Arrivals.open() {
		res.PlannedRate = r.cfg.Arrivals.Rate
		res.Intended, res.Pacing = new(Histogram), new(Histogram)
	}
	var first error
	var firstAt time.Time
	for _, w := range r.workers {
		res.Completed += w.completed
		res.Errors += w.errors
		res.Unsent += w.unsent
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
	res.Cost = Cost{
		Client:  after.client - before.client,
		Server:  after.servers - before.servers,
		Wait:    after.wait - before.wait,
		Mallocs: after.mallocs - before.mallocs,
		Bytes:   after.bytes - before.bytes,
	}
	for i, c := range r.cfg.Counters {
		if res.Cost.Counters == nil {
			res.Cost.Counters = map[string]float64{}
		}
		res.Cost.Counters[c.Name] = after.counters[i] - before.counters[i]
	}
	return res
}
