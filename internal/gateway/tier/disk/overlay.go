package disk

import (
	"sync"
	"sync/atomic"

	"github.com/slipstream-go/slipstream/cache"
)

// entry is the pending state of a key: a document, or nothing.
type entry struct {
	doc   *cache.Document // nil if the key is dropped
	epoch uint32          // of the resource when doc was put
	// gone says that the record in the file is dropped in any case: if the document has to
	// wait for a position, the drop that it replaced does not wait with it.
	gone bool
}

// entryCost is the size of an entry in addition to its key and document: a slot of a map, twice
// while it grows.
const entryCost = 96

func (e entry) cost(key cache.Key) int64 {
	n := int64(entryCost + len(key.ID))
	if e.doc != nil {
		n += int64(len(e.doc.Body()))
	}
	return n
}

// overlay holds the changes that are not in the file yet.
type overlay struct {
	// Immutable.
	most     int64         // bytes of documents
	mostGone int64         // bytes of dropped keys
	wake     chan struct{} // capacity 1: the writer has something to do

	mu sync.RWMutex
	// Guarded by mu.
	pending   map[cache.Key]entry
	writing   map[cache.Key]entry // of the transaction in progress; not changed, only replaced
	docs      int                 // in pending
	bytes     int64               // of documents in pending
	goneBytes int64               // of the other entries in pending
	position  *cache.Position     // the last one reported; nil if none since the last batch
	reached   cache.Tx            // the end of the snapshot of the position in the file, or 0
	void      bool                // everything is dropped, before what is pending
	epochs    []uint32            // of the resources
	dirty     bool                // epochs have changed

	// Atomics. Written with mu held; read by Get, which avoids the lock.
	entries atomic.Int64 // in pending and writing

	// Atomics, written by callers of put.
	declined atomic.Int64
}

func newOverlay(most int64) *overlay {
	return &overlay{
		most: most, mostGone: max(most/2, 1<<20), wake: make(chan struct{}, 1),
		pending: make(map[cache.Key]entry),
	}
}

func (o *overlay) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// find returns the pending state of a key; known is false if the file has to be read. epoch is
// that of the resource, read at the same moment.
func (o *overlay) find(key cache.Key) (e entry, epoch uint32, known bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if int(key.Resource) >= len(o.epochs) {
		return entry{}, 0, true
	}
	epoch = o.epochs[key.Resource]
	if o.entries.Load() > 0 {
		if e, known = o.pending[key]; !known {
			e, known = o.writing[key]
		}
		if known && e.doc != nil && e.epoch != epoch {
			e.doc = nil
		}
	}
	return e, epoch, known
}

// put keeps a document until the next batch, unless there is no room.
func (o *overlay) put(key cache.Key, d *cache.Document) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if int(key.Resource) >= len(o.epochs) {
		return
	}
	e := entry{doc: d, epoch: o.epochs[key.Resource]}
	if o.bytes+e.cost(key) > o.most {
		o.declined.Add(1)
		// The present entry of the key is neither older nor newer than an earlier load: it
		// stays unchanged.
		o.signal()
		return
	}
	o.set(key, e)
	if o.docs >= batchDocuments || o.bytes >= o.most/4 {
		o.signal()
	}
}

// set replaces the entry of a key. Under mu.
func (o *overlay) set(key cache.Key, e entry) {
	if old, there := o.pending[key]; there {
		o.uncount(key, old)
		e.gone = e.gone || old.gone || old.doc == nil
	} else {
		o.entries.Add(1)
	}
	o.pending[key] = e
	if e.doc != nil {
		o.docs++
		o.bytes += e.cost(key)
	} else {
		o.goneBytes += e.cost(key)
	}
}

// uncount undoes the counting of an entry. Under mu.
func (o *overlay) uncount(key cache.Key, e entry) {
	if e.doc != nil {
		o.docs--
		o.bytes -= e.cost(key)
	} else {
		o.goneBytes -= e.cost(key)
	}
}

// drop drops a key, unless its pending document satisfies keep.
func (o *overlay) drop(key cache.Key, keep func(*cache.Document) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if int(key.Resource) >= len(o.epochs) {
		return
	}
	e, waits := o.pending[key]
	known := waits
	if !waits {
		e, known = o.writing[key]
	}
	if known && e.doc == nil {
		return
	}
	if known && keep(e.doc) {
		if waits { // but what the file has is older
			e.gone = true
			o.pending[key] = e
		}
		return
	}
	o.set(key, entry{})
	if o.goneBytes > o.mostGone {
		o.flushGone()
	}
}

