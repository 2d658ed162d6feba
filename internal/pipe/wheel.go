package pipe

import (
	"math/bits"
	"time"
)

// The deadlines of the calls of a socket stand in a hierarchical timing wheel (Varghese and
// Lauck, "Hashed and Hierarchical Timing Wheels", 1987). Six bits of a deadline, counted in
// ticks, are one level: a bucket of level 0 holds the calls of one tick, a bucket of a higher
// level those of 64 buckets of the level below, among which they are distributed when its time
// comes. So a call costs the insertion into a list and the removal from it, an expiry visits
// the calls that expire, and a call that is answered sooner is never visited. The next bucket
// with calls is found by one instruction for each level, so that the sweeper sleeps until then.
const (
	// tick is the resolution of deadlines. A call ends at the first tick that is not before
	// its deadline.
	tick = time.Millisecond

	wheelBits   = 6
	wheelSlots  = 1 << wheelBits
	wheelLevels = 7 // 139 years
	wheelSpan   = 1 << (wheelBits * wheelLevels)

	// expireChunk is how many calls are visited under one lock.
	expireChunk = 256
)

// tickOf returns the first tick that is not before d.
func tickOf(d time.Duration) uint64 { return uint64((d + tick - 1) / tick) }

// wheel is guarded by the socket's lock. Its zero value is empty.
type wheel struct {
	now    uint64 // the tick up to which deadlines have been looked at
	levels *[wheelLevels]wheelLevel
	timers []timer // a call has the index of its timer; that of 0 is nobody's
	free   uint32  // the first of the free timers; 0: there is none
	armed  int
	opened int // the level above 0 whose bucket of now is being distributed; 0: none is
	// alarm is the tick at which the sweeper looks at the wheel next; 0: it does not.
	alarm   uint64
	visited uint64 // timers that advance has looked at
}

type wheelLevel struct {
	occupied uint64 // a bit for each bucket with timers
	first    [wheelSlots]uint32
}

// A timer is in the doubly linked list of its bucket. Calls with similar deadlines that came
// one after the other are neighbors in memory too.
type timer struct {
	call       *Call
	at         uint64
	next, prev uint32
	level      uint8
	bucket     uint8
}

// arm lets c be visited at that tick, or at the next one if that has passed. It reports whether
// the sweeper must be woken for it.
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

// link puts a timer into its bucket: that of the highest level at which its tick and now differ.
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

// unlink takes a timer out of its bucket.
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

// disarm forgets a timer that arm has given to a call; 0: nothing.
func (w *wheel) disarm(i uint32) {
	if i == 0 {
		return
	}
	w.unlink(i)
	w.timers[i] = timer{next: w.free}
	w.free = i
	w.armed--
}

// next returns the level and the bucket whose time comes first, and the tick at which it does.
// Without a timer that is never.
func (w *wheel) next() (level int, bucket, at uint64) {
	if w.opened > 0 {
		return w.opened, w.now >> (wheelBits * w.opened) % wheelSlots, w.now
	}
	for level = range w.levels {
		shift := wheelBits * level
		here := w.now >> shift
		// Bits before here's are of the next turn of the highest level, and none elsewhere.
		if ahead := bits.RotateLeft64(w.levels[level].occupied, -int(here%wheelSlots)); ahead != 0 {
			here += uint64(bits.TrailingZeros64(ahead))
			return level, here % wheelSlots, max(here<<shift, w.now)
		}
	}
	return 0, 0, w.now + wheelSpan
}

// advance gives the calls whose tick has come to expire, disarmed, and looks at most timers at
// most. It reports whether there are more; if not, alarm is set.
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
