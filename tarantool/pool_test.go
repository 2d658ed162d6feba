//go:build unix

package tarantool_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// A pool of one instance does what a client does.
func TestPoolOfOne(t *testing.T) {
	testkit.NoLeaks(t)
	s := testkit.StartTarantool(t, setup)
	p := newPool(t, tarantool.PoolOptions{Options: tarantool.Options{Addr: s.Addr}})
	ctx := t.Context()
	f := p.Start(ctx, tarantool.Call("echo", 7), tarantool.ReadWrite)
	<-f.Done()
	if data, err := f.Get(); err != nil || fmt.Sprint(data) != "[7]" {
		t.Errorf("%v, %v", data, err)
	}
	if _, err := f.Get(); !errors.Is(err, tarantool.ErrReleased) {
		t.Errorf("%v", err)
	}
	c, err := p.Client(tarantool.PreferReadOnly)
	must(t, err)
	must(t, c.Do(ctx, nil, tarantool.Ping()))

	users := tarantool.PoolSpaceOf[user](p, "users", tarantool.PreferReadOnly)
	var u user
	must(t, users.Insert(ctx, &user{2000, "x", 1}))
	if err := users.Insert(ctx, &user{2000, "x", 1}); !tarantool.IsCode(err, iproto.CodeTupleFound) {
		t.Errorf("%v", err)
	}
	must(t, users.Replace(ctx, &user{2000, "y", 1}))
	must(t, users.Upsert(ctx, &user{2000, "z", 1}, tarantool.Add("hits", 2)))
	if found, err := users.Update(ctx, &u, []tarantool.Part{tarantool.Int(2000)}, tarantool.Add("hits", 2)); !found || err != nil || u != (user{2000, "y", 5}) {
		t.Errorf("%v, %t, %v", u, found, err)
	}
	if found, err := users.Get(ctx, &u, tarantool.Int(7)); !found || err != nil || u != (user{7, "name7", 0}) {
		t.Errorf("%v, %t, %v", u, found, err)
	}
	list, err := users.Index("name").Select(ctx, nil, 2, tarantool.Eq, tarantool.String("name4"))
	if err != nil || !reflect.DeepEqual(list, []user{{4, "name4", 0}, {14, "name4", 0}}) {
		t.Errorf("%v, %v", list, err)
	}
	if found, err := users.Delete(ctx, nil, tarantool.Int(2000)); !found || err != nil {
		t.Errorf("%t, %v", found, err)
	}
	if found, err := users.Get(ctx, &u, tarantool.Int(2000)); found || err != nil {
		t.Errorf("%v, %t, %v", u, found, err)
	}
}

// An invalid request is not retried elsewhere.
func TestPoolWrongRequests(t *testing.T) {
	testkit.NoLeaks(t)
	s := testkit.StartTarantool(t, setup)
	p := newPool(t, tarantool.PoolOptions{Addrs: []string{s.Addr}})
	for _, req := range []tarantool.Request{nil, tarantool.Select("nowhere"), tarantool.Insert("users", 7), tarantool.Insert("users", []any{1, "a", 1}), tarantool.Call("fails")} {
		err := p.Do(t.Context(), nil, req, tarantool.AnyInstance)
		if err == nil || p.Start(t.Context(), req, tarantool.AnyInstance).Wait(nil) == nil {
			t.Errorf("%v", err)
		}
	}
	if n := p.Rerouted(); n != 0 {
		t.Errorf("%d requests were retried", n)
	}
	for _, o := range []tarantool.PoolOptions{
		{Addrs: []string{"no port"}}, {Addrs: []string{s.Addr, s.Addr}}, {CheckInterval: -1}, {WaitFor: 9},
	} {
		if p, err := tarantool.NewPool(t.Context(), o); err == nil {
			p.Close()
			t.Errorf("NewPool(%v) succeeded", o)
		}
	}
}

