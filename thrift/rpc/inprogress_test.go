package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// Unless a header allows another order, the calls of a connection run one after another. If it does, they run
// concurrently, and each answer is sent when it is ready.
func TestOrder(t *testing.T) {
	eachFormat(t, func(t *testing.T, f frame.Format) {
		h := &calculator{gate: make(chan struct{})}
		s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorService(h))
		p := dial(t, s, f)
		p.anyOrder = true
		p.send("fail", 1, &calc.CalculatorFailArgs{How: "wait"})
		p.send("fail", 2, &calc.CalculatorFailArgs{How: "wait"})
		p.send("add", 3, &calc.CalculatorAddArgs{A: 1})
		var sum calc.CalculatorAddResult
		if f.HasHeader() {
			p.reply(3, &sum) // this reply overtakes both
			testkit.Eventually(t, patience, func() error {
				if n := h.running.Load(); n != 2 {
					return fmt.Errorf("%d calls run, want 2", n)
				}
				return nil
			})
			close(h.gate)
			seen := []int32{}
			for range 2 {
				a, err := p.next()
				if err != nil {
					t.Fatal(err)
				}
				seen = append(seen, a.Seq)
			}
			if slices.Sort(seen); !slices.Equal(seen, []int32{1, 2}) {
				t.Errorf("answers %v, want 1 and 2", seen)
			}
			return
		}
		testkit.Eventually(t, patience, func() error {
			if n := h.running.Load(); n != 1 {
				return fmt.Errorf("%d calls run, want 1", n)
			}
			return nil
		})
		time.Sleep(50 * time.Millisecond)
		if n := h.running.Load(); n != 1 {
			t.Errorf("%d calls run, want 1", n)
		}
		close(h.gate)
		p.reply(1, &calc.CalculatorFailResult{})
		p.reply(2, &calc.CalculatorFailResult{})
		p.reply(3, &sum)
	})
}

// The service is named in the header, or before the function name. Without a service name, only one service may have
// the function.
func TestSeveralServices(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorService(new(calculator)), calc.NewClockService(clock{}))
	p := dial(t, s, frame.Format{Transport: frame.Header})
	echo := func(name string, keys ...string) {
		p.Helper()
		p.keys = keys
		p.send(name, 1, &calc.ClockEchoArgs{Text: "x"})
	}
	var r calc.ClockEchoResult
	for _, row := range []struct{ name, service, want string }{
		{"Clock:echo", "", "clock: x"}, {"Calculator:echo", "", "x"}, {"echo", "Clock", "clock: x"}, {"echo", "Calculator", "x"}, {"Clock:echo", "Calculator", "clock: x"},
	} {
		if row.service != "" {
			echo(row.name, "isn", row.service)
		} else {
			echo(row.name)
		}
		a, err := p.next()
		if err != nil || string(a.Name) != "echo" {
			t.Fatalf("%s: %+v, %v; want an answer with the name of the function", row.name, a, err)
		}
		if p.decode(a, &r); r.Success.V != row.want {
			t.Errorf("%s of %q: %q, want %q", row.name, row.service, r.Success.V, row.want)
		}
	}
	echo("echo")
	if _, e := p.exception(1); e.Kind != thrift.UnknownMethod || !strings.Contains(e.Message, "several services") {
		t.Errorf("a function of two services: %v", e)
	}
	echo("Clock:add")
	if _, e := p.exception(1); e.Kind != thrift.UnknownMethod {
		t.Errorf("a function of another service: %v", e)
	}
	echo("Watch:now")
	if _, e := p.exception(1); e.Kind != thrift.UnknownMethod || !strings.Contains(e.Message, `no service "Watch"`) {
		t.Errorf("an unknown service: %v", e)
	}
	p.keys = []string{"isn", "Watch"}
	p.send("now", 2, &calc.ClockNowArgs{})
	var now calc.ClockNowResult
	if p.reply(2, &now); now.Success.V != 17 {
		t.Errorf("now is %d", now.Success.V)
	}
}

// The handler gets the deadline in the header. A call whose deadline passes before its turn is not executed, and its
// answer reports that.
func TestDeadlines(t *testing.T) {
	h := &calculator{gate: make(chan struct{})}
	var left []time.Duration
	var mu sync.Mutex
	h.seen = func(ctx context.Context) {
		mu.Lock()
		defer mu.Unlock()
		at, _ := ctx.Deadline()
		left = append(left, time.Until(at))
	}
	s := serve(t, rpc.ServerConfig{Workers: 1}, calc.NewCalculatorService(h))
	p := dial(t, s, frame.Format{Transport: frame.Header})
	p.anyOrder = true
	for _, timeout := range []string{"", "3600000", "x"} {
		p.timeout = timeout
		p.send("ping", 1, &calc.BasePingArgs{})
		p.reply(1, &calc.BasePingResult{})
	}
	mu.Lock()
	if len(left) != 3 || left[0] > 10*time.Second || left[1] > time.Hour || left[1] < 50*time.Minute || left[2] > 10*time.Second {
		t.Errorf("left to handlers: %v; want at most 10 s, an hour, and 10 s", left)
	}
	mu.Unlock()
	refused := uint64(1)
	for ms := 20; ; ms *= 2 {
		p.timeout = strconv.Itoa(ms)
		p.send("fail", 2, &calc.CalculatorFailArgs{How: "wait"})
		_, e := p.exception(2)
		if e.Kind == rpc.KindRefused && ms < 10_000 {
			refused++ // the machine is too busy to start the call within this time
			continue
		}
		if !strings.Contains(e.Message, context.DeadlineExceeded.Error()) {
			t.Errorf("a handler whose deadline has passed: %v", e)
		}
		break
	}
	p.timeout = "60000"
	p.send("fail", 3, &calc.CalculatorFailArgs{How: "wait"})
	testkit.Eventually(t, patience, func() error {
		if h.running.Load() != 1 {
			return errors.New("the handler does not run")
		}
		return nil
	})
	p.timeout = "1"
	p.send("add", 4, &calc.CalculatorAddArgs{})
	testkit.Eventually(t, patience, func() error {
		if s.Stats().Calls != 2 {
			return errors.New("the call has not arrived")
		}
		return nil
	})
	time.Sleep(5 * time.Millisecond)
	close(h.gate)
	p.reply(3, &calc.CalculatorFailResult{})
	a, e := p.exception(4)
	if e.Kind != rpc.KindRefused || !strings.Contains(e.Message, "deadline") || len(a.info.String("slipstream-refused")) == 0 {
		t.Errorf("a call that arrived too late: %v, header %+v", e, a.info)
	}
	if st := s.Stats(); st.Refused != refused {
		t.Errorf("%d calls were refused, want %d", st.Refused, refused)
	}
}

