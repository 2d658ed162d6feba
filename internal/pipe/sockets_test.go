package pipe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// socketAt returns the socket of a place, or nil if there is none.
func socketAt[T int | uint32](e *Engine, place T) *socket { return e.list.Load().sockets[place] }

// awaitSockets waits until n sockets are up and no others are left.
func awaitSockets(t *testing.T, e *Engine, n int) {
	t.Helper()
	testkit.Eventually(t, 5*time.Second, func() error {
		if v := e.Snapshot(); v.Sockets != n || v.Connected != n || v.Leaving != 0 {
			return fmt.Errorf("%d of %d connections are up, %d are leaving, want %d", v.Connected, v.Sockets, v.Leaving, n)
		}
		return nil
	})
}

func setSockets(t *testing.T, e *Engine, n int) {
	t.Helper()
	if err := e.SetSockets(n); err != nil {
		t.Fatal(err)
	}
}

// New connections get calls as soon as they are up, the existing ones get calls meanwhile, and idle ones beyond
// the new number end immediately. Nothing of them is left.
func TestSocketsComeAndGo(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		k := startHolding(t, network, tickets)
		dial := make(chan struct{}, 3)
		var seen events
		e := k.engine(func(c *Config) {
			c.Traits.Place, c.OnEvent = LeastOutstanding, seen.add
			first, old := true, c.Dial
			c.Dial = func(ctx context.Context) (net.Conn, error) {
				if !first {
					select {
					case <-dial:
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}
				first = false
				return old(ctx)
			}
		})
		cs := k.start(t.Context(), e, "r0")
		k.arrived(1)
		setSockets(t, e, 2)
		cs = append(cs, k.start(t.Context(), e, "r1")...)
		if up, of := e.Up(); up != 1 || of != 2 {
			t.Errorf("%d of %d connections are up", up, of)
		}
		dial <- struct{}{}
		awaitSockets(t, e, 2)
		cs = append(cs, k.start(t.Context(), e, "r2", "r3")...)
		for place := range 2 {
			if n := socketAt(e, place).charged.Load() >> chargeBits; n != 2 {
				t.Errorf("connection %d has %d calls, want 4", place, n)
			}
		}
		k.arrived(4)
		k.answer()
		for _, c := range cs {
			k.finish(c)
		}
		setSockets(t, e, 1)
		awaitSockets(t, e, 1)
		for range 3 {
			c := k.start(t.Context(), e, "rx")
			k.arrived(1)
			k.answer()
			k.finish(c[0])
		}
		checkBalanced(t, e)
		if v := e.Snapshot(); v.Reconnects != 1 || v.Replies != 7 || v.Failed != 0 {
			t.Errorf("%d connections have ended, %d of 7 calls have a reply", v.Reconnects, v.Replies)
		}
		testkit.Eventually(t, 5*time.Second, func() error {
			if got := seen.kinds(); got != "connected, connected, disconnected" {
				return fmt.Errorf("events: %s", got)
			}
			return nil
		})
		seen.mu.Lock()
		defer seen.mu.Unlock()
		if err := seen.all[2].Err; !errors.Is(err, ErrSurplus) {
			t.Errorf("the connection ended with %v", err)
		}
	})
}

// SetSockets refuses counts out of range, and fails after Close.
func TestSocketCountIsChecked(t *testing.T) {
	e := startToy(t, &toyServer{}).engine(nil)
	for _, n := range []int{-1, 0, MaxSockets + 1} {
		if err := e.SetSockets(n); !errors.Is(err, ErrSocketCount) || !strings.Contains(err.Error(), fmt.Sprint(n)) {
			t.Errorf("%d sockets: %v", n, err)
		}
	}
	e.Close()
	if err := e.SetSockets(2); slipstream.OutcomeOf(err) != slipstream.Closed {
		t.Errorf("SetSockets after Close: %v", err)
	}
}

