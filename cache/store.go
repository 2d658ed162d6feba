package cache

import (
	"context"
	"strings"
	"sync/atomic"
	"time"
)

// Store is a tier behind memory whose documents outlive the process, such as one on disk.
// It differs from a [Tier] in that its Get may wait, in that what it is told takes effect in
// order and is made durable together with a [Position], and in that its documents are
// answered with only when the stream has gone through every change since that position.
//
// Invalidate, Flush, Void and Checkpoint are called by the goroutine that drives
// [Invalidations] (Flush also by Purge); the others by anybody, all at once. What the first
// four, Remove and Put do is in force for Get when they return, and durable later.
type Store interface {
	// Name is the word for this tier in answers and metrics: "disk".
	Name() string
	// Get returns the document of the key, or nothing if the store does not hold it. It
	// may wait; an error is as good as nothing.
	Get(ctx context.Context, key Key) (Stored, error)
	// Put keeps the document, or declines to (too large, too much to be written). It is
	// never called for a missing row. The document is immutable.
	Put(key Key, doc *Document)
	// Invalidate drops the document of the key if a change by tx may be missing in it,
	// which may be said of any that has an XMin of at most tx.
	Invalidate(key Key, tx Tx)
	// Remove drops the document of the key.
	Remove(key Key)
	// Flush drops every document of the resource. A Put that runs at the same time may
	// count as earlier or later: see Cache.flush.
	Flush(resource ResourceID)
	// Void drops everything, the position included.
	Void()
	// Checkpoint says that everything visible in p.Seen was told before. A document is
	// made durable only together with a position whose snapshot ends behind its XMin, so
	// that what is found after a crash is never ahead of the position that is found.
	Checkpoint(p Position)
	// Position returns the last position that is durable, the zero Position if there is
	// none.
	Position() Position
	// Sync waits until everything told before is durable, or ctx ends.
	Sync(ctx context.Context) error
	// Stats returns what the store holds and has done.
	Stats() TierStats
	// Close makes durable what can be and frees the store.
	Close() error
}

// Trier is a [Store] that can tell, for some documents, without waiting.
type Trier interface {
	// Try returns the document of the key if the store holds it and nothing has to be
	// waited for; nothing means that only Get can tell.
	Try(key Key) Stored
}

// Stored is a document as a [Store] keeps it. The zero value is none.
type Stored struct {
	Body []byte // owned by the caller
	// Summed: the SumSize bytes behind Body, within its capacity, are the beginning of its
	// SHA-256. Frontends spare themselves to compute it.
	Summed bool
	XMin   Tx
	// LoadedAt is when its load began, on the cache's clock. A store that cannot tell,
	// because the clock was another one, must not return documents of resources without
	// a promise.
	LoadedAt time.Duration
}

// Position is how far a stream has come: every change visible in Seen has been applied.
type Position struct {
	// History names what the numbers of transactions mean: another history, another name.
	// Empty: there is no position.
	History string
	Seen    Snapshot
	// Floor is the origin's own: from which transaction on its record of changes was
	// complete.
	Floor Tx
	// Witness is the newest change that has been applied, for origins that can ask
	// whether their history still contains it. The zero value means that there is none.
	Witness Witness
	// Digests say, for each resource by its name, what its documents depend on besides
	// rows: tables, triggers. A resource without one was not heard of.
	Digests map[string]string
}

// Witness names one recorded change, such that no other change ever recorded has the
// same name: by its transaction and by something that another history cannot repeat,
// such as the microsecond at which it was recorded.
type Witness struct {
	Tx    Tx
	Nonce int64
}

// Checkpoints is what an [Invalidations] may implement besides: it has a [Store].
type Checkpoints interface {
	// Waiting returns the position of a store whose documents wait for the changes since
	// then, and the number of the store.
	Waiting() (p Position, store uint64, waits bool)
	// Checkpoint says that everything visible in p.Seen has been applied, and that this
	// includes everything since the position of the store with that number and those
	// before it. It follows the Advance with the same snapshot.
	Checkpoint(p Position, store uint64)
	// HasStore reports whether there is a store at all.
	HasStore() bool
	// Discard drops the documents of a store that waits: its history is another one.
	Discard(store uint64)
}

var _ Checkpoints = (*Cache)(nil)

// attached is a store that has been given to the cache.
type attached struct {
	// Immutable.
	Store
	trier  Trier // nil: Get alone can tell
	number uint64

	// Atomics. Written by the goroutine that drives Invalidations, read by Get.
	vouched atomic.Bool // the stream has gone through the changes since its position
}

