package pipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/buf"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// heapInUse returns the heap and stack memory in use after a garbage collection.
func heapInUse() (heap, stacks int64) {
	buf.Forget()
	// Twice, because the first collection only moves the contents of pools to their victim caches.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse), int64(m.StackInuse)
}

// 10,000 goroutines submit calls to a peer that never answers and does not even read: the memory of the engine
// stays within its bound, and calls are refused immediately.
func TestMemoryIsBounded(t *testing.T) {
	testkit.NoLeaks(t)
	const bound = 16 << 20
	for i, size := range []int{16, 1000, 40_000} {
		stop := make(chan struct{})
		s := startToy(t, &toyServer{tickets: i%2 == 0, network: "tcp", handle: func(toyRequest) { <-stop }})
		e := s.engine(func(c *Config) { c.MaxBytes, c.MaxCalls, c.StallTimeout = bound, 1<<20, -1 })
		flood(t, s, e, "r"+strings.Repeat("x", size), bound)
		close(stop)
		e.Close()
	}
}

func flood(t *testing.T, s *toyServer, e *Engine, body string, bound int64) {
	const callers, each = 10_000, 10
	if err := warmUp(s, e); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	var wg, tried sync.WaitGroup
	var refused, ended atomic.Int64
	release := completerFunc(func(c *Call) { ended.Add(1); c.Release() })
	took := make([]time.Duration, callers*each)
	// The goroutines wait at the start and at the end, so that their memory counts in neither measurement.
	start, stop := make(chan struct{}), make(chan struct{})
	for g := range callers {
		tried.Add(1)
		wg.Go(func() {
			<-start
			for i := range each {
				c := s.newCall(e, body)
				began := time.Now()
				if err := e.StartFunc(context.Background(), c, release); err != nil {
					took[g*each+i] = time.Since(began)
					if slipstream.OutcomeOf(err) != slipstream.Overloaded {
						t.Error(err)
					}
					refused.Add(1)
					c.Release()
				}
			}
			tried.Done()
			<-stop
		})
	}
	before, _ := heapInUse()
	close(start)
	tried.Wait()
	after, _ := heapInUse()
	close(stop)
	wg.Wait()
	v := e.Snapshot()
	t.Logf("requests of %d bytes: %d calls are charged %d of %d bytes, the heap grew by %d, %d calls refused",
		len(body), v.Queued+v.Outstanding, v.HeldBytes, bound, after-before, refused.Load())
	if v.HeldBytes > bound || after-before > bound*11/10 {
		t.Errorf("the bound of %d bytes is exceeded: charged %d, the heap grew by %d", bound, v.HeldBytes, after-before)
	}
	took = slices.DeleteFunc(took, func(d time.Duration) bool { return d == 0 })
	if slices.Sort(took); len(took) == 0 {
		t.Fatal("no call was refused")
	}
	t.Logf("time to refuse: p50 %v, p99 %v", took[len(took)/2], took[len(took)*99/100])
	if took[len(took)/2] > 50*time.Microsecond {
		t.Errorf("the median refusal took %v, want at most 50µs", took[len(took)/2])
	}
	e.Close()
	if got := ended.Load(); got != int64(callers*each)-refused.Load() {
		t.Errorf("%d of %d accepted calls have ended", got, int64(callers*each)-refused.Load())
	}
}

func warmUp(s *toyServer, e *Engine) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	return s.echo(ctx, e, "rwarm")
}

// An idle connection takes less than 14 KiB, including its engine, both when it is new and after a burst. The
// server is another process, so that only the client is measured.
func TestIdleConnectionsAreSmall(t *testing.T) {
	testkit.NoLeaks(t)
	connections, limit := int64(300), int64(14<<10)
	if raceEnabled { // the detector needs memory, too
		connections, limit = 20, 1<<20
	}
	for _, tickets := range []bool{false, true} {
		server := testkit.StartChild(t, "server")
		addr := server.Line()
		var p Protocol = toyFIFO{}
		if tickets {
			p = toyTickets{}
		}
		cfg := Config{Protocol: p, Traits: toyTraits(tickets), StallTimeout: time.Second, Dial: func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", addr)
		}}
		s := &toyServer{t: t, tickets: tickets}
		connect := func() *Engine {
			e := New(cfg)
			if err := e.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			return e
		}
		e := connect() // for one-time allocations of the process
		burst(t, s, e)
		e.Close()
		heapBefore, stacksBefore := heapInUse()
		var engines []*Engine
		for range connections {
			e := connect()
			engines = append(engines, e)
			defer e.Close()
		}
		checkSize := func(what string) {
			t.Helper()
			var heap, stack int64
			testkit.Eventually(t, 10*time.Second, func() error { // stacks shrink during garbage collection
				heapNow, stacksNow := heapInUse()
				heap, stack = (heapNow-heapBefore)/connections, (stacksNow-stacksBefore)/connections
				if heap+stack > limit {
					return fmt.Errorf("an idle connection %s takes %d bytes of heap and %d of stacks, want less than %d", what, heap, stack, limit)
				}
				return nil
			})
			t.Logf("tickets %v: an idle connection %s takes %d bytes of heap and %d of stacks", tickets, what, heap, stack)
		}
		checkSize("that is new")
		for _, e := range engines {
			burst(t, s, e)
		}
		time.Sleep(time.Second)
		checkSize("after a burst")
		for _, e := range engines {
			if err := s.echo(t.Context(), e, "rstill there"); err != nil {
				t.Error(err)
			}
		}
	}
}

