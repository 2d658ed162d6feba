package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// An origin that panics fails the keys at fault, and the cache continues to work.
func TestOriginPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Resource{})
		f.load = func(_ context.Context, ids []string) (Batch, error) {
			if slices.Contains(ids, "bad") {
				panic("no such column")
			}
			return f.db.read(0, ids), nil
		}
		if _, err := f.get("bad"); err == nil || !strings.Contains(err.Error(), "no such column") {
			t.Errorf("got %v, want the panic's text", err)
		}
		if _, err := f.get("k1"); err != nil {
			t.Errorf("the next key: %v", err)
		}
	})
}

// A key that makes statements fail is found by halving, fails alone, and is loaded
// alone for a while; its neighbors are served.
func TestBadKeyFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Resource{MaxLoads: 1, AloneFor: 10 * time.Second, LoadTimeout: time.Second})
		bad := errors.New("cannot convert")
		var mu sync.Mutex
		var batches [][]string
		f.load = func(ctx context.Context, ids []string) (Batch, error) {
			mu.Lock()
			batches = append(batches, ids)
			mu.Unlock()
			time.Sleep(10 * time.Millisecond)
			if slices.Contains(ids, "bad") {
				return Batch{}, bad
			}
			if slices.Contains(ids, "slow") {
				<-ctx.Done()
				return Batch{}, ctx.Err()
			}
			return f.db.read(0, ids), nil
		}
		ask := func() {
			var callers sync.WaitGroup
			for i := range 40 {
				callers.Go(func() {
					if _, err := f.get(fmt.Sprint("k", i)); err != nil {
						t.Errorf("healthy key: %v", err)
					}
				})
			}
			callers.Go(func() {
				if _, err := f.get("bad"); !errors.Is(err, bad) {
					t.Errorf("bad key: %v", err)
				}
			})
			callers.Go(func() {
				if _, err := f.get("slow"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("slow key: %v", err)
				}
			})
			callers.Wait()
		}
		ask()
		if f.cache.Stats().Resources[0].Halved == 0 {
			t.Error("no statement was tried again in halves")
		}
		batches = nil
		for i := range 40 {
			f.cache.Purge(Key{0, fmt.Sprint("k", i)})
		}
		ask()
		for _, ids := range batches {
			if len(ids) > 1 && (slices.Contains(ids, "bad") || slices.Contains(ids, "slow")) {
				t.Errorf("within AloneFor, a failing key was loaded with others: %q", ids)
			}
		}
		time.Sleep(11 * time.Second)
		f.poll()
		batches = nil
		for i := range 40 {
			f.cache.Purge(Key{0, fmt.Sprint("k", i)})
		}
		ask()
		together := slices.ContainsFunc(batches, func(ids []string) bool {
			return len(ids) > 1 && slices.Contains(ids, "bad")
		})
		if !together {
			t.Error("after AloneFor, the key was still loaded alone")
		}
	})
}

// One key that hangs delays the other keys of its batch only briefly.
func TestSlowKeyHoldsItsBatchBriefly(t *testing.T) {
	for range 20 { // which keys share a batch is up to the scheduler
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, Resource{MaxLoads: 1, LoadTimeout: time.Second})
			f.load = func(ctx context.Context, ids []string) (Batch, error) {
				if slices.Contains(ids, "slow") {
					<-ctx.Done()
					return Batch{}, ctx.Err()
				}
				return f.db.read(0, ids), nil
			}
			var callers sync.WaitGroup
			began := time.Now()
			for i := range 256 {
				id := strconv.Itoa(i)
				if i == 100 {
					id = "slow"
				}
				callers.Go(func() {
					_, err := f.get(id)
					took := time.Since(began)
					switch {
					case id == "slow" && !errors.Is(err, context.DeadlineExceeded):
						t.Errorf("slow key: %v", err)
					case id == "slow" && took > 3*time.Second:
						t.Errorf("the slow key failed after %v", took)
					case id != "slow" && (err != nil || took > 1800*time.Millisecond):
						t.Errorf("key %s waited %v: %v", id, took, err)
					}
				})
			}
			callers.Wait()
		})
	}
}
