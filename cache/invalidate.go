package cache

import "time"

var _ Invalidations = (*Cache)(nil)

// Apply implements [Invalidations].
func (c *Cache) Apply(events []Event) {
	for _, e := range events {
		r := c.resources[e.Key.Resource]
		c.unseen.add(e.Tx)
		if e.All {
			r.counters.flushes.Add(1)
			r.flushedBy.Store(max(r.flushedBy.Load(), uint64(e.Tx)))
			c.flush(r)
			continue
		}
		r.counters.events.Add(1)
		c.invalidate(e)
	}
	c.remember(events)
	if c.tombstoneSize.Load() > c.maxTombstones {
		c.dropTombstones()
	}
}

// invalidate makes one change take effect. The tombstone comes first: from then
// on no load that misses the change is stored, and what was stored before is
// found and removed.
func (c *Cache) invalidate(e Event) {
	s := c.shardOf(e.Key)
	s.mu.Lock()
	before := s.tombs.count()
	c.tombstoneSize.Add(s.tombs.add(e.Key, e.Tx))
	c.tombstoneCount.Add(s.tombs.count() - before)
	if k := s.flights[e.Key]; k != nil {
		for _, f := range k.running {
			if f != nil {
				f.detached = true
			}
		}
	}
	s.mu.Unlock()
	for _, t := range c.tiers {
		t.RemoveIf(e.Key, func(d *Document) bool { return d.misses(e.Tx) })
	}
	c.toStores(func(s Store) { s.Invalidate(e.Key, e.Tx) })
}

// flush drops every document of the resource: immediately by the generation, which
// each read compares; their memory is freed in the background.
//
// The stores are flushed after the generation has changed, because a load may have passed the
// check of the generation before and put its document there since; detach has waited for those
// loads. Until all stores have been flushed, what they return is not kept: see
// outcome.flushing.
func (c *Cache) flush(r *resourceState) {
	r.flushing.Add(1)
	defer r.flushing.Add(-1)
	r.generation.Add(1)
	c.detach(func(key Key) bool { return key.Resource == r.id })
	c.toStores(func(s Store) { s.Flush(r.id) })
	c.sweep()
}

// detach marks the running loads of the keys as older than a change.
func (c *Cache) detach(of func(Key) bool) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		for key, k := range s.flights {
			for _, f := range k.running {
				if f != nil && of(key) {
					f.detached = true
				}
			}
		}
		s.mu.Unlock()
	}
}

// sweep frees documents of earlier generations in the background, in one
// goroutine however many flushes request it.
func (c *Cache) sweep() {
	c.sweeping.Lock()
	defer c.sweeping.Unlock()
	if c.closed.Load() || c.sweepsWanted.Add(1) > 1 {
		return
	}
	c.work.Add(1)
	// Ends when no flush came in during its last round; Close waits for it.
	go func() {
		defer c.work.Done()
		for {
			wanted := c.sweepsWanted.Load()
			for _, t := range c.tiers {
				t.Sweep(func(key Key, d *Document) bool {
					return d.generation != c.resources[key.Resource].generation.Load()
				})
			}
			if c.closed.Load() || c.sweepsWanted.CompareAndSwap(wanted, 0) {
				return
			}
		}
	}()
}

// Advance implements [Invalidations].
func (c *Cache) Advance(horizon time.Duration, seen Snapshot) {
	c.forget(seen)
	c.horizon.Store(int64(horizon))
	c.moved.send()
}

// Retract implements [Invalidations].
func (c *Cache) Retract() { c.horizon.Store(noHorizon) }

// forget drops tombstones that no load can need anymore. A change that a snapshot
// of ours has shown is visible to every later one, so only loads that began before
// that snapshot can miss it: when the last of them has ended, the tombstone is
// dropped.
func (c *Cache) forget(seen Snapshot) {
	if !c.unseen.shown(seen) {
		return
	}
	if c.overflow {
		c.overflow = false
		c.storeFrom.Store(c.ledger.mark())
	}
	if c.closing {
		if !c.ledger.ended(c.oldMark) {
			return
		}
		c.eachTombs((*tombstones).dropOld)
		c.closing = false
	}
	if c.tombstoneCount.Load() > 0 {
		c.eachTombs((*tombstones).age)
		c.oldMark = c.ledger.mark()
		c.closing = true
	}
}

