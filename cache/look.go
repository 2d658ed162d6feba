package cache

import (
	"context"
	"math"
	"sync"
	"time"
)

// look is one lookup of a key in the stores, shared by its callers. The first of them leads:
// it queries the stores itself, so that an answer of a store needs no switch of goroutines, and
// the others wait. The result is a document, or a flight that all of them join.
//
// The document is valid for the leader because its horizon was read before the stores were
// queried. It is valid for the others if no known change is missing from it when the lookup ends,
// under the shard's lock: each has read its own horizon before that, so the changes that this
// horizon covers were known by then. It is not enough that a lookup began late enough, which is
// all that matters for a load: a store answers with an older document.
type look struct {
	// Owned by the leader: the argument for the stores if this is its only key.
	keys  [1]Key
	found [1]Stored

	// Guarded by the mutex of the key's shard.
	purges uint64        // purgeMark of the shard when it began
	done   chan struct{} // closed after the fields below are set; nil if only the leader waits

	// Written before done is closed, read after.
	answer Answer
	shared bool // answer is valid for all, not only for the leader
	cut    bool // the leader gave up, and another caller should query
}

// looks are reused, so that a document from a store costs no other allocation.
var looks = sync.Pool{New: func() any { return new(look) }}

// reuse returns a lookup that has ended to the pool, unless others may still read
// it.
func (l *look) reuse() {
	if l.done == nil {
		*l = look{}
		looks.Put(l)
	}
}

// asksStores reports whether there is a store that may be queried.
func (c *Cache) asksStores() bool {
	for _, a := range c.stores() {
		if a.vouched.Load() {
			return true
		}
	}
	return false
}

// joinLook makes w wait for the lookup of the key that is in flight, or lead one. The caller
// holds s.mu.
func (s *shard) joinLook(key Key, w *wait) {
	w.look = s.looks[key]
	if w.look == nil {
		w.look, w.leads = looks.Get().(*look), true
		w.look.purges = s.purgeMark()
		s.looks[key] = w.look
		return
	}
	if w.look.done == nil {
		w.look.done = make(chan struct{})
	}
}

// endLook ends the lookup that w leads, if it leads one, without a document that is valid for
// the others. The caller holds s.mu.
func (s *shard) endLook(key Key, w *wait) {
	l := w.look
	if !w.leads {
		return
	}
	w.look, w.leads = nil, false
	delete(s.looks, key)
	if l.done != nil {
		close(l.done)
	}
	l.reuse()
}

// finishLook is endLook for callers that do not hold s.mu.
func (s *shard) finishLook(key Key, w *wait) {
	if w.leads {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.endLook(key, w)
	}
}

// cutLook is finishLook for a leader that has not queried all stores.
func (s *shard) cutLook(key Key, w *wait) {
	if w.leads {
		w.look.cut = true
		s.finishLook(key, w)
	}
}

// awaitLook queries the stores if w leads, and otherwise waits for the leader. If there is no
// answer, w must join again, which also ends the lookup.
func (c *Cache) awaitLook(ctx context.Context, r *resourceState, key Key, start time.Duration, w *wait) (a Answer, ok bool, err error) {
	if !w.leads {
		return c.awaitLeader(ctx, r, start, w)
	}
	defer func() {
		if err != nil || w.look != nil && w.ask { // the context has ended, or a store has panicked
			c.shardOf(key).cutLook(key, w)
		}
	}()
	l := w.look
	l.keys[0] = key
	c.lookUp(ctx, r, start, l.keys[:], l.found[:], []*wait{w})
	if !w.leads {
		a = l.answer
		l.reuse()
		return a, true, nil
	}
	w.ask = false
	return Answer{}, false, ctx.Err()
}

// awaitLeader waits for the lookup that another caller leads.
func (c *Cache) awaitLeader(ctx context.Context, r *resourceState, start time.Duration, w *wait) (Answer, bool, error) {
	l := w.look
	w.look = nil
	select {
	case <-l.done:
	case <-ctx.Done():
		return Answer{}, false, ctx.Err()
	}
	if l.shared && c.usable(r, l.answer.Doc, start) {
		r.counters.hits.Add(1)
		return l.answer, true, nil
	}
	w.ask = l.cut
	return Answer{}, false, nil
}

// lookUp queries the stores, the nearest first, for the documents of keys, whose lookups the
// waits lead. A lookup that finds its document ends, and its wait no longer leads. found is as
// long as keys and all zero; the callee may keep both. The promise was checked before, which is
// the order that Peek explains.
//
// What it finds is kept under the rules for a load: see asking and promote.
func (c *Cache) lookUp(ctx context.Context, r *resourceState, start time.Duration, keys []Key, found []Stored, waits []*wait) {
	o := c.asking(r)
	defer c.ledger.end(o.statement)
	stores := c.stores()
	for i, a := range stores {
		if !a.vouched.Load() {
			continue
		}
		// An error counts as a miss; what was found before it is used.
		_ = a.Get(ctx, keys, found)
		left := 0
		for j := range keys {
			if found[j].Body != nil {
				if d := found[j].document(o.generation); c.usable(r, d, start) {
					c.endFound(r, keys[j], waits[j], Answer{Doc: d, Tier: a.Name(), FromStore: true}, o, stores[:i])
					continue
				}
			}
			keys[left], waits[left] = keys[j], waits[j]
			left++
		}
		if left == 0 {
			return
		}
		keys, found, waits = keys[:left], found[:left], waits[:left]
		clear(found)
	}
}

// asking returns the state that must be read before stores are queried. It counts as a statement,
// so that no tombstone it may need is dropped meanwhile. A flush that begins later is noticed by
// the generation, one in progress by its count, which is read after the generation.
func (c *Cache) asking(r *resourceState) outcome {
	o := outcome{generation: r.generation.Load(), statement: c.ledger.begin()}
	o.flushing = r.flushing.Load() != 0
	return o
}

// purgeMark returns the state that must be read before stores are queried, so that a purge
// that begins later or is in progress is noticed: see purgedSince.
func (s *shard) purgeMark() uint64 {
	purges := uint64(s.purges.Load())
	if s.purging.Load() != 0 { // read after the count, as in asking
		return math.MaxUint64
	}
	return purges
}

// purgedSince reports whether what a store returned since the mark may have been purged. The
// caller holds s.mu.
func (s *shard) purgedSince(mark uint64) bool { return uint64(s.purges.Load()) != mark }

// endFound ends a lookup with what a store returned, and keeps that in the nearer
// tiers.
func (c *Cache) endFound(r *resourceState, key Key, w *wait, a Answer, o outcome, nearer []*attached) {
	l, s := w.look, c.shardOf(key)
	w.look, w.leads = nil, false
	r.counters.hits.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.looks, key)
	if l.done != nil {
		defer close(l.done) // even if a tier panics
	}
	l.answer = a
	l.shared = c.promote(r, s, key, a.Doc, l.purges, o, nearer)
}
