package pipe

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// toyRequest is a request that a server has received.
type toyRequest struct {
	body   string
	ticket uint64
	peer   *toyPeer
}

// reply sends a reply with the body.
func (r toyRequest) reply(body string) { r.peer.send(r.frame(body)) }

func (r toyRequest) frame(body string) []byte {
	if !r.peer.tickets {
		return appendToy(nil, body)
	}
	b := appendToyTicket(nil, body)
	binary.BigEndian.PutUint64(b[4:], r.ticket)
	return b
}

// toyPeer is the server's end of a connection.
type toyPeer struct {
	conn    net.Conn
	tickets bool
	mu      sync.Mutex
}

func (p *toyPeer) send(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conn.Write(b)
}

// reset closes the connection so that the client sees a reset.
func (p *toyPeer) reset() {
	if c, ok := p.conn.(*net.TCPConn); ok {
		c.SetLinger(0)
	}
	if c, ok := p.conn.(*memConn); ok {
		c.Reset()
	}
	p.conn.Close()
}

// serve reads the greeting, answers it, and calls handle for each request until the connection ends.
func (p *toyPeer) serve(handle func(toyRequest)) {
	defer p.conn.Close()
	in := bufio.NewReader(p.conn)
	var hello [5]byte
	if _, err := io.ReadFull(in, hello[:]); err != nil {
		return
	}
	p.send([]byte("ok"))
	for {
		var n [4]byte
		if _, err := io.ReadFull(in, n[:]); err != nil {
			return
		}
		b := make([]byte, binary.BigEndian.Uint32(n[:]))
		if _, err := io.ReadFull(in, b); err != nil {
			return
		}
		r := toyRequest{peer: p}
		if p.tickets {
			r.ticket = binary.BigEndian.Uint64(b)
			b = b[8:]
		}
		r.body = string(b)
		handle(r)
	}
}

// toyServer accepts connections, in memory or of the system, and serves them.
type toyServer struct {
	t       testing.TB
	tickets bool
	handle  func(toyRequest)
	faults  func(dial int) faults // the faults of connections in memory; if nil, there are none
	network string                // "tcp", "unix", or "" for in-memory connections
	addr    string

	listener net.Listener // nil for in-memory connections
	wg       sync.WaitGroup
	mu       sync.Mutex
	// Guarded by mu.
	peers  []*toyPeer
	dials  int
	down   bool // refuses connections
	closed bool
}

// startToy starts a server that echoes requests unless handle is set.
func startToy(t testing.TB, s *toyServer) *toyServer {
	t.Helper()
	s.t = t
	if s.handle == nil {
		s.handle = func(r toyRequest) { r.reply(r.body) }
	}
	if s.network != "" {
		addr := "127.0.0.1:0"
		if s.network == "unix" {
			addr = filepath.Join(t.TempDir(), "s")
		}
		l, err := net.Listen(s.network, addr)
		if err != nil {
			t.Fatal(err)
		}
		s.addr = l.Addr().String()
		s.wg.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				s.accept(c)
			}
		})
		s.listener = l
	}
	t.Cleanup(func() {
		if s.listener != nil {
			s.listener.Close()
		}
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.closeConns()
		s.wg.Wait()
	})
	return s
}

func (s *toyServer) accept(c net.Conn) {
	p := &toyPeer{conn: c, tickets: s.tickets}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.down {
		p.reset()
		return
	}
	s.peers = append(s.peers, p)
	s.wg.Go(func() { p.serve(s.handle) })
}

// closeConns closes all connections.
func (s *toyServer) closeConns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.peers {
		p.conn.Close()
	}
	s.peers = nil
}

// last returns the newest connection.
func (s *toyServer) last() *toyPeer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.peers) == 0 {
		s.t.Fatal("no connection")
	}
	return s.peers[len(s.peers)-1]
}

var errRefused = errors.New("connection refused")

func (s *toyServer) dial(ctx context.Context) (net.Conn, error) {
	s.mu.Lock()
	n, down := s.dials, s.down || s.closed
	s.dials++
	s.mu.Unlock()
	if down {
		return nil, errRefused
	}
	if s.network != "" {
		var d net.Dialer
		return d.DialContext(ctx, s.network, s.addr)
	}
	var f faults
	if s.faults != nil {
		f = s.faults(n)
	}
	client, server := newMemLink(f)
	s.accept(server)
	return client, nil
}

func (s *toyServer) setDown(down bool) {
	s.mu.Lock()
	s.down = down
	s.mu.Unlock()
}

func (s *toyServer) protocol() Protocol {
	if s.tickets {
		return toyTickets{}
	}
	return toyFIFO{}
}

// engine returns a connected engine.
func (s *toyServer) engine(change func(*Config)) *Engine {
	s.t.Helper()
	e := s.unconnected(change)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := e.Connect(ctx); err != nil {
		s.t.Fatal(err)
	}
	return e
}

func (s *toyServer) unconnected(change func(*Config)) *Engine {
	cfg := Config{Protocol: s.protocol(), Traits: toyTraits(s.tickets), Addr: "toy", Dial: s.dial, Backoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond}
	if change != nil {
		change(&cfg)
	}
	e := New(cfg)
	s.t.Cleanup(func() { e.Close() })
	return e
}

// newCall returns a call with a request.
func (s *toyServer) newCall(e *Engine, body string) *Call {
	c := e.Acquire()
	c.Frame = s.appendRequest(c.Frame[:0], body)
	return c
}

func (s *toyServer) appendRequest(b []byte, body string) []byte {
	if s.tickets {
		return appendToyTicket(b, body)
	}
	return appendToy(b, body)
}

// replyOf returns the body of the reply to a call.
func (s *toyServer) replyOf(c *Call) string { return toyScanner{tickets: s.tickets}.body(c.Reply()) }

// echo makes one call and checks that the reply equals the request.
func (s *toyServer) echo(ctx context.Context, e *Engine, body string) error {
	c := s.newCall(e, body)
	defer c.Release()
	if err := e.Do(ctx, c); err != nil {
		return err
	}
	if got := s.replyOf(c); got != body {
		s.t.Errorf("sent %q, got %q", body, got)
	}
	return nil
}

// checkBalanced fails the test unless the counters show that every call ended exactly once.
func checkBalanced(t testing.TB, e *Engine) {
	t.Helper()
	// The charge of a call is returned after the call has left the table.
	testkit.Eventually(t, 5*time.Second, func() error {
		s := e.Snapshot()
		if s.Calls != s.Replies+s.OneWays+s.Failed+s.NeverWritten+uint64(s.Queued+s.Outstanding) {
			return fmt.Errorf("calls and results do not balance: %+v", s)
		}
		if s.Queued+s.Outstanding == 0 && s.HeldBytes != 0 && s.Connected > 0 {
			return fmt.Errorf("%d bytes are charged while there are no calls", s.HeldBytes)
		}
		return nil
	})
	if n := e.Snapshot().Backstop; n != 0 {
		t.Errorf("the backstop made %d writes", n)
	}
}
