package loop_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// shutdown runs Shutdown concurrently with the test.
func (y *toy) shutdown(within time.Duration) <-chan error {
	result := make(chan error, 1)
	go func() { // ends within the time given
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		result <- y.server.Shutdown(ctx)
	}()
	return result
}

func wantResult(t *testing.T, result <-chan error, want error) {
	t.Helper()
	select {
	case err := <-result:
		if !errors.Is(err, want) {
			t.Errorf("Shutdown returned %v, want %v", err, want)
		}
	case <-time.After(15 * time.Second):
		t.Fatal("Shutdown has not returned within 15 s")
	}
}

// A drain closes idle connections gracefully, waits for answers that are owed, and accepts no new
// connections.
func TestShutdownDrains(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		idle, busy, half := y.dial(), y.dial(), y.dial()
		idle.send("a\n")
		idle.want("a\n")
		busy.send("b\nhold c\nd\n")
		busy.want("b\n")
		r := y.hold()
		half.send("x\nbeg")
		half.want("x\n")
		result := y.shutdown(10 * time.Second)
		idle.wantEnd()
		idle.Close()
		if err := y.ended(); !errors.Is(err, loop.ErrDrained) {
			t.Errorf("the idle connection closed with %v, want %v", err, loop.ErrDrained)
		}
		half.send("in\n") // the rest of a request that has begun is still read
		half.want("begin\n")
		half.wantEnd()
		half.Close()
		y.ended()
		testkit.Eventually(t, patience, func() error {
			nc, err := net.Dial("tcp", y.addr)
			if err == nil {
				nc.Close()
				return errors.New("a new connection was accepted")
			}
			return nil
		})
		if len(result) > 0 {
			t.Error("Shutdown returned while an answer was owed")
		}
		r.finish()
		busy.want("c\nd\n")
		busy.wantEnd()
		busy.Close()
		y.ended()
		wantResult(t, result, nil)
		for range 2 {
			if err := y.server.Shutdown(t.Context()); err != nil {
				t.Errorf("Shutdown again: %v, want nil", err)
			}
		}
	})
}

// During DrainGrace idle connections are served once more.
func TestDrainGrace(t *testing.T) {
	const grace = time.Second
	eachMode(t, func(t *testing.T, m mode) {
		var draining atomic.Bool
		y := startToy(t, m, func(c *loop.Config) {
			c.DrainGrace = grace
			inner := c.New
			c.New = func(c *loop.Conn) loop.Session { return drainWatcher{inner(c), &draining} }
		})
		c, silent := y.dial(), y.dial()
		for _, one := range []*client{c, silent} {
			one.send("a\n")
			one.want("a\n")
		}
		if draining.Load() {
			t.Error("Draining returned true before Shutdown")
		}
		start := time.Now()
		result := y.shutdown(10 * time.Second)
		time.Sleep(grace / 4)
		c.send("b\n")
		c.want("b\n")
		if !draining.Load() {
			t.Error("Draining returned false after Shutdown")
		}
		silent.wantEnd()
		if took := time.Since(start); took < grace {
			t.Errorf("the silent connection was ended after %v, want %v", took, grace)
		}
		c.wantEnd()
		c.Close()
		silent.Close()
		wantResult(t, result, nil)
	})
}

// drainWatcher records what its connection reports about the drain.
type drainWatcher struct {
	loop.Session
	draining *atomic.Bool
}

func (w drainWatcher) Data(c *loop.Conn, in []byte) int {
	w.draining.Store(c.Draining())
	return w.Session.Data(c, in)
}

// When its context ends, Shutdown closes the remaining connections, and pending answers are
// dropped.
func TestShutdownCuts(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		for range 5 {
			c := y.dial()
			c.send("hold a\nid 700 b\n")
			defer y.hold().finish()
		}
		stuck := y.dial() // does not read
		stuck.send(fmt.Sprintf("big %d\nbig %d\n", len(pattern), len(pattern)))
		time.Sleep(50 * time.Millisecond)
		start := time.Now()
		wantResult(t, y.shutdown(200*time.Millisecond), context.DeadlineExceeded)
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("Shutdown took %v, want about 200 ms", took)
		}
		for range 6 {
			if err := y.ended(); !errors.Is(err, loop.ErrDrained) {
				t.Errorf("closed with %v, want %v", err, loop.ErrDrained)
			}
		}
		if err := y.server.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown again: %v, want nil", err)
		}
	})
}

