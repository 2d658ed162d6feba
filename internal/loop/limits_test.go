package loop_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/buf"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// memoryInUse returns the size of the heap and the stacks after a garbage collection.
func memoryInUse() int64 {
	buf.Forget()
	// Twice, because the first collection only moves the contents of pools to their victim caches.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// A peer that sends requests without reading costs at most MaxOutput plus one answer of memory, and
// other connections continue.
func TestPipelineWithoutReading(t *testing.T) {
	const requests, size, maxOutput = 10_000, 4000, 64 << 10
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) { c.MaxOutput = maxOutput })
		other := y.dial()
		c := y.dial()
		go func() { // ends when all is sent, once the answers are read below
			_, _ = io.WriteString(c, strings.Repeat(fmt.Sprintf("big %d\n", size), requests))
		}()
		var before int64
		for i := range 50 {
			other.send("x\n")
			other.want("x\n")
			time.Sleep(5 * time.Millisecond)
			if n := y.server.Stats().Unwritten; n > maxOutput+size {
				t.Fatalf("%d bytes are unwritten, want at most %d", n, maxOutput+size)
			}
			if i == 25 {
				before = memoryInUse()
			}
		}
		// Over TLS this takes a while: the reader waits in a write at first.
		testkit.Eventually(t, patience, func() error {
			if n := y.server.Stats().Unwritten; n < maxOutput/2 {
				return fmt.Errorf("%d bytes are unwritten, want about %d", n, maxOutput)
			}
			return nil
		})
		if grown := memoryInUse() - before; grown > 1<<20 && !raceEnabled {
			t.Errorf("memory grew by %d bytes while no client read, want less than 1 MiB", grown)
		}
		for i := range requests {
			c.want(string(pattern[:size]))
			if i%1000 == 0 {
				other.send("y\n")
				other.want("y\n")
			}
		}
	})
}

// While an answer waits for a peer that does not read, the peer's requests are still read, within
// the bounds.
func TestReadingGoesOnBesideAWrite(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) { c.MaxOutput = 100 << 20 })
		c := y.dial()
		for range 3 {
			c.send(fmt.Sprintf("big %d\n", len(pattern)))
			time.Sleep(20 * time.Millisecond)
			c.send("idhold a\nhold b\n")
			a, b := y.hold(), y.hold()
			a.finish()
			b.finish()
			c.want(string(pattern))
			c.want("a\nb\n")
		}
	})
}

// At most MaxDeferred answers are owed.
func TestDeferredIsBounded(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) { c.MaxDeferred = 100 })
		c := y.dial()
		go func() { // ends when all is sent; the answers below make room
			_, _ = io.WriteString(c, strings.Repeat("hold a\nidhold b\n", 5000))
		}()
		done := make(map[string]int)
		for len(done) < 2 || done["a\n"]+done["b\n"] < 10_000 {
			r := y.hold()
			if n := y.server.Stats().Owed; n > 100 {
				t.Fatalf("%d answers are owed, want at most 100", n)
			}
			if len(y.held) > 99 {
				t.Fatalf("%d answers are held, want at most 100", len(y.held)+1)
			}
			done[r.text]++
			r.finish()
		}
		for range 10_000 {
			if _, err := c.r.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Large bodies are sent without being copied, so slow readers of them cost no memory.
func TestLargeBodiesWithSlowReaders(t *testing.T) {
	const readers, bodies, size = 8, 4, 1 << 20
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		before := memoryInUse()
		var clients []*client
		for range readers {
			c := y.dial()
			c.send(strings.Repeat(fmt.Sprintf("head\nbig %d\n", size), bodies))
			clients = append(clients, c)
		}
		time.Sleep(100 * time.Millisecond)
		if grown := memoryInUse() - before; grown > 4<<20 && !raceEnabled {
			t.Errorf("memory grew by %d bytes for %d bodies of 1 MiB that no client reads, want less than 4 MiB", grown, readers*bodies)
		}
		all(readers, func(i int) {
			for range bodies {
				got := make([]byte, 5+size)
				for n := 0; n < len(got); {
					k, err := clients[i].r.Read(got[n:min(n+100_000, len(got))])
					if err != nil {
						t.Errorf("after %d bytes: %v", n, err)
						return
					}
					n += k
					time.Sleep(200 * time.Microsecond)
				}
				if string(got[:5]) != "head\n" || !bytes.Equal(got[5:], pattern[:size]) {
					t.Error("a body differs from what was linked")
				}
			}
		})
	})
}

