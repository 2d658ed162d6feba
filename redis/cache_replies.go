package redis

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// replyCache caches replies by key and command. [Client.DoCached] says what it guarantees. It works
// as follows.
//
// The server writes an invalidation to the connection on which the key was read: after the reply,
// and before the reply to any command that reads the key after the change. The goroutine that reads
// the connection handles the invalidation before it passes on what follows. A load is registered
// here before its command is sent. An invalidation of its key, or the end of the connection, marks
// the load, and then its reply is not cached. So no cached reply was invalidated by a message that
// has been read.
//
// In a cluster, an invalidation comes from the node at which the key was read. The entries of a
// slot are dropped when the connection to its owner ends, and when the slot gets another owner,
// because the old one does not know when a key that did not exist is created at the new one. Each
// slot has an epoch, which is incremented in both cases. A load records the epoch before it looks
// up the owner, and a hit compares it. A client that only reads from its cache learns of a
// migration at the next refresh.
//
// An invalidation inside a reply, as Redis 6 sends it, or one that cannot be parsed, empties the
// cache.
type replyCache struct {
	// Immutable after newReplyCache.
	options CacheOptions
	seed    maphash.Seed
	// epochs contains, in a cluster, how often the replies for the keys of each slot were dropped;
	// it is nil with one server. Atomics, written by the goroutines that drop replies.
	epochs []atomic.Uint32

	shards [cacheShards]cacheShard
}

const (
	cacheShards = 16
	// entryCost is what an entry is charged in addition to its key, its command and its reply.
	entryCost    = 200
	defaultCache = 64 << 20
)

// cacheShard holds the keys whose hashes select it.
type cacheShard struct {
	// Atomics. Written by get.
	hits, misses atomic.Uint64

	// mu is a reader/writer lock for many readers. With a plain lock, a goroutine that lost its
	// processor while it held the lock made others sleep, and 0.1 % of the hits of 128 callers took
	// 8 ms.
	mu sync.RWMutex
	// Guarded by mu.
	keys   map[string]*cachedKey
	queue  []*cachedReply // in the order of arrival; replies that were used are appended again
	bytes  int
	counts CacheStats

	_ [64]byte // so that the lock of the next shard is in another cache line
}

// cachedKey is a key with replies that are cached or being loaded.
type cachedKey struct {
	key     string
	replies []*cachedReply
	loads   []*cacheLoad
}

// cachedReply is the reply to one command.
type cachedReply struct {
	of       *cachedKey
	question string
	frame    string
	expires  int64 // in nanoseconds since 1970; 0 for never
	since    epoch
	gone     bool

	used atomic.Bool // since the last check for eviction; written by get
}

func (r *cachedReply) cost() int { return entryCost + len(r.of.key) + len(r.question) + len(r.frame) }

// epoch is the epoch in which a reply was requested.
type epoch struct {
	slot  int32 // noSlot: with one server
	count uint32
}

// epochOf returns the epoch of the keys of a slot.
func (c *replyCache) epochOf(slot int32) epoch {
	if c.epochs == nil {
		return epoch{slot: noSlot}
	}
	return epoch{slot, c.epochs[slot].Load()}
}

// over reports whether the replies of an epoch have been dropped.
func (c *replyCache) over(e epoch) bool { return e.slot >= 0 && c.epochs[e.slot].Load() != e.count }

// drop drops the replies for the keys of a slot. Their memory remains in use until they are
// evicted.
func (c *replyCache) drop(slot int) { c.epochs[slot].Add(1) }

// cacheLoad is a reply that is being loaded.
type cacheLoad struct {
	key   string
	since epoch // owned by the caller of begin
	dirty bool  // guarded by the shard's mu: the key has changed since
}

func newReplyCache(o *CacheOptions) *replyCache {
	c := &replyCache{options: *o, seed: maphash.MakeSeed()}
	if c.options.MaxBytes == 0 {
		c.options.MaxBytes = defaultCache
	}
	for i := range c.shards {
		c.shards[i].keys = make(map[string]*cachedKey)
	}
	return c
}

// covers reports whether the server reports changes of the key.
func (c *replyCache) covers(key []byte) bool {
	if len(c.options.Prefixes) == 0 {
		return true
	}
	for _, p := range c.options.Prefixes {
		if strings.HasPrefix(textOfBytes(key), p) {
			return true
		}
	}
	return false
}

