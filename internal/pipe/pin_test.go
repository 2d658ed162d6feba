package pipe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// pinned makes a call on the pin's connection.
func pinned(ctx context.Context, e *Engine, tickets bool, p Pin, body string) (string, error) {
	c := e.Acquire()
	defer c.Release()
	if tickets {
		c.Frame = appendToyTicket(c.Frame[:0], body)
	} else {
		c.Frame = appendToy(c.Frame[:0], body)
	}
	c.Pin = p
	if err := e.Do(ctx, c); err != nil {
		return "", err
	}
	return toyScanner{tickets: tickets}.body(c.Reply()), nil
}

// Pinned calls are sent on their connection even if there are others, and on none after it has ended.
func TestPin(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		s := startToy(t, &toyServer{network: network, tickets: tickets, handle: func(r toyRequest) {
			r.reply(fmt.Sprintf("r%p", r.peer))
		}})
		e := s.engine(func(c *Config) { c.Sockets = 4 })
		testkit.Eventually(t, 5*time.Second, func() error {
			if n := e.Snapshot().Connected; n != 4 {
				return fmt.Errorf("%d connections", n)
			}
			return nil
		})
		ctx := t.Context()
		pins := map[string]Pin{}
		testkit.Eventually(t, 5*time.Second, func() error {
			p, err := e.Pin(ctx)
			if err != nil {
				return err
			}
			first, err := pinned(ctx, e, tickets, p, "rx")
			if err != nil {
				return err
			}
			for range 20 {
				if again, err := pinned(ctx, e, tickets, p, "rx"); again != first || err != nil {
					t.Fatalf("%q after %q, %v", again, first, err)
				}
			}
			if pins[first] = p; len(pins) < 4 {
				return fmt.Errorf("%d of 4 connections were pinned", len(pins))
			}
			return nil
		})
		s.last().reset()
		testkit.Eventually(t, 5*time.Second, func() error {
			for _, p := range pins {
				if !p.Alive() {
					if _, err := pinned(ctx, e, tickets, p, "rx"); !errors.Is(err, ErrPinLost) || slipstream.OutcomeOf(err) != slipstream.NotSent {
						t.Fatalf("call pinned to a connection that ended: %v", err)
					}
					return nil
				}
			}
			return errors.New("all connections are alive")
		})
	})
}

// A retired connection accepts no new calls, ends after those in flight, and is replaced. Calls without a pin
// wait for the new one.
func TestRetire(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		var mu sync.Mutex
		var held []toyRequest
		s := startToy(t, &toyServer{network: network, tickets: tickets, handle: func(r toyRequest) {
			if r.body == "rhold" {
				mu.Lock()
				held = append(held, r)
				mu.Unlock()
				return
			}
			r.reply(r.body)
		}})
		e := s.engine(nil)
		ctx := t.Context()
		for _, busy := range []bool{true, false} {
			p, err := e.Pin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			if busy {
				go func() { _, err := pinned(ctx, e, tickets, Pin{}, "rhold"); ended <- err }()
				testkit.Eventually(t, 5*time.Second, func() error {
					mu.Lock()
					defer mu.Unlock()
					if len(held) == 0 {
						return errors.New("the server holds no request")
					}
					return nil
				})
			} else {
				ended <- nil
			}
			p.Retire()
			if _, err := pinned(ctx, e, tickets, p, "rx"); !errors.Is(err, ErrPinLost) {
				t.Errorf("busy %t: call pinned to a retired connection: %v", busy, err)
			}
			waits := make(chan error, 1)
			go func() { _, err := pinned(ctx, e, tickets, Pin{}, "rlater"); waits <- err }()
			mu.Lock()
			for _, r := range held {
				r.reply("rheld")
			}
			held = nil
			mu.Unlock()
			if err := errors.Join(<-ended, <-waits); err != nil {
				t.Errorf("busy %t: %v", busy, err)
			}
			if p.Alive() {
				t.Errorf("busy %t: the retired connection is alive", busy)
			}
		}
		checkBalanced(t, e)
	})
}

// holder is a server that does not answer requests for "rhold" until release.
type holder struct {
	mu   sync.Mutex
	held []toyRequest
}

func (h *holder) handle(r toyRequest) {
	if r.body != "rhold" {
		r.reply(r.body)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = append(h.held, r)
}

// wait returns when n requests are held.
func (h *holder) wait(t *testing.T, n int) {
	t.Helper()
	testkit.Eventually(t, 10*time.Second, func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.held) != n {
			return fmt.Errorf("the server holds %d requests, want %d", len(h.held), n)
		}
		return nil
	})
}

// release answers the oldest n held requests.
func (h *holder) release(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.held[:n] {
		r.reply(r.body)
	}
	h.held = h.held[n:]
}

