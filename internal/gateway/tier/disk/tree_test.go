package disk

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// randomTree makes a file of documents of all sizes, some deleted again, and returns its bytes,
// the tree over them and what bbolt has for each key.
func randomTree(t testing.TB, rng *rand.Rand, n int) (data []byte, walk *tree, want map[string][]byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "random")
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	want = make(map[string][]byte)
	for range 4 { // several transactions, so that pages are split and merged
		err := db.Update(func(tx *bolt.Tx) error {
			docs, err := tx.CreateBucketIfNotExists(bucketDocs)
			for i := 0; err == nil && i < n/4; i++ {
				key := fmt.Appendf(nil, "%s%d", strings.Repeat("k", rng.IntN(40)), rng.IntN(n))
				if rng.IntN(4) == 0 {
					err = docs.Delete(key)
					delete(want, string(key))
					continue
				}
				value := bytes.Repeat([]byte{byte(i)}, rng.IntN(300))
				if rng.IntN(50) == 0 {
					value = bytes.Repeat([]byte{byte(i)}, rng.IntN(30_000)) // more than a page
				}
				err = docs.Put(key, value)
				want[string(key)] = value
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	walk = &tree{pageSize: db.Info().PageSize, near: func(int, int) bool { return true }}
	if err := db.View(func(tx *bolt.Tx) error { walk.root = uint64(tx.Bucket(bucketDocs).Root()); return nil }); err != nil {
		t.Fatal(err)
	}
	if data, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	walk.data = data
	return data, walk, want
}

// The walk finds what bbolt finds, and nothing else.
func TestTreeFindsWhatBoltFinds(t *testing.T) {
	seed := testkit.Seed(t)
	for round, n := range []int{0, 1, 5, 200, 10_000} {
		rng := testkit.Fork(seed, uint64(round))
		_, walk, want := randomTree(t, rng, n)
		if walk.root == 0 {
			continue // so few that bbolt has no page for them
		}
		for key, value := range want {
			if got, err := walk.find([]byte(key)); err != nil || !bytes.Equal(got, value) || got == nil {
				t.Fatalf("%d: %q: %d bytes, %v; want %d", n, key, len(got), err, len(value))
			}
		}
		for range 2000 {
			key := fmt.Sprintf("%s%d", strings.Repeat("k", rng.IntN(41)), rng.IntN(2*n+1))
			if _, there := want[key]; there {
				continue
			}
			if got, err := walk.find([]byte(key)); err != nil || got != nil {
				t.Fatalf("%d: %q is not there: %d bytes, %v", n, key, len(got), err)
			}
		}
	}
}

// Pages that are damaged in any way end in an error or in a value that lies within the file.
func TestTreeOverDamagedPages(t *testing.T) {
	seed := testkit.Seed(t)
	whole, walk, want := randomTree(t, testkit.Fork(seed, 0), 3000)
	rng := testkit.Fork(seed, 1)
	var keys []string
	for key := range want {
		keys = append(keys, key)
	}
	lost := 0
	for range 500 {
		data := bytes.Clone(whole)
		for range 1 + rng.IntN(60) {
			at := rng.IntN(len(data))
			if rng.IntN(2) == 0 {
				at = at/walk.pageSize*walk.pageSize + rng.IntN(64) // heads of pages
			}
			data[at] = byte(rng.Uint32())
		}
		walk.data = data
		key := keys[rng.IntN(len(keys))]
		if got, err := walk.find([]byte(key)); err != nil || !bytes.Equal(got, want[key]) {
			lost++
		}
	}
	if lost == 0 {
		t.Error("nothing was damaged")
	}
}

// A page that is not in memory ends the walk, whichever it is.
func TestTreeStopsAtPagesThatAreElsewhere(t *testing.T) {
	_, walk, want := randomTree(t, testkit.Fork(testkit.Seed(t), 0), 20_000)
	for key := range want {
		visits := 0
		walk.near = func(int, int) bool { visits++; return true }
		if _, err := walk.find([]byte(key)); err != nil {
			t.Fatal(err)
		}
		for stop := range visits {
			left := stop
			walk.near = func(int, int) bool { left--; return left >= 0 }
			if got, err := walk.find([]byte(key)); err != errElsewhere || got != nil {
				t.Fatalf("%q, stopped at %d of %d: %v", key, stop, visits, err)
			}
		}
		if visits > 2 {
			return // deep enough
		}
	}
	t.Error("no key lies deep enough")
}

// Try returns what Get returns, without waiting, at the latest after the first
// Get.
func TestTryIsGetWithoutWaiting(t *testing.T) {
	dir := t.TempDir()
	tier := openTier(t, dir, nil)
	for i := range 2000 {
		tier.Put(key(fmt.Sprint(i)), document(fmt.Sprint("document ", i, strings.Repeat("x", i%300)), 5))
	}
	tier.Put(key("large"), document(strings.Repeat("large", 60_000), 5)) // more pages than are checked
	tier.Put(key("waits"), document("waits", 50))
	tier.Checkpoint(at(9))
	syncTier(t, tier)
	tried := 0
	for i := range 2500 {
		want, err := getOne(context.Background(), tier, key(fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		got := tier.Try(key(fmt.Sprint(i)))
		if got.Body != nil && !bytes.Equal(got.Body, want.Body) || got.Body != nil && (got.XMin != want.XMin || got.LoadedAt != want.LoadedAt) {
			t.Fatalf("%d: %q, want %q", i, got.Body, want.Body)
		}
		if got.Body != nil {
			tried++
		}
	}
	// Documents that share a leaf with the large one need Get.
	if linux := newMappingWorks(t); linux && tried < 1900 {
		t.Errorf("%d of 2000 documents were returned without waiting", tried)
	}
	if s := tier.Try(key("waits")); string(s.Body) != "waits" {
		t.Errorf("what waits to be written: %q", s.Body)
	}
	tier.Remove(key("7"))
	tier.Flush(1)
	if s := tier.Try(key("7")); s.Body != nil {
		t.Errorf("what was removed: %q", s.Body)
	}
	tier.Flush(0)
	for i := range 2000 {
		if s := tier.Try(key(fmt.Sprint(i))); s.Body != nil {
			t.Fatalf("what was flushed: %q", s.Body)
		}
	}
}

// newMappingWorks reports whether this system reports which pages are in memory.
func newMappingWorks(t *testing.T) bool {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "page"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	m, err := newMapping(f, 4096)
	if err != nil {
		return false
	}
	m.close()
	return true
}

func BenchmarkTry(b *testing.B) {
	tier, err := Open(Options{Dir: b.TempDir(), Budget: 256 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer tier.Close()
	tier.Define(0, Resource{Name: "depts", Fingerprint: "f"})
	const n = 10_000
	for i := range n {
		tier.Put(key(fmt.Sprint(i)), document(strings.Repeat("x", 1800), 5))
	}
	tier.Checkpoint(at(9))
	for tier.Figures().Queued > 0 {
		if err := tier.Sync(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for name, get := range map[string]func(string) []byte{
		"try": func(id string) []byte { return tier.Try(key(id)).Body },
		"get": func(id string) []byte { s, _ := getOne(context.Background(), tier, key(id)); return s.Body },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if get(keys[rng.IntN(n)]) == nil {
					b.Fatal("not found")
				}
			}
		})
	}
}
