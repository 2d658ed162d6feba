package pipe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// watching is a protocol whose scanners record the notifications that they receive.
type watching struct {
	Protocol
	mu sync.Mutex
	// Guarded by mu.
	all []*watchingScanner
}

type watchingScanner struct {
	Scanner
	of *watching

	// Guarded by of.mu.
	pin       Pin
	opened    int
	replies   int
	overtaken int
	ended     []error
}

func (w *watching) NewScanner() Scanner {
	s := &watchingScanner{Scanner: w.Protocol.NewScanner(), of: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, s)
	return s
}

func (s *watchingScanner) Opened(p Pin) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.pin = p
	s.opened++
}

func (s *watchingScanner) Replied(n int, overtaken bool) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.replies += n
	if overtaken {
		s.overtaken++
	}
}

func (s *watchingScanner) Ended(cause error) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.ended = append(s.ended, cause)
}

// await waits until cond returns nil for the scanners.
func (w *watching) await(t *testing.T, cond func(all []*watchingScanner) error) {
	t.Helper()
	testkit.Eventually(t, 10*time.Second, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		return cond(w.all)
	})
}

// takeArrived waits until n requests have arrived, and returns them.
func takeArrived(k *holdingServer, n int) []toyRequest {
	k.t.Helper()
	k.arrived(n)
	k.mu.Lock()
	defer k.mu.Unlock()
	held := k.seen
	k.seen = nil
	return held
}

// A watcher is notified of its connection, once of each reply (even if the call was given up), of
// replies that overtake others, and of the end.
func TestWatcher(t *testing.T) {
	testkit.NoLeaks(t)
	for _, tickets := range []bool{false, true} {
		t.Run(fmt.Sprintf("tickets=%v", tickets), func(t *testing.T) {
			k := startHolding(t, "tcp", tickets)
			w := &watching{}
			e := k.engine(func(c *Config) {
				w.Protocol = c.Protocol
				c.Protocol, c.Traits.TicketBits = w, 32
			})
			var last *watchingScanner
			w.await(t, func(all []*watchingScanner) error {
				if len(all) != 1 || all[0].opened != 1 || !all[0].pin.Alive() {
					return fmt.Errorf("%d scanners", len(all))
				}
				last = all[0]
				return nil
			})
			cs := k.start(t.Context(), e, "r0", "r1", "r2", "r3")
			held := takeArrived(k, 4)
			order := []int{0, 1, 2, 3}
			if tickets {
				order = []int{1, 0, 2, 3} // one is overtaken
			}
			for _, i := range order {
				held[i].reply(held[i].body)
			}
			for _, c := range cs {
				if err := c.Wait(); err != nil {
					t.Error(err)
				}
				c.Release()
			}
			want := 0
			if tickets {
				want = 1
			}
			w.await(t, func([]*watchingScanner) error {
				if last.replies != 4 || last.overtaken != want || len(last.ended) != 0 {
					return fmt.Errorf("%d replies, %d times overtaken, %d ends; want 4, %d and 0", last.replies, last.overtaken, len(last.ended), want)
				}
				return nil
			})
			k.closeConns()
			w.await(t, func(all []*watchingScanner) error {
				if len(last.ended) != 1 || last.ended[0] == nil || len(all) < 2 || all[1].opened != 1 {
					return fmt.Errorf("%d ends, %d connections", len(last.ended), len(all))
				}
				return nil
			})
		})
	}
}

// Remove ends one of several connections after its calls, and the number of the others stays the
// same.
func TestRemoveConnection(t *testing.T) {
	testkit.NoLeaks(t)
	k := startHolding(t, "tcp", true)
	w := &watching{}
	e := k.engine(func(c *Config) {
		w.Protocol = c.Protocol
		c.Protocol, c.Sockets = w, 3
	})
	awaitSockets(t, e, 3)
	w.mu.Lock()
	pin := w.all[1].pin
	w.mu.Unlock()
	c := k.newCall(e, "r0")
	c.Pin = pin
	if err := e.Start(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	held := takeArrived(k, 1)
	if !pin.Remove() || pin.Alive() {
		t.Error("the connection accepts calls")
	}
	if pin.Remove() {
		t.Error("the connection was removed twice")
	}
	held[0].reply("r0")
	if err := c.Wait(); err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	c.Release()
	awaitSockets(t, e, 2)
	w.await(t, func(all []*watchingScanner) error {
		if ended := all[1].ended; len(ended) != 1 || !errors.Is(ended[0], ErrSurplus) {
			return fmt.Errorf("it has ended with %v", ended)
		}
		return nil
	})
	removed := 0
	for _, s := range w.all {
		if s.pin.Alive() && s.pin.Remove() {
			removed++
		}
	}
	if removed != 1 {
		t.Errorf("%d of the last two connections were removed, want one", removed)
	}
	awaitSockets(t, e, 1)
	if len(w.all) != 3 {
		t.Errorf("%d connections were opened, want 3", len(w.all))
	}
}

// A reply to a call that was given up counts, too, whether or not others are awaited when it comes.
func TestWatcherOfGivenUpCalls(t *testing.T) {
	testkit.NoLeaks(t)
	k := startHolding(t, "tcp", true)
	w := &watching{}
	e := k.engine(func(c *Config) {
		w.Protocol = c.Protocol
		c.Protocol, c.Traits.TicketBits = w, 32
	})
	for round := range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		given := k.start(ctx, e, "r0")
		held := takeArrived(k, 1)
		cancel()
		if err := given[0].Wait(); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		given[0].Release()
		var other []*Call
		if round == 1 {
			other = k.start(t.Context(), e, "r1")
			held = append(held, takeArrived(k, 1)...)
		}
		for _, r := range held {
			r.reply(r.body)
		}
		for _, c := range other {
			if err := c.Wait(); err != nil {
				t.Error(err)
			}
			c.Release()
		}
		w.await(t, func(all []*watchingScanner) error {
			if want := 1 + 2*round; all[0].replies != want {
				return fmt.Errorf("%d replies, want %d", all[0].replies, want)
			}
			return nil
		})
	}
}
