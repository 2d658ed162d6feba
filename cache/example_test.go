package cache_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/cache"
)

// rows is an origin: a table in memory.
type rows struct {
	mu sync.Mutex
	// Guarded by mu.
	names map[string]string
	last  cache.Tx // the last transaction
}

// Load implements cache.Origin.
func (r *rows) Load(_ context.Context, _ cache.ResourceID, ids []string) (cache.Batch, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	batch := cache.Batch{Snapshot: cache.UpTo(r.last)} // what this statement saw
	for _, id := range ids {
		var doc cache.Loaded // without a body, the row is missing
		if name, ok := r.names[id]; ok {
			doc.Body = fmt.Appendf(nil, "{\"name\":%q}", name)
		}
		batch.Docs = append(batch.Docs, doc)
	}
	return batch, nil
}

// write is a transaction that changes a row.
func (r *rows) write(id, name string) cache.Tx {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	r.names[id] = name
	return r.last
}

// mapTier is a tier without a limit.
type mapTier struct {
	mu   sync.Mutex
	docs map[cache.Key]*cache.Document // guarded by mu
}

// The methods implement cache.Tier.

func (m *mapTier) Name() string { return "map" }

func (m *mapTier) Peek(key cache.Key) *cache.Document {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.docs[key]
}

func (m *mapTier) Get(_ context.Context, key cache.Key) (*cache.Document, error) {
	return m.Peek(key), nil
}

func (m *mapTier) Put(key cache.Key, doc *cache.Document) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.docs[key] = doc
}

func (m *mapTier) Remove(key cache.Key) {
	m.RemoveIf(key, func(*cache.Document) bool { return true })
}

func (m *mapTier) RemoveIf(key cache.Key, gone func(*cache.Document) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if doc := m.docs[key]; doc != nil && gone(doc) {
		delete(m.docs, key)
	}
}

func (m *mapTier) Sweep(gone func(cache.Key, *cache.Document) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, doc := range m.docs {
		if gone(key, doc) {
			delete(m.docs, key)
		}
	}
}

func (m *mapTier) Clear() { m.Sweep(func(cache.Key, *cache.Document) bool { return true }) }

func (m *mapTier) Stats() cache.TierStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return cache.TierStats{Documents: int64(len(m.docs))}
}

func (m *mapTier) Close() error { return nil }

// A cache loads a document once, and again after the stream of changes has reported that it changed.
func ExampleCache() {
	users := &rows{names: map[string]string{"42": "Ann"}, last: 1}
	began := time.Now()
	c, err := cache.New(cache.Config{
		Resources: []cache.Resource{{Name: "users", Freshness: time.Hour}},
		Origin:    users,
		Tiers:     []cache.Tier{&mapTier{docs: make(map[cache.Key]*cache.Document)}},
		Clock:     func() time.Duration { return time.Since(began) }, // a program uses one that also counts suspended time
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	key := cache.Key{Resource: 0, ID: "42"}
	get := func() {
		a, err := c.Get(context.Background(), key, c.Now())
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s, loaded: %t\n", a.Doc.Body(), a.Source == cache.FromLoad)
	}

	// One goroutine reads the changes. It notes the time first, applies what it has read, and then moves the horizon.
	horizon := c.Now()
	c.SetPromise(0, true, "")
	c.Advance(horizon, cache.UpTo(1))
	get()
	get()

	tx := users.write("42", "Anne")
	horizon = c.Now()
	c.Apply([]cache.Event{{Key: key, Tx: tx}})
	c.Advance(horizon, cache.UpTo(tx))
	get()
	// Output:
	// {"name":"Ann"}, loaded: true
	// {"name":"Ann"}, loaded: false
	// {"name":"Anne"}, loaded: true
}

// A snapshot says which transactions a statement saw. This is what pg_current_snapshot() shows as 5:9:5,7.
func ExampleSnapshot() {
	s := cache.Snapshot{XMin: 5, XMax: 9, InProgress: []cache.Tx{5, 7}}
	for tx := cache.Tx(4); tx <= 9; tx++ {
		fmt.Print(tx, " ", s.Sees(tx), "\n")
	}
	// Output:
	// 4 true
	// 5 false
	// 6 true
	// 7 false
	// 8 true
	// 9 false
}
