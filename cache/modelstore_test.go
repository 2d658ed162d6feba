package cache

import (
	"context"
	"maps"
	"strconv"
	"sync/atomic"
	"time"
)

// modelStores are the stores of a model: they pause, lose what is not durable, leave, and come
// back later.
type modelStores struct {
	m    *model
	hits atomic.Int64 // answers of stores

	// Owned by run.
	attached []*mapStore // by distance; nil for a store that has left
	left     []*mapStore // the durable contents of a store that has left
}

func newModelStores(m *model, n int) *modelStores {
	s := &modelStores{m: m, attached: make([]*mapStore, n), left: make([]*mapStore, n)}
	for i := range n {
		s.left[i] = newMapStore()
	}
	return s
}

// come attaches a store with what is left of an earlier one.
func (s *modelStores) come(distance int) {
	store := s.left[distance]
	pause := func() {
		if s.m.chance(0.2) {
			time.Sleep(s.m.upTo(2 * s.m.x))
		}
	}
	store.before, store.during, store.telling = pause, pause, pause
	store.lazy = func() bool { return s.m.chance(0.5) }
	given := Store(store)
	if s.m.chance(0.3) {
		given = tryingStore{store}
	}
	if s.m.cache.Attach(given, distance) {
		s.attached[distance] = store
	}
}

// leave takes a store away, as a crash does.
func (s *modelStores) leave(distance int) {
	store := s.attached[distance]
	s.attached[distance] = nil
	if !s.m.cache.Detach(store) && !s.m.cache.Detach(tryingStore{store}) {
		s.m.t.Error("a store was not there")
	}
	store.mu.Lock()
	defer store.mu.Unlock()
	next := newMapStore()
	next.docs, next.position = maps.Clone(store.durable), store.durably
	if next.docs == nil {
		next.docs = make(map[Key]Stored)
	}
	next.durable, next.durably = maps.Clone(store.durable), store.durably
	s.left[distance] = next
}

// run drops documents from memory, and attaches and removes stores, until the model is over.
func (s *modelStores) run() {
	for i := range s.attached {
		if s.m.chance(0.5) {
			s.come(i)
		}
	}
	for !s.m.over() {
		time.Sleep(s.m.upTo(s.m.x))
		if s.m.chance(0.7) { // memory has no room for it
			s.m.tier.Remove(s.m.keys[s.m.intn(len(s.m.keys))])
		}
		if len(s.attached) == 0 || s.m.chance(0.8) {
			continue
		}
		i := s.m.intn(len(s.attached))
		switch {
		case s.attached[i] == nil:
			s.come(i)
		case s.m.chance(0.3):
			s.leave(i)
		}
	}
}

// digests are what the documents of each resource depend on besides rows: how often the stream
// began or ceased to observe its changes.
type digests map[ResourceID]int

func (d digests) named(c *Cache) map[string]string {
	named := make(map[string]string)
	for _, r := range c.known() {
		named[r.Name] = strconv.Itoa(d[r.id])
	}
	return named
}

// goBack returns what the stream must also apply for a store that waits, and the store's number.
// It calls Waiting before it reads the changes, as the streams of origins do, and the arguments
// are what Waiting returned.
func (m *model) goBack(p Position, number uint64, history int, now digests) (events []Event) {
	if p.History == "" {
		return nil
	}
	if p.History != strconv.Itoa(history) {
		m.cache.Discard(number)
		return nil
	}
	commits, _, _ := m.db.since(0)
	for _, c := range commits {
		if !p.Seen.Sees(c.tx) {
			events = append(events, Event{Key: c.key, Tx: c.tx})
		}
	}
	for name, digest := range now.named(m.cache) {
		if p.Digests[name] == digest {
			continue
		}
		for _, r := range m.cache.known() {
			if r.Name == name {
				events = append(events, Event{Key: Key{Resource: r.id}, All: true})
			}
		}
	}
	return events
}

// readMany gets several keys of one resource in one call.
func (m *model) readMany(ctx context.Context, start time.Duration) ([]Key, []Answer, error) {
	keys := []Key{m.keys[0], m.keys[3], m.keys[0]}
	if m.chance(0.5) {
		keys[0], keys[1] = keys[1], keys[0]
	}
	answers := make([]Answer, len(keys))
	return keys, answers, m.cache.GetMany(ctx, keys, start, answers)
}

// judge checks an answer against the promise.
func (m *model) judge(key Key, start time.Duration, a Answer) {
	m.mu.Lock()
	m.answers++
	m.mu.Unlock()
	if a.FromStore {
		m.stores.hits.Add(1)
	}
	got, want := modelVersion(m.t, key, a.Doc), m.history.required(key, start, m.x)
	if got < want {
		m.t.Errorf("GET %s/%s begun at %v returned version %d (source %d, store %v), but %d was acknowledged more than %v before",
			m.cache.resources[key.Resource].Name, key.ID, start, got, a.Source, a.FromStore, want, m.x)
	}
}
