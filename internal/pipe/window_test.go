package pipe

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// windowNow returns the window of the engine's only socket, which depends on the round trip.
func windowNow(e *Engine) int {
	s := socketAt(e, 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pace.window
}

// backlogServer holds requests until the test calls answer.
type backlogServer struct {
	mu      sync.Mutex
	backlog []toyRequest
	most    int
}

func (p *backlogServer) handle(r toyRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.body == "r!ping" {
		r.reply(r.body)
		return
	}
	p.backlog = append(p.backlog, r)
	p.most = max(p.most, len(p.backlog))
}

// answer answers the i-th of n held requests, for i chosen by pick. It reports false if there are none.
func (p *backlogServer) answer(pick func(n int) int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.backlog) == 0 {
		return false
	}
	i := pick(len(p.backlog))
	r := p.backlog[i]
	p.backlog = append(p.backlog[:i], p.backlog[i+1:]...)
	r.reply(r.body)
	return true
}

func (p *backlogServer) held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.backlog)
}

// However many calls there are, and in whatever order the server answers them, it never has more
// calls than the window, and all calls are answered.
func TestWindowBoundsWhatTheServerHas(t *testing.T) {
	r := testkit.Rand(t)
	t.Run("by ticket", func(t *testing.T) { boundByWindow(t, true, r.IntN) })
	t.Run("in order", func(t *testing.T) { boundByWindow(t, false, func(int) int { return 0 }) })
}

func boundByWindow(t *testing.T, tickets bool, pick func(n int) int) {
	var backlog backlogServer
	s := startToy(t, &toyServer{tickets: tickets, handle: backlog.handle})
	e := s.engine(func(c *Config) { c.Traits.Depth, c.WaitWhenFull, c.MaxCalls = 8, true, 100 })
	widest := windowNow(e)
	var callers sync.WaitGroup
	for i := range 60 {
		callers.Go(func() {
			for n := range 20 {
				if i%3 == 0 && n%5 == 0 {
					cs := make([]*Call, 30) // more than the window
					for k := range cs {
						cs[k] = s.newCall(e, fmt.Sprintf("r%d-%d-%d", i, n, k))
					}
					if err := e.DoAll(t.Context(), cs); err != nil {
						t.Error(err)
					}
					for k, c := range cs {
						if c.Err() == nil && s.replyOf(c) != fmt.Sprintf("r%d-%d-%d", i, n, k) {
							t.Errorf("call %d got %q", k, s.replyOf(c))
						}
						c.Release()
					}
				}
				if err := s.echo(t.Context(), e, fmt.Sprintf("r%d-%d", i, n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { callers.Wait(); close(done) }()
	for ended := false; !ended; {
		widest = max(widest, windowNow(e))
		if !backlog.answer(pick) {
			select {
			case <-done:
				ended = true
			case <-time.After(100 * time.Microsecond):
			}
		}
	}
	if backlog.most > widest || backlog.most < 8 {
		t.Errorf("the server had %d requests at the same time, the window was %d", backlog.most, widest)
	}
	checkBalanced(t, e)
}

// A window that is full of slow calls is not a stall, and the calls that wait for room in it are known not to
// have been sent.
func TestFullWindow(t *testing.T) {
	const stall = 100 * time.Millisecond
	var backlog backlogServer
	s := startToy(t, &toyServer{tickets: true, handle: backlog.handle})
	// FailFast is set so that calls do not move.
	e := s.engine(func(c *Config) { c.Traits.Depth, c.StallTimeout, c.FailFast = 1, stall, true })
	window := windowNow(e)
	errs := make(chan error)
	call := func(i int) { errs <- s.echo(t.Context(), e, fmt.Sprint("r", i)) }
	for i := range window {
		go call(i)
	}
	testkit.Eventually(t, 5*time.Second, func() error {
		if backlog.held() < window {
			return errors.New("not sent yet")
		}
		return nil
	})
	const waiting = 5
	for i := range waiting {
		go call(window + i)
	}
	testkit.Eventually(t, 5*time.Second, func() error {
		if e.Snapshot().Queued < waiting {
			return errors.New("not queued yet")
		}
		return nil
	})
	time.Sleep(5 * stall)
	testkit.Eventually(t, 30*time.Second, func() error {
		if e.Snapshot().Pings == 0 {
			return errors.New("not pinged yet")
		}
		return nil
	})
	if n := backlog.held(); n != window || windowNow(e) != window {
		t.Fatalf("the server has %d requests, want %d", n, window)
	}
	if n := e.Snapshot(); n.Stalls > 0 {
		t.Errorf("%d stalls, %d pings", n.Stalls, n.Pings)
	}
	s.last().reset()
	outcomes := map[slipstream.Outcome]int{}
	for range window + waiting {
		outcomes[slipstream.OutcomeOf(<-errs)]++
	}
	if outcomes[slipstream.MaybeExecuted] != window || outcomes[slipstream.NotSent] != waiting {
		t.Errorf("%v, want %d calls that may have been executed and %d unsent", outcomes, window, waiting)
	}
	checkBalanced(t, e)
}

// The driver changes the depth of a connection in use: a greater depth sends queued calls, and a new connection
// starts with the depth of the traits, whatever its round trip.
func TestDepthChangesWhileRunning(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		k := startHolding(t, network, tickets)
		e := k.engine(func(c *Config) { c.Traits.FirstDepth, c.FlushFactor = 1, 256 })
		setRoundTrip(e, time.Second) // with such a round trip, the window would be 256 times Depth
		cs := k.start(t.Context(), e, "r1", "r2", "r3", "r4", "r5")
		k.arrived(1)
		pin, err := e.PinNow()
		if err != nil {
			t.Fatal(err)
		}
		pin.SetDepth(3)
		k.arrived(3)
		if v := e.Snapshot(); v.Queued != 2 || v.Outstanding != 3 {
			t.Errorf("%d calls are queued and %d in flight, want 2 and 3", v.Queued, v.Outstanding)
		}
		pin.SetDepth(1)
		k.answer()
		k.arrived(1)
		if v := e.Snapshot(); v.Outstanding != 1 {
			t.Errorf("%d calls are in flight, want 1", v.Outstanding)
		}
		pin.SetDepth(0) // Traits.Depth is 0, so there is no bound
		k.arrived(2)
		k.answer()
		for _, c := range cs {
			k.finish(c)
		}
		checkBalanced(t, e)
		e.Close()
	})
}
