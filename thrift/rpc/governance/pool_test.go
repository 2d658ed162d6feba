package governance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// cold returns a configuration without a warm-up: members have their full shares immediately.
func cold(r Resolver) PoolConfig { return PoolConfig{Resolver: r, WarmUp: -1} }

func TestMembersGetCallsByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPark(t, cold(Static{{Addr: "a:1"}, {Addr: "b:1", Weight: 2}, {Addr: "c:1", Weight: 5}}))
		const calls = 8000
		got := p.shares(calls)
		for addr, weight := range map[string]int{"a:1": 1, "b:1": 2, "c:1": 5} {
			if want := calls * weight / 8; math.Abs(float64(got[addr]-want)) > 250 { // five standard deviations
				t.Errorf("%s answered %d of %d calls, want about %d", addr, got[addr], calls, want)
			}
		}
	})
}

// A call goes to the member that has fewer calls relative to its weight.
func TestMemberWithFewerCallsIsChosen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPark(t, cold(Static{{Addr: "a:1"}, {Addr: "b:1", Weight: 3}}))
		synctest.Wait()
		gate := make(chan struct{})
		for _, addr := range []string{"a:1", "b:1"} {
			p.fake(addr).does(func(context.Context, rpc.Invocation) error { <-gate; return nil })
		}
		for range 80 {
			go p.echo(t.Context()) // ends with the gate
			synctest.Wait()
		}
		a, b := p.fake("a:1").made(), p.fake("b:1").made()
		if a < 18 || a > 22 || a+b != 80 {
			t.Errorf("%d and %d calls in progress, want one to three", a, b)
		}
		for _, m := range p.Stats().Members {
			if m.Connected != 1 || m.Outstanding != a && m.Outstanding != b {
				t.Errorf("%+v", m)
			}
		}
		close(gate)
	})
}

// A key has the same member in all pools. If a member is removed, only its keys move, and shares follow weights.
func TestKeysHaveMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := []Member{{Addr: "a:1"}, {Addr: "b:1"}, {Addr: "c:1", Weight: 2}, {Addr: "d:1"}}
		resolver := new(answer)
		resolver.set(all, nil, false)
		config := PoolConfig{Resolver: resolver, WarmUp: -1, Balance: ConsistentHash}
		p := newPark(t, config)
		config.Resolver = Static{all[3], all[2], all[1], all[0]}
		other := newPark(t, config)
		const keys = 10_000
		owners := func(p *park) (by map[string]string, shares map[string]int) {
			by, shares = make(map[string]string), make(map[string]int)
			for i := range keys {
				key := fmt.Sprint("user:", i)
				addr, err := p.echo(WithHashKey(t.Context(), key))
				if err != nil {
					t.Fatal(err)
				}
				by[key] = addr
				shares[addr]++
			}
			return by, shares
		}
		before, shares := owners(p)
		for _, m := range all {
			if want := keys * max(m.Weight, 1) / 5; math.Abs(float64(shares[m.Addr]-want)) > 250 {
				t.Errorf("%s has %d of %d keys, want about %d", m.Addr, shares[m.Addr], keys, want)
			}
		}
		if same, _ := owners(other); fmt.Sprint(same) != fmt.Sprint(before) {
			t.Error("two pools of the same members differ")
		}
		resolver.set(all[1:], nil, false)
		p.refreshed()
		after, _ := owners(p)
		for key, addr := range before {
			if addr != "a:1" && after[key] != addr || after[key] == "a:1" {
				t.Fatalf("%s moved from %s to %s", key, addr, after[key])
			}
		}
		if got := p.shares(1000); len(got) != 3 {
			t.Errorf("calls without a key go to %v", got)
		}
	})
}

// A call that could not be sent to its member goes to another one. Other failures are returned to the caller.
func TestCallMovesIfItWasNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := cold(Static(addrs("a:1", "b:1")))
		config.Balance = ConsistentHash
		p := newPark(t, config)
		synctest.Wait()
		ctx := WithHashKey(t.Context(), "k")
		first, err := p.echo(ctx)
		if err != nil {
			t.Fatal(err)
		}
		p.fake(first).fail(slipstream.NotSent)
		if second, err := p.echo(ctx); second == first || err != nil {
			t.Errorf("%q, %v", second, err)
		}
		if moved := p.Stats().Moved; moved != 1 {
			t.Errorf("%d calls moved, want 1", moved)
		}
		for _, cause := range []error{
			&slipstream.Error{Outcome: slipstream.NotSent, Err: &rpc.InvalidCallError{Err: errTest}},
			&slipstream.Error{Outcome: slipstream.MaybeExecuted, Err: errTest},
			&slipstream.Error{Outcome: slipstream.Refused, Err: errTest},
			&slipstream.Error{Outcome: slipstream.Overloaded, Err: errTest},
			&slipstream.Error{Outcome: slipstream.NotSent, Err: context.DeadlineExceeded},
		} {
			p.fake(first).does(func(context.Context, rpc.Invocation) error { return cause })
			if text, err := p.echo(ctx); err != cause {
				t.Errorf("%q, %v, want %v", text, err, cause)
			}
		}
		for _, addr := range []string{"a:1", "b:1"} {
			p.fake(addr).fail(slipstream.NotSent)
		}
		if _, err := p.echo(ctx); !errors.Is(err, errTest) || slipstream.OutcomeOf(err) != slipstream.NotSent {
			t.Errorf("no member gets the call: %v", err)
		}
	})
}

