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

// oneAtATime configures one call in flight for each connection, so that all others are queued, and keeps calls
// together.
func oneAtATime(c *Config) {
	c.Traits.FirstDepth, c.Traits.Place, c.Traits.Spill = 1, Gather, 512
}

// movingWorld returns a server that holds requests, and an engine that sends one at a time.
func movingWorld(t *testing.T, network string, tickets bool, change func(*Config)) (*holdingServer, *Engine) {
	k := startHolding(t, network, tickets)
	return k, k.engine(func(c *Config) {
		oneAtATime(c)
		if change != nil {
			change(c)
		}
	})
}

// forget drops the requests that have arrived.
func (k *holdingServer) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen = nil
}

// serveInOrder answers requests until these have arrived in this order.
func (k *holdingServer) serveInOrder(want ...string) {
	k.t.Helper()
	for _, body := range want {
		k.arrived(1)
		if got := k.bodies()[0]; got != body {
			k.t.Fatalf("%q arrived, want %q", got, body)
		}
		if strings.HasPrefix(body, "ro") {
			k.forget()
		} else {
			k.answer()
		}
	}
}

func checkOutcome(t *testing.T, c *Call, want slipstream.Outcome) {
	t.Helper()
	if err := c.Wait(); err == nil || slipstream.OutcomeOf(err) != want {
		t.Errorf("%q: %v, want %v", c.Frame, err, want)
	}
	c.Release()
}

func checkMoved(t *testing.T, e *Engine, want uint64) {
	t.Helper()
	if v := e.Snapshot(); v.Moved != want {
		t.Errorf("%d calls moved, want %d", v.Moved, want)
	}
}

// When a connection fails, the unsent calls move to the next one in order, including large ones and those
// without replies, and no caller sees an error.
func TestUnsentCallsMove(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		k, e := movingWorld(t, network, tickets, nil)
		held := k.start(t.Context(), e, "rheld")
		k.arrived(1)
		large := "r3" + strings.Repeat("x", 20_000)
		cs := k.start(t.Context(), e, "r1", "r2", large)
		results := make(chan error, 1)
		done := completerFunc(func(c *Call) { results <- c.Err(); c.Release() })
		if err := e.StartFunc(t.Context(), k.newCall(e, "r4"), done); err != nil {
			t.Fatal(err)
		}
		k.forget()
		k.last().reset()
		checkOutcome(t, held[0], slipstream.MaybeExecuted)
		k.serveInOrder("r1", "r2", large, "r4")
		for _, c := range cs {
			k.finish(c)
		}
		if err := <-results; err != nil {
			t.Error(err)
		}
		checkMoved(t, e, 4)
		checkBalanced(t, e)
		e.Close()
	})
}

// Calls without replies move, too, and keep their order among the others.
func TestOneWaysMove(t *testing.T) {
	for _, tickets := range []bool{false, true} {
		k := startHolding(t, "", tickets)
		e := k.engine(oneFactor)
		setRoundTrip(e, time.Second) // so that no ticket counts as slow
		// As many as are in flight, so that the flush rule holds none of them back.
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
			checkOutcome(t, c, slipstream.MaybeExecuted)
		}
		k.arrived(3)
		if got := strings.Join(k.bodies(), " "); got != "ra roneway rb" {
			t.Errorf("%q arrived, want all in order", got)
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
		checkBalanced(t, e)
		e.Close()
	}
}

// When a connection is retired while its server works, the unsent calls move immediately to another one that is
// up, ahead of later calls of the same caller.
func TestUnsentCallsLeaveARetiredConnection(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		k := startHolding(t, network, tickets)
		e := connectAll(t, k.toyServer, 2, oneAtATime)
		held := k.start(t.Context(), e, "rheld")
		k.arrived(1)
		cs := k.start(t.Context(), e, "r1", "r2")
		k.mu.Lock()
		hold := k.seen[0]
		k.mu.Unlock()
		k.forget()
		k.setDown(true) // so that the connection that takes the place of the retired one gets none of the calls
		Pin{socketAt(e, e.current.Load())}.Retire()
		cs = append(cs, k.start(t.Context(), e, "r3")...)
		k.serveInOrder("r1", "r2", "r3")
		for _, c := range cs {
			k.finish(c)
		}
		checkMoved(t, e, 2)
		if held[0].ending.reached() {
			t.Error("the call in flight has ended")
		}
		hold.reply("rheld")
		k.finish(held[0])
		checkBalanced(t, e)
		e.Close()
	})
}

