package tarantool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/faultproxy"
	"github.com/slipstream-go/slipstream/tarantool"
)

// Futures are recycled. The tests in this file provoke the use of a future that already belongs to
// another request: by the watcher of its context, by a waiter on its channel, or by the goroutine
// that ends the requests of a connection. They are meant to be run with the race detector.

// echoed is a request whose answer identifies it.
func echoed(g, i int) (req tarantool.ProcedureRequest, want string) {
	token := fmt.Sprintf("%d:%d", g, i)
	return tarantool.Call("echo", token), "[" + token + "]"
}

// within fails the test if f takes longer than any request may, because a caller was lost then.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { // ends with f
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: a caller still waits", what)
	}
}

// Contexts end about when the replies of their requests arrive, or when the result has been taken
// and the future belongs to another request. They end no other request.
func TestFaultContextEndsNobodyElse(t *testing.T) {
	testkit.NoLeaks(t)
	seed := testkit.Seed(t)
	server := startInstance(t, "none", faultSetup)
	c := connect(t, tarantool.Options{Addr: server.addr})
	var ended, calls atomic.Int64
	end := time.Now().Add(800 * time.Millisecond)
	more := func() bool { return time.Now().Before(end) || ended.Load() < 10 || ended.Load() == calls.Load() }
	within(t, "contexts", func() {
		var workers sync.WaitGroup
		for g := range 16 {
			r := testkit.Fork(seed, uint64(g))
			impatient := g%2 == 0
			workers.Go(func() {
				for i := 0; more(); i++ {
					ctx, cancel := context.Background(), func() {}
					req, want := echoed(g, i)
					if impatient {
						ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(10_000))*time.Microsecond)
						req = tarantool.Call("lag", strings.Trim(want, "[]"))
					}
					f := c.Start(ctx, req)
					if r.IntN(2) == 0 {
						<-f.Done()
					}
					data, err := f.Get()
					calls.Add(1)
					switch {
					case err == nil && fmt.Sprint(data) != want:
						t.Errorf("%v, want %s", data, want)
					case err != nil && !impatient:
						t.Errorf("a request without a deadline: %v", err)
					case err != nil:
						ended.Add(1)
						if !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("%v", err)
						}
					}
					if r.IntN(2) == 0 { // when the future belongs to another request
						time.AfterFunc(time.Duration(r.IntN(300))*time.Microsecond, cancel)
					} else {
						cancel()
					}
				}
			})
		}
		workers.Wait()
	})
	t.Logf("%d of %d requests were given up", ended.Load(), calls.Load())
	if ended.Load() == 0 || ended.Load() == calls.Load() {
		t.Error("contexts did not end about when the replies came")
	}
}

// Several goroutines use a future while one of them takes the result: the channel is closed for all
// of them, one gets the result, and none affects the next user of the future.
func TestFaultDoneBesideGet(t *testing.T) {
	testkit.NoLeaks(t)
	server := startInstance(t, "none", faultSetup)
	c := connect(t, tarantool.Options{Addr: server.addr})
	end := time.Now().Add(600 * time.Millisecond)
	within(t, "channels", func() {
		var workers sync.WaitGroup
		for g := range 8 {
			workers.Go(func() {
				for i := 0; time.Now().Before(end); i++ {
					req, want := echoed(g, i)
					f := c.Start(context.Background(), req)
					var got atomic.Int64
					var all sync.WaitGroup
					for range 2 {
						all.Go(func() { <-f.Done(); <-f.Done() })
						all.Go(func() {
							switch data, err := f.Get(); {
							case err == nil && fmt.Sprint(data) == want:
								got.Add(1)
							case !errors.Is(err, tarantool.ErrReleased):
								t.Errorf("%v, %v, want %s", data, err, want)
							}
						})
					}
					next, wantNext := echoed(g, -i)
					if data, err := c.Start(context.Background(), next).Get(); err != nil || fmt.Sprint(data) != wantNext {
						t.Errorf("%v, %v, want %s", data, err, wantNext)
					}
					all.Wait()
					if got.Load() != 1 {
						t.Errorf("%d goroutines got the result", got.Load())
					}
				}
			})
		}
		workers.Wait()
	})
}

