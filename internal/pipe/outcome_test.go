package pipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// countedConn accepts a limited number of bytes and then fails, like a kernel whose peer is gone. The engine
// writes to it with the writer.
type countedConn struct {
	*memConn
	down chan struct{} // closed by Close
	once sync.Once

	mu sync.Mutex
	// Guarded by mu.
	hold chan struct{} // the next write waits for it before it does anything else
	held bool          // the write is waiting for hold
	left int           // bytes that are accepted; if negative, any number
	wait chan struct{} // if the limit is exceeded, the write waits for it or for Close, and fails
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	hold := c.hold
	c.hold, c.held = nil, hold != nil
	c.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-c.down:
			return 0, net.ErrClosed
		}
	}
	c.mu.Lock()
	n, wait := len(p), c.wait
	if c.left >= 0 {
		n = min(n, c.left)
		c.left -= n
	}
	c.mu.Unlock()
	written, err := c.memConn.Write(p[:n])
	if err != nil || n == len(p) {
		return written, err
	}
	select {
	case <-wait:
		return written, syscall.EPIPE
	case <-c.down:
		return written, net.ErrClosed
	}
}

func (c *countedConn) Close() error {
	c.once.Do(func() { close(c.down) })
	return c.memConn.Close()
}

// countedWorld returns an engine with a countedConn whose server does not answer.
func countedWorld(t *testing.T, s *toyServer) (*Engine, *countedConn) {
	t.Helper()
	s.handle = func(toyRequest) {}
	startToy(t, s)
	var conn *countedConn
	e := s.engine(func(c *Config) {
		c.FailFast, c.FlushFactor = true, 1
		c.Dial = func(ctx context.Context) (net.Conn, error) {
			if conn != nil {
				return nil, errRefused
			}
			inner, err := s.dial(ctx)
			if err != nil {
				return nil, err
			}
			conn = &countedConn{memConn: inner.(*memConn), left: -1, down: make(chan struct{})}
			return conn, nil
		}
	})
	return e, conn
}

// A write ends at every offset, because it fails, because the connection is closed while it waits, or because
// the reader fails while it waits: exactly the calls of which a byte was accepted may have been executed.
func TestOutcomeIsExactAtEveryOffset(t *testing.T) {
	testkit.NoLeaks(t)
	bodies := []string{"ra", "rbbbb", "rcc", "rddddddd"}
	for _, tickets := range []bool{false, true} {
		for _, how := range []string{"write fails", "close", "peer resets", "cut"} {
			ends := frameEnds(bodies, tickets)
			for offset := 0; offset <= ends[len(ends)-1]; offset++ {
				name := fmt.Sprintf("tickets %v, %s after %d", tickets, how, offset)
				outcomeAt(t, name, tickets, how, bodies, ends, offset)
				if t.Failed() {
					return
				}
			}
		}
	}
}

func frameEnds(bodies []string, tickets bool) (ends []int) {
	at := 0
	for _, b := range bodies {
		at += 4 + len(b)
		if tickets {
			at += 8
		}
		ends = append(ends, at)
	}
	return ends
}

// outcomeAt submits a first call, whose write waits, and then the others, one of which is given up if how is
// "cut". The others are sent in the second write, which ends at offset.
func outcomeAt(t *testing.T, name string, tickets bool, how string, bodies []string, ends []int, offset int) {
	s := &toyServer{tickets: tickets}
	e, conn := countedWorld(t, s)
	hold := make(chan struct{})
	conn.mu.Lock()
	conn.hold = hold
	conn.mu.Unlock()
	opener := s.newCall(e, "ropener")
	size := len(opener.Frame)
	if err := e.Start(t.Context(), opener); err != nil {
		t.Fatal(name, err)
	}
	testkit.Eventually(t, 5*time.Second, func() error {
		conn.mu.Lock()
		defer conn.mu.Unlock()
		if !conn.held {
			return errors.New("the first write has not started")
		}
		return nil
	})
	var canceled *Call
	if how == "cut" {
		ctx, cancel := context.WithCancel(t.Context())
		canceled = s.newCall(e, "rdead on arrival")
		if err := e.Start(ctx, canceled); err != nil {
			t.Fatal(name, err)
		}
		cancel()
		if err := canceled.Wait(); slipstream.OutcomeOf(err) != slipstream.NotSent || !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: the canceled call: %v", name, err)
		}
		canceled.Release()
	}
	var calls []*Call
	for _, b := range bodies {
		c := s.newCall(e, b)
		if err := e.Start(t.Context(), c); err != nil {
			t.Fatal(name, err)
		}
		calls = append(calls, c)
	}
	wait := make(chan struct{})
	conn.mu.Lock()
	conn.left, conn.wait = size+offset, wait
	conn.mu.Unlock()
	close(hold)
	testkit.Eventually(t, 5*time.Second, func() error {
		if got := conn.Passed(); got != len("hello")+size+offset {
			return fmt.Errorf("%s: %d bytes were written so far", name, got)
		}
		return nil
	})
	switch {
	case how == "peer resets":
		s.last().reset()
	case how == "close" || offset == ends[len(ends)-1]: // otherwise nothing would fail
		e.Close()
	default:
		close(wait)
	}
	for i, c := range calls {
		err := c.Wait()
		begin := 0
		if i > 0 {
			begin = ends[i-1]
		}
		want := slipstream.NotSent
		switch {
		case offset > begin:
			want = slipstream.MaybeExecuted
		case how == "close":
			want = slipstream.Closed
		}
		if got := slipstream.OutcomeOf(err); err == nil || got != want {
			t.Errorf("%s: call %d: %v, want %v", name, i, err, want)
		}
		c.Release()
	}
	if err := opener.Wait(); slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Errorf("%s: the first call: %v", name, err)
	}
	opener.Release()
	checkBalanced(t, e)
	e.Close()
}

