package governance

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// until makes calls until a member is ejected, and returns the last error.
func (p *park) until(addr string, most int) (err error) {
	p.t.Helper()
	ejections := p.Stats().Ejections
	for range most {
		if _, failed := p.echo(p.t.Context()); failed != nil {
			err = failed
		}
		if p.Stats().Ejections > ejections {
			return err
		}
	}
	p.t.Fatalf("%s was not ejected in %d calls", addr, most)
	return nil
}

// A member that fails five times in a row gets no calls for 5 s. After that, one failure ejects it for twice as long,
// up to a minute. The time is reset after a long time without an ejection.
func TestEjection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPark(t, cold(Static(addrs("a:1", "b:1"))))
		synctest.Wait()
		a := p.fake("a:1")
		a.fail(slipstream.MaybeExecuted)
		err := p.until("a:1", 1000)
		if n := a.made(); n != 5 || !errors.Is(err, errTest) {
			t.Errorf("ejected after %d calls, want 5: %v", n, err)
		}
		for i, want := range []time.Duration{5, 10, 20, 40, 60, 60} {
			want *= time.Second
			events := p.seen(slipstream.Ejected)
			if e := events[len(events)-1]; len(events) != i+1 || e.Addr != "a:1" || e.Backoff != want || !errors.Is(e.Err, errTest) {
				t.Fatalf("%d events, the last one %+v, want %d and %v", len(events), e, i+1, want)
			}
			if got := p.shares(100); got["b:1"] != 100 {
				t.Errorf("%v", got)
			}
			time.Sleep(want - time.Millisecond)
			if s := p.Stats(); s.Ejected != 1 {
				t.Errorf("%d members are ejected before %v", s.Ejected, want)
			}
			time.Sleep(2 * time.Millisecond)
			if s, events := p.Stats(), p.seen(slipstream.Restored); s.Ejected != 0 || len(events) != i+1 {
				t.Errorf("%d members are ejected after %v, %d restored", s.Ejected, want, len(events))
			}
			a.made()
			p.until("a:1", 1000)
			if n := a.made(); n != 1 {
				t.Errorf("ejected again after %d calls, want 1", n)
			}
		}
		time.Sleep(time.Minute + time.Second)
		a.does(nil)
		p.shares(100)
		time.Sleep(time.Minute + time.Second)
		a.fail(slipstream.MaybeExecuted)
		p.until("a:1", 1000)
		events := p.seen(slipstream.Ejected)
		if e := events[len(events)-1]; e.Backoff != 5*time.Second {
			t.Errorf("ejected for %v after a long time, want 5s", e.Backoff)
		}
	})
}

// Errors that say nothing about a member do not eject it, and an answer resets the count of failures.
func TestNoEjection(t *testing.T) {
	for name, run := range map[string]func(n int, in rpc.Invocation) error{
		"refused":  func(int, rpc.Invocation) error { return failure(slipstream.Refused) },
		"executed": func(int, rpc.Invocation) error { return failure(slipstream.Executed) },
		"canceled": func(int, rpc.Invocation) error {
			return &slipstream.Error{Outcome: slipstream.MaybeExecuted, Err: context.Canceled}
		},
		"overloaded": func(int, rpc.Invocation) error { return failure(slipstream.Overloaded) },
		"invalid": func(int, rpc.Invocation) error {
			return &slipstream.Error{Outcome: slipstream.NotSent, Err: &rpc.InvalidCallError{Err: errTest}}
		},
		"fails often": func(n int, in rpc.Invocation) error {
			if n%5 == 0 {
				return answers(in, "a:1")
			}
			return failure(slipstream.MaybeExecuted)
		},
		"frequent errors of the service": func(n int, _ rpc.Invocation) error {
			if n%5 == 0 {
				return failure(slipstream.Executed)
			}
			return failure(slipstream.MaybeExecuted)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPark(t, cold(Static(addrs("a:1", "b:1"))))
				synctest.Wait()
				n := 0
				p.fake("a:1").does(func(_ context.Context, in rpc.Invocation) error {
					n++
					return run(n, in)
				})
				for range 1000 {
					_, _ = p.echo(t.Context())
				}
				if s := p.Stats(); s.Ejections != 0 || n < 300 {
					t.Errorf("%d ejections in %d calls", s.Ejections, n)
				}
			})
		})
	}
}

// If all members fail, at most half of them are ejected, and the others get the calls. If members are then removed, the
// ejected ones whose time ends first are restored.
func TestAtMostHalfIsEjected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resolver := new(answer)
		resolver.set(addrs("a:1", "b:1", "c:1", "d:1", "e:1"), nil, false)
		config := cold(resolver)
		config.EjectionTime, config.MaxEjectionTime = time.Hour, time.Hour
		p := newPark(t, config)
		synctest.Wait()
		for _, m := range p.Stats().Members {
			p.fake(m.Addr).fail(slipstream.MaybeExecuted)
		}
		for range 1000 {
			if _, err := p.echo(t.Context()); !errors.Is(err, errTest) {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		events := p.seen(slipstream.Ejected)
		if s := p.Stats(); s.Ejected != 2 || s.Ejections != 2 || len(events) != 2 {
			t.Fatalf("%d of 5 members are ejected, want 2", s.Ejected)
		}
		first, then := events[0].Addr, events[1].Addr
		resolver.set(addrs(first, then, "f:1"), nil, false)
		p.refreshed()
		s := p.Stats()
		if s.Ejected != 1 || len(s.Members) != 3 {
			t.Fatalf("%d of %d members are ejected, want 1 of 3", s.Ejected, len(s.Members))
		}
		for _, m := range s.Members {
			if !m.Ejected.IsZero() && m.Addr != then {
				t.Errorf("%s is ejected, want %s, whose ejection ends last", m.Addr, then)
			}
		}
		resolver.set(addrs(then), nil, false)
		p.refreshed()
		if s := p.Stats(); s.Ejected != 0 {
			t.Error("the only member is ejected")
		}
	})
}

