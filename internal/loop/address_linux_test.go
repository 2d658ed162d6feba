package loop

import (
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// echoing is a session that sends back what it receives.
type echoing struct{}

func (echoing) Data(c *Conn, in []byte) int {
	c.Prove()
	c.Output().B = append(c.Output().B, in...)
	return len(in)
}
func (echoing) Closed(*Conn, error) {}

// Event loops enforce the limit on connections per address. The test gives a loop connections as if
// they had been accepted from another machine.
func TestConnectionsPerAddressOnLoops(t *testing.T) {
	server, err := New(Config{Backend: Epoll, Loops: 2, MaxPerAddress: 2, New: func(*Conn) Session { return echoing{} }})
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
	loops := server.engine.(*epollEngine).loops
	come := func(from string, n int) net.Conn {
		t.Helper()
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		peer := &unix.SockaddrInet6{Port: 1}
		copy(peer.Addr[:], net.ParseIP(from).To16())
		l := loops[n%len(loops)]
		if !server.takePlace() || !l.post(func() { l.adopt(pair[0], peer, false) }) {
			t.Fatal("the loop has ended")
		}
		f := os.NewFile(uintptr(pair[1]), "client")
		defer f.Close()
		c, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	works := func(c net.Conn) bool {
		_ = c.SetDeadline(time.Now().Add(30 * time.Second)) // an error shows in the read
		_, _ = io.WriteString(c, "x")
		_, err := io.ReadFull(c, make([]byte, 1))
		return err == nil
	}
	first, second := come("192.0.2.1", 0), come("192.0.2.1", 1)
	if !works(first) || !works(second) {
		t.Fatal("the first two connections do not work")
	}
	if works(come("192.0.2.1", 0)) || works(come("192.0.2.1", 1)) {
		t.Error("a third connection of the address works")
	}
	if !works(come("2001:db8::1", 0)) || !works(come("2001:db8::2", 1)) || works(come("2001:db8::3", 0)) {
		t.Error("an IPv6 network does not count as one address")
	}
	if n := server.Stats().Closes["address"]; n != 3 {
		t.Errorf("%d connections were closed because of the limit per address, want 3", n)
	}
	first.Close()
	for i := 0; ; i++ { // until the server has noticed that the first has ended
		if works(come("192.0.2.1", i)) {
			break
		}
	}
	if !works(second) {
		t.Error("the second connection was closed")
	}
	testkit.Eventually(t, patience, func() error { // every place is free again
		if n, want := server.Connections(), int64(4); n != want {
			return fmt.Errorf("%d places are in use, want %d", n, want)
		}
		return nil
	})
}

// listed is a source of peers that a test has made up.
type listed []Peer

func (l listed) Survey(dst []Peer) []Peer { return append(dst, l...) }

// Input since the survey does not cause surveyed connections to be closed: the next survey sees it.
func TestReviewClosesForWhatItSaw(t *testing.T) {
	var cut []string
	b := NewLargeBudget(100)
	peers := peersOf(t, `
a1 192.0.2.1 0 -
a2 192.0.2.1 0 -
b1 192.0.2.2 0 -
`, &cut)
	for i, n := range []int64{60, 50, 10} {
		peers[i].Large = n
	}
	defer b.Join(&source{listed(peers)})()
	b.Add(500)
	if n := b.Review(); n != 1 || len(cut) != 1 || cut[0] != "a1 large" {
		t.Errorf("%d were closed: %v, want the largest debt of the address that owes most", n, cut)
	}
}

// A single answer that is larger than the budget is allowed. With more, the connection is closed,
// even if no other has unread output: a connection that uses up the budget would shut others out.
func TestReviewLeavesWhatIsAlone(t *testing.T) {
	var cut []string
	b := NewLargeBudget(100)
	peers := peersOf(t, "a1 192.0.2.1 0 -", &cut)
	defer b.Join(&source{listed(peers)})()
	for _, row := range []struct {
		admitted, more int64
		closed         int
	}{{500, 0, 0}, {500, 1, 1}, {60, 60, 1}, {500, 0, 0}} {
		if !b.Admits(row.admitted) {
			t.Fatal("the only answer is refused")
		}
		peers[0].Large = row.admitted + row.more
		b.Add(peers[0].Large)
		if n := b.Review(); n != row.closed {
			t.Errorf("%d bytes in addition to an only answer of %d: %d were closed, want %d", row.more, row.admitted, n, row.closed)
		}
		b.Add(-peers[0].Large)
	}
}

// source is comparable, as Join requires.
type source struct{ listed }
