package pipe

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// answerAtOnce answers all requests that have arrived on one connection with one write.
func (k *holdingServer) answerAtOnce() {
	k.mu.Lock()
	defer k.mu.Unlock()
	var frames []byte
	for _, r := range k.seen {
		frames = append(frames, r.frame(r.body)...)
	}
	if len(k.seen) > 0 {
		k.seen[0].peer.send(frames)
	}
	k.seen = nil
}

// setFactor sets k of the flush rule of the only socket.
func setFactor(e *Engine, k int) {
	s := socketAt(e, 0)
	s.mu.Lock()
	s.pace.k = k
	s.mu.Unlock()
}

// written waits until n requests have arrived and no goroutine writes.
func (k *holdingServer) written(e *Engine, n int) {
	k.t.Helper()
	k.arrived(n)
	s := socketAt(e, 0)
	testkit.Eventually(k.t, 5*time.Second, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.out.writing {
			return errors.New("a goroutine still writes")
		}
		return nil
	})
}

// manyWrites is a flush factor with which every call is written immediately.
const manyWrites = 1000

func holdingEngine(k *holdingServer) *Engine {
	e := k.engine(func(c *Config) { c.FlushFactor, c.OneOfSeveral, c.choices.SoloAfter = manyWrites, true, -1 })
	setRoundTrip(e, time.Second) // so that the factor does not change, and no ticket counts as slow
	return e
}

// Replies release queued calls of other callers, and wake callers. The next calls of these callers are sent in
// the same write.
func TestReaderWritesAfterCallersThatItHasWoken(t *testing.T) {
	// With more processors, the callers may be slower than the reader.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const woken, others, rounds = 8, 4, 20
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		k := startHolding(t, network, tickets)
		e := holdingEngine(k)
		together := 0
		for range rounds {
			var callers sync.WaitGroup
			for i := range woken {
				callers.Go(func() {
					for _, call := range []string{"first", "second"} {
						if err := k.echo(t.Context(), e, fmt.Sprint("r", call, i)); err != nil {
							t.Error(err)
						}
					}
				})
			}
			k.written(e, woken)
			setFactor(e, 1)
			var bodies []string
			for i := range others {
				bodies = append(bodies, fmt.Sprint("rother", i))
			}
			queued := k.start(t.Context(), e, bodies...)
			if v := e.Snapshot(); v.Queued != others {
				t.Fatalf("%d calls are queued, want %d", v.Queued, others)
			}
			before := e.Snapshot().Writes
			done := make(chan struct{})
			go func() { // ends with the calls; waited for below
				callers.Wait()
				for _, c := range queued {
					k.finish(c)
				}
				close(done)
			}()
			for ended := false; !ended; {
				k.answerAtOnce()
				select {
				case <-done:
					ended = true
				case <-time.After(100 * time.Microsecond):
				}
			}
			if e.Snapshot().Writes == before+1 {
				together++
			}
			setFactor(e, manyWrites)
		}
		// The scheduler may preempt any goroutine.
		if together < rounds/2 {
			t.Errorf("in %d of %d rounds, one write sent all calls", together, rounds)
		}
		checkBalanced(t, e)
	})
}

// The reader of the only connection writes immediately. With several connections, or other engines,
// it lets the callers that it has woken run first.
func TestReaderYieldsOnlyAmongSeveralConnections(t *testing.T) {
	for _, row := range []struct {
		name string
		set  func(*Config)
		want bool
	}{
		{"one connection", func(*Config) {}, false},
		{"two connections", func(c *Config) { c.Sockets = 2 }, true},
		{"other engines", func(c *Config) { c.OneOfSeveral = true }, true},
		{"one connection, measured", func(c *Config) { c.choices.ReaderYields = true }, true},
		{"never", func(c *Config) { c.OneOfSeveral, c.choices.NeverYield = true, true }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			k := startHolding(t, "tcp", false)
			e := k.engine(row.set)
			if err := e.SetSockets(1 + e.cfg.Sockets/2); err != nil {
				t.Fatal(err)
			}
			if got := e.readerYields(); got != row.want {
				t.Errorf("the reader yields: %v, want %v", got, row.want)
			}
		})
	}
}

// Futures that no goroutine waits for wake no caller, so the reader has no reason to yield.
func TestReaderYieldsToNobodyWithoutCallersThatItHasWoken(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		k := startHolding(t, network, tickets)
		e := holdingEngine(k)
		for range 5 {
			calls := k.start(t.Context(), e, "ra", "rb", "rc", "rd")
			k.written(e, len(calls))
			setFactor(e, 1)
			queued := k.start(t.Context(), e, "re", "rf")
			before := e.Snapshot()
			k.answerAtOnce()
			k.arrived(len(queued))
			if v := e.Snapshot(); v.Kicks != before.Kicks+1 || v.Yields != before.Yields {
				t.Errorf("%d writes by the reader, %d yields", v.Kicks-before.Kicks, v.Yields-before.Yields)
			}
			setFactor(e, manyWrites)
			k.answerAtOnce()
			for _, c := range append(calls, queued...) {
				k.finish(c)
			}
		}
	})
}
