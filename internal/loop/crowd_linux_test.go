package loop_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// crowdSession consumes what it is given. It blocks its loop on command, and records how many
// unread bytes the kernel holds for connections when it answers a small request.
type crowdSession struct {
	blocked chan struct{}
	release chan struct{}
	port    atomic.Int64
	unread  atomic.Int64
}

func (s *crowdSession) Data(c *loop.Conn, in []byte) (consumed int) {
	switch {
	case bytes.HasPrefix(in, []byte("block\n")):
		close(s.blocked)
		<-s.release
	case bytes.HasPrefix(in, []byte("small\n")):
		s.unread.Store(unreadAt(uint16(s.port.Load())))
		o := c.Output()
		o.B = append(o.B, "answer\n"...)
	}
	return len(in)
}

// unreadAt returns how many bytes the kernel holds for the accepted connections of a port: rx_queue
// in /proc/net/tcp, see proc_pid_net(5).
func unreadAt(port uint16) (n int64) {
	text, _ := os.ReadFile("/proc/net/tcp")
	local := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 5 || !strings.HasSuffix(f[1], local) || f[3] != "01" { // ESTABLISHED
			continue
		}
		_, queue, _ := strings.Cut(f[4], ":")
		bytes, _ := strconv.ParseInt(queue, 16, 64)
		n += bytes
	}
	return n
}

func (*crowdSession) Closed(*loop.Conn, error) {}

// TestCrowdIsNotReadBeforeOthersAreAnswered: of many connections that have sent much, only one is
// read. The loop leaves the others unread until it has answered a connection that has sent little.
//
// mutant: turns-bulk-read-first
func TestCrowdIsNotReadBeforeOthersAreAnswered(t *testing.T) {
	const crowd, size = 100, 25 << 10
	testkit.NoLeaks(t)
	session := &crowdSession{blocked: make(chan struct{}), release: make(chan struct{})}
	server, err := loop.New(loop.Config{Backend: loop.Epoll, Loops: 1, New: func(*loop.Conn) loop.Session { return session }})
	if err != nil {
		t.Fatal(err)
	}
	listeners, err := loop.Listen("tcp", "127.0.0.1:0", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Serve(listeners...); err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown(context.Background())
	session.port.Store(int64(listeners[0].Addr().(*net.TCPAddr).Port))
	dial := func() net.Conn {
		c, err := net.Dial("tcp", listeners[0].Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		return c
	}
	send := func(c net.Conn, text []byte) {
		if _, err := c.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	answered := func(c net.Conn) {
		answer := make([]byte, len("answer\n"))
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "answer\n" {
			t.Fatalf("%q, %v", answer, err)
		}
	}
	var many []net.Conn
	for range crowd {
		c := dial()
		send(c, []byte("small\n")) // so that the connection has been accepted
		answered(c)
		many = append(many, c)
	}
	small := dial()
	send(small, []byte("small\n"))
	answered(small)

	send(dial(), []byte("block\n"))
	<-session.blocked
	for _, c := range many {
		send(c, bytes.Repeat([]byte("x"), size))
	}
	send(small, []byte("small\n"))
	testkit.Eventually(t, time.Minute, func() error {
		if n := unreadAt(uint16(session.port.Load())); n < crowd*size {
			return fmt.Errorf("%d of %d bytes have arrived", n, crowd*size)
		}
		return nil
	})
	close(session.release)
	answered(small)
	if unread := session.unread.Load(); unread < crowd*size*9/10 {
		t.Errorf("when a small request is answered, %d bytes of the crowd's %d are unread", unread, crowd*size)
	}
	for _, c := range many {
		c.Close()
	}
}