// flushGone bounds the memory of dropped keys: beyond it their whole resources are flushed,
// which takes none. Under mu.
func (o *overlay) flushGone() {
	hit := make(map[cache.ResourceID]bool)
	for key, e := range o.pending {
		if e.doc == nil {
			hit[key.Resource] = true
		}
	}
	for r := range hit {
		o.flushResource(r)
	}
}

// flush begins a new epoch of a resource.
func (o *overlay) flush(r cache.ResourceID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if int(r) < len(o.epochs) {
		o.flushResource(r)
	}
}

func (o *overlay) flushResource(r cache.ResourceID) {
	o.epochs[r]++
	o.dirty = true
	for key, e := range o.pending {
		if key.Resource == r {
			o.uncount(key, e)
			delete(o.pending, key)
			o.entries.Add(-1)
		}
	}
	o.signal()
}

// clear drops everything. Under mu.
func (o *overlay) clear() {
	o.entries.Add(-int64(len(o.pending)))
	clear(o.pending)
	o.docs, o.bytes, o.goneBytes, o.position, o.reached, o.void = 0, 0, 0, nil, 0, true
	for i := range o.epochs {
		o.epochs[i]++
	}
	o.dirty = true
	o.signal()
}

// checkpoint records the position up to which everything reported so far is
// complete.
func (o *overlay) checkpoint(p cache.Position) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.position = &p
}

// batch is what one transaction does.
type batch struct {
	void     bool
	position *cache.Position
	epochs   []uint32 // nil if unchanged
	entries  map[cache.Key]entry
	docs     int
	bytes    int64
}

// take moves pending entries to the batch that is written now: all dropped keys, and the
// documents that are not ahead of the position, or without one, of that in the file.
func (o *overlay) take() batch {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := batch{void: o.void, position: o.position, entries: o.pending}
	if o.dirty {
		b.epochs = append([]uint32(nil), o.epochs...)
	}
	o.position, o.void, o.dirty = nil, false, false
	o.pending = make(map[cache.Key]entry)
	o.docs, o.bytes, o.goneBytes = 0, 0, 0
	reached := o.reached
	if b.position != nil {
		reached = b.position.Seen.XMax
	}
	for key, e := range b.entries {
		switch {
		case e.doc == nil:
		case e.epoch != o.epochs[key.Resource]:
			delete(b.entries, key) // flushed since: as if it was never put
			o.entries.Add(-1)
		case e.doc.XMin() > reached || b.docs >= batchDocuments || b.bytes >= o.most/4:
			if delete(b.entries, key); e.gone {
				b.entries[key] = entry{}
			} else {
				o.entries.Add(-1)
			}
			o.set(key, entry{doc: e.doc, epoch: e.epoch})
		default:
			b.docs++
			b.bytes += e.cost(key)
		}
	}
	o.writing = b.entries
	return b
}

// keepPosition restores a position that was not worth a transaction, unless there is a
// newer one.
func (o *overlay) keepPosition(p *cache.Position) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.position == nil && !o.void { // one from before a Void is no longer valid
		o.position = p
	}
}

// written drops the batch, which is in the file.
func (o *overlay) written() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.entries.Add(-int64(len(o.writing)))
	o.writing = nil
}

// failed restores a batch that could not be written: its drops are pending again; the
// documents are lost, which does no harm.
func (o *overlay) failed(b batch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.entries.Add(-int64(len(o.writing)))
	o.writing = nil
	o.void, o.dirty = o.void || b.void, o.dirty || b.epochs != nil
	for key, e := range b.entries {
		if e.doc != nil {
			o.declined.Add(1)
		}
		// An entry of a document becomes a drop, too: an event may since have dropped
		// the record that it would have replaced.
		if int(key.Resource) >= len(o.epochs) {
			continue
		}
		if newer, found := o.pending[key]; found {
			newer.gone = true
			o.pending[key] = newer
		} else {
			o.set(key, entry{})
		}
	}
	if o.goneBytes > o.mostGone {
		o.flushGone()
	}
}

// backlog returns how many documents and entries wait.
func (o *overlay) backlog() (docs int, entries int, bytes int64) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.docs, len(o.pending), o.bytes + o.goneBytes
}
