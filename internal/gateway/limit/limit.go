// Package limit limits the rates of clients: a rate and a burst for each client,
// in bounded memory, without a goroutine.
//
// The rule is the generic cell rate algorithm (GCRA, ITU-T I.371), which is a
// token bucket written as one number: the time at which the bucket will be full
// again. A full bucket is the same as one that was never used, so its slot is free
// without a sweep: the next newcomer takes it.
//
// A table full of buckets that are not full yet is a flood of addresses. Each
// request makes its bucket fill one emission interval longer, so keeping the table
// full takes MaxEntries x Rate requests per second: 13 million for 131072 entries and
// 100 per second. A newcomer then takes the slot of the bucket that will be full
// first, among its 16 possible slots. Evicting a bucket favors the evicted client, by
// the smallest debt there is: no client is refused because of a flood, and a client
// that was refused before it (with a nearly empty bucket) is refused during it. To get
// such a bucket evicted, a flood would have to empty nearly all buckets of the table
// that far. A bucket shared by all newcomers would be strict there, and would let the
// flood lock out every client that has no bucket yet.
package limit

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"sync"
	"time"
)

// Config configures a [Limiter].
type Config struct {
	// Rate is how many requests per second a key may make in the long run. It is
	// kept as whole nanoseconds from one request to the next: exact to 0.05 % up
	// to a million per second. The maximum is 1e9.
	Rate float64
	// Burst is how many requests a key may make together. If zero, it defaults
	// to those of one second, at least 1.
	Burst int
	// MaxEntries is the number of keys whose buckets are not full that are
	// tracked, at 22 bytes each, all allocated by New. If zero, it defaults to
	// 131072.
	MaxEntries int
}

const (
	defaultEntries = 131072
	// maxEntries would take 360 MB; a larger number is a mistake.
	maxEntries = 1 << 24
	// ways is how many buckets a set holds: their keys are one cache line.
	ways = 8
	// load is how many of them are used with MaxEntries keys. Each key has two sets to
	// choose from, so at three quarters nearly none finds both full.
	load = 6
	// entriesPerShard makes 256 shards of the default: one lock each.
	entriesPerShard = 512
	maxShards       = 256
	// horizon bounds times and capacities, in nanoseconds, so that sums of
	// three cannot overflow: 73 years.
	horizon = 1 << 61
)

// Never is the wait of a request that is larger than the burst.
const Never time.Duration = math.MaxInt64

// Limiter holds a bucket for each key. All methods are safe for concurrent use. A nil
// Limiter allows everything.
type Limiter struct {
	// Immutable after New.
	interval int64 // nanoseconds that one request costs
	burst    int
	capacity int64 // interval x burst
	seed     uint64
	shards   []shard
}

// shard is a part of the table with its lock.
type shard struct {
	// Guarded by mu. sets itself is immutable after New.
	mu      sync.Mutex
	sets    []set
	latest  int64 // latest time that was seen
	refused int64
	evicted int64

	_ [56]byte // pads a shard to two cache lines of its own
}

// set holds keys of the same hash. A full bucket and an empty slot are the same,
// so the zero value is ready.
type set struct {
	keys [ways]uint64
	full [ways]int64 // when the bucket is full again
}

// New returns a limiter, or nil if Rate is not above 0.
func New(cfg Config) *Limiter {
	if !(cfg.Rate > 0) { // NaN too
		return nil
	}
	l := &Limiter{
		interval: int64(min(max(math.Round(1e9/cfg.Rate), 1), horizon/2)),
		burst:    cfg.Burst,
		seed:     rand.Uint64(),
	}
	if l.burst <= 0 {
		l.burst = int(min(max(cfg.Rate, 1), 1e9))
	}
	l.burst = int(min(int64(l.burst), horizon/l.interval))
	l.capacity = l.interval * int64(l.burst)

	entries := cfg.MaxEntries
	if entries <= 0 {
		entries = defaultEntries
	}
	entries = min(entries, maxEntries)
	shards := 1
	for shards < maxShards && 2*shards*entriesPerShard <= entries {
		shards *= 2
	}
	perShard := (entries + shards*load - 1) / (shards * load)
	sets := make([]set, shards*perShard)
	l.shards = make([]shard, shards)
	for i := range l.shards {
		l.shards[i].sets = sets[i*perShard : (i+1)*perShard : (i+1)*perShard]
	}
	return l
}

