package cache

import (
	"context"
	"strings"
	"sync"
	"testing"
)

// mapStore is a store in memory.
type mapStore struct {
	// Immutable once it is attached; nil if it holds nothing.
	before  func()       // is called at the beginning of Get
	during  func()       // is called within a Get that has found a document and not returned it yet
	fails   func() error // says whether a Get fails
	telling func()       // is called at the beginning of Invalidate, Remove, Flush and Void
	lazy    func() bool  // says whether a Checkpoint or a Void is not made durable

	// Guarded by mu.
	mu       sync.Mutex
	docs     map[Key]Stored
	position Position
	told     int // positions
	calls    int // of Get
	asked    map[Key]int
	closed   int
	durable  map[Key]Stored // what is there after a crash, with durably
	durably  Position
}

func newMapStore() *mapStore {
	return &mapStore{docs: make(map[Key]Stored), asked: make(map[Key]int)}
}

func (m *mapStore) Name() string { return "store" }

func (m *mapStore) Get(_ context.Context, keys []Key, found []Stored) error {
	if m.before != nil {
		m.before()
	}
	m.mu.Lock()
	m.calls++
	m.mu.Unlock()
	if m.fails != nil {
		if err := m.fails(); err != nil {
			return err
		}
	}
	m.mu.Lock()
	any := false
	for i, key := range keys {
		m.asked[Key{key.Resource, strings.Clone(key.ID)}]++
		found[i] = m.docs[key]
		any = any || found[i].Body != nil
	}
	m.mu.Unlock()
	if m.during != nil && any {
		m.during()
	}
	return nil
}

func (m *mapStore) Put(key Key, d *Document) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.docs[key] = Stored{Body: d.Body(), XMin: d.XMin(), LoadedAt: d.LoadedAt()}
}

func (m *mapStore) removeIf(gone func(Key, Stored) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, s := range m.docs {
		if gone(key, s) {
			delete(m.docs, key)
		}
	}
}

func (m *mapStore) Invalidate(key Key, tx Tx) {
	if m.telling != nil {
		m.telling()
	}
	m.removeIf(func(k Key, s Stored) bool { return k == key && s.XMin <= tx })
}

func (m *mapStore) Remove(key Key) {
	if m.telling != nil {
		m.telling()
	}
	m.removeIf(func(k Key, _ Stored) bool { return k == key })
}

func (m *mapStore) Flush(r ResourceID) {
	if m.telling != nil {
		m.telling()
	}
	m.removeIf(func(k Key, _ Stored) bool { return k.Resource == r })
}

func (m *mapStore) Void() {
	if m.telling != nil {
		m.telling()
	}
	m.removeIf(func(Key, Stored) bool { return true })
	m.mu.Lock()
	defer m.mu.Unlock()
	m.position = Position{}
	if m.lazy == nil || !m.lazy() {
		m.durable, m.durably = nil, Position{}
	}
}

func (m *mapStore) Checkpoint(p Position) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told++
	if m.lazy != nil && m.lazy() {
		return
	}
	m.position, m.durably = p, p
	m.durable = make(map[Key]Stored)
	for key, s := range m.docs {
		if s.XMin <= p.Seen.XMax { // else it waits for a later position
			m.durable[key] = s
		}
	}
}

func (m *mapStore) Position() Position {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.position
}

func (m *mapStore) Sync(context.Context) error { return nil }
func (m *mapStore) Stats() TierStats           { return TierStats{} }

func (m *mapStore) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed++
	return nil
}

// withStore returns a fixture with the document of k only in a store, whose changes the stream
// has processed.
func withStore(t *testing.T, store *mapStore) *fixture {
	f := newFixture(t, Resource{})
	f.commit("k")
	f.poll()
	b := f.db.read(0, []string{"k"})
	store.docs[Key{0, "k"}] = Stored{Body: b.Docs[0].Body, XMin: b.Snapshot.XMin, LoadedAt: f.cache.Now()}
	if !f.cache.Attach(store, 0) {
		t.Fatal("a store could not be attached")
	}
	f.cache.Checkpoint(Position{History: "h", Seen: b.Snapshot}, 1)
	return f
}

