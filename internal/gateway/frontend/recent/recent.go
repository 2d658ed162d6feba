// Package recent remembers which documents a frontend's last questions were answered with,
// by their text as clients sent it: a path, a Redis key. Most hits then neither read a key
// out of the text nor look it up in a tier. Whether the document is still good is asked of
// the cache each time ([cache.Cache.Again]), so that nothing here can make an answer older.
//
// What a hit waits for is memory: the slot of the tier's table, its node, the document, its
// form, the form's text. Here it is an entry, and then the document and its body at once.
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
	// The tier has to learn what is in use. It hears of the first questions for each
	// document, which is as far as its frequencies count, and then of one in throughTiers:
	// see TestHitRate.
	firstThrough = 16
	throughTiers = 8
	// MaxBody is the largest document that is kept, in bytes. It bounds what a table may
	// keep alive of documents that the tier has dropped, 32 MiB until its questions come by;
	// of larger ones the look-up is a small part.
	MaxBody = 8 << 10
)

// Table holds 4,096 documents, by text. R is the frontend's word for a resource. A Table must not
// be used concurrently: see [Lanes].
type Table[R any] struct {
	entries [sets * ways]Entry[R] // first, so that each begins on a cache line
	seed    maphash.Seed
	hand    uint
}

// Entry is a question and its answer. It has three cache lines, of which a hit on a short
// text touches two.
type Entry[R any] struct {
	doc *cache.Document

	// Resource is what the text names, and Columns what its key was read by.
	Resource R
	Columns  *[]resource.KeyColumn
	// Body is the document's.
	Body []byte

	length uint8 // of the text
	end    uint8 // of what follows it
	asked  uint32
	id     cache.ResourceID
	text   [maxText]byte
}

// maxText is how long a text and its head may be together. A UUID has 36 bytes, the head of an
// HTTP answer up to 58.
const maxText = 132

// New returns an empty table.
func New[R any]() *Table[R] { return &Table[R]{seed: maphash.MakeSeed()} }

// Find returns the entry of a text if its document is what [cache.Cache.Peek] would answer at
// start. The caller compares Columns. An entry is good until the next call of Remember; who
// answers with it calls [cache.Cache.CountHits].
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

// Remember keeps what [cache.Cache.Peek] has just answered to a text. The head is up to the
// caller. Both are copied.
func (t *Table[R]) Remember(text string, of R, id cache.ResourceID, columns *[]resource.KeyColumn, doc *cache.Document, head string) {
	if len(text)+len(head) > maxText || len(doc.Body()) > MaxBody || doc.Missing() {
		return
	}
	place := t.place(text)
	if place.doc == doc && place.Columns == columns {
		return
	}
	if !place.is(text) {
		// One that is asked for often goes when it is not any more.
		if place.asked /= 2; place.asked >= firstThrough && place.doc.Held() {
			return
		}
		place.asked = 0
	}
	place.doc, place.Resource, place.id, place.Columns, place.Body = doc, of, id, columns, doc.Body()
	place.length = uint8(copy(place.text[:], text))
	place.end = place.length + uint8(copy(place.text[place.length:], head))
}

// place returns where a text is, or else where it may go.
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

// tend lets go of the next document if no tier has it any more.
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

// Head returns what Remember was given. It points into the entry.
func (e *Entry[R]) Head() string { return unsafe.String(&e.text[e.length], int(e.end-e.length)) }
