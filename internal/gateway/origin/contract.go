package origin

import (
	"context"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
)

// This file is the whole contract of an origin: what the gateway requires of a database. The
// packages below this one implement it, and package gateway only uses this contract and the
// functions that open an origin.

// Origin is a database that documents are loaded from. Resources are addressed by index, which is
// their [cache.ResourceID]. All methods except Extend and Retire are safe for concurrent use;
// those two may be called while the others are in use, but not concurrently with each other.
type Origin interface {
	cache.Origin
	Schema
	Administration

	// Prepare checks whether more resources match the database, and changes nothing. Its error
	// holds a [SchemaError] for every resource that does not.
	Prepare(ctx context.Context, more []resource.Resource) (*Addition, error)
	// Extend adds resources that can be loaded from then on, and on which the stream reports
	// soon: see Stream.Follows. Their indexes follow those of the others.
	Extend(*Addition)
	// Retire removes the resources at the indexes: loads of them fail, and the stream withdraws
	// their promise.
	Retire(places []int)

	// Changes returns the stream of changes. An origin has one stream at a time. clock is that
	// of the cache.
	Changes(clock cache.Clock) Stream

	// Close closes the connections to the database. Loads in flight end first.
	Close() error
}

// Schema is what an origin knows about the tables of its resources.
type Schema interface {
	// KeyColumns returns the key columns of the i-th resource, in path order.
	KeyColumns(i int) []resource.KeyColumn
	// Shape returns the shape of the documents of the i-th resource, or nil if it is
	// unknown. The same schema gives the same pointer.
	Shape(i int) *resource.Shape
}

// Administration manages the objects that the database needs so that changes are
// observed.
type Administration interface {
	// Warnings returns what works but will be slow, in sentences.
	Warnings() []string
	// Plan returns the statements that would make the triggers what they should be, in order.
	// It changes nothing.
	Plan(ctx context.Context) ([]Statement, error)
	// Apply runs what Plan returns, in one transaction, and returns it.
	Apply(ctx context.Context) ([]Statement, error)
	// Check returns every object that the promise needs, and its state.
	Check(ctx context.Context) ([]Finding, error)
	// Drop removes everything that Apply ever created, and returns the statements.
	Drop(ctx context.Context) ([]Statement, error)
	// Prune drops objects that neither the resources of the origin nor those in others need.
	// Each element of others is the resources of one configuration. It calls report with
	// each statement after it took effect.
	Prune(ctx context.Context, others [][]resource.Resource, report func(Statement)) error
	// Retention reads what the change table keeps. ok is false if that is unknown: there is no
	// such table, the role may not read it, or the database has no such statistics.
	Retention(ctx context.Context) (r Retention, ok bool, err error)
}

// Sink is what a stream drives; *[cache.Cache] implements it.
type Sink interface {
	cache.Invalidations
	cache.Checkpoints
}

// Stream follows the changes of an origin. All methods are safe for concurrent use.
type Stream interface {
	// Run reports to the sink until ctx ends, and returns its cause. It is called once.
	Run(ctx context.Context, sink Sink) error
	// Wake requests an immediate report, if the stream can report ahead of its schedule.
	Wake()
	// Follows reports whether the stream has reported on all resources.
	Follows() bool
	// Stats returns the counters since the start.
	Stats() Stats
}

// Stats are the counters of a stream since its creation. Fields that do not apply to a database
// are zero.
type Stats struct {
	Polls      int64         // polls that succeeded
	PollErrors int64         // polls that failed
	Events     int64         // invalidations passed to the sink
	Voids      int64         // times that the history broke
	Surveys    int64         // times that the catalogs were read
	Trimmed    int64         // rows of the change table deleted
	Wakes      int64         // notifications, loads and answers that requested a poll
	ClockJumps int64         // times that the clocks of gateway and server diverged
	LastPoll   time.Duration // duration of the last successful poll
	// ToFresh is the time from a change to the moment at which it was applied.
	ToFresh Histogram
	// Retention is what the change table kept when it was trimmed last, or nil before
	// that.
	Retention *Retention
	// Trouble is why the last poll failed, or "" if it did not.
	Trouble string
	// DerivationsFailed counts the times that a resource lost its promise because the
	// documents that its changes concern could not be found.
	DerivationsFailed int64
	// OwnerFaults is the number of objects of ours that belong to the wrong role.
	OwnerFaults int
}
