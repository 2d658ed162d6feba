package faultproxy_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/faultproxy"
)

// patience bounds every read of these tests, so that a proxy that loses bytes makes a test fail
// instead of hang.
const patience = 10 * time.Second

// serve starts a TCP server whose connections are handled by handle.
func serve(t *testing.T, handle func(*net.TCPConn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	// Ends when the listener is closed; the cleanup does so and waits.
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			// Ends with the connection, which the proxy's Close ends at the latest.
			wg.Go(func() {
				defer c.Close()
				handle(c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

// echo hides the types from io.Copy, which would otherwise splice through pipes that package net
// keeps in a pool and that the leak check would report.
func echo(c *net.TCPConn) { io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c}) }

func dial(t *testing.T, p *faultproxy.Proxy) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

// start returns a proxy to an echo server, with leaks checked at the end.
func start(t *testing.T, plan faultproxy.Plan) *faultproxy.Proxy {
	t.Helper()
	testkit.NoLeaks(t)
	return faultproxy.Start(t, serve(t, echo), faultproxy.Options{Seed: testkit.Seed(t), Plan: faultproxy.Always(plan)})
}

func write(t *testing.T, c net.Conn, b []byte) {
	t.Helper()
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
}

func wantRead(t *testing.T, c net.Conn, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("read %q after %d bytes (%v), want %q", got[:n], n, err, want)
	}
}

// wantSilence checks that nothing arrives for a while.
func wantSilence(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	n, err := c.Read(make([]byte, 1))
	if nerr, ok := errors.AsType[net.Error](err); n != 0 || !ok || !nerr.Timeout() {
		t.Errorf("read %d bytes, %v; want silence", n, err)
	}
	c.SetReadDeadline(time.Now().Add(patience))
}

func wantReset(t *testing.T, c net.Conn) {
	t.Helper()
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read %d bytes, %v; want ECONNRESET", n, err)
	}
}

// wantRefused connects and expects a reset, which may arrive before connect(2) returns.
func wantRefused(t *testing.T, p *faultproxy.Proxy) {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err == nil {
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		_, err = c.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("connecting gave %v, want ECONNRESET", err)
	}
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i % 251)
	}
	return b
}

func TestForwardsUnharmed(t *testing.T) {
	p := start(t, faultproxy.Plan{})
	c := dial(t, p)
	data := pattern(3 << 20)
	var sent sync.WaitGroup
	// Ends when the echo server has read everything; waited for below.
	sent.Go(func() {
		c.Write(data)
		c.CloseWrite()
	})
	got, err := io.ReadAll(c)
	sent.Wait()
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes came back, %v; want the %d sent", len(got), err, len(data))
	}
	testkit.Eventually(t, patience, func() error {
		if s := p.Stats(); s.Open != 0 {
			return fmt.Errorf("%d connections open after both ends closed", s.Open)
		}
		return nil
	})
	want := faultproxy.Stats{Accepted: 1, UpBytes: int64(len(data)), DownBytes: int64(len(data))}
	if s := p.Stats(); s.Accepted != want.Accepted || s.UpBytes != want.UpBytes || s.DownBytes != want.DownBytes || len(s.Faults) != 0 {
		t.Errorf("stats %+v, want %+v", s, want)
	}
}

// A delay adds latency but takes no bandwidth: 20 pieces that leave over 40 ms
// arrive after 100 ms and not after 20 x 100 ms.
func TestDelayIsALongerCable(t *testing.T) {
	const delay = 100 * time.Millisecond
	p := start(t, faultproxy.Plan{Up: faultproxy.Link{Delay: delay}})
	c := dial(t, p)
	begin := time.Now()
	for i := range 20 {
		write(t, c, []byte{byte(i)})
		time.Sleep(2 * time.Millisecond)
	}
	wantRead(t, c, []byte{0})
	if took := time.Since(begin); took < delay {
		t.Errorf("the first byte took %v, want at least %v", took, delay)
	}
	wantRead(t, c, pattern(20)[1:])
	if took := time.Since(begin); took > 10*delay {
		t.Errorf("20 pieces took %v: the delays were added up", took)
	}
}

