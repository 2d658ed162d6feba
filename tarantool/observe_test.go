package tarantool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/tarantool"
)

// recorder keeps the observations that it receives.
type recorder struct {
	mu   sync.Mutex
	seen []tarantool.Observation // guarded by mu
}

func (r *recorder) Observe(o tarantool.Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, o)
}

// take returns the observations and clears them.
func (r *recorder) take() []tarantool.Observation {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = nil
	return seen
}

type spanKey struct{}

// Every kind of call is observed once, with the context of its caller. Requests that the client
// itself makes, such as those for the schema, are not observed.
//
// mutant: tarantool-observes-itself
func TestObserver(t *testing.T) {
	testkit.NoLeaks(t)
	var r recorder
	s := testkit.StartTarantool(t, setup)
	c := connect(t, tarantool.Options{Addr: s.Addr, Observer: &r})
	ctx := context.WithValue(t.Context(), spanKey{}, "the caller's span")
	users := tarantool.SpaceOf[user](c, "users")
	echo := tarantool.ProcedureOf[user, user](c, "echo")
	began := time.Now()
	for _, test := range []struct {
		op     string
		failed bool
		call   func() error
	}{
		{"select", false, func() error { _, err := users.Get(ctx, new(user), tarantool.Int(7)); return err }},
		{"select", false, func() error { _, err := users.Get(ctx, new(user), tarantool.Int(7)); return err }},
		{"select", false, func() error { _, err := users.StartGet(ctx, tarantool.Int(7)).Get(new(user)); return err }},
		{"replace", false, func() error { return users.Replace(ctx, &user{7, "secret", 1}) }},
		{"call", false, func() error { return echo.Call(ctx, new(user), new(user)) }},
		{"call", false, func() error { return echo.Blocking().Call(ctx, new(user), new(user)) }},
		{"ping", false, func() error { return c.Do(ctx, nil, tarantool.Ping()) }},
		{"eval", false, func() error { return c.Start(ctx, tarantool.Eval("return 1")).Wait(nil) }},
		{"call", true, func() error { return c.Do(ctx, nil, tarantool.Call("fails")) }},
		{"select", true, func() error { return c.Do(ctx, nil, tarantool.Select("no such space")) }},
	} {
		err := test.call()
		seen := r.take()
		if len(seen) != 1 {
			t.Errorf("%s: %d observations: %+v", test.op, len(seen), seen)
			continue
		}
		o := seen[0]
		if !strings.EqualFold(o.Op, test.op) || (err != nil) != test.failed || !errors.Is(o.Err, err) || o.Attempts != 1 || o.Requests != 1 || o.System != "tarantool" || o.Namespace != "" || o.Addr != s.Addr {
			t.Errorf("%s: %+v; %v", test.op, o, err)
		}
		var answered *tarantool.ServerError
		if test.op == "call" && test.failed && (!errors.As(o.Err, &answered) || answered.StatusCode() != "42000") {
			t.Errorf("%s: %v", test.op, o.Err)
		}
		if o.Context.Value(spanKey{}) != "the caller's span" || o.Start.Before(began) || o.End.Before(o.Start) || o.End.After(time.Now()) {
			t.Errorf("%s: %+v", test.op, o)
		}
		sent := test.op != "select" || !test.failed // the schema has no such space
		if sent && (o.RequestBytes == 0 || o.ReplyBytes == 0) || strings.Contains(fmt.Sprint(o.Op, o.Addr), "secret") {
			t.Errorf("%s: %+v", test.op, o)
		}
	}
}

func TestSlowRequests(t *testing.T) {
	testkit.NoLeaks(t)
	var slow recorder
	s := testkit.StartTarantool(t, setup)
	c := connect(t, tarantool.Options{Addr: s.Addr, SlowThreshold: 50 * time.Millisecond, OnSlow: slow.Observe})
	must(t, c.Do(t.Context(), nil, tarantool.Ping()))
	slow.take() // a slow machine may have slow calls
	must(t, c.Do(t.Context(), nil, tarantool.Eval("require('fiber').sleep(0.08)")))
	seen := slow.take()
	if len(seen) != 1 || !strings.EqualFold(seen[0].Op, "eval") || seen[0].Duration() < 80*time.Millisecond {
		t.Errorf("%+v", seen)
	}
}

type panicking struct{}

func (panicking) Observe(tarantool.Observation) { panic("observer") }

func TestStatsAndHooksThatPanic(t *testing.T) {
	testkit.NoLeaks(t)
	s := testkit.StartTarantool(t, setup)
	c := connect(t, tarantool.Options{
		Addr: s.Addr, Observer: panicking{}, SlowThreshold: time.Nanosecond,
		OnSlow:  func(tarantool.Observation) { panic("slow") },
		OnEvent: func(tarantool.Event) { panic("event") },
	})
	must(t, c.Do(t.Context(), nil, tarantool.Ping()))
	testkit.Eventually(t, 5*time.Second, func() error {
		if n := c.Stats().HookPanics; n != 3 {
			return fmt.Errorf("%d panics counted, want 3", n)
		}
		return nil
	})
	stats := c.Stats()
	if stats.Calls == 0 || stats.Replies != stats.Calls || stats.Connected != 1 || stats.BytesOut == 0 || stats.Blocking != 0 || stats.Outstanding != 0 {
		t.Errorf("%+v", stats)
	}
}

// Requests of a pool to its instances are not reported to the observer of their
// options.
func TestObserverOfAPool(t *testing.T) {
	testkit.NoLeaks(t)
	var r recorder
	s := testkit.StartTarantool(t, setup)
	p := newPool(t, tarantool.PoolOptions{Addrs: []string{s.Addr}, Options: tarantool.Options{Observer: &r}, WaitFor: tarantool.ReadWrite})
	must(t, p.Do(t.Context(), nil, tarantool.Ping(), tarantool.ReadWrite)) // the role is known, so it was queried
	if seen := r.take(); len(seen) != 1 || !strings.EqualFold(seen[0].Op, "ping") {
		t.Errorf("%+v", seen)
	}
}
