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

// windowNow returns the window of the engine's only socket, which follows the round trip.
func windowNow(e *Engine) int {
	s := socketAt(e, 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pace.window
}

// pileServer keeps requests until it is told to answer.
type pileServer struct {
	mu   sync.Mutex
	pile []toyRequest
	most int
}

func (p *pileServer) handle(r toyRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.body == "r!ping" {
		r.reply(r.body)
		return
	}
	p.pile = append(p.pile, r)
	p.most = max(p.most, len(p.pile))
}

// answer answers the i-th of n requests; false: there are none.
func (p *pileServer) answer(pick func(n int) int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pile) == 0 {
		return false
	}
	i := pick(len(p.pile))
	r := p.pile[i]
	p.pile = append(p.pile[:i], p.pile[i+1:]...)
	r.reply(r.body)
	return true
}

func (p *pileServer) held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pile)
}

// However many call, and in whatever order the answers come, the server has no more of them
// than the window says; and all are answered.
func TestWindowBoundsWhatTheServerHas(t *testing.T) {
	r := testkit.Rand(t)
	t.Run("by ticket", func(t *testing.T) { boundByWindow(t, true, r.IntN) })
	t.Run("in order", func(t *testing.T) { boundByWindow(t, false, func(int) int { return 0 }) })
}

func boundByWindow(t *testing.T, tickets bool, pick func(n int) int) {
	var pile pileServer
	s := startToy(t, &toyServer{tickets: tickets, handle: pile.handle})
	e := s.engine(func(c *Config) { c.Traits.Depth, c.WaitWhenFull, c.MaxCalls = 8, true, 100 })
	widest := windowNow(e)
	var callers sync.WaitGroup
	for i := range 60 {
		callers.Go(func() {
			for n := range 20 {
				if i%3 == 0 && n%5 == 0 {
					cs := make([]*Call, 30) // more than fit
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
				if err := s.ask(t.Context(), e, fmt.Sprintf("r%d-%d", i, n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { callers.Wait(); close(done) }()
	for ended := false; !ended; {
		widest = max(widest, windowNow(e))
		if !pile.answer(pick) {
			select {
			case <-done:
				ended = true
			case <-time.After(100 * time.Microsecond):
			}
		}
	}
	if pile.most > widest || pile.most < 8 {
		t.Errorf("the server had %d requests at a time, the window was %d", pile.most, widest)
	}
	balanced(t, e)
}

// A window that is full of slow calls does not make the server look dead, and what waits
// behind them is known not to have been sent.
func TestFullWindow(t *testing.T) {
	const stall = 100 * time.Millisecond
	var pile pileServer
	s := startToy(t, &toyServer{tickets: true, handle: pile.handle})
	e := s.engine(func(c *Config) { c.Traits.Depth, c.StallTimeout, c.FailFast = 1, stall, true }) // so that they do not move
	window := windowNow(e)
	errs := make(chan error)
	ask := func(i int) { errs <- s.ask(t.Context(), e, fmt.Sprint("r", i)) }
	for i := range window {
		go ask(i)
	}
	testkit.Eventually(t, 5*time.Second, func() error {
		if pile.held() < window {
			return errors.New("not sent yet")
		}
		return nil
	})
	const behind = 5
	for i := range behind {
		go ask(window + i)
	}
	testkit.Eventually(t, 5*time.Second, func() error {
		if e.Snapshot().Queued < behind {
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
	if n := pile.held(); n != window || windowNow(e) != window {
		t.Fatalf("the server has %d requests of %d", n, window)
	}
	if n := e.Snapshot(); n.Stalls > 0 {
		t.Errorf("taken for dead %d times, pinged %d times", n.Stalls, n.Pings)
	}
	s.last().reset()
	outcomes := map[slipstream.Outcome]int{}
	for range window + behind {
		outcomes[slipstream.OutcomeOf(<-errs)]++
	}
	if outcomes[slipstream.MaybeExecuted] != window || outcomes[slipstream.NotSent] != behind {
		t.Errorf("%v, expected %d that may have been executed and %d unsent", outcomes, window, behind)
	}
	balanced(t, e)
}

// The driver changes the depth of a connection while it is used: a greater one lets calls go that
// are queued, and a new connection begins with that of the traits, however long its round trip is.
func TestDepthChangesWhileRunning(t *testing.T) {
	eachWay(t, func(t *testing.T, network string, tickets bool) {
		k := startKeeping(t, network, tickets)
		e := k.engine(func(c *Config) { c.Traits.FirstDepth, c.FlushFactor = 1, 256 })
		setRoundTrip(e, time.Second) // so long that Depth would be 256 times what it is
		cs := k.start(t.Context(), e, "r1", "r2", "r3", "r4", "r5")
		k.arrived(1)
		pin, err := e.PinNow()
		if err != nil {
			t.Fatal(err)
		}
		pin.SetDepth(3)
		k.arrived(3)
		if v := e.Snapshot(); v.Queued != 2 || v.Outstanding != 3 {
			t.Errorf("%d calls are queued and %d at the server, expected 2 and 3", v.Queued, v.Outstanding)
		}
		pin.SetDepth(1)
		k.answer()
		k.arrived(1)
		if v := e.Snapshot(); v.Outstanding != 1 {
			t.Errorf("%d calls are at the server, expected 1", v.Outstanding)
		}
		pin.SetDepth(0) // no Depth in the traits: no bound
		k.arrived(2)
		k.answer()
		for _, c := range cs {
			k.finish(c)
		}
		balanced(t, e)
		e.Close()
	})
}
