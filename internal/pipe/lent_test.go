package pipe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// pages is memory that is overwritten when it is released.
type pages struct {
	b    []byte
	back atomic.Int32
}

func newPages(n int, fill byte) *pages {
	p := &pages{b: make([]byte, n)}
	for i := range p.b {
		p.b[i] = fill
	}
	return p
}

func (p *pages) Release() {
	for i := range p.b {
		p.b[i] = 0xEE
	}
	p.back.Add(1)
}

// lentBody returns a request of n bytes, most of which are lent, in several links.
func lentBody(tickets bool, n int, fill byte) (*slipstream.Body, []*pages) {
	var b slipstream.Body
	head := 1
	if tickets {
		head += 8
	}
	b.B = binary.BigEndian.AppendUint32(b.B, uint32(head+n))
	b.B = append(b.B, make([]byte, head)...)
	b.B[len(b.B)-1] = 'r'
	var all []*pages
	for n > 0 {
		part := min(n, 300_000)
		p := newPages(part, fill)
		all = append(all, p)
		b.Link(p.b, p)
		n -= part
	}
	return &b, all
}

// A stallingServer reads requests that repeat one letter, stops reading after the given number of bytes, and
// checks each request.
type stallingServer struct {
	t       testing.TB
	tickets bool
	stop    atomic.Int64 // stop reading after this number of bytes
	passed  chan struct{}
	at      chan struct{} // closed when it stops
	seen    chan string   // the letter and the length of each request
}

func (s *stallingServer) serve(conn net.Conn) {
	defer conn.Close()
	var hello [5]byte
	if _, err := io.ReadFull(conn, hello[:]); err != nil {
		return
	}
	conn.Write([]byte("ok"))
	in := io.Reader(&stalling{s, conn, 0})
	for {
		var head [4]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(in, body); err != nil {
			return
		}
		reply := append(append([]byte{}, head[:]...), body...)
		if s.tickets {
			body = body[8:]
		}
		if rest := strings.TrimLeft(string(body[1:]), string(body[1])); rest != "" {
			s.t.Errorf("a request of %d bytes %q ends with %d other bytes", len(body), body[1], len(rest))
		}
		s.seen <- fmt.Sprintf("%c %d", body[1], len(body)-1)
		conn.Write(reply)
	}
}

type stalling struct {
	*stallingServer
	conn net.Conn
	read int64
}

func (s *stalling) Read(b []byte) (int, error) {
	stop := s.stop.Load()
	if stop > 0 && s.read >= stop {
		close(s.at)
		<-s.passed
		s.stop.Store(0)
	} else if stop > 0 {
		b = b[:min(int64(len(b)), stop-s.read)]
	}
	n, err := s.conn.Read(b)
	s.read += int64(n)
	return n, err
}

// A call whose body is lent is canceled after the server has read some of it: it ends immediately, its memory
// is not released while it is still being written, the server gets whole requests, and the connection
// continues.
func TestCancelOfLentMemory(t *testing.T) {
	const size = 1 << 20
	certificate := testkit.SelfSigned(t, &x509.Certificate{DNSNames: []string{"toy"}}).Certificate
	r := testkit.Rand(t)
	for _, network := range []string{"", "unix", "tcp", "tls"} {
		for _, tickets := range []bool{false, true} {
			stops := []int64{1, 4, 5, 13, 14, 4096, 299_999, 300_014, size / 2, size, size + 4}
			for range 8 {
				stops = append(stops, 1+r.Int64N(size))
			}
			for _, stop := range stops {
				cancelLent(t, network, certificate, tickets, size, stop)
				if t.Failed() {
					t.Fatalf("network %q, tickets %v, stopped after %d bytes", network, tickets, stop)
				}
			}
		}
	}
}

