package memory

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/testkit/cachekit"
)

// newCache returns a cache of documents of a fixed size; keys that begin with "-" are missing.
func newCache(t testing.TB, budget int64, size int) (*cache.Cache, *Tier) {
	t.Helper()
	tier, err := New(budget)
	if err != nil {
		t.Fatal(err)
	}
	load := func(_ context.Context, _ cache.ResourceID, id string) ([]byte, error) {
		if id[0] == '-' {
			return nil, nil
		}
		return append([]byte(id), bytes.Repeat([]byte("x"), size-len(id))...), nil
	}
	return cachekit.New(t, cachekit.Origin(load), tier, cache.Resource{Name: "a"}, cache.Resource{Name: "b"}), tier
}

func get(t testing.TB, c *cache.Cache, resource int, id string) cache.Answer {
	t.Helper()
	a, err := c.Get(context.Background(), cache.Key{Resource: cache.ResourceID(resource), ID: id}, c.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// settle waits for otter's maintenance, which runs on its own goroutines.
func settle(tier *Tier) {
	tier.documents.CleanUp()
	tier.missing.CleanUp()
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The overhead of a document is what Cost returns: the budget covers all of the
// memory, not a part of it.
func TestOverheadPerDocument(t *testing.T) {
	const n, size = 50_000, 1792 // a size class, so that nothing is lost to rounding
	c, tier := newCache(t, 1<<30, size)
	before := heap()
	for i := range n {
		a := get(t, c, 0, strconv.Itoa(1_000_000+i))
		c.KeepForm(a.Doc, cache.FormHTTP, &cache.Form{Value: new([64]byte), Size: 64 + 24})
	}
	settle(tier)
	grown := heap() - before
	s := tier.Stats()
	if s.Documents != n {
		t.Fatalf("%d documents are held, want %d", s.Documents, n)
	}
	overhead := float64(grown)/n - size
	charged := float64(s.Bytes)/n - size
	t.Logf("overhead per document: %.0f bytes on the heap, %.0f charged", overhead, charged)
	if overhead > 1.1*charged || charged > 1.25*overhead {
		t.Errorf("a document costs %.0f bytes besides its body, but is charged %.0f", overhead, charged)
	}
	runtime.KeepAlive(c)
}

func TestBudgetIsHard(t *testing.T) {
	const budget = 8 << 20
	c, tier := newCache(t, budget, 1000)
	for i := range 40_000 {
		a := get(t, c, i%2, strconv.Itoa(i))
		c.KeepForm(a.Doc, cache.FormHTTP, &cache.Form{Value: 1, Size: 100})
		if i%1000 == 0 {
			settle(tier)
			if s := tier.Stats(); s.Bytes > budget {
				t.Fatalf("after %d documents: %d bytes are charged, the budget is %d", i, s.Bytes, budget)
			}
		}
	}
	settle(tier)
	s := tier.Stats()
	if s.Bytes > budget || s.Bytes < budget*8/10 {
		t.Errorf("%d bytes are charged of a budget of %d", s.Bytes, budget)
	}
	if s.Evicted == 0 {
		t.Error("nothing was evicted")
	}
}

// A scan of keys that do not exist must not evict documents.
func TestMissingRowsTakeATenthAtMost(t *testing.T) {
	const budget = 4 << 20
	c, tier := newCache(t, budget, 1000)
	for i := range 20_000 {
		get(t, c, 0, strconv.Itoa(i))
	}
	settle(tier)
	documents := tier.Stats().Documents
	for i := range 100_000 {
		get(t, c, 0, "-"+strconv.Itoa(i))
	}
	settle(tier)
	s := tier.Stats()
	if missing := int64(tier.missing.WeightedSize()); missing > budget/10 || missing < budget/20 {
		t.Errorf("missing rows take %d bytes of a budget of %d", missing, budget)
	}
	if s.Bytes > budget {
		t.Errorf("%d bytes are charged of a budget of %d", s.Bytes, budget)
	}
	if kept := s.Documents - s.Missing; kept < documents*8/10 {
		t.Errorf("of %d documents %d are left after a scan of missing keys", documents, kept)
	}
}

// Forms are dropped for lack of room while the documents stay.
func TestFormsGoBeforeDocuments(t *testing.T) {
	const budget = 4 << 20
	c, tier := newCache(t, budget, 500)
	var docs []*cache.Document
	for i := range 2000 {
		docs = append(docs, get(t, c, 0, strconv.Itoa(i)).Doc)
	}
	settle(tier)
	if s := tier.Stats(); s.Documents != 2000 {
		t.Fatalf("%d documents", s.Documents)
	}
	kept := 0
	for round := range 3 {
		for _, d := range docs {
			if d.Form(cache.FormHTTP) == nil {
				c.KeepForm(d, cache.FormHTTP, &cache.Form{Value: round, Size: 2000})
			}
		}
	}
	for _, d := range docs {
		if d.Form(cache.FormHTTP) != nil {
			kept++
		}
	}
	settle(tier)
	s := tier.Stats()
	if s.Documents != 2000 {
		t.Errorf("documents were evicted (%d are left) while forms took %d bytes", s.Documents, s.FormBytes)
	}
	if s.FormBytes > budget/formShare || int64(kept)*2000 != s.FormBytes {
		t.Errorf("%d forms are kept, %d bytes are charged for them, %d are allowed", kept, s.FormBytes, budget/formShare)
	}
}

// A form that replaces another is charged in its place. One that is too late is not kept.
func TestReplacedForms(t *testing.T) {
	c, tier := newCache(t, MinBudget, 200)
	d := get(t, c, 0, "1").Doc
	first, second := &cache.Form{Value: 1, Size: 1000}, &cache.Form{Value: 2, Size: 300}
	for _, step := range []struct {
		old, form, kept *cache.Form
		charged         int64
	}{{nil, first, first, 1000}, {first, second, second, 300}, {first, &cache.Form{Value: 3, Size: 5000}, second, 300}} {
		c.ReplaceForm(d, cache.FormThrift, step.old, step.form)
		if got := d.Form(cache.FormThrift); got != step.kept || tier.Stats().FormBytes != step.charged {
			t.Errorf("%v in place of %v: %v is kept, %d bytes are charged, want %v and %d", step.form, step.old, got, tier.Stats().FormBytes, step.kept, step.charged)
		}
	}
}

// Whatever happens concurrently, no byte of forms stays charged when everything is
// gone.
func TestFormAccountUnderRaces(t *testing.T) {
	c, tier := newCache(t, MinBudget, 200)
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := range 5000 {
				id := strconv.Itoa(i % 300)
				a, err := c.Get(context.Background(), cache.Key{ID: id}, c.Now())
				if err != nil {
					t.Error(err)
					return
				}
				if a.Doc.Form(cache.FormHTTP) == nil {
					c.KeepForm(a.Doc, cache.FormHTTP, &cache.Form{Value: i, Size: 3000})
				}
				if i%3 == 0 {
					c.ReplaceForm(a.Doc, cache.FormThrift, a.Doc.Form(cache.FormThrift), &cache.Form{Value: i, Size: 500 + i%100})
				}
				if (i+w)%7 == 0 {
					c.Purge(cache.Key{ID: id})
				}
			}
		})
	}
	all.Wait()
	tier.Clear()
	settle(tier)
	if s := tier.Stats(); s.FormBytes != 0 || s.Documents != 0 {
		t.Errorf("after Clear: %+v", s)
	}
}

