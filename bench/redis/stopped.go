package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/bench/internal/redisload"
	"github.com/slipstream-go/slipstream/bench/internal/redisserver"
	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/redis"
)

const (
	stoppedCallers = 10_000
	stoppedCalls   = 1_000_000 // of all callers together
	// stoppedBound is the client's default bound on bytes; the bound on calls is lifted, so that
	// only bytes are limited.
	stoppedBound = 64 << 20
	// stoppedSlack is by how much the memory may exceed the bound.
	stoppedSlack = 1.10
	// refusedGoal is the time within which 99 of 100 refused submissions must return, cancelGoal
	// that for a canceled call.
	refusedGoal = 50 * time.Microsecond
	cancelGoal  = 10 * time.Millisecond
	// stoppedWaiters is the number of calls that wait with a context and are then canceled.
	stoppedWaiters = 256
)

// stopped makes many callers submit calls to a server that does not answer. Only ours has a bound
// with which memory can be compared.
func (h *harness) stopped() load.Scenario {
	sc := load.Scenario{Name: fmt.Sprintf("memory-stopped/%d", stoppedCallers), Primary: load.BytesOp, Rounds: h.options.Fixed(3), Close: h.stage.Close}
	sc.Subjects = []load.Subject{{Name: load.Ours, Run: func(ctx context.Context, _ int) (load.Sample, error) {
		st, err := h.open(ctx, sc.Name, 16, path{})
		if err != nil {
			return load.Sample{}, err
		}
		p, err := startProbe(ctx, probeSpec{Probe: "stopped", Subject: load.Ours, Address: st.address, PID: st.server.PID()})
		if err != nil {
			return load.Sample{}, err
		}
		outcome, err := p.wait()
		if err != nil {
			return load.Sample{}, err
		}
		h.refused = outcome.Values
		return load.Sample{
			Values: map[load.Metric]float64{
				load.BytesOp: outcome.Values["bytes"],
				load.P50US:   outcome.Values["refused_p50_us"],
				load.P99US:   outcome.Values["refused_p99_us"],
			},
			Details: outcome.Values,
		}, nil
	}}}
	return sc
}

// resolved counts calls that have ended.
type resolved struct{ n atomic.Int64 }

// Complete implements [redis.Completer].
func (r *resolved) Complete(redis.Reply, error) { r.n.Add(1) }

// taken returns the memory of live objects, the gaps between them, and stacks, without a garbage
// collection.
func taken() float64 {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	return float64(samples[0].Value.Uint64() + samples[1].Value.Uint64() + samples[2].Value.Uint64())
}

// probeStopped stops the server, submits calls from many callers, and measures memory, how long
// refused submissions take, and canceled calls. Then it resumes the server and waits for every
// accepted call.
func probeStopped(ctx context.Context, s probeSpec) (probeOutcome, error) {
	c, err := redis.Connect(ctx, redis.Options{Addr: s.Address, MaxCalls: 2 * stoppedCalls, MaxBytes: stoppedBound, StallTimeout: -1})
	if err != nil {
		return probeOutcome{}, err
	}
	defer c.Close()
	if err := pause(s.PID); err != nil {
		return probeOutcome{}, fmt.Errorf("stop the server: %w", err)
	}
	defer resume(s.PID)
	w := startWaiters(ctx, c)
	f := startFlood(ctx, c)
	before, stacks := inUse()
	before += stacks
	peak := f.run()
	live, liveStacks := inUse()
	live += liveStacks
	delays, wrong := w.cancel()
	if err := resume(s.PID); err != nil {
		return probeOutcome{}, fmt.Errorf("resume the server: %w", err)
	}
	for limit := time.Now().Add(30 * time.Second); f.done.n.Load() < f.accepted.Load() && time.Now().Before(limit); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond) // so that calls that end twice are noticed
	runtime.KeepAlive(f)
	quantile := func(d []time.Duration, q float64) float64 {
		if len(d) == 0 {
			return 0
		}
		slices.Sort(d)
		return redisload.Micros(d[min(int(q*float64(len(d))), len(d)-1)])
	}
	refused := slices.Concat(f.refused...)
	return probeOutcome{Values: map[string]float64{
		"bytes": live - before, "peak": peak - before, "bound": stoppedBound,
		"accepted": float64(f.accepted.Load()), "resolved": float64(f.done.n.Load()),
		"refused": float64(len(refused)), "refused_otherwise": float64(f.odd.Load()),
		"refused_p50_us": quantile(refused, 0.5), "refused_p99_us": quantile(refused, 0.99), "refused_max_us": quantile(refused, 1),
		"cancel_p99_us": quantile(delays, 0.99), "cancel_max_us": quantile(delays, 1), "cancel_failed": float64(wrong),
	}}, nil
}