func TestJitterKeepsOrder(t *testing.T) {
	p := start(t, faultproxy.Plan{Up: faultproxy.Link{Jitter: 5 * time.Millisecond}, Down: faultproxy.Link{Jitter: 5 * time.Millisecond}})
	c := dial(t, p)
	data := pattern(200)
	for i := range data {
		write(t, c, data[i:i+1])
	}
	wantRead(t, c, data)
}

// TCP may join segments, so their sizes are visible only to a reader that reads each segment before
// the next one is sent. A delay between them ensures this.
func TestChop(t *testing.T) {
	testkit.NoLeaks(t)
	sizes := make(chan int, 100)
	addr := serve(t, func(c *net.TCPConn) {
		defer close(sizes)
		buf := make([]byte, 1024)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			sizes <- n
		}
	})
	// 300 bytes a second in pieces of 3 is one segment every 10 ms.
	plan := faultproxy.Plan{Up: faultproxy.Link{Chop: 3, BytesPerSecond: 300}}
	p := faultproxy.Start(t, addr, faultproxy.Options{Plan: faultproxy.Always(plan)})
	c := dial(t, p)
	write(t, c, pattern(32))
	c.CloseWrite()
	var total, whole int
	for n := range sizes {
		total += n
		if n == 3 {
			whole++
		}
	}
	if total != 32 || whole < 5 {
		t.Errorf("%d bytes in total and %d segments of 3, want 32 and most of 10", total, whole)
	}
}

func TestThrottle(t *testing.T) {
	p := start(t, faultproxy.Plan{Down: faultproxy.Link{BytesPerSecond: 100_000}})
	c := dial(t, p)
	begin := time.Now()
	data := pattern(30_000)
	write(t, c, data)
	wantRead(t, c, data)
	if took := time.Since(begin); took < 250*time.Millisecond || took > 3*time.Second {
		t.Errorf("30 kB at 100 kB/s took %v, want 0.3 s", took)
	}
}

// For a fault at any byte offset in either direction, exactly the bytes before it arrive.
func TestFaultAtByte(t *testing.T) {
	for _, action := range []faultproxy.Action{faultproxy.Cut, faultproxy.Reset, faultproxy.HalfClose, faultproxy.Blackhole, faultproxy.Stall} {
		t.Run(action.String(), func(t *testing.T) {
			for n := range 8 {
				testFaultAtByte(t, faultproxy.Fault{After: int64(n), Do: action}, false)
				testFaultAtByte(t, faultproxy.Fault{After: int64(n), Do: action}, true)
			}
		})
	}
}

func testFaultAtByte(t *testing.T, f faultproxy.Fault, up bool) {
	t.Helper()
	received := make(chan []byte, 1)
	hold := make(chan struct{})
	message := []byte("12345678")
	addr := serve(t, func(c *net.TCPConn) {
		if !up {
			// Wait until the client has connected; otherwise its dial would fail with the reset.
			c.Read(make([]byte, 1))
			c.Write(message)
			<-hold
			return
		}
		var got []byte
		buf := make([]byte, 64)
		for {
			// Wait long enough for the bytes before the fault, and then only long enough to see
			// that no more arrive.
			wait := patience
			if int64(len(got)) >= f.After {
				wait = 50 * time.Millisecond
			}
			c.SetReadDeadline(time.Now().Add(wait))
			n, err := c.Read(buf)
			got = append(got, buf[:n]...)
			if err != nil {
				break
			}
		}
		received <- got
	})
	link := faultproxy.Link{Faults: []faultproxy.Fault{f}}
	plan := faultproxy.Plan{Down: link}
	if up {
		plan = faultproxy.Plan{Up: link}
	}
	p := faultproxy.Start(t, addr, faultproxy.Options{Plan: faultproxy.Always(plan)})
	defer p.Close()
	defer close(hold)
	want := message[:f.After]
	if f.Do == faultproxy.Reset && f.After == 0 { // the dial itself may fail
		wantRefused(t, p)
		return
	}
	c := dial(t, p)
	defer c.Close()
	if up {
		c.Write(message) // fails if the reset comes first
		if got := <-received; !bytes.Equal(got, want) {
			t.Errorf("%v after %d bytes up: the server read %q, want %q", f.Do, f.After, got, want)
		}
	} else {
		write(t, c, []byte("?"))
		wantRead(t, c, want)
		switch f.Do {
		case faultproxy.Reset:
			wantReset(t, c)
		case faultproxy.Cut, faultproxy.HalfClose:
			if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("%v after %d bytes down: then read %d bytes, %v; want EOF", f.Do, f.After, n, err)
			}
		default:
			c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			if n, err := c.Read(make([]byte, 1)); n != 0 || err == io.EOF || errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%v after %d bytes down: then read %d bytes, %v; want silence", f.Do, f.After, n, err)
			}
		}
	}
	if got := p.Stats().Faults[f.Do]; got != 1 {
		t.Errorf("%v counted %d times, want once", f.Do, got)
	}
}

