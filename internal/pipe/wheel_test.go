package pipe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// A wheel yields exactly the calls whose tick has come, whatever was armed, disarmed and skipped before, and
// its alarm is never later than the first of them.
func TestWheelEqualsAMap(t *testing.T) {
	r := testkit.Rand(t)
	for range 20 {
		var w wheel
		armed := map[*Call]uint64{}
		now, far := uint64(0), uint64(1)<<r.IntN(30)
		for range 2_000 {
			switch r.IntN(4) {
			case 0, 1:
				c, at := &Call{}, now+r.Uint64N(far)
				w.arm(c, at)
				armed[c] = max(at, w.now+1)
			case 2:
				for c := range armed {
					w.disarm(c.timer)
					delete(armed, c)
					break
				}
			default:
				now += r.Uint64N(far/16 + 2)
				var expired []*Call
				for w.advance(now, 1+r.IntN(100), func(c *Call) { expired = append(expired, c) }) {
				}
				for _, c := range expired {
					if at, ok := armed[c]; !ok || at > now {
						t.Fatalf("a call armed for tick %d (%v) expired at %d", at, ok, now)
					}
					delete(armed, c)
				}
			}
			checkWheel(t, &w, armed, now)
		}
	}
}

func checkWheel(t *testing.T, w *wheel, armed map[*Call]uint64, now uint64) {
	t.Helper()
	if w.armed != len(armed) {
		t.Fatalf("%d timers, want %d", w.armed, len(armed))
	}
	first := uint64(1 << 62)
	for _, at := range armed {
		first = min(first, at)
	}
	if len(armed) > 0 && (first < now || w.alarm == 0 || w.alarm > first) {
		t.Fatalf("at %d: the first call is due at %d, but the alarm is at %d", now, first, w.alarm)
	}
}

// A tick visits the calls that expire and those that move down from a higher level, once for each level. Calls
// that were answered before cost nothing.
func TestTickVisitsWhatExpires(t *testing.T) {
	var w wheel
	const calls, unanswered = 50_000, 100
	for i := range calls {
		c := &Call{}
		w.arm(c, 5_000)
		if i%(calls/unanswered) != 0 {
			w.disarm(c.timer)
		}
	}
	if cap(w.timers) > 4*unanswered {
		t.Errorf("%d timers were allocated for %d calls", cap(w.timers), unanswered)
	}
	expired, alarms := 0, 0
	for w.alarm != 0 {
		alarms++
		for w.advance(w.alarm, expireChunk, func(*Call) { expired++ }) {
		}
	}
	if expired != unanswered || w.visited > 3*unanswered || alarms > 4 {
		t.Errorf("%d calls expired in %d rounds that visited %d calls; want %d, at most 4, and at most %d",
			expired, alarms, w.visited, unanswered, 3*unanswered)
	}
	w.shrink()
	if w.levels != nil || w.timers != nil {
		t.Error("an empty wheel retains its memory")
	}
}

// virtualEngine returns an engine in virtual time whose server never answers.
func virtualEngine(t testing.TB, tickets bool, change func(*Config)) *Engine {
	var servers sync.WaitGroup
	cfg := Config{Protocol: toyFIFO{}, Traits: toyTraits(tickets), StallTimeout: -1, IdlePing: -1, Dial: func(context.Context) (net.Conn, error) {
		client, server := newMemLink(faults{room: 64 << 20})
		p := &toyPeer{conn: server, tickets: tickets}
		servers.Go(func() { p.serve(func(toyRequest) {}) })
		return client, nil
	}}
	if tickets {
		cfg.Protocol = toyTickets{}
	}
	if change != nil {
		change(&cfg)
	}
	return connected(t, cfg, &servers)
}

// connected returns a connected engine that ends, together with its servers, when the test ends.
func connected(t testing.TB, cfg Config, servers *sync.WaitGroup) *Engine {
	t.Helper()
	e := New(cfg)
	t.Cleanup(func() {
		e.Close()
		servers.Wait()
	})
	if err := e.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e
}

