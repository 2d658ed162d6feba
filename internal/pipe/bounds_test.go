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

// heapInUse returns the memory of the heap and of stacks after a collection.
func heapInUse() (heap, stacks int64) {
	buf.Forget()
	// Twice, because the first only moves what pools hold to their victims.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse), int64(m.StackInuse)
}

// 10,000 goroutines submit to a peer that never answers and does not even read:
// what the engine holds stays within its bound, and what it refuses, it refuses
// at once.
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
	// The goroutines wait before and after, so that they count in neither figure.
	begin, end := make(chan struct{}), make(chan struct{})
	for g := range callers {
		tried.Add(1)
		wg.Go(func() {
			<-begin
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
			<-end
		})
	}
	before, _ := heapInUse()
	close(begin)
	tried.Wait()
	after, _ := heapInUse()
	close(end)
	wg.Wait()
	v := e.Snapshot()
	t.Logf("%d bytes a request: %d calls charged %d of %d, the heap grew by %d; %d refused",
		len(body), v.Queued+v.Outstanding, v.HeldBytes, bound, after-before, refused.Load())
	if v.HeldBytes > bound || after-before > bound*11/10 {
		t.Errorf("the bound of %d bytes is passed: charged %d, grown by %d", bound, v.HeldBytes, after-before)
	}
	took = slices.DeleteFunc(took, func(d time.Duration) bool { return d == 0 })
	if slices.Sort(took); len(took) == 0 {
		t.Fatal("nothing was refused")
	}
	t.Logf("a refusal: p50 %v, p99 %v", took[len(took)/2], took[len(took)*99/100])
	if took[len(took)/2] > 50*time.Microsecond {
		t.Errorf("half the refusals took more than %v", took[len(took)/2])
	}
	e.Close()
	if got := ended.Load(); got != int64(callers*each)-refused.Load() {
		t.Errorf("%d of %d calls have ended", got, int64(callers*each)-refused.Load())
	}
}

func warmUp(s *toyServer, e *Engine) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	return s.ask(ctx, e, "rwarm")
}

// An idle connection takes less than 14 KiB, with its engine, when it is new and after a burst. The server is another
// process, so that only the client is measured.
func TestIdleConnectionsAreSmall(t *testing.T) {
	testkit.NoLeaks(t)
	connections, limit := int64(300), int64(14<<10)
	if raceEnabled { // its own memory is not small
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
		e := connect() // for what is allocated once in a process
		burst(t, s, e)
		e.Close()
		heapBefore, stacksBefore := heapInUse()
		var engines []*Engine
		for range connections {
			e := connect()
			engines = append(engines, e)
			defer e.Close()
		}
		judge := func(what string) {
			t.Helper()
			var heap, stack int64
			testkit.Eventually(t, 10*time.Second, func() error { // stacks shrink when they are collected
				heapNow, stacksNow := heapInUse()
				heap, stack = (heapNow-heapBefore)/connections, (stacksNow-stacksBefore)/connections
				if heap+stack > limit {
					return fmt.Errorf("an idle connection %s takes %d bytes of heap and %d of stacks, expected less than %d", what, heap, stack, limit)
				}
				return nil
			})
			t.Logf("tickets %v: an idle connection %s takes %d bytes of heap and %d of stacks", tickets, what, heap, stack)
		}
		judge("that is new")
		for _, e := range engines {
			burst(t, s, e)
		}
		time.Sleep(time.Second)
		judge("after a burst")
		for _, e := range engines {
			if err := s.ask(t.Context(), e, "rstill there"); err != nil {
				t.Error(err)
			}
		}
	}
}

// burst makes calls with many and with large requests and replies.
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

// serveSmall is a process that prints its address, and echoes what it receives on every connection after the
// greeting. It does not return.
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
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // pools are emptied by the collector
	for _, tickets := range []bool{false, true} {
		for _, network := range []string{"tcp", "unix"} {
			// The server's allocations would count too.
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
					t.Errorf("tickets %v, %s, %s: %v allocations a call", tickets, network, name, n)
				}
			}
			e.Close()
		}
	}
}

// Nor among many: the ring, the lists and the buffers stay.
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
			t.Errorf("tickets %v: %.3f allocations a call", tickets, n)
		}
		e.Close()
	}
}

// A caller that waits for room gets what is free also when that is little, and the calls that
// have the rest never end.
func TestLittleRoomIsUsed(t *testing.T) {
	eachWay(t, func(t *testing.T, network string, tickets bool) {
		const most = 64
		k := startKeeping(t, network, tickets)
		e := k.engine(func(c *Config) { c.MaxCalls, c.WaitWhenFull = most, true })
		var all []*Call
		for i := range most {
			all = append(all, k.start(t.Context(), e, fmt.Sprint("r", i))...)
		}
		testkit.Eventually(t, 5*time.Second, func() error {
			if len(k.bodies()) == 0 { // in order the others may be held back
				return errors.New("nothing was sent")
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
				return errors.New("nobody waits")
			}
			return nil
		})
		k.mu.Lock()
		k.seen[0].reply(k.seen[0].body)
		k.seen = k.seen[1:]
		k.mu.Unlock()
		testkit.Eventually(t, 5*time.Second, func() error {
			if e.Snapshot().Calls != most+1 { // in order it may be held back by the others
				return errors.New("the late one still waits")
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