// Connections that wait in the kernel's queue when Shutdown is called are served: no client gets a
// reset.
func TestShutdownAndTheQueue(t *testing.T) {
	const clients = 60
	eachPlain(t, func(t *testing.T, m mode) {
		for range 2 {
			y := startToy(t, m, func(c *loop.Config) { c.DrainGrace, c.Loops = time.Second, 1 })
			first := y.dial()
			first.send("block 200\n") // the loop accepts no connection in the meantime
			time.Sleep(50 * time.Millisecond)
			queued := make([]*client, clients)
			for i := range queued {
				queued[i] = y.dial()
			}
			result := y.shutdown(10 * time.Second)
			for _, c := range queued {
				c.send("a\n")
			}
			for _, c := range queued {
				c.want("a\n")
				c.wantEnd()
				c.Close()
			}
			first.Close()
			wantResult(t, result, nil)
		}
	})
}

// Shutdown under load ends and loses no answer that was owed.
func TestShutdownInTraffic(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		for round := range 5 {
			y := startToy(t, m, nil)
			clients := make([]*client, 8)
			for i := range clients {
				clients[i] = y.dial()
				clients[i].send("first\n")
				clients[i].want("first\n")
			}
			var result <-chan error
			all(len(clients)+1, func(i int) {
				if i == len(clients) {
					time.Sleep(time.Duration(round*7) * time.Millisecond)
					result = y.shutdown(10 * time.Second)
					return
				}
				c := clients[i]
				defer c.Close()
				for n := range 10_000 {
					want := fmt.Sprintf("%d\n", n)
					if _, err := io.WriteString(c, "later 1 "+want); err != nil {
						return
					}
					got, err := c.r.ReadString('\n')
					if err != nil && got != "" || err == nil && got != want {
						t.Errorf("got %q, %v, want %q or the end", got, err, want)
					}
					if err != nil {
						return
					}
				}
			})
			wantResult(t, result, nil)
		}
	})
}

// Shutdown does not close detached connections.
func TestShutdownLeavesDetached(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		c := y.dial()
		c.send("detach\n")
		h := y.takeDetached()
		wantResult(t, y.shutdown(10*time.Second), nil)
		if _, err := io.WriteString(h.nc, "a\n"); err != nil {
			t.Errorf("writing to a detached connection after Shutdown: %v", err)
		}
		c.want("a\n")
		h.nc.Close()
	})
}

// Connections of Unix sockets have no address but fulfill the same contract.
func TestUnixSockets(t *testing.T) {
	eachPlain(t, func(t *testing.T, m mode) {
		testkit.NoLeaks(t)
		path := filepath.Join(t.TempDir(), "socket")
		s, err := loop.New(loop.Config{Backend: m.backend, New: func(c *loop.Conn) loop.Session {
			if c.RemoteAddr().IsValid() || c.AtLoopback() {
				t.Errorf("a connection from %v, at loopback %v; want no address", c.RemoteAddr(), c.AtLoopback())
			}
			return echo{}
		}})
		if err != nil {
			t.Fatal(err)
		}
		listeners, err := loop.Listen("unix", path, 4)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Serve(listeners...); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			nc, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 2)
			if _, err := io.WriteString(nc, "a\n"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(nc, got); err != nil || string(got) != "a\n" {
				t.Fatalf("got %q, %v, want the echo", got, err)
			}
			nc.Close()
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// The peer's address and a unique number are known from the start; the context ends with the
// connection.
func TestConnIdentity(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		ids := make(chan uint64, 10)
		remotes := make(chan string, 10)
		contexts := make(chan context.Context, 10)
		y := startToy(t, m, func(c *loop.Config) {
			inner := c.New
			c.New = func(c *loop.Conn) loop.Session {
				ids <- c.ID()
				remotes <- c.RemoteAddr().String()
				contexts <- c.Context()
				return inner(c)
			}
		})
		seen := make(map[uint64]bool)
		for range 3 {
			c := y.dial()
			c.send("a\n")
			c.want("a\n")
			id := <-ids
			if seen[id] {
				t.Errorf("two connections have the number %d", id)
			}
			seen[id] = true
			if got, want := <-remotes, c.LocalAddr().String(); got != want {
				t.Errorf("RemoteAddr is %s, want %s", got, want)
			}
			ctx := <-contexts
			if ctx.Err() != nil {
				t.Error("the context has ended while the connection is open")
			}
			c.Close()
			y.ended()
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Second):
				t.Error("the context has not ended with the connection")
			}
		}
	})
}
