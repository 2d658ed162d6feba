//go:build !race

package loop_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/turnwatch"
)

// TestTurnsOfTimeouts: thousands of connections whose time limits expire together are closed in
// steps. Each closed connection reports a turn, and each step reports another one after those of
// its connections.
func TestTurnsOfTimeouts(t *testing.T) {
	const many, most = 1500, 64
	var timeout, closed, before, step, longest atomic.Int64 // timeout is 0 while there is no time limit
	defer loop.MeasureTurns(func(time.Duration) {
		n := closed.Load()
		if n == before.Swap(n) {
			step.Store(0)
		} else if steps := step.Add(1); steps > longest.Load() {
			longest.Store(steps)
		}
	})()
	y := startToy(t, mode{"epoll", loop.Epoll, false}, func(c *loop.Config) {
		c.Loops = 1 // so that no turns of another loop come in between
		c.ProveTimeout = func() time.Duration { return time.Duration(timeout.Load()) }
		c.New = func(*loop.Conn) loop.Session { return &due{closed: &closed} }
	})
	for range many {
		c, err := net.Dial("tcp", y.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	testkit.Eventually(t, patience, func() error {
		if n := y.server.Connections(); n < many {
			return fmt.Errorf("%d of %d connections are open", n, many)
		}
		return nil
	})
	timeout.Store(1)
	testkit.Eventually(t, patience, func() error {
		if n := closed.Load(); n < many {
			return fmt.Errorf("%d of %d connections are closed", n, many)
		}
		return nil
	})
	if n := longest.Load(); n < 2 || n > most {
		t.Errorf("%d connections were closed in one step, want 2 to %d", n, most)
	}
}

// due is a session that does nothing and waits to be closed.
type due struct{ closed *atomic.Int64 }

func (*due) Data(_ *loop.Conn, in []byte) int { return len(in) }

func (d *due) Closed(*loop.Conn, error) { d.closed.Add(1) }

// TestTurnsOfInputs: a turn reads only part of a large input.
func TestTurnsOfInputs(t *testing.T) {
	const conns, each = 8, 4
	turnwatch.Within(t, func(t *testing.T, _ *turnwatch.Watch) {
		budget := loop.NewBudget(1 << 30)
		y := startToy(t, mode{"epoll", loop.Epoll, false}, func(c *loop.Config) {
			c.Budget = budget
			c.New = func(*loop.Conn) loop.Session { return new(sink) }
		})
		var sending sync.WaitGroup
		for range conns {
			c := y.dial()
			sending.Go(func() {
				text := make([]byte, 16<<20)
				copy(text, sinkHeader(len(text)-4))
				for range each {
					go func() { _, _ = c.Write(text) }() // ends when all is sent
					if _, err := io.ReadFull(c.r, make([]byte, 1)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		sending.Wait()
	})
}

// sink expects inputs of which the first 4 bytes say the length, and answers each with a byte.
type sink struct{}

func sinkHeader(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

func (*sink) Data(c *loop.Conn, in []byte) int {
	if len(in) < 4 {
		return 0
	}
	if err := c.Expect(int(binary.BigEndian.Uint32(in))); err != nil {
		c.Abort(err)
	}
	return 4
}

func (*sink) Received(c *loop.Conn, p *loop.Payload) {
	go p.Release() // ends soon; in these tests the pool checks every byte
	o := c.Output()
	o.B = append(o.B, '.')
}

func (*sink) Closed(*loop.Conn, error) {}
