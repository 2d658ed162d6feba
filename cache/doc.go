// Package cache is the read-through core: documents, tiers, loads, tokens and the freshness
// horizon. It is independent of databases, protocols and clocks; an [Origin] loads, an origin's
// stream drives [Invalidations], frontends call [Cache.Peek] and [Cache.Get].
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
//   - Served from a tier after a wait (policy Verify): the same argument, with a later horizon.
//   - Served from a tier without a promise: the document's load began at
//     b >= g-X, and its snapshot was taken after b > c.
//   - From a load that began at b >= g-X: its snapshot was taken after b > c.
//   - From an older load: the horizon covered g-X when the GET joined, and no
//     change of the key had been applied since the load began. So the commit
//     was either not of this key or applied before the load began, and applied
//     changes are visible to later snapshots.
//
// The clock must be read after the request has been read (so that now >= g), and must not stop
// while the machine is suspended.
//
// # Rules
//
// Let a GET begin at g, and a commit be acknowledged at c < g-X. The mutants of
// internal/testkit/mutants refer to these numbers.
//
//  1. Token. Every load returns the snapshot that it read under ([Snapshot]). A document is stored
//     only if every known invalidating transaction of its key is visible in that snapshot
//     (tombstones.allow). SQLite commits in the order of the ids of the change table, so there the
//     snapshot is one number; the type is PostgreSQL's, because PostgreSQL commits in any order.
//  2. Horizon. A stream notes the time, then reads what changed, applies all of it, and then moves
//     the horizon to that time. A tier is queried only while start - horizon <= X. After that the
//     policy of the resource decides: load (the default), wait for the stream (Verify), serve the
//     document marked as stale, or answer with an error, which is 503 over HTTP.
//  3. Completeness of the stream. Before the horizon moves, the same transaction shows that the
//     triggers are those that the configuration needs. While they are not, the resource has no
//     promise: no document of it is stored or served from a tier, and /ready is 503 and says why.
//     When the promise is regained, what was loaded meanwhile is dropped.
//  4. Joining. A GET shares a load that began no earlier than g-X, or an older one if the horizon
//     covers g-X and no change of the key was applied since the load began. Otherwise it waits for
//     the next load.
//  5. History. If another file is at the path, or if the last known row of the change table is gone
//     or has another nonce (after a restore), everything is dropped, and there is no horizon until
//     the next complete poll (Void).
//
// Without a promise a document is served while g - loadedAt <= X. Its snapshot is later than the
// start of its load, b >= g-X > c: only the age keeps the bound, at the price of one load every X.
// What the stream reports about such a resource takes effect as for all others, but no load is
// joined by the second half of rule 4, since the horizon says nothing about it.
//
// # The life of a GET
//
//  1. [Cache.Peek] checks whether the horizon holds for the start of the request. Only then does it
//     look for the document in the tiers, and check that the document is of the present generation
//     of its resource and, if it stands for a missing row, younger than 60 s. The horizon of a
//     resource without a promise is not checked: its documents are served until X after their load
//     began.
//  2. If the horizon is too old, the policy decides. With Verify, verify (verify.go) asks the
//     stream for a poll immediately and waits until the horizon covers the start, at most for the
//     load timeout. Then it looks at the tiers again, after reading the horizon. One poll verifies
//     the whole cache, so 10,000 waiting GETs cost one statement, where Reload costs as many
//     documents. If the document is gone by then, the promise was lost, or the history was voided,
//     the document is loaded. Waiters block on a channel that the first of them makes and that
//     Advance closes (10 ns if no caller waits). They get the channel before they read the horizon.
//  3. [Cache.Get] calls join (flight.go) for a document that no tier has. A load in flight is
//     shared if it is fresh enough (rule 4). Otherwise the callers of the key share one lookup in
//     the stores, which the first of them begins if the horizon holds. If no store has the
//     document, a flight is queued at the loader of the resource; at most two flights of a key run
//     at a time.
//  4. The loader (loader.go) takes everything queued, up to 256 keys, from each client in turn
//     (internal/fair), whenever one of its 4 statements is free. A client is an address, or an IPv6
//     network of 64 bits; a key that several clients wait for is in the queue of each. When the
//     queue is full, the client with the most keys loses its youngest (ErrOverloaded), so a flood
//     of keys delays only itself. There is no timer: a single miss leaves immediately, and under
//     load batches grow automatically. A statement that fails is retried in halves, each with a
//     quarter of the time, until the key at fault fails alone. That key is loaded alone for 10 s,
//     and such keys take at most half of the statements.
//  5. settle stores the document, under the shard's lock, if no known change is missing from it. Then
//     the callers wake. Each caller has its own deadline; errors are never cached.
//
// # Tombstones and flushes
//
// Tombstones are needed only by loads that began before some snapshot of the stream showed the
// change. So there are two generations. The young one is closed when the stream's snapshot shows
// all of it, and dropped when every statement that had begun by then (the ledger) has ended. If
// tombstones take more than 32 MiB, they are dropped immediately, and loads in flight are not
// stored.
//
// The flush of a resource is a generation number that each document carries; the memory is swept in
// the background.
//
// # Stores
//
// Stores (docs/decisions/0011-disk-tier.md) are tiers that outlive the process. There may be any
// number of them after memory, queried in the order of their distance; the gateway has one, the
// disk tier. A store holds its documents together with a position of the stream, and nothing that
// is ahead of that position. The argument for what it answers is that of a tier, with four
// additions:
//
//   - After a start, a store is silent until the stream has processed every change since the
//     store's own position (Waiting, Checkpoint). The history, and a digest of each resource's
//     tables and triggers, must be those of the position. Stores are resumed one after the other:
//     with one position for all, the lowest of theirs, the histories of the others would not be
//     checked.
//   - While the process runs, Invalidate, Remove and Flush are in force when they return, because
//     reads look into the overlay first.
//   - What a store gives to memory and to nearer stores is stored like a load (Cache.promote). The
//     lookup is a statement of the ledger, so the tombstones that it may need are kept; generation
//     and purges are compared under the shard's lock. Then every change that was applied is in the
//     document, and each later one is reported to the nearer store after its Put, which is the same
//     guarantee that the nearer store has for a loaded document. What a store returns while a flush
//     or a purge has not reached all stores is not kept.
//   - A lookup is shared (look.go). Callers of a key join before a store is queried. The first of
//     them queries without changing goroutines, and GetMany queries each store once for all its
//     keys. Even a lookup that began late enough may find an old document. So callers other than
//     the first get the document only if it can be stored at the end, under the shard's lock,
//     because each of them has read its own horizon before that.
//
// Callers that find nothing in the stores load. A future source of documents from the past that has
// no position in the stream must be queried there, in loader.load.
//
// A purge waits for the store's Sync before it is answered with 200 (gateway/purge.go): what it
// dropped was wrong, so it must not come back after a kill. Purges that come before the store is
// open are kept until it is.
//
// # Roles
//
// One goroutine drives Invalidations. Any number of goroutines call Peek and Get. Loads run on
// goroutines of the cache, at most MaxLoads a resource; callers only wait. A document handed out
// stays valid for as long as it is held.
//
// # Files
//
// cache.go has the configuration and the shards, resources.go the set of resources; get.go and
// many.go answer, verify.go waits for the horizon, look.go queries the stores, flight.go and
// loader.go load; invalidate.go and tombstone.go apply what the stream reports; store.go keeps the
// list of stores, which outlive the process; recent.go remembers the last events and samples hits
// for checks.
package cache
