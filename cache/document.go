package cache

import (
	"sync/atomic"
	"time"
)

// FormSlot names the frontend that a [Form] was made for.
type FormSlot uint8

// Slots of a document, one per frontend.
const (
	FormHTTP   FormSlot = iota // head of an HTTP answer
	FormGzip                   // HTTP answer with the body in gzip
	FormZstd                   // HTTP answer with the body in zstd
	FormThrift                 // struct of Thrift

	formSlots
)

// Form is a document prepared for one frontend, such as its HTTP head. It is
// made on first use, kept with the document and charged to the budget.
type Form struct {
	// Value belongs to the frontend; it must not change once the form is set.
	Value any
	// Size is the memory that Value holds, in bytes.
	Size int
}

// documentOverhead is what a cached document costs beside its body, its key and
// its forms: the Document (96 bytes), and the node and table slot that the
// memory tier keeps for it (measured: TestOverheadPerDocument of internal/gateway/tier/memory).
const documentOverhead = 200

// Document is a JSON body as an origin built it, or the fact that the row does
// not exist, together with the snapshot it was read in. Except for its forms it
// is immutable, and it may be shared by any number of readers.
type Document struct {
	// Immutable after newDocument.
	loadedAt   time.Duration // cache clock when the load began
	generation uint32        // of the resource when the load began
	summed     bool          // the SumSize bytes behind body are the beginning of its SHA-256

	// charge is what the forms are charged to the memory tier, in bytes; below
	// zero while no such tier holds the document. Written by the goroutine that adds or
	// drops a form, and by the tier. It is next to the other fields that Cache.Again
	// reads.
	charge atomic.Int64

	// Immutable after newDocument.
	body []byte // if nil, the row does not exist
	xmin Tx     // every transaction below it was visible

	// Atomics. Written by the first frontend to make a form and by the tier
	// that drops it, read by all.
	forms [formSlots]atomic.Pointer[Form]
}

// notHeld is the charge of a document that no memory tier holds.
const notHeld = -1

// newDocument takes ownership of body.
func newDocument(body []byte, seen Snapshot, loadedAt time.Duration, generation uint32) *Document {
	d := &Document{body: body, xmin: seen.XMin, loadedAt: loadedAt, generation: generation}
	d.charge.Store(notHeld)
	return d
}

// Body returns the JSON, or nil for a missing row. It must not be changed.
func (d *Document) Body() []byte { return d.body }

// SumSize is how much of the SHA-256 of a body is kept, in bytes.
const SumSize = 16

// Sum returns the first SumSize bytes of the SHA-256 of the body, or nil if it is not known. It
// must not be changed.
func (d *Document) Sum() []byte {
	if !d.summed {
		return nil
	}
	return d.body[len(d.body) : len(d.body)+SumSize : len(d.body)+SumSize]
}

// Missing reports whether the row did not exist.
func (d *Document) Missing() bool { return d.body == nil }

// LoadedAt returns when the load of the document began, on the cache's clock.
func (d *Document) LoadedAt() time.Duration { return d.loadedAt }

// XMin returns the part of the document's snapshot that is kept: every transaction
// below it was visible.
func (d *Document) XMin() Tx { return d.xmin }

// Held reports whether a memory tier holds the document: otherwise its forms are
// dropped with the answer that made them.
func (d *Document) Held() bool { return d.charge.Load() >= 0 }

// Form returns the form in the slot, or nil if none was made yet.
func (d *Document) Form(slot FormSlot) *Form { return d.forms[slot].Load() }

// Hold records that a memory tier is about to keep the document, so that its forms
// are charged from now on.
func (d *Document) Hold() { d.charge.CompareAndSwap(notHeld, 0) }

// Unhold records that the memory tier dropped the document, and returns the bytes
// of forms that the tier must release.
func (d *Document) Unhold() (release int) { return max(0, int(d.charge.Swap(notHeld))) }

// DropForms drops all forms; readers that hold one keep it. It returns the bytes
// that the memory tier must release.
func (d *Document) DropForms() (release int) {
	for i := range d.forms {
		if f := d.forms[i].Swap(nil); f != nil && d.recharge(-f.Size) {
			release += f.Size
		}
	}
	return release
}

// recharge adds n to the charge. It returns false if no tier holds the document,
// or if the charge that a negative n takes back was never made.
func (d *Document) recharge(n int) bool {
	for {
		old := d.charge.Load()
		if old < 0 || old+int64(n) < 0 {
			return false
		}
		if d.charge.CompareAndSwap(old, old+int64(n)) {
			return true
		}
	}
}

// keepForm keeps the form with the document in place of old, which may be nil, unless another reader
// was first or keeper has no room, and returns the form to use.
//
// The charge comes before the form: a form that can be seen can be dropped, and
// the goroutine that drops it takes its charge back.
func (d *Document) keepForm(slot FormSlot, old, form *Form, keeper FormKeeper) *Form {
	if d.charge.Load() >= 0 {
		if !keeper.ReserveForm(form.Size) {
			return form
		}
		if !d.recharge(form.Size) {
			keeper.ReleaseForm(form.Size) // the tier dropped the document meanwhile
			return form
		}
	}
	if d.forms[slot].CompareAndSwap(old, form) {
		if old != nil && d.recharge(-old.Size) {
			keeper.ReleaseForm(old.Size)
		}
		return form
	}
	if d.recharge(-form.Size) {
		keeper.ReleaseForm(form.Size)
	} // else the tier dropped the document, and released the charge with it
	if other := d.forms[slot].Load(); other != nil && old == nil {
		return other
	}
	return form // the other form was dropped meanwhile, or may be as old
}

// Cost is what the document without its forms is charged under key: the memory
// that would be free without it, in bytes.
func (d *Document) Cost(key Key) int { return documentOverhead + cap(d.body) + len(key.ID) }

// misses reports whether a change by tx may be absent from the document. It is
// exact for an origin that commits in order; for others it may wrongly return
// true, because a document keeps only the XMin of its snapshot (8 bytes).
func (d *Document) misses(tx Tx) bool { return tx >= d.xmin }

// NewDocument makes a document that was read in seen by a load that began at loadedAt on the
// cache's clock, for tests of tiers; a cache makes its own. It takes ownership of body.
func NewDocument(body []byte, seen Snapshot, loadedAt time.Duration) *Document {
	return newDocument(body, seen, loadedAt, 0)
}
