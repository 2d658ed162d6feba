package gateway

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/httpfront"
)

// canaryConfig says what a canary watches. All but Interval must be set.
type canaryConfig struct {
	// Interval is the time between two samples. If zero, it defaults to 1 s; if
	// negative, there is no canary.
	Interval time.Duration
	Cache    *cache.Cache
	Origin   cache.Origin
	// Resource returns a resource with its defaults, or nil if it is no longer served.
	Resource func(cache.ResourceID) *config.Resource
	// Path formats a key as its clients do.
	Path func(cache.Key) string
	// Purge drops a document, and returns why that may not outlive the process, or "" if
	// it does.
	Purge func(context.Context, cache.Key) (pending string)
	Log   *slog.Logger
}

// canary checks in production that the promise is kept.
//
// Once a second (Interval) it takes one key that was just answered from the cache
// (Cache.Sample: a hit pays one atomic load for it, on the horizon's cache line) and
// reads it again through the origin, past the cache. If the cached document differs,
// a change was committed between the two, by the end e of that read. A GET that begins
// after e + X + 250 ms must not get the old document: writers learn of their commit a
// little after it is visible to all. If it would, the canary increments
// slipstream_canary_stale_total, logs an error with both entity tags, both tokens and
// the last events of the key (Cache.Recent, a ring of 4,096), and purges the document.
//
// It reports a document only if the same object was cached before its own read began
// and is still cached at the end. If two reads overlap, neither their start times nor
// the one number that is kept of a snapshot shows which is older. So it misses a stale
// document that was loaded at that moment, and finds it with a later sample. A sql
// resource whose array order is undefined may be reported by mistake: give it an
// order.
type canary struct {
	// Immutable after newCanary.
	canaryConfig

	// Owned by run.
	suspects []suspect

	// Atomics. Written by run, read by Collect.
	checks  atomic.Int64
	stale   atomic.Int64
	failed  atomic.Int64
	skipped atomic.Int64
}

// suspect is a cached document that the database contradicted.
type suspect struct {
	key    cache.Key
	cached *cache.Document
	fresh  string         // entity tag of what the database held
	seen   cache.Snapshot // the snapshot in which it held that
	read   time.Duration  // when it had been read, on the cache's clock
	due    time.Duration  // when a GET may no longer be answered with cached
}

// commitSlack is how much later than X a suspect is checked. The change was visible
// when it was read, but X counts from the moment its writer was told, which is a round
// trip and, with synchronous standbys, a flush later.
const commitSlack = 250 * time.Millisecond

// maxSuspects bounds the documents that the canary keeps in memory: with X of a
// second and an interval of one there are two at most, but X may be an hour.
const maxSuspects = 64

func newCanary(cfg canaryConfig) *canary {
	if cfg.Interval == 0 {
		cfg.Interval = time.Second
	}
	return &canary{canaryConfig: cfg}
}

// run checks until ctx ends. It has one load in flight at a time.
func (c *canary) run(ctx context.Context) {
	if c.Interval < 0 {
		return
	}
	ticker := time.NewTicker(c.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		c.judge(ctx)
		if key, ok := c.Cache.Sample(); ok {
			c.check(ctx, key)
		}
	}
}

// check compares the cached document of the key with the database.
func (c *canary) check(ctx context.Context, key cache.Key) {
	cached := c.Cache.Inspect(key, c.Cache.Now()) // before the load: see canary
	if cached == nil || len(c.suspects) == maxSuspects {
		c.skipped.Add(1)
		return
	}
	r := c.Resource(key.Resource)
	if r == nil {
		c.skipped.Add(1)
		return
	}
	limited, cancel := context.WithTimeout(ctx, r.Load.Timeout)
	batch, err := c.Origin.Load(limited, key.Resource, []string{key.ID})
	cancel()
	now := c.Cache.Now()
	switch {
	case ctx.Err() != nil:
		return
	case err != nil || len(batch.Docs) != 1 || batch.Docs[0].Err != nil:
		c.failed.Add(1)
		return
	case !r.NoPromise && !batch.Snapshot.Sees(0):
		// The document was read from another history than the one that the stream
		// follows, such as on a standby that lags: there is nothing to compare
		// with.
		c.skipped.Add(1)
		return
	}
	fresh := batch.Docs[0].Body
	if bytes.Equal(cached.Body(), fresh) && cached.Missing() == (fresh == nil) {
		c.checks.Add(1)
		return
	}
	c.suspects = append(c.suspects, suspect{
		key: key, cached: cached, fresh: entityTag(fresh), seen: batch.Snapshot,
		read: now, due: now + r.Freshness + commitSlack,
	})
}

