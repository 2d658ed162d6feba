package pipe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// events collects the events passed to OnEvent.
type events struct {
	mu  sync.Mutex
	all []slipstream.Event
}

func (v *events) add(e slipstream.Event) {
	v.mu.Lock()
	v.all = append(v.all, e)
	v.mu.Unlock()
	panic("the user's code") // the engine recovers from this
}

func (v *events) kinds() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var kinds []string
	for _, e := range v.all {
		kinds = append(kinds, e.Kind.String())
	}
	return strings.Join(kinds, ", ")
}

// The engine reconnects after pauses that double up to MaxBackoff, and reports each event.
func TestReconnectsWithBackoff(t *testing.T) {
	testkit.NoLeaks(t)
	s := startToy(t, &toyServer{})
	var seen events
	e := s.engine(func(c *Config) {
		c.OnEvent = seen.add
		c.Backoff, c.MaxBackoff = 4*time.Millisecond, 16*time.Millisecond
	})
	if err := s.echo(t.Context(), e, "rx"); err != nil {
		t.Fatal(err)
	}
	s.setDown(true)
	s.closeConns()
	failed := func(n int) func() error {
		return func() error {
			if got := strings.Count(seen.kinds(), "dial failed"); got < n {
				return fmt.Errorf("%d failed attempts so far: %s", got, seen.kinds())
			}
			return nil
		}
	}
	testkit.Eventually(t, 5*time.Second, failed(5))
	s.setDown(false)
	if err := s.echo(t.Context(), e, "rx"); err != nil {
		t.Fatal(err)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if seen.all[0].Kind != slipstream.Connected || seen.all[1].Kind != slipstream.Disconnected || seen.all[1].Err == nil || seen.all[1].Stalled {
		t.Errorf("the first events are %+v", seen.all[:2])
	}
	pause, last := 4*time.Millisecond, time.Time{}
	for i, ev := range seen.all[2:] {
		if ev.Kind != slipstream.DialFailed {
			break
		}
		pause = min(2*pause, 16*time.Millisecond) // the short life of the first socket counts as the first failure
		if ev.Backoff < pause/2 || ev.Backoff > pause || !errors.Is(ev.Err, errRefused) || ev.Addr != "toy" {
			t.Errorf("attempt %d: %+v, want a pause of %v to %v", i, ev, pause/2, pause)
		}
		if !last.IsZero() && ev.At.Sub(last) < pause/4 {
			t.Errorf("attempt %d came after %v", i, ev.At.Sub(last))
		}
		last = ev.At
	}
	if v := e.Snapshot(); v.Reconnects != 1 || v.Connected != 1 {
		t.Errorf("snapshot: %+v", v)
	}
}

// badProtocol has greetings with the errors that a server or a driver can make.
type badProtocol struct {
	toyFIFO
	greet func(ctx context.Context, c net.Conn) ([]byte, error)
	scan  func([]byte) (Frame, error)
}

func (p badProtocol) Greet(ctx context.Context, c net.Conn) ([]byte, error) {
	if p.greet == nil {
		return p.toyFIFO.Greet(ctx, c)
	}
	return p.greet(ctx, c)
}

func (p badProtocol) NewScanner() Scanner {
	if p.scan == nil {
		return toyScanner{}
	}
	return badScanner{p.scan}
}

type badScanner struct{ scan func([]byte) (Frame, error) }

func (s badScanner) Scan(b []byte) (Frame, error) { return s.scan(b) }

// If the greeting or the dial fails, hangs or panics, Connect and calls fail as not sent, and Close does not wait.
func TestGreetingsThatFail(t *testing.T) {
	testkit.NoLeaks(t)
	for name, c := range map[string]struct {
		p    Protocol
		dial func(ctx context.Context) (net.Conn, error)
		want string
	}{
		"hangs": {p: badProtocol{greet: func(_ context.Context, c net.Conn) ([]byte, error) {
			_, err := c.Read(make([]byte, 1))
			return nil, err
		}}, want: "greeting: "},
		"garbage":       {p: badProtocol{greet: func(_ context.Context, c net.Conn) ([]byte, error) { return nil, errors.New("garbage") }}, want: "greeting: garbage"},
		"panics":        {p: badProtocol{greet: func(context.Context, net.Conn) ([]byte, error) { panic("oh") }}, want: "panic: oh"},
		"early reply":   {p: badProtocol{greet: func(context.Context, net.Conn) ([]byte, error) { return appendToy(nil, "rtoo early"), nil }}, want: ErrUnsolicited.Error()},
		"early garbage": {p: badProtocol{greet: func(context.Context, net.Conn) ([]byte, error) { return make([]byte, 4), nil }}, want: "empty message"},
		"dial panics":   {p: toyFIFO{}, dial: func(context.Context) (net.Conn, error) { panic("oh") }, want: "panic: oh"},
		"dial hangs":    {p: toyFIFO{}, dial: hangingDial, want: context.DeadlineExceeded.Error()},
		"no scanner":    {p: scannerless{}, want: "panic: no scanner"},
		"server closes": {p: badProtocol{greet: func(ctx context.Context, c net.Conn) ([]byte, error) { c.Close(); return toyFIFO{}.Greet(ctx, c) }}, want: "greeting: "},
		"never returns": {p: badProtocol{greet: func(ctx context.Context, _ net.Conn) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }}, want: "greeting: "},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.NoLeaks(t)
			s := startToy(t, &toyServer{})
			e := s.unconnected(func(cfg *Config) {
				cfg.Protocol, cfg.DialTimeout, cfg.FailFast = c.p, 30*time.Millisecond, true
				if c.dial != nil {
					cfg.Dial = c.dial
				}
			})
			err := e.Connect(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) || slipstream.OutcomeOf(err) != slipstream.NotSent {
				t.Errorf("Connect: %v, want an error with %q, not sent", err, c.want)
			}
			if err := s.echo(t.Context(), e, "rx"); slipstream.OutcomeOf(err) != slipstream.NotSent {
				t.Errorf("call: %v", err)
			}
			began := time.Now()
			if e.Close(); time.Since(began) > time.Second {
				t.Errorf("Close took %v", time.Since(began))
			}
		})
	}
}

