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
	"github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool"
)

// watch starts watching a key.
func watch(t testing.TB, c *tarantool.Client, key string) *tarantool.Watcher {
	t.Helper()
	w, err := c.Watch(patient(t), key)
	must(t, err)
	t.Cleanup(w.Stop)
	return w
}

// next returns the next value of a watcher.
func next(t testing.TB, w *tarantool.Watcher) any {
	t.Helper()
	e, err := w.Next(patient(t))
	must(t, err)
	v, err := e.Value()
	must(t, err)
	return v
}

// newest waits for a value, and fails the test if numbers before it do not increase.
func newest(t testing.TB, w *tarantool.Watcher, want int64) (values int) {
	t.Helper()
	for last := int64(-1); last != want; values++ {
		v, ok := next(t, w).(int64)
		if !ok || v < last || v > want {
			t.Fatalf("%d after %d, while waiting for %d", v, last, want)
		}
		last = v
	}
	return values
}

// quiet fails the test if there is another value.
func quiet(t testing.TB, w *tarantool.Watcher) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if e, err := w.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		v, _ := e.Value()
		t.Errorf("another value: %v, %v", v, err)
	}
}

func TestWatchFirstValue(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	c := connected(t, server)
	none := watch(t, c, "none")
	e, err := none.Next(patient(t))
	must(t, err)
	kept := 7
	if err := e.Decode(&kept); err != nil || kept != 0 || e.Key != "none" {
		t.Errorf("a key without a value: %q, %d, %v", e.Key, kept, err)
	}
	server.Broadcast("some", map[string]any{"size": 3})
	some := watch(t, c, "some")
	if e, err = some.Next(patient(t)); err != nil {
		t.Fatal(err)
	}
	var value struct{ Size int }
	var m map[string]int
	if err := e.Decode(&m); err != nil || m["size"] != 3 || e.Key != "some" {
		t.Errorf("%q, %v, %v", e.Key, m, err)
	}
	if err := e.Decode(&value); err == nil {
		t.Error("a map was decoded into a struct, which needs an array")
	}
	quiet(t, none)
	quiet(t, some)
	server.Broadcast("some", nil)
	if v := next(t, some); v != nil {
		t.Errorf("the value was removed: %v", v)
	}
	server.Broadcast("none", "now")
	if v := next(t, none); v != "now" {
		t.Errorf("%v", v)
	}
}

// A watcher whose Next is called rarely returns the newest value, and no value twice.
func TestWatchSlowReader(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	server.Broadcast("key", 0)
	c := connected(t, server)
	slow, quick := watch(t, c, "key"), watch(t, c, "key")
	newest(t, slow, 0)
	newest(t, quick, 0)
	for i := range 1000 {
		server.Broadcast("key", i+1)
	}
	newest(t, quick, 1000)
	if v := next(t, slow); v != int64(1000) {
		t.Errorf("the slow watcher returned %v", v)
	}
	quiet(t, slow)
	quiet(t, quick)
}

// With many watchers of one key, each gets the first value, whenever it is added, and receives
// changes until it is stopped. The server is notified when the last one stops.
func TestWatchSameKey(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	server.Broadcast("key", 1)
	c := connected(t, server)
	var all []*tarantool.Watcher
	for range 10 {
		w := watch(t, c, "key")
		newest(t, w, 1)
		all = append(all, w)
	}
	server.Broadcast("key", 2)
	for _, w := range all {
		newest(t, w, 2)
	}
	for _, w := range all[1:] {
		w.Stop()
	}
	server.Broadcast("key", 3)
	newest(t, all[0], 3)
	if n := saw(server, "unwatch"); n > 0 {
		t.Errorf("%d unwatches while there is a watcher", n)
	}
	all[0].Stop()
	until(t, "no unwatch", func() bool { return saw(server, "unwatch") == 1 })
	server.Broadcast("key", 4)
	newest(t, watch(t, c, "key"), 4)
}

