package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
)

// cacheTest is a cache over an origin whose stream a test polls by hand.
type cacheTest struct {
	*testing.T
	origin *Origin
	stream *Stream
	cache  *cache.Cache
	now    atomic.Int64 // a time.Duration; loads of the cache read it too
}

func newCacheTest(t *testing.T, path string) *cacheTest {
	t.Helper()
	ct := &cacheTest{T: t}
	ct.now.Store(int64(time.Hour))
	// There is no poll while a load waits, so a long wait would be useless.
	ct.origin = openOrigin(t, Config{Path: path, PollInterval: 4 * time.Millisecond}, deptResource())
	clock := func() time.Duration { return time.Duration(ct.now.Load()) }
	var err error
	ct.cache, err = cache.New(cache.Config{Resources: []cache.Resource{{Name: "depts"}}, Origin: ct.origin,
		Tiers: []cache.Tier{&mapTier{docs: make(map[cache.Key]*cache.Document)}}, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ct.cache.Close() })
	ct.stream = ct.origin.Stream(clock)
	ct.stream.sink = ct.cache
	t.Cleanup(ct.stream.disconnect)
	return ct
}

// poll polls n times, 100 ms apart by the cache's clock.
func (ct *cacheTest) poll(n int) {
	ct.Helper()
	for range n {
		ct.now.Add(int64(time.Second / 10))
		if err := ct.stream.poll(ct.Context()); err != nil {
			ct.Fatal(err)
		}
	}
}

func (ct *cacheTest) get(id string) (cache.Answer, error) {
	return ct.cache.Get(ct.Context(), cache.Key{ID: id}, time.Duration(ct.now.Load()))
}

// wantName gets a department and looks for its name.
func (ct *cacheTest) wantName(id, name string) cache.Answer {
	ct.Helper()
	a, err := ct.get(id)
	if err != nil {
		ct.Fatal(err)
	}
	if !strings.Contains(string(a.Doc.Body()), `"`+name+`"`) {
		ct.Errorf("document %s is %s (source %d, %d voids), want the name %s", id, a.Doc.Body(), a.Source, ct.cache.Stats().Voids, name)
	}
	return a
}

