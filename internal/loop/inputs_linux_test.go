package loop_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// closedByAddress counts the connections that were closed for memory.
type closedByAddress struct {
	mu sync.Mutex
	n  map[string]int // guarded by mu
}

func (a *closedByAddress) note(c *loop.Conn, err error) {
	if errors.Is(err, loop.ErrMemory) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.n[c.RemoteAddr().Addr().String()]++
	}
}

// The memory that all connections hold for inputs is bounded, both for incomplete requests and for
// expected inputs. Connections of the address that holds the most are closed; the inputs of others
// arrive.
func TestInputsAreBounded(t *testing.T) {
	const limit = 8 << 20
	for _, kind := range []struct {
		name, text string
		hostile    int
	}{
		{"starts of requests", strings.Repeat("x", 60_000), 400},
		{"expected inputs", fmt.Sprintf("put %d\n", 2<<20) + strings.Repeat("x", 1<<20), 40},
	} {
		t.Run(kind.name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, m mode) {
				budget := loop.NewBudget(limit)
				closed := closedByAddress{n: make(map[string]int)}
				y := startToy(t, m, func(c *loop.Config) {
					c.Budget, c.OnClose, c.Loops = budget, closed.note, 2
					c.PartialTimeout = time.Minute
				})
				request, answer := put("put", 1<<20)
				honest := y.dialFrom("127.0.1.1")
				honest.send(request[:300_000])
				var most int64
				for range kind.hostile {
					c := y.dialFrom("127.0.0.66")
					go func() { _, _ = io.WriteString(c, kind.text) }() // ends when it is closed
					most = max(most, budget.Stats().Used)
				}
				testkit.Eventually(t, 30*time.Second, func() error {
					s := budget.Stats()
					most = max(most, s.Used)
					if s.Closed == 0 || s.Used > limit {
						return fmt.Errorf("%+v, want some closed and at most %d bytes used", s, limit)
					}
					return nil
				})
				go func() { _, _ = io.WriteString(honest, request[300_000:]) }() // ends when all is sent, or with the test
				honest.want(answer)
				if most > 2*limit {
					t.Errorf("%d bytes were counted, want not much more than %d", most, limit)
				}
				closed.mu.Lock()
				defer closed.mu.Unlock()
				if len(closed.n) != 1 || closed.n["127.0.0.66"] == 0 {
					t.Errorf("closed by address: %v, want only 127.0.0.66", closed.n)
				}
			})
		})
	}
}

// While the budget has no room, an input waits, and its peer does not count as slow.
func TestInputsWaitForMemory(t *testing.T) {
	const limit, timeout, start = 4 << 20, 500 * time.Millisecond, 10_000
	expected, answer := put("put", 1<<20)
	line := strings.Repeat("x", 60_000) + "\n"
	for _, kind := range []struct{ name, request, answer string }{
		{"expected", expected, answer},
		{"start", line, line},
	} {
		t.Run(kind.name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, m mode) {
				budget := loop.NewBudget(limit)
				y := startToy(t, m, func(c *loop.Config) { c.Budget, c.PartialTimeout, c.Loops = budget, timeout, 1 })
				c := y.dial()
				c.send("a\n" + kind.request[:start])
				c.want("a\n")
				testkit.Eventually(t, patience, func() error {
					if y.delivered.Load() < 2+int64(len("put 1048576\n")) {
						return errors.New("the start of the request was not read")
					}
					return nil
				})
				budget.Add(2 * limit)
				go func() { _, _ = io.WriteString(c, kind.request[start:]) }() // ends when all is sent, or with the test
				c.wantSilence(3 * timeout)
				if n := budget.Stats().Used - 2*limit; n > 256<<10 {
					t.Errorf("%d bytes are counted for an input that waits for memory, want only a few", n)
				}
				budget.Add(-2 * limit)
				c.want(kind.answer)
			})
		})
	}
}
