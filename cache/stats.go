package cache

import (
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/striped"
)

// resourceCounters count what happened to one resource. All are written where the
// event happens and read by Stats.
type resourceCounters struct {
	hits   striped.Counter
	misses striped.Counter

	joined      atomic.Int64
	statements  atomic.Int64
	loaded      atomic.Int64
	failed      atomic.Int64
	halved      atomic.Int64
	refused     atomic.Int64
	stale       atomic.Int64
	verified    atomic.Int64
	reloaded    atomic.Int64
	unavailable atomic.Int64
	overloaded  atomic.Int64
	events      atomic.Int64
	flushes     atomic.Int64
	inFlight    atomic.Int64
}

// ResourceStats is what happened to one resource since the start, and what is
// in flight.
type ResourceStats struct {
	Name        string
	Hits        int64 // answers from a tier
	Misses      int64 // answers that needed a load
	Joined      int64 // of the misses: those that shared a load of another request
	Statements  int64 // statements sent to the origin
	Loaded      int64 // documents that statements brought, missing rows included
	Failed      int64 // keys that failed to load
	Halved      int64 // statements that failed and were retried in halves
	Refused     int64 // loaded documents not stored, because a newer change was known
	Stale       int64 // answers served marked stale
	Unavailable int64 // answers refused because the promise could not be kept
	Verified    int64 // of the hits: those that waited for the stream to vouch for them
	Reloaded    int64 // GETs that loaded because the promise could not be kept from the cache
	Overloaded  int64 // answers refused because too many keys waited
	Events      int64 // invalidations of single documents
	Flushes     int64 // invalidations of the whole resource
	InFlight    int64 // keys being loaded now
	Queued      int64 // keys that wait for a statement now
	QueueLimit  int64 // how many may, [Resource.MaxQueue]
	Promised    bool  // whether the stream observes every change
	NoPromise   bool  // whether the resource is declared without a promise
	Why         string
}

// Stats is a snapshot of the cache's counters.
type Stats struct {
	Resources []ResourceStats
	Tiers     []NamedTierStats
	// HorizonAge is the age of the moment up to which the invalidations are known
	// to be complete; negative when there is no horizon at all.
	HorizonAge time.Duration
	// Tombstones is the number of recent invalidations that are remembered.
	Tombstones int64
	// Voids counts how often everything was dropped, VoidReason is the last cause.
	Voids      int64
	VoidReason string
}

// NamedTierStats are the stats of one tier.
type NamedTierStats struct {
	Name string
	TierStats
}

// Stats returns a snapshot whose parts are read one after the other.
func (c *Cache) Stats() Stats {
	s := Stats{
		HorizonAge: -1,
		Tombstones: c.tombstoneCount.Load(),
		Voids:      c.voids.Load(),
	}
	if h := c.horizon.Load(); h != noHorizon {
		s.HorizonAge = c.clock() - time.Duration(h)
	}
	if why := c.voidReason.Load(); why != nil {
		s.VoidReason = *why
	}
	c.listing.Lock()
	for _, r := range c.known() {
		if !r.hidden.Load() {
			s.Resources = append(s.Resources, r.stats())
		}
	}
	c.listing.Unlock()
	for _, t := range c.tiers {
		s.Tiers = append(s.Tiers, NamedTierStats{t.Name(), t.Stats()})
	}
	c.toStores(func(t Store) { s.Tiers = append(s.Tiers, NamedTierStats{t.Name(), t.Stats()}) })
	return s
}

func (r *resourceState) stats() ResourceStats {
	n := &r.counters
	s := ResourceStats{
		Name:        r.Name,
		Hits:        n.hits.Sum(),
		Misses:      n.misses.Sum(),
		Joined:      n.joined.Load(),
		Statements:  n.statements.Load(),
		Loaded:      n.loaded.Load(),
		Failed:      n.failed.Load(),
		Halved:      n.halved.Load(),
		Refused:     n.refused.Load(),
		Stale:       n.stale.Load(),
		Unavailable: n.unavailable.Load(),
		Verified:    n.verified.Load(),
		Reloaded:    n.reloaded.Load(),
		NoPromise:   r.NoPromise,
		Overloaded:  n.overloaded.Load(),
		Events:      n.events.Load(),
		Flushes:     n.flushes.Load(),
		InFlight:    n.inFlight.Load(),
		Queued:      int64(r.loader.pending()),
		QueueLimit:  int64(r.settings.Load().MaxQueue),
	}
	if why := r.broken.Load(); why != nil {
		s.Why = *why
	} else {
		s.Promised = true
	}
	return s
}
