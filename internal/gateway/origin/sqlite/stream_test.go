package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// noStore is the part of a sink that has no store.
type noStore struct{}

func (noStore) Waiting() (p cache.Position, store uint64, waits bool) { return }
func (noStore) Checkpoint(cache.Position, uint64)                     {}
func (noStore) HasStore() bool                                        { return false }
func (noStore) Discard(uint64)                                        {}

// recorder is a sink that records what a stream does, one word per call.
type recorder struct {
	noStore
	calls    []string
	promises map[cache.ResourceID]string
	horizon  time.Duration
	seen     cache.Snapshot
}

func (r *recorder) Apply(events []cache.Event) {
	for _, e := range events {
		if e.All {
			r.calls = append(r.calls, fmt.Sprintf("all %d", e.Key.Resource))
		} else {
			r.calls = append(r.calls, fmt.Sprintf("%d %s", e.Key.Resource, e.Key.ID))
		}
	}
}

func (r *recorder) Advance(horizon time.Duration, seen cache.Snapshot) {
	r.calls = append(r.calls, "advance")
	r.horizon, r.seen = horizon, seen
}

func (r *recorder) Void(string) { r.calls = append(r.calls, "void") }

func (r *recorder) Retract() {}

func (r *recorder) SetPromise(id cache.ResourceID, ok bool, why string) {
	if r.promises == nil {
		r.promises = make(map[cache.ResourceID]string)
	}
	r.promises[id] = why
	r.calls = append(r.calls, fmt.Sprintf("promise %v", ok))
}

// streamTest is a stream that a test polls by hand.
type streamTest struct {
	*testing.T
	origin *Origin
	stream *Stream
	sink   *recorder
	path   string
	now    time.Duration
}

func newStreamTest(t *testing.T, cfg Config, schema ...string) *streamTest {
	t.Helper()
	st := &streamTest{T: t, sink: &recorder{}, path: newFile(t, schema...)}
	cfg.Path = st.path
	st.origin = openOrigin(t, cfg, deptResource())
	st.listen()
	st.wantPoll("promise true", "all 0", "advance")
	return st
}

// listen starts a new stream.
func (st *streamTest) listen() {
	st.stream = st.origin.Stream(func() time.Duration { st.now++; return st.now })
	st.stream.sink = st.sink
	st.Cleanup(st.stream.disconnect)
}

// wantPoll polls once and compares the calls that the sink got.
func (st *streamTest) wantPoll(want ...string) {
	st.Helper()
	st.sink.calls = nil
	before := st.now
	if err := st.stream.poll(st.Context()); err != nil {
		st.Fatal(err)
	}
	if !slices.Equal(st.sink.calls, want) {
		st.Errorf("poll made the calls %q, want %q", st.sink.calls, want)
	}
	if st.sink.horizon != before+1 {
		st.Errorf("horizon %d, want the clock's first answer %d", st.sink.horizon, before+1)
	}
}

func journalModes(t *testing.T, test func(t *testing.T, schema []string)) {
	for _, mode := range []string{"WAL", "DELETE", "TRUNCATE", "PERSIST"} {
		t.Run(mode, func(t *testing.T) {
			test(t, append([]string{"PRAGMA journal_mode = " + mode}, deptSchema...))
		})
	}
}

