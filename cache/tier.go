package cache

import "context"

// Tier is a store of documents. The cache decides what may be stored and what
// must go; a tier only keeps, finds and drops documents. All methods must be safe for
// concurrent use.
type Tier interface {
	// Name names this tier in answers and metrics: "memory".
	Name() string
	// Peek returns the document if the tier can return it without waiting for a
	// disk or a network: event loops call only Peek. Nil means that the document
	// is not here.
	Peek(key Key) *Document
	// Get returns the document and may wait. Nil without an error means
	// that the tier does not hold it.
	Get(ctx context.Context, key Key) (*Document, error)
	// Put stores the document, or declines to (too large, budget spent).
	Put(key Key, doc *Document)
	// Remove drops the document of the key.
	Remove(key Key)
	// RemoveIf drops the document of the key if gone returns true.
	RemoveIf(key Key, gone func(*Document) bool)
	// Sweep drops every document for which gone returns true. It may take long.
	Sweep(gone func(Key, *Document) bool)
	// Clear drops everything.
	Clear()
	// Stats returns what the tier holds.
	Stats() TierStats
	// Close frees what the tier holds.
	Close() error
}

// FormKeeper is a tier that holds documents in memory together with their forms.
// Forms have a budget of their own inside the tier's, so that they are dropped
// for lack of room while the documents stay.
type FormKeeper interface {
	// ReserveForm reserves n bytes for a form. If it returns false, the form
	// should be discarded after use.
	ReserveForm(n int) bool
	// ReleaseForm releases n bytes.
	ReleaseForm(n int)
}

// TierStats is what a tier holds at present.
type TierStats struct {
	Documents int64 // documents held, missing rows included
	Bytes     int64 // what they are charged
	Budget    int64 // the limit of Bytes
	Evicted   int64 // documents dropped for lack of room since the start
	FormBytes int64 // of Bytes: forms of documents
	Missing   int64 // of Documents: missing rows
}
