package rpc_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// connect returns a client. If no timeout is set, it uses one that is long enough for a slow machine.
func connect(t *testing.T, c rpc.ClientConfig) *rpc.Client {
	t.Helper()
	c.Timeout = cmp.Or(c.Timeout, 5*time.Minute)
	return connectWith(t, c)
}

func connectWith(t *testing.T, c rpc.ClientConfig) *rpc.Client {
	t.Helper()
	client, err := rpc.NewClient(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// eachTransport runs a test with each transport and protocol that clients support.
func eachTransport(t *testing.T, test func(t *testing.T, c rpc.ClientConfig)) {
	for _, transport := range []rpc.Transport{rpc.TTHeader, rpc.TTHeaderFramed, rpc.Framed, rpc.Buffered} {
		for _, compact := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, compact %v", transport, compact), func(t *testing.T) {
				test(t, rpc.ClientConfig{Transport: transport, Compact: compact})
			})
		}
	}
}

// Results, declared exceptions, statuses and other errors keep their type, in all formats.
func TestResultsOfCalls(t *testing.T) {
	h := new(calculator)
	s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorService(h))
	eachTransport(t, func(t *testing.T, config rpc.ClientConfig) {
		config.Addr = s.Addr().String()
		client := connect(t, config)
		ctx := t.Context()
		c := calc.NewCalculatorClient(client)
		if sum, err := c.Add(ctx, 40, 2); sum != 42 || err != nil {
			t.Errorf("sum %d, %v", sum, err)
		}
		if _, err := c.Add(ctx, 1<<30, 1<<30); err == nil || !isOverflow(err, "2147483648") {
			t.Errorf("overflow: %v", err)
		}
		p, err := c.Move(ctx, &calc.Point{X: 1, Y: 1, Note: thrift.Some("n"), Blob: []byte("blob")}, []calc.Point{{X: 2, Y: 3}})
		if err != nil || p.X != 3 || p.Y != 4 || p.Note.V != "n" || string(p.Blob) != "blob" {
			t.Errorf("moved %+v, %v", p, err)
		}
		if all, err := c.Numbers(ctx, 0); err != nil || len(all) != 0 {
			t.Errorf("no numbers: %v, %v", all, err)
		}
		if all, err := c.Counts(ctx, nil); err != nil || len(all) != 0 {
			t.Errorf("no words: %v, %v", all, err)
		}
		if all, err := c.Counts(ctx, []string{"a", "b", "a"}); err != nil || !maps.Equal(all, map[string]int32{"a": 2, "b": 1}) {
			t.Errorf("counts: %v, %v", all, err)
		}
		if err := c.Ping(ctx); err != nil { // of the base service
			t.Error(err)
		}
		if p, err := c.Move(ctx, nil, nil); p != nil || kindOf(err) != thrift.MissingResult {
			t.Errorf("no result: %v, %v", p, err)
		}
		for _, size := range []int{0, 1, 60 << 10, 70 << 10, 2 << 20} {
			text := strings.Repeat("x", size)
			if got, err := c.Echo(ctx, text); got != text || err != nil {
				t.Errorf("echo of %d bytes: %d, %v", size, len(got), err)
			}
		}
		for how, kind := range map[string]int32{"broken": thrift.InternalError, "panic": thrift.InternalError, "protocol odd": thrift.ProtocolError} {
			if err := c.Fail(ctx, how); kindOf(err) != kind || slipstream.OutcomeOf(err) != slipstream.Executed {
				t.Errorf("%s: %v", how, err)
			}
		}
		err = c.Fail(ctx, "status sold out")
		if status, ok := errors.AsType[*rpc.StatusError](err); ok != (config.Transport <= rpc.TTHeaderFramed) || slipstream.OutcomeOf(err) != slipstream.Executed {
			t.Errorf("a status: %v", err)
		} else if kitex, found := errors.AsType[interface {
			error
			BizStatusCode() int32
		}](err); found != ok || ok && kitex.BizStatusCode() != 7 {
			t.Errorf("a status, for programs that look for one of Kitex: %v", err)
		} else if ok && (status.Code != 7 || status.Message != "sold out" || status.Details["a"] != "b") {
			t.Errorf("a status: %+v", status)
		}
		if _, err := calc.NewClockClient(client).Now(ctx); kindOf(err) != thrift.UnknownMethod || slipstream.OutcomeOf(err) != slipstream.Refused {
			t.Errorf("a service that the server does not have: %v", err)
		}
		before := h.forgotten.Load()
		if err := c.Forget(ctx, 5); err != nil {
			t.Error(err)
		}
		testkit.Eventually(t, patience, func() error {
			if n := h.forgotten.Load() - before; n != 5 {
				return fmt.Errorf("%d was forgotten, want 5", n)
			}
			return nil
		})
	})
}

