package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
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

func slowly(t *testing.T) func(c *stockCall) []byte {
	return func(c *stockCall) []byte { time.Sleep(time.Millisecond); return add(t, c) }
}

// A server without headers shuts down under load: it stops listening and closes the idle connection. Then it gets no
// more calls, those in flight are answered, and the others go to the next server that listens. No call fails, although
// none is idempotent.
func TestServerEndsUnderLoad(t *testing.T) {
	s := startStock(t, &stock{handle: slowly(t)})
	client := connect(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed, MaxConnections: 6})
	stop := make(chan struct{})
	wait := flood(t, client, 20, stop)
	idle := s.idle(t, 6)
	s.listener.Close()
	idle.Close()
	testkit.Eventually(t, patience, func() error {
		if n := len(s.open()); n > 0 {
			return fmt.Errorf("%d connections to the server that is shutting down", n)
		}
		return nil
	})
	next := startStock(t, &stock{addr: s.addr, handle: slowly(t)})
	testkit.Eventually(t, patience, func() error {
		if n := next.calls.Load(); n < 500 {
			return fmt.Errorf("%d calls of the next server", n)
		}
		return nil
	})
	close(stop)
	wait()
}

// gone waits until all of these connections are closed.
func gone(t *testing.T, s *stock, cs []net.Conn) {
	t.Helper()
	testkit.Eventually(t, patience, func() error {
		if n := len(stay(s, cs)); n > 0 {
			return fmt.Errorf("%d of %d old connections are open", n, len(cs))
		}
		return nil
	})
}

// stay returns the connections that are still open.
func stay(s *stock, cs []net.Conn) []net.Conn {
	now := s.open()
	return slices.DeleteFunc(slices.Clone(cs), func(c net.Conn) bool { return !slices.Contains(now, c) })
}

// The server closes an idle connection but still listens: it may be one of several behind an address, so the other
// connections are replaced, and no call fails.
func TestConnectionsAreReplacedAfterTheEndOfOne(t *testing.T) {
	s := startStock(t, &stock{handle: slowly(t)})
	client := connect(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed, MaxConnections: 6})
	stop := make(chan struct{})
	wait := flood(t, client, 20, stop)
	for closed := false; !closed; {
		idle := s.idle(t, 6)
		old := s.open()
		idle.Close() // unless the client is closing it because six connections are not better than three
		for since := time.Now(); time.Since(since) < 5*time.Second && !closed; time.Sleep(time.Millisecond) {
			closed = len(stay(s, old)) == 0
		}
	}
	close(stop)
	wait()
}

// twoConnections returns a client with two connections that have answered and are idle. It closes refused when an
// attempt to connect fails.
func twoConnections(t *testing.T, s *stock) (client *rpc.Client, clock *movingClock, refused chan struct{}) {
	return twoConnectionsOf(t, s, rpc.ClientConfig{Transport: rpc.Framed})
}

func twoConnectionsOf(t *testing.T, s *stock, config rpc.ClientConfig) (client *rpc.Client, clock *movingClock, refused chan struct{}) {
	refused = make(chan struct{})
	var once sync.Once
	config.Addr, config.Timeout, config.MaxConnections = s.addr, 5*time.Minute, 2
	config.OnEvent = func(e slipstream.Event) {
		if e.Kind == slipstream.DialFailed {
			once.Do(func() { close(refused) })
		}
	}
	client, clock = connectAt(t, config)
	stop := make(chan struct{})
	wait := flood(t, client, 10, stop)
	testkit.Eventually(t, patience, func() error {
		all := s.open()
		if len(all) < 2 {
			return fmt.Errorf("%d connections", len(all))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if n := s.last[all[0]]; n < 200 {
			return fmt.Errorf("no call of the second connection after %d", n)
		}
		return nil
	})
	close(stop)
	wait()
	return client, clock, refused
}

// A connection to a server that is shutting down stays open while the server may have oneway calls to read, and gets no
// other calls.
func TestOnewayCallsOfServerThatEnds(t *testing.T) {
	s := startStock(t, &stock{})
	s.handle = func(c *stockCall) []byte {
		if c.Type == thrift.Oneway {
			return nil
		}
		return slowly(t)(c)
	}
	client, clock, refused := twoConnections(t, s)
	c := calc.NewCalculatorClient(client)
	before := s.calls.Load()
	if err := c.Forget(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, patience, func() error {
		if s.calls.Load() == before {
			return errors.New("the oneway call has not arrived")
		}
		return nil
	})
	all := s.open()
	s.listener.Close()
	all[0].Close() // not the one with the oneway call
	<-refused
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Add(ctx, 1, 2); slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("a call to a server that is shutting down: %v", err)
	}
	if len(stay(s, all[1:])) == 0 {
		t.Error("the connection has ended")
	}
	clock.ahead.Add(int64(11 * time.Second))
	gone(t, s, all)
}