// Every mode finds suitable instances, also when one of the instances is gone.
func TestPoolModes(t *testing.T) {
	p, master, replica := pair(t, tarantool.PoolOptions{CheckInterval: 50 * time.Millisecond, WaitTimeout: -1})
	awaitMode(t, p, tarantool.ReadOnly)
	went := func(mode tarantool.Mode) string {
		found := make(map[string]bool)
		for range 60 {
			var answer [1]bool
			if err := p.Do(t.Context(), &answer, tarantool.Eval("return box.cfg.read_only"), mode); err != nil {
				if none := new(tarantool.NoInstanceError); !errors.As(err, &none) || slipstream.OutcomeOf(err) != slipstream.NotSent ||
					!strings.Contains(err.Error(), master.Addr) || !strings.Contains(err.Error(), replica.Addr) {
					t.Errorf("%v: %v", mode, err)
				}
				return "nowhere"
			}
			found[map[bool]string{true: "replica", false: "master"}[answer[0]]] = true
		}
		if len(found) == 2 {
			return "both"
		}
		for where := range found {
			return where
		}
		return ""
	}
	expect := func(when string, want map[tarantool.Mode]string) {
		t.Helper()
		for mode, where := range want {
			if got := went(mode); got != where {
				t.Errorf("%s: requests of mode %v went to %s, expected %s", when, mode, got, where)
			}
		}
	}
	expect("both are alive", map[tarantool.Mode]string{
		tarantool.AnyInstance: "both", tarantool.ReadWrite: "master", tarantool.ReadOnly: "replica",
		tarantool.PreferReadWrite: "master", tarantool.PreferReadOnly: "replica",
	})
	master.Kill()
	awaitState(t, p, master.Addr, tarantool.InstanceDown)
	expect("the master is dead", map[tarantool.Mode]string{
		tarantool.AnyInstance: "replica", tarantool.ReadWrite: "nowhere", tarantool.ReadOnly: "replica",
		tarantool.PreferReadWrite: "replica", tarantool.PreferReadOnly: "replica",
	})
	if _, err := p.Client(tarantool.ReadWrite); slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("%v", err)
	}
	master.Restart(t, false)
	awaitState(t, p, master.Addr, tarantool.InstanceReadWrite)
	replica.Kill()
	awaitState(t, p, replica.Addr, tarantool.InstanceDown)
	expect("the replica is dead", map[tarantool.Mode]string{
		tarantool.AnyInstance: "master", tarantool.ReadWrite: "master", tarantool.ReadOnly: "nowhere",
		tarantool.PreferReadWrite: "master", tarantool.PreferReadOnly: "master",
	})
}

// If a pool has not noticed that the roles changed, statements find the master anyway, and
// functions that may have done something are not run twice.
func TestPoolReadOnlyAnswer(t *testing.T) {
	p, master, replica := pair(t, tarantool.PoolOptions{CheckInterval: time.Hour})
	awaitMode(t, p, tarantool.ReadOnly)
	a, b := connect(t, tarantool.Options{Addr: master.Addr}), connect(t, tarantool.Options{Addr: replica.Addr})
	write := func(n int) tarantool.Request { return tarantool.Replace("users", []any{5000 + n, "x", 1}) }
	byFunction := func(n int) tarantool.ProcedureRequest {
		return tarantool.Eval("count = (count or 0) + 1; box.space.users:replace{..., 'x', 1}", 6000+n)
	}
	ctx := t.Context()
	exchange := func() {
		setReadOnly(t, a, true)
		setReadOnly(t, b, false)
		a, b = b, a
	}
	for n, step := range []struct {
		req  tarantool.Request
		mode tarantool.Mode
		code iproto.ErrorCode // 0 if it succeeds
	}{
		{write(1), tarantool.ReadWrite, 0},
		{write(2), tarantool.PreferReadWrite, 0},
		{byFunction(1), tarantool.ReadWrite, iproto.CodeReadOnly},
		{byFunction(2).Idempotent(), tarantool.ReadWrite, 0},
	} {
		writable, other := master.Addr, replica.Addr
		if n%2 == 1 {
			writable, other = other, writable
		}
		awaitState(t, p, writable, tarantool.InstanceReadWrite)
		awaitState(t, p, other, tarantool.InstanceReadOnly)
		exchange()
		if err := p.Do(ctx, nil, step.req, step.mode); err != nil && !tarantool.IsCode(err, step.code) || err == nil && step.code != 0 {
			t.Errorf("%d: %v", n, err)
		}
	}
	awaitState(t, p, master.Addr, tarantool.InstanceReadWrite)
	// A caller that wants to write while no instance accepts writes gets an error.
	if err := p.Do(ctx, nil, write(3), tarantool.ReadOnly); !tarantool.IsCode(err, iproto.CodeReadOnly) {
		t.Errorf("%v", err)
	}
	// No instance accepts writes anymore.
	setReadOnly(t, a, true)
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	err := p.Do(short, nil, write(4), tarantool.ReadWrite)
	if none := new(tarantool.NoInstanceError); !errors.As(err, &none) || !errors.Is(err, context.DeadlineExceeded) || !slipstream.SafeToRetry(err) {
		t.Errorf("%v", err)
	}
	setReadOnly(t, a, false)
	must(t, p.Do(ctx, nil, write(5), tarantool.ReadWrite))
}

