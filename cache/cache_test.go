package cache

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fixture is a cache with one resource over a database model, with a stream that
// the test drives by hand.
type fixture struct {
	t          *testing.T
	start      time.Time
	db         *database
	tier       *mapTier
	cache      *Cache
	statements atomic.Int64
	delivered  int

	// load, if set, answers instead of the database. Set before use.
	load func(ctx context.Context, ids []string) (Batch, error)
	// wake, if set, asks the stream to report. Set before use.
	wake func()
}

func newFixture(t *testing.T, r Resource) *fixture {
	f := &fixture{t: t, start: time.Now(), db: newDatabase(), tier: newMapTier()}
	r.Name = "r"
	c, err := New(Config{
		Resources: []Resource{r},
		Origin: originFunc(func(ctx context.Context, resource ResourceID, ids []string) (Batch, error) {
			f.statements.Add(1)
			if f.load != nil {
				return f.load(ctx, ids)
			}
			return f.db.read(resource, ids), nil
		}),
		Tiers: []Tier{f.tier},
		Clock: func() time.Duration { return time.Since(f.start) },
		Wake: func() {
			if f.wake != nil {
				f.wake()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.cache = c
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	c.SetPromise(0, true, "")
	f.poll()
	return f
}

func (f *fixture) commit(id string) {
	f.db.commit(f.db.begin(), Key{0, id})
}

func (f *fixture) poll() {
	commits, _, at := f.db.since(f.delivered)
	f.delivered += len(commits)
	for _, c := range commits {
		f.cache.Apply([]Event{{Key: c.key, Tx: c.tx}})
	}
	f.cache.Advance(f.cache.Now(), at)
}

func (f *fixture) get(id string) (Answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return f.cache.Get(ctx, Key{0, id}, f.cache.Now())
}

func (f *fixture) mustGet(id string, version int, source Source) {
	f.t.Helper()
	a, err := f.get(id)
	if err != nil {
		f.t.Fatalf("GET %s: %v", id, err)
	}
	if got := modelVersion(f.t, Key{0, id}, a.Doc); got != version || a.Source != source {
		f.t.Errorf("GET %s = version %d from source %d, want version %d from %d", id, got, a.Source, version, source)
	}
}

func TestHitAfterLoadAndReloadAfterChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Resource{})
		f.commit("k")
		f.poll()
		f.mustGet("k", 1, FromLoad)
		f.mustGet("k", 1, FromTier)
		f.commit("k")
		f.mustGet("k", 1, FromTier) // within X
		f.poll()
		f.mustGet("k", 2, FromLoad)
		f.mustGet("k", 2, FromTier)
	})
}

func TestNothingIsServedBeforeTheFirstAdvance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Resource{})
		f.commit("k")
		f.poll()
		f.mustGet("k", 1, FromLoad)
		f.cache.Void("test")
		f.mustGet("k", 1, FromLoad)
		f.mustGet("k", 1, FromLoad) // stored, but nothing vouches for it
		if a, ok := f.cache.Peek(Key{0, "k"}, f.cache.Now()); ok {
			t.Errorf("Peek without a horizon answered %s", a.Doc.Body())
		}
		f.poll()
		f.mustGet("k", 1, FromTier)
	})
}

func TestPoliciesPastTheHorizon(t *testing.T) {
	for _, test := range []struct {
		policy Policy
		source Source
		err    error
	}{{Reload, FromLoad, nil}, {ServeStale, Stale, nil}, {Unavailable, 0, ErrStale}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, Resource{Policy: test.policy, Freshness: time.Second})
			f.commit("k")
			f.poll()
			f.mustGet("k", 1, FromLoad)
			time.Sleep(time.Second)
			f.mustGet("k", 1, FromTier)
			time.Sleep(3 * time.Second)
			a, err := f.get("k")
			if !errors.Is(err, test.err) || a.Source != test.source {
				t.Fatalf("policy %d: source %d, error %v", test.policy, a.Source, err)
			}
			if test.policy == Reload && !a.Superseded {
				t.Error("loaded over an unverified document, but not marked so")
			}
			if a.Source == Stale && a.Behind != 3*time.Second {
				t.Errorf("behind %v, want 3s", a.Behind)
			}
			if ok, why := f.cache.Promise(0); ok || why == "" {
				t.Errorf("Promise = %v, %q", ok, why)
			}
			f.poll()
			f.mustGet("k", 1, FromTier)
		})
	}
}

func TestMissingRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Resource{MissingTTL: 10 * time.Second})
		f.mustGet("k", 0, FromLoad)
		f.mustGet("k", 0, FromTier)
		time.Sleep(11 * time.Second)
		f.poll()
		f.mustGet("k", 0, FromLoad)
		f.commit("k")
		f.poll()
		f.mustGet("k", 1, FromLoad)
	})
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Resource{MissingTTL: -1})
		f.mustGet("k", 0, FromLoad)
		f.mustGet("k", 0, FromLoad)
		if n := len(f.tier.docs); n != 0 {
			t.Errorf("%d missing rows were stored", n)
		}
	})
}

