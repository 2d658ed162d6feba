package loop

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// slotEcho echoes its input and publishes its connection.
type slotEcho struct{ closed chan error }

func (slotEcho) Data(c *Conn, in []byte) int {
	o := c.Output()
	o.B = append(o.B, in...)
	return len(in)
}

func (s slotEcho) Closed(_ *Conn, err error) { s.closed <- err }

// An event of a connection that has gone does not reach the connection that now has its slot.
func TestStaleEventsDoNotMeetTheNextConnection(t *testing.T) {
	closed := make(chan error, 10)
	made := make(chan *Conn, 10)
	s, err := New(Config{Backend: Epoll, Loops: 1, New: func(c *Conn) Session {
		made <- c
		return slotEcho{closed}
	}})
	if err != nil {
		t.Fatal(err)
	}
	listeners, err := Listen("tcp", "127.0.0.1:0", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(listeners...); err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown(t.Context())
	connect := func() (net.Conn, *epollConn) {
		nc, err := net.Dial("tcp", listeners[0].Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = nc.SetDeadline(time.Now().Add(10 * time.Second))
		ask(t, nc)
		return nc, (<-made).backend.(*epollConn)
	}
	l := s.engine.(*epollEngine).loops[0]
	onLoop := func(f func()) { // runs f there and waits
		done := make(chan struct{})
		l.post(func() { defer close(done); f() })
		<-done
	}

	first, old := connect()
	var stale unix.EpollEvent
	onLoop(func() {
		stale = unix.EpollEvent{Events: unix.EPOLLERR | unix.EPOLLHUP, Fd: int32(old.place), Pad: int32(l.slots[old.place].generation)}
	})
	first.Close()
	<-closed
	second, next := connect()
	defer second.Close()
	onLoop(func() {
		if next.place != old.place {
			t.Errorf("the next connection has slot %d, want %d again", next.place, old.place)
		}
		l.serve([]unix.EpollEvent{stale})
		if next.hangsUp || next.readable {
			t.Error("the event of a connection that has gone reached its successor")
		}
	})
	ask(t, second)

	// A generation that overflows skips 0, which is that of the listeners.
	onLoop(func() {
		l.slots[next.place].generation = ^uint32(0)
		l.close(next, nil)
		if l.slots[next.place].generation == 0 {
			t.Error("a slot has the generation 0")
		}
	})
}

// Mail that arrives while a loop is about to sleep is read before it sleeps. On one processor, the
// post happens while the loop yields, which is after its first check.
func TestMailBeforeTheSleep(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s, err := New(Config{Backend: Epoll, Loops: 1, New: func(*Conn) Session { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown(t.Context())
	l := s.engine.(*epollEngine).loops[0]
	l.yields = true // as run does if no processor is left for other goroutines
	const long = 2 * time.Second
	for range 20 {
		start := s.now()
		l.acceptAt = start + long // otherwise it would sleep forever
		posted := make(chan struct{})
		go func() { // ends immediately
			l.post(func() {})
			close(posted)
		}()
		l.wait()
		<-posted
		if took := s.now() - start; took > long/2 {
			t.Fatalf("the loop slept for %v although there was mail", took)
		}
		l.readMail()
	}
}

// parked is a session that defers one answer for each byte.
type parked struct{ all chan *Deferred }

func (p parked) Data(c *Conn, in []byte) int {
	for _, b := range in {
		p.all <- c.DeferAnyOrder(letter(b))
	}
	return len(in)
}

func (parked) Closed(*Conn, error) {}

// letter is an answer of one byte. That of '!' panics.
type letter byte

func (l letter) Write(c *Conn) {
	if l == '!' {
		panic("an answer that cannot be written")
	}
	o := c.Output()
	o.B = append(o.B, byte(l))
}

func (letter) Drop() {}

// Answers of one connection, given in any order, that become complete together are written
// together. One that panics ends only its own connection.
func TestAnswersAreWrittenTogether(t *testing.T) {
	const each = 20
	session := parked{make(chan *Deferred, each)}
	s, err := New(Config{Backend: Epoll, Loops: 1, New: func(*Conn) Session { return session }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown(t.Context())
	listeners, err := Listen("tcp", "127.0.0.1:0", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(listeners...); err != nil {
		t.Fatal(err)
	}
	l := s.engine.(*epollEngine).loops[0]
	var conns []net.Conn
	var all []*Deferred
	for i := range 3 {
		c, err := net.Dial("tcp", listeners[0].Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
		text := bytes.Repeat([]byte("x"), each)
		if i == 1 {
			text[1] = '!'
		}
		if _, err := c.Write(text); err != nil {
			t.Fatal(err)
		}
		for range each {
			all = append(all, <-session.all)
		}
	}
	before := s.Stats().Writes
	reached, gate := make(chan struct{}), make(chan struct{})
	l.post(func() { close(reached); <-gate })
	<-reached
	for _, d := range all {
		d.Complete()
	}
	close(gate)
	for i, c := range conns {
		if n, err := io.ReadFull(c, make([]byte, each)); (err != nil) != (i == 1) {
			t.Fatalf("connection %d: %d answers, %v", i, n, err)
		}
	}
	for range 2 { // the second one runs after the round of the first has published its counters
		done := make(chan struct{})
		l.post(func() { close(done) })
		<-done
	}
	if n := s.Stats().Writes - before; n != 2 {
		t.Errorf("%d writes of the answers to 2 connections, want 2", n)
	}
}

func ask(t *testing.T, nc net.Conn) {
	t.Helper()
	answer := make([]byte, 4)
	if _, err := io.WriteString(nc, "abcd"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(nc, answer); err != nil || string(answer) != "abcd" {
		t.Fatalf("got %q, %v, want the echo", answer, err)
	}
}
