package cache

import "time"

// Again reports whether doc, which [Cache.Peek] gave for a key of the resource and a memory
// tier held then, is still what Peek would give at start. It looks nothing up: callers that
// remember which document was the last answer to a question spare themselves the tiers'
// tables, 0.1 us and more when they are not in the processor's cache.
//
// What a tier drops it unholds before it lets go of it, and an invalidation drops documents
// before the horizon that covers it is published. So a document that is held after the
// horizon was read has not been invalidated by anything that the horizon covers.
//
// It counts nothing: whoever answers with doc calls [Cache.CountHits]. The tiers do not
// learn that the document is in use either, so callers must go to Peek now and then.
func (c *Cache) Again(resource ResourceID, doc *Document, start time.Duration) bool {
	r := c.resources[resource]
	return c.holds(r, start) && doc.Held() && c.usable(r, doc, start)
}

// CountHits counts n answers that [Cache.Again] allowed.
func (c *Cache) CountHits(resource ResourceID, n int) {
	c.resources[resource].counters.hits.Add(int64(n))
}
