package pipe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// Calls use one connection while it has few, use the next ones when it has many, and never use one that is gone
// or retired.
func TestCallsStayTogether(t *testing.T) {
	var backlog backlogServer
	s := startToy(t, &toyServer{tickets: true, handle: backlog.handle})
	const sockets = 4
	e := connectAll(t, s, sockets, nil)
	spill := e.cfg.Traits.Spill
	var cs []*Call
	start := func(n int) {
		for range n {
			c := s.newCall(e, fmt.Sprint("r", len(cs)))
			if err := e.Start(context.Background(), c); err != nil {
				t.Fatal(err)
			}
			cs = append(cs, c)
		}
	}
	used := func() (n int, most int64) {
		for i := range sockets {
			if calls := socketAt(e, i).charged.Load() >> chargeBits; calls > 0 {
				n, most = n+1, max(most, calls)
			}
		}
		return n, most
	}
	start(spill)
	if n, _ := used(); n != 1 {
		t.Errorf("%d calls are on %d connections, want 1", spill, n)
	}
	start(spill)
	if n, most := used(); n != 2 || most != int64(spill) {
		t.Errorf("twice as many calls are on %d connections, at most %d on one", n, most)
	}
	start(6 * spill)
	if n, most := used(); n != sockets || most > int64(2*spill+1) {
		t.Errorf("eight times as many calls are on %d connections, at most %d on one", n, most)
	}
	endAll(t, &backlog, cs)
	cs = nil

	// The connection in use keeps its place while its server is silent, but gets no calls.
	start(1)
	silent := socketAt(e, e.current.Load())
	silent.life.muted.Store(true)
	start(3)
	if next := socketAt(e, e.current.Load()); next == silent || next.charged.Load()>>chargeBits != 3 {
		t.Errorf("the server of a connection is silent; the connection that is used next has %d of 3 calls", next.charged.Load()>>chargeBits)
	}
	silent.life.muted.Store(false)
	endAll(t, &backlog, cs)
	cs = nil

	// The connection in use is retired when a last reply arrives.
	start(1)
	at := e.current.Load()
	Pin{socketAt(e, at)}.Retire()
	start(3)
	now := e.current.Load()
	if calls := socketAt(e, now).charged.Load() >> chargeBits; now == at || calls != 3 {
		t.Errorf("connection %d was retired; connection %d has %d of 3 calls", at, now, calls)
	}
	for range 100 { // connections are chosen at random
		for _, choose := range []func(context.Context) (Pin, error){
			e.Pin, e.Place, func(context.Context) (Pin, error) { return e.PinNow() },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			if pin, err := choose(ctx); err != nil || !pin.Alive() {
				t.Errorf("call pinned to the retired connection: %v", err)
			}
			cancel()
		}
	}
	endAll(t, &backlog, cs)
	checkBalanced(t, e)
}

// With small bounds on calls or bytes, all connections get their share before one of them is full.
func TestSmallBoundsUseAllConnections(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"calls": func(c *Config) { c.MaxCalls = 100 },
		"bytes": func(c *Config) { c.MaxBytes = 100 * callCost * 2 },
	} {
		t.Run(name, func(t *testing.T) {
			var backlog backlogServer
			s := startToy(t, &toyServer{tickets: true, handle: backlog.handle})
			e := connectAll(t, s, 4, change)
			var cs []*Call
			for range 90 {
				c := s.newCall(e, fmt.Sprint("r", len(cs)))
				if err := e.Start(context.Background(), c); err != nil {
					t.Fatalf("call %d: %v", len(cs), err)
				}
				cs = append(cs, c)
			}
			endAll(t, &backlog, cs)
		})
	}
}