// Watchers are added and stopped concurrently while values arrive.
func TestWatchersComeAndGo(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	c := connected(t, server)
	for key := range 3 {
		server.Broadcast(fmt.Sprint("key", key), 0)
	}
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			key := fmt.Sprint("key", g%3)
			for range 50 {
				w, err := c.Watch(patient(t), key)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := w.Next(patient(t)); err != nil {
					t.Error(err)
				}
				w.Stop()
			}
		})
	}
	for i := range 50 {
		for key := range 3 {
			server.Broadcast(fmt.Sprint("key", key), i+1)
		}
	}
	wg.Wait()
}

// A lost connection does not lose the latest value: it arrives on the next connection.
func TestWatchAcrossConnections(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	server.Broadcast("one", 0)
	server.Broadcast("other", 0)
	c := connected(t, server)
	one, other, still := watch(t, c, "one"), watch(t, c, "other"), watch(t, c, "still")
	next(t, one)
	next(t, other)
	next(t, still)
	value := int64(0)
	for range 20 {
		server.Refuse(true)
		server.HangUp()
		value++
		server.Broadcast("one", value)
		server.Refuse(false)
		newest(t, one, value)
		server.Broadcast("other", value)
		newest(t, other, value)
	}
	// Values change while connections end at any moment.
	done := make(chan struct{})
	go func() { // ends soon; the test waits
		defer close(done)
		for range 40 {
			server.HangUp()
			time.Sleep(2 * time.Millisecond)
		}
	}()
	for range 2000 {
		value++
		server.Broadcast("one", value)
		time.Sleep(20 * time.Microsecond)
	}
	newest(t, one, value)
	<-done
	value++
	server.Broadcast("other", value)
	newest(t, other, value)
	// The value after a lost connection may be the same as before.
	server.Broadcast("still", "last")
	for v := next(t, still); v != "last"; v = next(t, still) {
		if v != nil {
			t.Fatalf("%v", v)
		}
	}
}

// A watcher that starts while a connection is being lost gets its value anyway.
func TestWatchWhileConnectionsEnd(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	server.Broadcast("first", 1)
	c := connected(t, server)
	next(t, watch(t, c, "first"))
	over, done := make(chan struct{}), make(chan struct{})
	go func() { // ends with over; the test waits
		defer close(done)
		for {
			select {
			case <-over:
				return
			case <-time.After(time.Millisecond):
				server.HangUp()
			}
		}
	}()
	var all []*tarantool.Watcher
	for i := range 200 {
		key := fmt.Sprint("key", i)
		server.Broadcast(key, i)
		w, err := c.Watch(patient(t), key)
		if err != nil {
			outcome(t, key, err, slipstream.NotSent)
			continue
		}
		all = append(all, w)
	}
	close(over)
	<-done
	for i, w := range all {
		if _, ok := next(t, w).(int64); !ok {
			t.Errorf("watcher %d has no value", i)
		}
		w.Stop()
	}
	if len(all) == 0 {
		t.Error("no watcher")
	}
}

// However many keys there are, and however few requests the client may have in flight, all of them
// are requested again on a new connection.
func TestWatchManyKeys(t *testing.T) {
	testkit.NoLeaks(t)
	for _, full := range []bool{false, true} {
		server := simulated(t, tarantoolsim.Config{})
		c := connect(t, tarantool.Options{Addr: server.Addr(), MaxCalls: 4, MaxBytes: 4 << 10, WaitWhenFull: full, Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond})
		var all []*tarantool.Watcher
		for i := range 300 {
			w := watch(t, c, fmt.Sprint("key", i))
			next(t, w)
			all = append(all, w)
		}
		server.Refuse(true)
		server.HangUp()
		for i := range all {
			server.Broadcast(fmt.Sprint("key", i), 1+i)
		}
		server.Refuse(false)
		for i, w := range all {
			newest(t, w, int64(1+i))
		}
	}
}