// eachMatching runs f in virtual time for both kinds of matching.
func eachMatching(t *testing.T, f func(t *testing.T, tickets bool)) {
	for name, tickets := range map[string]bool{"order": false, "tickets": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, tickets) })
		})
	}
}

// ends starts n calls and returns how long after its due time each of them ended.
func ends(t testing.TB, e *Engine, n int, due func() (context.Context, time.Time), want error) []time.Duration {
	var mu sync.Mutex
	var late []time.Duration
	var wg sync.WaitGroup
	for range n {
		ctx, at := due()
		c := bubbleCall(e)
		if err := e.Start(ctx, c); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			err := c.Wait()
			took := time.Since(at)
			mu.Lock()
			defer mu.Unlock()
			if late = append(late, took); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		})
	}
	wg.Wait()
	slices.Sort(late)
	return late
}

// bubbleCall returns a call that is not released, because calls of the pool must not enter a bubble.
func bubbleCall(e *Engine) *Call {
	c := &Call{ending: newEnding(), engine: e}
	if e.cfg.Traits.Match == ByTicket {
		c.Frame = appendToyTicket(c.Frame, "rx")
	} else {
		c.Frame = appendToy(c.Frame, "rx")
	}
	return c
}

// Deadlines of contexts are honored within 2 ms, and so are those of Config.Timeout.
func TestDeadlinesAreHonoredWithinTwoMilliseconds(t *testing.T) {
	eachMatching(t, func(t *testing.T, tickets bool) {
		e := virtualEngine(t, tickets, nil)
		r := testkit.Rand(t)
		late := ends(t, e, 2_000, func() (context.Context, time.Time) {
			// The context itself ends, too, but the engine does not check it then.
			at := time.Now().Add(time.Duration(r.Int64N(int64(20 * time.Second))))
			return deadlineOnly{context.Background(), at}, at
		}, context.DeadlineExceeded)
		if first, last := late[0], late[len(late)-1]; first < 0 || last > 2*time.Millisecond {
			t.Errorf("calls ended from %v to %v after their deadline", first, last)
		}
		s := socketAt(e, 0)
		if v := s.calls.deadlines.visited; v > 4*2_000 {
			t.Errorf("%d visits for 2,000 calls", v)
		}
	})
}

// deadlineOnly is a context that has a deadline but never ends.
type deadlineOnly struct {
	context.Context
	at time.Time
}

func (d deadlineOnly) Deadline() (time.Time, bool) { return d.at, true }

// Config.Timeout is honored within 2 ms.
func TestTimeoutIsHonoredWithinTwoMilliseconds(t *testing.T) {
	eachMatching(t, func(t *testing.T, tickets bool) {
		const timeout = 33 * time.Millisecond
		e := virtualEngine(t, tickets, func(c *Config) { c.Timeout = timeout })
		r := testkit.Rand(t)
		for range 200 {
			time.Sleep(time.Duration(r.Int64N(int64(3 * time.Millisecond))))
			late := ends(t, e, 3, func() (context.Context, time.Time) {
				return context.Background(), time.Now().Add(timeout)
			}, context.DeadlineExceeded)
			if first, last := late[0], late[len(late)-1]; first < 0 || last > 2*time.Millisecond {
				t.Fatalf("calls ended from %v to %v after their deadline", first, last)
			}
		}
	})
}