func isOverflow(err error, what string) bool {
	e, ok := errors.AsType[*calc.Overflow](err)
	return ok && e.What == what
}

// kindOf returns the kind of the exception in an error, or -1.
func kindOf(err error) int32 {
	if e, ok := errors.AsType[*thrift.ApplicationException](err); ok {
		return e.Kind
	}
	return -1
}

// Every caller gets its own reply, however many callers there are. A server that answers in any order needs one
// connection, unless it is slow to announce it.
func TestManyCallers(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorService(new(calculator)), calc.NewClockService(clock{}))
	eachTransport(t, func(t *testing.T, config rpc.ClientConfig) {
		config.Addr, config.Multiplexed = s.Addr().String(), config.Transport > rpc.TTHeaderFramed
		const attempts = 5
		for i := range attempts {
			client := connect(t, config)
			callMany(t, client)
			st := client.Stats()
			anyOrder := config.Transport <= rpc.TTHeaderFramed
			if st.AnyOrder != anyOrder || st.Failed+st.Cancelled > 0 || st.InProgress+st.Waiting != 0 {
				t.Errorf("statistics: any order %v, %d failed, %d canceled, %d in progress, %d waiting", st.AnyOrder, st.Failed, st.Cancelled, st.InProgress, st.Waiting)
			}
			if !anyOrder || st.Connected == 1 {
				return
			}
			if i == attempts-1 {
				t.Errorf("%d connections", st.Connected)
			}
		}
	})
}

// callMany calls two services from many goroutines.
func callMany(t *testing.T, client *rpc.Client) {
	t.Helper()
	c, other := calc.NewCalculatorClient(client), calc.NewClockClient(client)
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			for n := range 20 {
				text := strings.Repeat("x", n*i) + fmt.Sprintf(" %d %d", i, n)
				if got, err := c.Echo(t.Context(), text); err != nil || got != text {
					t.Errorf("sent %d bytes, got %d, %v", len(text), len(got), err)
					return
				}
				if got, err := other.Echo(t.Context(), text); err != nil || got != "clock: "+text {
					t.Errorf("sent %d bytes to another service, got %d, %v", len(text), len(got), err)
					return
				}
			}
		})
	}
	all.Wait()
}