// For a user that may not evaluate expressions, the role is queried by a call. With a user that may
// do neither, requests that need no role work, and others report the missing privilege.
func TestPoolRights(t *testing.T) {
	testkit.NoLeaks(t)
	s := testkit.StartTarantool(t, setup+`
		box.schema.user.create('low', {password = 'x'})
		box.schema.user.grant('low', 'read,write', 'space', 'users')
		box.schema.func.create('box.info')
		for _, name in ipairs{'grant', 'revoke'} do
			box.schema.func.create(name, {setuid = true})
			_G[name] = function() box.schema.user[name]('low', 'execute', 'function', 'box.info') end
		end`)
	admin := connect(t, tarantool.Options{Addr: s.Addr})
	p := newPool(t, tarantool.PoolOptions{Addrs: []string{s.Addr}, Options: tarantool.Options{User: "low", Password: "x"}, CheckInterval: 20 * time.Millisecond, WaitTimeout: 100 * time.Millisecond})
	ctx := t.Context()
	awaitState(t, p, s.Addr, tarantool.InstanceUnknown)
	for _, mode := range []tarantool.Mode{tarantool.AnyInstance, tarantool.PreferReadOnly, tarantool.PreferReadWrite} {
		must(t, p.Do(ctx, nil, tarantool.Select("users").Key(tarantool.Int(1)), mode))
	}
	if err := p.Do(ctx, nil, tarantool.Ping(), tarantool.ReadWrite); err == nil || !strings.Contains(err.Error(), "box.schema.func.create('box.info')") {
		t.Errorf("%v", err)
	}
	must(t, admin.Do(ctx, nil, tarantool.Call("grant")))
	awaitState(t, p, s.Addr, tarantool.InstanceReadWrite)
	must(t, p.Do(ctx, nil, tarantool.Replace("users", []any{1, "a", 1}), tarantool.ReadWrite))
	setReadOnly(t, admin, true)
	awaitState(t, p, s.Addr, tarantool.InstanceReadOnly)
	setReadOnly(t, admin, false)
	must(t, admin.Do(ctx, nil, tarantool.Call("revoke")))
	awaitState(t, p, s.Addr, tarantool.InstanceUnknown)
}

// Instances that are down or silent delay neither the pool nor its requests.
func TestPoolWithDeadInstances(t *testing.T) {
	testkit.NoLeaks(t)
	s := testkit.StartTarantool(t, setup)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and does not greet
	must(t, err)
	defer silent.Close()
	dead := fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	began := time.Now()
	o := tarantool.PoolOptions{Addrs: []string{silent.Addr().String(), dead, s.Addr}, Options: tarantool.Options{DialTimeout: 20 * time.Second}}
	p := newPool(t, o)
	for range 50 {
		must(t, p.Do(t.Context(), nil, tarantool.Ping(), tarantool.AnyInstance))
	}
	must(t, p.Close())
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}

	o.Addrs = o.Addrs[:2]
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	p, err = tarantool.NewPool(ctx, o)
	if p != nil || !errors.Is(err, context.DeadlineExceeded) || slipstream.OutcomeOf(err) != slipstream.NotSent ||
		!strings.Contains(err.Error(), silent.Addr().String()+" is down") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v", err)
	}
	o.NoWait = true
	p = newPool(t, o)
	if err := p.Do(ctx, nil, tarantool.Ping(), tarantool.AnyInstance); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	// An instance that becomes available later is found, even by a request that is already waiting.
	waiting := make(chan error, 1)
	go func() { waiting <- p.Do(context.Background(), nil, tarantool.Ping(), tarantool.ReadWrite) }()
	must(t, p.Add(tarantool.Options{Addr: s.Addr}))
	must(t, <-waiting)
}

