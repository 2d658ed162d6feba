// Package recent remembers the documents of a frontend's recent answers, by the text of the
// request: a path, or a Redis key. Then most hits neither parse a key nor look it up in a
// tier. The cache verifies each time that the document is still valid ([cache.Cache.Again]),
// so this package cannot make an answer older.
//
// What a hit waits for is memory: the slot of the tier's table, its node, the document, its
// form, the form's text. Here it is an entry, and then the document and its body in parallel.
// Measured: docs/decisions/0008.
package recent

import (
	"hash/maphash"
	"time"
	"unsafe"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
)

const (
	sets = 2048 // a power of two
	ways = 2
	// The tier has to learn which documents are in use. It sees the first requests for each
	// document, up to the limit of its frequency counters, and then one in throughTiers: see
	// TestHitRate.
	firstThrough = 16
	throughTiers = 8
	// MaxBody is the largest document that is kept, in bytes. It bounds the memory of dropped
	// documents that a table may keep alive, 32 MiB until their entries are revisited; for
	// larger documents the lookup is a small part of the cost.
	MaxBody = 8 << 10
)

// Table holds 4,096 documents, by text. R is the frontend's type for a resource. A Table is not safe
// for concurrent use: see [Lanes].
type Table[R any] struct {
	entries [sets * ways]Entry[R] // first, so that each begins on a cache line
	seed    maphash.Seed
	hand    uint
}

// Entry is the text of a request and its answer. It has three cache lines, of which a hit on
// a short text touches two.
type Entry[R any] struct {
	doc *cache.Document

	// Resource is the one that the text names, and Columns those with which its
	// key was parsed.
	Resource R
	Columns  *[]resource.KeyColumn
	// Body is that of the document, or its form.
	Body []byte

	length uint8 // of the text
	end    uint8 // of the head after it
	asked  uint32
	id     cache.ResourceID
	text   [maxText]byte
}

// maxText is the maximum length of a text and its head together. A UUID has 36 bytes, the head of
// an HTTP answer up to 58.
const maxText = 132

// New returns an empty table.
func New[R any]() *Table[R] { return &Table[R]{seed: maphash.MakeSeed()} }

// Find returns the entry of a text if its document is what [cache.Cache.Peek] would return at
// start. The caller compares Columns. An entry is valid until the next call of Remember; a
// caller that answers with it calls [cache.Cache.CountHits].
func (t *Table[R]) Find(c *cache.Cache, text string, start time.Duration) *Entry[R] {
	set := t.set(text)
	for i := range set {
		e := &set[i]
		if !e.is(text) {
			continue
		}
		if e.asked++; e.asked < firstThrough || e.asked%throughTiers == 0 || !c.Again(e.id, e.doc, start) {
			break
		}
		return e
	}
	t.tend()
	return nil
}

// Remember keeps the document that [cache.Cache.Peek] has just returned for a text. The caller
// chooses the head. Both are copied.
func (t *Table[R]) Remember(text string, of R, id cache.ResourceID, columns *[]resource.KeyColumn, doc *cache.Document, head string) {
	t.remember(text, of, id, columns, doc, doc.Body(), head)
}

// RememberForm is Remember with the bytes of a form of the document in place of its body. The cache must keep
// the form with the document, so that its bytes are charged as long as the document is held.
func (t *Table[R]) RememberForm(text string, of R, id cache.ResourceID, columns *[]resource.KeyColumn, doc *cache.Document, form []byte) {
	t.remember(text, of, id, columns, doc, form, "")
}

func (t *Table[R]) remember(text string, of R, id cache.ResourceID, columns *[]resource.KeyColumn, doc *cache.Document, body []byte, head string) {
	if len(text)+len(head) > maxText || len(doc.Body()) > MaxBody || len(body) > MaxBody || doc.Missing() {
		return
	}
	place := t.place(text)
	if place.doc == doc && place.Columns == columns && unsafe.SliceData(place.Body) == unsafe.SliceData(body) {
		return
	}
	if !place.is(text) {
		// A popular entry is replaced once it is no longer popular.
		if place.asked /= 2; place.asked >= firstThrough && place.doc.Held() {
			return
		}
		place.asked = 0
	}
	place.doc, place.Resource, place.id, place.Columns, place.Body = doc, of, id, columns, body
	place.length = uint8(copy(place.text[:], text))
	place.end = place.length + uint8(copy(place.text[place.length:], head))
}

// place returns the entry of a text, or else the entry that it may replace.
func (t *Table[R]) place(text string) *Entry[R] {
	set := t.set(text)
	place := &set[t.hand%ways]
	for i := range set {
		e := &set[i]
		if e.is(text) {
			return e
		}
		if e.doc == nil {
			place = e
		}
	}
	return place
}

// tend drops the next document if no tier has it anymore.
func (t *Table[R]) tend() {
	t.hand++
	if e := &t.entries[t.hand%uint(len(t.entries))]; e.doc != nil && !e.doc.Held() {
		*e = Entry[R]{}
	}
}

func (t *Table[R]) set(text string) []Entry[R] {
	first := maphash.String(t.seed, text) % sets * ways
	return t.entries[first:][:ways:ways]
}

func (e *Entry[R]) is(text string) bool {
	return int(e.length) == len(text) && e.doc != nil && string(e.text[:e.length]) == text
}

// Document returns the document.
func (e *Entry[R]) Document() *cache.Document { return e.doc }

// Head returns the head that was passed to Remember. It points into the entry.
func (e *Entry[R]) Head() string { return unsafe.String(&e.text[e.length], int(e.end-e.length)) }
