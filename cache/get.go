package cache

import (
	"context"
	"errors"
	"time"
)

// Source says where an answer came from.
type Source uint8

// Sources.
const (
	FromTier Source = iota // cached, and fresh as promised
	FromLoad               // loaded for this request
	Joined                 // loaded for another request and shared
	Stale                  // cached, and possibly older than promised
)

// Answer is a document and where it came from.
type Answer struct {
	Doc    *Document
	Source Source
	// Tier is the name of the tier for FromTier and Stale.
	Tier string
	// FromStore is set for FromTier if the tier is a [Store].
	FromStore bool
	// Behind is, for Stale, how much older than promised the document may be.
	Behind time.Duration
	// Superseded is set when a tier held the document, but could not vouch
	// for it, so that it was loaded anyway.
	Superseded bool
	// Stored reports whether a loaded document was put into the tiers.
	Stored bool
}

// Peek answers from the tiers without waiting for anything: event loops call it.
// start is when the request arrived, on the cache's clock. If ok is false, only Get
// can answer.
func (c *Cache) Peek(key Key, start time.Duration) (Answer, bool) {
	a, ok := c.look(key, start, true)
	if ok {
		c.hit(key)
	}
	return a, ok
}

// look is Peek without counting. If stores is false, it does not query the stores, which
// takes about 2 us.
func (c *Cache) look(key Key, start time.Duration, stores bool) (Answer, bool) {
	r := c.resources[key.Resource]
	// The horizon is read before the tier. In the opposite order, the document
	// could be fetched, invalidated, and then be covered by the horizon that
	// moved because its invalidation had been applied.
	if !c.holds(r, start) {
		return Answer{}, false
	}
	for _, t := range c.tiers {
		if d := t.Peek(key); d != nil && c.usable(r, d, start) {
			return Answer{Doc: d, Tier: t.Name()}, true
		}
	}
	if !stores {
		return Answer{}, false
	}
	return c.tryStores(r, key, start)
}

// hit counts an answer from a tier that keeps documents in memory.
func (c *Cache) hit(key Key) {
	c.resources[key.Resource].counters.hits.Add(1)
	if c.sampler.wanted.Load() {
		c.sampler.take(key)
	}
}

// holds reports whether tiers may be queried: the horizon covers what a GET at start
// needs, or the age of each document decides.
func (c *Cache) holds(r *resourceState, start time.Duration) bool {
	return c.covered(r, start) || r.NoPromise
}

// covered reports whether everything acknowledged earlier than X before start has
// been applied. Without a promise it returns false.
func (c *Cache) covered(r *resourceState, start time.Duration) bool {
	h := c.horizon.Load()
	return h != noHorizon && start-time.Duration(h) <= r.x() && r.broken.Load() == nil
}

// usable reports whether a document found in a tier may be served: not flushed
// with its resource, not too old without a promise, and, for a missing row, not
// remembered for too long.
func (c *Cache) usable(r *resourceState, d *Document, start time.Duration) bool {
	return d.generation == r.generation.Load() && int64(start-d.loadedAt) <= r.maxAge.Load() &&
		(!d.Missing() || int64(start-d.loadedAt) <= r.missingTTL.Load())
}

// Get answers from the tiers or loads. start is when the request arrived, on the
// cache's clock. The context ends only this caller's wait, never a load that others
// may share.
//
// Errors: those of the context; ErrStale, ErrOverloaded and ErrClosed; those that
// the origin returned. Errors are not cached.
func (c *Cache) Get(ctx context.Context, key Key, start time.Duration) (Answer, error) {
	if a, ok := c.Peek(key, start); ok {
		return a, nil
	}
	w := wait{client: clientOf(ctx)}
	a, done, err := c.withoutLoad(ctx, key, start, &w)
	if done || err != nil {
		return a, err
	}
	if a, done, err = c.share(ctx, key, start, &w); done || err != nil {
		return a, err
	}
	return w.answer(ctx)
}

// clientKey is the key of a context's client.
type clientKey struct{}

// clientContext is what WithClient returns: one object, where context.WithValue makes two of a
// number.
type clientContext struct {
	context.Context
	client uint64
}