type scannerless struct{ toyFIFO }

func (scannerless) NewScanner() Scanner { panic("no scanner") }

// A part of a message that arrives with the greeting is read to its end: a push is valid, a reply is not.
func TestPartBehindTheGreeting(t *testing.T) {
	testkit.NoLeaks(t)
	for _, kind := range []string{"p", "r"} {
		early := appendToy(nil, kind+"early")
		pushes := make(chan string, 8)
		s := startToy(t, &toyServer{handle: func(r toyRequest) {
			r.peer.send(append(early[3:], r.frame(r.body)...))
		}})
		e := s.engine(func(c *Config) {
			c.OnPush = func(_ Pin, f []byte) { pushes <- string(f[4:]) }
			c.Protocol = badProtocol{greet: func(ctx context.Context, c net.Conn) ([]byte, error) {
				_, err := toyFIFO{}.Greet(ctx, c)
				return early[:3], err
			}}
		})
		err := s.echo(t.Context(), e, "rx")
		if kind == "p" && (err != nil || <-pushes != "pearly") {
			t.Errorf("a push in two parts: %v", err)
		}
		if kind == "r" && !errors.Is(err, ErrUnsolicited) {
			t.Errorf("a reply that started before its request: %v", err)
		}
	}
}

// Close ends calls and Connect while the engine dials, and may be called twice.
func TestCloseWhileDialing(t *testing.T) {
	testkit.NoLeaks(t)
	s := startToy(t, &toyServer{})
	e := s.unconnected(func(c *Config) { c.Dial = hangingDial })
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := s.echo(context.Background(), e, "rx"); slipstream.OutcomeOf(err) != slipstream.Closed {
				t.Errorf("the waiting call: %v", err)
			}
		})
	}
	wg.Go(func() {
		if err := e.Connect(context.Background()); slipstream.OutcomeOf(err) != slipstream.Closed || !errors.Is(err, ErrClosed) {
			t.Errorf("Connect: %v", err)
		}
	})
	time.Sleep(5 * time.Millisecond)
	e.Close()
	wg.Wait()
	if err := s.echo(t.Context(), e, "rx"); slipstream.OutcomeOf(err) != slipstream.Closed {
		t.Errorf("call after Close: %v", err)
	}
	e.Close() // a second time
}

// When Close or Shutdown returns, every call has ended. Shutdown fails no call.
func TestCloseAndShutdownUnderLoad(t *testing.T) {
	testkit.NoLeaks(t)
	for _, network := range []string{"", "unix", "tcp"} {
		for _, tickets := range []bool{false, true} {
			for _, gently := range []bool{false, true} {
				closeUnderLoad(t, &toyServer{network: network, tickets: tickets}, gently)
			}
		}
	}
}

func closeUnderLoad(t *testing.T, s *toyServer, gently bool) {
	startToy(t, s)
	e := s.engine(nil)
	var wg sync.WaitGroup
	var ends, answered atomic.Int64
	begun := int64(0)
	for g := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				if err := s.echo(context.Background(), e, fmt.Sprintf("r%d/%d", g, i)); err != nil {
					if gently && slipstream.OutcomeOf(err) != slipstream.Closed {
						t.Errorf("call cut off by Shutdown: %v", err)
					}
					return
				}
				answered.Add(1)
			}
		})
	}
	wg.Go(func() {
		for {
			c := s.newCall(e, "rdone")
			if err := e.StartFunc(context.Background(), c, completerFunc(func(c *Call) { ends.Add(1); c.Release() })); err != nil {
				c.Release()
				return
			}
			begun++
			if begun%16 == 0 {
				time.Sleep(100 * time.Microsecond)
			}
		}
	})
	for answered.Load() < 100 {
		time.Sleep(time.Millisecond)
	}
	if gently {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := e.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	} else {
		e.Close()
	}
	ended := ends.Load()
	wg.Wait()
	if ended != begun || ends.Load() != begun {
		t.Errorf("%d of %d completers were called when Close returned, %d later", ended, begun, ends.Load())
	}
	if v := e.Snapshot(); gently && v.Failed != 0 {
		t.Errorf("%d calls failed, want 0", v.Failed)
	}
	checkBalanced(t, e)
}

// A shutdown waits for calls that a caller awaits, but not for tombstones.
func TestShutdownWaitsForNoTombstone(t *testing.T) {
	testkit.NoLeaks(t)
	for _, tickets := range []bool{false, true} {
		s := startToy(t, &toyServer{tickets: tickets, handle: func(toyRequest) {}})
		e := s.engine(nil)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if err := s.echo(ctx, e, "rx"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		cancel()
		began := time.Now()
		if err := e.Shutdown(t.Context()); err != nil || time.Since(began) > time.Second {
			t.Errorf("Shutdown took %v: %v", time.Since(began), err)
		}
		e = s.engine(nil)
		c := s.newCall(e, "ry")
		if err := e.Start(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
		if err := e.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown did not wait: %v", err)
		}
		cancel()
		if err := c.Wait(); err == nil {
			t.Error("a call without a reply succeeded")
		}
		c.Release()
	}
}