// What a store holds is served and put into memory, but only after the stream has processed
// the changes since its position.
func TestStoreIsAskedOnceItIsVouchedFor(t *testing.T) {
	f := newFixture(t, Resource{})
	f.commit("k")
	f.poll()
	store := newMapStore()
	store.docs[Key{0, "k"}] = Stored{Body: modelBody(Key{0, "k"}, 7), XMin: 100}
	store.position = Position{History: "h", Seen: UpTo(1)}
	if f.cache.HasStore() || !f.cache.Attach(store, 0) || !f.cache.HasStore() {
		t.Error("the store is not there")
	}
	p, number, waits := f.cache.Waiting()
	if !waits || p.History != "h" {
		t.Errorf("%+v, %v", p, waits)
	}
	f.mustGet("k", 1, FromLoad) // not what the store holds
	f.cache.Purge(Key{0, "k"})
	store.docs[Key{0, "k"}] = Stored{Body: modelBody(Key{0, "k"}, 7), XMin: 100}
	f.cache.Checkpoint(p, number-1) // of a poll that began before
	if _, _, waits := f.cache.Waiting(); !waits || store.told > 0 {
		t.Error("a poll that began before the store was there vouches for it")
	}
	f.mustGet("k", 1, FromLoad)
	f.cache.Purge(Key{0, "k"})
	store.docs[Key{0, "k"}] = Stored{Body: modelBody(Key{0, "k"}, 7), XMin: 100}
	f.cache.Checkpoint(p, number)
	f.mustGet("k", 7, FromTier)
	if d := f.tier.docs[Key{0, "k"}]; d == nil || store.told != 1 {
		t.Errorf("it was not put into memory; %d positions", store.told)
	}
	if !f.cache.Detach(store) || f.cache.Detach(store) || f.cache.HasStore() {
		t.Error("Detach must succeed once for an attached store")
	}
}

// A waiting store is discarded with its documents and no others.
func TestStoreIsDiscarded(t *testing.T) {
	f := newFixture(t, Resource{})
	store := newMapStore()
	store.docs[Key{0, "k"}] = Stored{Body: modelBody(Key{0, "k"}, 7), XMin: 100}
	store.position = Position{History: "h", Seen: UpTo(1)}
	f.cache.Attach(store, 0)
	f.cache.Discard(0)
	if len(store.docs) != 1 {
		t.Error("Discard dropped a store with another number")
	}
	f.cache.Discard(1)
	if p, _, _ := f.cache.Waiting(); len(store.docs) != 0 || p.History != "" {
		t.Errorf("%d documents, %+v", len(store.docs), p)
	}
}

// A change or purge of a key while its document is on its way from the store to memory keeps
// it out of memory.
func TestWhatTheStoreGaveIsNotKeptPastItsEnd(t *testing.T) {
	unheard := func(f *fixture) { f.commit("k"); f.delivered++ }
	for name, happens := range map[string]func(f *fixture){
		"a change":             func(f *fixture) { f.commit("k"); f.poll() },
		"a change, many polls": func(f *fixture) { f.commit("k"); f.poll(); f.poll(); f.poll() },
		"a flush":              func(f *fixture) { unheard(f); f.cache.PurgeResource(0) },
		"a purge":              func(f *fixture) { unheard(f); f.cache.Purge(Key{0, "k"}) },
		"the promise lost":     func(f *fixture) { unheard(f); f.cache.SetPromise(0, false, "off"); f.cache.SetPromise(0, true, "") },
		"another history":      func(f *fixture) { unheard(f); f.cache.Void("test"); f.poll() },
	} {
		t.Run(name, func(t *testing.T) {
			store := newMapStore()
			f := withStore(t, store)
			first := true
			store.during = func() {
				if first {
					first = false
					happens(f)
				}
			}
			if _, err := f.get("k"); err != nil || first { // it began before, and may get either
				t.Fatalf("%v, the store was queried: %v", err, !first)
			}
			a, err := f.get("k")
			if err != nil || modelVersion(t, Key{0, "k"}, a.Doc) != 2 {
				t.Errorf("%s after it, %v; want version 2", a.Doc.Body(), err)
			}
		})
	}
}

// The digest of a body is used only if a store says that it is there.
func TestSumOfStoredDocuments(t *testing.T) {
	whole := []byte("body" + "0123456789abcdef")
	for name, c := range map[string]struct {
		stored Stored
		want   string
	}{
		"said and there":     {Stored{Body: whole[:4], Summed: true}, "0123456789abcdef"},
		"there and not said": {Stored{Body: whole[:4]}, ""},
		"said and not there": {Stored{Body: whole[:4:10], Summed: true}, ""},
	} {
		if d := c.stored.document(1); string(d.Sum()) != c.want || string(d.Body()) != "body" {
			t.Errorf("%s: %q, want %q; body %q", name, d.Sum(), c.want, d.Body())
		}
	}
}
