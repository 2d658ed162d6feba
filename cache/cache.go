package cache

import (
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Policy says how a GET is answered while the horizon is too old, so that a cached
// document may be older than promised.
type Policy uint8

// Policies.
const (
	Reload      Policy = iota // load it: fresh, at the origin's speed
	ServeStale                // serve what is cached, marked stale
	Unavailable               // refuse with ErrStale
	// Verify waits until the stream has caught up, at most LoadTimeout, and
	// then answers from cache or loads: one poll of the stream instead of a
	// load for every document. Needs Config.Wake, else it is Reload.
	Verify
)

// Resource says how the documents of one resource are loaded and served. The
// zero value of a field means its default.
type Resource struct {
	Name string
	// Freshness is the X of the promise (default 1 s): a GET that begins more
	// than X after a commit was acknowledged never returns the older version.
	Freshness time.Duration
	// NoPromise says that changes of the documents need not be observed. A
	// document is served for Freshness after its load began and is then loaded
	// again, whatever the stream reports; only its age is bounded. Events that
	// do arrive still take effect. Policy is ignored.
	NoPromise bool
	// Policy applies while the promise cannot be kept from the cache.
	Policy Policy
	// MissingTTL is how long a missing row is remembered (default 60 s;
	// negative: not at all).
	MissingTTL time.Duration
	// MaxBatch is how many keys one statement may load (default 256).
	MaxBatch int
	// MaxLoads is how many statements may run concurrently (default 4).
	MaxLoads int
	// MaxQueue is how many keys may wait for a statement (default 65,536);
	// the next one gets ErrOverloaded.
	MaxQueue int
	// LoadTimeout bounds one statement (default 5 s).
	LoadTimeout time.Duration
	// AloneFor is how long a key whose statement failed is loaded in a separate
	// statement, so that it cannot fail others (default 10 s).
	AloneFor time.Duration
}

func (r Resource) withDefaults() Resource {
	setDefault(&r.Freshness, time.Second)
	if r.MissingTTL == 0 {
		r.MissingTTL = time.Minute
	}
	setDefault(&r.MaxBatch, 256)
	setDefault(&r.MaxLoads, 4)
	setDefault(&r.MaxQueue, 1<<16)
	setDefault(&r.LoadTimeout, 5*time.Second)
	setDefault(&r.AloneFor, 10*time.Second)
	return r
}

func setDefault[T int | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Config configures a [Cache].
type Config struct {
	Resources []Resource
	// MaxResources bounds the resources, including those that [Cache.Add] adds later
	// (default: no more than Resources). A slot costs 8 bytes.
	MaxResources int
	Origin       Origin
	// Tiers are queried in order. Peek of the first must find everything that
	// the tier holds, as it does for memory.
	Tiers []Tier
	Clock Clock
	// StoreOnly keeps documents that a [Store] holds out of the tiers. Nearer stores
	// still get them.
	StoreOnly bool
	// MaxTombstones bounds the invalidations remembered for loads in flight, in
	// bytes (default 32 MiB, some 200,000 keys). Beyond it, loads in flight are
	// not stored.
	MaxTombstones int
	// LoadLag is how old the data that [Origin.Load] reads may be when Load is called
	// (default 0): an origin of several hosts may not know yet that another one has
	// become the primary. A load counts as begun that much earlier, so callers that
	// join it, and documents that are served by their age, stay within Freshness. It
	// must be less than the Freshness of every resource.
	LoadLag time.Duration
	// Wake asks the stream to report immediately: to call Advance, as soon as it can,
	// with a horizon that is later than this call of Wake. It must be safe for
	// concurrent use and must not block. If nil, policy Verify behaves as Reload.
	Wake func()
}

// noHorizon is the horizon before the first Advance and after a Void.
const noHorizon = math.MinInt64

// Cache serves documents from tiers, loads what they lack, and keeps the
// promise: see the package comment for the argument. All methods are safe for
// concurrent use, except those of [Invalidations], which one goroutine calls.
//
// Lock order: shard.mu, then loader.mu or ledger.mu, then a tier's own locks.
type Cache struct {
	// Immutable after New.
	resources     []*resourceState // elements are written by Add, before any caller has their ID
	origin        Origin
	tiers         []Tier
	clock         Clock
	maxTombstones int64
	seed          maphash.Seed
	wake          func()          // Config.Wake, may be nil
	loadLag       time.Duration   // Config.LoadLag
	ctx           context.Context // canceled by Close
	cancel        context.CancelFunc

	forms     FormKeeper // the first tier, if it implements FormKeeper
	storeOnly bool       // Config.StoreOnly

	shards   [64]shard
	ledger   ledger
	sweeping sync.Mutex     // held to begin a sweep, to add a resource or a store and to set closed: none of these begins after Close has locked it
	listing  sync.Mutex     // held to read stats, and to choose the resources that are in them
	work     sync.WaitGroup // the goroutines of loaders and sweeps; Close waits
	moved    broadcast      // the horizon moved, or a promise was lost or everything was dropped
	recent   recent

	// Owned by the goroutine that drives Invalidations.
	unseen   unseen // transactions of the young tombstones that no snapshot has shown yet
	closing  bool   // an old generation of tombstones waits for loads to end
	oldMark  uint64 // statements at or below may need the old generation
	overflow bool   // tombstones were dropped; stores are refused

	// Atomics. Written by the goroutine that drives Invalidations, read by all.
	horizon    atomic.Int64 // time.Duration on clock, or noHorizon
	sampler    sampler
	storeFrom  atomic.Uint64
	voids      atomic.Int64
	voidReason atomic.Pointer[string]

	// Atomics. Written by the goroutine that adds or drops a tombstone, requests
	// a sweep or closes the cache.
	tombstoneCount atomic.Int64
	tombstoneSize  atomic.Int64
	sweepsWanted   atomic.Int64
	count          atomic.Int64 // number of resources; written by Add
	closed         atomic.Bool
	storeList      atomic.Pointer[[]*attached] // see stores; written by Attach and Detach

	// Guarded by sweeping.
	lastStore uint64 // number of the store that was attached last
}

// resourceState is the state of a resource of a running cache.
type resourceState struct {
	// Immutable after New and Add.
	Name      string
	NoPromise bool
	id        ResourceID
	loader    *loader

	terms

	counters resourceCounters

	// Owned by the goroutine that drives Invalidations.
	told bool // SetPromise was called

	// Atomics. Written by the goroutine that drives Invalidations (generation
	// also by Purge), read by all.
	generation atomic.Uint32          // documents of an earlier one are gone
	flushing   atomic.Int32           // flushes that have not reached all stores yet
	flushedBy  atomic.Uint64          // greatest Tx of an event for all documents
	hidden     atomic.Bool            // not in the stats; written by Add and Publish
	broken     atomic.Pointer[string] // why the stream's horizon does not apply here; nil while there is a promise
}

// shard holds the loads and recent invalidations of a part of the keys.
type shard struct {
	// Guarded by mu.
	mu      sync.Mutex
	flights map[Key]*keyFlights
	looks   map[Key]*look // the IDs are strings of the waiting callers, not copies
	tombs   tombstones

	// Atomics. Written with mu held, by store and by Purge; read by Get.
	settled [settledSlots]atomic.Uint32
	purges  atomic.Uint32 // keys purged
	purging atomic.Int32  // purges that have not reached all stores yet
}

// New returns a cache without a horizon: it serves from its tiers only after the
// stream of the origin has called Advance.
func New(config Config) (*Cache, error) {
	switch {
	case config.Origin == nil:
		return nil, fmt.Errorf("cache: no origin")
	case config.Clock == nil:
		return nil, fmt.Errorf("cache: no clock")
	case len(config.Tiers) == 0:
		return nil, fmt.Errorf("cache: no tier")
	}
	setDefault(&config.MaxTombstones, 32<<20)
	c := &Cache{
		origin:        config.Origin,
		tiers:         config.Tiers,
		clock:         config.Clock,
		maxTombstones: int64(config.MaxTombstones),
		wake:          config.Wake,
		loadLag:       config.LoadLag,
		seed:          maphash.MakeSeed(),
		forms:         noForms{},
		storeOnly:     config.StoreOnly,
	}
	if keeper, ok := config.Tiers[0].(FormKeeper); ok {
		c.forms = keeper
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.horizon.Store(noHorizon)
	for i := range c.shards {
		c.shards[i].flights = make(map[Key]*keyFlights)
		c.shards[i].looks = make(map[Key]*look)
	}
	c.resources = make([]*resourceState, max(len(config.Resources), config.MaxResources))
	for i, r := range config.Resources {
		c.resources[i] = c.newResource(r, ResourceID(i))
	}
	c.count.Store(int64(len(config.Resources)))
	return c, nil
}

// Close ends all loads with ErrClosed and closes the tiers and the stores. The stream must be
// stopped first.
func (c *Cache) Close() error {
	c.sweeping.Lock()
	closed := c.closed.Swap(true)
	c.sweeping.Unlock()
	if closed {
		return nil
	}
	c.cancel()
	for _, r := range c.known() {
		r.loader.abandon()
	}
	c.work.Wait()
	var first error
	for _, t := range c.tiers {
		if err := t.Close(); err != nil && first == nil {
			first = fmt.Errorf("cache: close tier %s: %w", t.Name(), err)
		}
	}
	for _, a := range c.stores() {
		if !c.Detach(a.Store) {
			continue // the caller that detached it closes it
		}
		if err := a.Close(); err != nil && first == nil {
			first = fmt.Errorf("cache: close tier %s: %w", a.Name(), err)
		}
	}
	return first
}

// Now reads the clock of the cache. A frontend reads it after the read that
// brought the request, and passes it to Peek and Get as the request's time.
func (c *Cache) Now() time.Duration { return c.clock() }

func (c *Cache) shardOf(key Key) *shard {
	return &c.shards[c.hash(key)%uint64(len(c.shards))]
}
