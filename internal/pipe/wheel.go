package pipe

import (
	"math/bits"
	"time"
)

// The deadlines of the calls of a socket are in a hierarchical timing wheel (Varghese and
// Lauck, "Hashed and Hierarchical Timing Wheels", 1987). Each level corresponds to six bits of a deadline in
// ticks: a bucket of level 0 holds the calls of one tick, a bucket of a higher
// level those of 64 buckets of the level below, among which they are distributed when its time
// comes. So a call costs one insertion into a list and one removal, an expiry visits only
// calls that expire, and a call that is answered before is never visited. The next bucket
// with calls is found by one instruction for each level, and the sweeper sleeps until then.
const (
	// tick is the resolution of deadlines. A call expires at the first tick that is not before
	// its deadline.
	tick = time.Millisecond

	wheelBits   = 6
	wheelSlots  = 1 << wheelBits
	wheelLevels = 7 // 139 years
	wheelSpan   = 1 << (wheelBits * wheelLevels)

	// expireChunk is the maximum number of calls that are visited under one lock.
	expireChunk = 256
)

// tickOf returns the first tick that is not before d.
func tickOf(d time.Duration) uint64 { return uint64((d + tick - 1) / tick) }

// A wheel is guarded by the socket's lock. Its zero value is empty.
type wheel struct {
	now    uint64 // the tick up to which deadlines have been processed
	levels *[wheelLevels]wheelLevel
	timers []timer // a call has the index of its timer; index 0 is not used
	free   uint32  // the first free timer; 0 if there is none
	armed  int
	opened int // the level above 0 whose current bucket is being distributed; 0 if there is none
	// alarm is the tick at which the sweeper processes the wheel next; 0 if there is none.
	alarm   uint64
	visited uint64 // timers that advance has visited
}

type wheelLevel struct {
	occupied uint64 // a bit for each bucket with timers
	first    [wheelSlots]uint32
}

// A timer is in the doubly linked list of its bucket. The timers of calls with similar deadlines that were
// submitted consecutively are adjacent in memory.
type timer struct {
	call       *Call
	at         uint64
	next, prev uint32
	level      uint8
	bucket     uint8
}

// arm makes c expire at the given tick, or at the next one if that has passed. It reports whether
// the sweeper must be woken.
func (w *wheel) arm(c *Call, at uint64) (earlier bool) {
	if w.levels == nil {
		w.levels = new([wheelLevels]wheelLevel)
		w.timers = make([]timer, 1, firstRing)
	}
	i := w.free
	if i != 0 {
		w.free = w.timers[i].next
	} else {
		i = uint32(len(w.timers))
		w.timers = append(w.timers, timer{})
	}
	at = min(max(at, w.now+1), w.now+wheelSpan-1)
	w.timers[i].call, w.timers[i].at = c, at
	w.link(i)
	w.armed++
	c.timer = i
	if earlier = w.alarm == 0 || at < w.alarm; earlier {
		w.alarm = at
	}
	return earlier
}

// link adds a timer to its bucket, at the highest level at which its tick and now differ.
func (w *wheel) link(i uint32) {
	t := &w.timers[i]
	level := 0
	if differ := t.at ^ w.now; differ >= wheelSlots {
		level = min((bits.Len64(differ)-1)/wheelBits, wheelLevels-1)
	}
	bucket := t.at >> (wheelBits * level) % wheelSlots
	l := &w.levels[level]
	t.level, t.bucket = uint8(level), uint8(bucket)
	t.prev, t.next = 0, l.first[bucket]
	if t.next != 0 {
		w.timers[t.next].prev = i
	}
	l.first[bucket] = i
	l.occupied |= 1 << bucket
}

// unlink removes a timer from its bucket.
func (w *wheel) unlink(i uint32) {
	t := &w.timers[i]
	if t.next != 0 {
		w.timers[t.next].prev = t.prev
	}
	if t.prev != 0 {
		w.timers[t.prev].next = t.next
		return
	}
	l := &w.levels[t.level]
	if l.first[t.bucket] = t.next; t.next == 0 {
		l.occupied &^= 1 << t.bucket
	}
}

// disarm removes the timer with index i. If i is 0, it does nothing.
func (w *wheel) disarm(i uint32) {
	if i == 0 {
		return
	}
	w.unlink(i)
	w.timers[i] = timer{next: w.free}
	w.free = i
	w.armed--
}

// next returns the level and the bucket whose time comes first, and its tick. If there is no timer, the tick
// is out of range.
func (w *wheel) next() (level int, bucket, at uint64) {
	if w.opened > 0 {
		return w.opened, w.now >> (wheelBits * w.opened) % wheelSlots, w.now
	}
	for level = range w.levels {
		shift := wheelBits * level
		here := w.now >> shift
		// Bits below here belong to the next turn of the highest level; other levels have none.
		if ahead := bits.RotateLeft64(w.levels[level].occupied, -int(here%wheelSlots)); ahead != 0 {
			here += uint64(bits.TrailingZeros64(ahead))
			return level, here % wheelSlots, max(here<<shift, w.now)
		}
	}
	return 0, 0, w.now + wheelSpan
}

// advance disarms the calls whose tick has come and passes them to expire. It visits at most
// the given number of timers and reports whether there are more. If not, it sets alarm.
func (w *wheel) advance(now uint64, most int, expire func(*Call)) (more bool) {
	for w.armed > 0 {
		level, bucket, at := w.next()
		if at > now {
			w.now, w.alarm = max(w.now, now), at
			return false
		}
		w.now, w.opened = at, level
		for i := w.levels[level].first[bucket]; i != 0; i = w.levels[level].first[bucket] {
			if most--; most < 0 {
				return true
			}
			w.visited++
			if level > 0 {
				w.unlink(i)
				w.link(i)
				continue
			}
			c := w.timers[i].call
			w.disarm(i)
			c.timer = 0
			expire(c)
		}
		w.opened = 0
	}
	w.now, w.alarm, w.opened = max(w.now, now), 0, 0
	return false
}

// shrink releases the memory of an empty wheel.
func (w *wheel) shrink() {
	if w.armed == 0 && w.levels != nil {
		*w = wheel{now: w.now, alarm: w.alarm, visited: w.visited} // opened is 0
	}
}
