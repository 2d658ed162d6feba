package cache

import (
	"errors"
	"strings"
	"time"
)

// flight is one loading of a key, shared by its callers.
//
//	queued ----> running ----> done
//	   \--parked--^   (two of the key are running already)
type flight struct {
	// Immutable after newFlight.
	key    Key
	done   chan struct{} // closed when doc and err are set
	client uint64        // the first to request it

	// Guarded by the mutex of the key's shard.
	began    time.Duration // when its first statement began; set with running
	running  bool
	parked   bool // not handed to the loader yet
	detached bool // a change of the key was applied after it began
	unwanted bool // must not be stored: the key was purged

	// Guarded by the loader's mu. entries counts the clients' queues that hold the flight;
	// taken is set once a statement loads it.
	entries int
	taken   bool

	// Owned by the run of the loader that holds the flight.
	again bool // it was queued a second time

	// Written before done is closed, read after.
	doc    *Document
	stored bool
	err    error
}

// keyFlights are the loads of one key: at most two running and one that has not
// begun, so that a key changed all the time cannot occupy the origin.
type keyFlights struct {
	key     Key
	running [2]*flight
	next    *flight
}

func (k *keyFlights) idle() bool {
	return k.running[0] == nil && k.running[1] == nil && k.next == nil
}

func (k *keyFlights) full() bool { return k.running[0] != nil && k.running[1] != nil }

// replace puts f into the slot of old (nil for a free slot).
func (k *keyFlights) replace(old, f *flight) {
	for i := range k.running {
		if k.running[i] == old {
			k.running[i] = f
			return
		}
	}
}

// join returns a flight whose document will be fresh enough for a request that arrived
// at start, and whether another caller began it.
//
// A load in flight has read the database at some time after it began. It is fresh
// enough if it began no earlier than X before the request. An older one is fresh enough
// if the horizon covers the moment X before the request and no change of the key has
// been applied since the load began: then it cannot have missed one.
//
// If there is none and w may query the stores, w gets a lookup instead: one that is in
// flight, or one that it leads. A lookup that w led before ends here.
//
// errSettled tells the caller to look at the tiers again: the document of the key has
// been stored since seen was read.
func (c *Cache) join(r *resourceState, key Key, start time.Duration, seen uint32, w *wait) error {
	since := start - r.x()
	// Read before the shard is locked: a change is applied (and detaches the
	// flight) before the horizon moves past it.
	covered := c.covered(r, start)

	s := c.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLook(key, w)
	if c.closed.Load() {
		return ErrClosed
	}
	if s.settledCount(key) != seen {
		return errSettled
	}
	k := s.flights[key]
	if f := k.joinable(since, covered); f != nil {
		r.counters.joined.Add(1)
		if f == k.next && !f.parked && f.client != w.client {
			r.loader.share(f, w.client)
		}
		w.flight, w.joined = f, true
		return nil
	}
	if w.ask && c.asksStores() {
		s.joinLook(key, w)
		return nil
	}
	if k == nil {
		// The ID may be a part of a long request line; the flight keeps a copy.
		key.ID = strings.Clone(key.ID)
		k = &keyFlights{key: key}
		s.flights[key] = k
	}
	f := &flight{key: k.key, done: make(chan struct{}), client: w.client, parked: k.full()}
	k.next = f
	if !f.parked && !r.loader.enqueue(f) {
		k.next = nil
		if k.idle() {
			delete(s.flights, key)
		}
		r.counters.overloaded.Add(1)
		return ErrOverloaded
	}
	r.counters.inFlight.Add(1)
	w.flight, w.joined = f, false
	return nil
}

// joinable returns a flight of the key that began at since or later, or that misses no change
// if the horizon covers the request; nil if there is none. k may be nil.
func (k *keyFlights) joinable(since time.Duration, covered bool) *flight {
	if k == nil {
		return nil
	}
	for _, f := range k.running {
		if f != nil && (f.began >= since || covered && !f.detached) {
			return f
		}
	}
	return k.next // has not begun, so it will begin after the request arrived
}

// errSettled is internal to Get and join.
var errSettled = errors.New("the document of the key has been stored meanwhile")

// settledSlots is how many counts of stored documents a shard has: with 64 shards,
// two keys share one with a chance of 1 in 4,096, at the price of one more lookup.
const settledSlots = 64