// Value implements context.Context.
func (c *clientContext) Value(key any) any {
	if key == (clientKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// WithClient returns a context whose loads wait in the queue of a client, any number that
// identifies its address: one client's loads do not delay another's. 0 is a valid client.
func WithClient(ctx context.Context, client uint64) context.Context {
	return &clientContext{ctx, client}
}

func clientOf(ctx context.Context) uint64 {
	if c, ok := ctx.Value(clientKey{}).(*clientContext); ok {
		return c.client
	}
	return 0
}

// wait is what a GET that needs a load, or the answer of a store, waits for.
type wait struct {
	flight     *flight
	look       *look  // of the stores; nil if there is none
	leads      bool   // it queries the stores for all callers that wait for look
	ask        bool   // it may query the stores, because the promise holds
	client     uint64 // the client that waits
	joined     bool
	superseded bool // a tier held the document, but could not vouch for it
	unverified bool // waiting for the stream has timed out already
}

// withoutLoad is the part of a GET after Peek and before a load: slower tiers, and
// what the policy does when the promise does not hold.
func (c *Cache) withoutLoad(ctx context.Context, key Key, start time.Duration, w *wait) (a Answer, done bool, err error) {
	r := c.resources[key.Resource]
	if c.holds(r, start) {
		a, done = c.fromSlowTiers(ctx, r, key, start)
		w.ask = !done
		return a, done, nil
	}
	a, held := c.unverified(r, key, start)
	switch policy := r.settings.Load().Policy; {
	case policy == ServeStale && held:
		r.counters.stale.Add(1)
		return a, true, nil
	case policy == Unavailable:
		r.counters.unavailable.Add(1)
		return Answer{}, false, ErrStale
	case policy == Verify && held && c.wake != nil && !w.unverified:
		a, ok, err := c.verify(ctx, r, key, start)
		if ok || err != nil {
			return a, ok, err
		}
		w.unverified = true
	}
	r.counters.reloaded.Add(1)
	w.superseded = held
	return Answer{}, false, nil
}

// share joins a lookup or a load of the key or begins one. It waits for the lookup; the
// load is left in w to be waited for. It returns done if a tier or a store had the document.
func (c *Cache) share(ctx context.Context, key Key, start time.Duration, w *wait) (a Answer, done bool, err error) {
	r := c.resources[key.Resource]
	ask := w.ask
	err = errSettled
	for again := false; errors.Is(err, errSettled); again = true {
		// A load of the key may end between the lookup in the tier and the
		// join; then there is nothing left to join, and the answer is in the
		// tier. The count is read before the lookup, and compared by join.
		seen := c.shardOf(key).settledCount(key)
		if a, ok := c.look(key, start, again); ok {
			c.shardOf(key).finishLook(key, w)
			c.hit(key)
			return a, true, nil
		}
		w.ask = ask
		err = c.join(r, key, start, seen, w)
		for err == nil && w.look != nil {
			if a, done, err = c.awaitLook(ctx, r, key, start, w); done || err != nil {
				return a, done, err
			}
			err = c.join(r, key, start, seen, w)
		}
	}
	r.counters.misses.Add(1)
	return Answer{}, false, err
}

// answer waits for the load.
func (w *wait) answer(ctx context.Context) (Answer, error) {
	f := w.flight
	select {
	case <-f.done:
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
	if f.err != nil {
		return Answer{}, f.err
	}
	a := Answer{Doc: f.doc, Source: FromLoad, Superseded: w.superseded, Stored: f.stored}
	if w.joined {
		a.Source = Joined
	}
	return a, nil
}

// fromSlowTiers queries the tiers whose Get may wait. The promise was checked
// before, which is the order that Peek explains.
func (c *Cache) fromSlowTiers(ctx context.Context, r *resourceState, key Key, start time.Duration) (Answer, bool) {
	for _, t := range c.tiers {
		d, err := t.Get(ctx, key)
		if err != nil || d == nil || !c.usable(r, d, start) {
			continue // a tier that fails is as good as one that does not hold the document
		}
		r.counters.hits.Add(1)
		return Answer{Doc: d, Tier: t.Name()}, true
	}
	return Answer{}, false
}

// unverified answers from the tiers though the promise does not hold. MissingTTL
// does not apply: the absence of a row is as unverified as anything else.
func (c *Cache) unverified(r *resourceState, key Key, start time.Duration) (Answer, bool) {
	for _, t := range c.tiers {
		d := t.Peek(key)
		if d == nil || d.generation != r.generation.Load() {
			continue
		}
		a := Answer{Doc: d, Source: Stale, Tier: t.Name()}
		if h := c.horizon.Load(); h != noHorizon {
			a.Behind = max(0, start-time.Duration(h)-r.x())
		}
		return a, true
	}
	return Answer{}, false
}

// KeepForm keeps a form with the document if there is room for it, and returns
// the form to use: that of another reader if it was first.
func (c *Cache) KeepForm(d *Document, slot FormSlot, form *Form) *Form {
	return d.keepForm(slot, nil, form, c.forms)
}

// ReplaceForm keeps a form in place of old, which its frontend cannot use anymore. If old is nil, it is
// [Cache.KeepForm].
func (c *Cache) ReplaceForm(d *Document, slot FormSlot, old, form *Form) *Form {
	return d.keepForm(slot, old, form, c.forms)
}

// noForms is the keeper of a cache whose first tier holds no forms.
type noForms struct{}

func (noForms) ReserveForm(int) bool { return false }
func (noForms) ReleaseForm(int)      {}
