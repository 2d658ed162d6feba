package disk

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	berrors "go.etcd.io/bbolt/errors"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

func document(body string, xmin cache.Tx) *cache.Document {
	return cache.NewDocument([]byte(body), cache.Snapshot{XMin: xmin, XMax: xmin}, time.Minute)
}

func at(tx cache.Tx) cache.Position {
	return cache.Position{History: "h", Seen: cache.Snapshot{XMin: tx + 1, XMax: tx + 1}, Digests: map[string]string{"depts": "a"}}
}

func openTier(t *testing.T, dir string, change func(*Options)) *Tier {
	t.Helper()
	o := Options{Dir: dir, Budget: MinBudget, Boot: "boot"}
	if change != nil {
		change(&o)
	}
	tier, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tier.Close() })
	tier.Define(0, Resource{Name: "depts", Fingerprint: "f"})
	tier.Define(1, Resource{Name: "emps", Fingerprint: "g"})
	return tier
}

func key(id string) cache.Key { return cache.Key{ID: id} }

// ask queries as the cache does: first for what can be returned without waiting.
func ask(tier *Tier, key cache.Key) (cache.Stored, error) {
	if s := tier.Try(key); s.Body != nil {
		return s, nil
	}
	return getOne(context.Background(), tier, key)
}

// getOne gets one document.
func getOne(ctx context.Context, tier *Tier, key cache.Key) (cache.Stored, error) {
	var found [1]cache.Stored
	err := tier.Get(ctx, []cache.Key{key}, found[:])
	return found[0], err
}

// holds checks what the tier has for a key: "" means nothing.
func holds(t *testing.T, tier *Tier, id, want string) {
	t.Helper()
	s, err := ask(tier, key(id))
	if err != nil || string(s.Body) != want {
		t.Errorf("%s: %q, %v; want %q", id, s.Body, err, want)
	}
}