// Requests go to the instance with fewer requests in flight.
func TestPoolBalance(t *testing.T) {
	p, _, _ := pair(t, tarantool.PoolOptions{})
	awaitMode(t, p, tarantool.ReadOnly)
	busy, err := p.Client(tarantool.ReadOnly)
	must(t, err)
	var slow []tarantool.Future
	for range 10 {
		slow = append(slow, busy.Start(t.Context(), tarantool.Eval("while not released do require('fiber').sleep(0.01) end")))
	}
	for range 50 {
		var answer [1]bool
		if err := p.Do(t.Context(), &answer, tarantool.Eval("return box.cfg.read_only"), tarantool.AnyInstance); err != nil || answer[0] {
			t.Fatalf("%v, %v", answer, err)
		}
	}
	must(t, busy.Do(t.Context(), nil, tarantool.Eval("released = true")))
	for _, f := range slow {
		must(t, f.Wait(nil))
	}
}

// Instances are added and removed under load, and no request fails.
func TestPoolAddAndRemove(t *testing.T) {
	testkit.NoLeaks(t)
	var mu sync.Mutex
	var events []string
	servers := []*testkit.Tarantool{testkit.StartTarantool(t, setup), testkit.StartTarantool(t, setup)}
	p := newPool(t, tarantool.PoolOptions{Addrs: []string{servers[0].Addr}, WaitFor: tarantool.ReadWrite, OnEvent: func(e tarantool.PoolEvent) {
		mu.Lock()
		defer mu.Unlock()
		if e.Addr == servers[1].Addr {
			events = append(events, e.From.String()+" to "+e.To.String())
		}
		panic("contained")
	}})
	var stop atomic.Bool
	var done atomic.Int64
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for n := 0; !stop.Load(); n++ {
				req := tarantool.Call("echo", w, n)
				var answer [2]int
				var err error
				if n%2 == 0 {
					err = p.Do(context.Background(), &answer, req, tarantool.ReadWrite)
				} else {
					err = p.Start(context.Background(), req, tarantool.AnyInstance).Wait(&answer)
				}
				if err != nil || answer != [2]int{w, n} {
					t.Errorf("%v, %v", answer, err)
				}
				done.Add(1)
			}
		})
	}
	ahead := func() {
		from := done.Load()
		testkit.Eventually(t, 20*time.Second, func() error {
			if n := done.Load() - from; n < 200 {
				return fmt.Errorf("%d requests", n)
			}
			return nil
		})
	}
	const rounds = 5
	for round := range rounds {
		from, to := servers[round%2].Addr, servers[1-round%2].Addr
		must(t, p.Add(tarantool.Options{Addr: to}))
		if p.Add(tarantool.Options{Addr: to}) == nil {
			t.Error("an address twice")
		}
		awaitState(t, p, to, tarantool.InstanceReadWrite)
		ahead()
		must(t, p.Remove(t.Context(), from))
		if p.Remove(t.Context(), from) == nil {
			t.Error("removed twice")
		}
		ahead()
	}
	stop.Store(true)
	wg.Wait()
	must(t, p.Close())
	mu.Lock()
	defer mu.Unlock()
	life := []string{"down to role not known yet", "role not known yet to read-write", "read-write to removed"}
	var want []string
	for len(want) < len(life)*rounds/2 {
		want = append(want, life...)
	}
	if want = append(want[:2*len(life)], life[:2]...); !reflect.DeepEqual(events, want) {
		t.Errorf("%q, want %q", events, want)
	}
}