// The handler's context, and the calls that the handler makes, have the deadline of the call.
func TestDeadlinesTravel(t *testing.T) {
	seen := make(chan time.Duration, 4)
	h := &calculator{seen: func(ctx context.Context) {
		at, _ := ctx.Deadline()
		seen <- time.Until(at)
	}}
	s := serve(t, rpc.ServerConfig{Timeout: time.Hour}, calc.NewCalculatorService(h))
	inside := calc.NewCalculatorClient(connect(t, rpc.ClientConfig{Addr: s.Addr().String(), Timeout: time.Hour}))
	outer := &calculator{seen: func(ctx context.Context) {
		if err := inside.Ping(ctx); err != nil {
			t.Error(err)
		}
	}}
	front := serveToo(t, rpc.ServerConfig{Timeout: time.Hour}, calc.NewCalculatorService(outer))
	for _, row := range []struct {
		client, context time.Duration
		least, most     time.Duration
	}{
		{0, 0, 0, 10 * time.Second},
		{20 * time.Minute, 0, 10 * time.Second, 20 * time.Minute},
		{0, 5 * time.Second, 0, 5 * time.Second},
		{-1, 30 * time.Minute, 20 * time.Minute, 30 * time.Minute},
		{-1, 0, 30 * time.Minute, time.Hour},
	} {
		c := calc.NewCalculatorClient(connectWith(t, rpc.ClientConfig{Addr: front.Addr().String(), Timeout: row.client}))
		ctx, cancel := t.Context(), context.CancelFunc(func() {})
		if row.context > 0 {
			ctx, cancel = context.WithTimeout(ctx, row.context)
		}
		err := c.Ping(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if left := <-seen; left <= row.least || left > row.most {
			t.Errorf("%+v: the inner handler has %v", row, left)
		}
	}
	// A handler that is too slow.
	slow := &calculator{gate: make(chan struct{})}
	late := serveToo(t, rpc.ServerConfig{}, calc.NewCalculatorService(slow))
	for timeout := 50 * time.Millisecond; ; timeout *= 2 {
		c := calc.NewCalculatorClient(connect(t, rpc.ClientConfig{Addr: late.Addr().String(), Timeout: timeout}))
		err := c.Fail(t.Context(), "wait")
		if slipstream.OutcomeOf(err) == slipstream.NotSent && timeout < patience {
			continue // the machine was too slow to send the call
		}
		if !errors.Is(err, context.DeadlineExceeded) && kindOf(err) != thrift.InternalError {
			t.Errorf("a slow handler: %v", err)
		}
		break
	}
}

// Metadata is sent with calls. Persistent values are passed on with the calls that a handler makes; others are not.
func TestMetaTravels(t *testing.T) {
	seen := make(chan []rpc.Meta, 1)
	s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorService(&calculator{seen: func(ctx context.Context) { seen <- rpc.Received(ctx) }}))
	inside := calc.NewCalculatorClient(connect(t, rpc.ClientConfig{Addr: s.Addr().String()}))
	outer := &calculator{seen: func(ctx context.Context) {
		if err := inside.Ping(rpc.WithMeta(ctx, rpc.Meta{Key: "step", Value: "2"})); err != nil {
			t.Error(err)
		}
	}}
	front := serveToo(t, rpc.ServerConfig{}, calc.NewCalculatorService(outer))
	c := calc.NewCalculatorClient(connect(t, rpc.ClientConfig{Addr: front.Addr().String()}))
	ctx := rpc.WithMeta(t.Context(), rpc.Meta{Key: "tenant", Value: "a", Persistent: true})
	ctx = rpc.WithMeta(ctx, rpc.Meta{Key: "step", Value: "1"})
	if err := c.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	if got := <-seen; !slices.Equal(got, []rpc.Meta{{Key: "tenant", Value: "a", Persistent: true}, {Key: "step", Value: "2"}}) {
		t.Errorf("the inner handler has received %+v", got)
	}
}

