package cache

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// attach gives the cache of f a store that is vouched for.
func (f *fixture) attach(store *mapStore, distance int) {
	f.t.Helper()
	if !f.cache.Attach(store, distance) {
		f.t.Fatal("a store could not be attached")
	}
	_, number, waits := f.cache.Waiting()
	if !waits {
		f.t.Fatal("a store that has just been attached does not wait")
	}
	_, _, at := f.db.since(f.delivered)
	f.cache.Checkpoint(Position{History: "h", Seen: at}, number)
}

// stored puts what the database has for a key into a store.
func (f *fixture) stored(store *mapStore, id string) {
	b := f.db.read(0, []string{id})
	store.mu.Lock()
	defer store.mu.Unlock()
	store.docs[Key{0, id}] = Stored{Body: b.Docs[0].Body, XMin: b.Snapshot.XMin, LoadedAt: f.cache.Now()}
}

// version returns the version of a key that a store holds, 0 for none.
func (m *mapStore) version(t *testing.T, key Key) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.docs[key]
	return modelVersion(t, key, s.document(0))
}

// mutant: store-asked-before-join
//
// 1,000 GETs of a cold key query each store once: callers share the lookup, then the
// load.
func TestColdKeyAsksEachStoreOnce(t *testing.T) {
	for name, holder := range map[string]int{"none holds it": -1, "the nearer holds it": 0, "the farther holds it": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const callers = 1000
				f := newFixture(t, Resource{})
				defer f.cache.Close()
				f.commit("k")
				f.poll()
				stores := []*mapStore{newMapStore(), newMapStore()}
				key := Key{0, "k"}
				for i, s := range stores {
					s.before = func() { time.Sleep(time.Millisecond) }
					s.during = s.before
					if i == holder {
						f.stored(s, "k")
					}
					f.attach(s, i)
				}
				var all sync.WaitGroup
				for i := range callers {
					all.Go(func() {
						time.Sleep(time.Duration(i) * 5 * time.Microsecond) // some come while it is looked up
						f.mustGetAny("k", 1)
					})
				}
				all.Wait()
				for i, s := range stores {
					want := 1
					if holder >= 0 && i > holder {
						want = 0
					}
					if s.asked[key] != want {
						t.Errorf("store %d was queried %d times, want %d", i, s.asked[key], want)
					}
				}
				want := int64(0)
				if holder < 0 {
					want = 1
				}
				if n := f.statements.Load(); n != want {
					t.Errorf("%d statements, want %d", n, want)
				}
				if s := f.cache.Stats().Resources[0]; s.Hits+s.Misses != callers {
					t.Errorf("%d hits and %d misses for %d callers", s.Hits, s.Misses, callers)
				}
			})
		})
	}
}

// mustGetAny is mustGet without checking where the answer came from.
func (f *fixture) mustGetAny(id string, version int) {
	a, err := f.get(id)
	if err != nil {
		f.t.Errorf("GET %s: %v", id, err)
	} else if got := modelVersion(f.t, Key{0, id}, a.Doc); got != version {
		f.t.Errorf("GET %s = version %d, want %d", id, got, version)
	}
}

// GetMany queries each store once for all keys that are neither in memory nor in a nearer store.
func TestGetManyAsksEachStoreOnce(t *testing.T) {
	f := newFixture(t, Resource{MaxBatch: 1000})
	defer f.cache.Close()
	var keys []Key
	for i := range 1000 {
		keys = append(keys, Key{0, strconv.Itoa(i)})
		f.commit(keys[i].ID)
	}
	f.poll()
	near, far := newMapStore(), newMapStore()
	for i := range 600 {
		f.stored([]*mapStore{near, far}[i/300], keys[i].ID)
	}
	f.attach(near, 0)
	f.attach(far, 1)
	answers := make([]Answer, len(keys))
	if err := f.cache.GetMany(t.Context(), keys, f.cache.Now(), answers); err != nil {
		t.Fatal(err)
	}
	from := map[string]int{}
	for i, a := range answers {
		if got := modelVersion(t, keys[i], a.Doc); got != 1 {
			t.Fatalf("key %d has version %d", i, got)
		}
		from[fmt.Sprint(a.Source, a.FromStore)]++
	}
	if near.calls != 1 || far.calls != 1 || len(near.asked) != 1000 || len(far.asked) != 700 {
		t.Errorf("%d calls for %d keys and %d for %d, want 1 for 1,000 and 1 for 700", near.calls, len(near.asked), far.calls, len(far.asked))
	}
	if from["0 true"] != 600 || from["1 false"] != 400 || f.statements.Load() != 1 {
		t.Errorf("answers %v with %d statements, want 600 of stores, 400 loaded by one", from, f.statements.Load())
	}
	if s := f.cache.Stats().Resources[0]; s.Hits != 600 || s.Misses != 400 {
		t.Errorf("%d hits, %d misses, want 600, 400", s.Hits, s.Misses)
	}
}