// Allow reports whether the key may make n requests now, and charges them if so. If
// not, nothing is charged, and they will be allowed after wait, to the nanosecond,
// if the key makes no other request in between; wait is [Never] if n is more than
// the burst. Zero or fewer requests are always allowed.
//
// now is a reading of a monotonic clock that began near 0. Time that runs backward
// neither refunds nor charges anything. Allow does not allocate.
func (l *Limiter) Allow(key uint64, now time.Duration, n int) (wait time.Duration, ok bool) {
	if l == nil || n <= 0 {
		return 0, true
	}
	s, h, t := l.shardOf(key, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > l.burst {
		s.refused++
		return Never, false
	}
	s.latest = max(s.latest, t)
	full, fresh := s.find(h, key, t)
	after := max(*full, t) + int64(n)*l.interval
	if fresh {
		after = t + int64(n)*l.interval
	}
	if late := after - t - l.capacity; late > 0 {
		s.refused++
		return time.Duration(late), false
	}
	*full = after
	return 0, true
}

// Charge charges the key for n requests that have been made, whether or not they are allowed.
// The bucket can be at most one burst below empty: it is full again after the time that fills
// two bursts.
func (l *Limiter) Charge(key uint64, now time.Duration, n int) {
	if l == nil || n <= 0 {
		return
	}
	s, h, t := l.shardOf(key, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest = max(s.latest, t)
	full, fresh := s.find(h, key, t)
	from := max(*full, t)
	if fresh {
		from = t
	}
	*full = min(from+int64(min(n, 2*l.burst))*l.interval, max(from, t+2*l.capacity))
}

// Within is Allow for one request, without charging it.
func (l *Limiter) Within(key uint64, now time.Duration) (wait time.Duration, ok bool) {
	if l == nil {
		return 0, true
	}
	s, h, t := l.shardOf(key, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	if late := max(s.look(h, key), t) + l.interval - t - l.capacity; late > 0 {
		s.refused++
		return time.Duration(late), false
	}
	return 0, true
}

// shardOf returns the shard of a key, its hash, and the time in the units of
// buckets.
func (l *Limiter) shardOf(key uint64, now time.Duration) (s *shard, hash uint64, t int64) {
	hash = l.hash(key)
	return &l.shards[hash&uint64(len(l.shards)-1)], hash, min(max(int64(now), 0), horizon)
}

// hash spreads keys, which may be anything, over the table: the folded product of
// two numbers of which a client knows neither.
func (l *Limiter) hash(key uint64) uint64 {
	high, low := bits.Mul64(key^l.seed, 0x9e3779b97f4a7c15)
	high, low = bits.Mul64(high^low, l.seed|1)
	return high ^ low
}

// both returns the two possible sets of a key.
func (s *shard) both(h uint64) (a, b *set) {
	// The low bits chose the shard; the high ones of two halves choose the sets.
	first, _ := bits.Mul64(h, uint64(len(s.sets)))
	second, _ := bits.Mul64(bits.RotateLeft64(h, 32), uint64(len(s.sets)))
	return &s.sets[first], &s.sets[second]
}

// look returns when the bucket of the key is full, or 0 if there is none.
func (s *shard) look(h, key uint64) int64 {
	a, b := s.both(h)
	for i := range ways {
		switch key {
		case a.keys[i]:
			return a.full[i]
		case b.keys[i]:
			return b.full[i]
		}
	}
	return 0
}

// find returns the bucket of the key. fresh means that the slot was just assigned
// to the key, and still has the value of another.
func (s *shard) find(h, key uint64, now int64) (full *int64, fresh bool) {
	a, b := s.both(h)
	for i := range a.keys {
		if a.keys[i] == key {
			return &a.full[i], false
		}
	}
	for i := range b.keys {
		if b.keys[i] == key {
			return &b.full[i], false
		}
	}
	ia, freeA := a.soonest(now)
	ib, freeB := b.soonest(now)
	// The emptier set, so that both fill evenly; else the least debt.
	if freeB > freeA || freeA == 0 && b.full[ib] < a.full[ia] {
		a, ia = b, ib
	}
	if a.full[ia] > now {
		s.evicted++
	}
	a.keys[ia] = key
	return &a.full[ia], true
}

// soonest returns the slot whose bucket is full first, and how many are full now.
func (s *set) soonest(now int64) (slot, free int) {
	least := s.full[0]
	for i, full := range s.full {
		free += int(uint64(full-now-1) >> 63) // 1 if full <= now, without a branch
		if full < least {
			least, slot = full, i
		}
	}
	return slot, free
}

// Refused returns how many calls of Allow returned false.
func (l *Limiter) Refused() int64 {
	return l.sum(func(s *shard) int64 { return s.refused })
}

// Evicted returns how many buckets were evicted before they were full. It grows
// while there are more such keys than MaxEntries.
func (l *Limiter) Evicted() int64 {
	return l.sum(func(s *shard) int64 { return s.evicted })
}

// Entries returns how many keys have a bucket that was not full when its shard was
// last used. It scans the whole table, one shard at a time: less than 1 ms for the default.
func (l *Limiter) Entries() int {
	return int(l.sum(func(s *shard) (n int64) {
		for i := range s.sets {
			_, free := s.sets[i].soonest(s.latest)
			n += ways - int64(free)
		}
		return n
	}))
}

func (l *Limiter) sum(of func(*shard) int64) (total int64) {
	if l == nil {
		return 0
	}
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		total += of(s)
		s.mu.Unlock()
	}
	return total
}