// If all members are ejected, those with a connection still get calls.
func TestAllMembersAreEjected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := cold(Static(addrs("a:1", "b:1")))
		config.MaxEjected = 1
		p := newPark(t, config)
		synctest.Wait()
		p.fake("a:1").fail(slipstream.MaybeExecuted)
		p.fake("b:1").fail(slipstream.MaybeExecuted)
		for range 100 {
			_, _ = p.echo(t.Context())
		}
		if s := p.Stats(); s.Ejected != 2 {
			t.Fatalf("%d members are ejected, want 2", s.Ejected)
		}
		p.fake("a:1").does(nil)
		p.fake("b:1").disconnect()
		if got := p.shares(10); got["a:1"] != 10 {
			t.Errorf("%v", got)
		}
	})
}

// Flapping members do not make calls fail that another member can execute, and are ejected for longer and longer.
func TestMembersThatFlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPark(t, cold(Static(addrs("a:1", "b:1", "c:1", "d:1"))))
		synctest.Wait()
		for range 300 {
			for _, addr := range []string{"a:1", "b:1"} {
				p.fake(addr).disconnect()
			}
			p.shares(10)
			time.Sleep(time.Second)
			for _, addr := range []string{"a:1", "b:1"} {
				p.fake(addr).connect()
				p.fake(addr).fail(slipstream.NotSent) // it disappears before a call arrives
			}
			p.shares(10)
			time.Sleep(time.Second)
		}
		longest := make(map[string]time.Duration)
		for _, e := range p.seen(slipstream.Ejected) {
			longest[e.Addr] = max(longest[e.Addr], e.Backoff)
		}
		if len(longest) != 2 || longest["a:1"] != time.Minute || longest["b:1"] != time.Minute {
			t.Errorf("the longest ejections are %v", longest)
		}
		if n := p.Stats().Ejections; n > 40 {
			t.Errorf("%d ejections in 10 minutes", n)
		}
	})
}

// A restored member warms up like a new one.
func TestRestoredMemberWarmsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPark(t, PoolConfig{Resolver: Static(addrs("a:1", "b:1"))})
		time.Sleep(time.Minute)
		p.fake("a:1").fail(slipstream.MaybeExecuted)
		p.until("a:1", 1000)
		p.fake("a:1").does(nil)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := p.shares(10_000); got["a:1"] < 600 || got["a:1"] > 1300 { // a tenth of its weight is 909
			t.Errorf("%v", got)
		}
		time.Sleep(time.Minute)
		if got := p.shares(10_000); got["a:1"] < 4500 {
			t.Errorf("%v", got)
		}
	})
}

// The second attempt of a call goes to another member, even if its key belongs to the first one.
func TestAttemptsGoToDifferentMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := cold(Static(addrs("a:1", "b:1", "c:1")))
		config.Balance, config.Failures = ConsistentHash, -1
		p := newPark(t, config)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(WithHashKey(t.Context(), "k"), time.Minute)
		defer cancel()
		first, err := p.echo(ctx)
		if err != nil {
			t.Fatal(err)
		}
		owner := p.fake(first)
		owner.does(func(ctx context.Context, in rpc.Invocation) error {
			<-ctx.Done()
			return &slipstream.Error{Addr: first, Outcome: slipstream.MaybeExecuted, Err: ctx.Err()}
		})
		hedge := newHedge(t, p, HedgeConfig{Delay: time.Second})
		if addr, err := echo(ctx, hedge, &idempotentEcho); addr == first || addr == "none" || err != nil {
			t.Errorf("the hedge: %q, %v", addr, err)
		}
		retry := newRetry(t, p, RetryConfig{AttemptTimeout: time.Second})
		if addr, err := echo(ctx, retry, &idempotentEcho); addr == first || addr == "none" || err != nil {
			t.Errorf("the retry: %q, %v", addr, err)
		}
		for _, m := range p.Stats().Members {
			p.fake(m.Addr).fail(slipstream.MaybeExecuted)
			p.fake(m.Addr).made()
		}
		if _, err := echo(ctx, retry, &idempotentEcho); !errors.Is(err, errTest) {
			t.Error(err)
		}
		for _, m := range p.Stats().Members { // 4 attempts at 3 members
			if n := p.fake(m.Addr).made(); n < 1 || n > 2 {
				t.Errorf("%s had %d of 4 attempts", m.Addr, n)
			}
		}
	})
}