// waiters are calls in flight that will be canceled.
type waiters struct {
	stop    context.CancelFunc
	begun   atomic.Int64 // nanoseconds since start: when stop was called
	start   time.Time
	group   sync.WaitGroup
	delays  []time.Duration
	wrong   atomic.Int64
	entered sync.WaitGroup
}

func startWaiters(ctx context.Context, c *redis.Client) *waiters {
	w := &waiters{start: time.Now(), delays: make([]time.Duration, stoppedWaiters)}
	ctx, w.stop = context.WithCancel(ctx)
	w.entered.Add(stoppedWaiters)
	for i := range w.delays {
		// Ends when cancel stops it and waits for it.
		w.group.Go(func() {
			w.entered.Done()
			if _, _, err := c.Get(ctx, redisserver.Key(i)); err == nil {
				w.wrong.Add(1)
			}
			w.delays[i] = time.Since(w.start) - time.Duration(w.begun.Load())
		})
	}
	w.entered.Wait()
	time.Sleep(20 * time.Millisecond) // until all are in flight
	return w
}

// cancel ends the calls and returns how long each took to return, and how many
// did not fail.
func (w *waiters) cancel() ([]time.Duration, int64) {
	w.begun.Store(int64(time.Since(w.start)))
	w.stop()
	w.group.Wait()
	return w.delays, w.wrong.Load()
}

// A flood is a set of callers that submit calls without waiting until they end.
type flood struct {
	begin    chan struct{}
	group    sync.WaitGroup
	refused  [][]time.Duration // by caller
	done     resolved
	accepted atomic.Int64
	odd      atomic.Int64 // refused for a reason other than the bound
}

// startFlood creates the callers, which wait for run, so that their stacks and buffers are included
// in the memory at the start.
func startFlood(ctx context.Context, c *redis.Client) *flood {
	f := &flood{begin: make(chan struct{}), refused: make([][]time.Duration, stoppedCallers)}
	for i := range f.refused {
		f.refused[i] = make([]time.Duration, 0, stoppedCalls/stoppedCallers)
		get := redis.Cmd("GET", redisserver.Key(i))
		// Ends when it has submitted its calls; run waits.
		f.group.Go(func() {
			<-f.begin
			for range stoppedCalls / stoppedCallers {
				begun := time.Now()
				err := c.DoFunc(ctx, get, &f.done)
				took := time.Since(begun)
				switch {
				case err == nil:
					f.accepted.Add(1)
				case slipstream.OutcomeOf(err) == slipstream.Overloaded:
					f.refused[i] = append(f.refused[i], took)
				default:
					f.odd.Add(1)
				}
			}
		})
	}
	return f
}

// run lets the callers submit and returns the maximum memory in the meantime.
func (f *flood) run() (peak float64) {
	close(f.begin)
	done := make(chan struct{})
	// Ends when all callers have; the loop below waits for it.
	go func() {
		f.group.Wait()
		close(done)
	}()
	for {
		peak = max(peak, taken())
		select {
		case <-done:
			return peak
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// checkStopped prints the targets of memory-stopped, from its last round.
func (h *harness) checkStopped(w io.Writer) {
	v := h.refused
	if v == nil {
		return
	}
	name := fmt.Sprintf("memory-stopped/%d", stoppedCallers)
	fmt.Fprintf(w, "%s: memory <= bound + 10 %%: %s (%.1f MiB of %.1f MiB, with garbage %.1f MiB; %.0f calls accepted, %.0f resolved, %.0f refused)\n", name,
		verdict(v["bytes"] <= stoppedSlack*v["bound"]), v["bytes"]/(1<<20), v["bound"]/(1<<20), v["peak"]/(1<<20), v["accepted"], v["resolved"], v["refused"])
	fmt.Fprintf(w, "%s: refused submissions return within %v in p99: %s (%.1f us, p50 %.1f us)\n", name,
		refusedGoal, verdict(v["refused_p99_us"] < redisload.Micros(refusedGoal)), v["refused_p99_us"], v["refused_p50_us"])
	fmt.Fprintf(w, "%s: a cancelled call returns within %v: %s (p99 %.0f us, the slowest %.0f us)\n", name,
		cancelGoal, verdict(v["cancel_max_us"] <= redisload.Micros(cancelGoal) && v["cancel_failed"] == 0), v["cancel_p99_us"], v["cancel_max_us"])
}
