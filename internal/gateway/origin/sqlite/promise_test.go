package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
)

// mapTier is a tier without a budget.
type mapTier struct {
	mu   sync.Mutex
	docs map[cache.Key]*cache.Document
}

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

func (m *mapTier) Stats() cache.TierStats { return cache.TierStats{} }

func (m *mapTier) Close() error { return nil }

// history is the knowledge of a writer: when each version of a key was
// acknowledged.
type history struct {
	mu   sync.Mutex
	acks map[int][]ack
}

type ack struct {
	at      time.Duration
	version int
}

func (h *history) add(key, version int, at time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acks[key] = append(h.acks[key], ack{at, version})
}

// oldest returns the oldest version that a reader may see, given all writes
// that were acknowledged up to a moment.
func (h *history) oldest(key int, upTo time.Duration) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	acks := h.acks[key]
	i := sort.Search(len(acks), func(i int) bool { return acks[i].at > upTo })
	if i == 0 {
		return 0
	}
	return acks[i-1].version
}

var versionPattern = regexp.MustCompile(`"v":(\d+)`)

// versionOf is the highest version that a document shows.
func versionOf(body []byte) int {
	highest := 0
	for _, match := range versionPattern.FindAllSubmatch(body, -1) {
		if n, err := strconv.Atoi(string(match[1])); err == nil {
			highest = max(highest, n)
		}
	}
	return highest
}

// TestNothingOlderThanPromisedIsServed runs the cache over the origin and its
// stream while a foreign process writes in every possible way, and checks each
// answer against the promise.
func TestNothingOlderThanPromisedIsServed(t *testing.T) {
	const keys, freshness = 20, 150 * time.Millisecond
	for _, mode := range []string{"WAL", "DELETE"} {
		t.Run(mode, func(t *testing.T) {
			path := newFile(t, "PRAGMA journal_mode = "+mode,
				`CREATE TABLE root (id INTEGER PRIMARY KEY, v INTEGER)`,
				`CREATE TABLE child (id INTEGER PRIMARY KEY, root INTEGER REFERENCES root ON DELETE CASCADE, v INTEGER)`,
				`CREATE INDEX child_root ON child (root)`,
				fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d) INSERT INTO root SELECT i, 0 FROM n`, keys))
			o := openOrigin(t, Config{Path: path, PollInterval: 20 * time.Millisecond}, resource.Resource{Name: "r", Key: []string{"id"},
				Root: resource.Node{Table: "root", Children: []resource.Child{{Name: "children", Node: resource.Node{Table: "child"}}}}})
			started := time.Now()
			clock := func() time.Duration { return time.Since(started) }
			c, err := cache.New(cache.Config{Resources: []cache.Resource{{Name: "r", Freshness: freshness}}, Origin: o,
				Tiers: []cache.Tier{&mapTier{docs: make(map[cache.Key]*cache.Document)}}, Clock: clock})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			// A slow or busy machine takes longer to prove the same, up to a minute.
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var running sync.WaitGroup
			// Ends with ctx; running waits for it.
			running.Go(func() { _ = o.Stream(clock).Run(ctx, c) })
			h := &history{acks: make(map[int][]ack)}
			w := newForeignWriter(t, path)
			if err := w.exec(`PRAGMA foreign_keys = ON`); err != nil {
				t.Fatal(err)
			}
			var cached atomic.Int64
			for reader := range 2 {
				// Ends with ctx; running waits for it.
				running.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(reader), 0))
					for ctx.Err() == nil {
						key := 1 + rng.IntN(keys)
						start := clock()
						answer, err := c.Get(ctx, cache.Key{ID: strconv.Itoa(key)}, start)
						if err != nil {
							continue // refused, or the test is over: nothing was served
						}
						if answer.Source == cache.FromTier {
							cached.Add(1)
						}
						if got, want := versionOf(answer.Doc.Body()), h.oldest(key, start-freshness); got < want {
							t.Errorf("key %d: a GET at %v returned version %d, version %d was acknowledged more than %v before", key, start, got, want, freshness)
							return
						}
					}
				})
			}
			rng := rand.New(rand.NewPCG(7, 0))
			written := 0
			enough := func() bool { return written >= 20 && cached.Load() >= 1000 }
			for version := 1; ctx.Err() == nil && (time.Since(started) < time.Second || !enough()); version++ {
				key := 1 + rng.IntN(keys)
				sql := []string{
					`UPDATE root SET v = %[2]d WHERE id = %[1]d`,
					`REPLACE INTO root VALUES (%[1]d, %[2]d)`,
					`INSERT INTO child VALUES (%[1]d, %[1]d, %[2]d) ON CONFLICT (id) DO UPDATE SET root = excluded.root, v = excluded.v`,
					`REPLACE INTO child VALUES (%[1]d, %[1]d, %[2]d)`,
					`BEGIN; DELETE FROM root WHERE id = %[1]d; INSERT INTO root VALUES (%[1]d, %[2]d); COMMIT`,
				}[rng.IntN(5)]
				if err := w.exec(fmt.Sprintf(sql, key, version)); err == nil {
					h.add(key, version, clock())
					written++
				}
				time.Sleep(2 * time.Millisecond)
			}
			cancel()
			running.Wait()
			t.Logf("%d versions written, %d answers from the cache", written, cached.Load())
			if !enough() {
				t.Errorf("%d versions written and %d answers from the cache in a minute; expected at least 20 and 1,000", written, cached.Load())
			}
		})
	}
}