// Connections end while callers give up and start over: every request ends, even one that starts at
// the moment when the requests of the old connection end.
func TestFaultDisconnectForgetsNobody(t *testing.T) {
	testkit.NoLeaks(t)
	seed := testkit.Seed(t)
	server := startInstance(t, "none", faultSetup)
	proxy := faultproxy.Start(t, server.addr, faultproxy.Options{Seed: seed})
	c := connect(t, tarantool.Options{Addr: proxy.Addr(), Backoff: time.Microsecond, MaxBackoff: 100 * time.Microsecond, Retries: -1, StallTimeout: -1})
	var over atomic.Bool
	var lost atomic.Int64
	within(t, "requests", func() {
		var workers sync.WaitGroup
		for g := range 12 {
			r := testkit.Fork(seed, uint64(g)+1)
			workers.Go(func() {
				for i := 0; !over.Load(); i++ {
					short, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(2000))*time.Microsecond)
					first, wantFirst := echoed(g, 2*i)
					second, wantSecond := echoed(g, 2*i+1)
					f := c.Start(short, first)
					if r.IntN(2) == 0 {
						f.Done()
					}
					next := c.Start(context.Background(), second)
					for _, x := range []struct {
						f    tarantool.Future
						want string
					}{{f, wantFirst}, {next, wantSecond}} {
						data, err := x.f.Get()
						if err == nil && fmt.Sprint(data) != x.want {
							t.Errorf("%v, want %s", data, x.want)
						}
						if x.f == next && err != nil {
							lost.Add(1)
							if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
								t.Errorf("a request without a deadline: %v", err)
							}
						}
					}
					cancel()
				}
			})
		}
		for n := 0; n < 150 || n < 5000 && lost.Load() == 0; n++ {
			time.Sleep(4 * time.Millisecond)
			proxy.Reset()
		}
		over.Store(true)
		workers.Wait()
	})
	if lost.Load() == 0 {
		t.Error("no connection ended under load")
	}
}

// Information about the server can be read at any time.
func TestFaultServerIsAskedWhileReconnecting(t *testing.T) {
	testkit.NoLeaks(t)
	server := startInstance(t, "none", faultSetup)
	proxy := faultproxy.Start(t, server.addr, faultproxy.Options{})
	connected := make(chan struct{}, 1000)
	o := tarantool.Options{Addr: proxy.Addr(), Sockets: 2, Backoff: time.Microsecond, MaxBackoff: 100 * time.Microsecond, OnEvent: func(e tarantool.Event) {
		if e.Kind == tarantool.Connected {
			select {
			case connected <- struct{}{}:
			default:
			}
		}
	}}
	c := connect(t, o)
	var over atomic.Bool
	var askers sync.WaitGroup
	for range 4 {
		askers.Go(func() {
			for !over.Load() {
				if v := c.ServerVersion(); !strings.HasPrefix(v, "2.") {
					t.Errorf("version %q", v)
				}
				var e *slipstream.Error
				err := c.Do(context.Background(), nil, tarantool.Call("nowhere"))
				if !errors.As(err, &e) || e.Addr != proxy.Addr() {
					t.Errorf("%v, expected an error of %s", err, proxy.Addr())
				}
			}
		})
	}
	for range 100 {
		proxy.Reset()
		<-connected
	}
	over.Store(true)
	askers.Wait()
}

// Requests that start while there is no connection wait for one, whichever way they are made.
func TestFaultFutureBeforeTheConnection(t *testing.T) {
	testkit.NoLeaks(t)
	server := startInstance(t, "none", faultSetup)
	proxy := faultproxy.Start(t, server.addr, faultproxy.Options{})
	c := connect(t, tarantool.Options{Addr: proxy.Addr(), Backoff: 30 * time.Millisecond, MaxBackoff: 30 * time.Millisecond})
	fixed := tarantool.SpaceOf[record](c, "fixed")
	var got record
	_, err := fixed.Get(t.Context(), &got, tarantool.Int(1))
	must(t, err)
	proxy.Refuse(true)
	proxy.Reset()
	time.AfterFunc(300*time.Millisecond, func() { proxy.Refuse(false) })
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			req, want := echoed(0, i)
			f := c.Start(t.Context(), req)
			if i%2 == 0 {
				<-f.Done()
			}
			if data, err := f.Get(); err != nil || fmt.Sprint(data) != want {
				t.Errorf("%v, %v, want %s", data, err, want)
			}
		})
		all.Go(func() {
			var got record
			f := fixed.StartGet(t.Context(), tarantool.Int(2))
			if i%2 == 0 {
				<-f.Done()
			}
			if found, err := f.Get(&got); err != nil || !found || got.ID != 2 {
				t.Errorf("%v, %t, %v", got, found, err)
			}
		})
	}
	within(t, "requests", all.Wait)
}