// Members without a connection get calls only if there are no others.
func TestMembersWithoutAConnectionGetNoCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := cold(Static(addrs("a:1", "b:1")))
		config.Failures = -1
		p := newPark(t, config)
		synctest.Wait()
		p.fake("a:1").disconnect()
		if got := p.shares(100); got["b:1"] != 100 {
			t.Errorf("%v", got)
		}
		if n := p.fake("a:1").made(); n != 0 {
			t.Errorf("a member that is down got %d calls", n)
		}
		p.fake("b:1").disconnect()
		if _, err := p.echo(t.Context()); slipstream.OutcomeOf(err) != slipstream.NotSent {
			t.Errorf("all members are down: %v", err)
		}
		p.fake("a:1").connect()
		if got := p.shares(100); got["a:1"] != 100 {
			t.Errorf("%v", got)
		}
	})
}

// While the pool is connecting to members, calls wait for the first connection; if no member is reachable, they fail.
func TestCallsWaitForAConnection(t *testing.T) {
	for _, works := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := newParkOf(t, cold(Static(addrs("a:1", "b:1", "c:1"))), false)
			type result struct {
				addr string
				err  error
			}
			done := make(chan result, 1)
			go func() { // ends with the events below
				addr, err := p.echo(t.Context())
				done <- result{addr, err}
			}()
			time.Sleep(time.Second)
			p.fake("a:1").disconnect()
			p.fake("b:1").disconnect()
			synctest.Wait()
			select {
			case r := <-done:
				t.Errorf("the call did not wait for c:1: %q, %v", r.addr, r.err)
			default:
			}
			if works {
				p.fake("c:1").connect()
			} else {
				p.fake("c:1").disconnect()
			}
			if r := <-done; works && r.addr != "c:1" || !works && slipstream.OutcomeOf(r.err) != slipstream.NotSent {
				t.Errorf("works %v: %q, %v", works, r.addr, r.err)
			}
			if calls := p.fake("a:1").made(); works && calls != 0 {
				t.Errorf("an unreachable member got %d calls", calls)
			}
		})
	}
}

// If a resolver fails or returns no members, the members do not change. Until there are members, calls wait, and then
// fail with the resolver's error.
func TestResolverThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resolver := new(answer)
		resolver.set(nil, errTest, false)
		p := newPark(t, cold(resolver))
		began := time.Now()
		if _, err := p.echo(t.Context()); !errors.Is(err, errTest) || slipstream.OutcomeOf(err) != slipstream.NotSent || time.Since(began) != defaultPatience {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		done := make(chan error, 1)
		go func() { // ends with the next answer
			_, err := p.echo(t.Context())
			done <- err
		}()
		synctest.Wait()
		resolver.set(addrs("a:1", "a:1", "b:1"), nil, false)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if s := p.Stats(); len(s.Members) != 2 || s.ResolveError != nil || s.Unresolved == 0 {
			t.Errorf("%+v", s)
		}
		for _, c := range []struct {
			members []Member
			err     error
			panics  bool
			want    string
		}{
			{nil, errTest, false, errTest.Error()},
			{nil, nil, false, "found no members"},
			{nil, nil, true, "the resolver panicked: of the test"},
			{make([]Member, maxMembers+1), nil, false, "found 1001 members; the limit is 1000"},
			{addrs("a:1", "b"), nil, false, `address "b", expected host:port`},
			{[]Member{{Addr: "a:1", Weight: -1}}, nil, false, "weight -1 of a:1"},
		} {
			failed := len(p.seen(slipstream.ResolveFailed))
			resolver.set(c.members, c.err, c.panics)
			p.refreshed()
			if s := p.Stats(); len(s.Members) != 2 || s.ResolveError == nil || !strings.Contains(s.ResolveError.Error(), c.want) {
				t.Errorf("%d members, %v, want 2, %q", len(s.Members), s.ResolveError, c.want)
			}
			if len(p.seen(slipstream.ResolveFailed)) == failed {
				t.Errorf("there is no event for %q", c.want)
			}
			if got := p.shares(100); len(got) != 2 {
				t.Errorf("%v", got)
			}
		}
	})
}