func TestStreamHearsOfCommits(t *testing.T) {
	journalModes(t, func(t *testing.T, schema []string) {
		st := newStreamTest(t, Config{}, schema...)
		w := newForeignWriter(t, st.path)
		st.wantPoll("advance")
		exec := func(sql string) {
			t.Helper()
			if err := w.exec(sql); err != nil {
				t.Fatal(err)
			}
		}
		exec(`UPDATE dept SET dname = 'A' WHERE deptno = 10`)
		st.wantPoll("0 10", "advance")
		st.wantPoll("advance")
		exec(`BEGIN; DELETE FROM emp WHERE empno = 3; UPDATE emp SET deptno = 30 WHERE empno = 1; COMMIT`)
		st.wantPoll("0 20", "0 10", "0 30", "advance")
		if err := w.exec(`BEGIN; UPDATE dept SET dname = 'B' WHERE deptno = 10; ROLLBACK`); err != nil {
			t.Fatal(err)
		}
		st.wantPoll("advance")
		exec(`BEGIN`)
		exec(`UPDATE dept SET dname = 'C' WHERE deptno = 20`)
		st.wantPoll("advance") // not committed yet
		exec(`COMMIT`)
		st.wantPoll("0 20", "advance")
		batch, err := st.origin.Load(t.Context(), 0, []string{"20"})
		if err != nil {
			t.Fatal(err)
		}
		if !batch.Snapshot.Sees(st.sink.seen.XMax-1) || batch.Snapshot.Sees(st.sink.seen.XMax) {
			t.Errorf("token of a load %+v, stream has seen %+v", batch.Snapshot, st.sink.seen)
		}
	})
}

// TestHorizonIsTakenBeforeAnythingIsRead commits, and replaces the file, at the
// very moment when the stream reads the clock: everything that happened by then
// must be known before that moment becomes the horizon.
func TestHorizonIsTakenBeforeAnythingIsRead(t *testing.T) {
	st := newStreamTest(t, Config{}, deptSchema...)
	w := openWriter(t, st.path)
	other := newFile(t, deptSchema...)
	openOrigin(t, Config{Path: other}, deptResource()).Close()
	var meanwhile func()
	st.stream.clock = func() time.Duration {
		meanwhile()
		meanwhile = func() {} // the first reading of a poll is the one that counts
		st.now++
		return st.now
	}
	meanwhile = func() { mustExec(t, w, `UPDATE dept SET dname = 'X' WHERE deptno = 10`) }
	st.wantPoll("0 10", "advance")
	meanwhile = func() { mustExec(t, w, `CREATE TABLE another (a)`) }
	st.wantPoll("promise true", "all 0", "advance")
	meanwhile = func() { moveDatabase(t, other, st.path) }
	st.wantPoll("void", "promise true", "all 0", "advance")
}

// TestNewConnectionTrustsNoOldDataVersion: numbers of two connections are not
// comparable, and often equal.
func TestNewConnectionTrustsNoOldDataVersion(t *testing.T) {
	st := newStreamTest(t, Config{}, deptSchema...)
	st.stream.disconnect()
	openWriter(t, st.path, `UPDATE dept SET dname = 'X' WHERE deptno = 10`)
	st.sink.calls = nil
	if err := st.stream.poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(st.sink.calls, "0 10") {
		t.Errorf("calls %q", st.sink.calls)
	}
}

func TestStreamGivesUpThePromiseWithoutTriggers(t *testing.T) {
	st := newStreamTest(t, Config{}, deptSchema...)
	w := openWriter(t, st.path, `DROP TRIGGER "slipstream_depts/emp/update"`)
	st.wantPoll("promise false", "all 0", "advance")
	if why := st.sink.promises[0]; !strings.Contains(why, "slipstream_depts/emp/update is missing") || !strings.Contains(why, "slipstream db apply") {
		t.Errorf("why = %q", why)
	}
	if _, err := st.origin.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The row that Apply appends and the schema change are one flush.
	st.wantPoll("promise true", "all 0", "advance")
	mustExec(t, w, `DROP TRIGGER "slipstream_depts/emp/update"`,
		`CREATE TRIGGER "slipstream_depts/emp/update" AFTER UPDATE ON emp BEGIN SELECT 1; END`)
	st.wantPoll("promise false", "all 0", "advance")
	if why := st.sink.promises[0]; !strings.Contains(why, "differs from what the resources need") {
		t.Errorf("why = %q", why)
	}
	if _, err := st.origin.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	st.wantPoll("void", "promise false", "all 0", "advance")
	if got := get(t, st.origin, "30"); !strings.Contains(got, "SALES") {
		t.Errorf("without a change table a load gave %s", got)
	}
	if _, err := st.origin.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	st.wantPoll("promise true", "all 0", "advance")
}

