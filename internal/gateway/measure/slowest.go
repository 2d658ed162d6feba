package measure

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// slowWindow is how long a slow request is remembered.
	slowWindow = 5 * time.Minute
	// slowFloor is the duration below which nothing is slow: without it, a gateway
	// with fewer keys than slots would take the lock with every hit.
	slowFloor = 100 * time.Microsecond
	// maxKeyText bounds the text of a key that is kept, in bytes.
	maxKeyText = 256
	// maxSlow bounds the number of slots.
	maxSlow = 1000
)

// Slow is a document whose request took long.
type Slow struct {
	Resource string
	Key      string // at most 256 bytes of it, as sent by the client
	Source   string // where the answer came from
	Took     time.Duration
	Ago      time.Duration // how long ago it was answered
}

// Slowest remembers the documents that took longest in the last five minutes,
// each once, with its slowest request. All methods are safe for concurrent use.
// Requests below 100 us are never slow.
type Slowest struct {
	// Immutable after NewSlowest.
	places int

	// bar is an atomic, written under mu, read by Record: in the upper half the
	// microseconds that a request must take to be kept, in the lower the second
	// of the clock at which the oldest entry expires and the bar must be set
	// again.
	bar atomic.Uint64

	mu   sync.Mutex
	kept []slowEntry // guarded by mu; in no order, at most places of them
}

type slowEntry struct {
	resource, key, source string
	took, at              time.Duration
}

// NewSlowest returns a Slowest with n slots, at least 1 and at most 1,000.
func NewSlowest(n int) *Slowest {
	s := &Slowest{places: min(max(n, 1), maxSlow)}
	s.setBar()
	return s
}

// Record records a request that took the time took and ended at now, on any clock that does not go
// backward. key is called only if the request is kept, and its result is copied, so it may be a part
// of a buffer. resource and source are retained. A request that is not among the slowest costs one
// atomic load.
func (s *Slowest) Record(now, took time.Duration, resource string, key func() string, source string) {
	bar := s.bar.Load()
	if microseconds(took) < bar>>32 && seconds(now) < bar&math.MaxUint32 {
		return
	}
	if took < slowFloor {
		return
	}
	text := key()
	if len(text) > maxKeyText {
		text = text[:maxKeyText]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(now)
	defer s.setBar()
	for i := range s.kept {
		if e := &s.kept[i]; e.key == text && e.resource == resource {
			if took >= e.took {
				e.took, e.at, e.source = took, now, source
			}
			return
		}
	}
	place := len(s.kept)
	if place == s.places {
		place = s.quickest()
		if took <= s.kept[place].took {
			return
		}
	} else {
		s.kept = append(s.kept, slowEntry{})
	}
	s.kept[place] = slowEntry{resource: resource, key: strings.Clone(text), source: source, took: took, at: now}
}

// List returns the recorded requests, the slowest first. The caller owns the
// slice.
func (s *Slowest) List(now time.Duration) []Slow {
	s.mu.Lock()
	s.forget(now)
	s.setBar()
	list := make([]Slow, 0, len(s.kept))
	for _, e := range s.kept {
		list = append(list, Slow{Resource: e.resource, Key: e.key, Source: e.source, Took: e.took, Ago: max(now-e.at, 0)})
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b Slow) int {
		return cmp.Or(cmp.Compare(b.Took, a.Took), cmp.Compare(a.Ago, b.Ago), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Key, b.Key))
	})
	return list
}

// forget drops entries that are older than the window. mu is held.
func (s *Slowest) forget(now time.Duration) {
	s.kept = slices.DeleteFunc(s.kept, func(e slowEntry) bool { return now-e.at > slowWindow })
}

// quickest returns the index of the fastest entry. mu is held, and there is an entry.
func (s *Slowest) quickest() int {
	least := 0
	for i := range s.kept {
		if s.kept[i].took < s.kept[least].took {
			least = i
		}
	}
	return least
}

// setBar sets the threshold above which Record keeps requests. mu is held, or s is not shared yet.
func (s *Slowest) setBar() {
	if len(s.kept) < s.places {
		s.bar.Store(microseconds(slowFloor)<<32 | math.MaxUint32)
		return
	}
	oldest := s.kept[0].at
	for _, e := range s.kept {
		oldest = min(oldest, e.at)
	}
	// A request that takes as long as the fastest is not kept, so the bar is the
	// first microsecond above it.
	s.bar.Store(min(microseconds(s.kept[s.quickest()].took)+1, math.MaxUint32)<<32 | min(seconds(oldest+slowWindow)+1, math.MaxUint32))
}

// microseconds of a duration, clamped to 32 bits (71 minutes).
func microseconds(d time.Duration) uint64 {
	return min(uint64(max(d, 0)/time.Microsecond), math.MaxUint32)
}

// seconds of a clock, clamped to 32 bits (136 years).
func seconds(d time.Duration) uint64 {
	return min(uint64(max(d, 0)/time.Second), math.MaxUint32)
}