func TestWatchStop(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	for name, end := range map[string]struct {
		end  func(c *tarantool.Client, w *tarantool.Watcher)
		want error
	}{
		"stop":  {func(_ *tarantool.Client, w *tarantool.Watcher) { w.Stop() }, tarantool.ErrWatcherStopped},
		"close": {func(c *tarantool.Client, _ *tarantool.Watcher) { c.Close() }, tarantool.ErrClosed},
		"shutdown": {func(c *tarantool.Client, _ *tarantool.Watcher) {
			must(t, c.Shutdown(patient(t)))
		}, tarantool.ErrClosed},
	} {
		c := connected(t, server)
		w := watch(t, c, "key")
		next(t, w)
		results := make(chan error)
		for range 4 {
			go func() { // ends with the watcher; the test waits
				_, err := w.Next(patient(t))
				results <- err
			}()
		}
		until(t, "the callers do not wait", func() bool { return waitingIn("Watcher).Next") == 4 })
		end.end(c, w)
		for range 4 {
			if err := <-results; !errors.Is(err, end.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		w.Stop() // a second time
		if _, err := w.Next(t.Context()); !errors.Is(err, end.want) {
			t.Errorf("%s, later: %v", name, err)
		}
	}
	c := connected(t, server)
	c.Close()
	_, err := c.Watch(t.Context(), "key")
	outcome(t, "watch", err, slipstream.Closed)
	if !errors.Is(err, tarantool.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// Next is bounded by its context, which does not affect the next call.
func TestWatchContext(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	c := connected(t, server)
	w := watch(t, c, "key")
	next(t, w)
	quiet(t, w)
	server.Broadcast("key", 5)
	newest(t, w, 5)
	server.Refuse(true)
	server.HangUp()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	until(t, "the client has not noticed", func() bool { open, _ := server.Connections(); return open == 0 })
	if _, err := w.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a connection: %v", err)
	}
	server.Refuse(false)
	newest(t, w, 5)
}

// The key by which the client itself learns of a server's shutdown can be watched like any other,
// and the client continues to watch it.
func TestWatchShutdownKey(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	server.Broadcast("box.shutdown", false)
	c := connected(t, server)
	another := watch(t, c, "another")
	next(t, another) // there is a connection
	w := watch(t, c, "box.shutdown")
	if v := next(t, w); v != false {
		t.Errorf("%v", v)
	}
	w.Stop()
	another.Stop()
	next(t, watch(t, c, "last")) // earlier messages have arrived
	// The first unwatch made the server send the value again, and the second one is for the other
	// key.
	if n := saw(server, "unwatch"); n != 2 {
		t.Errorf("%d unwatches", n)
	}
	must(t, c.Do(patient(t), nil, tarantool.Ping()))
	server.Broadcast("box.shutdown", true)
	until(t, "the client keeps a connection", func() bool { open, ever := server.Connections(); return open == 0 || ever >= 4 })
}

// A client with FailFast waits for the first connection of its watchers.
func TestWatchFailFast(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	c := connect(t, tarantool.Options{Addr: server.Addr(), FailFast: true})
	next(t, watch(t, c, "key"))
}

func TestWatchesOfOldServers(t *testing.T) {
	testkit.NoLeaks(t)
	_, real := started(t)
	old, lacksOne := simulated(t, oldServer), simulated(t, tarantoolsim.Config{Without: []int{int(box.FeatureWatchers)}})
	for _, server := range []struct{ addr, version string }{{real.Addr, "2.6.0"}, {old.Addr(), "2.6.0"}, {lacksOne.Addr(), "3.3.0"}} {
		_, err := connect(t, tarantool.Options{Addr: server.addr}).Watch(t.Context(), "key")
		lacking(t, "watch", err, "2.10", server.version)
	}
	if seen := append(old.Seen(), lacksOne.Seen()...); len(seen) > 0 {
		t.Errorf("%v was sent", seen)
	}
}

func TestWatchOnce(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	c := connected(t, server)
	for _, want := range []any{nil, int64(4), "five", nil} {
		server.Broadcast("key", want)
		all := []any{}
		if want != nil {
			all = append(all, want)
		}
		data, err := c.Start(patient(t), tarantool.WatchOnce("key")).Get()
		if err != nil || fmt.Sprint(data) != fmt.Sprint(all) {
			t.Errorf("%v, %v; want %v", data, err, all)
		}
	}
	_, real := started(t)
	for _, server := range []struct{ addr, version string }{
		{real.Addr, "2.6.0"}, {simulated(t, tarantoolsim.Config{Version: "2.11.1", Protocol: 4}).Addr(), "2.11.1"},
	} {
		err := connect(t, tarantool.Options{Addr: server.addr}).Do(t.Context(), nil, tarantool.WatchOnce("key"))
		lacking(t, "watch once", err, "3.0", server.version)
	}
}