// While the server is down, calls wait for a connection, or fail immediately with FailFast.
func TestRefusedAndWaiting(t *testing.T) {
	testkit.NoLeaks(t)
	s := startToy(t, &toyServer{down: true})
	fast := s.unconnected(func(c *Config) { c.FailFast = true })
	if err := fast.Connect(t.Context()); !errors.Is(err, errRefused) || slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("Connect returned %v", err)
	}
	if err := s.echo(t.Context(), fast, "rx"); !errors.Is(err, errRefused) || !slipstream.SafeToRetry(err) {
		t.Errorf("FailFast: %v", err)
	}
	patient := s.unconnected(nil)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.echo(ctx, patient, "rx"); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errRefused) || !slipstream.SafeToRetry(err) {
		t.Errorf("waiting for a connection: %v", err)
	}
	time.AfterFunc(20*time.Millisecond, func() { s.setDown(false) })
	if err := s.echo(t.Context(), patient, "rx"); err != nil {
		t.Errorf("waiting for a server that comes up: %v", err)
	}
	if err := fast.Connect(t.Context()); err != nil && !errors.Is(err, errRefused) {
		t.Error(err)
	}
	quick := s.unconnected(func(c *Config) { c.Timeout = 20 * time.Millisecond; c.Dial = hangingDial })
	began := time.Now()
	if err := s.echo(t.Context(), quick, "rx"); slipstream.OutcomeOf(err) != slipstream.NotSent || time.Since(began) > time.Second {
		t.Errorf("a call with a timeout waited %v for a connection: %v", time.Since(began), err)
	}
}

func hangingDial(ctx context.Context) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// StartFunc never waits, neither for a connection nor for room.
func TestCompletersNeverWait(t *testing.T) {
	testkit.NoLeaks(t)
	s := startToy(t, &toyServer{handle: func(toyRequest) {}})
	e := s.engine(func(c *Config) { c.WaitWhenFull, c.MaxCalls = true, 1 })
	results := make(chan error, 1)
	done := completerFunc(func(c *Call) { results <- c.Err(); c.Release() })
	if err := e.StartFunc(t.Context(), s.newCall(e, "rx"), done); err != nil {
		t.Fatal(err)
	}
	c := s.newCall(e, "ry")
	if err := e.StartFunc(t.Context(), c, done); slipstream.OutcomeOf(err) != slipstream.Overloaded {
		t.Errorf("call without room: %v", err)
	}
	testkit.Eventually(t, 5*time.Second, func() error {
		if e.Snapshot().BytesOut == 0 {
			return errors.New("no call was written yet")
		}
		return nil
	})
	s.setDown(true)
	s.closeConns()
	if err := <-results; slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Errorf("the call in flight: %v", err)
	}
	if err := e.StartFunc(t.Context(), c, done); slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("call without a connection: %v", err)
	}
	c.Release()
}

type completerFunc func(*Call)

func (f completerFunc) Complete(c *Call) { f(c) }

// Completers that submit again when their call fails do not prevent the engine from reconnecting.
func TestCompletersRetryAfterAFailure(t *testing.T) {
	testkit.NoLeaks(t)
	for _, network := range []string{"", "unix"} {
		s := startToy(t, &toyServer{network: network})
		e := s.engine(nil)
		var wg sync.WaitGroup
		var again completerFunc
		again = func(c *Call) {
			failed := c.Err() != nil
			c.Release()
			if !failed {
				wg.Done()
				return
			}
			n := s.newCall(e, "ragain")
			if err := e.StartFunc(context.Background(), n, again); err != nil {
				n.Release()
				time.AfterFunc(time.Millisecond, func() { // the user's pause
					again(s.newFailed(e))
				})
			}
		}
		for range 20 {
			for range 10 {
				wg.Add(1)
				n := s.newCall(e, "rfirst")
				if err := e.StartFunc(t.Context(), n, again); err != nil {
					again(func() *Call { n.err = err; return n }())
				}
			}
			s.closeConns()
		}
		wg.Wait()
		checkBalanced(t, e)
	}
}