func TestHalfCloseLeavesTheOtherWayOpen(t *testing.T) {
	testkit.NoLeaks(t)
	// The server answers only after it has seen the end of the request.
	addr := serve(t, func(c *net.TCPConn) {
		got, err := io.ReadAll(c)
		fmt.Fprintf(c, "%s|%v", got, err)
	})
	plan := faultproxy.Plan{Up: faultproxy.Link{Faults: []faultproxy.Fault{{After: 3, Do: faultproxy.HalfClose}}}}
	p := faultproxy.Start(t, addr, faultproxy.Options{Plan: faultproxy.Always(plan)})
	c := dial(t, p)
	write(t, c, []byte("abcdef"))
	got, err := io.ReadAll(c)
	if err != nil || string(got) != "abc|<nil>" {
		t.Errorf("answer %q, %v; want the three bytes before the half-close", got, err)
	}
}

// A blackhole accepts everything: the sender is never blocked. A stall accepts no
// more than the buffers hold.
func TestBlackholeSwallowsAndStallBlocks(t *testing.T) {
	const much = 64 << 20 // more than the socket buffers of both hops
	blackhole := start(t, faultproxy.Plan{Up: faultproxy.Link{Faults: []faultproxy.Fault{{Do: faultproxy.Blackhole}}}})
	c := dial(t, blackhole)
	if n, err := c.Write(make([]byte, much)); err != nil {
		t.Errorf("the blackhole accepted %d of %d bytes: %v", n, much, err)
	}
	if got := blackhole.Stats().UpBytes; got != 0 {
		t.Errorf("%d bytes came out of the blackhole", got)
	}
	stall := start(t, faultproxy.Plan{Up: faultproxy.Link{Faults: []faultproxy.Fault{{Do: faultproxy.Stall}}}})
	c = dial(t, stall)
	c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	if n, err := c.Write(make([]byte, much)); err == nil {
		t.Errorf("the stall accepted all %d bytes", n)
	}
}

func TestStallForATime(t *testing.T) {
	p := start(t, faultproxy.Plan{Down: faultproxy.Link{Faults: []faultproxy.Fault{{After: 2, Do: faultproxy.Stall, For: 200 * time.Millisecond}}}})
	c := dial(t, p)
	begin := time.Now()
	write(t, c, []byte("abcd"))
	wantRead(t, c, []byte("ab"))
	wantRead(t, c, []byte("cd"))
	if took := time.Since(begin); took < 200*time.Millisecond {
		t.Errorf("took %v, want the stall of 200 ms", took)
	}
}