// copyDatabase copies a file whose journal is empty and returns the copy's path.
func copyDatabase(t *testing.T, from string) string {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(to, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// wantUnavailable loads from a file that the stream does not follow.
func wantUnavailable(t *testing.T, o *Origin) {
	t.Helper()
	if _, err := o.Load(t.Context(), 0, []string{"30"}); !errors.Is(err, cache.ErrUnavailable) || !errors.Is(err, errMoved) {
		t.Errorf("load from a file that the stream does not follow: %v", err)
	}
}

// testThereAndBack puts a backup at the path between two polls: the stream cannot
// notice, so none of it may be stored or served.
func testThereAndBack(t *testing.T, path string, away, back func(backup string)) {
	ct := newCacheTest(t, path)
	ct.poll(1)
	backup := copyDatabase(t, path)
	openWriter(t, path, `UPDATE dept SET dname = 'LATER' WHERE deptno = 20`).Close()
	ct.poll(5) // until the cache has dropped the tombstone of the change
	away(backup)
	if a, err := ct.get("20"); err == nil {
		t.Errorf("from a backup that was at the path for a moment: %s", a.Doc.Body())
	} else if !errors.Is(err, cache.ErrUnavailable) {
		t.Errorf("get: %v", err)
	}
	back(backup)
	ct.wantName("20", "LATER")
	ct.poll(600) // a minute
	if a := ct.wantName("20", "LATER"); a.Source != cache.FromTier {
		t.Errorf("the live file's document was not stored: source %d", a.Source)
	}
	if voids := ct.cache.Stats().Voids; voids != 0 {
		t.Errorf("%d voids: the test should have hidden the change from the stream", voids)
	}
}

func TestFileRenamedAwayAndBackBetweenPolls(t *testing.T) {
	path := newFile(t, deptSchema...)
	testThereAndBack(t, path,
		func(backup string) {
			moveDatabase(t, path, path+".keep")
			moveDatabase(t, backup, path)
		},
		func(backup string) {
			moveDatabase(t, path, backup)
			moveDatabase(t, path+".keep", path)
		})
}

func TestLinkPointedElsewhereAndBackBetweenPolls(t *testing.T) {
	file, link := newFile(t, deptSchema...), filepath.Join(t.TempDir(), "current.db")
	point := func(to string) {
		os.Remove(link)
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	point(file)
	testThereAndBack(t, link, point, func(string) { point(file) })
}

// TestLoadWaitsForTheStreamToFollow replaces the file permanently: a load before
// the poll gets the new file's document after the poll.
func TestLoadWaitsForTheStreamToFollow(t *testing.T) {
	path := newFile(t, deptSchema...)
	o := openOrigin(t, Config{Path: path, PollInterval: 2 * time.Second}, deptResource())
	st := &streamTest{T: t, origin: o, sink: &recorder{}, path: path}
	st.listen()
	st.wantPoll("promise true", "all 0", "advance")
	moveDatabase(t, copyDatabase(t, path), path)
	loaded := make(chan error, 1)
	// Ends with its load, after at most 4 s; the receive below waits for it.
	go func() {
		_, err := o.Load(t.Context(), 0, []string{"30"})
		loaded <- err
	}()
	time.Sleep(20 * time.Millisecond)
	st.wantPoll("void", "promise true", "all 0", "advance")
	if err := <-loaded; err != nil {
		t.Errorf("load: %v", err)
	}
}

// TestNothingIsStoredBeforeTheFirstPoll: there is an answer, but no token.
func TestNothingIsStoredBeforeTheFirstPoll(t *testing.T) {
	ct := newCacheTest(t, newFile(t, deptSchema...))
	ct.cache.SetPromise(0, true, "")
	for range 2 {
		if a := ct.wantName("10", "ACCOUNTING"); a.Stored {
			t.Error("a document was stored before any stream followed its file")
		}
	}
	batch, err := ct.origin.Load(t.Context(), 0, []string{"10"})
	if err != nil || batch.Snapshot.Sees(0) {
		t.Errorf("token %+v, error %v", batch.Snapshot, err)
	}
	ct.poll(1)
	if a := ct.wantName("10", "ACCOUNTING"); !a.Stored {
		t.Error("a document was not stored after the first poll")
	}
}

// TestReconnectFlushes: only the flush that follows a reconnect drops documents of
// a file that was replaced by its own copy meanwhile, including the row of the
// anchor.
func TestReconnectFlushes(t *testing.T) {
	file, link := newFile(t, deptSchema...), filepath.Join(t.TempDir(), "current.db")
	point := func(to string) {
		t.Helper()
		os.Remove(link)
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	point(file)
	ct := newCacheTest(t, link)
	ct.poll(1)
	backup := copyDatabase(t, file)
	openWriter(t, file, `UPDATE dept SET dname = 'LOST' WHERE deptno = 10`).Close()
	if a := ct.wantName("10", "LOST"); !a.Stored {
		t.Error("the document was not stored")
	}
	point(link) // leads nowhere but is not absent either: checking it fails
	err := ct.stream.poll(t.Context())
	if err == nil {
		t.Fatal("a poll of a link to itself succeeded")
	}
	ct.stream.failed(err)
	point(backup)
	ct.poll(1)
	if voids := ct.cache.Stats().Voids; voids != 0 {
		t.Errorf("%d voids: the test should have hidden the change of files", voids)
	}
	ct.wantName("10", "ACCOUNTING")
	openWriter(t, backup, `UPDATE dept SET dname = 'LATER' WHERE deptno = 10`).Close()
	ct.poll(1)
	ct.wantName("10", "LATER")

	st := newStreamTest(t, Config{}, deptSchema...)
	st.stream.failed(errors.New("any error but a busy database"))
	st.wantPoll("promise true", "all 0", "advance")
}
