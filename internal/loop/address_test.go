package loop_test

import (
	"io"
	"net"
	"testing"

	"github.com/slipstream-go/slipstream/internal/loop"
)

// farListener makes its connections look as if they came from another machine.
type farListener struct{ net.Listener }

type farConn struct{ net.Conn }

func (l farListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return farConn{c}, nil
}

func (farConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

func TestConnectionsPerAddress(t *testing.T) {
	server, err := loop.New(loop.Config{Backend: loop.Goroutines, MaxPerAddress: 2, New: func(*loop.Conn) loop.Session { return echo{} }})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Serve(farListener{l}); err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown(t.Context())
	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	works := func(c net.Conn) bool {
		_, _ = io.WriteString(c, "x\n") // an error shows in the read
		got := make([]byte, 2)
		_, err := io.ReadFull(c, got)
		return err == nil
	}
	a, b := dial(), dial()
	if !works(a) || !works(b) {
		t.Fatal("the first two connections do not work")
	}
	if works(dial()) {
		t.Error("a third connection of the address works")
	}
	if n := server.Stats().Closes["address"]; n != 1 {
		t.Errorf("%d connections were closed because of the limit per address, want 1", n)
	}
	a.Close()
	for !works(dial()) { // until the server has noticed that the first has ended
		if t.Context().Err() != nil {
			t.Fatal("no place was released")
		}
	}
	if !works(b) {
		t.Error("the second connection was closed")
	}
}

// TestAtLoopback: a connection reports whether its listener, not its own local address, is a
// loopback address. So does the connection that Detached receives.
func TestAtLoopback(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := newToy(t, m, func(c *loop.Config) {
			inner := c.New
			c.New = func(c *loop.Conn) loop.Session {
				word := "elsewhere\n"
				if c.AtLoopback() {
					word = "loopback\n"
				}
				out := c.Output()
				out.B = append(out.B, word...)
				return inner(c)
			}
		})
		var all []net.Listener
		want := make(map[string]string)
		for address, word := range map[string]string{"127.0.0.1:0": "loopback", "0.0.0.0:0": "elsewhere"} {
			listeners, err := loop.Listen("tcp", address, 2)
			if err != nil {
				t.Fatal(err)
			}
			_, port, _ := net.SplitHostPort(listeners[0].Addr().String())
			want[net.JoinHostPort("127.0.0.1", port)] = word
			for _, l := range listeners {
				if m.tls {
					server, _ := tlsConfigs(t)
					l = loop.Secure(l, server)
				}
				all = append(all, l)
			}
		}
		if err := y.server.Serve(all...); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(y.stop)
		for address, word := range want {
			y.addr = address
			for range 8 { // some loops share a listener
				c := y.dial()
				c.want(word + "\n")
				c.send("detach\n")
				h := y.takeDetached()
				if at := h.nc.(interface{ AtLoopback() bool }); at.AtLoopback() != (word == "loopback") {
					t.Errorf("a detached connection to %s: AtLoopback is %v", address, at.AtLoopback())
				}
				h.nc.Close()
			}
		}
	})
}
