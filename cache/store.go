package cache

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Store is a tier whose documents outlive the process, such as one on disk. A cache has any
// number of them, including none, and queries them after the tiers in memory. Unlike a [Tier], a
// store may wait in Get, applies changes in order, and makes them durable together with a
// [Position]; its documents are served only after the stream has processed every change since
// that position.
//
// Invalidate, Flush, Void and Checkpoint are called by the goroutine that drives
// [Invalidations] (Flush also by Purge); all other methods must be safe for concurrent use. What
// the first four, Remove and Put do is in force for Get when they return, and durable later.
type Store interface {
	// Name names this tier in answers and metrics: "disk".
	Name() string
	// Get stores the documents that it finds in found, which is as long as keys and whose
	// elements are zero. All keys are of one resource, none occurs twice. Concurrent
	// callers of one key share one call. It may wait. After an error, the elements that it
	// has set are still used. It retains neither slice.
	Get(ctx context.Context, keys []Key, found []Stored) error
	// Put keeps the document, or declines to (too large, or too many waiting to be
	// written). It is never called for a missing row. The document is immutable.
	Put(key Key, doc *Document)
	// Invalidate drops the document of the key if a change by tx may be missing from it,
	// which is assumed of any document with an XMin of at most tx.
	Invalidate(key Key, tx Tx)
	// Remove drops the document of the key.
	Remove(key Key)
	// Flush drops every document of the resource. A Put that runs at the same time may
	// count as earlier or later: the cache calls Flush after every Put that must be earlier.
	Flush(resource ResourceID)
	// Void drops everything, the position included.
	Void()
	// Checkpoint says that everything visible in p.Seen was reported before. A document is
	// made durable only together with a position whose snapshot ends after its XMin, so
	// that what is found after a crash is never ahead of the position that is found.
	Checkpoint(p Position)
	// Position returns the last durable position, or the zero Position if there is none.
	Position() Position
	// Sync waits until everything reported before is durable, or ctx ends.
	Sync(ctx context.Context) error
	// Stats returns what the store holds and has done.
	Stats() TierStats
	// Close makes durable what can be and frees the store.
	Close() error
}

// Trier is a [Store] that can return some documents without waiting.
type Trier interface {
	// Try returns the document of the key if the store holds it and can return it
	// without waiting; otherwise only Get can answer.
	Try(key Key) Stored
}

// Stored is a document as a [Store] keeps it. The zero value is none.
type Stored struct {
	Body []byte // owned by the caller
	// Summed says that the SumSize bytes after Body, within its capacity, are the beginning
	// of its SHA-256, so that frontends need not compute it.
	Summed bool
	XMin   Tx
	// LoadedAt is when its load began, on the cache's clock. A store that does not know
	// it, because it was measured by another clock, must not return documents of
	// resources without a promise.
	LoadedAt time.Duration
}

// Position is how far a stream has come: every change visible in Seen has been applied.
type Position struct {
	// History names what the numbers of transactions mean: each history has its own name.
	// If empty, there is no position.
	History string
	Seen    Snapshot
	// Floor is for the origin: the transaction since which its record of changes has
	// been complete.
	Floor Tx
	// Witness is the newest change that has been applied, for origins that can check
	// whether their history still contains it. The zero value means that there is none.
	Witness Witness
	// Digests say, for each resource by its name, what its documents depend on besides
	// rows: tables, triggers. A resource without one was not observed.
	Digests map[string]string
}

// Witness names one recorded change, such that no other change ever recorded has the
// same name: by its transaction and by something that another history cannot repeat,
// such as the microsecond at which it was recorded.
type Witness struct {
	Tx    Tx
	Nonce int64
}

// Checkpoints is what an [Invalidations] with one or more [Store] values also implements.
//
// Each store has a position of its own, and the stream checks one at a time: numbers do not show
// whether two positions are of one history.
type Checkpoints interface {
	// Waiting returns the position of a store whose documents wait for the changes since
	// then, and the number of the store. If several wait, it is the one with the smallest
	// number.
	Waiting() (p Position, store uint64, waits bool)
	// Checkpoint says that everything visible in p.Seen has been applied, and that this
	// includes everything since the position of the store with that number, which Waiting
	// has returned, or of none if it is 0. It follows the Advance with the same snapshot.
	Checkpoint(p Position, store uint64)
	// HasStore reports whether there is a store at all.
	HasStore() bool
	// Discard drops the documents of the store with that number, which waits, because its
	// history is a different one.
	Discard(store uint64)
}

var _ Checkpoints = (*Cache)(nil)

// attached is a store that has been given to the cache.
type attached struct {
	// Immutable.
	Store
	trier    Trier // if nil, only Get can answer
	number   uint64
	distance int

	// Atomics. Written by the goroutine that drives Invalidations, read by Get.
	vouched atomic.Bool // the stream has processed the changes since its position
}

// stores returns the stores, the nearest first. The slice must not be changed.
func (c *Cache) stores() []*attached {
	if list := c.storeList.Load(); list != nil {
		return *list
	}
	return nil
}