func TestSweepAndRemove(t *testing.T) {
	c, tier := newCache(t, MinBudget, 100)
	for i := range 100 {
		get(t, c, i%2, strconv.Itoa(i))
	}
	tier.Sweep(func(key cache.Key, _ *cache.Document) bool { return key.Resource == 1 })
	for i := range 100 {
		key := cache.Key{Resource: cache.ResourceID(i % 2), ID: strconv.Itoa(i)}
		if held := tier.Peek(key) != nil; held != (i%2 == 0) {
			t.Errorf("after the sweep of resource 1, %v held: %v", key, held)
		}
	}
	tier.Remove(cache.Key{ID: "0"})
	if tier.Peek(cache.Key{ID: "0"}) != nil {
		t.Error("removed document is still there")
	}
}

// TestNothingDroppedIsHeld: [cache.Cache.Again] assumes that the tier would still find a held
// document.
func TestNothingDroppedIsHeld(t *testing.T) {
	for name, drop := range map[string]func(c *cache.Cache, tier *Tier, key cache.Key){
		"Remove": func(_ *cache.Cache, tier *Tier, key cache.Key) { tier.Remove(key) },
		"RemoveIf": func(_ *cache.Cache, tier *Tier, key cache.Key) {
			tier.RemoveIf(key, func(*cache.Document) bool { return true })
		},
		"Sweep": func(_ *cache.Cache, tier *Tier, _ cache.Key) {
			tier.Sweep(func(cache.Key, *cache.Document) bool { return true })
		},
		"Clear": func(_ *cache.Cache, tier *Tier, _ cache.Key) { tier.Clear() },
		"Put of another": func(c *cache.Cache, tier *Tier, key cache.Key) {
			tier.Put(key, get(t, c, 1, "other").Doc)
		},
		"Put of a missing row": func(c *cache.Cache, tier *Tier, key cache.Key) {
			tier.Put(key, get(t, c, 1, "-other").Doc)
		},
		"eviction": func(c *cache.Cache, tier *Tier, key cache.Key) {
			for i := range 5000 { // each twice: a document that is requested once does not evict others
				get(t, c, 1, strconv.Itoa(i))
				get(t, c, 1, strconv.Itoa(i))
				settle(tier)
			}
			if tier.Peek(key) != nil {
				t.Fatal("the document was not evicted")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, tier := newCache(t, MinBudget, 2000)
			d := get(t, c, 0, "7").Doc
			if !c.Again(0, d, c.Now()) {
				t.Fatal("a document that was just stored is not held")
			}
			drop(c, tier, cache.Key{ID: "7"})
			if d.Held() || c.Again(0, d, c.Now()) {
				t.Error("the document is still held")
			}
		})
	}
}

func TestTooSmallBudget(t *testing.T) {
	if _, err := New(1000); err == nil {
		t.Error("a budget of 1,000 bytes was accepted")
	}
}

func BenchmarkPeek(b *testing.B) {
	c, tier := newCache(b, 64<<20, 1700)
	keys := make([]cache.Key, 1000)
	for i := range keys {
		keys[i] = cache.Key{ID: fmt.Sprint(i)}
		get(b, c, 0, keys[i].ID)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if tier.Peek(keys[i%1000]) == nil {
			b.Fatal("miss")
		}
	}
}
