package cache_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/tier/memory"
)

// oneBody is an origin in which every document is the same.
type oneBody []byte

func (o oneBody) Load(_ context.Context, _ cache.ResourceID, ids []string) (cache.Batch, error) {
	b := cache.Batch{Snapshot: cache.UpTo(1), Docs: make([]cache.Loaded, len(ids))}
	for i := range b.Docs {
		b.Docs[i].Body = o
	}
	return b, nil
}

// BenchmarkPeek is a hit over the memory tier, clock excluded, on one goroutine
// and on all cores.
func BenchmarkPeek(b *testing.B) {
	tier, err := memory.New(64 << 20)
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	c, err := cache.New(cache.Config{
		Resources: []cache.Resource{{Name: "r"}},
		Origin:    oneBody(`{"name":"document"}`),
		Tiers:     []cache.Tier{tier},
		Clock:     func() time.Duration { return time.Since(start) },
	})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	c.SetPromise(0, true, "")
	c.Advance(24*time.Hour, cache.UpTo(1))
	keys := make([]cache.Key, 1024)
	for i := range keys {
		keys[i] = cache.Key{ID: strconv.Itoa(i)}
		if _, err := c.Get(b.Context(), keys[i], c.Now()); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, ok := c.Peek(keys[i%len(keys)], time.Minute); !ok {
				b.Fatal("no hit")
			}
		}
	})
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(p *testing.PB) {
			for i := 0; p.Next(); i++ {
				if _, ok := c.Peek(keys[i%len(keys)], time.Minute); !ok {
					b.Error("no hit")
				}
			}
		})
	})
}