// eachTombs changes the tombstones of every shard and counts what is left.
func (c *Cache) eachTombs(change func(*tombstones)) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		count, size := s.tombs.count(), s.tombs.bytes()
		change(&s.tombs)
		c.tombstoneCount.Add(s.tombs.count() - count)
		c.tombstoneSize.Add(s.tombs.bytes() - size)
		s.mu.Unlock()
	}
}

// allStatements is a mark that no statement's number exceeds.
const allStatements = ^uint64(0)

// dropTombstones keeps memory bounded when more keys change than may be
// remembered: until a snapshot shows all changes, nothing is stored.
func (c *Cache) dropTombstones() {
	c.storeFrom.Store(allStatements) // before they are dropped
	c.overflow = true
	c.eachTombs((*tombstones).drop)
	c.closing = false
}

// Void implements [Invalidations].
func (c *Cache) Void(reason string) {
	c.horizon.Store(noHorizon)
	c.voids.Add(1)
	c.voidReason.Store(&reason)
	for _, r := range c.known() {
		r.flushing.Add(1)
		defer r.flushing.Add(-1)
		r.generation.Add(1) // loads that began before are not stored
		r.flushedBy.Store(0)
	}
	c.detach(func(Key) bool { return true })
	// Numbers of the old history mean nothing in the new one.
	c.eachTombs((*tombstones).drop)
	c.unseen = unseen{}
	c.closing = false
	if c.overflow {
		c.overflow = false
		c.storeFrom.Store(c.ledger.mark())
	}
	for _, t := range c.tiers {
		t.Clear()
	}
	c.toStores(Store.Void)
	c.moved.send()
}

// SetPromise implements [Invalidations].
func (c *Cache) SetPromise(resource ResourceID, ok bool, why string) {
	r := c.resources[resource]
	before := r.broken.Load()
	switch {
	case r.NoPromise:
		return
	case ok && before == nil:
		return
	case ok:
		// What was read before was read while changes were missed: it is not
		// stored, and no caller joins a load of it.
		r.generation.Add(1)
		c.detach(func(key Key) bool { return key.Resource == resource })
		r.broken.Store(nil)
		r.told = true
	default:
		r.broken.Store(&why)
		if before == nil || !r.told { // a store may hold documents before the first report
			c.flush(r)
			c.moved.send()
		}
		r.told = true
	}
}

// Promise reports whether documents of the resource may be served from cache at
// this moment, and if not, why. A resource that is declared without a promise is
// always served from cache.
func (c *Cache) Promise(resource ResourceID) (ok bool, why string) {
	r := c.resources[resource]
	if r.NoPromise {
		return true, ""
	}
	if why := r.broken.Load(); why != nil {
		return false, *why
	}
	h := c.horizon.Load()
	if h == noHorizon {
		return false, "no invalidation stream yet"
	}
	if age := c.clock() - time.Duration(h); age > r.x() {
		return false, "the invalidation stream is " + age.Round(time.Millisecond).String() + " behind"
	}
	return true, ""
}

// Purge drops the document of the key from every tier. Loads of it in flight are not stored,
// and neither is what the stores return before the purge has reached them.
func (c *Cache) Purge(key Key) {
	s := c.shardOf(key)
	s.purging.Add(1)
	defer s.purging.Add(-1)
	s.mu.Lock()
	s.purges.Add(1)
	if k := s.flights[key]; k != nil {
		for _, f := range k.running {
			if f != nil {
				f.detached, f.unwanted = true, true
			}
		}
	}
	s.mu.Unlock()
	for _, t := range c.tiers {
		t.Remove(key)
	}
	c.toStores(func(s Store) { s.Remove(key) }) // last: a load may have been stored meanwhile
}

// PurgeResource drops every document of the resource.
func (c *Cache) PurgeResource(resource ResourceID) { c.flush(c.resources[resource]) }
