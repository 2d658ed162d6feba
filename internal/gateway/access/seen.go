package access

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of the tables of tokens seen recently.
const (
	seenShards = 64
	seenWays   = 8 // slots that a token may be in

	goodSets     = 16      // per shard: 64 * 16 * 8 = 8,192 valid tokens
	goodBytes    = 1 << 19 // per shard: 32 MiB in total
	refusedSets  = 2       // per shard: 1,024 refused tokens
	refusedBytes = 1 << 16 // per shard: 4 MiB in total

	// entryBytes is what an entry costs besides its text and its claims.
	entryBytes = 384
)

// verdict is the result of checking a token.
type verdict struct {
	// Exactly one of the two is not nil.
	caller  *Caller
	refusal *Refusal
	// from and until bound the time in which it is valid, in Unix nanoseconds:
	// from <= t < until.
	from, until int64
	// bytes is about the memory that caller retains.
	bytes int
}

// entry is a credential that was seen and its verdict. All fields but used are
// immutable.
type entry struct {
	hash uint64
	text string
	verdict
	// Written by find, read and cleared by an insertion that looks for a slot.
	used atomic.Bool
}

func (e *entry) cost() int { return len(e.text) + e.bytes + entryBytes }

// seen is a table of entries with a bounded number of slots and bytes. Reading
// takes no lock and, for an entry that was read before, writes nothing: one
// popular token costs the cores no cache line.
type seen struct {
	// Immutable after newSeen.
	sets   uint64
	budget int // bytes of a shard
	shards [seenShards]seenShard
}

type seenShard struct {
	// places are the slots, in sets of seenWays. Written under mu, read by all.
	places []atomic.Pointer[entry]

	// Guarded by mu.
	mu    sync.Mutex
	bytes int
	hand  int // the next slot that makeRoom examines
}

func newSeen(sets uint64, budget int) *seen {
	s := &seen{sets: sets, budget: budget}
	for i := range s.shards {
		s.shards[i].places = make([]atomic.Pointer[entry], sets*seenWays)
	}
	return s
}

// set returns the shard of a hash and the first of its slots. Different bits
// choose the two.
func (s *seen) set(hash uint64) (*seenShard, int) {
	return &s.shards[hash%seenShards], int(hash>>32%s.sets) * seenWays
}

// find returns the entry of the text that holds now, or nil if there is none. The
// text itself is compared, after 64 bits of a keyed hash were equal: neither a
// collision nor the time of the comparison reveals anything.
func (s *seen) find(hash uint64, text string, now int64) *entry {
	shard, first := s.set(hash)
	for i := range seenWays {
		e := shard.places[first+i].Load()
		if e == nil || e.hash != hash || e.text != text {
			continue
		}
		if now < e.from || now >= e.until {
			return nil
		}
		if !e.used.Load() {
			e.used.Store(true)
		}
		return e
	}
	return nil
}

// keep puts a verdict into the table. The text is copied.
func (s *seen) keep(hash uint64, text string, v verdict, now int64) {
	e := &entry{hash: hash, text: strings.Clone(text), verdict: v}
	if e.cost() > s.budget {
		return
	}
	shard, first := s.set(e.hash)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	shard.put(shard.placeFor(e, first, now), e)
	for shard.bytes > s.budget {
		shard.makeRoom(e)
	}
}

// placeFor chooses the slot of a new entry: its own, an empty one, one that has
// expired, or else one that was never read. Only when all were read are their marks
// reset, so a flood of tokens that come once only evicts its own entries.
func (sh *seenShard) placeFor(e *entry, first int, now int64) int {
	free, unused := -1, -1
	for i := range seenWays {
		place := first + (sh.hand+i)%seenWays
		old := sh.places[place].Load()
		switch {
		case old == nil:
			free = place
		case old.hash == e.hash && old.text == e.text:
			return place
		case now >= old.until:
			free = place
		case !old.used.Load():
			unused = place
		}
	}
	if free >= 0 {
		return free
	}
	sh.hand++
	if unused >= 0 {
		return unused
	}
	for i := range seenWays {
		sh.places[first+i].Load().used.Store(false)
	}
	return first + sh.hand%seenWays
}

// put replaces the entry of a slot and updates the count of bytes.
func (sh *seenShard) put(place int, e *entry) {
	if old := sh.places[place].Load(); old != nil {
		sh.bytes -= old.cost()
	}
	if e != nil {
		sh.bytes += e.cost()
	}
	sh.places[place].Store(e)
}

// makeRoom drops the next entry, except one that was read meanwhile and the newest.
func (sh *seenShard) makeRoom(newest *entry) {
	for {
		place := sh.hand % len(sh.places)
		sh.hand++
		if e := sh.places[place].Load(); e != nil && e != newest && !e.used.Swap(false) {
			sh.put(place, nil)
			return
		}
	}
}

// tokenSet is a key set and the verdicts that depend on it. A new key set begins
// with empty tables.
type tokenSet struct {
	// Immutable after newTokenSet.
	keys          []*tokenKey
	seed          maphash.Seed // keyed: no one can choose tokens that share a slot
	good, refused *seen
}

func newTokenSet(keys []*tokenKey) *tokenSet {
	return &tokenSet{
		keys: keys, seed: maphash.MakeSeed(),
		good: newSeen(goodSets, goodBytes), refused: newSeen(refusedSets, refusedBytes),
	}
}

func (t *tokenSet) find(text string, now time.Time) *entry {
	if len(text) > maxToken+maxScheme {
		return nil
	}
	hash, at := maphash.String(t.seed, text), now.UnixNano()
	if e := t.good.find(hash, text, at); e != nil {
		return e
	}
	return t.refused.find(hash, text, at)
}

func (t *tokenSet) keep(text string, v verdict, now time.Time) {
	table := t.good
	if v.refusal != nil {
		table = t.refused
	}
	table.keep(maphash.String(t.seed, text), text, v, now.UnixNano())
}
