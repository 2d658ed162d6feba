package loop_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// The bytes of large answers owed to one address are bounded: its connections are closed, the one
// with the most first, and those of other addresses stay, however much they are owed in total.
func TestLargeAnswersCloseTheAddressThatOwesMost(t *testing.T) {
	const size, limit, hostile, honest = 8 << 20, 64 << 20, 40, 4
	eachMode(t, func(t *testing.T, m mode) {
		large := loop.NewLargeBudget(limit)
		var mu sync.Mutex
		closed := make(map[string]int)
		y := startToy(t, m, func(c *loop.Config) {
			c.Large = large
			c.OnClose = func(c *loop.Conn, err error) {
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, loop.ErrLarge) {
					closed[c.RemoteAddr().Addr().String()]++
				}
			}
		})
		line := fmt.Sprintf("large %d\n", size)
		var slow []*client
		for i := range honest {
			c := y.dialFrom(fmt.Sprintf("127.0.1.%d", i+1))
			c.send(line)
			slow = append(slow, c)
		}
		for range hostile {
			y.dialFrom("127.0.0.66").send(line)
		}
		testkit.Eventually(t, patience, func() error {
			mu.Lock()
			defer mu.Unlock()
			if s := large.Stats(); closed["127.0.0.66"] < hostile/2 || s.Used > limit || s.Throttled == 0 {
				return fmt.Errorf("%d connections were closed, the budget reports %+v", closed["127.0.0.66"], s)
			}
			return nil
		})
		for _, c := range slow {
			c.want(string(pattern[:size]))
		}
		mu.Lock()
		defer mu.Unlock()
		if len(closed) != 1 {
			t.Errorf("closed by address: %v, want only 127.0.0.66", closed)
		}
		if n := y.server.Stats().Closes["large"]; n != uint64(closed["127.0.0.66"]) || n != large.Stats().Closed {
			t.Errorf("the server has counted %d closed connections, the budget %d, want %d", n, large.Stats().Closed, closed["127.0.0.66"])
		}
	})
}

// A single large answer stays, even if it is larger than the budget.
func TestLargeAnswerThatIsAlone(t *testing.T) {
	const size = 8 << 20
	eachMode(t, func(t *testing.T, m mode) {
		large := loop.NewLargeBudget(1 << 20)
		y := startToy(t, m, func(c *loop.Config) { c.Large = large })
		c := y.dialFrom("127.0.0.2")
		c.send(fmt.Sprintf("large %d\n", size))
		testkit.Eventually(t, patience, func() error {
			if !large.Over() {
				return errors.New("the budget is not exceeded")
			}
			return nil
		})
		if n := large.Review(); n != 0 {
			t.Errorf("a review closes %d connections, want none", n)
		}
		c.want(string(pattern[:size]))
	})
}

func TestLargeBudgetAdmits(t *testing.T) {
	b := loop.NewLargeBudget(100)
	for _, row := range []struct {
		used, n int64
		admits  bool
	}{{0, 1000, true}, {1, 149, true}, {1, 150, false}, {100, 50, true}, {100, 51, false}, {150, 1, false}} {
		b.Add(row.used)
		if got := b.Admits(row.n); got != row.admits {
			t.Errorf("%d bytes beside %d of 100: admitted %v, want %v", row.n, row.used, got, row.admits)
		}
		b.Add(-row.used)
	}
	if n := b.Stats().Refused; n != 3 {
		t.Errorf("%d answers were refused, want 3", n)
	}
}

// A holder is a session that reports large answers that it holds.
type holder struct{ holds atomic.Int64 }

func (*holder) Data(c *loop.Conn, in []byte) int {
	c.Output().B = append(c.Output().B, in...)
	return len(in)
}
func (*holder) Closed(*loop.Conn, error) {}
func (h *holder) HoldsLarge() int64      { return h.holds.Load() }

// The large answers that a session holds count for its connection.
func TestSessionsThatHoldLargeAnswers(t *testing.T) {
	large := loop.NewLargeBudget(100)
	var mu sync.Mutex
	holders := make(map[netip.Addr]*holder)
	closed := make(chan netip.Addr, 10)
	server, err := loop.New(loop.Config{
		Large: large,
		New: func(c *loop.Conn) loop.Session {
			mu.Lock()
			defer mu.Unlock()
			h := new(holder)
			holders[c.RemoteAddr().Addr()] = h
			return h
		},
		OnClose: func(c *loop.Conn, err error) {
			if errors.Is(err, loop.ErrLarge) {
				closed <- c.RemoteAddr().Addr()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Serve(l); err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown(t.Context())
	hold := func(ip string, n int64) {
		t.Helper()
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
		c, err := d.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := io.WriteString(c, "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		holders[netip.MustParseAddr(ip)].holds.Add(n)
		server.HoldLarge(n)
	}
	hold("127.0.0.3", 30)
	hold("127.0.0.66", 60)
	hold("127.0.0.4", 20)
	select {
	case got := <-closed:
		if got != netip.MustParseAddr("127.0.0.66") {
			t.Errorf("%v was closed, want 127.0.0.66", got)
		}
	case <-time.After(20 * time.Second):
		t.Error("no connection was closed")
	}
}

// Connections of one address that do not read their answers hold all places: some of them are
// closed to make room, and idle ones of other addresses stay.
func TestRoomIsMadeByThoseThatLeaveBytes(t *testing.T) {
	const places, honest, size = 40, 6, 4 << 20
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) { c.MaxConnections = places })
		var pools []*client
		for i := range honest {
			c := y.dialFrom(fmt.Sprintf("127.0.1.%d", i+1))
			c.send("a\n")
			c.want("a\n")
			pools = append(pools, c)
		}
		time.Sleep(1100 * time.Millisecond) // from then on, idle ones may be closed to make room
		for range places {
			c := y.dialFrom("127.0.0.66")
			if m.tls {
				go io.WriteString(c, fmt.Sprintf("large %d\n", size)) // its handshake may wait for a place; ends with the connection
			} else {
				c.send(fmt.Sprintf("large %d\n", size))
			}
		}
		for i := range 10 {
			c := y.dialFrom(fmt.Sprintf("127.0.3.%d", i+1))
			c.send("b\n")
			c.want("b\n")
			pools = append(pools, c)
		}
		for _, c := range pools {
			c.send("c\n")
			c.want("c\n")
		}
		// On a slow machine, some of the crowd are closed before their request is answered.
		closes := y.server.Stats().Closes
		if n := closes["room-crowd"]; n == 0 || n+closes["room-unproven"]+closes["room-address"] < 10 {
			t.Errorf("closed by reason: %v, want 10 or more of the address with the most, some of them in use", closes)
		}
	})
}

// Connections from a trusted proxy are counted one by one when room is made.
func TestRoomIsNotMadeByProxies(t *testing.T) {
	const places = 40
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) {
			c.MaxConnections = places
			c.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.77/32")}
		})
		connect := func(ip string) *client {
			c := y.dialFrom(ip)
			c.send("a\n")
			c.want("a\n")
			return c
		}
		var proxied []*client
		for range 20 {
			proxied = append(proxied, connect("127.0.0.77"))
		}
		for range places - 20 {
			connect("127.0.0.66")
		}
		for i := range 5 {
			connect(fmt.Sprintf("127.0.3.%d", i+1))
		}
		for _, c := range proxied {
			c.send("b\n")
			c.want("b\n")
		}
		if n := y.server.Stats().Closes["room-address"]; n < 5 {
			t.Errorf("%d connections of the address with the most were closed, want 5 or more", n)
		}
	})
}