// Calls in transit are sent before the calls of callers that wait for a connection.
func TestCallsInTransitComeFirst(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		k, e := movingWorld(t, network, tickets, nil)
		held := k.start(t.Context(), e, "rheld")
		k.arrived(1)
		cs := k.start(t.Context(), e, "r1", "r2", "r3")
		k.forget()
		k.setDown(true)
		k.last().reset()
		checkOutcome(t, held[0], slipstream.MaybeExecuted)
		later := make(chan []*Call)
		go func() { later <- k.start(t.Context(), e, "r4") }() // ends when the server is back; waited for below
		awaitInTransit(t, e, 3)
		k.setDown(false)
		k.serveInOrder("r1", "r2", "r3", "r4")
		for _, c := range append(cs, <-later...) {
			k.finish(c)
		}
		checkBalanced(t, e)
		e.Close()
	})
}

func awaitInTransit(t *testing.T, e *Engine, n int) {
	t.Helper()
	testkit.Eventually(t, 5*time.Second, func() error {
		if v := e.Snapshot(); v.Queued != n || v.Connected != 0 || socketAt(e, 0) != nil {
			return fmt.Errorf("%d calls are queued, %d connected, want %d in transit", v.Queued, v.Connected, n)
		}
		return nil
	})
}

// A call moves at most three times. Then it fails.
func TestCallsMoveThreeTimes(t *testing.T) {
	for _, tickets := range []bool{false, true} {
		k, e := movingWorld(t, "", tickets, nil)
		cs := k.start(t.Context(), e, "r0", "r1", "r2", "r3", "r4", "r5")
		for i := range 4 {
			k.arrived(1)
			k.forget()
			k.last().reset()
			checkOutcome(t, cs[i], slipstream.MaybeExecuted)
		}
		checkOutcome(t, cs[4], slipstream.NotSent)
		checkOutcome(t, cs[5], slipstream.NotSent)
		checkMoved(t, e, 5+4+3)
		checkBalanced(t, e)
		e.Close()
	}
}

// Calls that must not move end with their connection: pinned calls, those of an engine that fails fast, and a
// DoAll of which a part was sent.
func TestWhatMustNotMove(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
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
				defer func() { checkOutcome(t, held[0], slipstream.MaybeExecuted) }()
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
				t.Errorf("%s: DoAll succeeded, want an error", why)
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
					t.Errorf("%s: call %d: %v, want %v", why, i, err, want[i])
				}
				c.Release()
			}
			checkMoved(t, e, 0)
			checkBalanced(t, e)
			e.Close()
		}
	})
}

// A DoAll of which nothing was sent moves as a whole, even if one of its calls was given up.
func TestDoAllMovesAsAWhole(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
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
		// The context of one call ends, as it may during a sweep.
		s := socketAt(e, 0)
		s.mu.Lock()
		s.giveUp(together[1], context.DeadlineExceeded)
		s.mu.Unlock()
		k.forget()
		k.last().reset()
		checkOutcome(t, held[0], slipstream.MaybeExecuted)
		k.serveInOrder("r1", "r3")
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		for _, c := range together {
			c.Release()
		}
		checkMoved(t, e, 2)
		checkBalanced(t, e)
		e.Close()
	})
}

// Calls in transit end with their context and their deadline as promptly as others, and when DialTimeout passes
// without a connection.
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
			checkOutcome(t, held[0], slipstream.MaybeExecuted)
			var began time.Time
			want := context.DeadlineExceeded
			switch how {
			case "cancel":
				awaitInTransit(t, e, 2)
				began, want = time.Now(), context.Canceled
				cancel()
			case "deadline":
				began, _ = ctx.Deadline()
			default:
				began = time.Now().Add(500 * time.Millisecond)
			}
			for _, c := range cs {
				if err := c.Wait(); !errors.Is(err, want) || slipstream.OutcomeOf(err) != slipstream.NotSent {
					t.Errorf("%v, want %v", err, want)
				}
				c.Release()
			}
			if late := time.Since(began); late > time.Second {
				t.Errorf("the calls ended %v late", late)
			}
			if v := e.Snapshot(); v.Queued != 0 || v.HeldBytes != 0 || e.Outstanding() != 0 {
				t.Errorf("not empty at the end: %d calls, %d bytes", v.Queued, v.HeldBytes)
			}
			checkBalanced(t, e)
		})
	}
}

