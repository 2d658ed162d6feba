package cache

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// newRoomyFixture is a fixture whose cache has slots for more resources.
func newRoomyFixture(t *testing.T, r Resource, places int) *fixture {
	f := newFixture(t, r)
	grown := make([]*resourceState, places)
	copy(grown, f.cache.resources)
	f.cache.resources = grown
	return f
}

// A resource that was added is not served from a tier before the stream has reported
// on it; its neighbor is served all the time.
func TestAddedResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newRoomyFixture(t, Resource{}, 2)
		f.commit("k")
		f.poll()
		f.mustGet("k", 1, FromLoad)
		id, err := f.cache.Add([]Resource{{Name: "added"}})
		if err != nil || id != 1 {
			t.Fatalf("Add = %d, %v", id, err)
		}
		get := func() Source {
			a, err := f.cache.Get(context.Background(), Key{id, "k"}, f.cache.Now())
			if err != nil {
				t.Fatal(err)
			}
			return a.Source
		}
		if a, b := get(), get(); a != FromLoad || b != FromLoad {
			t.Errorf("before the stream has reported: sources %d and %d, want loads", a, b)
		}
		f.cache.SetPromise(id, true, "")
		if a, b := get(), get(); a != FromLoad || b != FromTier {
			t.Errorf("with a promise: sources %d and %d, want a load and a hit", a, b)
		}
		f.mustGet("k", 1, FromTier)
		f.cache.Publish([]ResourceID{id}, nil)
		if n := len(f.cache.Stats().Resources); n != 2 {
			t.Errorf("stats of %d resources, want 2", n)
		}
		if _, err := f.cache.Add([]Resource{{Name: "third"}}); !errors.Is(err, ErrTooManyResources) {
			t.Errorf("a third: %v, want ErrTooManyResources", err)
		}
	})
}

// A retired resource is gone from the tiers and the stats, and callers that still request it
// are answered.
func TestRetiredResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newRoomyFixture(t, Resource{}, 2)
		id, err := f.cache.Add([]Resource{{Name: "r"}})
		if err != nil {
			t.Fatal(err)
		}
		f.commit("k")
		f.poll()
		f.mustGet("k", 1, FromLoad)
		if n := len(f.cache.Stats().Resources); n != 1 {
			t.Errorf("stats of %d resources before the other is published", n)
		}
		f.cache.Publish([]ResourceID{id}, []ResourceID{0})
		synctest.Wait() // for the sweep
		if d := f.tier.Peek(Key{0, "k"}); d != nil {
			t.Error("a document of a retired resource is still in the tier")
		}
		f.mustGet("k", 1, FromLoad)
		if s := f.cache.Stats().Resources; len(s) != 1 || s[0].Loaded != 0 || id != 1 {
			t.Errorf("stats %+v, want only those of the other resource", s)
		}
	})
}

// Changed terms hold immediately, also for documents that were there before.
func TestChangedTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Resource{Freshness: 10 * time.Second})
		f.commit("k")
		f.poll()
		f.mustGet("k", 1, FromLoad)
		time.Sleep(5 * time.Second)
		f.mustGet("k", 1, FromTier)
		f.cache.Change(0, Resource{Freshness: time.Second, NoPromise: true})
		f.mustGet("k", 1, FromLoad) // the horizon is 5 s old
		f.poll()
		f.mustGet("k", 1, FromTier)
		f.cache.Change(0, Resource{Freshness: time.Second, Policy: Unavailable})
		time.Sleep(5 * time.Second)
		if _, err := f.get("k"); !errors.Is(err, ErrStale) {
			t.Errorf("policy Unavailable: %v, want ErrStale", err)
		}
		f.cache.Change(0, Resource{Freshness: time.Hour, MissingTTL: -1})
		f.mustGet("k", 1, FromTier)
		f.mustGet("absent", 0, FromLoad)
		f.mustGet("absent", 0, FromLoad)
	})
}

func TestNoResourceIsAddedAfterClose(t *testing.T) {
	f := newRoomyFixture(t, Resource{}, 2)
	if err := f.cache.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.cache.Add([]Resource{{}}); !errors.Is(err, ErrClosed) {
		t.Errorf("Add = %v, want ErrClosed", err)
	}
}