// A connection to a server that is shutting down is closed when all of its calls have been abandoned.
func TestGivenUpCallsOfServerThatEnds(t *testing.T) {
	s := startStock(t, &stock{})
	gate := make(chan struct{})
	stuck := make(chan struct{}, 1)
	s.handle = func(c *stockCall) []byte {
		if string(c.Name) == "echo" {
			stuck <- struct{}{}
			<-gate
		}
		return slowly(t)(c)
	}
	defer close(gate)
	client, _, refused := twoConnections(t, s)
	c := calc.NewCalculatorClient(client)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { // ends with ctx
		_, err := c.Echo(ctx, "")
		ended <- err
	}()
	<-stuck
	all := s.open()
	s.listener.Close()
	all[0].Close()
	<-refused
	if len(stay(s, all[1:])) == 0 {
		t.Error("the connection has ended")
	}
	cancel()
	if err := <-ended; slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Error(err)
	}
	testkit.Eventually(t, patience, func() error {
		if n := client.Stats().Connected; n > 0 {
			return fmt.Errorf("%d connections", n)
		}
		return nil
	})
}

// If the next attempt to connect fails for any reason other than that nothing listens, the server is not assumed to be
// shutting down.
func TestOtherFailuresDoNotEndConnections(t *testing.T) {
	s := startStock(t, &stock{handle: slowly(t)})
	var broken atomic.Bool
	client, _, failed := twoConnectionsOf(t, s, rpc.ClientConfig{Transport: rpc.Framed, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if broken.Load() {
			return nil, errors.New("the network is down")
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}})
	all := s.open()
	broken.Store(true)
	all[0].Close()
	<-failed
	if sum, err := calc.NewCalculatorClient(client).Add(t.Context(), 1, 2); sum != 3 || err != nil {
		t.Errorf("%d, %v", sum, err)
	}
	if len(stay(s, all[1:])) == 0 {
		t.Error("the other connection has ended")
	}
}

// farewell is a result with the field by which a server without headers announces its shutdown.
type farewell struct{ thrift.CompactStruct }

func (f farewell) AppendThrift(b []byte) []byte {
	b = f.CompactStruct.AppendThrift(b)
	return append(b[:len(b)-1], goodbyes[0]...)
}

func (f farewell) AppendCompact(b []byte) []byte {
	b = f.CompactStruct.AppendCompact(b)
	return append(b[:len(b)-1], goodbyes[1]...)
}

// After a reply with that field, nothing more is written to the connection.
func TestServerWithoutHeadersSaysThatItEnds(t *testing.T) {
	for _, config := range []rpc.ClientConfig{{Transport: rpc.Framed}, {Transport: rpc.Buffered}, {Transport: rpc.Framed, Compact: true}, {Transport: rpc.Buffered, Compact: true}} {
		t.Run(fmt.Sprintf("%v, compact %v", config.Transport, config.Compact), func(t *testing.T) {
			s := startStock(t, &stock{handle: func(c *stockCall) []byte {
				if c.nth > 20 {
					t.Error("a call followed the goodbye")
				}
				if c.nth == 20 {
					return c.answer(thrift.Reply, farewell{sumOf(t, c)})
				}
				return add(t, c)
			}})
			config.Addr, config.MaxConnections = s.addr, 4
			config.Backoff, config.MaxBackoff = time.Millisecond, time.Millisecond
			client := connect(t, config)
			c := calc.NewCalculatorClient(client)
			var all sync.WaitGroup
			for i := range int32(8) {
				all.Go(func() {
					for n := range int32(100) {
						if sum, err := c.Add(t.Context(), i, n); sum != i+n || err != nil {
							t.Errorf("%d + %d = %d, %v", i, n, sum, err)
							return
						}
					}
				})
			}
			all.Wait()
			if n := s.connections.Load(); n < 30 {
				t.Errorf("%d connections, want one for 21 calls", n)
			}
		})
	}
}

