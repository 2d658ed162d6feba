package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// checked closes the tier and counts what the file holds; the stats must agree.
func checked(t *testing.T, tier *Tier, dir string) Checked {
	t.Helper()
	if err := tier.Close(); err != nil {
		t.Error(err)
	}
	c, err := Check(t.Context(), dir, func(int64, int64) {})
	if err != nil || !c.OK() {
		t.Errorf("%+v, %v", c, err)
	}
	f := tier.Figures()
	if f.Documents != c.Documents+c.Garbage || f.Bytes != c.Bytes {
		t.Errorf("the stats say %d documents and %d bytes, the file holds %d and %d", f.Documents, f.Bytes, c.Documents+c.Garbage, c.Bytes)
	}
	return c
}

// fileSize is how large the file is on the disk.
func fileSize(t *testing.T, dir string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// A file that is filled to three times its budget never grows past it, uses nearly all of it, and
// keeps what is read: reads with a Zipf distribution find more than uniform ones.
func TestEvictionKeepsToTheBudget(t *testing.T) {
	seed := testkit.Seed(t)
	ratio := func(zipf bool) float64 {
		random := testkit.Fork(seed, 1)
		dir := t.TempDir()
		tier := openTier(t, dir, nil)
		const documents, size = 24_000, 4 << 10 // 96 MiB for 32
		popular := rand.NewZipf(random, 1.1, 8, documents-1)
		names := random.Perm(documents)
		draw := func() string {
			if zipf {
				return fmt.Sprintf("document %08d", names[popular.Uint64()])
			}
			return fmt.Sprintf("document %08d", random.IntN(documents))
		}
		tx, hits, reads := cache.Tx(10), 0, 0
		largest := int64(0)
		body := make([]byte, size)
		for round := range 40 {
			for range 2500 { // as a gateway does: missing documents are loaded
				id := draw()
				s, err := getOne(t.Context(), tier, key(id))
				if err != nil {
					t.Fatal(err)
				}
				if round >= 20 {
					reads++
				}
				if s.Body != nil {
					if !strings.HasPrefix(string(s.Body), id) {
						t.Fatalf("%s: %.40q", id, s.Body)
					}
					if round >= 20 {
						hits++
					}
					continue
				}
				copy(body, id)
				tier.Put(key(id), document(string(body), tx))
			}
			tx++
			tier.Checkpoint(at(tx))
			if err := tier.Sync(t.Context()); err != nil {
				t.Logf("round %d: %v", round, err)
			}
			largest = max(largest, fileSize(t, dir))
		}
		f := tier.Figures()
		t.Logf("zipf %v: %d of %d found; file %d, used %d of %d; %d documents; evicted %d, declined %d, failures %d", zipf, hits, reads, largest, f.Used, f.Budget, f.Documents, f.Evicted, f.Declined, f.Failures)
		if largest > f.Budget {
			t.Errorf("the file had %d bytes, budget %d", largest, f.Budget)
		}
		// A transaction needs a third of the minimum budget: documents of a page each, anywhere.
		if used := f.Used * 100 / f.Budget; used < usedShare-30 || used > usedShare+10 {
			t.Errorf("%d %% of the budget are used, want about %d", used, usedShare)
		}
		if f.Evicted == 0 || f.Failures > 3 {
			t.Errorf("%+v", f)
		}
		checked(t, tier, dir)
		return float64(hits) / float64(reads)
	}
	even, zipf := ratio(false), ratio(true)
	t.Logf("found: uniform %.3f, zipf %.3f", even, zipf)
	if zipf < even+0.2 {
		t.Errorf("%.2f of the reads with a Zipf distribution and %.2f of the uniform ones found a document: what is read does not stay", zipf, even)
	}
}

// Documents that are read stay, others are evicted.
func TestEvictionSparesWhatIsRead(t *testing.T) {
	dir := t.TempDir()
	tier := openTier(t, dir, nil)
	body := strings.Repeat("x", 8<<10)
	tx := cache.Tx(10)
	for i := range 5000 {
		tier.Put(key(fmt.Sprintf("%06d", i)), document(body, tx))
		if i%400 == 399 {
			tier.Checkpoint(at(tx))
			if err := tier.Sync(t.Context()); err != nil {
				t.Logf("%d: %v", i, err)
			}
			for j := range 100 { // a hundred of the first are read all the time
				if _, err := getOne(t.Context(), tier, key(fmt.Sprintf("%06d", j*4))); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	found := 0
	for j := range 100 {
		if s, _ := getOne(t.Context(), tier, key(fmt.Sprintf("%06d", j*4))); s.Body != nil {
			found++
		}
	}
	others := 0
	for j := range 500 {
		if s, _ := getOne(t.Context(), tier, key(fmt.Sprintf("%06d", j*4+1))); s.Body != nil {
			others++
		}
	}
	t.Logf("%d of 100 that were read, %d of 500 that were not; %+v", found, others, tier.Figures())
	if found < 95 || others > 400 || tier.Figures().Evicted == 0 {
		t.Errorf("%d of 100 that were read are left, and %d of 500 that were not", found, others)
	}
	checked(t, tier, dir)
}

// The documents that wait to be written are bounded, even while nothing can be written; so are
// the dropped keys, beyond which their whole resource is flushed.
func TestQueueIsBounded(t *testing.T) {
	dir := t.TempDir()
	tier := openTier(t, dir, func(o *Options) { o.MaxQueue = 1 << 20 })
	tier.Put(key("first"), document("first", 1))
	tier.Checkpoint(at(5))
	syncTier(t, tier)
	for i := range 2000 { // ahead of the position: none can be written
		tier.Put(key(fmt.Sprint(i)), document(strings.Repeat("x", 1000), 50))
	}
	f := tier.Figures()
	if f.QueuedBytes > 1<<20 || f.Queued < 800 || f.Declined != 2000-f.Queued {
		t.Errorf("%+v", f)
	}
	holds(t, tier, "1", strings.Repeat("x", 1000))
	for i := range 300 {
		tier.Invalidate(cache.Key{Resource: 1, ID: fmt.Sprint(i)}, 60)
	}
	for i := 0; i < 3000; i++ {
		tier.Invalidate(key(strings.Repeat("k", 1000)+strconv.Itoa(i)), 60)
		if f := tier.Figures(); f.QueuedBytes > 1<<20+tier.overlay.mostGone+2000 {
			t.Fatalf("%d: %+v", i, f)
		}
	}
	holds(t, tier, "first", "") // its resource was flushed
	tier.Checkpoint(at(99))
	syncTier(t, tier)
	holds(t, tier, "first", "")
	checked(t, tier, dir)
}

// Documents and IDs that are too large are declined, the largest allowed are kept.
func TestLimitsOfDocuments(t *testing.T) {
	dir := t.TempDir()
	tier := openTier(t, dir, nil)
	largest := tier.largest
	long := strings.Repeat("i", maxID)
	tier.Put(key("largest"), document(strings.Repeat("x", largest), 1))
	tier.Put(key("larger"), document(strings.Repeat("x", largest+1), 1))
	tier.Put(key(long), document("long", 1))
	tier.Put(key(long+"i"), document("longer", 1))
	tier.Put(key(""), document("empty", 1))
	tier.Put(cache.Key{Resource: 9, ID: "a"}, document("no such resource", 1))
	tier.Put(key("missing"), cache.NewDocument(nil, cache.UpTo(1), 0))
	tier.Invalidate(key(long+"i"), 9)
	tier.Remove(cache.Key{Resource: 9, ID: "a"})
	tier.Checkpoint(at(5))
	syncTier(t, tier)
	for range 2 {
		holds(t, tier, "largest", strings.Repeat("x", largest))
		holds(t, tier, "larger", "")
		holds(t, tier, long, "long")
		holds(t, tier, long+"i", "")
		holds(t, tier, "", "empty")
		holds(t, tier, "missing", "")
		if s, err := getOne(t.Context(), tier, cache.Key{Resource: 9, ID: "a"}); s.Body != nil || err != nil {
			t.Errorf("%q, %v", s.Body, err)
		}
		checked(t, tier, dir)
		tier = openTier(t, dir, nil)
	}
}

// Times of the cache's clock are not compared across a reboot: documents that are bounded by
// their age are dropped, including those of a resource that was absent for a run.
func TestAgedDocumentsEndWithTheBoot(t *testing.T) {
	dir := t.TempDir()
	run := func(boot string, both bool, do func(*Tier)) {
		tier, err := Open(Options{Dir: dir, Budget: MinBudget, Boot: boot})
		if err != nil {
			t.Fatal(err)
		}
		tier.Define(0, Resource{Name: "depts", Fingerprint: "f"})
		if both {
			tier.Define(1, Resource{Name: "aged", Fingerprint: "g", Aged: true})
		}
		do(tier)
		if err := tier.Close(); err != nil {
			t.Error(err)
		}
	}
	aged := cache.Key{Resource: 1, ID: "a"}
	expect := func(tier *Tier, want string) {
		t.Helper()
		if s, err := getOne(t.Context(), tier, aged); string(s.Body) != want || err != nil {
			t.Errorf("%q, %v; want %q", s.Body, err, want)
		}
		holds(t, tier, "d", "d")
	}
	run("one", true, func(tier *Tier) {
		tier.Put(key("d"), document("d", 1))
		tier.Put(aged, document("a", 1))
		tier.Checkpoint(at(5))
	})
	run("one", true, func(tier *Tier) { expect(tier, "a") })
	run("two", false, func(tier *Tier) { tier.Checkpoint(at(6)) })
	run("two", true, func(tier *Tier) {
		expect(tier, "")
		tier.Put(aged, document("b", 1))
		tier.Checkpoint(at(7))
	})
	run("two", true, func(tier *Tier) { expect(tier, "b") })
	run("", true, func(tier *Tier) { expect(tier, "") })
	run("", true, func(tier *Tier) { expect(tier, "") })
}

// A directory, or a file in it, that cannot be used is an error that says so; nothing is
// touched.
func TestWhatCannotBeOpened(t *testing.T) {
	blocked := t.TempDir()
	if err := os.Mkdir(filepath.Join(blocked, FileName), 0o700); err != nil {
		t.Fatal(err)
	}
	notADir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(notADir, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		o          Options
	}{
		{"a directory in place of the file", "it is a directory; expected a regular file", Options{Dir: blocked, Budget: MinBudget}},
		{"a file in place of the directory", "not a directory", Options{Dir: notADir, Budget: MinBudget}},
		{"too small", "at least 33554432", Options{Dir: t.TempDir(), Budget: MinBudget - 1}},
		{"nowhere", "no directory", Options{Budget: MinBudget}},
	} {
		tier, err := Open(c.o)
		if err == nil {
			tier.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(blocked, FileName)); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// A file of another format, or of another program, is refused and not changed.
func TestFilesOfOthersAreLeftAlone(t *testing.T) {
	for name, fill := range map[string]func(*bolt.Tx) error{
		"format 99": func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Put(metaFormat, []byte("99")) },
		"another program's": func(tx *bolt.Tx) error {
			_, err := tx.CreateBucket([]byte("theirs"))
			return errors.Join(err, tx.DeleteBucket(bucketMeta), tx.DeleteBucket(bucketDocs))
		},
		"another program's, with our bucket's name": func(tx *bolt.Tx) error {
			return errors.Join(tx.DeleteBucket(bucketDocs), tx.Bucket(bucketMeta).Delete(metaFormat), tx.Bucket(bucketMeta).Delete(metaState))
		},
	} {
		dir := t.TempDir()
		openTier(t, dir, nil).Close()
		path := filepath.Join(dir, FileName)
		db, err := bolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Update(fill), db.Close()); err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		tier, err := Open(Options{Dir: dir, Budget: MinBudget})
		known, isVersion := errors.AsType[*VersionError](err)
		if !isVersion || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		if isVersion && name == "format 99" && (known.Format != 99 || !strings.Contains(err.Error(), "format 99")) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			tier.Close()
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
			t.Errorf("%s: the file was changed, %v", name, err)
		}
	}
}

// A file of an older format is upgraded in the transaction that opens it; if that fails the
// file is recreated.
func TestUpgrade(t *testing.T) {
	path, dir := "", ""
	old := func() {
		dir = t.TempDir()
		tier := openTier(t, dir, nil)
		tier.Put(key("a"), document("old", 1))
		tier.Checkpoint(at(5))
		tier.Close()
		path = filepath.Join(dir, FileName)
		db, err := bolt.Open(path, 0o600, nil)
		if err == nil {
			err = errors.Join(db.Update(func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Put(metaFormat, []byte("0")) }), db.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	calls, fails := 0, false
	upgrades[0] = func(tx *bolt.Tx) error {
		if calls++; fails {
			return errors.New("cannot")
		}
		k := appendKey(nil, 0, "a")
		return tx.Bucket(bucketDocs).Put(k, appendRecord(nil, k, 1, document("new", 1)))
	}
	t.Cleanup(func() { delete(upgrades, 0) })
	for _, want := range []string{"new", ""} {
		fails = want == ""
		old()
		for range 2 {
			tier := openTier(t, dir, nil)
			holds(t, tier, "a", want)
			if known := tier.Position().History != ""; known == fails {
				t.Errorf("position %v, the upgrade fails: %v", known, fails)
			}
			tier.Close()
		}
	}
	if calls != 2 {
		t.Errorf("%d upgrades", calls)
	}
}

// The file is only accessible to its owner, even if it was copied here.
func TestModeOfTheFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	openTier(t, dir, nil).Close()
	path := filepath.Join(dir, FileName)
	expect := func(path string, want fs.FileMode) {
		t.Helper()
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	expect(path, 0o600)
	expect(dir, 0o700)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	openTier(t, dir, nil)
	expect(path, 0o600)
}
