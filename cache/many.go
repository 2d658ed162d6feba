package cache

import (
	"context"
	"time"
)

// peekedFromStore is the maximum number of keys for which PeekMany also queries the stores:
// an event loop that copies 1,000 documents from there serves no other connection for 2 ms.
const peekedFromStore = 32

// PeekMany answers all keys from the tiers without waiting for anything, into
// answers, which is as long as keys. If it returns false, only GetMany can answer,
// and the contents of answers are undefined.
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

// miss is a key of GetMany that no tier in memory holds.
type miss struct {
	at       int // its index in keys
	answered bool
	wait
}

// GetMany answers keys of one resource into answers, which is as long as keys: each
// from the tiers or by a load, with the promise of [Cache.Get] for each. Two of
// them may show the database at two moments. Each store is queried once, and all loads that
// begin are passed to the loader together, so that they need few statements.
//
// The first error ends the call; loads that others may share continue.
func (c *Cache) GetMany(ctx context.Context, keys []Key, start time.Duration, answers []Answer) error {
	misses, err := c.missing(ctx, keys, start, answers)
	if err != nil || len(misses) == 0 {
		return err
	}
	defer func() {
		for i := range misses { // after an error or a panic
			key := keys[misses[i].at]
			c.shardOf(key).cutLook(key, &misses[i].wait)
		}
	}()
	r := c.resources[keys[0].Resource]
	c.lookUpMany(ctx, r, keys, misses, start, answers)
	if err := c.shareMany(ctx, r, keys, misses, start, answers); err != nil {
		return err
	}
	// Only now may this call wait for others' lookups, because none of them waits for
	// it.
	for i := range misses {
		if m := &misses[i]; m.look != nil {
			if answers[m.at], m.answered, err = c.awaitLeader(ctx, r, start, &m.wait); err != nil {
				return err
			}
			m.ask = false
		}
	}
	if err := c.shareMany(ctx, r, keys, misses, start, answers); err != nil {
		return err
	}
	for i := range misses {
		m := &misses[i]
		if m.answered {
			continue
		}
		if answers[m.at], err = m.answer(ctx); err != nil {
			return err
		}
	}
	return nil
}

// missing answers what it can without a store and without a load, and returns the rest.
func (c *Cache) missing(ctx context.Context, keys []Key, start time.Duration, answers []Answer) (misses []miss, err error) {
	unverified, client := false, clientOf(ctx)
	few := len(keys) <= peekedFromStore
	for i, key := range keys {
		a, ok := c.look(key, start, few)
		if ok {
			c.hit(key)
		} else {
			// One wait for the stream is enough for all of them.
			m := miss{at: i, wait: wait{unverified: unverified, client: client}}
			if a, ok, err = c.withoutLoad(ctx, key, start, &m.wait); err != nil {
				return nil, err
			}
			unverified = m.unverified
			if !ok {
				misses = append(misses, m)
			}
		}
		answers[i] = a
	}
	return misses, nil
}

// lookUpMany joins loads and lookups in flight, and queries the stores for the other keys that
// they may be queried for.
func (c *Cache) lookUpMany(ctx context.Context, r *resourceState, keys []Key, misses []miss, start time.Duration, answers []Answer) {
	if !c.asksStores() {
		for i := range misses {
			misses[i].ask = false
		}
		return
	}
	var led []*miss
	for i := range misses {
		m := &misses[i]
		for err := errSettled; m.ask && err == errSettled; { // see share
			seen := c.shardOf(keys[m.at]).settledCount(keys[m.at])
			if a, ok := c.look(keys[m.at], start, false); ok {
				c.hit(keys[m.at])
				answers[m.at], m.answered = a, true
				break
			}
			err = c.join(r, keys[m.at], start, seen, &m.wait)
		}
		m.ask = false
		if m.flight != nil {
			r.counters.misses.Add(1)
		}
		if m.leads {
			led = append(led, m)
		}
	}
	if len(led) == 0 {
		return
	}
	asked, waits, looks := make([]Key, len(led)), make([]*wait, len(led)), make([]*look, len(led))
	for i, m := range led {
		asked[i], waits[i], looks[i] = keys[m.at], &m.wait, m.look
	}
	c.lookUp(ctx, r, start, asked, make([]Stored, len(led)), waits)
	for i, m := range led {
		if !m.leads {
			answers[m.at], m.answered = looks[i].answer, true
			looks[i].reuse()
		}
	}
}

// shareMany joins or begins loads of the keys that have no answer and wait for nothing
// yet.
func (c *Cache) shareMany(ctx context.Context, r *resourceState, keys []Key, misses []miss, start time.Duration, answers []Answer) error {
	l := r.loader
	l.hold()
	defer l.release()
	for i := range misses {
		m := &misses[i]
		if m.answered || m.flight != nil || m.look != nil && !m.leads {
			continue
		}
		a, done, err := c.share(ctx, keys[m.at], start, &m.wait)
		if err != nil {
			return err
		}
		if done {
			answers[m.at], m.answered = a, true
		}
	}
	return nil
}
