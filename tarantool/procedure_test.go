package tarantool_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

func TestProcedure(t *testing.T) {
	c, _ := started(t)
	ctx := t.Context()
	type args struct {
		A int
		B string
	}
	type results struct {
		First  int
		Second string
	}
	echo := tarantool.ProcedureOf[args, results](c, "echo")
	var r results
	if err := echo.Call(ctx, &args{7, "x"}, &r); err != nil || r != (results{7, "x"}) {
		t.Errorf("%v, %v", r, err)
	}
	own := tarantool.ProcedureOf[user, user](c, "echo").Idempotent().Blocking()
	var u user
	if err := own.Call(ctx, &user{1, "a", 2}, &u); err != nil || u != (user{1, "a", 2}) {
		t.Errorf("%v, %v", u, err)
	}
	must(t, own.Call(ctx, &user{}, nil))
	must(t, tarantool.ProcedureOf[args, results](c, "echo").Call(ctx, nil, &r))
	fails := tarantool.ProcedureOf[args, results](c, "fails")
	if err := fails.Call(ctx, nil, &r); !tarantool.IsCode(err, 42000) || slipstream.OutcomeOf(err) != slipstream.Executed {
		t.Errorf("%v", err)
	}
	wrong := tarantool.ProcedureOf[args, [2]uint8](c, "echo")
	if err := wrong.Call(ctx, &args{1, "x"}, new([2]uint8)); slipstream.OutcomeOf(err) != slipstream.Executed {
		t.Errorf("%v", err)
	}
}

// Pushes of a function arrive before its result, only at its caller, and never after the
// caller has given up.
func TestPushes(t *testing.T) {
	c, _ := started(t)
	ctx := t.Context()
	push := func(name string, n int) tarantool.ProcedureRequest {
		return tarantool.Eval(`local name, n = ...; for i = 1, n do box.session.push{name, i}; require('fiber').yield() end; return name`, name, n)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 20 {
				name, want, got := fmt.Sprintf("%d-%d", g, i), "", ""
				for j := range 3 {
					want += fmt.Sprintf("[[%s %d]]", name, j+1)
				}
				req := push(name, 3).OnPush(func(d *iproto.Decoder) { got += fmt.Sprint(d.Any()) })
				data, err := c.Start(ctx, req).Get()
				if err != nil || fmt.Sprint(data) != "["+name+"]" || got != want {
					t.Errorf("%v, %v, pushed %s; want %s", data, err, got, want)
				}
			}
		})
	}
	wg.Wait()
	must(t, c.Do(ctx, nil, push("nobody", 5)))
	must(t, c.Do(ctx, nil, push("panics", 2).OnPush(func(*iproto.Decoder) { panic("the user's code") })))
	for range 20 {
		short, cancel := context.WithTimeout(ctx, 3*time.Millisecond)
		gone := false
		long := tarantool.Eval(`for i = 1, 200 do box.session.push(i); require('fiber').sleep(0.0005) end`)
		err := c.Do(short, nil, long.OnPush(func(*iproto.Decoder) {
			if gone {
				t.Error("a push came after its caller had given up")
			}
		}))
		gone = true
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	}
	must(t, c.Do(ctx, nil, tarantool.Ping()))
}

// Calls that take long are sent on separate connections. The server stops reading from a
// connection, and finally from all of them, while too many requests are in flight; with separate
// connections, it still answers all other calls.
func TestSlowCallsDelayNobody(t *testing.T) {
	testkit.NoLeaks(t)
	s := testkit.StartTarantool(t, `
box.schema.user.grant('guest', 'super', nil, nil, {if_not_exists = true})
gate = require('fiber').cond()
waiting = 0
function slow(x) waiting = waiting + 1; gate:wait(); waiting = waiting - 1; return x end
`) // as started by Debian: 768 requests, 16,320 bytes
	c := connect(t, tarantool.Options{Addr: s.Addr})
	ctx := t.Context()
	var wg sync.WaitGroup
	for i := range 800 {
		wg.Go(func() {
			data, err := c.Start(ctx, tarantool.Call("slow", fmt.Sprint("argument ", i)).Blocking()).Get()
			if err != nil || fmt.Sprint(data) != fmt.Sprintf("[argument %d]", i) {
				t.Errorf("call %d: %v, %v", i, data, err)
			}
		})
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		data, err := c.Start(ctx, tarantool.Eval("return waiting")).Get()
		if err != nil || fmt.Sprint(data) != "[512]" {
			return fmt.Errorf("%v wait, %w", data, err)
		}
		return nil
	})
	worst := time.Duration(0)
	for range 300 {
		began := time.Now()
		must(t, c.Do(ctx, nil, tarantool.Ping()))
		worst = max(worst, time.Since(began))
	}
	t.Logf("the slowest of 300 pings with 800 slow calls in flight: %v", worst)
	if worst > time.Second {
		t.Errorf("a ping took %v", worst)
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for over := false; !over; { // calls that had to wait here get their turn, too
		must(t, c.Do(ctx, nil, tarantool.Eval("gate:broadcast()")))
		select {
		case <-done:
			over = true
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// A slot in the lane of calls that may take long is released when the call ends, whether or not its
// result is taken. A client with FailFast can make such calls, too.
func TestBlockingFuturesBeyondTheLane(t *testing.T) {
	_, s := started(t)
	c := connect(t, tarantool.Options{Addr: s.Addr, MaxBlocking: 4, FailFast: true, WaitWhenFull: true})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	futures := make([]tarantool.Future, 40)
	for i := range futures {
		futures[i] = c.Start(ctx, tarantool.Call("echo", i).Blocking())
	}
	for i, f := range futures {
		if data, err := f.Get(); err != nil || fmt.Sprint(data) != fmt.Sprintf("[%d]", i) {
			t.Errorf("call %d: %v, %v", i, data, err)
		}
	}
}
