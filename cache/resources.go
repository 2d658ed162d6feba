package cache

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// ErrTooManyResources is returned by [Cache.Add] if Config.MaxResources resources have already
// been added.
var ErrTooManyResources = errors.New("too many resources")

// terms are the parameters of a resource that may change while it is served.
//
// A GET in flight while they change may read an old value here and a new one there. Each
// rule of the argument holds for the value that it was checked with, so such a GET has the
// longer of the two promises.
type terms struct {
	// Atomics. Written by New, Add and Change, read by all. The first three are on the
	// path of a hit; settings has the rest of them, and these too.
	freshness  atomic.Int64
	missingTTL atomic.Int64
	maxAge     atomic.Int64 // documents that are older are not served
	settings   atomic.Pointer[Resource]
}

func (t *terms) set(r Resource) {
	t.settings.Store(&r)
	t.freshness.Store(int64(r.Freshness))
	t.missingTTL.Store(int64(r.MissingTTL))
	maxAge := int64(math.MaxInt64)
	if r.NoPromise {
		maxAge = int64(r.Freshness)
	}
	t.maxAge.Store(maxAge)
}

// x is the X of the promise.
func (t *terms) x() time.Duration { return time.Duration(t.freshness.Load()) }

// newResource makes the state of a resource that no stream has reported on yet.
func (c *Cache) newResource(r Resource, id ResourceID) *resourceState {
	r = r.withDefaults()
	state := &resourceState{Name: r.Name, NoPromise: r.NoPromise, id: id}
	state.set(r)
	state.loader = newLoader(c, state)
	why := "the stream of the origin has not reported yet"
	if r.NoPromise {
		why = "the resource is declared without a promise" // permanently: SetPromise has no effect on it
	}
	state.broken.Store(&why)
	return state
}

// known returns all resources, retired ones included.
func (c *Cache) known() []*resourceState { return c.resources[:c.count.Load()] }

// Add adds resources, all or none, and returns the ID of the first: IDs count up and are never
// reused. The resources have no promise until the stream reports on them, as at the start, and
// are in no stats before [Cache.Publish]. Callers that request their documents must use the
// returned IDs.
func (c *Cache) Add(more []Resource) (first ResourceID, err error) {
	c.sweeping.Lock()
	defer c.sweeping.Unlock()
	count := int(c.count.Load())
	switch {
	case c.closed.Load():
		return 0, ErrClosed
	case count+len(more) > len(c.resources):
		return 0, fmt.Errorf("%w: %d have been added, the maximum is %d", ErrTooManyResources, count, len(c.resources))
	}
	for i, r := range more {
		state := c.newResource(r, ResourceID(count+i))
		state.hidden.Store(true)
		c.resources[count+i] = state
	}
	c.count.Add(int64(len(more)))
	return ResourceID(count), nil
}

// Change changes the terms of a resource whose documents stay as they are: all fields but Name
// and NoPromise. What began before may end by the old terms.
func (c *Cache) Change(id ResourceID, r Resource) {
	state := c.resources[id]
	r = r.withDefaults()
	r.Name, r.NoPromise = state.Name, state.NoPromise
	state.set(r)
}

// Publish adds the given resources to the stats, and removes those that are retired, whose
// documents are dropped. Callers that still request retired ones are answered as before.
func (c *Cache) Publish(added, retired []ResourceID) {
	c.listing.Lock()
	for _, id := range added {
		c.resources[id].hidden.Store(false)
	}
	for _, id := range retired {
		c.resources[id].hidden.Store(true)
	}
	c.listing.Unlock()
	for _, id := range retired {
		c.flush(c.resources[id])
	}
}
