package loop_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// dialFrom connects from an address of the loopback network, with a small receive buffer, so that
// the kernel takes little of what the server sends.
func (y *toy) dialFrom(ip string) *client {
	y.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}, Control: func(_, _ string, c syscall.RawConn) error {
		var failure error
		err := c.Control(func(fd uintptr) {
			failure = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10)
		})
		return errors.Join(err, failure)
	}}
	raw, err := d.Dial("tcp", y.addr)
	if err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(func() { raw.Close() })
	return y.client(raw)
}

// Connections of one address that do not read are closed before they hold more than the budget;
// connections of other addresses that read slowly are not closed.
func TestBudgetClosesTheAddressThatHoldsMost(t *testing.T) {
	const hostile, honest, limit = 150, 10, 4 << 20
	eachMode(t, func(t *testing.T, m mode) {
		budget := loop.NewBudget(limit)
		var mu sync.Mutex
		closed := make(map[string]int)
		y := startToy(t, m, func(c *loop.Config) {
			c.Budget = budget
			c.OnClose = func(c *loop.Conn, err error) {
				if errors.Is(err, loop.ErrMemory) {
					mu.Lock()
					defer mu.Unlock()
					closed[c.RemoteAddr().Addr().String()]++
				}
			}
		})
		each := int64(20 << 10)
		if m.tls {
			each = 64 << 10 // of both sides
		}
		line := fmt.Sprintf("big %d\n", 2000)
		text := strings.Repeat(line, 4000) // what each client sends
		before := memoryInUse()
		var reading sync.WaitGroup
		for i := range honest {
			c := y.dialFrom(fmt.Sprintf("127.0.1.%d", i+1))
			reading.Go(func() {
				go func() { _, _ = io.WriteString(c, text[:1000*len(line)]) }() // ends when all is read
				got := make([]byte, 2000)
				for n := range 1000 {
					if _, err := io.ReadFull(c.r, got); err != nil || string(got) != string(pattern[:2000]) {
						t.Errorf("an honest reader: answer %d is wrong or missing: %v", n, err)
						return
					}
					time.Sleep(100 * time.Microsecond)
				}
			})
		}
		for range hostile {
			c := y.dialFrom("127.0.0.66")
			go func() { _, _ = io.WriteString(c, text) }() // ends when the server closes it, or the test does
		}
		testkit.Eventually(t, patience, func() error {
			if s := budget.Stats(); s.Closed == 0 || s.Throttled == 0 || s.Used > limit {
				return fmt.Errorf("%+v, want some closed, some throttled, and at most %d bytes used", s, limit)
			}
			return nil
		})
		// The hostile clients continue to request 1.2 GB; connections that are being closed may hold
		// their buffers for a moment more.
		testkit.Eventually(t, patience, func() error {
			if n := memoryInUse() - before; n > 2*limit+(hostile+honest)*each && !raceEnabled {
				return fmt.Errorf("memory grew by %d bytes, want at most twice %d, and %d for each connection", n, limit, each)
			}
			return nil
		})
		reading.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(closed) != 1 || closed["127.0.0.66"] == 0 {
			t.Errorf("closed by address: %v, want only 127.0.0.66", closed)
		}
	})
}

// Above half of the budget, a connection whose peer does not read gets few answers at a time, and
// all of them once the peer reads.
func TestBudgetThrottles(t *testing.T) {
	const limit, size, requests = 64 << 20, 2000, 5000
	eachMode(t, func(t *testing.T, m mode) {
		budget := loop.NewBudget(limit)
		y := startToy(t, m, func(c *loop.Config) { c.Budget = budget })
		budget.Add(limit/2 + 1)
		c := y.dialFrom("127.0.0.2")
		go func() { // ends when all is sent, once the answers are read below
			_, _ = io.WriteString(c, strings.Repeat(fmt.Sprintf("big %d\n", size), requests))
		}()
		testkit.Eventually(t, patience, func() error {
			if budget.Stats().Throttled == 0 {
				return errors.New("not throttled")
			}
			return nil
		})
		for range 20 {
			if n := y.server.Stats().Unwritten; n > 16<<10+size {
				t.Fatalf("%d bytes are unwritten, want at most 16 KiB plus one answer", n)
			}
			time.Sleep(time.Millisecond)
		}
		for i := range requests {
			if i == requests/2 {
				budget.Add(-limit/2 - 1)
			}
			c.want(string(pattern[:size]))
		}
	})
}

// The memory that requests hold while they wait counts for their address.
func TestBudgetWeighsWaitingRequests(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		budget := loop.NewBudget(1 << 20)
		y := startToy(t, m, func(c *loop.Config) { c.Budget = budget })
		honest := y.dialFrom("127.0.1.1")
		honest.send("heavy 400000 a\n")
		defer y.hold().finish()
		for range 4 {
			c := y.dialFrom("127.0.0.66")
			c.send("heavy 200000 b\n")
			defer y.hold().finish()
		}
		if err := y.ended(); !errors.Is(err, loop.ErrMemory) {
			t.Errorf("closed with %v, want %v", err, loop.ErrMemory)
		}
		honest.send("x\n")
		testkit.Eventually(t, patience, func() error {
			if s := budget.Stats(); s.Used > 1<<20 || s.Used < 400_000 {
				return fmt.Errorf("%d bytes are used, want less than the limit", s.Used)
			}
			return nil
		})
		for len(y.closed) > 0 {
			y.ended()
		}
		if n := y.server.Connections(); n < 3 {
			t.Errorf("%d connections are left, want the honest one and some of the others", n)
		}
	})
}

