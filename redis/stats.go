package redis

import (
	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/driver"
)

// Stats are the counters of a client since it was created, and its current state.
type Stats struct {
	// The statistics of the shared connections.
	slipstream.Stats
	// Exclusive contains the statistics of dedicated connections.
	Exclusive ExclusiveStats
	// Cache contains the statistics of client-side caching.
	Cache CacheStats
}

// Stats returns the statistics of the client. It is cheap enough to be called once a second.
func (c *Client) Stats() Stats {
	s := Stats{Exclusive: c.exclusives.stats()}
	if c.only != nil {
		s.Stats = driver.Stats(c.only.engine.Snapshot(), c.retry.Repeated(), c.hooks.Panics())
	} else {
		for _, n := range c.router.all() {
			driver.AddStats(&s.Stats, new(driver.Stats(n.engine.Snapshot(), 0, 0)))
		}
		s.Repeated, s.HookPanics = c.retry.Repeated(), c.hooks.Panics()
	}
	if c.cache != nil {
		s.Cache = c.cache.stats()
	}
	return s
}