// A surplus connection is awaited: the requests that were sent on it get their replies, and the unsent ones,
// and only these, move to others, ahead of later calls of the same caller.
func TestSurplusConnectionIsAwaited(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		k := startHolding(t, network, tickets)
		e := connectAll(t, k.toyServer, 3, oneAtATime)
		held := k.start(t.Context(), e, "rheld")
		hold := k.takeOne()
		cs := k.start(t.Context(), e, "r1", "r2")
		at := e.current.Load()
		pin := Pin{socketAt(e, at)}
		pinned := k.newCall(e, "rpinned")
		pinned.Pin = pin
		if err := e.Start(t.Context(), pinned); err != nil {
			t.Fatal(err)
		}
		pin.s.life.muted.Store(true) // which makes it the least healthy one
		setSockets(t, e, 1)
		cs = append(cs, k.start(t.Context(), e, "r3")...)
		k.serveInOrder("r1", "r2", "r3")
		for _, c := range cs {
			k.finish(c)
		}
		checkMoved(t, e, 2)
		late := k.newCall(e, "rlate")
		late.Pin = pin
		if err := e.Start(t.Context(), late); !errors.Is(err, ErrPinLost) {
			t.Errorf("call pinned to the surplus connection: %v", err)
		}
		late.Release()
		testkit.Eventually(t, 5*time.Second, func() error {
			if v := e.Snapshot(); v.Leaving != 1 || v.Connected != 2 {
				return fmt.Errorf("%d connections are leaving, %d are up", v.Leaving, v.Connected)
			}
			return nil
		})
		if held[0].ending.reached() {
			t.Error("the call in flight has ended")
		}
		hold.reply("rheld")
		k.finish(held[0])
		k.serveInOrder("rpinned")
		k.finish(pinned)
		awaitSockets(t, e, 1)
		checkBalanced(t, e)
		e.Close()
	})
}

// The connections that remain are those that are up, accept calls, and received data last.
func TestHealthiestAreKept(t *testing.T) {
	s := startToy(t, &toyServer{})
	e := s.unconnected(func(c *Config) { c.Dial = hangingDial })
	const (
		busy, idle, quiet, silent, muted, retired, failed, down, refused = 0, 1, 2, 3, 4, 5, 6, 7, 8
	)
	l := &list{places: 9}
	for i := range l.places {
		p := &peer{engine: e}
		conn, other := net.Pipe()
		defer conn.Close()
		defer other.Close()
		x := newSocket(e, conn, nil, time.Millisecond)
		switch i {
		case busy:
			x.charged.Store(3 * oneCall)
		case quiet:
			x.silence.Store(1)
		case silent:
			x.silence.Store(2)
			x.charged.Store(5 * oneCall)
		case muted:
			x.life.muted.Store(true)
		case retired:
			x.life.retiring.Store(true)
		case failed:
			close(x.life.done)
		case down:
			x = nil
		case refused:
			x, p.dialErr = nil, errRefused
		}
		l.peers, l.sockets = append(l.peers, p), append(l.sockets, x)
	}
	order := []int{busy, idle, quiet, silent, muted, failed, down, refused, retired}
	for n := 1; n <= l.places; n++ {
		kept, left := l.healthiest(n)
		want := slices.Sorted(slices.Values(order[:n]))
		if !slices.Equal(kept, want) || len(left) != l.places-n || !slices.IsSorted(left) {
			t.Errorf("of %v, %v are kept and %v leave, want %v kept", order, kept, left, want)
		}
	}
}

