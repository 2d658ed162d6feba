package redis_test

import (
	"strconv"
	"testing"

	"github.com/slipstream-go/slipstream/redis"
)

// A client whose only caller makes one call at a time reads its own replies. Invalidations must be
// read between the calls anyway, even when the cache answers and calls no longer reach the server.
func TestCacheHearsWhileNobodyCalls(t *testing.T) {
	for name, o := range map[string]redis.CacheOptions{"reads": {}, "opt in": {Mode: redis.CacheOptIn}, "broadcast": {Mode: redis.CacheBroadcast}} {
		t.Run(name, func(t *testing.T) {
			c, other, _ := cached(t, o)
			ctx := t.Context()
			must(t, other.Set(ctx, "k", "one"))
			for i := range 300 {
				if _, _, err := c.Get(ctx, "x"+strconv.Itoa(i)); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				becomes(t, c, "k", "one")
			}
			must(t, other.Set(ctx, "k", "two"))
			becomes(t, c, "k", "two")
			if n := c.Stats().SoloReplies; n > 0 {
				t.Errorf("callers read %d replies: between calls, no goroutine reads for up to half a second", n)
			}
		})
	}
}
