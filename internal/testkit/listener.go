package testkit

import (
	"net"
	"sync"
	"testing"
)

// Listener is a server of a test on a free port of the loopback address. When the test ends, the
// server and its connections are closed.
type Listener struct {
	Addr string // immutable

	// Guarded by mu.
	mu    sync.Mutex
	conns []net.Conn
	ended bool // whether the test has ended
}

// Serve starts a server that calls serve with each connection and with the connection's number,
// starting from 0. Each call has a goroutine, and the connection is closed when it returns. The end
// of the test waits for the calls.
func Serve(t testing.TB, serve func(conn net.Conn, n int)) *Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Listener{Addr: l.Addr().String()}
	var serving sync.WaitGroup
	// Ends when the test ends, which closes the listener and waits.
	serving.Go(func() {
		for n := 0; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			if s.ended {
				conn.Close()
			}
			s.mu.Unlock()
			// Ends at the latest when the test ends, which closes the connection and waits.
			serving.Go(func() {
				defer conn.Close()
				serve(conn, n)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.mu.Lock()
		s.ended = true
		s.mu.Unlock()
		s.HangUp()
		serving.Wait()
	})
	return s
}

// HangUp closes all connections.
func (s *Listener) HangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.conns {
		conn.Close()
	}
	s.conns = nil
}