// Attach gives the cache a store, at the start or later. Stores are queried in the order of
// their distance; of two with the same, in the order in which they were attached. What a store
// holds is served as soon as the stream has processed what changed since its position. Attach
// returns false if the cache is closed; the caller then keeps the store.
func (c *Cache) Attach(s Store, distance int) bool {
	c.sweeping.Lock() // against Close
	defer c.sweeping.Unlock()
	if c.closed.Load() {
		return false
	}
	c.lastStore++
	trier, _ := s.(Trier)
	a := &attached{Store: s, trier: trier, number: c.lastStore, distance: distance}
	list := append(slices.Clone(c.stores()), a)
	slices.SortStableFunc(list, func(a, b *attached) int { return cmp.Compare(a.distance, b.distance) })
	c.storeList.Store(&list)
	return true
}

// Detach takes a store from the cache. Calls of its methods may continue for as long as a request
// lasts. It returns false if the cache does not have the store.
func (c *Cache) Detach(s Store) bool {
	c.sweeping.Lock()
	defer c.sweeping.Unlock()
	list := slices.Clone(c.stores())
	at := slices.IndexFunc(list, func(a *attached) bool { return a.Store == s })
	if at < 0 {
		return false
	}
	list = slices.Delete(list, at, at+1)
	c.storeList.Store(&list)
	return true
}

// Waiting implements [Checkpoints]. A stream that gets the smallest number has processed the
// changes for every store with a smaller one, so remembering one number is enough.
func (c *Cache) Waiting() (Position, uint64, bool) {
	var first *attached
	for _, a := range c.stores() {
		if !a.vouched.Load() && (first == nil || a.number < first.number) {
			first = a
		}
	}
	if first == nil {
		return Position{}, 0, false
	}
	return first.Position(), first.number, true
}

// HasStore implements [Checkpoints].
func (c *Cache) HasStore() bool { return len(c.stores()) > 0 }

// Checkpoint implements [Checkpoints].
func (c *Cache) Checkpoint(p Position, store uint64) {
	for _, a := range c.stores() {
		if !a.vouched.Load() {
			if store < a.number {
				continue
			}
			a.vouched.Store(true)
		}
		a.Store.Checkpoint(p)
	}
}

// Discard implements [Checkpoints].
func (c *Cache) Discard(store uint64) {
	for _, a := range c.stores() {
		if a.number == store && !a.vouched.Load() {
			a.Void()
		}
	}
}

// tryStores queries the stores for what they can return without waiting. The promise was
// checked before, which is the order that Peek explains.
func (c *Cache) tryStores(r *resourceState, key Key, start time.Duration) (Answer, bool) {
	stores := c.stores()
	for i, a := range stores {
		if a.trier == nil || !a.vouched.Load() {
			continue
		}
		if answer, ok := c.try(r, key, start, stores[:i+1]); ok {
			return answer, true
		}
	}
	return Answer{}, false
}

// try queries the last of the stores, and keeps what it finds as lookUp does.
func (c *Cache) try(r *resourceState, key Key, start time.Duration, stores []*attached) (Answer, bool) {
	purges := c.shardOf(key).purgeMark()
	o := c.asking(r)
	defer c.ledger.end(o.statement)
	a := stores[len(stores)-1]
	found := a.trier.Try(key)
	if found.Body == nil {
		return Answer{}, false
	}
	d := found.document(o.generation)
	if !c.usable(r, d, start) {
		return Answer{}, false
	}
	if len(stores) > 1 || !c.storeOnly {
		s := c.shardOf(key)
		s.mu.Lock()
		c.promote(r, s, key, d, purges, o, stores[:len(stores)-1])
		s.mu.Unlock()
	}
	return Answer{Doc: d, Tier: a.Name(), FromStore: true}, true
}

// document returns the stored document.
func (s *Stored) document(generation uint32) *Document {
	d := newDocument(s.Body, Snapshot{XMin: s.XMin, XMax: s.XMin}, s.LoadedAt, generation)
	d.summed = s.Summed && cap(s.Body)-len(s.Body) >= SumSize
	return d
}

// promote puts a document of a store into memory and into the stores that are nearer, if no
// known change is missing from it and it was not purged meanwhile; else it returns false. Called
// with s.mu held.
//
// Nearer stores get it for the same reason for which they get loaded documents. The store that
// returned it would have dropped it if a change applied before were missing from it; a change that
// was being applied meanwhile has a tombstone, because the lookup is a statement of the ledger.
// So at this moment every applied change is in it, and each later one is reported to these stores
// after this Put.
func (c *Cache) promote(r *resourceState, s *shard, key Key, d *Document, purges uint64, o outcome, nearer []*attached) bool {
	o.seen = Snapshot{XMin: d.xmin, XMax: d.xmin}
	if c.closed.Load() || o.flushing || s.purgedSince(purges) || !c.storable(r, s, key, o) {
		return false
	}
	if c.storeOnly && len(nearer) == 0 {
		return true
	}
	key.ID = strings.Clone(key.ID) // it may be a part of a request that is still in its buffer
	for _, a := range nearer {
		a.Put(key, d)
	}
	if c.storeOnly {
		return true
	}
	for _, t := range c.tiers {
		t.Put(key, d)
	}
	s.settled[settledSlot(key)].Add(1) // a caller that has just missed it in memory looks there again
	return true
}

// toStores calls tell for each store.
func (c *Cache) toStores(tell func(Store)) {
	for _, a := range c.stores() {
		tell(a.Store)
	}
}