// A cancel is honored within 10 ms, whatever the number of calls.
func TestCancelIsHonoredWithinTenMilliseconds(t *testing.T) {
	eachMatching(t, func(t *testing.T, tickets bool) {
		e := virtualEngine(t, tickets, func(c *Config) { c.MaxCalls, c.MaxBytes = 1<<20, 1<<30 })
		r := testkit.Rand(t)
		shared, cancelShared := context.WithCancel(t.Context())
		rest := bubbleCall(e)
		if err := e.Start(shared, rest); err != nil {
			t.Fatal(err)
		}
		late := ends(t, e, 20_000, func() (context.Context, time.Time) {
			ctx, cancel := context.WithCancel(t.Context())
			after := time.Duration(r.Int64N(int64(300 * time.Millisecond)))
			time.AfterFunc(after, cancel)
			return ctx, time.Now().Add(after)
		}, context.Canceled)
		if last := late[len(late)-1]; last > 10*time.Millisecond {
			t.Errorf("a call ended %v after its cancel", last)
		}
		cancelShared()
		if err := rest.Wait(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// Calls without a deadline need no wheel, and an idle engine does not tick.
func TestNoTicksWithoutDeadlines(t *testing.T) {
	eachMatching(t, func(t *testing.T, tickets bool) {
		e := virtualEngine(t, tickets, nil)
		ctx, cancel := context.WithCancel(t.Context())
		c := bubbleCall(e)
		if err := e.Start(ctx, c); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		s := socketAt(e, 0)
		s.mu.Lock()
		if w := &s.calls.deadlines; w.levels != nil || w.alarm != 0 {
			t.Errorf("there is a wheel, with its alarm at tick %d", w.alarm)
		}
		s.mu.Unlock()
		cancel()
		c.Wait()
		c = bubbleCall(e)
		if err := e.Do(deadlineOnly{context.Background(), time.Now().Add(time.Second)}, c); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		s.mu.Lock()
		if w := &s.calls.deadlines; w.alarm != 0 || w.armed != 0 {
			t.Errorf("after the last deadline the alarm is at tick %d, with %d timers", w.alarm, w.armed)
		}
		s.mu.Unlock()
	})
}

// A call of any kind that has its reply, or needs none and was written, has no timer.
func TestAnsweredCallsHaveNoTimer(t *testing.T) {
	for _, tickets := range []bool{false, true} {
		s := startToy(t, &toyServer{network: "unix", tickets: tickets, handle: func(r toyRequest) {
			if r.body != "rone way" {
				r.reply(r.body)
			}
		}})
		e := s.engine(func(c *Config) { c.Timeout = time.Hour })
		for i := range 100 {
			c := s.newCall(e, "r")
			if i%3 == 0 {
				c.Release()
				c = s.newCall(e, "rone way")
				c.OneWay = true
			}
			if i%3 == 1 && !tickets {
				c.Release()
				c = s.several(e, "r1", "r2", "r3")
			}
			if err := e.Do(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			c.Release()
		}
		sock := socketAt(e, 0)
		testkit.Eventually(t, 5*time.Second, func() error {
			sock.mu.Lock()
			defer sock.mu.Unlock()
			if n := sock.calls.deadlines.armed; n > 0 {
				return fmt.Errorf("tickets %v: %d ended calls have a timer", tickets, n)
			}
			return nil
		})
		checkBalanced(t, e)
	}
}

// A deadline that passes while the reader adds replies to the call is honored after that.
func TestDeadlineWhileRepliesAreAdded(t *testing.T) {
	w := newModelWorld(t, modelLimits{k: 1, big: 1 << 20, events: 1}, dice{testkit.Rand(t)})
	s := w.socket
	s.raw = hookedRaw{func() { s.out.wrote = s.out.outgoing.Len() }}
	c := w.engine.Acquire()
	c.Frame = appendToy(appendToy(nil, "r1"), "r2")
	c.Replies = 2
	w.engine.cfg.Timeout = time.Hour
	c.prepare(t.Context(), w.engine)
	if _, err := s.submit([]*Call{c}, false); err != nil {
		t.Fatal(err)
	}
	now := 2 * time.Hour
	s.calls.gathering = true
	if next := s.expireCalls(now); c.state.Load() != statePending || next <= now || next > now+2*tick {
		t.Fatalf("state %d while replies are added; the next check is at %v, want it soon after %v", c.state.Load(), next, now)
	}
	s.calls.gathering = false
	if next := s.expireCalls(now + 2*tick); c.state.Load() != stateDead || next != 0 {
		t.Fatalf("state %d after that, and the next check is at %v", c.state.Load(), next)
	}
}
