// Package cachekit creates caches for tests, with a function as their origin.
package cachekit

import (
	"context"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
)

// Origin is an origin that loads documents one by one. A document that is nil is a missing row.
type Origin func(ctx context.Context, resource cache.ResourceID, id string) ([]byte, error)

// Load implements [cache.Origin].
func (f Origin) Load(ctx context.Context, r cache.ResourceID, ids []string) (cache.Batch, error) {
	b := cache.Batch{Snapshot: cache.UpTo(1)}
	for _, id := range ids {
		body, err := f(ctx, r, id)
		if err != nil {
			return cache.Batch{}, err
		}
		b.Docs = append(b.Docs, cache.Loaded{Body: body})
	}
	return b, nil
}

// New returns a cache of the resources with one tier. Freshness is promised for each resource for
// an hour, and the cache is closed when the test ends.
func New(t testing.TB, origin cache.Origin, tier cache.Tier, resources ...cache.Resource) *cache.Cache {
	t.Helper()
	start := time.Now()
	c, err := cache.New(cache.Config{
		Resources: resources, Origin: origin, Tiers: []cache.Tier{tier},
		Clock: func() time.Duration { return time.Since(start) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	for i := range resources {
		c.SetPromise(cache.ResourceID(i), true, "")
	}
	c.Advance(time.Hour, cache.UpTo(1))
	return c
}
