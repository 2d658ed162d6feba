package freshness

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// Options configure a [Checker].
type Options struct {
	// Bound is the freshness bound: how long after its acknowledgement a write may still be missing
	// from answers.
	Bound time.Duration
	// Torn reports whether the parts of a document (the versions of its children) cannot come from
	// the state in which the document itself had version. If nil, all of them must equal version.
	Torn func(version uint64, parts []uint64) bool
}

// Checker collects the logs of a run. Each goroutine uses its own Writer or
// Reader; Check is called when all of them have ended. It uses 32 bytes per read
// and per write.
type Checker struct {
	// Immutable after New.
	options Options

	// Guarded by mu.
	mu      sync.Mutex
	ids     map[string]uint32
	keys    []string
	writers []*Writer
	readers []*Reader
}

// New returns a Checker without entries.
func New(o Options) *Checker {
	if o.Torn == nil {
		o.Torn = func(version uint64, parts []uint64) bool {
			return slices.ContainsFunc(parts, func(p uint64) bool { return p != version })
		}
	}
	return &Checker{options: o, ids: make(map[string]uint32)}
}

func (c *Checker) id(key string) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, ok := c.ids[key]
	if !ok {
		id = uint32(len(c.keys))
		c.ids[key] = id
		c.keys = append(c.keys, key)
	}
	return id
}

// write is one version of one key. A version that was never acknowledged (because its writer was
// killed or the answer was lost) may or may not have been committed.
type write struct {
	version uint64
	begun   int64
	acked   int64 // never if it was not acknowledged
	key     uint32
	deleted bool
}

const never = math.MaxInt64

type outcome uint8

const (
	found outcome = iota
	missing
	failed
)

type read struct {
	start, end int64
	version    uint64
	key        uint32
	outcome    outcome
	torn       bool
}

// Writer logs the writes of one goroutine.
type Writer struct {
	c      *Checker
	ids    map[string]uint32
	writes []write
}

// Writer returns a log for one more goroutine that writes.
func (c *Checker) Writer() *Writer {
	w := &Writer{c: c, ids: make(map[string]uint32)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writers = append(c.writers, w)
	return w
}

// Attempt is a write in progress.
type Attempt struct {
	w  *Writer
	at int
}

// Begin logs that the writer is about to store version of key. It is called
// before the statement is sent.
func (w *Writer) Begin(key string, version uint64) Attempt {
	return w.begin(key, version, Now(), false)
}

// BeginDelete is Begin for a write after which the row is gone; the version is still the next one
// of the key.
func (w *Writer) BeginDelete(key string, version uint64) Attempt {
	return w.begin(key, version, Now(), true)
}

// Initial logs a version that existed before the run began.
func (w *Writer) Initial(key string, version uint64) {
	w.begin(key, version, 0, false).ackAt(0)
}

func (w *Writer) begin(key string, version uint64, at int64, deleted bool) Attempt {
	w.writes = append(w.writes, write{version: version, begun: at, acked: never, key: cached(w.ids, w.c, key), deleted: deleted})
	return Attempt{w, len(w.writes) - 1}
}

// Acked logs that the commit was acknowledged. It must be called immediately afterwards. A write
// that was not acknowledged may or may not be seen.
func (a Attempt) Acked() { a.ackAt(Now()) }

func (a Attempt) ackAt(at int64) { a.w.writes[a.at].acked = at }

// Reader logs the reads of one goroutine.
type Reader struct {
	c     *Checker
	ids   map[string]uint32
	reads []read
}

// Reader returns a log for one more goroutine that reads.
func (c *Checker) Reader() *Reader {
	r := &Reader{c: c, ids: make(map[string]uint32)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readers = append(c.readers, r)
	return r
}

// Found logs a document: start was returned by [Now] before the request was sent,
// version and parts were read from it.
func (r *Reader) Found(key string, start int64, version uint64, parts ...uint64) {
	r.add(read{start: start, end: Now(), version: version, key: cached(r.ids, r.c, key), torn: r.c.options.Torn(version, parts)})
}

// Missing logs the answer that there is no such row.
func (r *Reader) Missing(key string, start int64) {
	r.add(read{start: start, end: Now(), key: cached(r.ids, r.c, key), outcome: missing})
}

// Failed logs a request without an answer about the row, because it was refused or timed out. It is
// counted and proves nothing.
func (r *Reader) Failed(key string, start int64) {
	r.add(read{start: start, end: Now(), key: cached(r.ids, r.c, key), outcome: failed})
}

func (r *Reader) add(one read) { r.reads = append(r.reads, one) }

// cached avoids locking the shared table for keys seen before.
func cached(ids map[string]uint32, c *Checker, key string) uint32 {
	id, ok := ids[key]
	if !ok {
		id = c.id(key)
		ids[key] = id
	}
	return id
}

// history holds the writes of one key, ordered by version. The first element is version 0, the
// state before all writes.
type history struct {
	writes []write
	// ackedFrom[i] is when the first of writes[i:] was acknowledged. With it, a single lookup shows
	// whether a newer version was acknowledged before t.
	ackedFrom []int64
}

// histories returns the history of each key, by its id.
func (c *Checker) histories() ([]history, error) {
	all := make([]history, len(c.keys))
	for id := range all {
		all[id].writes = []write{{deleted: true}}
	}
	for _, w := range c.writers {
		for _, one := range w.writes {
			all[one.key].writes = append(all[one.key].writes, one)
		}
	}
	for id := range all {
		h := &all[id]
		slices.SortStableFunc(h.writes, func(a, b write) int { return cmp.Compare(a.version, b.version) })
		for i := 1; i < len(h.writes); i++ {
			if h.writes[i].version == h.writes[i-1].version {
				return nil, fmt.Errorf("key %q: version %d was logged twice, expected each version once and none of 0", c.keys[id], h.writes[i].version)
			}
		}
		h.ackedFrom = make([]int64, len(h.writes)+1)
		h.ackedFrom[len(h.writes)] = never
		for i := len(h.writes) - 1; i >= 0; i-- {
			h.ackedFrom[i] = min(h.writes[i].acked, h.ackedFrom[i+1])
		}
	}
	return all, nil
}

// overwritten returns when the state after writes[at] was replaced by a newer acknowledged one, or
// never if it was not.
func (h *history) overwritten(at int) int64 { return h.ackedFrom[at+1] }

// seen returns the position of what a read saw, in the interpretation that favors
// the system under test; ok is false if no write explains it.
func (h *history) seen(r read) (at int, ok bool) {
	if r.outcome == found {
		at, ok = slices.BinarySearchFunc(h.writes, r.version, func(w write, v uint64) int { return cmp.Compare(w.version, v) })
		return at, ok && !h.writes[at].deleted
	}
	// Any deletion that had begun explains a missing row; the newest is the
	// most favorable.
	for at = len(h.writes) - 1; at >= 0; at-- {
		if w := h.writes[at]; w.deleted && w.begun <= r.end {
			return at, true
		}
	}
	return 0, false
}