// newFailed returns a call that has failed.
func (s *toyServer) newFailed(e *Engine) *Call {
	c := s.newCall(e, "rfailed")
	c.failWith(io.EOF)
	return c
}

// Calls beyond MaxCalls or MaxBytes are refused and can be retried.
func TestOverloaded(t *testing.T) {
	testkit.NoLeaks(t)
	for _, tickets := range []bool{false, true} {
		release := make(chan struct{})
		s := startToy(t, &toyServer{tickets: tickets, handle: func(r toyRequest) { <-release; r.reply(r.body) }})
		e := s.engine(func(c *Config) { c.MaxCalls = 3 })
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				if err := s.echo(context.Background(), e, fmt.Sprint("r", i)); err != nil {
					t.Error(err)
				}
			})
		}
		testkit.Eventually(t, 5*time.Second, func() error {
			if v := e.Snapshot(); v.Queued+v.Outstanding != 3 {
				return fmt.Errorf("%d calls", v.Queued+v.Outstanding)
			}
			return nil
		})
		err := s.echo(t.Context(), e, "rx")
		if slipstream.OutcomeOf(err) != slipstream.Overloaded || !errors.Is(err, ErrOverloaded) || !slipstream.SafeToRetry(err) {
			t.Errorf("a fourth call with MaxCalls 3: %v", err)
		}
		if v := e.Snapshot(); v.Refused != 1 {
			t.Errorf("%d calls were refused", v.Refused)
		}
		close(release)
		wg.Wait()
		cs := []*Call{s.newCall(e, "ra"), s.newCall(e, "rb"), s.newCall(e, "rc"), s.newCall(e, "rd")}
		if err := e.DoAll(t.Context(), cs); slipstream.OutcomeOf(err) != slipstream.Overloaded || cs[3].Err() == nil {
			t.Errorf("a DoAll of four calls with MaxCalls 3: %v", err)
		}
		for _, c := range cs {
			c.Release()
		}
		large := s.newCall(e, "r"+strings.Repeat("x", 50_000))
		small := *e.list.Load()
		small.maxBytes = 60_000
		e.list.Store(&small)
		if err := e.Do(t.Context(), large); slipstream.OutcomeOf(err) != slipstream.Overloaded {
			t.Errorf("a request larger than MaxBytes: %v", err)
		}
		large.Release()
		checkBalanced(t, e)
	}
}

// Callers that wait for room all get it, although calls and bytes are released at different times.
func TestWaitWhenFull(t *testing.T) {
	testkit.NoLeaks(t)
	for _, network := range []string{"", "unix"} {
		for _, bound := range []func(*Config){
			func(c *Config) { c.MaxCalls = 2 },
			func(c *Config) { c.MaxBytes = 3 * callCost },
		} {
			s := startToy(t, &toyServer{network: network})
			e := s.engine(func(c *Config) { c.WaitWhenFull = true; bound(c) })
			var wg sync.WaitGroup
			for g := range 10 {
				wg.Go(func() {
					for i := range 200 {
						ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
						if err := s.echo(ctx, e, fmt.Sprintf("r%d/%d", g, i)); err != nil {
							t.Error(err)
						}
						cancel()
					}
				})
			}
			wg.Wait()
			if v := e.Snapshot(); v.Refused != 0 || v.Replies != 2000 {
				t.Errorf("%d refused, %d replies", v.Refused, v.Replies)
			}
			checkBalanced(t, e)
		}
	}
}

// A call that waits for room ends with its context, or with Close.
func TestWaitWhenFullEndsWithItsContext(t *testing.T) {
	testkit.NoLeaks(t)
	s := startToy(t, &toyServer{handle: func(toyRequest) {}})
	e := s.engine(func(c *Config) { c.WaitWhenFull, c.MaxCalls = true, 1 })
	first := s.newCall(e, "rx")
	if err := e.Start(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.echo(ctx, e, "ry"); slipstream.OutcomeOf(err) != slipstream.Overloaded || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for room: %v", err)
	}
	waiting := make(chan error)
	go func() { waiting <- s.echo(context.Background(), e, "rz") }()
	time.Sleep(5 * time.Millisecond)
	e.Close()
	if err := <-waiting; slipstream.OutcomeOf(err) != slipstream.Closed {
		t.Errorf("waiting for room during Close: %v", err)
	}
	if err := first.Wait(); slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Error(err)
	}
	first.Release()
}
