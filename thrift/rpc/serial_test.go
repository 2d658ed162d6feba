package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// add answers a call of the function add.
func add(t testing.TB, c *stockCall) []byte { return c.answer(thrift.Reply, sumOf(t, c)) }

// sumOf returns the result of a call of add.
func sumOf(t testing.TB, c *stockCall) *calc.CalculatorAddResult {
	var args calc.CalculatorAddArgs
	var r thrift.Reader
	var err error
	if c.format.Compact {
		_, err = r.ReadCompact(c.args, 0, &args)
	} else {
		_, err = r.Read(c.args, 0, &args)
	}
	if err != nil {
		t.Error(err)
	}
	return &calc.CalculatorAddResult{Success: thrift.Some(args.A + args.B)}
}

// flood makes callers call add until stop is closed, and returns a function that waits for them.
func flood(t *testing.T, client *rpc.Client, callers int, stop chan struct{}) (wait func()) {
	c := calc.NewCalculatorClient(client)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if sum, err := c.Add(context.Background(), int32(i<<16), int32(n)); err != nil || sum != int32(i<<16+n) {
					t.Errorf("%d + %d is %d, %v", i<<16, n, sum, err)
					return
				}
			}
		})
	}
	return all.Wait
}

// A server that answers in order gets more connections while calls wait, until each caller has its own, or all but one
// caller, which waits for the connection that is kept idle. Two calls that are not idempotent are never in flight on
// one connection.
func TestConnectionsGrow(t *testing.T) {
	const callers = 40
	var running atomic.Int64
	var once sync.Once
	full := make(chan struct{})
	s := startStock(t, &stock{handle: func(c *stockCall) []byte {
		if running.Add(1) == callers-1 {
			once.Do(func() { close(full) })
		}
		select {
		case <-full: // each caller has a connection
		case <-time.After(5 * time.Millisecond):
			running.Add(-1)
		}
		return add(t, c)
	}})
	client := connect(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed})
	stop := make(chan struct{})
	wait := flood(t, client, callers, stop)
	select {
	case <-full:
	case <-time.After(4 * patience): // the pauses between attempts to grow double
		t.Errorf("%d connections for %d callers", client.Stats().Connected, callers)
	}
	close(stop)
	wait()
	if n := s.deepest.Load(); n != 1 {
		t.Errorf("%d calls that are not idempotent were sent together", n)
	}
	// Calls may have moved from a connection that was closed before they were sent. No call was executed twice.
	if st := client.Stats(); st.AnyOrder || st.Failed > 0 || s.calls.Load() != int64(st.Replies) {
		t.Errorf("any order %v, %d failed, the server had %d calls, and sent %d replies", st.AnyOrder, st.Failed, s.calls.Load(), st.Replies)
	}
}

// The number of connections is bounded.
func TestMostConnections(t *testing.T) {
	s := startStock(t, &stock{handle: func(c *stockCall) []byte { time.Sleep(time.Millisecond); return add(t, c) }})
	client := connect(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.Buffered, MaxConnections: 3})
	stop := make(chan struct{})
	wait := flood(t, client, 20, stop)
	testkit.Eventually(t, patience, func() error {
		if n := client.Stats().Connected; n != 3 {
			return fmt.Errorf("%d connections, want 3", n)
		}
		return nil
	})
	before := s.calls.Load()
	testkit.Eventually(t, patience, func() error {
		if s.calls.Load()-before < 500 {
			return errors.New("few calls")
		}
		return nil
	})
	close(stop)
	wait()
	if n := s.connections.Load(); n != 3 {
		t.Errorf("the server has accepted %d connections, want 3", n)
	}
}

// A fast server gets several idempotent calls at a time.
func TestDepthOfFastServer(t *testing.T) {
	s := startStock(t, &stock{handle: func(c *stockCall) []byte { return add(t, c) }})
	// A clock that advances by only a microsecond per reading: the server is fast, however slow the machine is.
	var ticks atomic.Int64
	clock := func() time.Time { return time.Unix(1000, 1000*ticks.Add(1)) }
	client, err := rpc.NewClientAt(rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed, Idempotent: []string{"Calculator.add"}, MaxConnections: 1, Timeout: 5 * time.Minute}, clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	stop := make(chan struct{})
	wait := flood(t, client, 64, stop)
	testkit.Eventually(t, patience, func() error {
		if n := s.deepest.Load(); n < 8 {
			return fmt.Errorf("at most %d calls were sent together", n)
		}
		return nil
	})
	close(stop)
	wait()
}

