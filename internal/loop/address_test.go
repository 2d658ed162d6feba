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
		t.Errorf("%d connections were closed for their address, want 1", n)
	}
	a.Close()
	for !works(dial()) { // once the end of the first has been seen
		if t.Context().Err() != nil {
			t.Fatal("no place was given back")
		}
	}
	if !works(b) {
		t.Error("the second connection was closed")
	}
}