func TestSchemaChangeFlushesAndIsLoadedAtOnce(t *testing.T) {
	journalModes(t, func(t *testing.T, schema []string) {
		st := newStreamTest(t, Config{}, schema...)
		get(t, st.origin, "30")
		w := openWriter(t, st.path, `ALTER TABLE dept ADD COLUMN loc TEXT DEFAULT 'NEW YORK'`)
		wantDoc(t, st.origin, "30", `{"deptno":30,"dname":"SALES","loc":"NEW YORK","emps":[]}`)
		st.wantPoll("promise true", "all 0", "advance")
		mustExec(t, w, `VACUUM`)
		st.wantPoll("promise true", "all 0", "advance")
		mustExec(t, w, `UPDATE dept SET loc = 'DALLAS' WHERE deptno = 30`)
		st.wantPoll("0 30", "advance")
		mustExec(t, w, `ALTER TABLE emp RENAME TO employee`)
		st.wantPoll("promise false", "all 0", "advance")
		_, err := st.origin.Load(t.Context(), 0, []string{"30"})
		var schemaErr *origin.SchemaError
		if !errors.As(err, &schemaErr) || !errors.Is(err, cache.ErrUnavailable) {
			t.Errorf("load over a lost table: %v", err)
		}
		mustExec(t, w, `ALTER TABLE employee RENAME TO emp`)
		st.wantPoll("promise true", "all 0", "advance")
		mustExec(t, w, `DROP TABLE dept`, `CREATE TABLE dept (deptno TEXT PRIMARY KEY, dname TEXT)`)
		st.wantPoll("promise false", "all 0", "advance")
		if _, err := st.origin.Load(t.Context(), 0, []string{"30"}); err == nil || !strings.Contains(err.Error(), "restart") {
			t.Errorf("load by a key of another kind: %v", err)
		}
	})
}

func TestTrimKeepsTheNewestRow(t *testing.T) {
	st := newStreamTest(t, Config{KeepChanges: time.Hour}, deptSchema...)
	w := openWriter(t, st.path)
	for range 5 {
		mustExec(t, w, `UPDATE dept SET dname = dname || '.'`)
	}
	mustExec(t, w, `UPDATE slipstream_change SET at = at - 7200`)
	st.stream.nextTrim = time.Time{}
	if err := st.stream.poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rows, trimmed := scalar(t, w, `SELECT count(*) FROM slipstream_change`), st.stream.Stats().Trimmed; rows != "1" || trimmed != 15 {
		t.Errorf("%s rows left, %d trimmed; want 1 and 15", rows, trimmed)
	}
	st.wantPoll("advance")
	mustExec(t, w, `UPDATE dept SET dname = 'X' WHERE deptno = 10`)
	st.wantPoll("0 10", "advance")
	mustExec(t, w, `UPDATE dept SET dname = 'X' WHERE deptno = 20`)
	st.wantPoll("0 20", "advance")
	// Young rows stay.
	st.stream.nextTrim = time.Time{}
	st.wantPoll("advance")
	if rows := scalar(t, w, `SELECT count(*) FROM slipstream_change`); rows != "2" {
		t.Errorf("%s rows left, want 2", rows)
	}
}

