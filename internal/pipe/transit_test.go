package pipe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// oneAtATime lets a connection have one call at the server, so that all others are queued, and keeps
// calls together.
func oneAtATime(c *Config) {
	c.Traits.FirstDepth, c.Traits.Place, c.Traits.Spill = 1, Gather, 512
}

// movingWorld is a server that keeps requests, and an engine that sends it one at a time.
func movingWorld(t *testing.T, network string, tickets bool, change func(*Config)) (*keepingServer, *Engine) {
	k := startKeeping(t, network, tickets)
	return k, k.engine(func(c *Config) {
		oneAtATime(c)
		if change != nil {
			change(c)
		}
	})
}

// forget forgets what has arrived.
func (k *keepingServer) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen = nil
}

// serveInOrder answers requests until these have arrived, in this order.
func (k *keepingServer) serveInOrder(want ...string) {
	k.t.Helper()
	for _, body := range want {
		k.arrived(1)
		if got := k.bodies()[0]; got != body {
			k.t.Fatalf("%q arrived, expected %q", got, body)
		}
		if strings.HasPrefix(body, "ro") {
			k.forget()
		} else {
			k.answer()
		}
	}
}

func hasOutcome(t *testing.T, c *Call, want slipstream.Outcome) {
	t.Helper()
	if err := c.Wait(); err == nil || slipstream.OutcomeOf(err) != want {
		t.Errorf("%q: %v, expected %v", c.Frame, err, want)
	}
	c.Release()
}

func moved(t *testing.T, e *Engine, want uint64) {
	t.Helper()
	if v := e.Snapshot(); v.Moved != want {
		t.Errorf("%d calls have moved, expected %d", v.Moved, want)
	}
}

// A connection fails: the calls that were not sent go to the next one, in their order, large ones
// and those without replies as well, and nobody sees an error of theirs.
func TestUnsentCallsMove(t *testing.T) {
	eachWay(t, func(t *testing.T, network string, tickets bool) {
		k, e := movingWorld(t, network, tickets, nil)
		held := k.start(t.Context(), e, "rheld")
		k.arrived(1)
		large := "r3" + strings.Repeat("x", 20_000)
		cs := k.start(t.Context(), e, "r1", "r2", large)
		told := make(chan error, 1)
		done := completerFunc(func(c *Call) { told <- c.Err(); c.Release() })
		if err := e.StartFunc(t.Context(), k.newCall(e, "r4"), done); err != nil {
			t.Fatal(err)
		}
		k.forget()
		k.last().reset()
		hasOutcome(t, held[0], slipstream.MaybeExecuted)
		k.serveInOrder("r1", "r2", large, "r4")
		for _, c := range cs {
			k.finish(c)
		}
		if err := <-told; err != nil {
			t.Error(err)
		}
		moved(t, e, 4)
		balanced(t, e)
		e.Close()
	})
}

