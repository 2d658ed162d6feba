//go:build !race

package loop_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit/turnwatch"
)

// TestTurnsOfTimeouts: thousands of connections that are due together are closed in steps.
func TestTurnsOfTimeouts(t *testing.T) {
	const many = 1500
	turnwatch.Within(t, func(t *testing.T, w *turnwatch.Watch) {
		var timeout atomic.Int64 // 0: there is none yet
		y := startToy(t, mode{"epoll", loop.Epoll, false}, func(c *loop.Config) {
			c.ProveTimeout = func() time.Duration { return time.Duration(timeout.Load()) }
		})
		for range many {
			c, err := net.Dial("tcp", y.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		for y.conns.Load() < many {
			time.Sleep(time.Millisecond)
		}
		w.Forget()
		timeout.Store(1)
		for range many {
			if err := y.ended(); !errors.Is(err, loop.ErrUnproven) {
				t.Fatalf("ended with %v, want ErrUnproven", err)
			}
		}
	})
}

// TestTurnsOfInputs: a turn reads a part of a large input.
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
	go p.Release() // ends soon; in these tests the pool looks at every byte
	o := c.Output()
	o.B = append(o.B, '.')
}

func (*sink) Closed(*loop.Conn, error) {}
