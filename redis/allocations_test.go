//go:build !race

// The race detector makes sync.Pool drop objects at random, so that calls allocate. Therefore,
// allocations are counted only without it.

package redis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/redis"
)

// The typed methods keep their promise: with a destination they do not allocate, and Get allocates
// once, for its string. This holds with and without a context that can end.
func TestAllocations(t *testing.T) { checkAllocations(t, start(t), 0) }

// A batch that is reused allocates nothing for its commands.
func TestAllocationsOfABatch(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	must(t, c.Set(ctx, "k", strings.Repeat("v", 100)))
	var b redis.Batch
	values := make([][]byte, 1000)
	got := testing.AllocsPerRun(20, func() {
		b.Reset()
		for i := range values {
			b.AddStrings(&values[i], "GET", "k")
		}
		must(t, c.DoBatch(ctx, &b))
	})
	if got > 10 { // for a thousand commands; a garbage collection may have emptied a pool
		t.Errorf("%v allocations", got)
	}
}

// A client-side timeout causes no allocation either.
func TestAllocationsWithATimeout(t *testing.T) {
	checkAllocations(t, start(t, func(o *redis.Options) { o.Timeout = time.Hour }), 0)
}

// checkAllocations checks methods on one server or on a cluster, where Ping, which queries every
// node, allocates at most pings times.
func checkAllocations(t *testing.T, c *redis.Client, pings float64) {
	t.Helper()
	must(t, c.Set(t.Context(), "k", strings.Repeat("v", 100)))
	must(t, c.Set(t.Context(), "large", strings.Repeat("v", 100_000)))
	cancellable, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	dst := make([]byte, 0, 200_000)
	spans := make([]redis.Span, 0, 8)
	keys := []string{"k", "{k}none", "k"} // of one slot
	value := make([]byte, 100)
	command := redis.Cmd("GET", "k")
	var future redis.Future
	for i, ctx := range []context.Context{context.Background(), context.Background(), cancellable, cancellable} {
		// A future between the calls keeps callers from reading their own replies, which takes
		// another path through the engine. Both paths are tested in turn.
		beside := func() error {
			if i%2 == 0 {
				return nil
			}
			future = c.Start(ctx, command)
			return future.Wait(nil)
		}
		for range 100 {
			must(t, c.Ping(ctx)) // until the only caller reads its own replies
		}
		for _, test := range []struct {
			name string
			most float64
			call func() error
		}{
			{"Get", 1, func() error { _, _, err := c.Get(ctx, "k"); return err }},
			{"GetAppend", 0, func() error { _, _, err := c.GetAppend(ctx, dst[:0], "k"); return err }},
			{"GetAppend of bytes for a key", 0, func() error {
				_, _, err := c.GetAppend(ctx, dst[:0], string(append(dst[:0], 'k')))
				return err
			}},
			{"Set", 0, func() error { return c.Set(ctx, "s", "value") }},
			{"SetBytes", 0, func() error { return c.SetBytes(ctx, "s", value) }},
			{"SetWith", 0, func() error { _, err := c.SetWith(ctx, "s", "value", redis.SetOptions{TTL: time.Hour}); return err }},
			{"MGetAppend", 0, func() error { _, _, err := c.MGetAppend(ctx, dst[:0], spans[:0], keys...); return err }},
			{"Del", 0, func() error { _, err := c.Del(ctx, "d"); return err }},
			{"Exists", 0, func() error { _, err := c.Exists(ctx, "{k}d", "k"); return err }},
			{"Incr", 0, func() error { _, err := c.Incr(ctx, "n"); return err }},
			{"IncrBy", 0, func() error { _, err := c.IncrBy(ctx, "n", 5); return err }},
			{"Expire", 0, func() error { _, err := c.Expire(ctx, "n", time.Hour); return err }},
			{"TTL", 0, func() error { _, _, err := c.TTL(ctx, "n"); return err }},
			{"Ping", pings, func() error { return c.Ping(ctx) }},
			{"Do into bytes", 0, func() error { return c.Do(ctx, &dst, command) }},
			{"Start and Wait", 0, func() error {
				future = c.Start(ctx, command)
				return future.Wait(nil)
			}},
		} {
			var failed error
			n := testing.AllocsPerRun(300, func() {
				if err := errors.Join(beside(), test.call()); err != nil {
					failed = err
				}
			})
			if failed != nil {
				t.Errorf("%s: %v", test.name, failed)
			}
			if n > test.most {
				t.Errorf("%s: %v allocations, want at most %v (context that can end: %v)", test.name, n, test.most, ctx.Done() != nil)
			}
		}
	}
}