// The user can fix the depth.
func TestFixedDepth(t *testing.T) {
	gate := make(chan struct{})
	s := startStock(t, &stock{handle: func(c *stockCall) []byte { <-gate; return add(t, c) }})
	client := connect(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed, Idempotent: []string{"add"}, MaxConnections: 1, Depth: 4})
	c := calc.NewCalculatorClient(client)
	var all sync.WaitGroup
	for i := range int32(10) {
		all.Go(func() {
			if sum, err := c.Add(t.Context(), i, 1); sum != i+1 || err != nil {
				t.Errorf("%d, %v", sum, err)
			}
		})
	}
	testkit.Eventually(t, patience, func() error {
		if st := client.Stats(); st.Waiting != 6 || st.Outstanding != 4 {
			return fmt.Errorf("%d calls wait, %d are at the server; want 6 and 4", st.Waiting, st.Outstanding)
		}
		return nil
	})
	// A call that is not idempotent is sent after earlier calls have been answered, and before later calls.
	pinged := make(chan error, 1)
	go func() { pinged <- c.Ping(t.Context()) }() // ends with the server's answers
	testkit.Eventually(t, patience, func() error {
		if n := client.Stats().Waiting; n != 7 {
			return fmt.Errorf("%d calls wait, want 7", n)
		}
		return nil
	})
	close(gate)
	all.Wait()
	if err := <-pinged; err != nil && kindOf(err) != thrift.MissingResult { // the server answers every call as if it were add
		t.Error(err)
	}
}

// A reply that overtakes another proves that the server processes several calls of a connection concurrently. From then
// on, one connection takes all calls. That remains so when a large call, which has a separate connection, takes long.
func TestOvertakingReplies(t *testing.T) {
	held := make(map[any][]byte) // by connection
	var mu sync.Mutex
	s := startStock(t, &stock{handle: func(c *stockCall) []byte {
		if string(c.Name) == "echo" {
			time.Sleep(800 * time.Millisecond)
			return c.answer(thrift.Reply, &calc.CalculatorEchoResult{Success: thrift.Some("late")})
		}
		mu.Lock()
		defer mu.Unlock()
		answer := add(t, c)
		if before := held[c.conn]; before != nil {
			delete(held, c.conn)
			return append(answer, before...)
		}
		if len(c.waiting) > 0 && c.nth > 20 {
			held[c.conn] = answer // the next reply overtakes it
			return nil
		}
		return answer
	}})
	client := connect(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed, Idempotent: []string{"add"}, MaxConnections: 1, Depth: 2})
	stop := make(chan struct{})
	wait := flood(t, client, 20, stop)
	testkit.Eventually(t, patience, func() error {
		if !client.Stats().AnyOrder || s.deepest.Load() <= 2 {
			return fmt.Errorf("any order %v, at most %d calls were sent together", client.Stats().AnyOrder, s.deepest.Load())
		}
		return nil
	})
	close(stop)
	wait()
	if text, err := calc.NewCalculatorClient(client).Echo(t.Context(), strings.Repeat("x", 100<<10)); text != "late" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if n := s.connections.Load(); n != 2 {
		t.Errorf("the server has accepted %d connections, want 2", n)
	}
}

// A server that serves few connections at a time accepts others, but does not answer on them until one of the first has
// ended. No call waits for long.
func TestServerWithFewThreads(t *testing.T) {
	for _, threads := range []int{1, 2} {
		t.Run(fmt.Sprint(threads), func(t *testing.T) {
			s := startStock(t, &stock{serves: threads, handle: func(c *stockCall) []byte { time.Sleep(time.Millisecond); return add(t, c) }})
			client := connect(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed})
			stop := make(chan struct{})
			wait := flood(t, client, 10, stop)
			testkit.Eventually(t, patience, func() error {
				if n, c := s.calls.Load(), s.connections.Load(); n < 2000 || c <= int64(threads) {
					return fmt.Errorf("%d calls on %d connections", n, c)
				}
				return nil
			})
			close(stop)
			wait()
			if st := client.Stats(); st.Failed+st.Cancelled > 0 {
				t.Errorf("%d calls failed, %d were canceled", st.Failed, st.Cancelled)
			}
		})
	}
}