// Calls that exceed the limits fail before they are sent.
func TestBoundsOfClients(t *testing.T) {
	h := &calculator{gate: make(chan struct{})}
	s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorService(h))
	client := connect(t, rpc.ClientConfig{Addr: s.Addr().String(), MaxCalls: 2, MaxBytes: 1 << 20, MaxMessage: 300 << 10})
	c := calc.NewCalculatorClient(client)
	if _, err := c.Echo(t.Context(), strings.Repeat("x", 600<<10)); slipstream.OutcomeOf(err) != slipstream.Overloaded {
		t.Errorf("more than MaxBytes: %v", err)
	}
	if _, err := c.Echo(t.Context(), strings.Repeat("x", 310<<10)); slipstream.OutcomeOf(err) != slipstream.NotSent || !strings.Contains(err.Error(), "the limit is 307200") {
		t.Errorf("more than MaxMessage: %v", err)
	}
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { // ends when the gate is opened
			if err := c.Fail(t.Context(), "wait"); err != nil {
				t.Error(err)
			}
		})
	}
	testkit.Eventually(t, patience, func() error {
		if n := h.running.Load(); n != 2 {
			return fmt.Errorf("%d calls run", n)
		}
		return nil
	})
	if err := c.Ping(t.Context()); slipstream.OutcomeOf(err) != slipstream.Overloaded {
		t.Errorf("more than MaxCalls: %v", err)
	}
	close(h.gate)
	all.Wait()
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if st := client.Stats(); st.Overloaded != 2 {
		t.Errorf("%d calls were rejected, want 2", st.Overloaded)
	}
	// Arguments that cannot be encoded.
	if _, err := c.Move(t.Context(), nil, nil); kindOf(err) != thrift.MissingResult {
		t.Error(err)
	}
}

