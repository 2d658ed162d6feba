package gateway

import (
	"context"
	"fmt"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/admin"
)

// purgePatience is how long a purge waits until the disk tier has made it durable. A
// batch is written within a second; it only takes longer if something is wrong with the
// disk.
const purgePatience = 2 * time.Second

// maxUnattached bounds the keys that are remembered for a disk tier that is not open
// yet. Beyond it their whole resource is flushed.
const maxUnattached = 1000

// purge names what the disk tier still has to drop: a document, or all of a resource.
type purge struct {
	key cache.Key // without an ID if all
	all bool
}

// Purge drops the document with the key, given as percent-decoded segments, or
// every document of the resource if there are none. No GET that begins after it is
// answered with what was dropped. pending is "" if the purge is durable, else it says
// why it is not yet. Purge implements [admin.Purger].
func (g *Gateway) Purge(ctx context.Context, name string, key []string) (pending string, err error) {
	now := g.now()
	at := now.named(name)
	if at < 0 {
		return "", fmt.Errorf("%w %q", admin.ErrUnknownResource, name)
	}
	p := purge{key: cache.Key{Resource: now.ids[at]}, all: len(key) == 0}
	if !p.all {
		c := g.origin.reached.Load()
		switch {
		case c == nil && g.config.Tiers.Disk.Set():
			return "", fmt.Errorf("%w: the database has not been reached since the start, so the types of the key are not known; purge the whole resource, or retry later", admin.ErrNotNow)
		case c == nil:
			return "", nil // nothing was ever loaded
		}
		if p.key.ID, err = resource.ID(c.database.KeyColumns(int(p.key.Resource)), key); err != nil {
			return "", err
		}
	}
	return g.purge(ctx, p), nil
}

// purge drops p everywhere, and waits for the disk tier to make that durable.
func (g *Gateway) purge(ctx context.Context, p purge) (pending string) {
	if g.purgeLater(p) {
		pending = "the disk tier is not open yet in this process; it is purged when it opens"
	}
	if p.all {
		g.cache.PurgeResource(p.key.Resource)
	} else {
		g.cache.Purge(p.key)
	}
	tier := g.diskTier.Load()
	if pending != "" || tier == nil {
		return pending
	}
	p.dropFrom(tier) // the drain may have detached it from the cache to close it
	ctx, cancel := context.WithTimeout(ctx, purgePatience)
	defer cancel()
	if err := tier.Sync(ctx); err != nil {
		return fmt.Sprintf("the disk tier has not made the purge durable (%v); repeat the purge; after a restart or a handover, in the process that serves then", err)
	}
	return ""
}

// purgeLater remembers p if the disk tier is still to be opened.
func (g *Gateway) purgeLater(p purge) bool {
	g.purging.Lock()
	defer g.purging.Unlock()
	if !g.config.Tiers.Disk.Set() || g.diskTier.Load() != nil {
		return false
	}
	if len(g.unattached) >= maxUnattached {
		p = purge{key: cache.Key{Resource: p.key.Resource}, all: true}
	}
	if g.unattached == nil {
		g.unattached = make(map[purge]struct{})
	}
	g.unattached[p] = struct{}{}
	return true
}

// dropUnattached applies the purges that waited for the disk tier.
func (g *Gateway) dropUnattached(tier cache.Store) {
	for p := range g.unattached {
		p.dropFrom(tier)
	}
	g.unattached = nil
}

func (p purge) dropFrom(s cache.Store) {
	if p.all {
		s.Flush(p.key.Resource)
	} else {
		s.Remove(p.key)
	}
}
