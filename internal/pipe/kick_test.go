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

// answerAtOnce answers everything that has arrived, on one connection, by one write.
func (k *keepingServer) answerAtOnce() {
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

// written waits until n requests are there, and nobody writes any more.
func (k *keepingServer) written(e *Engine, n int) {
	k.t.Helper()
	k.arrived(n)
	s := socketAt(e, 0)
	testkit.Eventually(k.t, 5*time.Second, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.out.writing {
			return errors.New("somebody still writes")
		}
		return nil
	})
}

// manyWrites is a factor with which every call is written at once.
const manyWrites = 1000

func keepingEngine(k *keepingServer) *Engine {
	e := k.engine(func(c *Config) { c.FlushFactor, c.choices.SoloAfter = manyWrites, -1 })
	setRoundTrip(e, time.Second) // so that the factor stays, and no ticket counts as slow
	return e
}

// Replies free calls that others have queued, and wake callers. What these call next leaves by the
// same write.
func TestReaderWritesAfterCallersThatItHasWoken(t *testing.T) {
	// With more processors the others may be slower than the reader.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const woken, others, rounds = 8, 4, 20
	eachWay(t, func(t *testing.T, network string, tickets bool) {
		k := startKeeping(t, network, tickets)
		e := keepingEngine(k)
		together := 0
		for range rounds {
			var callers sync.WaitGroup
			for i := range woken {
				callers.Go(func() {
					for _, call := range []string{"first", "second"} {
						if err := k.ask(t.Context(), e, fmt.Sprint("r", call, i)); err != nil {
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
			go func() { // ends with the calls, awaited below
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
		// The scheduler may stop a goroutine anywhere.
		if together < rounds/2 {
			t.Errorf("%d times of %d the calls left by one write", together, rounds)
		}
		balanced(t, e)
	})
}

// Futures that nobody waits for wake no caller, so there is nothing to let run.
func TestReaderYieldsToNobodyWithoutCallersThatItHasWoken(t *testing.T) {
	eachWay(t, func(t *testing.T, network string, tickets bool) {
		k := startKeeping(t, network, tickets)
		e := keepingEngine(k)
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
