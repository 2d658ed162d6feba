package cache

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// newUnpromised is a fixture whose stream reports nothing, over an origin that
// returns no snapshots: only the age of a document vouches for it.
func newUnpromised(t *testing.T) *fixture {
	f := newFixture(t, Resource{NoPromise: true, Freshness: 10 * time.Second})
	f.cache.Void("no stream")
	f.load = func(_ context.Context, ids []string) (Batch, error) {
		b := f.db.read(0, ids)
		time.Sleep(4 * time.Second)
		return Batch{Docs: b.Docs}, nil
	}
	return f
}

func TestNoPromiseServesByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newUnpromised(t)
		f.commit("k")
		f.mustGet("k", 1, FromLoad)
		f.commit("k")
		f.mustGet("k", 1, FromTier)
		f.cache.SetPromise(0, false, "of no concern")
		time.Sleep(6 * time.Second) // 10 s after the load began
		f.mustGet("k", 1, FromTier)
		time.Sleep(time.Nanosecond)
		f.mustGet("k", 2, FromLoad)
		f.mustGet("k", 2, FromTier)
		if ok, why := f.cache.Promise(0); !ok || why != "" {
			t.Errorf("Promise = %v, %q", ok, why)
		}
		if s := f.cache.Stats().Resources[0]; !s.NoPromise || s.Promised || s.Why == "" {
			t.Errorf("stats %+v", s)
		}
	})
}

// Missing rows are remembered no longer than documents.
func TestNoPromiseMissingRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newUnpromised(t)
		f.mustGet("k", 0, FromLoad)
		f.mustGet("k", 0, FromTier)
		f.commit("k")
		time.Sleep(6*time.Second + 1)
		f.mustGet("k", 1, FromLoad)
	})
}

// What the stream does report takes effect.
func TestNoPromiseHearsEvents(t *testing.T) {
	for name, event := range map[string]Event{
		"change": {Key: Key{0, "k"}, Tx: 2},
		"flush":  {Key: Key{0, ""}, Tx: 2, All: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newUnpromised(t)
				f.commit("k")
				f.mustGet("k", 1, FromLoad)
				f.commit("k")
				f.cache.Apply([]Event{event})
				// A load that may have missed the change is not stored, and a
				// load that returns no snapshot always may have missed it.
				f.mustGet("k", 2, FromLoad)
				f.mustGet("k", 2, FromLoad)
				f.load = nil
				f.mustGet("k", 2, FromLoad)
				f.mustGet("k", 2, FromTier)
				f.cache.Purge(Key{0, "k"})
				f.mustGet("k", 2, FromLoad)
				f.cache.Void("test")
				f.mustGet("k", 2, FromLoad)
			})
		})
	}
}

// A GET does not join a load that is older than X, though the horizon covers it.
// What a load of an origin with LoadLag reads may be older than the load. Callers
// join it, and its document is served, only while the bound holds in spite of
// that.
func TestLoadsCountAsBegunEarlierByTheirLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newUnpromised(t)
		f.cache.loadLag = 4 * time.Second
		f.load = func(_ context.Context, ids []string) (Batch, error) {
			b := f.db.read(0, ids)
			time.Sleep(8 * time.Second)
			return b, nil
		}
		f.cache.resources[0].settings.Load().LoadTimeout = time.Minute
		f.commit("k")
		first := f.waiting(t.Context(), "k")
		f.commit("k")
		time.Sleep(6 * time.Second)
		second := f.waiting(t.Context(), "k") // the load may show what was there X ago
		time.Sleep(time.Millisecond)
		third := f.waiting(t.Context(), "k") // or what was there before that
		for i, want := range []int{1, 1, 2} {
			g := <-[]<-chan got{first, second, third}[i]
			if g.err != nil {
				t.Fatal(g.err)
			}
			if v := modelVersion(t, Key{0, "k"}, g.Doc); v != want {
				t.Errorf("caller %d got version %d, want %d", i, v, want)
			}
		}
	})
}

func TestNoPromiseJoinsByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newUnpromised(t)
		f.load = func(_ context.Context, ids []string) (Batch, error) {
			b := f.db.read(0, ids)
			time.Sleep(15 * time.Second)
			return b, nil
		}
		f.cache.resources[0].settings.Load().LoadTimeout = time.Minute
		f.commit("k")
		first := f.waiting(t.Context(), "k")
		f.commit("k") // which the stream does not report
		time.Sleep(10 * time.Second)
		second := f.waiting(t.Context(), "k")
		time.Sleep(time.Second)
		f.cache.Advance(f.cache.Now(), UpTo(1))
		third := f.waiting(t.Context(), "k")
		for i, want := range []int{1, 1, 2} {
			g := <-[]<-chan got{first, second, third}[i]
			if g.err != nil {
				t.Fatal(g.err)
			}
			if v := modelVersion(t, Key{0, "k"}, g.Doc); v != want {
				t.Errorf("caller %d got version %d, want %d", i, v, want)
			}
		}
	})
}