// TestTrimLeavesNoGap has old rows after a young one, as if the clock had been set
// back: if they were deleted, a second gateway would skip them unnoticed.
func TestTrimLeavesNoGap(t *testing.T) {
	st := newStreamTest(t, Config{KeepChanges: time.Hour}, deptSchema...)
	w := openWriter(t, st.path, `UPDATE dept SET dname = 'X'`, `UPDATE dept SET dname = 'Y'`)
	st.wantPoll("0 10", "0 20", "0 30", "0 10", "0 20", "0 30", "advance")
	second := &streamTest{T: t, origin: st.origin, sink: &recorder{}, path: st.path}
	second.listen()
	second.wantPoll("promise true", "all 0", "advance")
	mustExec(t, w, `UPDATE dept SET dname = 'Z'`, `UPDATE slipstream_change SET at = at - 7200
		WHERE id <> (SELECT id FROM slipstream_change ORDER BY id DESC LIMIT 1 OFFSET 3)`)
	st.stream.nextTrim = time.Time{}
	st.wantPoll("0 10", "0 20", "0 30", "advance")
	if trimmed := st.stream.Stats().Trimmed; trimmed == 0 {
		t.Error("nothing was trimmed")
	}
	second.wantPoll("0 10", "0 20", "0 30", "advance")
}

func TestRowsTrimmedUnreadVoidEverything(t *testing.T) {
	st := newStreamTest(t, Config{}, deptSchema...)
	openWriter(t, st.path, `UPDATE dept SET dname = 'X'`, `DELETE FROM slipstream_change WHERE id < (SELECT max(id) FROM slipstream_change)`)
	st.wantPoll("void", "all 0", "advance")
}

func TestLongTransactionComesInPagesBeforeOneAdvance(t *testing.T) {
	st := newStreamTest(t, Config{}, deptSchema...)
	openWriter(t, st.path, fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i+1 FROM n WHERE i < %d)
		INSERT INTO dept SELECT i, 'D' FROM n`, 100+2*pageEvents+7))
	st.sink.calls = nil
	if err := st.stream.poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	calls := st.sink.calls
	if len(calls) != 2*pageEvents+9 || calls[0] != "0 100" || slices.Index(calls, "advance") != len(calls)-1 {
		t.Errorf("%d calls, the first %q, advance at %d", len(calls), calls[0], slices.Index(calls, "advance"))
	}
	if cap(st.stream.events) > 2*pageEvents {
		t.Errorf("room for %d events was kept", cap(st.stream.events))
	}
}

// TestPageIsBoundedByTheBytesOfItsKeys: 64 keys of 32 KiB are 2 MiB.
func TestPageIsBoundedByTheBytesOfItsKeys(t *testing.T) {
	st := newStreamTest(t, Config{}, deptSchema...)
	openWriter(t, st.path, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 64)
		INSERT INTO slipstream_change(at, resource, key, nonce)
		SELECT 0, 'depts', '''' || replace(hex(zeroblob(16384)), '0', 'x') || '''', randomblob(8) FROM n`)
	pages := 1
	for {
		more, err := pageOf(st)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		pages++
	}
	if pages != 3 { // the second one ends with the last row without knowing it
		t.Errorf("2 MiB of keys came in %d pages, want 3", pages)
	}
}

func pageOf(st *streamTest) (more bool, err error) {
	if err := st.stream.connect(st.Context()); err != nil {
		return false, err
	}
	return st.stream.page()
}

