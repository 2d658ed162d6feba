package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"syscall"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/profiles"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A Workload is what is sent to a server and what is known about the replies. It is used for one
// Run.
type Workload interface {
	load.Target
	// Name describes what is sent and where, without secrets.
	Name() string
	// Costs are counters of the CPU time that servers have used, in nanoseconds. They and Counters
	// are read before and after the measured window; Costs are also read during each second of it,
	// while the callers work.
	Costs(ctx context.Context) []load.Counter
	Counters() []load.Counter
	// Describe adds to a report what only the workload knows.
	Describe(r *Report)
	Close() error
}

// A Plan describes how requests are made. Callers must be set, and Duration or Total.
type Plan struct {
	Callers  int
	Batch    int           // requests that a caller sends together; 0 means one
	Total    int64         // requests of all callers; if 0, only Duration limits them
	Duration time.Duration // if 0, until Total requests are done
	WarmUp   time.Duration
	// SteadyAfter, if set, lets the warm-up end early, see [load.Config].
	SteadyAfter time.Duration
	// Rate is the number of requests a second of all callers; 0 means a closed loop.
	Rate     float64
	Arrivals load.Process // of an open loop; if empty, load.Constant
	// Trace, if not nil, holds the times at which requests are sent in an open loop, instead of a
	// rate. The window ends with it.
	Trace load.Trace
	Seed  uint64
	// Timeout is how long the last requests may take after the window; if 0, 10 s.
	Timeout time.Duration

	PIDs    []int    // processes whose CPU time is a cost of the requests
	Metrics []string // URLs of Prometheus pages that report such CPU time

	// Profile lists Go servers of which profiles are taken in the window: URLs of their
	// net/http/pprof handlers, or processes of this machine. Files are written to ProfileDir or, if
	// it is empty, to the working directory.
	Profile    []string
	ProfileDir string
	// ProfileBase, if not empty, is the file of an earlier CPU profile, with which that of the run
	// is compared.
	ProfileBase string
	// RawFile, if not empty, is a file to which a row is written for each request.
	RawFile string
	// Control, if set, is the Control function of the [net.Dialer] for connections to them.
	Control func(network, address string, c syscall.RawConn) error

	// Progress, if set, is called each second, see [load.Config].
	Progress func(load.Interval)
}

const (
	maxCallers  = 1_000_000
	maxRate     = 100_000_000
	maxDuration = 7 * 24 * time.Hour
)

// Check returns an error for the first invalid field of a plan.
func (p *Plan) Check() error {
	switch {
	case p.Callers < 1 || p.Callers > maxCallers:
		return fmt.Errorf("%d connections; expected 1 to %d", p.Callers, maxCallers)
	case p.Total < 0:
		return fmt.Errorf("%d requests; expected a positive number", p.Total)
	case p.Duration < 0 || p.Duration > maxDuration || p.WarmUp < 0 || p.WarmUp > maxDuration:
		return fmt.Errorf("a duration of %v and a warm-up of %v; expected at most %v", p.Duration, p.WarmUp, maxDuration)
	case p.Trace != nil && p.Rate != 0:
		return errors.New("both a rate and the times of requests; expected only one of them")
	case p.Trace != nil && p.Duration == 0 && p.Trace.At(p.Trace.Len()-1) > maxDuration:
		return fmt.Errorf("a trace of %v; expected at most %v", p.Trace.At(p.Trace.Len()-1), maxDuration)
	case p.Duration == 0 && p.Total == 0 && p.Trace == nil:
		return errors.New("neither a duration nor a number of requests")
	case math.IsNaN(p.Rate) || p.Rate < 0 || p.Rate > maxRate:
		return fmt.Errorf("%v requests a second; expected at most %d, or 0 for a closed loop", p.Rate, maxRate)
	case p.Rate == 0 && p.Arrivals != "":
		return fmt.Errorf("arrivals %q without a rate", p.Arrivals)
	case p.Rate > 0 && !slices.Contains([]load.Process{"", load.Constant, load.Poisson, load.Bursts}, p.Arrivals):
		return fmt.Errorf("arrivals %q; expected %s, %s or %s", p.Arrivals, load.Constant, load.Poisson, load.Bursts)
	case p.Timeout < 0:
		return fmt.Errorf("a timeout of %v; expected a positive one", p.Timeout)
	case len(p.Profile) > 0 && p.Duration < profiles.MinWindow:
		return fmt.Errorf("profiles in a window of %v; expected a duration of at least %v", p.Duration, profiles.MinWindow)
	}
	return nil
}

// config returns the configuration of the run.
func (p *Plan) config() load.Config {
	c := load.Config{
		Callers: p.Callers, Batch: p.Batch, Total: p.Total, Duration: p.Duration, WarmUp: p.WarmUp, SteadyAfter: p.SteadyAfter, DrainLimit: p.Timeout,
		Servers: p.PIDs, Seed: p.Seed, Timeline: true, Progress: p.Progress,
	}
	if p.Rate > 0 {
		c.Arrivals = load.Arrivals{Process: cmp.Or(p.Arrivals, load.Constant), Rate: p.Rate}
	}
	if p.Trace != nil {
		c.Arrivals = load.Arrivals{Process: load.Replay, Trace: p.Trace}
		end := p.Trace.At(p.Trace.Len()-1) + time.Millisecond
		c.Duration = min(cmp.Or(c.Duration, end), end)
	}
	if c.Duration == 0 {
		c.Duration = maxDuration
		if p.Rate > 0 { // Poisson arrivals may take longer than planned
			c.Duration = min(maxDuration, time.Duration(2*float64(p.Total)/p.Rate*float64(time.Second))+time.Minute)
		}
	}
	return c
}

// descriptors is how many descriptors a process needs in addition to its connections.
const descriptors = 100

// Prepare raises the limit of descriptors to allow the given number of connections. It returns an
// error if the limit is too low.
func Prepare(connections int) error {
	return load.NeedDescriptors(uint64(connections) + descriptors)
}

// Run makes the requests. If a run ends early because ctx or a process has ended, or if a cost
// cannot be read at its end, Run returns both a report, marked as partial, and an error.
func (p *Plan) Run(ctx context.Context, w Workload) (*Report, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	c := p.config()
	meters, err := p.meters(ctx)
	if err != nil {
		return nil, err
	}
	meters = append(meters, w.Costs(ctx)...)
	for i := range meters {
		meters[i].Live = true
	}
	c.Counters = slices.Concat(meters, w.Counters())
	record, err := p.newRecorder(ctx)
	if err != nil {
		return nil, err
	}
	if record != nil {
		c.Window = record.take
	}
	raw, err := p.openRaw()
	if err != nil {
		return nil, err
	}
	if raw != nil {
		c.Ended = raw.add
	}
	result, err := load.Run(ctx, c, w)
	if result == nil {
		if raw != nil {
			_ = raw.finish(nil) // there is nothing in it
		}
		return nil, err
	}
	r := newReport(p, w.Name(), result, meters)
	w.Describe(r)
	var saveErr error
	if record != nil {
		saveErr = record.save(r)
	}
	if raw != nil {
		saveErr = errors.Join(saveErr, raw.finish(r))
	}
	if saveErr != nil && err == nil {
		r.Partial, err = saveErr.Error(), saveErr
	}
	return r, err
}
