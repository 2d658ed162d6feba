package cache

import (
	"context"
	"testing"
)

// These tests use a cache with no store, one store and several stores.

// mutant: store-nearer-filled-past-tombstone
//
// A document of a farther store is put into memory and into the nearer store; a change that is
// applied meanwhile keeps it out of both.
func TestNearerStoresAreFilled(t *testing.T) {
	for name, changed := range map[string]bool{"as it is": false, "not past a change": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, Resource{})
			defer f.cache.Close()
			f.commit("k")
			f.poll()
			near, far := newMapStore(), newMapStore()
			f.stored(far, "k")
			f.attach(far, 7) // the order of their distance counts, not when they came
			f.attach(near, 3)
			first := true
			far.during = func() {
				if changed && first {
					first = false
					f.commit("k")
					f.poll()
				}
			}
			key := Key{0, "k"}
			f.mustGet("k", 1, FromTier) // it began before the change
			want := 1
			if changed {
				want = 0
			}
			if got := near.version(t, key); got != want {
				t.Errorf("the nearer store has version %d, want %d", got, want)
			}
			if d := f.tier.docs[key]; (d != nil) == changed {
				t.Errorf("memory holds the document: %v", d != nil)
			}
			if near.asked[key] != 1 || far.asked[key] != 1 {
				t.Errorf("the nearer was queried %d times, the farther %d times", near.asked[key], far.asked[key])
			}
			f.tier.Remove(key)
			if !changed {
				f.mustGet("k", 1, FromTier)
				if near.asked[key] != 2 || far.asked[key] != 1 {
					t.Error("the nearer store is not queried first")
				}
				f.commit("k")
				f.poll()
				if near.version(t, key)+far.version(t, key) != 0 {
					t.Error("a change did not reach both stores")
				}
			}
			f.mustGet("k", 2, FromLoad)
		})
	}
}

// mutant: store-told-only-the-nearest
//
// Every store is notified of what happens to a document, not only the nearest.
func TestEachStoreIsTold(t *testing.T) {
	for name, happens := range map[string]func(c *Cache){
		"a change":        func(c *Cache) { c.Apply([]Event{{Key: Key{0, "k"}, Tx: 9}}) },
		"a flush":         func(c *Cache) { c.Apply([]Event{{Key: Key{0, ""}, Tx: 9, All: true}}) },
		"a purge":         func(c *Cache) { c.Purge(Key{0, "k"}) },
		"a purge of all":  func(c *Cache) { c.PurgeResource(0) },
		"a lost promise":  func(c *Cache) { c.SetPromise(0, false, "off") },
		"another history": func(c *Cache) { c.Void("test") },
	} {
		for n := range 4 {
			f := newFixture(t, Resource{})
			f.commit("k")
			f.poll()
			var stores []*mapStore
			for i := range n {
				stores = append(stores, newMapStore())
				if i != 1 {
					f.attach(stores[i], i)
				} else if !f.cache.Attach(stores[i], i) { // a waiting store is notified, too
					t.Fatal("a store could not be attached")
				}
			}
			f.mustGet("k", 1, FromLoad)
			for i, s := range stores {
				if s.version(t, Key{0, "k"}) != 1 {
					t.Errorf("%s: store %d of %d did not get what was loaded", name, i, n)
				}
			}
			happens(f.cache)
			for i, s := range stores {
				if s.version(t, Key{0, "k"}) != 0 {
					t.Errorf("%s: store %d of %d still holds the document", name, i, n)
				}
			}
			var names int
			for _, s := range f.cache.Stats().Tiers {
				if s.Name == "store" {
					names++
				}
			}
			if names != n {
				t.Errorf("%d stores in the stats, want %d", names, n)
			}
			if err := f.cache.Close(); err != nil {
				t.Error(err)
			}
			for i, s := range stores {
				if s.closed != 1 {
					t.Errorf("store %d of %d was closed %d times", i, n, s.closed)
				}
			}
		}
	}
}