// A removed member gets no more calls and is shut down; a member that remains keeps its client.
func TestMembersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resolver := new(answer)
		resolver.set(addrs("a:1", "b:1"), nil, false)
		p := newPark(t, cold(resolver))
		p.shares(100)
		gone, stays := p.fake("a:1"), p.fake("b:1")
		resolver.set([]Member{{Addr: "b:1", Weight: 9}, {Addr: "c:1"}}, nil, false)
		p.refreshed()
		if gone.how() != "shutdown" || stays.how() != "" || p.fake("b:1") != stays {
			t.Errorf("a:1 was closed by %q, b:1 by %q", gone.how(), stays.how())
		}
		got := p.shares(1000)
		if len(got) != 2 || got["b:1"] < 800 || got["c:1"] == 0 {
			t.Errorf("%v", got)
		}
		if s := p.Stats(); s.Calls != 1100 {
			t.Errorf("%d calls, want those of removed members included", s.Calls)
		}
	})
}

// If a member is removed after it was chosen for a call, the call goes to another one.
func TestCallOfAMemberThatIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPark(t, cold(Static(addrs("a:1", "b:1"))))
		synctest.Wait()
		p.fake("a:1").fail(slipstream.Closed)
		if got := p.shares(100); got["b:1"] != 100 {
			t.Errorf("%v", got)
		}
	})
}

// The share of a new member grows from a tenth of its weight to its full weight.
func TestNewMemberWarmsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resolver := new(answer)
		resolver.set(addrs("a:1", "b:1"), nil, false)
		p := newPark(t, PoolConfig{Resolver: resolver, WarmUp: time.Minute})
		if got := p.shares(1000); got["a:1"] < 300 || got["b:1"] < 300 {
			t.Errorf("members that warm up together have the shares %v", got)
		}
		time.Sleep(2 * time.Minute)
		resolver.set(addrs("a:1", "b:1", "c:1"), nil, false)
		synctest.Wait()
		for len(p.Stats().Members) < 3 {
			time.Sleep(100 * time.Millisecond)
		}
		for _, c := range []struct {
			after       time.Duration
			least, most int
		}{
			{0, 300, 700},                  // a tenth of the weight: 476 of 10,000
			{30 * time.Second, 1700, 2300}, // half: 2,000
			{time.Minute, 3000, 3700},      // all: 3,333
		} {
			time.Sleep(c.after)
			if got := p.shares(10_000); got["c:1"] < c.least || got["c:1"] > c.most {
				t.Errorf("after %v more the new member has %d of 10,000 calls, want %d to %d", c.after, got["c:1"], c.least, c.most)
			}
		}
	})
}

// Close ends waiting calls and closes the members. It may be called again.
func TestPoolThatIsClosed(t *testing.T) {
	for _, shutdown := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			resolver := new(answer)
			p := newPark(t, cold(resolver))
			done := make(chan error, 1)
			go func() { // ends with the pool
				_, err := p.echo(t.Context())
				done <- err
			}()
			synctest.Wait()
			other := newPark(t, cold(Static(addrs("a:1"))))
			if err := other.Connect(t.Context()); err != nil {
				t.Error(err)
			}
			want := "close"
			if shutdown {
				want = "shutdown"
				p.Shutdown(t.Context())
				other.Shutdown(t.Context())
			}
			for range 2 {
				p.Close()
				other.Close()
			}
			if err := <-done; slipstream.OutcomeOf(err) != slipstream.Closed {
				t.Errorf("a waiting call: %v", err)
			}
			if _, err := other.echo(t.Context()); slipstream.OutcomeOf(err) != slipstream.Closed {
				t.Errorf("a call after Close: %v", err)
			}
			if got := other.fake("a:1").how(); got != want {
				t.Errorf("the member was closed by %q, want %q", got, want)
			}
		})
	}
}

func TestPoolsThatAreWrong(t *testing.T) {
	ok := Static(addrs("a:1"))
	for _, c := range []struct {
		config PoolConfig
		want   string
	}{
		{PoolConfig{}, "the pool has no resolver"},
		{PoolConfig{Resolver: ok, Client: rpc.ClientConfig{Addr: "a:1"}}, `Client.Addr is "a:1"; it must be empty`},
		{PoolConfig{Resolver: ok, Client: rpc.ClientConfig{Depth: -1}}, "depth -1, expected 0 (the default)"},
		{PoolConfig{Resolver: ok, Balance: 2}, "balance 2, expected LeastOutstanding or ConsistentHash"},
		{PoolConfig{Resolver: ok, MaxEjected: 1.5}, "max ejected 1.5, expected 0 (the default) to 1"},
		{PoolConfig{Resolver: ok, MaxEjected: math.NaN()}, "max ejected NaN"},
		{PoolConfig{Resolver: ok, Refresh: -1}, "refresh -1ns is negative"},
	} {
		if p, err := NewPool(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %v, want %q", p, err, c.want)
		}
	}
}
