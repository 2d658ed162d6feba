package redis_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// cached returns a client with a cache and one without, for the same server.
func cached(t *testing.T, o redis.CacheOptions) (c, other *redis.Client, server *testkit.Redis) {
	t.Helper()
	testkit.NoLeaks(t)
	server = testkit.StartRedis(t)
	return connect(t, redis.Options{Addr: server.Addr, Cache: &o}), connect(t, redis.Options{Addr: server.Addr}), server
}

// becomes waits until the client has received a change.
func becomes(t *testing.T, c *redis.Client, key, want string) {
	t.Helper()
	testkit.Eventually(t, 10*time.Second, func() error {
		if v, _, err := c.GetCached(t.Context(), key); v != want || err != nil {
			return fmt.Errorf("%q, %w", v, err)
		}
		return nil
	})
}

func TestCache(t *testing.T) {
	for name, o := range map[string]redis.CacheOptions{
		"reads": {}, "opt in": {Mode: redis.CacheOptIn}, "broadcast": {Mode: redis.CacheBroadcast},
		"prefixes": {Mode: redis.CacheBroadcast, Prefixes: []string{"k", "h"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, other, _ := cached(t, o)
			ctx := t.Context()
			hits := func() uint64 { return c.Stats().Cache.Hits }
			is := func(got, want string) {
				t.Helper()
				if got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
			is(say(c.GetCached(ctx, "k")), " false <nil>")
			is(say(c.GetCached(ctx, "k")), " false <nil>") // the absence of the key is cached, too
			must(t, other.Set(ctx, "k", "one"))
			becomes(t, c, "k", "one")
			testkit.Eventually(t, 10*time.Second, func() error {
				before := hits()
				is(say(c.GetCached(ctx, "k")), "one true <nil>")
				if n := hits() - before; n != 1 {
					return fmt.Errorf("%d hits, want 1", n)
				}
				return nil
			})
			// The client's own changes count, too.
			must(t, c.Set(ctx, "k", "two"))
			becomes(t, c, "k", "two")
			var fields map[string]string
			for i := range 3 {
				must(t, other.Do(ctx, nil, redis.Cmd("HSET", "h", "f", i)))
				testkit.Eventually(t, 10*time.Second, func() error {
					if err := c.DoCached(ctx, &fields, redis.Cmd("HGETALL", "h")); err != nil || fields["f"] != strconv.Itoa(i) {
						return fmt.Errorf("%v, %w", fields, err)
					}
					return nil
				})
				var one string
				must(t, c.DoCached(ctx, &one, redis.Cmd("HGET", "h", "f"))) // another command
				is(one, strconv.Itoa(i))
				// The server may report the change after the new value has been read.
				testkit.Eventually(t, 10*time.Second, func() error {
					before := hits()
					if err := c.DoCached(ctx, &fields, redis.Cmd("HGETALL", "h")); err != nil || hits() == before {
						return fmt.Errorf("no hit, %w", err)
					}
					return nil
				})
			}
			must(t, other.FlushAll(ctx))
			becomes(t, c, "k", "")
			// Commands that do not read exactly one key are not cached.
			before := hits()
			for range 2 {
				must(t, c.DoCached(ctx, nil, redis.Cmd("DBSIZE")))
				must(t, c.DoCached(ctx, nil, redis.Cmd("SET", "k", 1)))
			}
			if hits() != before {
				t.Error("a command that writes was answered from memory")
			}
		})
	}
}

// TestCacheExpiry: a key that expires is not answered longer than the server would.
func TestCacheExpiry(t *testing.T) {
	c, other, _ := cached(t, redis.CacheOptions{})
	must(t, other.SetEX(t.Context(), "k", "v", 100*time.Millisecond))
	start := time.Now()
	for time.Since(start) < 300*time.Millisecond {
		asked := time.Since(start)
		v, _, err := c.GetCached(t.Context(), "k")
		must(t, err)
		if v != "" && asked > 150*time.Millisecond {
			t.Fatalf("%v after the key was set, it was still answered", asked)
		}
	}
	c, other, _ = cached(t, redis.CacheOptions{MaxAge: 20 * time.Millisecond})
	must(t, other.Set(t.Context(), "k", "v"))
	for range 3 {
		c.GetCached(t.Context(), "k")
		time.Sleep(25 * time.Millisecond)
	}
	if s := c.Stats().Cache; s.Hits != 0 || s.Misses < 3 {
		t.Errorf("with a MaxAge: %+v", s)
	}
}

// TestCacheIsEmptied: after the connection is lost, no earlier reply is returned.
func TestCacheIsEmptied(t *testing.T) {
	c, other, server := cached(t, redis.CacheOptions{})
	ctx := t.Context()
	for i := range 5 {
		must(t, other.Set(ctx, "k", strconv.Itoa(i)))
		becomes(t, c, "k", strconv.Itoa(i))
		if i == 3 {
			server.Restart(t) // all keys are gone
			becomes(t, c, "k", "")
			continue
		}
		must(t, other.Do(ctx, nil, redis.Cmd("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")))
		must(t, other.Set(ctx, "k", "changed"))
		becomes(t, c, "k", "changed")
	}
	if s := c.Stats().Cache; s.Emptied < 5 {
		t.Errorf("emptied %d times, want 5", s.Emptied)
	}
}

// TestCacheIsBounded: the cache is bounded in bytes, and entries that are in use are kept.
func TestCacheIsBounded(t *testing.T) {
	const most = 1 << 20
	c, other, _ := cached(t, redis.CacheOptions{MaxBytes: most})
	ctx := t.Context()
	var b redis.Batch
	for i := range 4000 {
		b.Add(nil, redis.Cmd("SET", "k"+strconv.Itoa(i), strings.Repeat("v", 1000)))
	}
	b.Add(nil, redis.Cmd("SET", "huge", strings.Repeat("v", most)))
	must(t, other.DoBatch(ctx, &b))
	for range 2 {
		_, _, err := c.GetCached(ctx, "huge")
		must(t, err)
	}
	for i := range 4000 {
		for _, key := range []string{"k" + strconv.Itoa(i), "k0"} {
			_, _, err := c.GetCached(ctx, key)
			must(t, err)
		}
		if s := c.Stats().Cache; s.Bytes > most {
			t.Fatalf("%d bytes, want at most %d", s.Bytes, most)
		}
	}
	s := c.Stats().Cache
	if s.Evicted < 2000 || s.Hits < 3900 {
		t.Errorf("%+v: k0 was requested 4,000 times", s)
	}
}

// TestCacheNeverGoesBack: readers that have seen a value never get an older one afterwards, while
// writers change the keys and connections are lost.
func TestCacheNeverGoesBack(t *testing.T) {
	for name, o := range map[string]redis.CacheOptions{"reads": {}, "opt in": {Mode: redis.CacheOptIn}, "broadcast": {Mode: redis.CacheBroadcast}} {
		t.Run(name, func(t *testing.T) {
			c, other, _ := cached(t, o)
			ctx := t.Context()
			const keys = 4
			var newest [keys]atomic.Int64 // newest version that a reader has received
			stop := make(chan struct{})
			var all sync.WaitGroup
			all.Go(func() { // writes and, now and then, cuts
				for i := 1; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					for k := range keys {
						if err := other.Set(ctx, "k"+strconv.Itoa(k), strconv.Itoa(i)); err != nil {
							t.Error(err)
						}
					}
					if i%100 == 0 {
						other.Do(ctx, nil, redis.Cmd("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))
					}
					time.Sleep(200 * time.Microsecond)
				}
			})
			random := testkit.Rand(t)
			for i := range 8 {
				r := testkit.Fork(random.Uint64(), uint64(i))
				all.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						k := r.IntN(keys)
						floor := newest[k].Load()
						v, found, err := c.GetCached(ctx, "k"+strconv.Itoa(k))
						if err != nil || !found {
							continue
						}
						n, err := strconv.ParseInt(v, 10, 64)
						if err != nil {
							t.Error(err)
							return
						}
						if r.IntN(50) == 0 { // otherwise the hits would leave no processor to the writer
							time.Sleep(50 * time.Microsecond)
						}
						if n < floor {
							t.Errorf("k%d was %d, and then %d again", k, floor, n)
							return
						}
						for old := newest[k].Load(); n > old && !newest[k].CompareAndSwap(old, n); old = newest[k].Load() {
						}
					}
				})
			}
			testkit.Eventually(t, 20*time.Second, func() error {
				if s := c.Stats().Cache; t.Failed() || s.Hits > 1000 && s.Invalidated > 1500 && s.Raced > 20 && s.Emptied > 1 {
					return nil
				} else {
					return fmt.Errorf("the test had no effect: %+v", s)
				}
			})
			close(stop)
			all.Wait()
			t.Logf("%+v", c.Stats().Cache)
		})
	}
}