func settledSlot(key Key) int {
	h := uint32(2166136261) // FNV-1a: the shard's own hash has no bits left
	for i := range len(key.ID) {
		h = (h ^ uint32(key.ID[i])) * 16777619
	}
	return int(h % settledSlots)
}

// settledCount returns how often a document of the key, or of one that shares its
// count, has been stored.
func (s *shard) settledCount(key Key) uint32 { return s.settled[settledSlot(key)].Load() }

// begin marks f as running since now. It is called before the statement that
// loads it is sent.
func (c *Cache) begin(f *flight, now time.Duration) {
	s := c.shardOf(f.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.running {
		return // a retry in halves: the earlier time is the safe one
	}
	f.running, f.began = true, now
	k := s.flights[f.key]
	k.next = nil
	k.replace(nil, f)
}

// outcome is what a statement returned for one flight, or the stores for one key.
type outcome struct {
	loaded     Loaded
	err        error // of the whole statement
	seen       Snapshot
	statement  uint64 // its number in the ledger
	generation uint32 // of the resource when the statement began
	began      time.Duration

	// flushing is set if the stores may have been read with the generation of a flush that
	// had not reached them yet.
	flushing bool
}

// settle ends f: stores its document if that is allowed, wakes the callers, and
// starts the flight that waited for its slot.
func (c *Cache) settle(r *resourceState, f *flight, o outcome) {
	f.err = o.err
	if f.err == nil {
		f.err = o.loaded.Err
	}
	s := c.shardOf(f.key)
	s.mu.Lock()
	if f.err == nil {
		f.doc = newDocument(o.loaded.Body, o.seen, o.began, o.generation)
		f.stored = c.store(r, s, f, o)
	}
	c.leave(r, s, f)
	s.mu.Unlock()

	if f.err != nil {
		r.counters.failed.Add(1)
	} else {
		r.counters.loaded.Add(1)
	}
	close(f.done)
}

// store puts the document of f into the tiers if no known change is missing
// from it. Called with s.mu held, so that a change is either known here or
// finds the document in the tiers.
func (c *Cache) store(r *resourceState, s *shard, f *flight, o outcome) bool {
	switch {
	case f.doc.Missing() && r.missingTTL.Load() < 0:
		return false
	case f.unwanted, !c.storable(r, s, f.key, o):
		r.counters.refused.Add(1)
		return false
	}
	for _, t := range c.tiers {
		t.Put(f.key, f.doc)
	}
	if !f.doc.Missing() {
		c.toStores(func(s Store) { s.Put(f.key, f.doc) })
	}
	s.settled[settledSlot(f.key)].Add(1)
	return true
}

// storable reports whether no known change is missing from what was read of the key. Called with
// s.mu held.
func (c *Cache) storable(r *resourceState, s *shard, key Key, o outcome) bool {
	switch {
	case r.broken.Load() != nil && !r.NoPromise, // its changes would not be reported
		o.generation != r.generation.Load(), // flushed since the statement began
		o.statement <= c.storeFrom.Load(),   // began before tombstones were dropped
		r.missesFlush(o.seen),               // the flush itself is missing from it
		!s.tombs.allow(key, o.seen):         // a change of the key is missing from it
		return false
	}
	return true
}

// missesFlush reports whether the last flush of the resource may be absent from
// what was read in seen. The zero Snapshot misses even transaction 0, which stands
// for no flush at all, so a document that was read in it is not stored. Without a
// promise such a document is bounded by its age, and is stored as long as no flush
// is known.
func (r *resourceState) missesFlush(seen Snapshot) bool {
	last := Tx(r.flushedBy.Load())
	return !seen.Sees(last) && (last != 0 || !r.NoPromise)
}

// leave takes f out of its key's flights and starts the one that is parked.
// Called with s.mu held.
func (c *Cache) leave(r *resourceState, s *shard, f *flight) {
	r.counters.inFlight.Add(-1)
	k := s.flights[f.key]
	if f.running {
		k.replace(f, nil)
	} else if k.next == f {
		k.next = nil
	}
	if n := k.next; n != nil && n.parked {
		n.parked = false
		if !r.loader.enqueue(n) {
			k.next = nil
			r.counters.inFlight.Add(-1)
			r.counters.overloaded.Add(1)
			n.err = ErrOverloaded
			if c.closed.Load() {
				n.err = ErrClosed
			}
			close(n.done)
		}
	}
	if k.idle() {
		delete(s.flights, f.key)
	}
}