// TestFlushesOfAPageAreOne has a statement flush a resource for each of its rows,
// between changes of keys. The one flush carries the newest transaction.
func TestFlushesOfAPageAreOne(t *testing.T) {
	st := newStreamTest(t, Config{}, deptSchema...)
	w := openWriter(t, st.path, `UPDATE dept SET dname = 'X' WHERE deptno = 10`,
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 1000)
		INSERT INTO slipstream_change(at, resource, key, nonce) SELECT 0, 'depts', NULL, x'00' FROM n`)
	newest := scalar(t, w, `SELECT max(id) FROM slipstream_change`)
	mustExec(t, w, `UPDATE dept SET dname = 'X' WHERE deptno = 20`)
	sink := &eventSink{recorder: st.sink}
	st.stream.sink = sink
	st.wantPoll("0 10", "all 0", "0 20", "advance")
	if got := fmt.Sprint(sink.flushedBy); got != newest {
		t.Errorf("the flush is of transaction %s, want the newest, %s", got, newest)
	}
	// A page does not remember the flush of the previous one.
	mustExec(t, w, `INSERT INTO slipstream_change(at, resource, key, nonce) VALUES (0, 'depts', NULL, x'00')`)
	st.wantPoll("all 0", "advance")
	for _, e := range st.stream.events[:cap(st.stream.events)] {
		if e != (cache.Event{}) {
			t.Fatalf("event %+v is kept between pages", e)
		}
	}
}

// eventSink remembers the transaction of the last flush.
type eventSink struct {
	*recorder
	flushedBy cache.Tx
}

func (s *eventSink) Apply(events []cache.Event) {
	for _, e := range events {
		if e.All {
			s.flushedBy = e.Tx
		}
	}
	s.recorder.Apply(events)
}

func TestUnreadableChangeFlushes(t *testing.T) {
	st := newStreamTest(t, Config{}, deptSchema...)
	w := openWriter(t, st.path)
	for _, key := range []string{`''`, `'1,2'`, `'abc'`, `'1.5'`, `'''7'''`, `NULL`, `x'31'`, `'007'`, `hex(zeroblob(40000))`} {
		mustExec(t, w, `INSERT INTO slipstream_change(at, resource, key, nonce) VALUES (0, 'depts', `+key+`, x'00')`)
		st.wantPoll("all 0", "advance")
	}
	for _, key := range []string{`'NULL'`, `'X''31'''`, `'''text'''`} {
		mustExec(t, w, `INSERT INTO slipstream_change(at, resource, key, nonce) VALUES (0, 'depts', `+key+`, x'00')`)
		st.wantPoll("advance") // no document has such a key
	}
	mustExec(t, w, `INSERT INTO slipstream_change(at, resource, key, nonce) VALUES (0, 'others', '1', x'00')`)
	st.wantPoll("advance")
}

func TestHorizonStandsStillWhileTheDatabaseCannotBeRead(t *testing.T) {
	for _, mode := range []string{"WAL", "DELETE"} {
		t.Run(mode, func(t *testing.T) {
			st := newStreamTest(t, Config{BusyTimeout: 10 * time.Millisecond}, append([]string{"PRAGMA journal_mode = " + mode}, deptSchema...)...)
			horizon := st.sink.horizon
			refuse := func(what string) {
				t.Helper()
				if err := st.stream.poll(t.Context()); !errors.Is(err, cache.ErrUnavailable) {
					t.Errorf("%s: poll gave %v", what, err)
				} else {
					st.stream.failed(err)
				}
				if _, err := st.origin.Load(t.Context(), 0, []string{"10"}); !errors.Is(err, cache.ErrUnavailable) {
					t.Errorf("%s: load gave %v", what, err)
				}
				if st.sink.horizon != horizon {
					t.Errorf("%s: the horizon moved", what)
				}
			}
			if mode == "DELETE" {
				w := openWriter(t, st.path, `BEGIN EXCLUSIVE`, `UPDATE dept SET dname = 'X' WHERE deptno = 10`)
				refuse("locked")
				mustExec(t, w, `COMMIT`)
				st.wantPoll("0 10", "advance")
				horizon = st.sink.horizon
				w.Close()
			}
			moveDatabase(t, st.path, st.path+".away")
			refuse("missing")
			if err := os.WriteFile(st.path, []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
				t.Fatal(err)
			}
			refuse("garbage")
			moveDatabase(t, st.path+".away", st.path)
			st.wantPoll("promise true", "all 0", "advance")
			if stats := st.stream.Stats(); stats.PollErrors < 2 || stats.Voids != 1 {
				t.Errorf("stats %+v", stats)
			}
		})
	}
}

// TestHotJournalIsRolledBack kills a writer in the middle of a transaction that
// has already changed the file: the next reader must undo it.
func TestHotJournalIsRolledBack(t *testing.T) {
	st := newStreamTest(t, Config{}, append([]string{"PRAGMA journal_mode = DELETE"}, deptSchema...)...)
	const script = `
import os, signal, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA cache_size = 1")
db.execute("PRAGMA cache_spill = 1")
db.execute("BEGIN IMMEDIATE")
db.execute("UPDATE dept SET dname = 'TORN'")
db.execute("CREATE TABLE filler (x)")
for i in range(2000):
    db.execute("INSERT INTO filler VALUES (zeroblob(4000))")
os.kill(os.getpid(), signal.SIGKILL)
`
	program, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal("python3 is needed as a foreign writer: install the package python3")
	}
	if err := exec.CommandContext(t.Context(), program, "-c", script, st.path).Run(); err == nil {
		t.Fatal("the writer was not killed")
	}
	if info, err := os.Stat(st.path + "-journal"); err != nil || info.Size() == 0 {
		t.Fatalf("the killed writer left no hot journal: %v", err)
	}
	wantDoc(t, st.origin, "30", `{"deptno":30,"dname":"SALES","emps":[]}`)
	st.wantPoll("advance")
}

func TestRunEndsWithItsContext(t *testing.T) {
	o := openOrigin(t, Config{Path: newFile(t, deptSchema...), PollInterval: time.Millisecond}, deptResource())
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := o.Stream(func() time.Duration { return 0 })
	done := make(chan error)
	// Ends when ctx is canceled; the receive below waits for it.
	go func() { done <- s.Run(ctx, &recorder{}) }()
	for s.Stats().Polls < 20 {
		time.Sleep(time.Millisecond)
	}
	cancel(cause)
	if err := <-done; !errors.Is(err, cause) {
		t.Errorf("Run returned %v", err)
	}
}

// TestReadersDoNotStarveWriters checks that a writer in rollback mode, which
// needs a moment without readers, gets it while loads and polls never stop.
func TestReadersDoNotStarveWriters(t *testing.T) {
	st := newStreamTest(t, Config{}, append([]string{"PRAGMA journal_mode = DELETE"}, deptSchema...)...)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 3)
	for range 3 {
		// Ends when ctx is canceled; the receives below wait for it.
		go func() {
			for ctx.Err() == nil {
				if _, err := st.origin.Load(ctx, 0, []string{"10", "20", "30"}); err != nil && ctx.Err() == nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	w := openWriter(t, st.path)
	if err := w.BusyTimeout(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	var slowest time.Duration
	for i := range 100 {
		began := time.Now()
		mustExec(t, w, fmt.Sprintf(`UPDATE dept SET dname = 'N%d' WHERE deptno = 10`, i))
		slowest = max(slowest, time.Since(began))
	}
	cancel()
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if slowest > 3*time.Second {
		t.Errorf("a commit took %v", slowest)
	}
	t.Logf("slowest commit %v", slowest)
}

// TestDataVersionSeesEveryCommit checks the fact that the shortcut of an idle
// poll rests on. (An UPDATE that does not change a value writes nothing, so it
// does not count; with triggers it does write.)
func TestDataVersionSeesEveryCommit(t *testing.T) {
	journalModes(t, func(t *testing.T, schema []string) {
		path := newFile(t, schema...)
		reader, writer := openWriter(t, path), openWriter(t, path)
		version := func() string { return scalar(t, reader, `PRAGMA data_version`) }
		last := version()
		for _, sql := range []string{`UPDATE dept SET dname = 'X'`, `CREATE TABLE x (a)`, `DROP TABLE x`, `DELETE FROM emp`} {
			mustExec(t, writer, sql)
			if now := version(); now == last {
				t.Errorf("data_version stayed at %s after %s", now, sql)
			} else {
				last = now
			}
		}
		mustExec(t, reader, `UPDATE dept SET dname = 'own'`)
		if now := version(); now != last {
			t.Errorf("an own commit changed data_version")
		}
	})
}
