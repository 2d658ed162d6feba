package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// flood requests n keys of its own as one client and counts the results.
type flood struct {
	callers          sync.WaitGroup
	mu               sync.Mutex
	done, overloaded int
}

func (w *flood) ask(t *testing.T, f *fixture, client uint64, prefix string, n int) {
	for i := range n {
		w.callers.Go(func() {
			_, err := f.cache.Get(WithClient(t.Context(), client), Key{0, fmt.Sprint(prefix, i)}, f.cache.Now())
			w.mu.Lock()
			defer w.mu.Unlock()
			switch {
			case err == nil:
				w.done++
			case errors.Is(err, ErrOverloaded):
				w.overloaded++
			default:
				t.Errorf("%s%d: %v", prefix, i, err)
			}
		})
	}
	synctest.Wait()
}

// One client's flood of keys does not make another wait: its key is in the next
// statement, even if the flood has requested it before.
func TestLoadsAreQueuedFairly(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprint("shared ", shared), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, Resource{MaxLoads: 1, MaxBatch: 8})
				var mu sync.Mutex
				var statements [][]string
				f.load = func(_ context.Context, ids []string) (Batch, error) {
					mu.Lock()
					statements = append(statements, ids)
					mu.Unlock()
					time.Sleep(time.Millisecond)
					return f.db.read(0, ids), nil
				}
				var flooding flood
				flooding.ask(t, f, 1, "flood", 1000)
				key := "mine"
				if shared {
					key = "flood700"
				}
				mu.Lock()
				before := len(statements)
				mu.Unlock()
				if _, err := f.cache.Get(WithClient(t.Context(), 2), Key{0, key}, f.cache.Now()); err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				n := len(statements) - before
				mu.Unlock()
				if n > 2 {
					t.Errorf("%d statements were sent before the answer, want at most 2", n)
				}
				flooding.callers.Wait()
				if flooding.done != 1000 {
					t.Errorf("%d of 1000 keys of the flood were answered", flooding.done)
				}
				total := 0
				for _, ids := range statements {
					total += len(ids)
				}
				if want := 1001 - map[bool]int{true: 1}[shared]; total != want {
					t.Errorf("%d keys were loaded, want %d: each once", total, want)
				}
			})
		})
	}
}

// One client's flood does not get another's key refused: the youngest key of the flood makes
// room.
func TestFloodMakesRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const room = 100
		f := newFixture(t, Resource{MaxLoads: 1, MaxBatch: 8, MaxQueue: room})
		gate := make(chan struct{})
		f.load = func(_ context.Context, ids []string) (Batch, error) {
			<-gate
			return f.db.read(0, ids), nil
		}
		var flooding, others flood
		flooding.ask(t, f, 1, "first", 1) // in flight
		flooding.ask(t, f, 1, "flood", room+50)
		if flooding.overloaded != 50 {
			t.Errorf("%d keys of the flood were refused, want the 50 for which there is no room", flooding.overloaded)
		}
		for client := range uint64(20) {
			others.ask(t, f, 10+client, fmt.Sprint("other", client, "-"), 2)
		}
		if others.overloaded != 0 || flooding.overloaded != 50+40 {
			t.Errorf("%d keys of others and %d of the flood were refused, want 0 and 90", others.overloaded, flooding.overloaded)
		}
		// A client that has as much queued as the others does not displace them.
		var more flood
		more.ask(t, f, 1, "more", 10)
		if more.overloaded != 10 {
			t.Errorf("%d of 10 further keys of the flood were refused, want all", more.overloaded)
		}
		close(gate)
		flooding.callers.Wait()
		others.callers.Wait()
		more.callers.Wait()
		if others.done != 40 || flooding.done != room+1-40 {
			t.Errorf("%d keys of others and %d of the flood were answered, want 40 and %d", others.done, flooding.done, room+1-40)
		}
	})
}

// Keys that load alone and healthy keys alternate when only one statement may run at a time.
func TestLoneKeysLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Resource{MaxLoads: 1, AloneFor: time.Hour, LoadTimeout: time.Second})
		bad := errors.New("cannot convert")
		var mu sync.Mutex
		var statements [][]string
		f.load = func(_ context.Context, ids []string) (Batch, error) {
			mu.Lock()
			statements = append(statements, ids)
			mu.Unlock()
			time.Sleep(time.Millisecond)
			if slices.ContainsFunc(ids, func(id string) bool { return id[0] == 'b' }) {
				return Batch{}, bad
			}
			return f.db.read(0, ids), nil
		}
		for i := range 50 {
			if _, err := f.get(fmt.Sprint("b", i)); !errors.Is(err, bad) {
				t.Fatalf("got %v", err)
			}
		}
		synctest.Wait()
		mu.Lock()
		statements = nil
		mu.Unlock()
		var callers sync.WaitGroup
		for i := range 50 {
			callers.Go(func() { _, _ = f.get(fmt.Sprint("b", i)) })
		}
		synctest.Wait()
		if _, err := f.get("healthy"); err != nil {
			t.Fatal(err)
		}
		callers.Wait()
		mu.Lock()
		defer mu.Unlock()
		at := slices.IndexFunc(statements, func(ids []string) bool { return slices.Contains(ids, "healthy") })
		if at > 3 {
			t.Errorf("the healthy key went with statement %d of %d, want one of the first", at, len(statements))
		}
	})
}
