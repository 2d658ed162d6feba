package load

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// waiters returns a runner whose callers do nothing, and the runner's pacers.
func waiters(callers int, arrivals Arrivals, start time.Time, until time.Duration) (*runner, []*pacer) {
	r := &runner{cfg: Config{Callers: callers, Arrivals: arrivals, Batch: 1, Seed: 5}}
	for i := range callers {
		r.workers = append(r.workers, newWorker(i, nil, &r.cfg))
	}
	return r, newPacers(r, start, until)
}

// mutant: pacer-heap-not-restored
func TestAPacerFollowsThePlansInTheirOrder(t *testing.T) {
	const callers, until = 33, time.Second
	for _, process := range []Process{Constant, Poisson, Bursts} {
		r, pacers := waiters(callers, process.at(2000), time.Now(), until)
		want := 0
		for i := range callers {
			plan := r.cfg.Arrivals.plan(i, callers, r.cfg.Seed)
			for at, _ := plan.next(); at < until; at, _ = plan.next() {
				want++
			}
		}
		got := 0
		for _, p := range pacers {
			for last := time.Duration(0); len(p.due) > 0; got++ {
				at, w := p.due[0].at, p.due[0].w
				if at < last || at >= until {
					t.Fatalf("%s: %v after %v", process, at, last)
				}
				last = at
				w.waitsFor.Store(int64(at) + 1)
				p.releaseUntil(at)
				if w.waitsFor.Load() != 0 || len(w.released) != 1 {
					t.Fatalf("%s: the caller that is due at %v was not released", process, at)
				}
				<-w.released
			}
		}
		if got != want {
			t.Errorf("%s: %d callers were released, the plans have %d instants", process, got, want)
		}
	}
}

// A caller that is not due, or not waiting, is not released.
func TestAPacerReleasesOnlyWhoWaits(t *testing.T) {
	_, pacers := waiters(1, Constant.at(10), time.Now(), time.Second)
	p := pacers[0]
	w := p.due[0].w
	p.releaseUntil(0) // due at 0, but busy
	w.waitsFor.Store(int64(100*time.Millisecond) + 1)
	p.releaseUntil(99 * time.Millisecond)
	if len(w.released) != 0 || p.release.Count() != 0 {
		t.Error("released a caller that was busy or not due")
	}
	p.releaseUntil(100 * time.Millisecond)
	if len(w.released) != 1 || p.release.Count() != 1 {
		t.Error("did not release the caller that was due")
	}
}

// mutant: open-loop-does-not-wait
func TestNoCallerStartsEarlyAndNoneIsLost(t *testing.T) {
	const callers, until = 40, 300 * time.Millisecond
	start := time.Now()
	r, pacers := waiters(callers, Poisson.at(20_000), start, until)
	var wg sync.WaitGroup
	for _, p := range pacers {
		wg.Go(p.run) // ends with the plans; the test waits for it
	}
	for _, w := range r.workers {
		wg.Go(func() { // ends with the plan; the test waits for it
			plan := r.cfg.Arrivals.plan(w.index, callers, r.cfg.Seed)
			for at, _ := plan.next(); at < until; at, _ = plan.next() {
				w.await(at, start, r)
				if now := time.Since(start); now < at {
					t.Errorf("caller %d started at %v, planned %v", w.index, now, at)
				}
			}
		})
	}
	wg.Wait()
}

// A caller that is late notices it itself, and the pacer has nothing to release.
func TestALateCallerStartsAtOnce(t *testing.T) {
	target := &fakeTarget{delay: 5 * time.Millisecond}
	r, err := Run(t.Context(), Config{
		Callers: 1, Duration: 50 * time.Millisecond, Arrivals: Constant.at(1000),
	}, target)
	if err != nil {
		t.Fatal(err)
	}
	if r.Completed != 50 || r.Pacing.Count() > 1 || r.Release.Count() > 1 {
		t.Errorf("completed %d of 50, %d waits, %d releases, want at most one of each", r.Completed, r.Pacing.Count(), r.Release.Count())
	}
	if p50 := r.Intended.Quantile(0.5); p50 < 50*time.Millisecond {
		t.Errorf("median latency %v: it does not include the time that requests waited for their caller", p50)
	}
}

// countingTarget counts the open timers of the process during a request.
type countingTarget struct {
	once   sync.Once
	timers int
	err    error
}

func (c *countingTarget) NewCaller(context.Context, int) (Caller, error) { return c, nil }
func (c *countingTarget) Close() error                                   { return nil }
func (c *countingTarget) Do(context.Context) error {
	c.once.Do(func() {
		entries, err := os.ReadDir("/proc/self/fd")
		c.err = err
		for _, entry := range entries {
			if name, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil && strings.Contains(name, "timerfd") {
				c.timers++
			}
		}
	})
	return nil
}

// mutant: a-pacer-for-each-caller
func TestAnOpenLoopHasOneTimerForEachProcessor(t *testing.T) {
	target := &countingTarget{}
	_, err := Run(t.Context(), Config{Callers: 200, Duration: 100 * time.Millisecond, Arrivals: Poisson.at(5000)}, target)
	if err = errors.Join(err, target.err); err != nil {
		if runtime.GOOS != "linux" {
			return // no /proc, and no timers of this kind
		}
		t.Fatal(err)
	}
	if most := runtime.GOMAXPROCS(0); target.timers > most {
		t.Errorf("%d timers for 200 callers, want at most %d", target.timers, most)
	}
}