func TestTooLarge(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) { c.MaxInput = 10_000 })
		c := y.dial()
		ok := strings.Repeat("x", 9_990) + "\n"
		c.send(ok + ok)
		c.want(ok + ok)
		c.send("hold a\n")
		defer y.hold().finish()
		_, _ = c.Write(bytes.Repeat([]byte("x"), 10_001)) // the server may cut it off
		if err := y.ended(); !errors.Is(err, loop.ErrTooLarge) {
			t.Errorf("closed with %v, want %v", err, loop.ErrTooLarge)
		}
	})
}

// A connection without a request for IdleTimeout is closed gracefully, and no other one is.
func TestIdle(t *testing.T) {
	const idle = 1500 * time.Millisecond // longer than a busy machine delays the test
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) { c.IdleTimeout = idle })
		silent := y.dial()
		silent.send("a\n")
		silent.want("a\n")
		start := time.Now()
		busy := y.dial()
		for time.Since(start) < 2*idle {
			busy.send("b\n")
			busy.want("b\n")
			time.Sleep(idle / 10)
		}
		silent.wantEnd()
		silent.Close()
		if err := y.ended(); !errors.Is(err, loop.ErrIdle) {
			t.Errorf("closed with %v, want %v", err, loop.ErrIdle)
		}
		// A connection that waits for an answer is not idle, and its idle time starts after the
		// answer.
		busy.send("hold c\n")
		r := y.hold()
		time.Sleep(2 * idle)
		r.finish()
		busy.want("c\n")
		time.Sleep(idle / 4)
		busy.send("d\n")
		busy.want("d\n")
		busy.Close()
		if err := y.ended(); err != nil {
			t.Errorf("the busy one closed with %v, want nil", err)
		}
	})
}

// A request must arrive within PartialTimeout, even if its bytes trickle in.
func TestSlowRequests(t *testing.T) {
	const limit = time.Second
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) { c.PartialTimeout = limit })
		c := y.dial()
		c.send("a\n")
		c.want("a\n")
		time.Sleep(2 * limit) // idle, not slow
		start := time.Now()
		for time.Since(start) < 20*limit {
			if _, err := c.Write([]byte("x")); err != nil {
				break
			}
			time.Sleep(limit / 20)
			if len(y.closed) > 0 {
				break
			}
		}
		if err := y.ended(); !errors.Is(err, loop.ErrPartial) {
			t.Errorf("closed with %v, want %v", err, loop.ErrPartial)
		}
		if took := time.Since(start); took < limit || took > 6*limit {
			t.Errorf("closed after %v, want a little more than %v", took, limit)
		}
		// Complete requests in time, each in pieces, are allowed.
		c = y.dial()
		for range 6 {
			c.send("ab")
			time.Sleep(limit / 4)
			c.send("c\n")
			c.want("abc\n")
		}
	})
}

// A peer that does not read is disconnected after StallTimeout; one that reads slowly is not.
func TestStalled(t *testing.T) {
	const limit = time.Second
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) { c.StallTimeout = limit })
		c := y.dial()
		slow := y.dial()
		slow.send(fmt.Sprintf("big %d\n", len(pattern)))
		start := time.Now()
		c.send(fmt.Sprintf("big %d\nbig %d\n", len(pattern), len(pattern)))
		got := 0
		for piece := make([]byte, 64<<10); got < len(pattern); got += len(piece) {
			if _, err := io.ReadFull(slow.r, piece); err != nil {
				t.Fatalf("the slow reader: %v after %d bytes", err, got)
			}
			time.Sleep(2 * limit * time.Duration(len(piece)) / time.Duration(len(pattern)))
		}
		if err := y.ended(); !errors.Is(err, loop.ErrStalled) {
			t.Errorf("closed with %v, want %v", err, loop.ErrStalled)
		}
		if took := time.Since(start); took < limit {
			t.Errorf("closed after %v, want at least %v", took, limit)
		}
		slow.send("a\n")
		slow.want("a\n")
	})
}

// A peer that reads 60 KB/s makes progress, although the kernel, which buffers megabytes for it,
// accepts no more within StallTimeout.
func TestSlowIsNotStalled(t *testing.T) {
	const limit = 2 * time.Second
	eachPlain(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) { c.StallTimeout = limit })
		slow := y.dial()
		slow.send(fmt.Sprintf("big %d\n", len(pattern)))
		piece := make([]byte, 6_000)
		for start := time.Now(); time.Since(start) < 2*limit+limit/2; time.Sleep(100 * time.Millisecond) {
			if _, err := io.ReadFull(slow.r, piece); err != nil {
				t.Fatalf("the reader of 60 KB/s: %v after %v", err, time.Since(start))
			}
		}
		if st := y.server.Stats(); st.Closes["stalled"] != 0 {
			t.Error("the reader of 60 KB/s was disconnected")
		}
	})
}