// A stampede of callers on a cold key is one statement, and each of many cold
// keys is in exactly one statement.
func TestCallersShareLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Resource{MaxBatch: 64, MaxLoads: 2})
		f.commit("k")
		f.poll()
		f.load = func(_ context.Context, ids []string) (Batch, error) {
			time.Sleep(200 * time.Millisecond)
			return f.db.read(0, ids), nil
		}
		var callers sync.WaitGroup
		for range 10_000 {
			callers.Go(func() {
				if a, err := f.get("k"); err != nil || modelVersion(t, Key{0, "k"}, a.Doc) != 1 {
					t.Errorf("%v %v", a, err)
				}
			})
		}
		callers.Wait()
		if n := f.statements.Load(); n != 1 {
			t.Errorf("10,000 callers of one cold key caused %d statements", n)
		}
		for i := range 1000 {
			callers.Go(func() {
				if _, err := f.get(strconv.Itoa(i)); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		s := f.cache.Stats().Resources[0]
		if s.Loaded != 1001 || s.Joined != 9999 || s.InFlight != 0 {
			t.Errorf("stats %+v", s)
		}
		if n := f.statements.Load(); n > 1+2+1000/64+1 {
			t.Errorf("1,000 cold keys caused %d statements, batches of 64 were allowed", n-1)
		}
	})
}

// A caller that queried the tier before a load was stored and joins after it
// ended must find the document, not load it again.
func TestLookThatMissedTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Resource{Freshness: time.Minute})
		f.commit("k")
		f.poll()
		var first atomic.Bool
		var looks atomic.Int64
		f.tier.pause = func() { // before and after the lookup
			if looks.Add(1); first.Load() && looks.Load() == 4 {
				time.Sleep(time.Second) // after the second lookup of the first caller
			}
		}
		first.Store(true)
		var slow sync.WaitGroup
		slow.Go(func() { f.mustGet("k", 1, FromTier) })
		time.Sleep(100 * time.Millisecond)
		first.Store(false)
		f.mustGet("k", 1, FromLoad)
		slow.Wait()
		if n := f.statements.Load(); n != 1 {
			t.Errorf("%d statements for one key", n)
		}
	})
}

// A load during which the key changes is not stored, and a caller that arrives
// more than X after the change does not get it.
func TestChangeWhileLoading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Resource{Freshness: time.Second})
		f.commit("k")
		f.poll()
		release := make(chan struct{})
		f.load = func(_ context.Context, ids []string) (Batch, error) {
			b := f.db.read(0, ids)
			<-release
			return b, nil
		}
		type result struct {
			a   Answer
			err error
		}
		get := func() chan result {
			out := make(chan result, 1)
			go func() {
				a, err := f.get("k")
				out <- result{a, err}
			}()
			synctest.Wait()
			return out
		}
		first := get()
		f.commit("k")
		f.poll()
		soon := get() // within X of the start of the load: joins
		time.Sleep(2 * time.Second)
		f.poll()
		late := get()  // must not join
		later := get() // joins the second load
		if n := f.statements.Load(); n != 2 {
			t.Errorf("%d statements in flight, want 2", n)
		}
		time.Sleep(2 * time.Second)
		f.commit("k")
		f.poll()
		parked := get() // a third may not begin before one of the two has ended
		if n := f.statements.Load(); n != 2 {
			t.Errorf("%d statements in flight, want at most 2 a key", n)
		}
		close(release)
		for i, want := range []struct {
			from    chan result
			version int
		}{{first, 1}, {soon, 1}, {late, 2}, {later, 2}, {parked, 3}} {
			r := <-want.from
			if r.err != nil {
				t.Fatal(r.err)
			}
			if got := modelVersion(t, Key{0, "k"}, r.a.Doc); got != want.version {
				t.Errorf("caller %d got version %d, want %d", i, got, want.version)
			}
		}
		f.mustGet("k", 3, FromTier)
	})
}

func TestUnavailableOriginIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Resource{MaxLoads: 1})
		f.load = func(context.Context, []string) (Batch, error) {
			time.Sleep(time.Millisecond)
			return Batch{}, fmt.Errorf("dial: %w", ErrUnavailable)
		}
		var callers sync.WaitGroup
		for i := range 200 {
			callers.Go(func() {
				if _, err := f.get(strconv.Itoa(i)); !errors.Is(err, ErrUnavailable) {
					t.Errorf("got %v", err)
				}
			})
		}
		callers.Wait()
		if n := f.statements.Load(); n > 2 {
			t.Errorf("%d statements against an origin that is down; halving does not help", n)
		}
		f.load = nil
		f.commit("1")
		f.poll()
		f.mustGet("1", 1, FromLoad) // errors are not cached
	})
}

func TestWaitersKeepTheirDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Resource{})
		f.commit("k")
		f.poll()
		f.load = func(_ context.Context, ids []string) (Batch, error) {
			time.Sleep(4 * time.Second)
			return f.db.read(0, ids), nil
		}
		var callers sync.WaitGroup
		for i := range 10 {
			patience := time.Duration(i) * time.Second
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				began := time.Now()
				_, err := f.cache.Get(ctx, Key{0, "k"}, f.cache.Now())
				if took := time.Since(began); took > patience && err != nil || (err == nil) != (patience > 4*time.Second) && patience != 4*time.Second {
					t.Errorf("patience %v: %v after %v", patience, err, took)
				}
			})
		}
		callers.Wait()
		if n := f.statements.Load(); n != 1 {
			t.Errorf("%d statements", n)
		}
		f.poll()
		f.mustGet("k", 1, FromTier) // the load outlived the callers that gave up
	})
}

func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Resource{MaxLoads: 1, MaxBatch: 1, MaxQueue: 5})
		release := make(chan struct{})
		f.load = func(_ context.Context, ids []string) (Batch, error) {
			<-release
			return f.db.read(0, ids), nil
		}
		var refused atomic.Int64
		var callers sync.WaitGroup
		for i := range 20 {
			callers.Go(func() {
				if _, err := f.get(strconv.Itoa(i)); errors.Is(err, ErrOverloaded) {
					refused.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		if n := refused.Load(); n != 14 { // one is loading, five wait
			t.Errorf("%d callers were refused, want 14", n)
		}
		close(release)
		callers.Wait()
		if n := len(f.cache.shards[0].flights); n != 0 {
			t.Errorf("%d flights are left", n)
		}
	})
}

func TestPurge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Resource{})
		for _, id := range []string{"a", "b"} {
			f.commit(id)
		}
		f.poll()
		f.mustGet("a", 1, FromLoad)
		f.mustGet("b", 1, FromLoad)
		f.cache.Purge(Key{0, "a"})
		f.mustGet("a", 1, FromLoad)
		f.mustGet("b", 1, FromTier)
		f.cache.PurgeResource(0)
		f.mustGet("a", 1, FromLoad)
		f.mustGet("b", 1, FromLoad)

		release := make(chan struct{})
		f.load = func(_ context.Context, ids []string) (Batch, error) {
			<-release
			return f.db.read(0, ids), nil
		}
		f.cache.Purge(Key{0, "a"})
		answered := make(chan struct{})
		go func() { f.mustGet("a", 1, FromLoad); close(answered) }()
		synctest.Wait()
		f.cache.Purge(Key{0, "a"})
		close(release)
		<-answered
		f.mustGet("a", 1, FromLoad) // the load in flight at the purge was not stored

		f.cache.PurgeResource(0)
		synctest.Wait()
		release = make(chan struct{})
		answered = make(chan struct{})
		go func() { f.mustGet("b", 1, FromLoad); close(answered) }()
		synctest.Wait()
		f.cache.PurgeResource(0)
		close(release)
		<-answered
		if n := len(f.tier.docs); n != 0 {
			t.Errorf("%d documents were stored by loads that began before the flush", n)
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Resource{MaxLoads: 1, MaxBatch: 1})
		f.load = func(ctx context.Context, ids []string) (Batch, error) {
			<-ctx.Done()
			return Batch{}, ctx.Err()
		}
		var callers sync.WaitGroup
		for i := range 5 {
			callers.Go(func() {
				if _, err := f.get(strconv.Itoa(i)); !errors.Is(err, ErrClosed) {
					t.Errorf("got %v", err)
				}
			})
		}
		synctest.Wait()
		if err := f.cache.Close(); err != nil {
			t.Error(err)
		}
		callers.Wait()
		if _, err := f.get("x"); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestPeekAllocatesNothing(t *testing.T) {
	db := newDatabase()
	start := time.Now()
	c, err := New(Config{
		Resources: []Resource{{Name: "r"}},
		Origin: originFunc(func(_ context.Context, r ResourceID, ids []string) (Batch, error) {
			return db.read(r, ids), nil
		}),
		Tiers: []Tier{newMapTier()},
		Clock: func() time.Duration { return time.Since(start) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetPromise(0, true, "")
	c.Advance(time.Hour, UpTo(0))
	key := Key{0, "k"}
	if _, err := c.Get(t.Context(), key, c.Now()); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		if _, ok := c.Peek(key, c.Now()); !ok {
			t.Error("no hit")
		}
	}); n != 0 {
		t.Errorf("a hit allocates %v times", n)
	}
}