// burst makes many calls, some with large requests and replies.
func burst(t *testing.T, s *toyServer, e *Engine) {
	var cs []*Call
	for i := range 2_000 {
		n := 10
		if i%100 == 0 {
			n = 20_000
		}
		cs = append(cs, s.newCall(e, "r"+strings.Repeat("x", n)))
	}
	if err := e.DoAll(t.Context(), cs); err != nil {
		t.Fatal(err)
	}
	for _, c := range cs {
		c.Release()
	}
}

// serveSmall prints its address, and echoes what it receives on every connection after the greeting. It runs in
// a child process and does not return.
func serveSmall() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	for {
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		// Stopped when the test kills the process.
		go func() {
			defer c.Close()
			if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
				return
			}
			c.Write([]byte("ok"))
			io.Copy(c, struct{ io.Reader }{c})
		}()
	}
}

// A call allocates nothing in the steady state.
func TestCallsAllocateNothing(t *testing.T) {
	testkit.NoLeaks(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector empties pools
	for _, tickets := range []bool{false, true} {
		for _, network := range []string{"tcp", "unix"} {
			// The server must run elsewhere, because its allocations would count, too.
			s := &toyServer{t: t, tickets: tickets}
			e := testEngine(t, s.protocol(), echoServer(t), nil)
			later, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			for name, ctx := range map[string]context.Context{"background": context.Background(), "deadline": later} {
				body := "r0123456789012345"
				once := func() {
					c := s.newCall(e, body)
					if err := e.Do(ctx, c); err != nil {
						t.Fatal(err)
					}
					c.Release()
				}
				for range 500 {
					once()
				}
				if n := testing.AllocsPerRun(2000, once); n != 0 && !raceEnabled {
					t.Errorf("tickets %v, %s, %s: %v allocations per call, want 0", tickets, network, name, n)
				}
			}
			e.Close()
		}
	}
}

// A crowd of callers allocates almost nothing either: the ring, the lists and the buffers are reused.
func TestCrowdAllocatesLittle(t *testing.T) {
	testkit.NoLeaks(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, tickets := range []bool{false, true} {
		s := &toyServer{t: t, tickets: tickets}
		e := testEngine(t, s.protocol(), echoServer(t), nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		crowd := func(n int) {
			var wg sync.WaitGroup
			for range 64 {
				wg.Go(func() {
					for range n {
						c := s.newCall(e, "r0123456789")
						if err := e.Do(ctx, c); err != nil {
							t.Error(err)
						}
						c.Release()
					}
				})
			}
			wg.Wait()
		}
		crowd(200)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		const each = 500
		crowd(each)
		runtime.ReadMemStats(&after)
		if n := float64(after.Mallocs-before.Mallocs) / (64 * each); n > 0.05 && !raceEnabled {
			t.Errorf("tickets %v: %.3f allocations per call, want at most 0.05", tickets, n)
		}
		e.Close()
	}
}

// A caller that waits for room gets what becomes free, even if it is little and the calls that hold the rest
// never end.
func TestLittleRoomIsUsed(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		const maxCalls = 64
		k := startHolding(t, network, tickets)
		e := k.engine(func(c *Config) { c.MaxCalls, c.WaitWhenFull = maxCalls, true })
		var all []*Call
		for i := range maxCalls {
			all = append(all, k.start(t.Context(), e, fmt.Sprint("r", i))...)
		}
		testkit.Eventually(t, 5*time.Second, func() error {
			if len(k.bodies()) == 0 { // in order, the other calls may be held back
				return errors.New("no request has arrived")
			}
			return nil
		})
		done := make(chan error)
		go func() {
			c := k.newCall(e, "rlate")
			err := e.Do(t.Context(), c)
			c.Release()
			done <- err
		}()
		testkit.Eventually(t, 5*time.Second, func() error {
			if !socketAt(e, 0).life.crowded.Load() {
				return errors.New("no caller waits for room")
			}
			return nil
		})
		k.mu.Lock()
		k.seen[0].reply(k.seen[0].body)
		k.seen = k.seen[1:]
		k.mu.Unlock()
		testkit.Eventually(t, 5*time.Second, func() error {
			if e.Snapshot().Calls != maxCalls+1 { // in order, the call may be held back by the others
				return errors.New("the late call still waits")
			}
			return nil
		})
		for late := true; late; {
			k.answer()
			select {
			case err := <-done:
				if late = false; err != nil {
					t.Error(err)
				}
			case <-time.After(time.Millisecond):
			}
		}
		for _, c := range all {
			if err := c.Wait(); err != nil {
				t.Error(err)
			}
			c.Release()
		}
	})
}
