//go:build unix

package tarantool_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// slow defines a function that does not return until it is released.
func slow(s *tarantoolsim.Server) (release func()) {
	released := make(chan struct{})
	s.Func("slow", func(r *tarantoolsim.Request) ([]any, error) {
		select {
		case <-released:
		case <-r.Context().Done():
		}
		return []any{"done"}, nil
	})
	return sync.OnceFunc(func() { close(released) })
}

// isDone fails the test unless a call of slow has its result.
func isDone(t testing.TB, what string, f interface{ Get() ([]any, error) }) {
	t.Helper()
	if data, err := f.Get(); err != nil || fmt.Sprint(data) != "[done]" {
		t.Errorf("%s: %v, %v", what, data, err)
	}
}

// When a server is about to shut down, requests in flight are finished, then the connection ends,
// and new requests wait for the next server.
func TestGracefulShutdown(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	release := slow(server)
	c := connected(t, server)
	ctx := patient(t)
	must(t, c.Do(ctx, nil, tarantool.Select("users")))
	w := watch(t, c, "key")
	next(t, w)
	plain, blocking := c.Start(ctx, tarantool.Call("slow")), c.Start(ctx, tarantool.Call("slow").Blocking())
	until(t, "no calls", func() bool { return saw(server, "call slow") == 2 })
	ended := make(chan struct{})
	go func() { // ends with the server; the test waits
		defer close(ended)
		server.Shutdown(patience)
	}()
	until(t, "the watcher keeps its connection", func() bool { open, _ := server.Connections(); return open == 2 })
	results := make(chan error, 2)
	for _, req := range []tarantool.Request{tarantool.Ping(), tarantool.Insert("users", []any{1, "", 0})} {
		go func() { results <- c.Do(ctx, nil, req) }() // ends with the new server; the test waits
	}
	select {
	case err := <-results:
		t.Errorf("a request went to a server that is shutting down: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	release()
	isDone(t, "the call", plain)
	isDone(t, "the blocking call", blocking)
	<-ended
	after := simulated(t, tarantoolsim.Config{Listen: server.Addr()})
	after.Broadcast("key", 5)
	must(t, <-results)
	must(t, <-results)
	for next(t, w) != int64(5) {
	}
	has(t, after, []any{1, "", 0})
}

// Servers replace one another under load, and no caller gets an error: each write is executed once.
func TestGracefulShutdownUnderLoad(t *testing.T) {
	testkit.NoLeaks(t)
	var counted, succeeded atomic.Int64
	begin := func(addr string) *tarantoolsim.Server {
		s := tarantoolsim.Start(t, tarantoolsim.Config{Listen: addr})
		s.Handle("call count", func(*tarantoolsim.Request) ([]any, error) {
			time.Sleep(50 * time.Microsecond)
			counted.Add(1)
			return nil, nil
		})
		return s
	}
	server := begin("")
	c := connect(t, tarantool.Options{Addr: server.Addr(), Sockets: 2, Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond})
	ctx := patient(t)
	var over atomic.Bool
	var load sync.WaitGroup
	for g := range 8 {
		load.Go(func() {
			for !over.Load() {
				req := tarantool.Call("count")
				if g%4 == 0 {
					req = req.Blocking()
				}
				switch err := c.Do(ctx, nil, req); {
				case err == nil:
					succeeded.Add(1)
				case !tarantool.IsCode(err, iproto.CodeNoSuchProcedure): // a new server does not have the procedure yet
					t.Error(err)
					return
				}
				// The space is selected by number, because a new server has no spaces at first.
				if err := c.Do(ctx, nil, tarantool.Select("").Numbers(289, 0).Limit(1)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 10 {
		before := succeeded.Load()
		until(t, "no load", func() bool { return succeeded.Load() > before+20 && saw(server, "watch") >= 3 })
		server.Shutdown(patience)
		server = begin(server.Addr())
	}
	over.Store(true)
	load.Wait()
	if counted.Load() != succeeded.Load() {
		t.Errorf("%d calls were executed, %d succeeded", counted.Load(), succeeded.Load())
	}
}

// If a transaction is open when the server is about to shut down, it ends with its connection, with
// an error.
func TestGracefulShutdownAndTransactions(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	c := connected(t, server)
	s := begun(t, c)
	must(t, s.Do(patient(t), nil, tarantool.Insert("users", []any{1, "", 0})))
	server.Broadcast("box.shutdown", true)
	until(t, "the connection stays", func() bool { _, ever := server.Connections(); return ever > 1 })
	lost(t, "an insert", s.Do(patient(t), nil, tarantool.Insert("users", []any{2, "", 0})))
	lost(t, "a commit", s.Commit(patient(t)))
	has(t, server)
}

// If a client has no room when it learns that the server stays up, it still learns of its shutdown
// later.
func TestGracefulShutdownOfAFullClient(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	release := slow(server)
	tell := make(chan struct{})
	server.Handle("watch", func(r *tarantoolsim.Request) ([]any, error) {
		<-tell
		return nil, tarantoolsim.Own
	})
	c := connect(t, tarantool.Options{Addr: server.Addr(), MaxCalls: 1})
	call := c.Start(patient(t), tarantool.Call("slow"))
	until(t, "no call", func() bool { return saw(server, "call slow") == 1 })
	close(tell)
	time.Sleep(5 * time.Millisecond) // the client learns that the server stays up, and has no room to answer
	release()
	isDone(t, "the call", call)
	until(t, "the client does not listen", func() bool { return saw(server, "watch") == 2 })
	server.Broadcast("box.shutdown", true)
	until(t, "the connection stays", func() bool { _, ever := server.Connections(); return ever > 1 })
}

// A pool immediately leaves a server that is about to shut down, while requests in flight there
// continue.
func TestGracefulShutdownInAPool(t *testing.T) {
	testkit.NoLeaks(t)
	var servers []*tarantoolsim.Server
	o := tarantool.PoolOptions{Options: tarantool.Options{Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond}}
	for range 2 {
		s := simulated(t, tarantoolsim.Config{})
		s.Eval("return box.info.ro, box.info.status", func(*tarantoolsim.Request) ([]any, error) { return []any{false, "running"}, nil })
		servers = append(servers, s)
		o.Addrs = append(o.Addrs, s.Addr())
	}
	p := newPool(t, o)
	for _, s := range servers {
		awaitState(t, p, s.Addr(), tarantool.InstanceReadWrite)
	}
	ending, other := servers[0], servers[1]
	release := slow(ending)
	other.Func("slow", func(*tarantoolsim.Request) ([]any, error) { return []any{"done"}, nil })
	ctx := patient(t)
	var calls []tarantool.PoolFuture
	for saw(ending, "call slow") == 0 {
		calls = append(calls, p.Start(ctx, tarantool.Call("slow"), tarantool.ReadWrite))
		time.Sleep(time.Millisecond)
	}
	var over atomic.Bool
	var done [4]atomic.Int64
	var load sync.WaitGroup
	for g := range done {
		load.Go(func() {
			for id := 0; !over.Load(); id++ {
				if err := p.Do(ctx, nil, tarantool.Replace("users", []any{id % 10, "", 0}), tarantool.ReadWrite); err != nil {
					t.Error(err)
					return
				}
				done[g].Add(1)
			}
		})
	}
	ended := make(chan struct{})
	go func() { // ends with the server; the test waits
		defer close(ended)
		ending.Shutdown(patience)
	}()
	// While the call is in flight there, all other requests go to the other instance, and no caller
	// waits.
	until(t, "the pool has not noticed the shutdown", func() bool { return p.Instances()[0].State == tarantool.InstanceDown })
	before := len(ending.Seen())
	for g := range done {
		from := done[g].Load()
		until(t, "a caller waits", func() bool { return done[g].Load() > from+50 })
	}
	if now := ending.Seen()[before:]; len(now) > 0 {
		t.Errorf("the server that is shutting down received %v", now)
	}
	select {
	case <-ended:
		t.Error("the server has ended before its call")
	default:
	}
	release()
	for _, call := range calls {
		isDone(t, "a call", call)
	}
	<-ended
	over.Store(true)
	load.Wait()
}