// While a server restarts, calls wait for it or are retried, and none is lost.
func TestRestartUnderLoad(t *testing.T) {
	h := new(calculator)
	s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorService(h))
	addr := s.Addr().String()
	client := connect(t, rpc.ClientConfig{Addr: addr})
	c := calc.NewCalculatorClient(client)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if sum, err := c.Add(t.Context(), int32(i), int32(n)); err != nil || sum != int32(i+n) {
					t.Errorf("%d, %v", sum, err)
					return
				}
			}
		})
	}
	for range 3 {
		testkit.Eventually(t, patience, func() error {
			if s.Stats().Done < 1000 {
				return errors.New("there have been too few calls")
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := s.Shutdown(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if s, err = rpc.NewServer(rpc.ServerConfig{}, calc.NewCalculatorService(h)); err != nil {
			t.Fatal(err)
		}
		if err := s.Listen("tcp", addr); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	all.Wait()
	if st := client.Stats(); st.Failed > 0 {
		t.Errorf("%d calls failed with their connections", st.Failed)
	}
	client.Close()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// When a client is closed, its calls fail, and each error says whether the server may have executed the call.
func TestClosedClient(t *testing.T) {
	h := &calculator{gate: make(chan struct{})}
	s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorService(h))
	client := connect(t, rpc.ClientConfig{Addr: s.Addr().String(), Transport: rpc.Framed, MaxConnections: 1})
	c := calc.NewCalculatorClient(client)
	outcomes := make(chan slipstream.Outcome, 10)
	for range 10 {
		go func() { outcomes <- slipstream.OutcomeOf(c.Fail(t.Context(), "wait")) }() // ends with Close
	}
	testkit.Eventually(t, patience, func() error {
		if st := client.Stats(); st.Waiting != 9 || h.running.Load() != 1 {
			return fmt.Errorf("%d calls wait, %d run; want 9 and 1", st.Waiting, h.running.Load())
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := c.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) || slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("a call whose context ended while it waited: %v", err)
	}
	client.Close()
	close(h.gate)
	got := map[slipstream.Outcome]int{}
	for range 10 {
		got[<-outcomes]++
	}
	if got[slipstream.MaybeExecuted] != 1 || got[slipstream.Closed] != 9 {
		t.Errorf("outcomes: %v; want one call that may have been executed, and 9 that were not sent", got)
	}
	if err := c.Ping(t.Context()); slipstream.OutcomeOf(err) != slipstream.Closed {
		t.Errorf("a call after Close: %v", err)
	}
	client.Close()
}

// If the server cannot be reached, a call waits for the configured time.
func TestNoServer(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, calc.NewClockService(clock{}))
	addr := s.Addr().String()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	waits := connect(t, rpc.ClientConfig{Addr: addr, DialTimeout: 100 * time.Millisecond, Retries: -1})
	if _, err := calc.NewClockClient(waits).Now(t.Context()); slipstream.OutcomeOf(err) != slipstream.NotSent || !strings.Contains(err.Error(), "refused") {
		t.Errorf("without a server: %v", err)
	}
	fast := connect(t, rpc.ClientConfig{Addr: addr, DialTimeout: time.Hour, FailFast: true})
	if err := fast.Connect(t.Context()); err == nil {
		t.Error("there is a connection")
	}
	if _, err := calc.NewClockClient(fast).Now(t.Context()); slipstream.OutcomeOf(err) != slipstream.NotSent || !strings.Contains(err.Error(), "refused") {
		t.Errorf("without a server, with FailFast: %v", err)
	}
}

func TestWrongClientConfig(t *testing.T) {
	for want, c := range map[string]rpc.ClientConfig{
		`address "h"`:                 {Addr: "h"},
		"unknown transport 9":         {Addr: "h:1", Transport: 9},
		"Multiplexed is for":          {Addr: "h:1", Multiplexed: true},
		`idempotent function "a.b.c"`: {Addr: "h:1", Idempotent: []string{"a.b.c"}},
		"max connections 2000":        {Addr: "h:1", MaxConnections: 2000},
		"dial timeout -1s":            {Addr: "h:1", DialTimeout: -time.Second},
		"SlowThreshold and OnSlow":    {Addr: "h:1", SlowThreshold: time.Second},
	} {
		if client, err := rpc.NewClient(c); err == nil || client != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// A client learns that its server answers in any order even if the first call takes long.
func TestSlowHandlerOfFirstCall(t *testing.T) {
	h := &calculator{gate: make(chan struct{})}
	s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorService(h))
	for _, size := range []int{1, 70 << 10} { // small and large messages
		client := connect(t, rpc.ClientConfig{Addr: s.Addr().String(), MaxConnections: 1, Timeout: patience})
		c := calc.NewCalculatorClient(client)
		first := make(chan error, 1)
		go func() { first <- c.Fail(t.Context(), "wait"+strings.Repeat(" ", size)) }() // ends when the gate is opened
		testkit.Eventually(t, patience, func() error {
			if h.running.Load() != 1 {
				return errors.New("the first call does not run")
			}
			return nil
		})
		if got, err := c.Echo(t.Context(), strings.Repeat("x", size)); err != nil || len(got) != size {
			t.Fatalf("the second call: %d bytes, %v", len(got), err)
		}
		h.gate <- struct{}{}
		if err := <-first; err != nil {
			t.Error(err)
		}
		if st := client.Stats(); st.Connected != 1+st.Large || (st.Large == 1) != (size > 64<<10) {
			t.Errorf("%d connections, %d of them for large messages", st.Connected, st.Large)
		}
	}
}

// Large messages, and functions that have had large replies, use separate connections.
func TestLargeMessagesHaveTheirOwnConnection(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorService(new(calculator)))
	for name, call := range map[string]func(c *calc.CalculatorClient) error{
		"a large request": func(c *calc.CalculatorClient) error {
			_, err := c.Counts(t.Context(), []string{strings.Repeat("x", 70<<10)})
			return err
		},
		"large replies": func(c *calc.CalculatorClient) error {
			_, err := c.Numbers(t.Context(), 10_000)
			if err == nil {
				_, err = c.Numbers(t.Context(), 10_000)
			}
			return err
		},
	} {
		client := connect(t, rpc.ClientConfig{Addr: s.Addr().String()})
		c := calc.NewCalculatorClient(client)
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st := client.Stats(); st.Large != 0 {
			t.Errorf("%s: %d connections for large messages before", name, st.Large)
		}
		if err := call(c); err != nil {
			t.Fatal(err)
		}
		if st := client.Stats(); st.Large != 1 || st.Connected != 2 {
			t.Errorf("%s: %d connections, %d of them for large messages; want 2 and 1", name, st.Connected, st.Large)
		}
	}
}