func TestStallAndResumeOfEverything(t *testing.T) {
	p := start(t, faultproxy.Plan{})
	c := dial(t, p)
	write(t, c, []byte("a"))
	wantRead(t, c, []byte("a"))
	p.Stall()
	write(t, c, []byte("b"))
	wantSilence(t, c)
	late := dial(t, p) // a connection made during the stall is stalled too
	write(t, late, []byte("c"))
	wantSilence(t, late)
	p.Resume()
	wantRead(t, c, []byte("b"))
	wantRead(t, late, []byte("c"))
}

func TestStallReplies(t *testing.T) {
	p := start(t, faultproxy.Plan{})
	c := dial(t, p)
	p.StallReplies()
	write(t, c, []byte("a"))
	testkit.Eventually(t, patience, func() error {
		if s := p.Stats(); s.UpBytes != 1 {
			return fmt.Errorf("the server got %d bytes, want 1", s.UpBytes)
		}
		return nil
	})
	wantSilence(t, c)
	p.Resume()
	wantRead(t, c, []byte("a"))
}

func TestCutResetRefuse(t *testing.T) {
	p := start(t, faultproxy.Plan{})
	c := dial(t, p)
	write(t, c, []byte("a"))
	wantRead(t, c, []byte("a"))
	p.Cut()
	if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("after Cut: %d bytes, %v; want EOF", n, err)
	}
	c = dial(t, p)
	write(t, c, []byte("a"))
	wantRead(t, c, []byte("a"))
	p.Reset()
	wantReset(t, c)
	p.Refuse(true)
	wantRefused(t, p)
	p.Refuse(false)
	c = dial(t, p)
	write(t, c, []byte("z"))
	wantRead(t, c, []byte("z"))
	s := p.Stats()
	if s.Faults[faultproxy.Cut] != 1 || s.Faults[faultproxy.Reset] != 1 || s.Refused != 1 || s.Accepted != 4 {
		t.Errorf("stats %+v, want 1 cut, 1 reset, 1 refused of 4", s)
	}
}

func TestTargetNotThere(t *testing.T) {
	testkit.NoLeaks(t)
	p := faultproxy.Start(t, fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t)), faultproxy.Options{})
	wantRefused(t, p)
}

func TestPlansFollowTheSeed(t *testing.T) {
	testkit.NoLeaks(t)
	addr := serve(t, echo)
	draw := func(seed uint64) []uint64 {
		var mu sync.Mutex
		drawn := make([]uint64, 5)
		p, err := faultproxy.Listen(addr, faultproxy.Options{Seed: seed, Plan: func(conn int, r *rand.Rand) faultproxy.Plan {
			mu.Lock()
			defer mu.Unlock()
			drawn[conn] = r.Uint64()
			return faultproxy.Plan{}
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for range drawn {
			c := dial(t, p)
			write(t, c, []byte("x"))
			wantRead(t, c, []byte("x"))
			c.Close()
		}
		mu.Lock()
		defer mu.Unlock()
		return drawn
	}
	a, again, other := draw(1), draw(1), draw(2)
	if !slices.Equal(a, again) {
		t.Errorf("one seed drew %v, then %v", a, again)
	}
	if slices.Equal(a, other) {
		t.Errorf("two seeds drew %v", a)
	}
}

func TestSequence(t *testing.T) {
	testkit.NoLeaks(t)
	p := faultproxy.Start(t, serve(t, echo), faultproxy.Options{Plan: faultproxy.Sequence(faultproxy.Plan{Refuse: true}, faultproxy.Plan{})})
	wantRefused(t, p)
	for range 2 {
		c := dial(t, p)
		write(t, c, []byte("x"))
		wantRead(t, c, []byte("x"))
	}
}

func TestCloseEndsStalledConnections(t *testing.T) {
	p := start(t, faultproxy.Plan{Up: faultproxy.Link{Delay: time.Hour}})
	c := dial(t, p)
	write(t, c, []byte("x"))
	testkit.Eventually(t, patience, func() error {
		if p.Stats().Open != 1 {
			return errors.New("not connected yet")
		}
		return nil
	})
	p.Close()
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("read %d bytes, %v after Close", n, err)
	}
	p.Close()
}