// Silence is measured while the server owes replies, and ends with the next one.
func TestSilenceIsMeasured(t *testing.T) {
	k := startHolding(t, "", false)
	e := k.engine(func(c *Config) { c.StallTimeout = 20 * time.Millisecond; c.IdlePing = -1 })
	s := socketAt(e, 0)
	c := k.newCall(e, "rx")
	c.SlowFor = time.Minute
	if err := e.Start(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	is := func(silent bool) {
		t.Helper()
		testkit.Eventually(t, 5*time.Second, func() error {
			if d := time.Duration(s.silence.Load()); d > 0 != silent {
				return fmt.Errorf("silent for %v", d)
			}
			return nil
		})
	}
	is(true)
	k.answer()
	k.finish(c)
	is(false)
}

// The bounds are divided among all connections, including those that have not ended yet.
func TestBoundsAreShared(t *testing.T) {
	for _, tickets := range []bool{false, true} {
		k := startHolding(t, "", tickets)
		e := k.engine(func(c *Config) { c.MaxCalls, c.Traits.Place, c.Traits.Depth, c.FlushFactor = 8, LeastOutstanding, 8, 1 })
		window := func(want int) {
			t.Helper()
			testkit.Eventually(t, 5*time.Second, func() error {
				for _, s := range e.list.Load().sockets {
					s.mu.Lock()
					n, want := s.pace.window, want*factor(s.pace.trip.get())
					s.mu.Unlock()
					if n != want {
						return fmt.Errorf("a connection may have %d calls in flight, want %d", n, want)
					}
				}
				return nil
			})
		}
		refused := func() {
			t.Helper()
			c := k.newCall(e, "rtoo many")
			if err := e.Start(t.Context(), c); !errors.Is(err, ErrOverloaded) {
				t.Errorf("a call beyond the bounds: %v", err)
			}
			c.Release()
		}
		var cs []*Call
		start := func(n int) {
			t.Helper()
			for range n {
				cs = append(cs, k.start(t.Context(), e, "rx")...)
			}
		}
		answer := func() {
			for _, c := range cs {
				for !c.ending.reached() {
					k.answer()
					time.Sleep(100 * time.Microsecond)
				}
				k.finish(c)
			}
			cs = nil
		}
		window(8)
		start(3)
		setSockets(t, e, 2)
		awaitSockets(t, e, 2)
		window(4)
		start(5)
		refused()
		setSockets(t, e, 1)
		window(4)
		refused() // the surplus connection has not ended
		answer()
		awaitSockets(t, e, 1)
		window(8)
		start(8)
		refused()
		answer()
		checkBalanced(t, e)
		e.Close()
	}
}

// Calls that exceed the new share of every connection are accepted anyway when their connection leaves.
func TestCallsGreaterThanAShareMove(t *testing.T) {
	for _, tickets := range []bool{false, true} {
		k, e := movingWorld(t, "", tickets, func(c *Config) { c.MaxCalls = 8 })
		held := k.start(t.Context(), e, "rheld")
		hold := k.takeOne()
		var together []*Call
		for i := range 6 {
			together = append(together, k.newCall(e, fmt.Sprint("r", i)))
		}
		ended := make(chan error)
		go func() { ended <- e.DoAll(t.Context(), together) }() // ended by the answers below
		testkit.Eventually(t, 5*time.Second, func() error {
			if v := e.Snapshot(); v.Queued != 6 {
				return fmt.Errorf("%d calls are queued", v.Queued)
			}
			return nil
		})
		setSockets(t, e, 4)
		awaitSockets(t, e, 4)
		socketAt(e, 0).life.muted.Store(true) // which makes it the least healthy one
		setSockets(t, e, 3)
		k.serveInOrder("r0", "r1", "r2", "r3", "r4", "r5")
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, c := range together {
			c.Release()
		}
		checkMoved(t, e, 6)
		hold.reply("rheld")
		k.finish(held[0])
		awaitSockets(t, e, 3)
		checkBalanced(t, e)
		e.Close()
	}
}

// takeOne waits for the only request, and removes it from those that answer would answer.
func (k *holdingServer) takeOne() toyRequest {
	k.t.Helper()
	k.arrived(1)
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.seen[0]
	k.seen = nil
	return r
}

// A place that is given up while its connection is dialed never gets one.
func TestPlaceIsGivenUpWhileConnecting(t *testing.T) {
	for _, when := range []string{"dial", "greeting", "push"} {
		t.Run(when, func(t *testing.T) {
			testkit.NoLeaks(t)
			var seen events
			var e *Engine
			var dials atomic.Int32
			reached, released := make(chan struct{}), make(chan struct{})
			s := startToy(t, &toyServer{})
			// The callback of a push that arrives before the connection gets calls may pin it.
			early := s.newCall(nil, "rearly")
			hold := func(at string) bool {
				if at == when && dials.Load() > 1 {
					close(reached) // at the second connection; there is no third one
					<-released
					return true
				}
				return false
			}
			e = s.engine(func(c *Config) {
				c.OnEvent = seen.add
				dial := c.Dial
				c.Dial = func(ctx context.Context) (net.Conn, error) {
					if dials.Add(1); hold("dial") {
						return nil, ctx.Err()
					}
					return dial(ctx)
				}
				c.Protocol = badProtocol{greet: func(ctx context.Context, conn net.Conn) ([]byte, error) {
					rest, err := toyFIFO{}.Greet(ctx, conn)
					if hold("greeting"); dials.Load() > 1 {
						rest = appendToy(rest, "pearly")
					}
					return rest, err
				}}
				c.OnPush = func(from Pin, _ []byte) {
					early.engine, early.Pin = e, from
					if err := e.Start(t.Context(), early); err != nil {
						t.Error(err)
					}
					hold("push")
				}
			})
			setSockets(t, e, 2)
			<-reached
			setSockets(t, e, 1)
			close(released)
			awaitSockets(t, e, 1)
			if err := s.echo(t.Context(), e, "rx"); err != nil {
				t.Error(err)
			}
			if when == "push" {
				if err := early.Wait(); !errors.Is(err, ErrSurplus) {
					t.Errorf("call on the connection: %v", err)
				}
			}
			e.Close()
			if got := seen.kinds(); got != "connected, disconnected" || dials.Load() != 2 {
				t.Errorf("%d dials, events: %s", dials.Load(), got)
			}
		})
	}
}