// judge checks whether suspects that are due would still be served.
func (c *canary) judge(ctx context.Context) {
	now := c.Cache.Now()
	c.suspects = slices.DeleteFunc(c.suspects, func(s suspect) bool {
		if now <= s.due {
			return false
		}
		r := c.Resource(s.key.Resource)
		if r == nil {
			c.skipped.Add(1)
			return true
		}
		c.checks.Add(1)
		if c.Cache.Inspect(s.key, now) == s.cached {
			c.stale.Add(1)
			c.report(s, r, now)
			if pending := c.Purge(ctx, s.key); pending != "" { // known to be wrong
				c.Log.Error("the purge of a stale document will be lost if this process ends now", "path", c.Path(s.key), "why", pending)
			}
		}
		return true
	})
}

// report logs what is known about a stale answer.
func (c *canary) report(s suspect, r *config.Resource, now time.Duration) {
	ago := func(at time.Duration) string { return (now - at).Round(time.Millisecond).String() + " ago" }
	events := []string{}
	for _, e := range c.Cache.Recent(s.key) {
		what := fmt.Sprintf("tx %d %s", e.Tx, ago(e.At))
		if e.All {
			what += " (whole resource)"
		}
		events = append(events, what)
	}
	c.Log.Error("a document older than promised is served from cache",
		"resource", r.Name,
		"path", c.Path(s.key),
		"freshness", r.Freshness,
		"served", entityTag(s.cached.Body()),
		"served_token", fmt.Sprintf("all below %d", s.cached.XMin()),
		"served_loaded", ago(s.cached.LoadedAt()),
		"database", s.fresh,
		"database_token", fmt.Sprintf("%d:%d:%d", s.seen.XMin, s.seen.XMax, s.seen.InProgress),
		"database_read", ago(s.read),
		"events", events,
	)
}

// entityTag names a body in the log as clients see it.
func entityTag(body []byte) string {
	if body == nil {
		return "no document"
	}
	return httpfront.EntityTag(body)
}

// path formats a key as its clients do, for the log.
func (g *Gateway) path(key cache.Key) string {
	name := ""
	if r := g.now().of(key.Resource); r != nil {
		name = r.Name
	}
	if c := g.origin.reached.Load(); c != nil {
		if path, err := resource.Path(name, c.database.KeyColumns(int(key.Resource)), key.ID); err == nil {
			return path
		}
	}
	return fmt.Sprintf("/%s (key %q)", name, key.ID)
}

var (
	canaryChecks  = newMetric("canary_checks_total", "Cached documents that the canary compared with the database.")
	canaryStale   = newMetric("canary_stale_total", "Checked documents that were served although they were older than promised. Any value other than 0 means a broken promise.")
	canaryFailed  = newMetric("canary_failed_total", "Samples of the canary that could not be read from the database.")
	canarySkipped = newMetric("canary_skipped_total", "Samples of the canary that were no longer cached, or that could not be compared.")
)

// collect collects the metrics of the canary.
func (c *canary) collect(to sink) {
	to.send(canaryChecks, float64(c.checks.Load()))
	to.send(canaryStale, float64(c.stale.Load()))
	to.send(canaryFailed, float64(c.failed.Load()))
	to.send(canarySkipped, float64(c.skipped.Load()))
}
