package cache

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// RecentEvent is an invalidation that was applied recently.
type RecentEvent struct {
	Tx Tx
	// At is when it had been applied, on the cache's clock.
	At time.Duration
	// All is set if it concerned every document of the resource.
	All bool
}

// maxRecent is how many events are remembered (160 KiB): at 1,000 changes a
// second those of the last four seconds, which include the one that should have
// dropped a document that a canary finds stale.
const maxRecent = 4096

// recent remembers the last events, for callers that must explain an answer.
type recent struct {
	// Guarded by mu. Written only by the goroutine that drives Invalidations.
	mu   sync.Mutex
	ring []recentEvent
	next int // index of the oldest event once the ring is full
}

// recentEvent holds a hash in place of the ID, so that an entry is small however
// long the keys are.
type recentEvent struct {
	RecentEvent
	resource ResourceID
	id       uint64
}

// remember notes events that have been applied.
func (c *Cache) remember(events []Event) {
	if len(events) == 0 {
		return
	}
	events = events[max(0, len(events)-maxRecent):]
	now := c.clock()
	n := &c.recent
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range events {
		entry := recentEvent{RecentEvent{Tx: e.Tx, At: now, All: e.All}, e.Key.Resource, c.hash(e.Key)}
		if len(n.ring) < maxRecent {
			n.ring = append(n.ring, entry)
			continue
		}
		n.ring[n.next] = entry
		n.next = (n.next + 1) % maxRecent
	}
}

// Recent returns those of the last 4,096 events that concern the key, the oldest
// first. Another key whose ID has the same 64-bit hash may be mistaken for it.
func (c *Cache) Recent(key Key) []RecentEvent {
	id := c.hash(key)
	n := &c.recent
	n.mu.Lock()
	defer n.mu.Unlock()
	var found []RecentEvent
	for i := range n.ring {
		e := &n.ring[(n.next+i)%len(n.ring)]
		if e.resource == key.Resource && (e.All || e.id == id) {
			found = append(found, e.RecentEvent)
		}
	}
	return found
}

func (c *Cache) hash(key Key) uint64 { return maphash.String(c.seed, key.ID) }

// sampler keeps the key of one hit for the caller that requested it.
type sampler struct {
	// Atomics. wanted is written by Sample and by the hit that answers it, read
	// by every hit; it is next to the horizon, which every hit reads too.
	wanted atomic.Bool
	taken  atomic.Pointer[Key]
}

// take keeps the key of a hit if no other hit was first.
func (s *sampler) take(key Key) {
	if s.wanted.CompareAndSwap(true, false) {
		key.ID = strings.Clone(key.ID) // it may be a part of a long request line
		s.taken.Store(&key)
	}
}

// Sample returns the key of the first hit since the last call, and requests the next
// one. If there was none, ok is false. Keys are sampled in proportion to their hits.
// While a sample is awaited, a hit copies its key once.
func (c *Cache) Sample() (key Key, ok bool) {
	taken := c.sampler.taken.Swap(nil)
	c.sampler.wanted.Store(true)
	if taken == nil {
		return Key{}, false
	}
	return *taken, true
}

// Inspect returns the document that a tier would answer a GET begun at start with,
// or nil if there is none. It is not counted or sampled as a hit.
func (c *Cache) Inspect(key Key, start time.Duration) *Document {
	r := c.resources[key.Resource]
	if !c.holds(r, start) { // before the tiers: see Peek
		return nil
	}
	for _, t := range c.tiers {
		if d := t.Peek(key); d != nil && c.usable(r, d, start) {
			return d
		}
	}
	return nil
}