func cancelLent(t *testing.T, network string, certificate tls.Certificate, tickets bool, size int, stop int64) {
	s := &stallingServer{t: t, tickets: tickets, passed: make(chan struct{}), at: make(chan struct{}), seen: make(chan string, 10)}
	s.stop.Store(stop)
	e := s.engine(network, certificate)
	defer e.Close()
	body, lentPages := lentBody(tickets, size, 'a')
	c := e.Acquire()
	c.SetBody(body)
	ctx, cancel := context.WithCancel(t.Context())
	if err := e.Start(ctx, c); err != nil {
		t.Fatal(err)
	}
	<-s.at
	// Another call is queued after it, and is not canceled.
	second, secondPages := lentBody(tickets, 100_000, 'b')
	after := e.Acquire()
	after.SetBody(second)
	if err := e.Start(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := c.Wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	c.Release()
	close(s.passed)
	if err := after.Wait(); err != nil {
		t.Errorf("the call after it: %v", err)
	}
	if secondPages[0].back.Load() != 0 {
		t.Error("memory was released before its call")
	}
	after.Release()
	for i, want := range []string{fmt.Sprint("a ", size), "b 100000"} {
		if got := <-s.seen; got != want {
			t.Errorf("request %d is %q, want %q", i, got, want)
		}
	}
	testkit.Eventually(t, 5*time.Second, func() error {
		for i, p := range append(lentPages, secondPages...) {
			if n := p.back.Load(); n != 1 {
				return fmt.Errorf("owner %d: released %d times, want 1", i, n)
			}
		}
		return nil
	})
	if v := e.Snapshot(); v.Reconnects != 0 {
		t.Errorf("%d reconnects", v.Reconnects)
	}
}

func (s *stallingServer) engine(network string, certificate tls.Certificate) *Engine {
	cfg := Config{Protocol: toyFIFO{}, Traits: toyTraits(s.tickets)}
	if s.tickets {
		cfg.Protocol = toyTickets{}
	}
	switch network {
	case "unix", "tcp":
		addr := "127.0.0.1:0"
		if network == "unix" {
			addr = s.t.TempDir() + "/s"
		}
		l, err := net.Listen(network, addr)
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { l.Close() })
		go func() { // ended by closing the listener
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go s.serve(conn) // ended by closing the engine
			}
		}()
		cfg.Dial = func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, l.Addr().String())
		}
	case "tls":
		cfg.Dial = func(ctx context.Context) (net.Conn, error) {
			client, server := net.Pipe()
			go s.serve(tls.Server(server, &tls.Config{Certificates: []tls.Certificate{certificate}}))
			conn := tls.Client(client, &tls.Config{InsecureSkipVerify: true})
			return conn, conn.HandshakeContext(ctx)
		}
	default:
		cfg.Dial = func(context.Context) (net.Conn, error) {
			client, server := newMemLink(faults{room: 10_000})
			go s.serve(server)
			return client, nil
		}
	}
	e := New(cfg)
	if err := e.Connect(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	return e
}

// panicking is an owner that panics, which owners must not do.
type panicking struct{ pages }

func (p *panicking) Release() {
	p.back.Add(1)
	panic("an owner's fault")
}