func TestCacheOptions(t *testing.T) {
	for _, o := range []redis.Options{
		{Protocol: 2, Cache: &redis.CacheOptions{}}, {Cache: &redis.CacheOptions{MaxBytes: -1}},
		{Cache: &redis.CacheOptions{Prefixes: []string{"a"}}}, {Cache: &redis.CacheOptions{Mode: 9}},
	} {
		if c, err := redis.Connect(t.Context(), o); err == nil {
			c.Close()
			t.Errorf("%+v was accepted", o.Cache)
		}
	}
}

// BenchmarkCached is a hit of client-side caching.
func BenchmarkCached(b *testing.B) {
	server := testkit.StartRedis(b)
	c := connect(b, redis.Options{Addr: server.Addr, Cache: &redis.CacheOptions{}})
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = "key:" + strconv.Itoa(i)
		must(b, c.Set(b.Context(), keys[i], strings.Repeat("v", 128)))
	}
	for _, key := range keys {
		_, _, err := c.GetCached(b.Context(), key)
		must(b, err)
	}
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, found, err := c.GetCached(b.Context(), keys[i%len(keys)]); !found || err != nil {
				b.Fatal(found, err)
			}
		}
	})
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(p *testing.PB) {
			for i := 0; p.Next(); i++ {
				if _, found, err := c.GetCached(b.Context(), keys[i%len(keys)]); !found || err != nil {
					b.Fatal(found, err)
				}
			}
		})
	})
}
