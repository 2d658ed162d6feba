package redis_test

import (
	"strconv"
	"testing"

	"github.com/slipstream-go/slipstream/redis"
)

// A client whose only caller makes one call at a time reads its own replies; between the
// calls somebody must hear invalidations all the same, also when the cache answers and no
// call goes to the server any more.
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
				t.Errorf("callers read %d replies: between them nobody hears for up to half a second", n)
			}
		})
	}
}