// A server that serves one connection at a time also answers large calls, which usually use separate connections.
func TestLargeCallsOfServerWithOneThread(t *testing.T) {
	s := startStock(t, &stock{serves: 1, handle: func(c *stockCall) []byte {
		if string(c.Name) == "add" {
			return add(t, c)
		}
		var args calc.CalculatorEchoArgs
		if _, err := new(thrift.Reader).Read(c.args, 0, &args); err != nil {
			t.Error(err)
		}
		return c.answer(thrift.Reply, &calc.CalculatorEchoResult{Success: thrift.Some(args.Text)})
	}})
	client := connect(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed})
	c := calc.NewCalculatorClient(client)
	text := strings.Repeat("x", 100<<10)
	for i := range int32(30) {
		if sum, err := c.Add(t.Context(), i, 1); sum != i+1 || err != nil {
			t.Fatalf("%d, %v", sum, err)
		}
		if got, err := c.Echo(t.Context(), text); got != text || err != nil {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	if n := s.connections.Load(); n > 10 { // twice as many if each call had needed a new connection
		t.Errorf("the server has accepted %d connections", n)
	}
}

// After an exception that does not come from a handler, some servers close the connection and drop later calls. So no
// call is sent after it.
func TestNothingFollowsProtocolExceptions(t *testing.T) {
	var after atomic.Int64
	bad := make(map[any]bool)
	var mu sync.Mutex
	s := startStock(t, &stock{handle: func(c *stockCall) []byte {
		mu.Lock()
		defer mu.Unlock()
		if bad[c.conn] {
			after.Add(1)
		}
		if string(c.Name) == "add" {
			return add(t, c)
		}
		bad[c.conn] = true
		return c.answer(thrift.Exception, &thrift.ApplicationException{Kind: thrift.UnknownMethod, Message: "no"})
	}})
	client := connect(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed, MaxConnections: 1})
	c := calc.NewCalculatorClient(client)
	for i := range int32(4) {
		if err := c.Ping(t.Context()); kindOf(err) != thrift.UnknownMethod || slipstream.OutcomeOf(err) != slipstream.Refused {
			t.Fatal(err)
		}
		if sum, err := c.Add(t.Context(), i, 1); sum != i+1 || err != nil {
			t.Fatalf("%d, %v", sum, err)
		}
	}
	if n := after.Load(); n > 0 {
		t.Errorf("%d calls followed an exception on its connection", n)
	}
}

// An unanswered call is retried only if it is idempotent.
func TestRepetitions(t *testing.T) {
	var mu sync.Mutex
	seen := make(map[string]int)
	s := startStock(t, &stock{handle: func(c *stockCall) []byte {
		mu.Lock()
		defer mu.Unlock()
		seen[string(c.Name)]++
		if seen[string(c.Name)] == 1 {
			c.conn.Close()
			return nil
		}
		return add(t, c)
	}})
	client := connect(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed, Idempotent: []string{"add"}})
	c := calc.NewCalculatorClient(client)
	if err := c.Ping(t.Context()); slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Errorf("a call that is not idempotent: %v", err)
	}
	if sum, err := c.Add(t.Context(), 1, 2); sum != 3 || err != nil {
		t.Errorf("an idempotent call: %d, %v", sum, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if seen["ping"] != 1 || seen["add"] != 2 {
		t.Errorf("the server has received %v", seen)
	}
}

// Abandoned calls keep their slot until the server has answered, and other calls are not affected.
func TestGivenUpCalls(t *testing.T) {
	s := startStock(t, &stock{handle: func(c *stockCall) []byte { time.Sleep(2 * time.Millisecond); return add(t, c) }})
	client := connect(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed, MaxConnections: 4})
	c := calc.NewCalculatorClient(client)
	stop := make(chan struct{})
	wait := flood(t, client, 8, stop)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 50 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i*n%7)*time.Millisecond/2)
				if sum, err := c.Add(ctx, int32(i), int32(n)); err == nil && sum != int32(i+n) {
					t.Errorf("%d, want %d", sum, i+n)
				} else if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	all.Wait()
	close(stop)
	wait()
	if n := s.deepest.Load(); n != 1 {
		t.Errorf("%d calls were sent together", n)
	}
}

// movingClock is a clock that a test can advance.
type movingClock struct{ ahead atomic.Int64 }

