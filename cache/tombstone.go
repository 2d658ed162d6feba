package cache

import "sync"

// tombstones remember which transaction invalidated a key last, for as long as
// a load that does not see the transaction may still return. Part of a shard,
// guarded by its mutex.
//
// Two generations: young takes what arrives, old waits until every load that
// began before it was closed has ended. See [Cache.forget].
type tombstones struct {
	young, old           map[Key]changes
	youngBytes, oldBytes int64
}

// tombstoneBytes is what a tombstone takes in addition to its ID: two map
// slots' worth of key and changes, at the load factor of a map that grows.
const tombstoneBytes = 120

// drop drops all tombstones.
func (t *tombstones) drop() { *t = tombstones{} }

// age drops the old generation and makes the young one old.
func (t *tombstones) age() {
	t.old, t.oldBytes = t.young, t.youngBytes
	t.young, t.youngBytes = nil, 0
}

// dropOld drops the old generation.
func (t *tombstones) dropOld() { t.old, t.oldBytes = nil, 0 }

func (t *tombstones) count() int64 { return int64(len(t.young) + len(t.old)) }
func (t *tombstones) bytes() int64 { return t.youngBytes + t.oldBytes }

// changes are the transactions that invalidated one key. All of them count, not
// only the greatest: PostgreSQL may make 8 visible after 10, and a snapshot that
// sees 10 but not 8 must be refused.
type changes struct {
	last Tx   // the greatest
	rest []Tx // the others, at most maxRest; nil for a key that changed once
	many bool // more than fit: only a snapshot in which everything below last+1 is visible is accepted
}

// maxRest bounds the memory of a key that changes very often between two
// generations; beyond it the result is still right, only needlessly strict.
const maxRest = 16

func (c changes) with(tx Tx) changes {
	switch {
	case tx == c.last || c.many && tx < c.last:
		return c
	case tx > c.last:
		tx, c.last = c.last, tx
	}
	if c.many || tx == 0 {
		return c
	}
	if len(c.rest) == maxRest {
		c.rest, c.many = nil, true
		return c
	}
	c.rest = append(c.rest, tx)
	return c
}

func (c changes) visibleIn(seen Snapshot) bool {
	if c.many {
		return c.last < seen.XMin
	}
	for _, tx := range c.rest {
		if !seen.Sees(tx) {
			return false
		}
	}
	return seen.Sees(c.last)
}

// add remembers a change of the key and returns the bytes it takes.
func (t *tombstones) add(key Key, tx Tx) (grew int64) {
	if t.young == nil {
		t.young = make(map[Key]changes)
	}
	known, found := t.young[key]
	now := known.with(tx)
	t.young[key] = now
	grew = int64(8 * (cap(now.rest) - cap(known.rest)))
	if !found {
		grew += tombstoneBytes + int64(len(key.ID))
	}
	t.youngBytes += grew
	return grew
}

// allow reports whether a document of key that was read in seen misses none of
// the known changes of the key.
func (t *tombstones) allow(key Key, seen Snapshot) bool {
	if c, known := t.young[key]; known && !c.visibleIn(seen) {
		return false
	}
	c, known := t.old[key]
	return !known || c.visibleIn(seen)
}

// unseen are transactions that were announced and that none of our snapshots has
// shown yet. Owned by the goroutine that drives Invalidations.
type unseen struct {
	list  []Tx
	below Tx // if not 0: all transactions below it, in place of a list that became too long
}

// maxUnseen bounds the list (512 KiB). An origin that commits in order empties
// it with every Advance.
const maxUnseen = 1 << 16

func (u *unseen) add(tx Tx) {
	switch {
	case u.below > 0:
		u.below = max(u.below, tx+1)
	case len(u.list) == maxUnseen:
		for _, t := range u.list {
			u.below = max(u.below, t+1)
		}
		u.below, u.list = max(u.below, tx+1), nil
	case len(u.list) == 0 || u.list[len(u.list)-1] != tx:
		u.list = append(u.list, tx)
	}
}

// shown removes the transactions that the snapshot shows and reports whether none
// is left.
func (u *unseen) shown(seen Snapshot) bool {
	if u.below > 0 {
		if seen.XMin < u.below {
			return false
		}
		u.below = 0
	}
	left := u.list[:0]
	for _, tx := range u.list {
		if !seen.Sees(tx) {
			left = append(left, tx)
		}
	}
	u.list = left
	return len(left) == 0
}

// ledger lists the load statements that are in flight, so that the cache knows
// which of them began before a given moment.
type ledger struct {
	// Guarded by mu.
	mu      sync.Mutex
	next    uint64
	running map[uint64]struct{} // a few: bounded by MaxLoads
}

// begin returns the number of a statement. It must be called before the
// statement's snapshot is taken.
func (l *ledger) begin() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil {
		l.running = make(map[uint64]struct{})
	}
	l.next++
	l.running[l.next] = struct{}{}
	return l.next
}

func (l *ledger) end(number uint64) {
	l.mu.Lock()
	delete(l.running, number)
	l.mu.Unlock()
}

// mark returns a number that every statement begun so far is at or below.
func (l *ledger) mark() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// ended reports whether every statement at or below mark has ended.
func (l *ledger) ended(mark uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for number := range l.running {
		if number <= mark {
			return false
		}
	}
	return true
}
