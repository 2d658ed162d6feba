package disk

import (
	"testing"

	"github.com/slipstream-go/slipstream/cache"
)

// A resource that comes back under another index has none of its former documents, whatever
// epochs it had, and the former index neither finds nor writes anything.
func TestResourceThatComesBack(t *testing.T) {
	dir := t.TempDir()
	tier := openTier(t, dir, nil)
	old, now := key("k"), cache.Key{Resource: 2, ID: "k"}
	for flushes := range 5 {
		tier.Put(old, document("old", 5))
		tier.Checkpoint(at(9))
		syncTier(t, tier)
		if flushes < 4 {
			tier.Flush(0)
		}
	}
	tier.Define(2, Resource{Name: "depts", Fingerprint: "f"})
	for range 8 { // a flush for each epoch that there could be
		if s := tier.Try(now); s.Body != nil {
			t.Fatalf("a former document: %q", s.Body)
		}
		if s, err := getOne(t.Context(), tier, now); s.Body != nil || err != nil {
			t.Fatalf("a former document: %q, %v", s.Body, err)
		}
		tier.Flush(2)
	}
	tier.Put(old, document("from the former place", 5))
	tier.Put(now, document("new", 5))
	tier.Checkpoint(at(9))
	syncTier(t, tier)
	if s, _ := getOne(t.Context(), tier, now); string(s.Body) != "new" {
		t.Errorf("%q", s.Body)
	}
	if s, _ := getOne(t.Context(), tier, old); s.Body != nil {
		t.Errorf("the former place: %q", s.Body)
	}
	tier.Close()
	tier = openTier(t, dir, nil)
	holds(t, tier, "k", "new")
}