// Calls that exceed the server's limit are refused; calls that exceed the connection's limit wait.
func TestBoundsOfCalls(t *testing.T) {
	h := &calculator{gate: make(chan struct{})}
	s := serve(t, rpc.ServerConfig{MaxCalls: 6, MaxConnCalls: 4, Workers: 100}, calc.NewCalculatorService(h))
	p, q := dial(t, s, frame.Format{Transport: frame.Header}), dial(t, s, frame.Format{Transport: frame.Header, Compact: true})
	p.anyOrder, q.anyOrder = true, true
	for seq := range int32(20) {
		p.send("fail", seq, &calc.CalculatorFailArgs{How: "wait"})
	}
	running := func(n int64) {
		t.Helper()
		testkit.Eventually(t, patience, func() error {
			if got := h.running.Load(); got != n {
				return fmt.Errorf("%d calls run, want %d", got, n)
			}
			return nil
		})
	}
	running(4)
	for seq := range int32(3) {
		q.send("fail", seq, &calc.CalculatorFailArgs{How: "wait"})
	}
	running(6)
	if _, e := q.exception(2); e.Kind != rpc.KindRefused || !strings.Contains(e.Message, "too many calls") {
		t.Errorf("one call too many: %v", e)
	}
	close(h.gate)
	for range 20 {
		if _, err := p.next(); err != nil {
			t.Fatal(err)
		}
	}
}

// A server makes room for another connection by closing one that is not in use, and closes connections that have been
// idle for too long.
func TestBoundsOfConnections(t *testing.T) {
	s := serve(t, rpc.ServerConfig{MaxConnections: 2}, calc.NewCalculatorService(new(calculator)))
	for range 3 {
		p := dial(t, s, frame.Format{Transport: frame.Framed})
		p.send("ping", 1, &calc.BasePingArgs{})
		p.reply(1, &calc.BasePingResult{})
		if n := s.Stats().Connections; n > 2 {
			t.Errorf("%d connections, want at most 2", n)
		}
	}
	idle := serveToo(t, rpc.ServerConfig{IdleTimeout: 20 * time.Millisecond}, calc.NewCalculatorService(new(calculator)))
	p := dial(t, idle, frame.Format{Transport: frame.Framed})
	p.send("ping", 1, &calc.BasePingArgs{})
	p.reply(1, &calc.BasePingResult{})
	p.ended()
}

// The total size of large answers that clients do not read is bounded: the connections with the most pending bytes are
// closed, or calls get an exception in place of the answer. Other clients get their answers.
func TestUnreadLargeAnswersAreBounded(t *testing.T) {
	testkit.NoLeaks(t)
	s, err := rpc.NewServerWith(rpc.ServerConfig{Workers: 2}, 8<<20, calc.NewCalculatorService(new(calculator)))
	if err != nil {
		t.Fatal(err)
	}
	listen(t, s)
	growth := testkit.HeapGrowth(t)
	const clients, calls = 20, 20 // each call gets 2 MB
	for range clients {
		p := dial(t, s, frame.Format{Transport: frame.Header})
		p.anyOrder = true
		var all []byte
		for seq := range int32(calls) {
			all = append(all, p.encode("numbers", thrift.Call, seq+1, &calc.CalculatorNumbersArgs{Count: 250_000})...)
		}
		if _, err := p.Write(all); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, patience, func() error {
		if st := s.Stats(); st.Calls > 0 || st.Done < 10 || st.Connections == clients && st.Done < clients*calls/2 {
			return fmt.Errorf("%d calls have ended, %d are in progress, %d connections", st.Done, st.Calls, st.Connections)
		}
		return nil
	})
	if n := growth(); n > 250<<20 {
		t.Errorf("unread answers take %d bytes", n)
	}
	p := dial(t, s, frame.Format{Transport: frame.Header})
	testkit.Eventually(t, patience, func() error {
		p.send("numbers", 1, &calc.CalculatorNumbersArgs{Count: 50_000})
		if a, err := p.next(); err != nil || a.Type != thrift.Reply {
			return fmt.Errorf("%v, %v", a.Type, err)
		}
		return nil
	})
}
