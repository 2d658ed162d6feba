package cache_test

import (
	"context"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/tier/disk"
	"github.com/slipstream-go/slipstream/internal/gateway/tier/memory"
)

// none is a tier that holds nothing.
type none struct{ cache.Tier }

func (none) Peek(cache.Key) *cache.Document                          { return nil }
func (none) Get(context.Context, cache.Key) (*cache.Document, error) { return nil, nil }
func (none) Put(cache.Key, *cache.Document)                          {}
func (none) RemoveIf(cache.Key, func(*cache.Document) bool)          {}

// A hit in memory allocates nothing. A hit in the disk tier allocates the document (its body,
// the Document and the key that memory keeps) and 2 objects for the read, whether it is found
// without waiting or by a lookup that other callers may share.
func TestHitsAllocateNoMoreThanTheDocument(t *testing.T) {
	for name, c := range map[string]struct {
		slow, stay, held bool
		want             float64
	}{
		"in memory":                       {held: true, want: 0},
		"on disk, without waiting":        {want: 5},
		"on disk, by a lookup":            {slow: true, want: 5},
		"on disk, by a lookup, and stays": {slow: true, stay: true, want: 4},
	} {
		t.Run(name, func(t *testing.T) {
			mem, err := memory.New(1 << 20)
			if err != nil {
				t.Fatal(err)
			}
			defer mem.Close()
			var tier cache.Tier = mem
			if !c.held {
				tier = none{mem}
			}
			options := disk.Options{Dir: t.TempDir(), Budget: disk.MinBudget}
			if c.slow {
				options.BeforeRead = func() {} // every read may wait
			}
			store, err := disk.Open(options)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			store.Define(0, disk.Resource{Name: "r"})
			start := time.Now()
			cached, err := cache.New(cache.Config{
				Resources: []cache.Resource{{Name: "r"}},
				Origin:    oneBody(`{"name":"document"}`),
				Tiers:     []cache.Tier{tier},
				StoreOnly: c.stay,
				Clock:     func() time.Duration { return time.Since(start) },
			})
			if err != nil {
				t.Fatal(err)
			}
			cached.Attach(store, 0)
			cached.SetPromise(0, true, "")
			cached.Advance(24*time.Hour, cache.UpTo(1))
			cached.Checkpoint(cache.Position{History: "h", Seen: cache.UpTo(1)}, 1)
			ctx, key := context.Background(), cache.Key{ID: "1"}
			get := func() cache.Answer {
				a, err := cached.Get(ctx, key, time.Minute)
				if err != nil {
					t.Fatal(err)
				}
				return a
			}
			get()
			cached.Checkpoint(cache.Position{History: "h", Seen: cache.UpTo(2)}, 1)
			for store.Figures().Queued > 0 {
				if err := store.Sync(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if a := get(); a.FromStore == c.held {
				t.Fatalf("answered from %q (%d)", a.Tier, a.Source)
			}
			if n := testing.AllocsPerRun(1000, func() { get() }); n > c.want {
				t.Errorf("%v allocations, want %v", n, c.want)
			}
		})
	}
}
