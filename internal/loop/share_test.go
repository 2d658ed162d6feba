package loop_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// dear echoes lines, each of which takes a whole turn.
type dear struct{}

func (dear) Data(c *loop.Conn, in []byte) (consumed int) {
	for !c.Full() {
		n := bytes.IndexByte(in[consumed:], '\n') + 1
		if n == 0 {
			break
		}
		o := c.Output()
		o.B = append(o.B, in[consumed:consumed+n]...)
		consumed += n
		c.Spend(1000)
	}
	return consumed
}

func (dear) Closed(*loop.Conn, error) {}

// slow answers like dear, but slowly enough that a sweep happens while many connections wait for
// their turn.
type slow struct{ dear }

func (s slow) Data(c *loop.Conn, in []byte) (consumed int) {
	time.Sleep(time.Millisecond)
	return s.dear.Data(c, in)
}

// sharing is a server with one loop, and the behavior of its sessions.
type sharing struct {
	*testing.T
	server *loop.Server
	addr   string
}

func startSharing(t *testing.T, m mode, session loop.Session) *sharing {
	t.Helper()
	testkit.NoLeaks(t)
	s, err := loop.New(loop.Config{Backend: m.backend, Loops: 1, New: func(*loop.Conn) loop.Session { return session }})
	if err != nil {
		t.Fatal(err)
	}
	listeners, err := loop.Listen("tcp", "127.0.0.1:0", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(listeners...); err != nil {
		t.Fatal(err)
	}
	return &sharing{t, s, listeners[0].Addr().String()}
}

// shutdown starts a shutdown and returns a function that waits until it is complete.
func (s *sharing) shutdown() (wait func()) {
	ended := make(chan error, 1)
	go func() { ended <- s.server.Shutdown(context.Background()) }() // ends when the server does
	return func() {
		if err := <-ended; err != nil {
			s.Error(err)
		}
	}
}

// waiting is a connection that has sent lines.
type waiting struct {
	*sharing
	*net.TCPConn
	r     *bufio.Reader
	lines int
}

func (s *sharing) dial(lines int) *waiting {
	s.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return &waiting{s, c.(*net.TCPConn), bufio.NewReader(c), lines}
}

func (w *waiting) send() {
	w.Helper()
	if _, err := io.WriteString(w.TCPConn, strings.Repeat("x\n", w.lines)); err != nil {
		w.Fatal(err)
	}
}

// first reads the first line, after which the server has read all input.
func (w *waiting) first() {
	w.Helper()
	if line, err := w.r.ReadString('\n'); err != nil || line != "x\n" {
		w.Fatalf("%q, %v", line, err)
	}
}

// end closes the direction to the server.
func (w *waiting) end() {
	w.Helper()
	if err := w.CloseWrite(); err != nil {
		w.Fatal(err)
	}
}

// rest reads the other lines and the end.
func (w *waiting) rest() {
	w.Helper()
	if rest, err := io.ReadAll(w.r); err != nil || len(rest) != 2*(w.lines-1) {
		w.Errorf("%d bytes after the first line, %v; want %d and the end", len(rest), err, 2*(w.lines-1))
	}
}

// Input that was read and waits for its turn is answered: the end of the peer's bytes, the time
// limit of idle connections and a shutdown take effect after it, and other connections are served
// in between.
func TestWhatWaitsForItsTurn(t *testing.T) {
	eachPlain(t, func(t *testing.T, m mode) {
		for _, name := range []string{"the peer ends", "shutdown"} {
			t.Run(name, func(t *testing.T) {
				s := startSharing(t, m, slow{}) // 300 ms, in which the peer or the shutdown comes
				c := s.dial(300)
				c.send()
				c.first()
				wait := func() {}
				if name == "shutdown" {
					wait = s.shutdown()
				} else {
					c.end()
				}
				c.rest()
				if name != "shutdown" {
					wait = s.shutdown()
				}
				wait()
			})
		}
	})
}

// An event that comes while a connection waits for its turn, here the end of the peer's bytes,
// does not make it idle: a shutdown answers what was read.
func TestEventWhileWaitingForItsTurn(t *testing.T) {
	eachPlain(t, func(t *testing.T, m mode) {
		s := startSharing(t, m, slow{})
		conns := make([]*waiting, 40)
		for i := range conns {
			conns[i] = s.dial(5)
		}
		for _, do := range []func(*waiting){(*waiting).send, (*waiting).first} {
			for _, c := range conns {
				do(c)
			}
		}
		wait := s.shutdown()
		for _, do := range []func(*waiting){(*waiting).end, (*waiting).rest} {
			for _, c := range conns {
				do(c)
			}
		}
		wait()
	})
}
