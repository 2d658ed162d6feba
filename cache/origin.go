package cache

import (
	"context"
	"errors"
	"time"
)

// Clock returns the time since some fixed moment. It must never go backwards
// and must count the time during which the machine was suspended
// (CLOCK_BOOTTIME on Linux): a document that was fresh before a suspend is not
// fresh after it.
type Clock func() time.Duration

// ResourceID is the index of a resource in the slice passed to [New].
type ResourceID uint32

// Key names one document. ID is the canonical form of its key columns
// (see gateway/resource); two spellings of one key never give two IDs.
type Key struct {
	Resource ResourceID
	ID       string
}

// Origin is where documents are loaded from.
type Origin interface {
	// Load reads the documents of ids, all in one snapshot that is taken
	// after the call began. The result has one Loaded per id, in the same order.
	// An error means that nothing was loaded; if it wraps ErrUnavailable, any
	// other statement would fail too; any other error may be caused by one of the
	// ids, and the cache then loads them in halves. Load must be safe for
	// concurrent use.
	Load(ctx context.Context, resource ResourceID, ids []string) (Batch, error)
}

// Batch is what one Load returned.
type Batch struct {
	// Snapshot is what the statement saw. The zero Snapshot sees nothing, not
	// even a transaction 0: the documents are served, but not stored, unless their
	// resource has no promise, so that their age is their bound.
	Snapshot Snapshot
	Docs     []Loaded
}

// Loaded is one document as the origin built it. The zero value is a missing row.
type Loaded struct {
	// Body is the JSON document, or nil when the row does not exist. The cache
	// owns it from then on.
	Body []byte
	// Err is set if only this document cannot be returned, such as one that is
	// larger than the limit.
	Err error
}

var (
	// ErrUnavailable is wrapped by errors of an origin that cannot be
	// reached or cannot answer any request at present.
	ErrUnavailable = errors.New("origin unavailable")
	// ErrTooLarge is wrapped by the error of a document above the size limit.
	ErrTooLarge = errors.New("document too large")
	// ErrOverloaded is returned when too many keys already wait for a load.
	ErrOverloaded = errors.New("too many loads waiting")
	// ErrStale is returned for a resource with policy Unavailable while the
	// freshness promise cannot be kept.
	ErrStale = errors.New("freshness cannot be promised")
	// ErrClosed is returned after the cache is closed.
	ErrClosed = errors.New("cache closed")
)

// Event is one invalidation: transaction Tx changed the document Key, or, if
// All is set, possibly every document of Key.Resource.
type Event struct {
	Key Key
	Tx  Tx
	All bool
}

// Invalidations is what the stream of an origin drives; *[Cache] implements it.
// One goroutine calls it, in the order of the stream.
type Invalidations interface {
	// Apply makes the events take effect: when it returns, no document that
	// misses one of them is served from a tier or will be stored in one.
	Apply(events []Event)
	// Advance moves the horizon: every event of a transaction that was
	// acknowledged before horizon (a time of the cache's Clock) has been
	// applied. seen is a snapshot read no later than this call.
	Advance(horizon time.Duration, seen Snapshot)
	// Void drops everything: the history that the documents were read from
	// is not the present one (file replaced, restore, failover, lost events).
	// The horizon is gone until the next Advance.
	Void(reason string)
	// Retract removes the horizon until the next Advance: the time that it was set to
	// has turned out to be uncertain. Nothing is dropped.
	Retract()
	// SetPromise says whether the stream observes every change of the resource.
	// While it does not, the horizon does not hold for it, and why says what is
	// missing. Taking the promise away drops its documents.
	SetPromise(resource ResourceID, ok bool, why string)
}
