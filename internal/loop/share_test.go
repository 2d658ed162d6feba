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

// What was read and waits for its turn is answered: the end of the peer's bytes, the time limit
// of idle connections and a shutdown come after it, and other connections in between.
func TestWhatWaitsForItsTurn(t *testing.T) {
	const lines = 2000
	eachPlain(t, func(t *testing.T, m mode) {
		for _, name := range []string{"the peer ends", "shutdown"} {
			t.Run(name, func(t *testing.T) {
				testkit.NoLeaks(t)
				s, err := loop.New(loop.Config{Backend: m.backend, Loops: 1, New: func(*loop.Conn) loop.Session { return dear{} }})
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
				ended := make(chan error, 1)
				shutdown := func() { ended <- s.Shutdown(context.Background()) }
				c, err := net.Dial("tcp", listeners[0].Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(20 * time.Second))
				if _, err := io.WriteString(c, strings.Repeat("x\n", lines)); err != nil {
					t.Fatal(err)
				}
				r := bufio.NewReader(c)
				if line, err := r.ReadString('\n'); err != nil || line != "x\n" {
					t.Fatalf("%q, %v", line, err)
				}
				if name == "shutdown" {
					go shutdown() // awaited below
				} else if err := c.(*net.TCPConn).CloseWrite(); err != nil {
					t.Fatal(err)
				}
				rest, err := io.ReadAll(r)
				if err != nil || len(rest) != 2*(lines-1) {
					t.Errorf("%d bytes after the first line, %v; want %d and the end", len(rest), err, 2*(lines-1))
				}
				if name != "shutdown" {
					go shutdown() // awaited below
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// slow answers like dear, and lets so much time pass that a sweep comes while many connections
// wait for their turn.
type slow struct{ dear }

func (s slow) Data(c *loop.Conn, in []byte) (consumed int) {
	time.Sleep(time.Millisecond)
	return s.dear.Data(c, in)
}

// An event that comes while a connection waits for its turn, here the end of the peer's bytes,
// does not make it idle: a shutdown answers what was read.
func TestEventWhileWaitingForItsTurn(t *testing.T) {
	const conns, lines = 40, 5
	eachPlain(t, func(t *testing.T, m mode) {
		testkit.NoLeaks(t)
		s, err := loop.New(loop.Config{Backend: m.backend, Loops: 1, New: func(*loop.Conn) loop.Session { return slow{} }})
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
		var peers [conns]net.Conn
		var readers [conns]*bufio.Reader
		for i := range peers {
			if peers[i], err = net.Dial("tcp", listeners[0].Addr().String()); err != nil {
				t.Fatal(err)
			}
			defer peers[i].Close()
			_ = peers[i].SetDeadline(time.Now().Add(20 * time.Second))
			readers[i] = bufio.NewReader(peers[i])
		}
		for _, c := range peers {
			if _, err := io.WriteString(c, strings.Repeat("x\n", lines)); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range readers { // then all lines have been read
			if line, err := r.ReadString('\n'); err != nil || line != "x\n" {
				t.Fatalf("%q, %v", line, err)
			}
		}
		ended := make(chan error, 1)
		go func() { ended <- s.Shutdown(context.Background()) }() // awaited below
		for _, c := range peers {
			if err := c.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
		}
		for i, r := range readers {
			if rest, err := io.ReadAll(r); err != nil || len(rest) != 2*(lines-1) {
				t.Errorf("connection %d: %d bytes after the first line, %v; want %d and the end", i, len(rest), err, 2*(lines-1))
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