// textOfBytes returns b as a string without a copy. It is valid as long as b is not changed.
func textOfBytes(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func (c *replyCache) shard(key string) *cacheShard {
	return &c.shards[maphash.String(c.seed, key)%cacheShards]
}

// get returns the cached reply, if any. It allocates nothing.
func (c *replyCache) get(key, question string) (frame string, ok bool) {
	s := c.shard(key)
	s.mu.RLock()
	if k := s.keys[key]; k != nil {
		for _, r := range k.replies {
			if r.question == question && (r.expires == 0 || time.Now().UnixNano() < r.expires) && !c.over(r.since) {
				if !r.used.Load() {
					r.used.Store(true)
				}
				frame = r.frame
				s.mu.RUnlock()
				s.hits.Add(1)
				return frame, true
			}
		}
	}
	s.mu.RUnlock()
	s.misses.Add(1)
	return "", false
}

// begin registers a load before its command is sent.
func (c *replyCache) begin(key string) *cacheLoad {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.keys[key]
	if k == nil {
		k = &cachedKey{key: key}
		s.keys[key] = k
	}
	l := &cacheLoad{key: key, since: epoch{slot: noSlot}}
	k.loads = append(k.loads, l)
	return l
}

// end removes a load.
func (c *replyCache) end(l *cacheLoad) {
	s := c.shard(l.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.keys[l.key]
	if k == nil {
		return
	}
	for i, other := range k.loads {
		if other == l {
			k.loads = append(k.loads[:i], k.loads[i+1:]...)
			break
		}
	}
	s.tidy(k)
}

// keep stores the reply of a load, unless the key has changed in the meantime.
func (c *replyCache) keep(l *cacheLoad, question, frame string, expires int64) {
	if age := c.options.MaxAge; age > 0 {
		if at := time.Now().Add(age).UnixNano(); expires == 0 || at < expires {
			expires = at
		}
	}
	s := c.shard(l.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.keys[l.key]
	if l.dirty || k == nil || c.over(l.since) {
		s.counts.Raced++
		return
	}
	r := &cachedReply{of: k, question: question, frame: frame, expires: expires, since: l.since}
	if r.cost() > c.options.MaxBytes/cacheShards {
		return
	}
	for _, old := range k.replies {
		if old.question == question {
			s.drop(old)
			break
		}
	}
	k.replies = append(k.replies, r)
	s.queue = append(s.queue, r)
	s.bytes += r.cost()
	s.counts.Entries++
	s.evict(c.options.MaxBytes / cacheShards)
}

// evict drops replies until the rest fits, the oldest first. Replies that were used since they were
// last examined stay for another round.
func (s *cacheShard) evict(most int) {
	for s.bytes > most && len(s.queue) > 0 {
		r := s.queue[0]
		s.queue[0] = nil
		s.queue = s.queue[1:]
		switch {
		case r.gone:
		case r.used.Load():
			r.used.Store(false)
			s.queue = append(s.queue, r)
		default:
			s.counts.Evicted++
			s.drop(r)
		}
	}
}

// drop removes a reply. It stays in the queue, marked as removed.
func (s *cacheShard) drop(r *cachedReply) {
	for i, other := range r.of.replies {
		if other == r {
			r.of.replies = append(r.of.replies[:i], r.of.replies[i+1:]...)
			break
		}
	}
	r.gone = true
	s.bytes -= r.cost()
	s.counts.Entries--
	r.frame, r.question = "", ""
	s.tidy(r.of)
	// Removed entries must not fill the queue of a shard that is never full.
	if len(s.queue) > 64 && len(s.queue) > 2*s.counts.Entries {
		rest := s.queue[:0]
		for _, r := range s.queue {
			if !r.gone {
				rest = append(rest, r)
			}
		}
		clear(s.queue[len(rest):])
		s.queue = rest
	}
}

// tidy removes a key that has no entries left.
func (s *cacheShard) tidy(k *cachedKey) {
	if len(k.replies) == 0 && len(k.loads) == 0 && s.keys[k.key] == k {
		delete(s.keys, k.key)
	}
}

// invalidate drops the cached replies of a key, and prevents loads in flight from being
// cached.
func (c *replyCache) invalidate(key []byte) {
	s := c.shard(textOfBytes(key))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Invalidated++
	if k := s.keys[string(key)]; k != nil {
		s.forget(k)
	}
}

// forget drops all entries of a key.
func (s *cacheShard) forget(k *cachedKey) {
	for _, l := range k.loads {
		l.dirty = true
	}
	for len(k.replies) > 0 {
		s.drop(k.replies[len(k.replies)-1])
	}
}

// empty drops everything.
func (c *replyCache) empty() {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		if i == 0 {
			s.counts.Emptied++
		}
		for _, k := range s.keys {
			s.forget(k)
		}
		s.mu.Unlock()
	}
}

// stats returns the statistics.
func (c *replyCache) stats() (sum CacheStats) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		sum.Entries += s.counts.Entries
		sum.Bytes += s.bytes
		sum.Hits += s.hits.Load()
		sum.Misses += s.misses.Load()
		sum.Raced += s.counts.Raced
		sum.Evicted += s.counts.Evicted
		sum.Invalidated += s.counts.Invalidated
		sum.Emptied += s.counts.Emptied
		s.mu.Unlock()
	}
	return sum
}