// Calls without replies move, too, in their place among the others.
func TestOneWaysMove(t *testing.T) {
	for _, tickets := range []bool{false, true} {
		k := startKeeping(t, "", tickets)
		e := k.engine(oneFactor)
		setRoundTrip(e, time.Second) // so that no ticket counts as slow
		// As many at a time as are in flight: then the flush rule holds none of them back.
		held := k.start(t.Context(), e, "rheld 1")
		k.arrived(1)
		for len(held) < 8 {
			for range len(held) {
				held = append(held, k.start(t.Context(), e, fmt.Sprintf("rheld %d", len(held)+1))...)
			}
			k.arrived(len(held))
		}
		a := k.start(t.Context(), e, "ra")
		one := k.newCall(e, "roneway")
		one.OneWay = true
		if err := e.Start(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		b := k.start(t.Context(), e, "rb")
		k.forget()
		k.last().reset()
		for _, c := range held {
			hasOutcome(t, c, slipstream.MaybeExecuted)
		}
		k.arrived(3)
		if got := strings.Join(k.bodies(), " "); got != "ra roneway rb" {
			t.Errorf("%q arrived", got)
		}
		k.mu.Lock()
		k.seen[0].reply(k.seen[0].body)
		k.seen[2].reply(k.seen[2].body)
		k.mu.Unlock()
		k.finish(a[0])
		k.finish(b[0])
		if err := one.Wait(); err != nil {
			t.Error(err)
		}
		one.Release()
		balanced(t, e)
		e.Close()
	}
}

// A connection is retired while its server works: what it was not sent goes to another one that is
// up, before later calls of the same caller, and waits for nothing.
func TestUnsentCallsLeaveARetiredConnection(t *testing.T) {
	eachWay(t, func(t *testing.T, network string, tickets bool) {
		k := startKeeping(t, network, tickets)
		e := connectAll(t, k.toyServer, 2, oneAtATime)
		held := k.start(t.Context(), e, "rheld")
		k.arrived(1)
		cs := k.start(t.Context(), e, "r1", "r2")
		k.mu.Lock()
		hold := k.seen[0]
		k.mu.Unlock()
		k.forget()
		Pin{socketAt(e, e.current.Load())}.Retire()
		cs = append(cs, k.start(t.Context(), e, "r3")...)
		k.serveInOrder("r1", "r2", "r3")
		for _, c := range cs {
			k.finish(c)
		}
		moved(t, e, 2)
		if held[0].ending.reached() {
			t.Error("the call at the server has ended")
		}
		hold.reply("rheld")
		k.finish(held[0])
		balanced(t, e)
		e.Close()
	})
}

// Calls in transit are sent before those of callers that wait for a connection.
func TestCallsInTransitComeFirst(t *testing.T) {
	eachWay(t, func(t *testing.T, network string, tickets bool) {
		k, e := movingWorld(t, network, tickets, nil)
		held := k.start(t.Context(), e, "rheld")
		k.arrived(1)
		cs := k.start(t.Context(), e, "r1", "r2", "r3")
		k.forget()
		k.setDown(true)
		k.last().reset()
		hasOutcome(t, held[0], slipstream.MaybeExecuted)
		later := make(chan []*Call)
		go func() { later <- k.start(t.Context(), e, "r4") }() // ends when the server is back; waited for below
		inTransit(t, e, 3)
		k.setDown(false)
		k.serveInOrder("r1", "r2", "r3", "r4")
		for _, c := range append(cs, <-later...) {
			k.finish(c)
		}
		balanced(t, e)
		e.Close()
	})
}

func inTransit(t *testing.T, e *Engine, n int) {
	t.Helper()
	testkit.Eventually(t, 5*time.Second, func() error {
		if v := e.Snapshot(); v.Queued != n || v.Connected != 0 || socketAt(e, 0) != nil {
			return fmt.Errorf("%d calls are queued, %d connected, expected %d in transit", v.Queued, v.Connected, n)
		}
		return nil
	})
}

// A call moves three times, and then its caller decides.
func TestCallsMoveThreeTimes(t *testing.T) {
	for _, tickets := range []bool{false, true} {
		k, e := movingWorld(t, "", tickets, nil)
		cs := k.start(t.Context(), e, "r0", "r1", "r2", "r3", "r4", "r5")
		for i := range 4 {
			k.arrived(1)
			k.forget()
			k.last().reset()
			hasOutcome(t, cs[i], slipstream.MaybeExecuted)
		}
		hasOutcome(t, cs[4], slipstream.NotSent)
		hasOutcome(t, cs[5], slipstream.NotSent)
		moved(t, e, 5+4+3)
		balanced(t, e)
		e.Close()
	}
}

// What must not move ends with its connection: pinned calls, calls of an engine that fails fast,
// and a DoAll of which a part was sent.
func TestWhatMustNotMove(t *testing.T) {
	eachWay(t, func(t *testing.T, network string, tickets bool) {
		for _, why := range []string{"pinned", "fail fast", "part sent", "first answered"} {
			k, e := movingWorld(t, network, tickets, func(c *Config) { c.FailFast = why == "fail fast" })
			together := []*Call{k.newCall(e, "r0"), k.newCall(e, "r1"), k.newCall(e, "r2")}
			if why == "pinned" {
				pin, err := e.PinNow()
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range together {
					c.Pin = pin
				}
			}
			ended := make(chan error)
			sent := 1
			if why == "pinned" || why == "fail fast" {
				held := k.start(t.Context(), e, "rheld")
				k.arrived(1)
				defer func() { hasOutcome(t, held[0], slipstream.MaybeExecuted) }()
				sent = 0
			}
			go func() { ended <- e.DoAll(t.Context(), together) }() // ends with the connection; waited for below
			testkit.Eventually(t, 5*time.Second, func() error {
				if v := e.Snapshot(); v.Queued != 3-sent {
					return fmt.Errorf("%d calls are queued", v.Queued)
				}
				return nil
			})
			k.arrived(1)
			if why == "first answered" {
				k.answer()
				k.arrived(1)
			}
			k.last().reset()
			if err := <-ended; err == nil {
				t.Errorf("%s: no error", why)
			}
			want := [3]slipstream.Outcome{slipstream.NotSent, slipstream.NotSent, slipstream.NotSent}
			switch why {
			case "part sent":
				want[0] = slipstream.MaybeExecuted
			case "first answered":
				want[1] = slipstream.MaybeExecuted
			}
			for i, c := range together {
				if err := c.Err(); why == "first answered" && i == 0 {
					if err != nil {
						t.Errorf("%s: %v", why, err)
					}
				} else if slipstream.OutcomeOf(err) != want[i] {
					t.Errorf("%s: call %d: %v, expected %v", why, i, err, want[i])
				}
				c.Release()
			}
			moved(t, e, 0)
			balanced(t, e)
			e.Close()
		}
	})
}

// A DoAll of which nothing was sent moves as a whole, also if one of its calls was given up.
func TestDoAllMovesAsAWhole(t *testing.T) {
	eachWay(t, func(t *testing.T, network string, tickets bool) {
		k, e := movingWorld(t, network, tickets, nil)
		held := k.start(t.Context(), e, "rheld")
		k.arrived(1)
		together := []*Call{k.newCall(e, "r1"), k.newCall(e, "r2"), k.newCall(e, "r3")}
		ended := make(chan error)
		go func() { ended <- e.DoAll(t.Context(), together) }() // ended by the answers below
		testkit.Eventually(t, 5*time.Second, func() error {
			if v := e.Snapshot(); v.Queued != 3 {
				return fmt.Errorf("%d calls are queued", v.Queued)
			}
			return nil
		})
		// The context of one ends, as it does in the middle of a sweep.
		s := socketAt(e, 0)
		s.mu.Lock()
		s.giveUp(together[1], context.DeadlineExceeded)
		s.mu.Unlock()
		k.forget()
		k.last().reset()
		hasOutcome(t, held[0], slipstream.MaybeExecuted)
		k.serveInOrder("r1", "r3")
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		for _, c := range together {
			c.Release()
		}
		moved(t, e, 2)
		balanced(t, e)
		e.Close()
	})
}

// Calls in transit end with their context and their deadline as soon as others, and when
// DialTimeout has passed without a connection.
func TestCallsInTransitEndInTime(t *testing.T) {
	for _, how := range []string{"cancel", "deadline", "dial timeout"} {
		t.Run(how, func(t *testing.T) {
			testkit.NoLeaks(t)
			k, e := movingWorld(t, "", false, func(c *Config) {
				if how == "dial timeout" {
					c.DialTimeout = 500 * time.Millisecond
				}
			})
			ctx, cancel := context.WithCancel(t.Context())
			if how == "deadline" {
				cancel()
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			}
			defer cancel()
			held := k.start(t.Context(), e, "rheld")
			k.arrived(1)
			cs := k.start(ctx, e, "r1", "r2")
			k.setDown(true)
			k.last().reset()
			hasOutcome(t, held[0], slipstream.MaybeExecuted)
			var began time.Time
			want := context.DeadlineExceeded
			switch how {
			case "cancel":
				inTransit(t, e, 2)
				began, want = time.Now(), context.Canceled
				cancel()
			case "deadline":
				began, _ = ctx.Deadline()
			default:
				began = time.Now().Add(500 * time.Millisecond)
			}
			for _, c := range cs {
				if err := c.Wait(); !errors.Is(err, want) || slipstream.OutcomeOf(err) != slipstream.NotSent {
					t.Errorf("%v, expected %v", err, want)
				}
				c.Release()
			}
			if late := time.Since(began); late > time.Second {
				t.Errorf("they ended %v late", late)
			}
			if v := e.Snapshot(); v.Queued != 0 || v.HeldBytes != 0 || e.Outstanding() != 0 {
				t.Errorf("left behind: %d calls of %d bytes", v.Queued, v.HeldBytes)
			}
			balanced(t, e)
		})
	}
}

// A call in transit ends exactly once with the engine: Close ends it, Shutdown waits for it.
func TestCloseAndShutdownWithCallsInTransit(t *testing.T) {
	for _, gently := range []bool{false, true} {
		testkit.NoLeaks(t)
		k, e := movingWorld(t, "", false, nil)
		held := k.start(t.Context(), e, "rheld")
		k.arrived(1)
		var ends atomic.Int32
		told := make(chan error, 2)
		done := completerFunc(func(c *Call) { ends.Add(1); told <- c.Err(); c.Release() })
		if err := e.StartFunc(t.Context(), k.newCall(e, "r1"), done); err != nil {
			t.Fatal(err)
		}
		k.forget()
		k.setDown(true)
		k.last().reset()
		hasOutcome(t, held[0], slipstream.MaybeExecuted)
		inTransit(t, e, 1)
		if gently {
			closed := make(chan error)
			go func() { closed <- e.Shutdown(context.Background()) }() // ends with the call; waited for below
			select {
			case err := <-closed:
				t.Fatalf("the shutdown did not wait: %v", err)
			case <-time.After(20 * time.Millisecond):
			}
			k.setDown(false)
			k.serveInOrder("r1")
			if err := errors.Join(<-closed, <-told); err != nil {
				t.Error(err)
			}
		} else {
			e.Close()
			if n := ends.Load(); n != 1 {
				t.Fatalf("the call has ended %d times when the engine is closed", n)
			}
			if err := <-told; slipstream.OutcomeOf(err) != slipstream.Closed || !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}
		e.Close()
		if n := ends.Load(); n != 1 {
			t.Errorf("the call has ended %d times", n)
		}
		balanced(t, e)
	}
}

// What calls in transit are charged counts against the bounds all the time: nobody gets their room,
// neither while they wait nor when the next connection is up.
func TestTransitKeepsItsRoom(t *testing.T) {
	for _, tickets := range []bool{false, true} {
		k, e := movingWorld(t, "", tickets, func(c *Config) { c.MaxCalls = 4 })
		held := k.start(t.Context(), e, "r0")
		k.arrived(1)
		cs := k.start(t.Context(), e, "r1", "r2", "r3")
		want := (cs[0].charge + cs[1].charge + cs[2].charge) & (oneCall - 1)
		k.forget()
		k.setDown(true)
		k.last().reset()
		hasOutcome(t, held[0], slipstream.MaybeExecuted)
		inTransit(t, e, 3)
		if got := e.Snapshot().HeldBytes; got != want || e.Outstanding() != 3 {
			t.Errorf("%d bytes and %d calls are held, expected %d and 3", got, e.Outstanding(), want)
		}
		k.setDown(false)
		k.arrived(1)
		fits := k.start(t.Context(), e, "r4")
		c := k.newCall(e, "r5")
		if err := e.Start(t.Context(), c); !errors.Is(err, ErrOverloaded) {
			t.Errorf("a fifth call of four: %v", err)
		}
		c.Release()
		k.serveInOrder("r1", "r2", "r3", "r4")
		for _, c := range append(cs, fits...) {
			k.finish(c)
		}
		balanced(t, e)
		e.Close()
	}
}

// Calls for which another connection has no room wait for it, or for their own.
func TestTransitWaitsForRoom(t *testing.T) {
	k := startKeeping(t, "", false)
	e := connectAll(t, k.toyServer, 2, func(c *Config) {
		oneAtATime(c)
		c.MaxCalls = 8 // four each
	})
	pins := [2]Pin{{socketAt(e, 0)}, {socketAt(e, 1)}}
	start := func(pin Pin, n int) (cs []*Call) {
		for range n {
			c := k.newCall(e, "rx")
			e.current.Store(0)
			if pin == pins[1] {
				e.current.Store(1)
			}
			c.prepare(t.Context(), e)
			if _, err := pin.s.submit([]*Call{c}, false); err != nil {
				t.Fatal(err)
			}
			cs = append(cs, c)
		}
		return cs
	}
	cs := append(start(pins[0], 4), start(pins[1], 2)...)
	k.arrived(2)
	pins[0].Retire() // one is at the server, three move: two at once
	for i, want := range []int64{2, 4} {
		if got := pins[i].s.charged.Load() >> chargeBits; got != want {
			t.Errorf("connection %d has %d calls, expected %d", i, got, want)
		}
	}
	if v := e.Snapshot(); v.Queued+v.Outstanding != 6 || e.transit.waiting.Load() != 1 {
		t.Errorf("%d calls, %d in transit", v.Queued+v.Outstanding, e.transit.waiting.Load())
	}
	for _, c := range cs {
		for !c.ending.reached() {
			k.answer()
			time.Sleep(100 * time.Microsecond)
		}
		k.finish(c)
	}
	balanced(t, e)
}

// A lone caller finds that its idle connection was closed: the call is sent on the next one.
func TestLoneCallMoves(t *testing.T) {
	systemSockets(t, func(t *testing.T, network string, tickets bool) {
		s := startToy(t, &toyServer{network: network, tickets: tickets})
		e := s.engine(func(c *Config) { soloSoon(c); c.Timeout = 10 * time.Second })
		for _, start := range []bool{false, true} {
			old := freeRole(t, s, e)
			s.hangUp()
			time.Sleep(time.Millisecond)
			c := s.newCall(e, "rmine")
			var err error
			if !start {
				err = e.Do(t.Context(), c)
			} else if err = e.Start(t.Context(), c); err == nil {
				err = c.Wait()
			}
			if err != nil || s.replyOf(c) != "rmine" || socketAt(e, 0) == old {
				t.Errorf("start %v: %v", start, err)
			}
			c.Release()
		}
		balanced(t, e)
	})
}