// Two batches that lead lookups for each other's keys do not deadlock, and a key that occurs
// twice is queried once.
func TestGetManyAcrossEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Resource{})
		defer f.cache.Close()
		for _, id := range []string{"a", "b", "c"} {
			f.commit(id)
		}
		f.poll()
		store := newMapStore()
		store.before = func() { time.Sleep(time.Millisecond) }
		f.stored(store, "c")
		f.attach(store, 0)
		var all sync.WaitGroup
		for _, ids := range [][]string{{"a", "b", "c", "a"}, {"b", "a", "c", "b"}, {"c", "b", "a"}} {
			all.Go(func() {
				keys := manyKeys(ids...)
				answers := make([]Answer, len(keys))
				if err := f.cache.GetMany(context.Background(), keys, f.cache.Now(), answers); err != nil {
					t.Error(err)
					return
				}
				for i, key := range keys {
					if got := modelVersion(t, key, answers[i].Doc); got != 1 {
						t.Errorf("%s has version %d", key.ID, got)
					}
				}
			})
		}
		all.Wait()
		for _, id := range []string{"a", "b", "c"} {
			if n := store.asked[Key{0, id}]; n != 1 {
				t.Errorf("the store was queried %d times for %s", n, id)
			}
		}
	})
}

// A leader whose context ends, or whose store panics, leaves no caller waiting: another one queries.
func TestLookUpOutlivesItsLeader(t *testing.T) {
	for name, leave := range map[string]func(f *fixture, store *mapStore){
		"its context ends": func(f *fixture, store *mapStore) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			defer cancel()
			if _, err := f.cache.Get(ctx, Key{0, "k"}, f.cache.Now()); !errors.Is(err, context.DeadlineExceeded) {
				f.t.Errorf("%v, want the error of a deadline", err)
			}
		},
		"the store panics": func(f *fixture, store *mapStore) {
			defer func() {
				if recover() == nil {
					f.t.Error("the store has not panicked")
				}
			}()
			f.cache.Get(context.Background(), Key{0, "k"}, f.cache.Now())
		},
		"the store panics at a batch": func(f *fixture, store *mapStore) {
			defer func() {
				if recover() == nil {
					f.t.Error("the store has not panicked")
				}
			}()
			f.cache.GetMany(context.Background(), manyKeys("k"), f.cache.Now(), make([]Answer, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, Resource{})
				defer f.cache.Close()
				f.commit("k")
				f.poll()
				store := newMapStore()
				first := true
				store.fails = func() error {
					if !first {
						return nil
					}
					first = false
					time.Sleep(5 * time.Millisecond)
					if name != "its context ends" {
						panic("injected")
					}
					return context.DeadlineExceeded
				}
				f.stored(store, "k")
				f.attach(store, 0)
				var all sync.WaitGroup
				all.Go(func() { leave(f, store) })
				synctest.Wait()
				for range 10 {
					all.Go(func() { f.mustGet("k", 1, FromTier) })
				}
				all.Wait()
				if n := f.statements.Load(); n != 0 || store.calls != 2 {
					t.Errorf("%d statements and %d calls of the store, want 0 and 2", n, store.calls)
				}
			})
		})
	}
}

// mutant: look-shared-past-a-change
//
// A caller that joins a lookup after the horizon has moved past a change does not get the
// document from before, whenever the store was read.
func TestLookUpIsNotSharedPastAChange(t *testing.T) {
	for name, change := range map[string]func(f *fixture){
		"a change": func(f *fixture) { f.commit("k"); f.poll() },
		"a purge":  func(f *fixture) { f.commit("k"); f.delivered++; f.cache.Purge(Key{0, "k"}) },
		"a flush":  func(f *fixture) { f.commit("k"); f.delivered++; f.cache.PurgeResource(0) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newMapStore()
				f := withStore(t, store)
				defer f.cache.Close()
				first := true
				store.during = func() {
					if first {
						first = false
						time.Sleep(time.Second / 2)
					}
				}
				var all sync.WaitGroup
				all.Go(func() {
					if _, err := f.get("k"); err != nil { // it began before, and may get either
						t.Error(err)
					}
				})
				synctest.Wait() // the leader has read the store
				change(f)
				for range 3 {
					all.Go(func() { f.mustGetAny("k", 2) })
				}
				all.Wait()
				f.mustGetAny("k", 2)
			})
		})
	}
}