// When a pool is closed, waiting callers get an error, and requests in flight succeed or are cut
// off.
func TestPoolEnds(t *testing.T) {
	testkit.NoLeaks(t)
	s := testkit.StartTarantool(t, setup)
	ctx := t.Context()
	start := func() *tarantool.Pool {
		return newPool(t, tarantool.PoolOptions{Addrs: []string{s.Addr}, WaitTimeout: time.Minute})
	}
	sleep := tarantool.Eval("require('fiber').sleep(...) return 7", 0.2)

	p := start()
	f := p.Start(ctx, sleep, tarantool.AnyInstance)
	waiting := make(chan error, 1)
	go func() { waiting <- p.Do(ctx, nil, tarantool.Ping(), tarantool.ReadOnly) }()
	must(t, p.Shutdown(ctx))
	if data, err := f.Get(); err != nil || fmt.Sprint(data) != "[7]" {
		t.Errorf("%v, %v", data, err)
	}
	if err := <-waiting; slipstream.OutcomeOf(err) != slipstream.Closed {
		t.Errorf("%v", err)
	}
	for _, err := range []error{
		p.Do(ctx, nil, tarantool.Ping(), tarantool.AnyInstance), p.Start(ctx, tarantool.Ping(), tarantool.AnyInstance).Wait(nil),
		p.Wait(ctx, tarantool.AnyInstance), p.Add(tarantool.Options{Addr: "127.0.0.1:1"}),
	} {
		if slipstream.OutcomeOf(err) != slipstream.Closed || !errors.Is(err, tarantool.ErrClosed) {
			t.Errorf("%v", err)
		}
	}
	must(t, p.Close())

	for name, end := range map[string]func(*tarantool.Pool) error{
		"close": (*tarantool.Pool).Close,
		"shutdown": func(p *tarantool.Pool) error {
			short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
			if err := p.Shutdown(short); !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("%v instead of the error of the context", err)
			}
			return nil
		},
		"close while a shutdown waits": func(p *tarantool.Pool) error {
			ended := make(chan error, 1)
			go func() { ended <- p.Shutdown(context.Background()) }()
			testkit.Eventually(t, 5*time.Second, func() error {
				if err := p.Wait(ctx, tarantool.AnyInstance); err == nil {
					return errors.New("the shutdown has not started")
				}
				return nil
			})
			err := p.Close()
			return errors.Join(err, <-ended)
		},
	} {
		p := start()
		f := p.Start(ctx, tarantool.Eval("require('fiber').sleep(20)"), tarantool.AnyInstance)
		must(t, p.Do(ctx, nil, tarantool.Ping(), tarantool.AnyInstance)) // it is in flight
		if err := end(p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := f.Wait(nil); slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An instance that is loading gets no requests, and requests that it refuses for that reason go
// elsewhere. An instance that waits for others (an orphan) accepts no writes.
func TestPoolLoading(t *testing.T) {
	testkit.NoLeaks(t)
	one, other := testkit.StartTarantool(t, setup), testkit.StartTarantool(t, setup)
	p := newPool(t, tarantool.PoolOptions{Addrs: []string{one.Addr, other.Addr}, CheckInterval: 20 * time.Millisecond, WaitTimeout: -1})
	c := connect(t, tarantool.Options{Addr: one.Addr})
	ctx := t.Context()
	eval := func(text string) { must(t, c.Do(ctx, nil, tarantool.Eval(text))) }
	where := func(mode tarantool.Mode) string {
		var found [1]string
		must(t, p.Do(ctx, &found, tarantool.Eval("return box.cfg.listen"), mode))
		return found[0]
	}
	awaitState(t, p, other.Addr, tarantool.InstanceReadWrite)
	for text, want := range map[string]tarantool.InstanceState{
		"box.info = {ro = true, status = 'loading'}": tarantool.InstanceLoading,
		"box.info = {ro = true, status = 'orphan'}":  tarantool.InstanceReadOnly,
		"box.info = nil": tarantool.InstanceLoading,
		"box.info = {}":  tarantool.InstanceUnknown, // which has an unknown form
	} {
		eval("info = box.info; " + text)
		awaitState(t, p, one.Addr, want)
		for _, mode := range []tarantool.Mode{tarantool.ReadWrite, tarantool.PreferReadWrite} {
			for range 20 {
				if got := where(mode); got != other.Addr {
					t.Errorf("%s: %v went to %s", text, mode, got)
				}
			}
		}
		for range 20 {
			if got := where(tarantool.AnyInstance); got != other.Addr && want == tarantool.InstanceLoading {
				t.Errorf("%s: a request went to %s", text, got)
			}
		}
		eval("box.info = info")
		awaitState(t, p, one.Addr, tarantool.InstanceReadWrite)
	}
	eval("box.space.users:before_replace(function() box.error(box.error.LOADING) end)")
	for n := range 30 {
		must(t, p.Do(ctx, nil, tarantool.Replace("users", []any{7000 + n, "x", 1}), tarantool.AnyInstance))
	}
	if p.Rerouted() == 0 {
		t.Error("no request was retried")
	}
}
