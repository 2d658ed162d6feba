package cache

import (
	"context"
	"time"
)

// peekedFromStore is up to how many keys PeekMany asks the store too: an event loop that copies
// 1,000 documents of it is not there for anybody else for 2 ms.
const peekedFromStore = 32

// PeekMany answers all keys from the tiers without waiting for anything, into
// answers, which is as long as keys. False means that only GetMany can tell, and
// answers holds nothing of use.
func (c *Cache) PeekMany(keys []Key, start time.Duration, answers []Answer) bool {
	for i, key := range keys {
		a, ok := c.look(key, start, len(keys) <= peekedFromStore)
		if !ok {
			return false
		}
		answers[i] = a
	}
	for _, key := range keys { // only now: what GetMany answers is not counted twice
		c.hit(key)
	}
	return true
}

// GetMany answers keys of one resource into answers, which is as long as keys: each
// from the tiers or by a load, with the promise of [Cache.Get] for each. Two of
// them may show the database at two moments. All loads that it begins are handed
// to the loader together, so that they travel as few statements.
//
// The first error ends the call; loads that others may share go on.
func (c *Cache) GetMany(ctx context.Context, keys []Key, start time.Duration, answers []Answer) error {
	type miss struct {
		at int
		wait
	}
	var misses []miss
	unverified, client := false, clientOf(ctx)
	for i, key := range keys {
		a, ok := c.Peek(key, start)
		if !ok {
			// One wait for the stream is enough for all of them.
			m := miss{at: i, wait: wait{unverified: unverified, client: client}}
			var err error
			if a, ok, err = c.withoutLoad(ctx, key, start, &m.wait); err != nil {
				return err
			}
			unverified = m.unverified
			if !ok {
				misses = append(misses, m)
			}
		}
		answers[i] = a
	}
	if len(misses) == 0 {
		return nil
	}
	waiting := misses[:0]
	l := c.resources[keys[0].Resource].loader
	l.hold()
	var failed error
	for _, m := range misses {
		a, done, err := c.share(keys[m.at], start, &m.wait)
		if err != nil {
			failed = err
			break
		}
		answers[m.at] = a
		if !done {
			waiting = append(waiting, m)
		}
	}
	l.release()
	if failed != nil {
		return failed
	}
	for i := range waiting {
		m := &waiting[i]
		a, err := m.answer(ctx)
		if err != nil {
			return err
		}
		answers[m.at] = a
	}
	return nil
}