// hold starts n calls that the server holds, and retires the connection of each.
func (h *holder) hold(t *testing.T, s *toyServer, e *Engine, n int) (cs []*Call) {
	t.Helper()
	for i := range n {
		c := s.newCall(e, "rhold")
		if err := e.Start(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		cs = append(cs, c)
		h.wait(t, i+1)
		p, err := e.Pin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.Retire()
	}
	return cs
}

// With FailFast, a call does not wait for the end of a retired connection that keeps its place because too many others
// before it still have calls.
func TestFailFastBesideARetiredConnection(t *testing.T) {
	h := &holder{}
	s := startToy(t, &toyServer{network: "tcp", handle: h.handle})
	e := s.engine(func(c *Config) { c.FailFast = true })
	var cs []*Call
	for i := range maxRetired + 1 {
		var pin Pin
		testkit.Eventually(t, 5*time.Second, func() (err error) { // the next connection is being dialed
			pin, err = e.PinNow()
			return err
		})
		c := s.newCall(e, "rhold")
		if err := e.Start(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		cs = append(cs, c)
		h.wait(t, i+1)
		pin.Retire()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	late := s.newCall(e, "rlate")
	if err := e.Do(ctx, late); !errors.Is(err, ErrRetired) || slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("a call beside a retired connection: %v, want %v and NotSent", err, ErrRetired)
	}
	late.Release()
	h.release(maxRetired + 1)
	for _, c := range cs {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
		c.Release()
	}
	checkBalanced(t, e)
}

// A slow call on a retired connection is awaited, and does not delay the next connection.
func TestRetiredConnectionDoesNotDelayTheNext(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		h := &holder{}
		s := startToy(t, &toyServer{network: network, tickets: tickets, handle: h.handle})
		e := s.engine(nil)
		cs := h.hold(t, s, e, maxRetired)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := s.echo(ctx, e, "rnext"); err != nil {
			t.Errorf("call while others are slow: %v", err)
		}
		if v := e.Snapshot(); v.Outstanding != maxRetired || v.Sockets != 1 || v.Leaving != maxRetired || v.Connected != 1+maxRetired || v.Reconnects != 0 {
			t.Errorf("%d calls outstanding; %d sockets, %d leaving, %d connected, %d ended", v.Outstanding, v.Sockets, v.Leaving, v.Connected, v.Reconnects)
		}
		h.release(maxRetired)
		for _, c := range cs {
			if err := c.Wait(); err != nil || s.replyOf(c) != "rhold" {
				t.Errorf("a slow call: %v", err)
			}
			c.Release()
		}
		testkit.Eventually(t, 10*time.Second, func() error {
			if v := e.Snapshot(); v.Leaving != 0 || v.Connected != 1 || v.Reconnects != maxRetired {
				return fmt.Errorf("%d leaving, %d connected, %d ended", v.Leaving, v.Connected, v.Reconnects)
			}
			return nil
		})
		checkBalanced(t, e)
	})
}

// A server that retires each of its connections does not get more and more of them: the next one is dialed when
// the calls of a retired connection have ended.
func TestRetiredConnectionsAreBounded(t *testing.T) {
	h := &holder{}
	s := startToy(t, &toyServer{network: "tcp", handle: h.handle})
	e := s.engine(nil)
	cs := h.hold(t, s, e, maxRetired+1)
	later := s.newCall(e, "rlater")
	started := make(chan error, 1)
	go func() { started <- e.Do(t.Context(), later) }()
	for range 20 { // rounds of the sweeper, which calls retire again
		e.wakeSweeper(true)
		time.Sleep(time.Millisecond)
	}
	s.mu.Lock()
	dials := s.dials
	s.mu.Unlock()
	if v := e.Snapshot(); dials != maxRetired+1 || v.Leaving != maxRetired {
		t.Errorf("%d connections were dialed, %d are leaving", dials, v.Leaving)
	}
	h.release(1)
	if err := <-started; err != nil {
		t.Error(err)
	}
	h.release(maxRetired)
	for _, c := range cs {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
		c.Release()
	}
	later.Release()
	checkBalanced(t, e)
}

// Messages before a reply are passed to the call they belong to, in order and before its end. Those of a call
// that was given up are dropped.
func TestInterim(t *testing.T) {
	for _, network := range []string{"", "tcp"} {
		s := startToy(t, &toyServer{network: network, tickets: true, handle: func(r toyRequest) {
			for i := range 3 {
				r.peer.send(r.frame(fmt.Sprintf("i%s %d", r.body[1:], i)))
			}
			if r.body != "rnever" {
				r.reply(r.body)
			}
		}})
		e := s.engine(nil)
		var wg sync.WaitGroup
		for g := range 16 {
			wg.Go(func() {
				for i := range 50 {
					name := fmt.Sprintf("%d-%d", g, i)
					var got []string
					c := e.Acquire()
					c.Frame = appendToyTicket(c.Frame[:0], "r"+name)
					c.OnInterim(func(f []byte) { got = append(got, toyScanner{tickets: true}.body(f)) })
					err := e.Do(t.Context(), c)
					if want := fmt.Sprintf("[i%s 0 i%s 1 i%s 2]", name, name, name); err != nil || fmt.Sprint(got) != want {
						t.Errorf("%v, %v; want %s", got, err, want)
					}
					c.Release()
				}
			})
		}
		wg.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		c := e.Acquire()
		c.Frame = appendToyTicket(c.Frame[:0], "rnever")
		if err := e.Do(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		cancel()
		c.Release()
		if err := s.echo(t.Context(), e, "rafter"); err != nil {
			t.Error(err)
		}
	}
}

// With AlwaysRead no caller takes the reader's role, so that pushes are handled immediately.
func TestAlwaysRead(t *testing.T) {
	systemSockets(t, func(t *testing.T, network string, tickets bool) {
		s := startToy(t, &toyServer{network: network, tickets: tickets})
		pushes := make(chan string, 8)
		e := s.engine(func(c *Config) {
			soloSoon(c)
			c.Traits.AlwaysRead = true
			c.OnPush = func(_ Pin, f []byte) { pushes <- toyScanner{tickets: tickets}.body(f) }
		})
		for range 50 {
			if err := s.echo(t.Context(), e, "ralone"); err != nil {
				t.Fatal(err)
			}
		}
		s.last().send(toyRequest{peer: s.last()}.frame("phello"))
		if got := <-pushes; got != "phello" {
			t.Errorf("%q", got)
		}
		if n := e.Snapshot().SoloReplies; n > 0 {
			t.Errorf("callers read %d replies, want 0", n)
		}
	})
}
