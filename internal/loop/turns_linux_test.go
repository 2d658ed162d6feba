//go:build !race

package loop_test

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit/turnwatch"
)

// TestTurnsOfTimeouts: thousands of connections that are due together are closed in steps.
func TestTurnsOfTimeouts(t *testing.T) {
	const many = 1500
	turnwatch.Within(t, func(t *testing.T, _ *turnwatch.Watch) {
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
		timeout.Store(1)
		for range many {
			if err := y.ended(); !errors.Is(err, loop.ErrUnproven) {
				t.Fatalf("ended with %v, want ErrUnproven", err)
			}
		}
	})
}
