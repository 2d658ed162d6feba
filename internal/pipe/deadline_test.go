package pipe

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// Calls arrive, and their contexts must be watched, just when the sweeper goes to rest.
func TestCancelAsTheSweeperRests(t *testing.T) {
	testkit.NoLeaks(t)
	k := startHolding(t, "unix", false)
	e := k.engine(func(c *Config) { c.choices.SweepEvery = 200 * time.Microsecond })
	r := testkit.Rand(t)
	for range 150 {
		k.mu.Lock()
		k.seen = nil
		k.mu.Unlock()
		// The fast pace ends after calmSweeps rounds. The call arrives around that time.
		time.Sleep(time.Duration(r.Int64N(int64(2 * calmSweeps * 200 * time.Microsecond))))
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Microsecond)
		c := k.newCall(e, "rx")
		maxLate := lateness()
		began := time.Now()
		if err := e.Do(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		took := time.Since(began)
		if late := maxLate(); took > 200*time.Millisecond+2*late {
			t.Fatalf("the call ended after %v; goroutines ran up to %v late", took, late)
		}
		c.Release()
		cancel()
	}
}

// The sweeper ends its fast pace after calmSweeps rounds without a watched call, unless one was submitted since
// the last round began.
func TestSweeperRests(t *testing.T) {
	for _, tickets := range []bool{false, true} {
		sweeperRests(t, newModelWorld(t, modelLimits{tickets: tickets, k: 1, big: 1 << 20, events: 1}, dice{testkit.Rand(t)}))
	}
}

func sweeperRests(t *testing.T, w *modelWorld) {
	s := w.socket
	now := w.engine.now()
	visits := func(n int) {
		for range n {
			now += sweepEvery
			w.engine.visit(s, now, false)
		}
	}
	w.submit(false)
	visits(2 * calmSweeps)
	if !s.watched {
		t.Fatal("the sweeper rests while a call has a context to watch")
	}
	w.reply(1, 0)
	visits(calmSweeps - 1)
	if !s.watched {
		t.Fatal("the sweeper rests too early")
	}
	w.submit(false) // after the last round, before the rest
	s.calm()
	if !s.watched {
		t.Fatal("the sweeper rests without having visited the new call")
	}
	w.reply(1, 0)
	visits(calmSweeps + 1)
	if s.watched {
		t.Fatal("the sweeper does not rest")
	}
	w.finish()
}

// The sweeper of an idle engine has no goroutine. Calls with a deadline or a context that can be canceled start
// one, and it ends after them.
func TestIdleEngineHasNoSweeper(t *testing.T) {
	eachMatching(t, func(t *testing.T, tickets bool) {
		h := &silentServer{mute: func(_ int, body string) bool { return body == "rx" }}
		e := h.engine(t, tickets, func(*Config) {})
		for range 3 {
			time.Sleep(restEvery)
			synctest.Wait()
			if !e.asleep.Load() {
				t.Fatal("the sweeper of an idle engine has a goroutine")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			began := time.Now()
			err := e.Do(ctx, bubbleCall(e))
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 32*time.Millisecond {
				t.Errorf("call with a deadline of 30 ms: %v after %v", err, took)
			}
			cancel()
		}
	})
}

// A call ends with the earlier of Config.Timeout and the deadline of its context.
func TestTimeout(t *testing.T) {
	testkit.NoLeaks(t)
	k := startHolding(t, "tcp", false)
	e := k.engine(func(c *Config) { c.Timeout = 20 * time.Millisecond })
	for name, ctx := range map[string]func() (context.Context, context.CancelFunc){
		"none":  func() (context.Context, context.CancelFunc) { return context.Background(), func() {} },
		"later": func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Hour) },
		"earlier": func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), time.Millisecond)
		},
	} {
		ctx, cancel := ctx()
		maxLate := lateness()
		began := time.Now()
		c := k.newCall(e, "rx")
		err := e.Do(ctx, c)
		took := time.Since(began)
		late := maxLate()
		var timeout interface{ Timeout() bool }
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("deadline %s: %v", name, err)
		}
		if name != "earlier" && took < 19*time.Millisecond || took > 20*time.Millisecond+cancelBound+late {
			t.Errorf("deadline %s: ended after %v; goroutines ran up to %v late", name, took, late)
		}
		c.Release()
		cancel()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := k.newCall(e, "rx")
	if err := e.Do(ctx, c); !errors.Is(err, context.Canceled) || slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("call with a canceled context: %v", err)
	}
	c.Release()
}