// mutant: store-resumed-with-the-position-of-another
//
// Each store waits for the changes since its own position, in the order in which they were
// attached; processing those of one store does not vouch for another. A store is discarded
// without the others.
func TestEachStoreWaitsForItsOwnChanges(t *testing.T) {
	f := newFixture(t, Resource{})
	defer f.cache.Close()
	f.poll()
	late := Position{History: "h", Seen: UpTo(9)}
	early := Position{History: "h", Seen: UpTo(2)}
	first, second, third := newMapStore(), newMapStore(), newMapStore()
	first.position, second.position, third.position = late, early, early
	for i, s := range []*mapStore{first, second, third} {
		s.docs[Key{0, "k"}] = Stored{Body: modelBody(Key{0, "k"}, 7), XMin: 3}
		if !f.cache.Attach(s, 3-i) {
			t.Fatal("a store could not be attached")
		}
	}
	expect := func(want Position, wantNumber uint64) {
		t.Helper()
		p, number, waits := f.cache.Waiting()
		if !waits || number != wantNumber || p.Seen.XMin != want.Seen.XMin {
			t.Fatalf("store %d waits (%v) for what is after %+v, want store %d and %+v", number, waits, p, wantNumber, want)
		}
	}
	expect(late, 1)
	f.cache.Checkpoint(Position{History: "h", Seen: UpTo(10)}, 0)
	if first.told+second.told+third.told != 0 {
		t.Error("a waiting store was given a position")
	}
	f.cache.Checkpoint(Position{History: "h", Seen: UpTo(10)}, 1)
	if first.told != 1 || second.told+third.told != 0 {
		t.Error("a store whose changes were not processed was given a position")
	}
	f.mustGet("k", 7, FromTier)
	if second.calls+third.calls != 0 {
		t.Error("a waiting store was queried")
	}
	expect(early, 2)
	f.cache.Discard(2)
	if second.version(t, Key{0, "k"}) != 0 || first.version(t, Key{0, "k"}) != 7 || third.version(t, Key{0, "k"}) != 7 {
		t.Error("a store other than the given one was discarded")
	}
	f.cache.Discard(1) // it does not wait
	if first.version(t, Key{0, "k"}) != 7 {
		t.Error("a store that does not wait was discarded")
	}
	expect(Position{}, 2)
	f.cache.Checkpoint(Position{History: "h", Seen: UpTo(11)}, 2)
	expect(early, 3)
	f.cache.Checkpoint(Position{History: "h", Seen: UpTo(12)}, 3)
	if _, _, waits := f.cache.Waiting(); waits || first.told != 3 || second.told != 2 || third.told != 1 {
		t.Errorf("waits: %v; %d, %d and %d positions were reported, want 3, 2 and 1", waits, first.told, second.told, third.told)
	}
	// A store that is attached again counts as a new one: the stream has not processed its
	// changes.
	if !f.cache.Detach(first) || !f.cache.Attach(first, 0) {
		t.Error("a store cannot be detached and attached again")
	}
	if _, number, waits := f.cache.Waiting(); !waits || number != 4 {
		t.Errorf("store %d waits: %v, want 4", number, waits)
	}
}

// tryingStore is a mapStore with documents that it can return without waiting.
type tryingStore struct{ *mapStore }

func (s tryingStore) Try(key Key) Stored {
	var found [1]Stored
	_ = s.Get(context.Background(), []Key{key}, found[:])
	return found[0]
}

// mutant: store-tells-without-waiting-before-it-is-vouched-for
func TestStoreThatWaitsTellsNothing(t *testing.T) {
	f := newFixture(t, Resource{})
	defer f.cache.Close()
	f.commit("k")
	f.poll()
	store := newMapStore()
	f.stored(store, "k")
	if !f.cache.Attach(tryingStore{store}, 0) {
		t.Fatal("a store could not be attached")
	}
	if _, ok := f.cache.Peek(Key{0, "k"}, f.cache.Now()); ok || store.calls != 0 {
		t.Errorf("answered: %v, queried %d times", ok, store.calls)
	}
	f.cache.Checkpoint(Position{History: "h", Seen: UpTo(1)}, 1)
	if a, ok := f.cache.Peek(Key{0, "k"}, f.cache.Now()); !ok || !a.FromStore {
		t.Errorf("answered: %v, %+v", ok, a)
	}
	if d := f.tier.docs[Key{0, "k"}]; d == nil {
		t.Error("it was not put into memory")
	}
}

// Documents that no tier in memory keeps are looked up by one caller on behalf of
// all.
func TestStoreOnly(t *testing.T) {
	near, far := newMapStore(), newMapStore()
	f := withStore(t, far)
	defer f.cache.Close()
	f.cache.storeOnly = true
	f.attach(near, -1)
	f.mustGet("k", 1, FromTier)
	f.mustGet("k", 1, FromTier)
	key := Key{0, "k"}
	if len(f.tier.docs) != 0 || near.version(t, key) != 1 || far.asked[key] != 1 {
		t.Errorf("%d documents in memory, %d in the nearer store; the farther was queried %d times", len(f.tier.docs), near.version(t, key), far.asked[key])
	}
}

// mutant: flush-misses-what-the-store-gave-meanwhile
// mutant: purge-misses-what-the-store-gave-meanwhile
//
// A load that is stored while its resource is flushed or its key is purged, and read from the
// store by another GET before the store has been notified, does not stay in memory or in a
// nearer store.
func TestFlushReachesWhatAStoreGaveMeanwhile(t *testing.T) {
	for name, flush := range map[string]func(c *Cache){
		"a purge":         func(c *Cache) { c.Purge(Key{0, "k"}) },
		"a purge of all":  func(c *Cache) { c.PurgeResource(0) },
		"another history": func(c *Cache) { c.Void("test"); c.Advance(c.Now(), UpTo(9)) },
	} {
		t.Run(name, func(t *testing.T) {
			near, far := newMapStore(), newMapStore()
			f := withStore(t, far)
			defer f.cache.Close()
			f.attach(near, -1)
			f.commit("k")
			old := far.docs[Key{0, "k"}]
			told := 0
			far.telling = func() { // the nearer store has been notified
				if told++; told > 1 {
					return
				}
				far.docs[Key{0, "k"}] = old // as by a load that was checked before the flush
				key, start := Key{0, "k"}, f.cache.Now()
				w := wait{ask: true} // its horizon was read before
				if _, done, err := f.cache.share(context.Background(), key, start, &w); !done || err != nil {
					t.Errorf("%v, %v: the store did not answer", done, err)
				}
			}
			flush(f.cache)
			if told == 0 {
				t.Fatal("the store was not notified")
			}
			if near.version(t, Key{0, "k"}) != 0 {
				t.Error("the nearer store got it")
			}
			f.mustGetAny("k", 2)
		})
	}
}