// A call in transit ends exactly once with the engine: Close ends it, and Shutdown waits for it.
func TestCloseAndShutdownWithCallsInTransit(t *testing.T) {
	for _, gently := range []bool{false, true} {
		testkit.NoLeaks(t)
		k, e := movingWorld(t, "", false, nil)
		held := k.start(t.Context(), e, "rheld")
		k.arrived(1)
		var ends atomic.Int32
		results := make(chan error, 2)
		done := completerFunc(func(c *Call) { ends.Add(1); results <- c.Err(); c.Release() })
		if err := e.StartFunc(t.Context(), k.newCall(e, "r1"), done); err != nil {
			t.Fatal(err)
		}
		k.forget()
		k.setDown(true)
		k.last().reset()
		checkOutcome(t, held[0], slipstream.MaybeExecuted)
		awaitInTransit(t, e, 1)
		if gently {
			closed := make(chan error)
			go func() { closed <- e.Shutdown(context.Background()) }() // ends with the call; waited for below
			select {
			case err := <-closed:
				t.Fatalf("Shutdown did not wait: %v", err)
			case <-time.After(20 * time.Millisecond):
			}
			k.setDown(false)
			k.serveInOrder("r1")
			if err := errors.Join(<-closed, <-results); err != nil {
				t.Error(err)
			}
		} else {
			e.Close()
			if n := ends.Load(); n != 1 {
				t.Fatalf("the call has ended %d times when Close returns", n)
			}
			if err := <-results; slipstream.OutcomeOf(err) != slipstream.Closed || !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}
		e.Close()
		if n := ends.Load(); n != 1 {
			t.Errorf("the call has ended %d times", n)
		}
		checkBalanced(t, e)
	}
}

// The charge of calls in transit counts against the bounds all the time: other calls do not get their room,
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
		checkOutcome(t, held[0], slipstream.MaybeExecuted)
		awaitInTransit(t, e, 3)
		if got := e.Snapshot().HeldBytes; got != want || e.Outstanding() != 3 {
			t.Errorf("%d bytes and %d calls are held, want %d and 3", got, e.Outstanding(), want)
		}
		k.setDown(false)
		k.arrived(1)
		fits := k.start(t.Context(), e, "r4")
		c := k.newCall(e, "r5")
		if err := e.Start(t.Context(), c); !errors.Is(err, ErrOverloaded) {
			t.Errorf("a fifth call with room for four: %v", err)
		}
		c.Release()
		k.serveInOrder("r1", "r2", "r3", "r4")
		for _, c := range append(cs, fits...) {
			k.finish(c)
		}
		checkBalanced(t, e)
		e.Close()
	}
}

// Calls for which another connection has no room wait for room there, or for their own connection.
func TestTransitWaitsForRoom(t *testing.T) {
	k := startHolding(t, "", false)
	e := connectAll(t, k.toyServer, 2, func(c *Config) {
		oneAtATime(c)
		c.MaxCalls = 8 // four calls for each connection
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
	pins[0].Retire() // one is in flight and three move, two of them immediately
	for i, want := range []int64{2, 4} {
		if got := pins[i].s.charged.Load() >> chargeBits; got != want {
			t.Errorf("connection %d has %d calls, want %d", i, got, want)
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
	checkBalanced(t, e)
}

// A lone caller finds that its idle connection was closed: the call is sent on the next one.
func TestLoneCallMoves(t *testing.T) {
	systemSockets(t, func(t *testing.T, network string, tickets bool) {
		s := startToy(t, &toyServer{network: network, tickets: tickets})
		e := s.engine(func(c *Config) { soloSoon(c); c.Timeout = 10 * time.Second })
		for _, start := range []bool{false, true} {
			old := freeRole(t, s, e)
			s.closeConns()
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
		checkBalanced(t, e)
	})
}