// Connect returns when any connection is up, because others may take long.
func TestConnectTakesAnyConnection(t *testing.T) {
	for blocked := int32(1); blocked <= 2; blocked++ {
		s := startToy(t, &toyServer{})
		var dials atomic.Int32
		s.engine(func(c *Config) {
			c.Sockets = 2
			c.DialTimeout = time.Minute
			dial := c.Dial
			c.Dial = func(ctx context.Context) (net.Conn, error) {
				if dials.Add(1) == blocked {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return dial(ctx)
			}
		})
	}
}

// While the only connection that is up waits for its last call, or is silent and keeps its place, a new call waits for
// any connection to come up, not only for the successor of that one.
func TestAnotherConnectionComes(t *testing.T) {
	for i, silent := range []bool{false, true, false, true} {
		tickets := i >= 2
		t.Run(fmt.Sprintf("tickets=%v/silent=%v", tickets, silent), func(t *testing.T) {
			var backlog backlogServer
			s := startToy(t, &toyServer{tickets: tickets, handle: backlog.handle})
			var dials atomic.Int32
			second := make(chan struct{})
			e := s.engine(func(c *Config) {
				c.Sockets = 2
				dial := c.Dial
				c.Dial = func(ctx context.Context) (net.Conn, error) {
					if dials.Add(1) > 1 {
						select {
						case <-second:
						case <-ctx.Done():
							return nil, ctx.Err()
						}
					}
					return dial(ctx)
				}
			})
			last := s.newCall(e, "rlast")
			if err := e.Start(t.Context(), last); err != nil {
				t.Fatal(err)
			}
			pin, err := e.PinNow()
			if err != nil {
				t.Fatal(err)
			}
			if silent {
				pin.s.life.muted.Store(true)
			} else {
				pin.Retire()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			next := s.newCall(e, "rnext")
			started := make(chan error)
			go func() { started <- e.Start(ctx, next) }() // ended by ctx; waited for below
			select {
			case err := <-started:
				t.Fatalf("the call did not wait: %v", err)
			case <-time.After(50 * time.Millisecond):
			}
			close(second)
			if err := <-started; err != nil {
				t.Fatal(err)
			}
			endAll(t, &backlog, []*Call{last, next})
			checkBalanced(t, e)
		})
	}
}

// connectAll returns an engine all of whose connections are up.
func connectAll(t *testing.T, s *toyServer, sockets int, change func(*Config)) *Engine {
	t.Helper()
	e := s.engine(func(c *Config) {
		c.Sockets = sockets
		if change != nil {
			change(c)
		}
	})
	testkit.Eventually(t, 5*time.Second, func() error {
		if e.Snapshot().Connected < sockets {
			return errors.New("not all connections are up")
		}
		return nil
	})
	return e
}

// endAll answers calls that the server holds or will receive, and waits for them.
func endAll(t *testing.T, backlog *backlogServer, cs []*Call) {
	t.Helper()
	last := time.Now().Add(time.Minute)
	for answered := 0; answered < len(cs); {
		if backlog.answer(func(n int) int { return n - 1 }) {
			answered++
			continue
		}
		if time.Now().After(last) {
			t.Fatalf("the server has received %d of %d calls", answered, len(cs))
		}
		time.Sleep(time.Millisecond)
	}
	for _, c := range cs {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
		c.Release()
	}
}

// A connection whose calls do not end gets few new ones: of two random connections, the one with fewer calls is
// chosen.
func TestLeastOutstanding(t *testing.T) {
	var backlog backlogServer
	s := startToy(t, &toyServer{tickets: true, handle: backlog.handle})
	const sockets = 4
	e := connectAll(t, s, sockets, func(c *Config) { c.Traits.Place = LeastOutstanding })
	var cs []*Call
	start := func(n int, pin Pin) {
		for range n {
			c := s.newCall(e, fmt.Sprint("r", len(cs)))
			c.Pin = pin
			if err := e.Start(context.Background(), c); err != nil {
				t.Fatal(err)
			}
			cs = append(cs, c)
		}
	}
	calls := func(i int) int64 { return socketAt(e, i).charged.Load() >> chargeBits }
	start(100, Pin{socketAt(e, 0)})
	start(120, Pin{})
	if n := calls(0); n != 100 {
		t.Errorf("%d of 120 calls were placed on the connection with 100 calls, want 0", n-100)
	}
	for i := 1; i < sockets; i++ { // the probability of 60 calls on one of them by chance is one in a million
		if n := calls(i); n < 25 || n > 60 {
			t.Errorf("connection %d has %d of 120 calls, want about 40", i, n)
		}
	}
	retired := socketAt(e, 1)
	Pin{retired}.Retire()
	before := retired.charged.Load()
	start(50, Pin{})
	if n := retired.charged.Load(); n > before {
		t.Errorf("%d calls were placed on a retired connection, want 0", (n-before)>>chargeBits)
	}
	endAll(t, &backlog, cs)
	checkBalanced(t, e)
}
