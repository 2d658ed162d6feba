package pipe

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// SetSockets, Close and Shutdown in any order leave no goroutine and no call.
func TestSetSocketsWhileClosing(t *testing.T) {
	testkit.NoLeaks(t)
	for i := range 40 {
		s := startToy(t, &toyServer{tickets: i%2 == 0})
		e := s.engine(func(c *Config) { c.Sockets = 2 })
		var wg sync.WaitGroup
		for g := range 3 {
			wg.Go(func() {
				for n := g; ; n++ {
					if err := e.SetSockets(1 + n%5); err != nil {
						if slipstream.OutcomeOf(err) != slipstream.Closed {
							t.Error(err)
						}
						return
					}
					if err := s.echo(t.Context(), e, "rx"); err != nil && slipstream.OutcomeOf(err) != slipstream.Closed && i%4 >= 2 {
						t.Error(err)
					}
				}
			})
		}
		time.Sleep(time.Duration(i) * 50 * time.Microsecond)
		if i%4 < 2 {
			e.Close()
		} else if err := e.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		wg.Wait()
		checkBalanced(t, e)
		if l := e.list.Load(); e.Outstanding() != 0 {
			t.Errorf("%d calls remain on %d connections", e.Outstanding(), len(l.peers))
		}
	}
}

// Callers make calls while connections are opened, closed and broken, in virtual time: each call ends once,
// with its own reply or an error.
func TestSocketsComeAndGoUnderLoad(t *testing.T) {
	r := testkit.Rand(t)
	for range 60 {
		seed := r.Uint64()
		synctest.Test(t, func(t *testing.T) { callWhileResizing(t, testkit.Fork(seed, 0)) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func callWhileResizing(t *testing.T, r *rand.Rand) {
	fails, tickets, place, depth := r.IntN(2) == 0, r.IntN(2) == 0, Placement(r.IntN(3)), 1+r.IntN(3)
	var mu sync.Mutex
	seen, habits := map[string]int{}, testkit.Fork(r.Uint64(), 1)
	s := startToy(t, &toyServer{tickets: tickets, handle: func(q toyRequest) {
		mu.Lock()
		seen[q.body]++
		d := time.Duration(habits.IntN(10)) * time.Millisecond
		mu.Unlock()
		time.Sleep(d)
		q.reply(q.body)
	}})
	e := s.engine(func(c *Config) {
		c.Traits.Place, c.Traits.Spill, c.Traits.FirstDepth = place, 2, depth
		c.MaxCalls, c.WaitWhenFull, c.DialTimeout, c.StallTimeout, c.IdlePing = 16, true, time.Minute, -1, -1
	})
	var callers, others sync.WaitGroup
	stop := make(chan struct{})
	for g := range 8 {
		each := 10 + r.IntN(30)
		callers.Go(func() {
			for i := range each {
				body := fmt.Sprintf("r%d/%d", g, i)
				c := bubbleCall(e)
				c.Frame = s.appendRequest(nil, body)
				err := e.Do(t.Context(), c)
				mu.Lock()
				n := seen[body]
				mu.Unlock()
				switch {
				case err == nil && (n != 1 || s.replyOf(c) != body):
					t.Errorf("%q: the reply is %q, and the server received it %d times", body, s.replyOf(c), n)
				case err != nil && !fails:
					t.Errorf("%q: %v, but no connection failed", body, err)
				case err != nil && n > 0 && slipstream.OutcomeOf(err) != slipstream.MaybeExecuted || n > 1:
					t.Errorf("%q: %v, and the server received it %d times", body, err, n)
				}
			}
		})
	}
	// Each of them is stopped by stop, and waited for below.
	often := func(f func(r *rand.Rand)) {
		r := testkit.Fork(r.Uint64(), 2)
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(r.IntN(5000)) * time.Microsecond):
					f(r)
				}
			}
		})
	}
	for range 2 {
		often(func(r *rand.Rand) {
			if err := e.SetSockets(1 + r.IntN(6)); err != nil {
				t.Error(err)
			}
		})
	}
	if fails {
		often(func(r *rand.Rand) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if n := len(s.peers); n > 0 {
				s.peers[r.IntN(n)].reset()
			}
		})
	}
	callers.Wait()
	close(stop)
	others.Wait()
	setSockets(t, e, 2)
	awaitSockets(t, e, 2)
	checkBalanced(t, e)
	if v := e.Snapshot(); v.Queued+v.Outstanding != 0 || v.HeldBytes != 0 || e.Outstanding() != 0 {
		t.Errorf("not empty at the end: %d calls, %d bytes", v.Queued+v.Outstanding, v.HeldBytes)
	}
	if err := e.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