// Attach gives the cache its store, once, at the beginning or later. Its documents are
// answered with as soon as the stream has gone through what changed since its position.
// False: the cache has a store, or is closed, and the caller keeps this one.
func (c *Cache) Attach(s Store) bool {
	c.sweeping.Lock() // against Close
	defer c.sweeping.Unlock()
	trier, _ := s.(Trier)
	return !c.closed.Load() && c.behind.CompareAndSwap(nil, &attached{Store: s, trier: trier, number: 1})
}

// Detach takes the store from the cache and returns it, nil if there is none. Calls of its
// methods may go on for as long as a request lasts.
func (c *Cache) Detach() Store {
	if a := c.behind.Swap(nil); a != nil {
		return a.Store
	}
	return nil
}

// Waiting implements [Checkpoints].
func (c *Cache) Waiting() (Position, uint64, bool) {
	a := c.behind.Load()
	if a == nil || a.vouched.Load() {
		return Position{}, 0, false
	}
	return a.Position(), a.number, true
}

// HasStore implements [Checkpoints].
func (c *Cache) HasStore() bool { return c.behind.Load() != nil }

// Checkpoint implements [Checkpoints].
func (c *Cache) Checkpoint(p Position, store uint64) {
	a := c.behind.Load()
	if a == nil {
		return
	}
	if !a.vouched.Load() {
		if store < a.number {
			return
		}
		a.vouched.Store(true)
	}
	a.Store.Checkpoint(p)
}

// Discard implements [Checkpoints].
func (c *Cache) Discard(store uint64) {
	if a := c.behind.Load(); a != nil && store >= a.number {
		a.Void()
	}
}

// fromStore asks the store. The promise was seen to hold before, which is the order that Peek
// explains.
//
// What it finds goes into memory under the rules for a load: the read counts as a statement,
// so that no tombstone it may need is forgotten meanwhile, and the generation is read before
// it, so that a flush during the read is noticed.
func (c *Cache) fromStore(ctx context.Context, r *resourceState, key Key, start time.Duration) (Answer, bool) {
	a := c.behind.Load()
	if a == nil || !a.vouched.Load() {
		return Answer{}, false
	}
	answer, ok := c.ask(a, r, key, start, func() (Stored, error) { return a.Get(ctx, key) })
	if ok {
		r.counters.hits.Add(1)
	}
	return answer, ok
}

// tryStore asks the store for what it can tell without waiting, as fromStore does.
func (c *Cache) tryStore(r *resourceState, key Key, start time.Duration) (Answer, bool) {
	a := c.behind.Load()
	if a == nil || a.trier == nil || !a.vouched.Load() {
		return Answer{}, false
	}
	return c.ask(a, r, key, start, func() (Stored, error) { return a.trier.Try(key), nil })
}

// ask asks the store, and puts what it finds into memory.
func (c *Cache) ask(a *attached, r *resourceState, key Key, start time.Duration, get func() (Stored, error)) (Answer, bool) {
	generation, purges := r.generation.Load(), c.shardOf(key).purges.Load()
	statement := c.ledger.begin()
	defer c.ledger.end(statement)
	s, err := get()
	if err != nil || s.Body == nil {
		return Answer{}, false
	}
	d := s.document(generation)
	if !c.usable(r, d, start) {
		return Answer{}, false
	}
	if !c.storeOnly {
		c.promote(r, key, d, purges, outcome{seen: Snapshot{XMin: s.XMin, XMax: s.XMin}, statement: statement, generation: generation})
	}
	return Answer{Doc: d, Tier: a.Name(), FromStore: true}, true
}

// document makes the document that was stored.
func (s *Stored) document(generation uint32) *Document {
	d := newDocument(s.Body, Snapshot{XMin: s.XMin, XMax: s.XMin}, s.LoadedAt, generation)
	d.summed = s.Summed && cap(s.Body)-len(s.Body) >= SumSize
	return d
}

// promote puts a document of the store into the other tiers, if no known change is missing
// in it and it was not purged meanwhile.
func (c *Cache) promote(r *resourceState, key Key, d *Document, purges uint32, o outcome) {
	s := c.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.closed.Load() || s.purges.Load() != purges || !c.storable(r, s, key, o) {
		return
	}
	key.ID = strings.Clone(key.ID) // it may be a part of a request that is still in its buffer
	for _, t := range c.tiers {
		t.Put(key, d)
	}
}

// toStore tells the store something, if there is one.
func (c *Cache) toStore(tell func(Store)) {
	if a := c.behind.Load(); a != nil {
		tell(a.Store)
	}
}