func syncTier(t *testing.T, tier *Tier) {
	t.Helper()
	if err := tier.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A document is there immediately after Put, after the batch, and after a restart; a dropped
// one is not, at any of these times.
func TestDocumentsOutliveTheProcess(t *testing.T) {
	testkit.NoLeaks(t)
	dir := t.TempDir()
	tier := openTier(t, dir, nil)
	for i := range 100 {
		tier.Put(key(fmt.Sprint(i)), document(fmt.Sprint("document ", i), 5))
	}
	holds(t, tier, "7", "document 7")
	tier.Invalidate(key("8"), 5) // may be missing from it
	tier.Invalidate(key("9"), 4) // is not
	tier.Remove(key("10"))
	check := func(name string) {
		t.Helper()
		t.Log(name)
		holds(t, tier, "7", "document 7")
		holds(t, tier, "8", "")
		holds(t, tier, "9", "document 9")
		holds(t, tier, "10", "")
		holds(t, tier, "none", "")
	}
	check("before the batch")
	tier.Checkpoint(at(9))
	syncTier(t, tier)
	check("after the batch")
	if f := tier.Figures(); f.Documents != 98 || f.Written != 98 || f.Queued != 0 {
		t.Errorf("%+v", f)
	}
	if err := tier.Close(); err != nil {
		t.Fatal(err)
	}
	tier = openTier(t, dir, nil)
	check("after a restart")
	if p := tier.Position(); p.History != "h" || p.Seen.XMax != 10 || len(p.Digests) != 1 {
		t.Errorf("%+v", p)
	}
	tier.Flush(0)
	holds(t, tier, "7", "")
	tier.Put(key("7"), document("again", 20))
	holds(t, tier, "7", "again")
	tier.Checkpoint(at(30))
	if err := tier.Close(); err != nil {
		t.Fatal(err)
	}
	tier = openTier(t, dir, nil)
	holds(t, tier, "7", "again")
	holds(t, tier, "9", "")
	tier.Void()
	holds(t, tier, "7", "")
	syncTier(t, tier)
	holds(t, tier, "7", "")
	if f := tier.Figures(); f.Documents != 0 || tier.Position().History != "" {
		t.Errorf("%+v, %+v", f, tier.Position())
	}
}

// A document that is ahead of the position waits for one that is not behind it.
func TestDocumentsAreNotAheadOfThePosition(t *testing.T) {
	dir := t.TempDir()
	tier := openTier(t, dir, nil)
	tier.Put(key("early"), document("early", 5))
	tier.Put(key("late"), document("late", 50))
	tier.Checkpoint(at(10))
	syncTier(t, tier)
	holds(t, tier, "late", "late") // while the process lives
	if f := tier.Figures(); f.Queued != 1 || f.Written != 1 {
		t.Errorf("%+v", f)
	}
	tier.Close()
	tier = openTier(t, dir, nil)
	holds(t, tier, "early", "early")
	holds(t, tier, "late", "")
}

// Documents that do not fit into one batch are in the next, even if the stream reports
// nothing more.
func TestCloseWritesTheWholeQueue(t *testing.T) {
	dir := t.TempDir()
	tier := openTier(t, dir, nil)
	body := strings.Repeat("x", 1<<10)
	const documents = 3000 // three batches
	for i := range documents {
		tier.Put(key(fmt.Sprint(i)), document(body, 5))
	}
	tier.Checkpoint(at(9))
	if f := tier.Figures(); f.Declined > 0 || f.QueuedBytes < 2*tier.overlay.most/4 {
		t.Fatalf("%+v", f)
	}
	tier.Close()
	tier = openTier(t, dir, nil)
	if f := tier.Figures(); f.Documents != documents {
		t.Errorf("%+v", f)
	}
}

// A waiting document does not keep in the file what a change has dropped: neither one that was
// put after the change was applied, nor one that had seen it before, nor while batches fail.
func TestDropDoesNotWaitForADocument(t *testing.T) {
	for name, between := range map[string]func(*Tier){
		"dropped, then put": func(tier *Tier) {
			tier.Invalidate(key("a"), 20)
			tier.Put(key("a"), document("new", 50))
		},
		"put, then dropped": func(tier *Tier) {
			tier.Put(key("a"), document("new", 50))
			tier.Invalidate(key("a"), 20)
		},
		"put, removed, put": func(tier *Tier) {
			tier.Put(key("a"), document("new", 50))
			tier.Remove(key("a"))
			tier.Put(key("a"), document("new", 50))
		},
	} {
		for _, fails := range []bool{false, true} {
			dir := t.TempDir()
			failing := false
			tier := openTier(t, dir, func(o *Options) {
				o.beforeWrite = func(step string) error {
					if failing && step == "commit" {
						return errInjected
					}
					return nil
				}
			})
			tier.Put(key("a"), document("old", 5))
			tier.Checkpoint(at(9))
			syncTier(t, tier)
			between(tier)
			tier.Checkpoint(at(30))
			if fails {
				failing = true
				if err := tier.Sync(t.Context()); err == nil {
					t.Error("the fault did not show")
				}
				failing = false
				tier.Checkpoint(at(31))
			}
			syncTier(t, tier)
			holds(t, tier, "a", "new")
			failing = true // the process is killed
			tier.Close()
			tier = openTier(t, dir, nil)
			if p := tier.Position(); p.Seen.XMax < 31 {
				t.Fatalf("%+v", p)
			}
			if s, _ := getOne(t.Context(), tier, key("a")); s.Body != nil {
				t.Errorf("%s, fails %v: %q was found after a restart", name, fails, s.Body)
			}
		}
	}
}

// A batch for which there is no room does not leave in the file the records that its
// documents would have replaced.
func TestDropDoesNotWaitForRoom(t *testing.T) {
	dir := t.TempDir()
	full := false
	var tier *Tier
	tier = openTier(t, dir, func(o *Options) {
		o.beforeWrite = func(step string) error {
			if step == "commit" && full {
				full = false
				tier.Put(key("a"), document("newer", 26)) // for the batch after this one
				tier.Checkpoint(at(31))
				return berrors.ErrMaxSizeReached
			}
			return nil
		}
	})
	tier.Put(key("a"), document("old", 5))
	tier.Checkpoint(at(9))
	syncTier(t, tier)
	tier.Invalidate(key("a"), 20)
	tier.Put(key("a"), document("new", 25))
	tier.Checkpoint(at(30))
	full = true
	syncTier(t, tier)
	holds(t, tier, "a", "")
	checked(t, tier, dir)
}