// Connections beyond MaxConnections wait in the kernel and are served after others.
func TestMaxConnections(t *testing.T) {
	const places = 8 // with three, a client with one would hold more than a quarter and be closed to make room even while in use
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) {
			c.MaxConnections = places
			c.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} // each is one client
		})
		var first []*client
		for i := range places {
			c := y.dial()
			c.send("a\n")
			c.want("a\n")
			if i > 0 {
				c.send("hold b\n") // in use, so it is not closed to make room
				defer y.hold().finish()
			}
			first = append(first, c)
		}
		detached := first[0]
		detached.send("detach\n")
		h := y.takeDetached() // keeps its place
		late := make(chan *client, 5)
		for range 5 {
			go func() { // ends with its answer or at the test's deadline
				c := y.dial()
				c.send("late\n")
				c.want("late\n")
				late <- c
			}()
		}
		time.Sleep(100 * time.Millisecond)
		if st := y.server.Stats(); len(late) > 0 || y.made.Load() != places || st.Connections > places {
			t.Fatalf("%d connections beyond the limit were served, %d are open, want 0 and %d", len(late), st.Connections, places)
		}
		h.nc.Close()
		(<-late).Close()
		for _, c := range first[1:] {
			c.Close()
		}
		for range 4 {
			(<-late).Close()
		}
	})
}

// echo is a session that answers with the complete lines of its input.
type echo struct{}

func (echo) Data(c *loop.Conn, in []byte) int {
	n := bytes.LastIndexByte(in, '\n') + 1
	o := c.Output()
	o.B = append(o.B, in[:n]...)
	return n
}

func (echo) Closed(*loop.Conn, error) {}

// A request causes no allocation.
func TestRequestsAllocateNothing(t *testing.T) {
	if raceEnabled { // its own allocations are counted
		return
	}
	for _, size := range []int{5, 700, 3000} {
		eachPlain(t, func(t *testing.T, m mode) {
			y := startToy(t, m, func(c *loop.Config) { c.New = func(*loop.Conn) loop.Session { return echo{} } })
			c := y.dial()
			request := append(bytes.Repeat([]byte("x"), size), '\n')
			answer := make([]byte, len(request))
			once := func() {
				if _, err := c.Write(request); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(c.Conn, answer); err != nil {
					t.Fatal(err)
				}
			}
			for range 100 {
				once()
			}
			if n := testing.AllocsPerRun(1000, once); n != 0 {
				t.Errorf("%d bytes: %v allocations a request, want 0", size, n)
			}
		})
	}
}

// ReadAt returns the configured clock, read after the bytes arrived and once for all of them.
func TestReadAt(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		start := time.Now()
		y := startToy(t, m, func(c *loop.Config) { c.Clock = func() time.Duration { return time.Since(start) } })
		c := y.dial()
		last := time.Duration(0)
		for range 20 {
			sent := time.Since(start)
			c.send("at\nat\n")
			var at [2]time.Duration
			for i := range at {
				if _, err := fmt.Fscanf(c.r, "%d\n", &at[i]); err != nil {
					t.Fatal(err)
				}
			}
			if at[0] < sent || at[0] > time.Since(start) || at[0] <= last {
				t.Fatalf("ReadAt is %v, want between %v and now, and after %v", at[0], sent, last)
			}
			if at[0] != at[1] && !m.tls { // a read may have returned only one
				t.Logf("ReadAt is %v and %v for two requests of one write", at[0], at[1])
			}
			last = at[1]
		}
	})
}

func TestListenAndServeErrors(t *testing.T) {
	if _, err := loop.New(loop.Config{}); err == nil {
		t.Error("New without Config.New: no error, want one")
	}
	eachPlain(t, func(t *testing.T, m mode) {
		testkit.NoLeaks(t)
		s, err := loop.New(loop.Config{Backend: m.backend, New: func(*loop.Conn) loop.Session { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Serve(); err == nil {
			t.Error("Serve without listeners: no error, want one")
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown before Serve: %v, want nil", err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Serve(l); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Serve after Shutdown: %v, want %v", err, net.ErrClosed)
		}
		if _, err := l.Accept(); err == nil {
			t.Error("Serve failed and left its listener open")
		}
	})
}
