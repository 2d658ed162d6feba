// Package cache is the read-through core: documents, tiers, loads, tokens and
// the freshness horizon. It knows no database, no protocol and no clock; an
// [Origin] loads, an origin's stream drives [Invalidations], frontends call
// [Cache.Peek] and [Cache.Get].
//
// # The promise
//
// A GET that begins more than X after a writer's commit was acknowledged never
// returns the older version. Let the GET begin at g, and let a commit be
// acknowledged at c < g-X.
//
//   - Served from a tier: the horizon h was read first, and h >= g-X > c, so the
//     commit's invalidation had been applied before the document was looked up.
//     Applying it removed every stored document whose snapshot may miss the
//     commit, and left a tombstone, so that no load that misses it was stored
//     later.
//   - Served from a tier after a wait (policy Verify): the same, only that the
//     horizon that is read first is a later one.
//   - Served from a tier without a promise: the document's load began at
//     b >= g-X, and its snapshot was taken after b > c.
//   - From a load that began at b >= g-X: its snapshot was taken after b > c.
//   - From an older load: the horizon covered g-X when the GET joined, and no
//     change of the key had been applied since the load began. So the commit
//     was either not of this key or applied before the load began, and applied
//     changes are visible to later snapshots.
//
// The clock must be read after the request was (so that now >= g), and must count
// suspends.
//
// # Roles
//
// One goroutine drives Invalidations. Any number call Peek and Get. Loads run on
// goroutines of the cache, at most MaxLoads a resource; callers only wait.
// A document handed out stays valid for as long as it is held.
//
// # Files
//
// cache.go has the configuration and the shards, resources.go the set of resources; get.go and
// many.go answer, verify.go waits for the horizon, look.go asks the stores, flight.go and loader.go
// load; invalidate.go and tombstone.go apply what the stream says; store.go keeps the list of
// stores, which outlive the process;
// recent.go remembers the last events and samples hits for checks.
package cache