// An owner that panics does not prevent the release of other memory, and affects neither the caller nor the
// engine.
func TestOwnerThatPanics(t *testing.T) {
	s := startToy(t, &toyServer{network: "unix"})
	e := s.engine(nil)
	body, all := lentBody(false, 300_000, 'x')
	fault := &panicking{pages{b: body.Links[0].P}}
	body.Links = append([]slipstream.Link{{At: body.Links[0].At, P: body.Links[0].P[:100_000], Owner: fault}}, body.Links...)
	body.Links[1].P = body.Links[1].P[100_000:]
	c := e.Acquire()
	c.SetBody(body)
	if err := e.Do(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	c.Release()
	if fault.back.Load() != 1 || all[0].back.Load() != 1 {
		t.Errorf("the memory was released %d and %d times, want once each", fault.back.Load(), all[0].back.Load())
	}
	if err := s.echo(t.Context(), e, "rafter"); err != nil {
		t.Error(err)
	}
}

// Lent memory is released exactly once, however its call ends: never sent, dropped from the queue, cut off with
// its connection, refused, or sent twice.
func TestLentMemoryIsGivenBackOnce(t *testing.T) {
	for _, tickets := range []bool{false, true} {
		stalled, reading := make(chan struct{}), make(chan struct{}, 1)
		s := startToy(t, &toyServer{tickets: tickets, network: "unix", handle: func(r toyRequest) {
			if r.body == "rstall" {
				reading <- struct{}{}
				<-stalled
			}
			r.reply(r.body)
		}})
		e := s.engine(func(c *Config) { c.MaxBytes = 4 << 20 })
		var all []*pages
		try := func(n int, use func(c *Call)) {
			body, p := lentBody(tickets, n, 'x')
			all = append(all, p...)
			c := e.Acquire()
			c.SetBody(body)
			use(c)
			for _, one := range p {
				if one.back.Load() != 0 && !c.Spent() {
					t.Error("memory was released while its call could be sent again")
				}
			}
			c.Release()
		}
		try(100_000, func(*Call) {})
		try(8<<20, func(c *Call) { // larger than the bound
			if err := e.Do(t.Context(), c); slipstream.OutcomeOf(err) != slipstream.Overloaded {
				t.Error(err)
			}
		})
		try(600_000, func(c *Call) {
			for range 2 {
				if err := e.Do(t.Context(), c); err != nil {
					t.Error(err)
				}
			}
		})
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		try(100_000, func(c *Call) {
			if err := e.Do(canceled, c); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		stall := s.newCall(e, "rstall")
		if err := e.Start(t.Context(), stall); err != nil {
			t.Fatal(err)
		}
		<-reading
		try(600_000, func(c *Call) { // a part of it is written when the connection ends
			if err := e.Start(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			conn := socketAt(e, 0)
			testkit.Eventually(t, 10*time.Second, func() error {
				conn.mu.Lock()
				defer conn.mu.Unlock()
				if !conn.out.handed {
					return errors.New("the write does not wait for the server")
				}
				return nil
			})
			s.last().reset()
			close(stalled)
			if err := c.Wait(); slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
				t.Errorf("the call that was cut off: %v, want MaybeExecuted", err)
			}
		})
		if err := stall.Wait(); slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
			t.Errorf("the call before it: %v, want MaybeExecuted", err)
		}
		stall.Release()
		try(600_000, func(c *Call) {
			for err := errors.New("not yet sent"); err != nil; {
				err = e.Do(t.Context(), c)
			}
		})
		e.Close()
		try(100_000, func(c *Call) {
			if err := e.Do(t.Context(), c); slipstream.OutcomeOf(err) != slipstream.Closed {
				t.Error(err)
			}
		})
		for i, p := range all {
			if n := p.back.Load(); n != 1 {
				t.Errorf("tickets %v: owner %d of %d: released %d times, want 1", tickets, i, len(all), n)
			}
		}
	}
}

// A call whose body is lent moves with it when the connection ends before it was sent.
func TestLentMemoryMoves(t *testing.T) {
	s := startToy(t, &toyServer{network: "unix", tickets: true, handle: func(r toyRequest) {
		if r.body != "rhold" {
			r.reply(r.body)
		}
	}})
	e := s.engine(func(c *Config) { c.Traits.FirstDepth = 1 })
	first := s.newCall(e, "rhold")
	if err := e.Start(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	body, all := lentBody(true, 600_000, 'x')
	c := e.Acquire()
	c.SetBody(body)
	if err := e.Start(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 5*time.Second, func() error {
		if v := e.Snapshot(); v.Outstanding != 1 || v.Queued != 1 {
			return fmt.Errorf("%d calls outstanding and %d queued", v.Outstanding, v.Queued)
		}
		return nil
	})
	s.last().reset()
	if err := first.Wait(); slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Error(err)
	}
	first.Release()
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := s.replyOf(c); got != "r"+strings.Repeat("x", 600_000) {
		t.Errorf("the reply has %d bytes, want those of the request", len(got))
	}
	for i, p := range all {
		if p.back.Load() != 0 {
			t.Errorf("owner %d: memory was released before its call", i)
		}
	}
	c.Release()
	for i, p := range all {
		if n := p.back.Load(); n != 1 {
			t.Errorf("owner %d: released %d times, want 1", i, n)
		}
	}
	if v := e.Snapshot(); v.Moved == 0 {
		t.Error("no call moved")
	}
}