// Large answers are counted separately from small ones.
func TestLargeAnswersAreCountedApart(t *testing.T) {
	const size = 8 << 20 // more than the kernel takes
	eachMode(t, func(t *testing.T, m mode) {
		budget := loop.NewBudget(64 << 20)
		y := startToy(t, m, func(c *loop.Config) { c.Budget = budget })
		want := func(what string, is func(s loop.Stats) bool) {
			t.Helper()
			testkit.Eventually(t, patience, func() error {
				if s := y.server.Stats(); !is(s) {
					return fmt.Errorf("%s: %d bytes wait, %d of them of large answers, %d count toward the budget", what, s.Unwritten, s.Large, budget.Stats().Used)
				}
				return nil
			})
		}
		c := y.dialFrom("127.0.0.2")
		c.send(fmt.Sprintf("big %d\n", size))
		want("a small answer", func(s loop.Stats) bool { return s.Unwritten > 0 && s.Large == 0 && budget.Stats().Used > size/2 })
		c.want(string(pattern[:size]))
		c.send(fmt.Sprintf("large %d\n", size))
		want("a large answer", func(s loop.Stats) bool { return s.Large > 0 && s.Large == s.Unwritten && budget.Stats().Used < size/2 })
		c.want(string(pattern[:size]))
		want("nothing", func(s loop.Stats) bool { return s.Unwritten == 0 && s.Large == 0 })
	})
}

// When all places are in use, connections that never sent a request are closed first, and among
// them those of the address that has the most.
func TestRoomIsMadeByStrangers(t *testing.T) {
	const places, strangers, rounds = 60, 40, 60
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) { c.MaxConnections = places })
		var honest []*client
		for i := range 15 {
			c := y.dialFrom(fmt.Sprintf("127.0.1.%d", i+1))
			c.send("a\n")
			c.want("a\n")
			honest = append(honest, c)
		}
		silent := y.dialFrom("127.0.1.100") // sends no request, like others, but is the only one of its address
		for range places - 15 - 1 {
			y.dialFrom("127.0.0.66")
		}
		testkit.Eventually(t, patience, func() error {
			if n := y.server.Connections(); n < places {
				return fmt.Errorf("%d connections, want %d", n, places)
			}
			return nil
		})
		for i := range rounds {
			if i%2 == 0 {
				y.dialFrom("127.0.0.66")
				continue
			}
			c := y.dialFrom("127.0.0.3")
			c.send("b\n")
			c.want("b\n")
			c.Close()
		}
		for i, c := range append(honest, silent) {
			c.send("c\n")
			got := make([]byte, 2)
			if _, err := io.ReadFull(c.r, got); err != nil {
				t.Errorf("honest connection %d was closed: %v", i, err)
			}
		}
	})
}

// When all connections have sent requests, idle ones of the address with the most connections are
// closed, and none that waits for an answer.
func TestRoomIsMadeByTheAddressWithMost(t *testing.T) {
	const places = 20
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) { c.MaxConnections = places })
		var honest []*client
		for i := range 5 {
			c := y.dialFrom(fmt.Sprintf("127.0.1.%d", i+1))
			c.send("a\n")
			c.want("a\n")
			honest = append(honest, c)
		}
		waiting := y.dialFrom("127.0.0.66")
		waiting.send("hold w\n")
		held := y.hold()
		for range places - 6 {
			c := y.dialFrom("127.0.0.66")
			c.send("a\n")
			c.want("a\n")
		}
		for range 5 {
			c := y.dialFrom("127.0.0.3")
			c.send("b\n")
			c.want("b\n")
			honest = append(honest, c)
		}
		for i, c := range honest {
			c.send("c\n")
			c.want("c\n")
			_ = i
		}
		held.finish()
		waiting.want("w\n")
		if n := y.server.Stats().Closes["room-address"]; n < 5 {
			t.Errorf("%d connections of the address with the most were closed, want 5 or more", n)
		}
	})
}

// A connection that does not prove itself in time is closed, whatever it sends.
func TestProveTimeout(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		limit := 300 * time.Millisecond
		y := startToy(t, m, func(c *loop.Config) { c.ProveTimeout = func() time.Duration { return limit } })
		proven := y.dial()
		proven.send("a\n")
		proven.want("a\n")
		silent, noisy := y.dial(), y.dial()
		_ = silent.raw
		go func() { // ends with the connection
			for {
				if _, err := io.WriteString(noisy, "stranger\n"); err != nil {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		}()
		for range 2 {
			if err := y.ended(); !errors.Is(err, loop.ErrUnproven) && !m.tls {
				t.Errorf("closed with %v, want %v", err, loop.ErrUnproven)
			}
		}
		proven.send("b\n")
		proven.want("b\n")
	})
}