// A call without a deadline fails 10 s after its server announced its shutdown without answering it. Other calls use
// another connection.
func TestServerThatEndsWithoutAnAnswer(t *testing.T) {
	s := startStock(t, &stock{handle: func(c *stockCall) []byte {
		if string(c.Name) == "ping" {
			return c.message(0, "none", thrift.Reply, &calc.BasePingResult{}, "crrst", "1")
		}
		return add(t, c)
	}})
	client, clock := connectAt(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.TTHeader, Timeout: -1})
	c := calc.NewCalculatorClient(client)
	if sum, err := c.Add(t.Context(), 1, 2); sum != 3 || err != nil {
		t.Fatalf("%d, %v", sum, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Ping(context.Background()) }() // ends when the clock is advanced
	testkit.Eventually(t, patience, func() error {
		if sum, err := c.Add(t.Context(), 1, 2); sum != 3 || err != nil {
			t.Fatalf("%d, %v", sum, err)
		}
		if n := s.connections.Load(); n != 2 {
			return fmt.Errorf("%d connections, want 2", n)
		}
		return nil
	})
	select {
	case err := <-ended:
		t.Fatalf("the call has ended early: %v", err)
	default:
	}
	clock.ahead.Store(int64(11 * time.Second))
	select {
	case err := <-ended:
		if slipstream.OutcomeOf(err) != slipstream.MaybeExecuted || !strings.Contains(err.Error(), "the server is shutting down") {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("the call has not ended")
	}
}

// saysThatItEnds answers a call with a header that announces the server's shutdown.
func saysThatItEnds(c *stockCall) []byte {
	return c.message(c.Seq, string(c.Name), thrift.Reply, &calc.BasePingResult{}, "crrst", "1")
}

// A server with headers announces its shutdown on one connection and stops listening. Its other connections get no more
// calls and are closed.
func TestServerSaysThatItEndsOnOneConnection(t *testing.T) {
	s := startStock(t, &stock{})
	s.handle = func(c *stockCall) []byte {
		if string(c.Name) == "ping" {
			return saysThatItEnds(c)
		}
		return slowly(t)(c)
	}
	client, _, refused := twoConnectionsOf(t, s, rpc.ClientConfig{Transport: rpc.TTHeader})
	c := calc.NewCalculatorClient(client)
	all := s.open()
	s.listener.Close()
	if err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-refused
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Add(ctx, 1, 2); slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Fatalf("a call to a server that is shutting down: %v", err)
	}
	gone(t, s, all)
}

// echo answers a call of echo in the Binary protocol.
func echo(t *testing.T, c *stockCall) []byte {
	var args calc.CalculatorEchoArgs
	var r thrift.Reader
	if _, err := r.Read(c.args, 0, &args); err != nil {
		t.Error(err)
	}
	return c.answer(thrift.Reply, &calc.CalculatorEchoResult{Success: thrift.Some(args.Text)})
}

// A server announces its shutdown on the connection for small messages and stops listening. The connection for large
// messages gets no more calls either.
func TestServerThatEndsGetsNoLargeCalls(t *testing.T) {
	s := startStock(t, &stock{handle: func(c *stockCall) []byte {
		if string(c.Name) == "ping" {
			return saysThatItEnds(c)
		}
		return echo(t, c)
	}})
	refused := make(chan struct{})
	var once sync.Once
	client := connect(t, rpc.ClientConfig{Addr: s.addr, OnEvent: func(e slipstream.Event) {
		if e.Kind == slipstream.DialFailed {
			once.Do(func() { close(refused) })
		}
	}})
	c := calc.NewCalculatorClient(client)
	large := strings.Repeat("x", 100<<10)
	for _, text := range []string{"", large} {
		if got, err := c.Echo(t.Context(), text); got != text || err != nil {
			t.Fatalf("echo of %d bytes: %d, %v", len(text), len(got), err)
		}
	}
	all := s.open()
	if len(all) != 2 {
		t.Fatalf("%d connections, want 2", len(all))
	}
	s.listener.Close()
	if err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-refused
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Echo(ctx, large); slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Fatalf("a large call to a server that is shutting down: %v", err)
	}
	gone(t, s, all)
}
