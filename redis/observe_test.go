package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// recorder keeps the observations that it receives.
type recorder struct {
	mu   sync.Mutex
	seen []redis.Observation // guarded by mu
}

func (r *recorder) Observe(o redis.Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, o)
}

// take returns the observations and clears them.
func (r *recorder) take() []redis.Observation {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = nil
	return seen
}

// Every kind of call is observed once, with the context of its caller.
//
// mutant: redis-completer-observed-without-context
func TestObserver(t *testing.T) {
	var r recorder
	c := start(t, func(o *redis.Options) { o.Observer, o.DB = &r, 3 })
	type spanKey struct{}
	ctx := context.WithValue(t.Context(), spanKey{}, "span")
	began := time.Now()
	for _, test := range []struct {
		call     func() error
		op       string
		commands int
		failed   bool
	}{
		{func() error { return c.Set(ctx, "secret-key", "secret-value") }, "SET", 1, false},
		{func() error { _, _, err := c.Get(ctx, "secret-key"); return err }, "GET", 1, false},
		{func() error { _, err := c.Incr(ctx, "secret-key"); return err }, "INCR", 1, true},
		{func() error { return c.Do(ctx, nil, redis.Cmd("client", "id")) }, "CLIENT ID", 1, false},
		{func() error { return c.Start(ctx, redis.Cmd("PING")).Wait(nil) }, "PING", 1, false},
		{func() error {
			done := make(chan error, 1)
			if err := c.DoFunc(ctx, redis.Cmd("PING"), completer(func(_ redis.Reply, err error) { done <- err })); err != nil {
				return err
			}
			return <-done
		}, "PING", 1, false},
		{func() error {
			return c.DoMany(ctx, []redis.Command{redis.Cmd("PING"), redis.Cmd("NOSUCH", "secret")}, nil)
		}, "BATCH", 2, true},
		{func() error { return c.Do(ctx, nil, redis.Cmd("BLPOP", "secret-list", 0.01)) }, "BLPOP", 1, false},
	} {
		err := test.call()
		var seen []redis.Observation
		testkit.Eventually(t, 10*time.Second, func() error {
			if seen = append(seen, r.take()...); len(seen) == 0 {
				return errors.New("nothing observed")
			}
			return nil
		})
		o := seen[0]
		if len(seen) != 1 || o.Op != test.op || o.Requests != test.commands || (o.Err != nil) != test.failed || (err != nil) != test.failed || o.Attempts != 1 {
			t.Errorf("%s: %+v; %v", test.op, seen, err)
		}
		if o.Context.Value(spanKey{}) != "span" || o.System != "redis" || o.Namespace != "3" {
			t.Errorf("%s: %+v", test.op, o)
		}
		if o.Addr == "" || o.Start.Before(began) || o.Duration() <= 0 || o.Duration() > time.Since(began) || o.RequestBytes == 0 || o.ReplyBytes == 0 {
			t.Errorf("%s: %+v", test.op, o)
		}
		if test.op != "BATCH" && strings.Contains(fmt.Sprint(o), "secret") {
			t.Errorf("%s: %v contains a key or a value", test.op, o)
		}
	}
}

func TestSlowCalls(t *testing.T) {
	var slow recorder
	c := start(t, func(o *redis.Options) {
		o.SlowThreshold = 50 * time.Millisecond
		o.OnSlow = slow.Observe
	})
	ctx := t.Context()
	must(t, c.Ping(ctx))
	const busy = "local t = redis.call('TIME') local from = t[1]*1000000+t[2] repeat t = redis.call('TIME') until t[1]*1000000+t[2] > from + 80000 return 1"
	must(t, c.Do(ctx, nil, redis.Cmd("EVAL", busy, 0)))
	seen := slow.take()
	if len(seen) != 1 || seen[0].Op != "EVAL" || seen[0].Duration() < 80*time.Millisecond {
		t.Errorf("%+v", seen)
	}
}

// panicky is an observer whose panics must not affect calls.
type panicky struct{}

func (panicky) Observe(redis.Observation) { panic("observer") }

func TestHooksThatPanic(t *testing.T) {
	c := start(t, func(o *redis.Options) {
		o.Observer = panicky{}
		o.SlowThreshold = time.Nanosecond
		o.OnSlow = func(redis.Observation) { panic("slow") }
		o.OnEvent = func(redis.Event) { panic("event") }
	})
	must(t, c.Set(t.Context(), "k", "v"))
	if v, _, err := c.Get(t.Context(), "k"); v != "v" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	testkit.Eventually(t, 5*time.Second, func() error {
		if n := c.Stats().HookPanics; n != 5 {
			return fmt.Errorf("%d panics counted, want 5", n)
		}
		return nil
	})
}

func TestEventsAndStats(t *testing.T) {
	testkit.NoLeaks(t)
	s := fake(t, func(int, []string) string { return "+OK\r\n" })
	events := make(chan redis.Event, 100)
	c := connect(t, redis.Options{Addr: s.Addr, Backoff: time.Millisecond, OnEvent: func(e redis.Event) { events <- e }})
	expect := func(kind redis.EventKind, failed bool) {
		t.Helper()
		select {
		case e := <-events:
			if e.Kind != kind || e.Addr != s.Addr || e.At.IsZero() || (e.Err != nil) != failed {
				t.Errorf("%v %+v, want %v", e.Kind, e, kind)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("no event, want %v", kind)
		}
	}
	expect(redis.Connected, false)
	for range 10 {
		must(t, c.Ping(t.Context()))
	}
	s.HangUp()
	expect(redis.Disconnected, true)
	expect(redis.Connected, false)
	must(t, c.Ping(t.Context()))
	stats := c.Stats()
	if stats.Calls < 11 || stats.Replies < 11 || stats.Reconnects != 1 || stats.Connected != 1 || stats.Outstanding != 0 || stats.Queued != 0 ||
		stats.HeldBytes != 0 || stats.BytesOut == 0 || stats.Writes == 0 || stats.Backstop != 0 {
		t.Errorf("%+v", stats)
	}
	c.Close()
	expect(redis.Disconnected, true)
	if e := c.Stats(); e.Connected != 0 {
		t.Errorf("%d connected after Close", e.Connected)
	}
}
