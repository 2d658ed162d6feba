package recent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/tier/memory"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/cachekit"
)

// newCache returns a cache of documents of a size; keys that begin with "-" are missing.
func newCache(t *testing.T, budget int64, size int) *cache.Cache {
	t.Helper()
	tier, err := memory.New(budget)
	if err != nil {
		t.Fatal(err)
	}
	load := func(_ context.Context, _ cache.ResourceID, id string) ([]byte, error) {
		if id[0] == '-' {
			return nil, nil
		}
		return []byte(id + strings.Repeat(" ", size)), nil
	}
	return cachekit.New(t, cachekit.Origin(load), tier, cache.Resource{Name: "a"}, cache.Resource{Name: "b"})
}

var columns = &[]resource.KeyColumn{{Name: "n", Kind: resource.Integer}}

// ask answers a request as a frontend does. known says that the table had the
// answer.
func ask(t *testing.T, c *cache.Cache, table *Table[string], id string) (doc *cache.Document, known bool) {
	t.Helper()
	if e := table.Find(c, "/a/"+id, c.Now()); e != nil {
		if e.Resource != "a" || e.Columns != columns || e.Head() != "head of "+id || &e.Body[0] != &e.Document().Body()[0] {
			t.Fatalf("the entry of %s is %+v", id, e)
		}
		return e.Document(), true
	}
	key := cache.Key{ID: id}
	if a, ok := c.Peek(key, c.Now()); ok {
		table.Remember("/a/"+id, "a", 0, columns, a.Doc, "head of "+id)
		return a.Doc, false
	}
	a, err := c.Get(t.Context(), key, c.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a.Doc, false
}

// settled repeats a request until the table has the answer.
func settled(t *testing.T, c *cache.Cache, table *Table[string], id string) *cache.Document {
	t.Helper()
	var doc *cache.Document
	// A document that was replaced may be in the tier a moment later.
	testkit.Eventually(t, 30*time.Second, func() error {
		for range 2 * firstThrough {
			if d, known := ask(t, c, table, id); known {
				doc = d
				return nil
			}
		}
		return fmt.Errorf("%s is not remembered", id)
	})
	return doc
}

// TestForgetsWhatTheTierDropped: whatever makes the cache drop a document, the next
// request does not get it.
func TestForgetsWhatTheTierDropped(t *testing.T) {
	for name, drop := range map[string]func(c *cache.Cache){
		"invalidated": func(c *cache.Cache) { c.Apply([]cache.Event{{Key: cache.Key{ID: "7"}, Tx: 5}}) },
		"flushed":     func(c *cache.Cache) { c.Apply([]cache.Event{{All: true, Tx: 5}}) },
		"void":        func(c *cache.Cache) { c.Void("a test"); c.Advance(time.Hour, cache.UpTo(9)) },
		"purged":      func(c *cache.Cache) { c.Purge(cache.Key{ID: "7"}) },
		"purged all":  func(c *cache.Cache) { c.PurgeResource(0) },
		"no horizon":  func(c *cache.Cache) { c.Void("a test") },
		"late":        func(c *cache.Cache) { c.Advance(-time.Hour, cache.UpTo(1)) },
		"no promise":  func(c *cache.Cache) { c.SetPromise(0, false, "a test") },
	} {
		t.Run(name, func(t *testing.T) {
			c, table := newCache(t, 1<<20, 100), New[string]()
			settled(t, c, table, "7")
			drop(c)
			for range throughTiers {
				if e := table.Find(c, "/a/7", c.Now()); e != nil {
					t.Fatalf("%s is still answered", e.Body[:1])
				}
			}
		})
	}
}

// TestReplacedDocument: a newer document takes the place of the old one.
func TestReplacedDocument(t *testing.T) {
	c, table := newCache(t, 1<<20, 100), New[string]()
	old := settled(t, c, table, "7")
	c.Apply([]cache.Event{{Key: cache.Key{ID: "7"}, Tx: 5}})
	c.Advance(time.Hour, cache.UpTo(9))
	c.Advance(time.Hour, cache.UpTo(9)) // no earlier load is left: the change need not be remembered
	next, err := c.Get(t.Context(), cache.Key{ID: "7"}, c.Now())
	if err != nil {
		t.Fatal(err)
	}
	if got := settled(t, c, table, "7"); got == old || got != next.Doc && !got.Held() {
		t.Errorf("the previous document is returned")
	}
}

func TestNotRemembered(t *testing.T) {
	c, table := newCache(t, 4<<20, MaxBody+1), New[string]()
	for _, id := range []string{"1", "-1"} { // too large, and missing
		for range 3 * firstThrough {
			if _, known := ask(t, c, table, id); known {
				t.Fatalf("%s is remembered", id)
			}
		}
	}
	c = newCache(t, 4<<20, 10)
	long := strings.Repeat("1", maxText)
	for range 3 * firstThrough {
		if _, known := ask(t, c, table, long); known {
			t.Fatal("a text that does not fit is remembered")
		}
	}
}

// TestManyTexts: texts that share slots never get each other's documents.
func TestManyTexts(t *testing.T) {
	c, table := newCache(t, 64<<20, 10), New[string]()
	zipf := rand.NewZipf(testkit.Rand(t), 1.1, 4, 3*sets*ways)
	known := 0
	for range 200_000 {
		id := strconv.FormatUint(zipf.Uint64(), 10)
		doc, was := ask(t, c, table, id)
		if got := strings.TrimRight(string(doc.Body()), " "); got != id {
			t.Fatalf("requested %s, got %s", id, got)
		}
		if was {
			known++
		}
	}
	if known < 10_000 {
		t.Errorf("the table knew %d of 200,000", known)
	}
}

// TestLetsGo: documents that the tier has dropped do not stay forever.
func TestLetsGo(t *testing.T) {
	c, table := newCache(t, 64<<20, 10), New[string]()
	for i := range 1000 {
		settled(t, c, table, strconv.Itoa(i))
	}
	c.PurgeResource(0)
	settled(t, c, table, "5000")
	// A purge drops documents in the background.
	testkit.Eventually(t, 10*time.Second, func() error {
		for range throughTiers * sets * ways {
			ask(t, c, table, "5000")
		}
		kept := 0
		for i := range table.entries {
			if table.entries[i].doc != nil {
				kept++
			}
		}
		if kept != 1 {
			return fmt.Errorf("%d documents that were purged are kept", kept-1)
		}
		return nil
	})
}

// TestHitRate: the tier keeps popular documents, although it sees only one in eight of those
// requests.
func TestHitRate(t *testing.T) {
	const keys, questions = 20_000, 400_000
	rate := func(table *Table[string]) float64 {
		c := newCache(t, 1<<20, 1000) // about 800 documents
		zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 4, keys-1)
		hits := 0
		for range questions {
			id := strconv.FormatUint(zipf.Uint64(), 10)
			if table == nil {
				if _, ok := c.Peek(cache.Key{ID: id}, c.Now()); ok {
					hits++
				} else if _, err := c.Get(t.Context(), cache.Key{ID: id}, c.Now()); err != nil {
					t.Fatal(err)
				}
				continue
			}
			before := c.Stats().Resources[0].Misses
			_, known := ask(t, c, table, id)
			if known || c.Stats().Resources[0].Misses == before {
				hits++
			}
		}
		return float64(hits) / questions
	}
	with, without := rate(New[string]()), rate(nil)
	t.Logf("hit rate %.4f, without the table %.4f", with, without)
	if with < without-0.02 {
		t.Errorf("the hit rate is %.4f, without the table %.4f", with, without)
	}
}

func TestLanes(t *testing.T) {
	var l Lanes[string]
	a := l.Borrow(3)
	if a == nil || l.Borrow(3) != nil || l.Borrow(3+maxLanes) != nil {
		t.Fatal("a lane's table is borrowed twice, or not at all")
	}
	if b := l.Borrow(4); b == nil || b == a {
		t.Fatal("another lane has no table of its own")
	}
	l.GiveBack(3, nil)
	l.GiveBack(3, a)
	if l.Borrow(3) != a {
		t.Error("the returned table is lost")
	}
}

// TestFindAllocatesNothing: it is on the path of every hit.
func TestFindAllocatesNothing(t *testing.T) {
	c, table := newCache(t, 1<<20, 100), New[string]()
	doc := settled(t, c, table, "7")
	now := c.Now()
	if n := testing.AllocsPerRun(1000, func() {
		if table.Find(c, "/a/7", now) == nil {
			table.Remember("/a/7", "a", 0, columns, doc, "head of 7")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