func (c *movingClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// connectAt returns a client of a stock server, and its clock.
func connectAt(t *testing.T, config rpc.ClientConfig) (*rpc.Client, *movingClock) {
	t.Helper()
	clock := new(movingClock)
	client, err := rpc.NewClientAt(config, clock.now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client, clock
}

// Connections that were not needed for a minute are closed, except the first.
func TestIdleConnectionsAreClosed(t *testing.T) {
	s := startStock(t, &stock{handle: func(c *stockCall) []byte { time.Sleep(time.Millisecond); return add(t, c) }})
	client, clock := connectAt(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed, Timeout: 5 * time.Minute, MaxConnections: 8})
	stop := make(chan struct{})
	wait := flood(t, client, 20, stop)
	testkit.Eventually(t, patience, func() error {
		if n := client.Stats().Connected; n != 8 {
			return fmt.Errorf("%d connections, want 8", n)
		}
		return nil
	})
	close(stop)
	wait()
	open := client.Stats().Connected // less than 8 if the last change of their number was undone
	if open < 2 {
		t.Fatalf("%d connections when the calls ended, want more than 1", open)
	}
	time.Sleep(20 * time.Millisecond)
	if n := client.Stats().Connected; n != open {
		t.Errorf("%d connections 20 ms after the last call, want %d", n, open)
	}
	accepted := s.connections.Load() // more than 8 if growth had to back off
	c := calc.NewCalculatorClient(client)
	testkit.Eventually(t, patience, func() error {
		if sum, err := c.Add(t.Context(), 1, 2); sum != 3 || err != nil {
			t.Fatalf("%d, %v", sum, err)
		}
		clock.ahead.Add(int64(20 * time.Second))
		if n := client.Stats().Connected; n != 1 {
			return fmt.Errorf("%d connections, want 1", n)
		}
		return nil
	})
	if n := s.connections.Load(); n != accepted {
		t.Errorf("the server has accepted %d connections, want %d", n, accepted)
	}
}

// A connection with only abandoned calls is replaced after a while.
func TestAbandonedConnectionIsReplaced(t *testing.T) {
	gate := make(chan struct{})
	s := startStock(t, &stock{})
	s.handle = func(c *stockCall) []byte {
		if s.connections.Load() == 1 {
			<-gate
		}
		return add(t, c)
	}
	client, clock := connectAt(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed, Timeout: 5 * time.Minute, MaxConnections: 1})
	c := calc.NewCalculatorClient(client)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { // ends with the context
		_, err := c.Add(ctx, 1, 1)
		ended <- err
	}()
	testkit.Eventually(t, patience, func() error {
		if s.calls.Load() == 0 {
			return errors.New("the server has no call")
		}
		return nil
	})
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Errorf("the abandoned call: %v", err)
	}
	clock.ahead.Store(int64(time.Minute))
	if sum, err := c.Add(t.Context(), 1, 2); sum != 3 || err != nil {
		t.Errorf("the next call: %d, %v", sum, err)
	}
	close(gate)
	if n := s.connections.Load(); n != 2 {
		t.Errorf("the server has accepted %d connections, want 2", n)
	}
}

// A slow first call does not delay the other calls for as long.
func TestSlowFirstCall(t *testing.T) {
	gate := make(chan struct{})
	s := startStock(t, &stock{handle: func(c *stockCall) []byte {
		if string(c.Name) == "ping" {
			<-gate
		}
		return add(t, c)
	}})
	for _, transport := range []rpc.Transport{rpc.Framed, rpc.TTHeader} {
		client := connect(t, rpc.ClientConfig{Addr: s.addr, Transport: transport})
		c := calc.NewCalculatorClient(client)
		before := s.calls.Load()
		pinged := make(chan error, 1)
		go func() { pinged <- c.Ping(context.Background()) }() // ends when the gate is opened
		testkit.Eventually(t, patience, func() error {
			if s.calls.Load() == before {
				return errors.New("the server has no call")
			}
			return nil
		})
		if sum, err := c.Add(t.Context(), 1, 2); sum != 3 || err != nil {
			t.Errorf("%d, %v", sum, err)
		}
		select {
		case gate <- struct{}{}:
		case <-time.After(patience):
			t.Fatal("the first call has ended")
		}
		if err := <-pinged; err != nil {
			t.Error(err)
		}
	}
}

// A call that is not idempotent is not sent while another call is in flight on the connection, even if there is room
// for an idempotent one.
func TestOthersNeedAnEmptyConnection(t *testing.T) {
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	defer open()
	s := startStock(t, &stock{handle: func(c *stockCall) []byte { <-gate; return add(t, c) }})
	client := connect(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed, Idempotent: []string{"add"}, MaxConnections: 1, Depth: 4})
	c := calc.NewCalculatorClient(client)
	ended := make(chan error, 2)
	go func() { // ends when the gate is opened, like the other one
		_, err := c.Add(t.Context(), 1, 1)
		ended <- err
	}()
	testkit.Eventually(t, patience, func() error {
		if s.calls.Load() != 1 {
			return errors.New("the server has no call")
		}
		return nil
	})
	go func() { ended <- c.Ping(t.Context()) }()
	testkit.Eventually(t, patience, func() error {
		if st := client.Stats(); st.InProgress != 2 || st.Waiting != 1 {
			return fmt.Errorf("%d of %d calls wait, want 1 of 2", st.Waiting, st.InProgress)
		}
		return nil
	})
	open()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
