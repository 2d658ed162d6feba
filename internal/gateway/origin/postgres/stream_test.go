package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// noStore is the part of a sink that has no store.
type noStore struct{}

func (noStore) Waiting() (p cache.Position, store uint64, waits bool) { return }
func (noStore) Checkpoint(cache.Position, uint64)                     {}
func (noStore) HasStore() bool                                        { return false }
func (noStore) Discard(uint64)                                        {}

// recorder is an Invalidations that records its calls.
type recorder struct {
	noStore
	// Immutable.
	clock cache.Clock

	// Guarded by mu.
	mu        sync.Mutex
	events    []cache.Event
	applied   time.Duration // when Apply was called last
	horizon   time.Duration
	advanced  int
	seen      cache.Snapshot
	voids     []string
	retracted int
	promises  map[cache.ResourceID]string   // why not; "" if it holds
	lost      map[cache.ResourceID][]string // the reasons for each loss of the promise
	wrong     []string                      // what no stream may do
}

func (r *recorder) Apply(events []cache.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, events...)
	r.applied = r.clock()
}

func (r *recorder) Advance(horizon time.Duration, seen cache.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if horizon >= r.clock() {
		r.wrong = append(r.wrong, "a horizon that is not in the past")
	}
	r.horizon, r.seen = horizon, seen
	r.advanced++
}

func (r *recorder) Void(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.voids = append(r.voids, reason)
}

func (r *recorder) Retract() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retracted++
}

func (r *recorder) SetPromise(id cache.ResourceID, ok bool, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ok != (why == "") {
		r.wrong = append(r.wrong, fmt.Sprintf("SetPromise(%v, %q)", ok, why))
	}
	r.promises[id] = why
	if !ok {
		if r.lost == nil {
			r.lost = make(map[cache.ResourceID][]string)
		}
		r.lost[id] = append(r.lost[id], why)
	}
}

// forget drops the events so far.
func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = nil
}

// promise returns why the promise of the first resource does not hold.
func (r *recorder) promise() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.promises[0]
}

func (r *recorder) voided() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.voids
}

// ids returns the IDs of the events, "*" for one of all documents.
func (r *recorder) ids() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for _, e := range r.events {
		if e.All {
			ids = append(ids, "*")
		} else {
			ids = append(ids, e.Key.ID)
		}
	}
	return strings.Join(ids, " ")
}

// streamed is a database with a stream over it.
type streamed struct {
	*testing.T
	url    string
	db     *pgx.Conn
	origin *Origin
	stream *Stream
	sink   *recorder
	stop   func()
	// lockPatience is that of the stream; 0 means the default.
	lockPatience time.Duration
}

// streamedResource is a department with its employees and their tasks.
func streamedResource() resource.Resource {
	return resource.Resource{
		Name: "depts", Key: []string{"deptno"}, Freshness: time.Second,
		Root: resource.Node{Table: "dept", Children: []resource.Child{{Name: "emps", Node: resource.Node{
			Table: "emp", On: []resource.Join{{Column: "deptno", Parent: "deptno"}},
			Children: []resource.Child{{Name: "tasks", Node: resource.Node{
				Table: "task", On: []resource.Join{{Column: "empno", Parent: "empno"}}}}}}}}},
	}
}

const streamedSchema = `
CREATE TABLE dept (deptno bigint PRIMARY KEY, dname text NOT NULL);
CREATE TABLE emp (empno bigint PRIMARY KEY, deptno bigint REFERENCES dept ON DELETE CASCADE, ename text);
CREATE INDEX ON emp (deptno);
CREATE TABLE task (taskno bigint PRIMARY KEY, empno bigint REFERENCES emp ON DELETE CASCADE, what text);
CREATE INDEX ON task (empno);
INSERT INTO dept SELECT i, 'dept ' || i FROM generate_series(1, 20) i;
INSERT INTO emp SELECT i, (i - 1) / 5 + 1, 'emp ' || i FROM generate_series(1, 100) i;
INSERT INTO task SELECT i, (i - 1) / 2 + 1, 'task ' || i FROM generate_series(1, 200) i;
`

func startStreamed(t *testing.T) *streamed {
	t.Helper()
	startShared(t)
	testkit.NoLeaks(t)
	return streamedOn(t, freshDatabase(t, streamedSchema))
}

func streamedOn(t *testing.T, d *database) *streamed {
	t.Helper()
	s := &streamed{T: t, url: d.url}
	s.db = s.dial(t.Context())
	o, err := Open(t.Context(), Config{URL: s.url, Definer: testkit.Definer, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}, []resource.Resource{streamedResource()})
	if err != nil {
		t.Fatal(err)
	}
	s.origin = o
	t.Cleanup(func() { o.Close() })
	return s
}

func (s *streamed) dial(ctx context.Context) *pgx.Conn {
	s.Helper()
	c, err := pgx.Connect(ctx, s.url)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func (s *streamed) exec(sql string, args ...any) {
	s.Helper()
	if _, err := s.db.Exec(s.Context(), sql, args...); err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
}

func (s *streamed) apply() {
	s.Helper()
	if _, err := s.origin.Apply(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// run starts the stream and waits for its first horizon.
func (s *streamed) run() {
	s.Helper()
	began := time.Now()
	clock := func() time.Duration { return time.Since(began) }
	s.sink = &recorder{clock: clock, promises: map[cache.ResourceID]string{}}
	s.runInto(clock, s.sink)
}

// runInto starts the stream with a sink that embeds the recorder, and waits for its
// first horizon.
func (s *streamed) runInto(clock cache.Clock, sink origin.Sink) {
	s.Helper()
	s.start(clock, sink)
	s.advance()
}

func (s *streamed) start(clock cache.Clock, sink origin.Sink) {
	s.Helper()
	s.stream = s.origin.Stream(clock)
	if s.lockPatience > 0 {
		s.stream.lockPatience = s.lockPatience
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	// Ends with cancel, which stop and the cleanup call and wait for.
	go func() { done <- s.stream.Run(ctx, sink) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != context.Canceled {
			s.Errorf("Run returned %v", err)
		}
		for _, w := range s.sink.wrong {
			s.Error(w)
		}
	})
	s.Cleanup(s.stop)
}

// advance waits until the horizon covers this moment.
func (s *streamed) advance() {
	s.Helper()
	now := s.sink.clock()
	testkit.Eventually(s.T, 10*time.Second, func() error {
		s.sink.mu.Lock()
		defer s.sink.mu.Unlock()
		if s.sink.advanced == 0 || s.sink.horizon < now {
			return fmt.Errorf("horizon %v, want %v", s.sink.horizon, now)
		}
		return nil
	})
}

// expect waits for the horizon and compares the events since the last expect.
func (s *streamed) expect(want ...string) {
	s.Helper()
	s.advance()
	got := s.sink.ids()
	s.sink.forget()
	if strings.Contains(got, "*") && !slices.Contains(want, "*") {
		s.Fatalf("events %q, want no flush", got)
	}
	for _, w := range want {
		if !strings.Contains(" "+got+" ", " "+w+" ") {
			s.Fatalf("events %q, want %q among them", got, w)
		}
	}
	if len(want) == 0 && got != "" {
		s.Fatalf("events %q, want none", got)
	}
}

func TestStreamHearsEveryKindOfChange(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	s.run()
	s.expect("*")
	for _, step := range []struct {
		sql  string
		want []string
	}{
		{"UPDATE dept SET dname = 'x' WHERE deptno = 3", []string{"3"}},
		{"UPDATE emp SET ename = 'x' WHERE empno = 6", []string{"2"}},
		{"UPDATE emp SET deptno = 4 WHERE empno = 6", []string{"2", "4"}},
		{"UPDATE task SET what = 'x' WHERE taskno = 200", []string{"20"}},
		{"UPDATE task SET empno = 1 WHERE taskno = 200", []string{"20", "1"}},
		{"INSERT INTO task VALUES (1000, 100, 'new')", []string{"20"}},
		{"DELETE FROM task WHERE taskno = 1000", []string{"20"}},
		{"DELETE FROM dept WHERE deptno = 5", []string{"5"}},
		{"INSERT INTO dept VALUES (5, 'again')", []string{"5"}},
		{"TRUNCATE task", []string{"*"}},
		{"SELECT 1", nil},
	} {
		s.exec(step.sql)
		s.expect(step.want...)
	}
}

// A transaction may become visible after others with greater numbers.
func TestStreamHearsTransactionsThatCommitOutOfOrder(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	s.run()
	s.expect("*")
	first, second := s.dial(t.Context()), s.dial(t.Context())
	begin := func(c *pgx.Conn, dept int) pgx.Tx {
		tx, err := c.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "UPDATE dept SET dname = 'y' WHERE deptno = $1", dept); err != nil {
			t.Fatal(err)
		}
		return tx
	}
	a, b := begin(first, 1), begin(second, 2)
	if err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.expect("2")
	s.exec("UPDATE dept SET dname = 'z' WHERE deptno = 3")
	s.expect("3")
	if err := a.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.expect("1")
	s.expect() // and nothing twice
}

// Changes during a lost connection are found after reconnecting, and the documents
// that did not change are kept.
func TestStreamCatchesUpAfterDisconnect(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	began := time.Now()
	clock := func() time.Duration { return time.Since(began) }
	s.sink = &recorder{clock: clock, promises: map[cache.ResourceID]string{}}
	sink := &oneCommit{recorder: s.sink, id: "3"}
	s.runInto(clock, sink)
	s.expect("*")
	for range 5 {
		s.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'slipstream%' AND pid <> pg_backend_pid()`)
		s.exec("UPDATE emp SET ename = 'w' WHERE empno = 11")
		sink.commit(clock())
		s.advance()
		if got := s.sink.ids(); !strings.Contains(" "+got+" ", " 3 ") || strings.Contains(got, "*") {
			t.Fatalf("events %q, want 3 and no flush", got)
		}
		s.sink.forget()
		if sink.passed > 0 {
			t.Fatal("the horizon covered the commit before its document was dropped")
		}
	}
	if got := s.sink.voided(); len(got) > 0 {
		t.Errorf("voided: %q", got)
	}
}

func TestStreamFlushesWhatWasTrimmedUnread(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	s.run()
	s.expect("*")
	// This simulates trimming of rows that this stream has not read: the floor is
	// above its last snapshot.
	s.exec("UPDATE slipstream.meta SET complete_from = (pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 1)::text::xid8")
	s.expect("*")
}

// A transaction older than the change table holds the snapshots' xmin below the
// floor for as long as it runs; nothing is hidden by that.
func TestStreamKeepsDocumentsUnderALongTransaction(t *testing.T) {
	s := startStreamed(t)
	other := s.dial(t.Context())
	if _, err := other.Exec(t.Context(), "BEGIN; SELECT pg_current_xact_id()"); err != nil {
		t.Fatal(err)
	}
	s.apply()
	s.run()
	s.advance()
	s.sink.forget()
	for range 3 {
		s.exec("UPDATE dept SET dname = 'x' WHERE deptno = 3")
		s.expect("3")
		if got := s.sink.ids(); strings.Contains(got, "*") {
			t.Fatalf("events %q, want no flush", got)
		}
	}
	s.advance()
	if got := s.sink.ids(); got != "" {
		t.Errorf("events %q while nothing changed", got)
	}
}

func TestStreamGivesUpThePromiseWhileATriggerIsOff(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	s.run()
	s.expect("*")
	trigger := s.one("SELECT quote_ident(tgname) FROM pg_trigger WHERE tgrelid = 'emp'::regclass AND NOT tgisinternal AND tgname LIKE '%update%'")

	s.exec("ALTER TABLE emp DISABLE TRIGGER " + trigger)
	s.advance()
	if why := s.sink.promise(); !strings.Contains(why, "db apply") {
		t.Errorf("promise: %q, want a wrong trigger", why)
	}
	s.exec("ALTER TABLE emp ENABLE ALWAYS TRIGGER " + trigger)
	s.expect("*")
	if why := s.sink.promise(); why != "" {
		t.Errorf("promise not regained: %s", why)
	}
	// If it happens in one transaction, only the row's xmin is different afterward.
	s.exec("BEGIN; ALTER TABLE emp DISABLE TRIGGER " + trigger + "; UPDATE emp SET ename = 'unheard' WHERE empno = 1; ALTER TABLE emp ENABLE ALWAYS TRIGGER " + trigger + "; COMMIT")
	s.expect("*")
}

func (s *streamed) one(sql string) (text string) {
	s.Helper()
	if err := s.db.QueryRow(s.Context(), sql).Scan(&text); err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
	return text
}

func TestStreamNoticesChangesOfTables(t *testing.T) {
	for name, sql := range map[string]string{
		"rewritten":  "ALTER TABLE task ALTER COLUMN what TYPE text USING what || '!'",
		"new column": "ALTER TABLE emp ADD COLUMN extra int DEFAULT 7",
		"policy":     "CREATE POLICY p ON dept USING (true)",
	} {
		t.Run(name, func(t *testing.T) {
			s := startStreamed(t)
			s.apply()
			s.run()
			s.expect("*")
			s.exec(sql)
			s.expect("*")
			if why := s.sink.promise(); why != "" {
				t.Errorf("the promise does not hold: %s", why)
			}
		})
	}
}

func TestStreamRecoversFromASchemaThatDoesNotFit(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	s.run()
	s.expect("*")
	s.exec("ALTER TABLE emp RENAME COLUMN deptno TO department")
	s.advance()
	if why := s.sink.promise(); !strings.Contains(why, "deptno") {
		t.Errorf("promise: %q, want the missing column named", why)
	}
	s.exec("ALTER TABLE emp RENAME COLUMN department TO deptno")
	testkit.Eventually(t, 10*time.Second, func() error {
		if why := s.sink.promise(); why != "" {
			return fmt.Errorf("promise: %s", why)
		}
		return nil
	})
	s.sink.forget()
	s.exec("UPDATE emp SET ename = 'after' WHERE empno = 1")
	s.expect("1")
}

func TestStreamBeforeAndAfterApply(t *testing.T) {
	s := startStreamed(t)
	s.run()
	if why := s.sink.promise(); !strings.Contains(why, "slipstream db apply") {
		t.Errorf("promise: %q, want the command that makes the triggers", why)
	}
	s.apply()
	s.advance()
	if why := s.sink.promise(); why != "" {
		t.Errorf("promise after apply: %s", why)
	}
	s.sink.forget()
	s.exec("UPDATE dept SET dname = 'heard' WHERE deptno = 1")
	s.expect("1")
	if _, err := s.origin.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.advance()
	if why := s.sink.promise(); !strings.Contains(why, "slipstream db apply") {
		t.Errorf("promise after drop: %q", why)
	}
}

// An unlogged table is empty after a recovery; emptying it simulates one here.
func TestStreamVoidsAnotherHistory(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	s.run()
	s.expect("*")
	before := s.one("SELECT id FROM slipstream.incarnation")
	s.exec("DELETE FROM slipstream.incarnation")
	testkit.Eventually(t, 10*time.Second, func() error {
		if len(s.sink.voided()) == 0 {
			return fmt.Errorf("not voided")
		}
		return nil
	})
	s.expect("*")
	if after := s.one("SELECT id FROM slipstream.incarnation"); after == before {
		t.Error("the history has kept its id")
	}
}

// More changes than a poll applies only flush the resources that have changed.
func TestStreamFlushesAfterTooManyChanges(t *testing.T) {
	s := startStreamed(t)
	s.origin.cfg.Freshness = 10 * time.Minute // slow machines need more than a second to name the sources
	other := resource.Resource{Name: "tasks", Key: []string{"taskno"}, Freshness: time.Second, Root: resource.Node{Table: "task"}}
	o, err := Open(t.Context(), s.origin.cfg, []resource.Resource{streamedResource(), other})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	s.origin = o
	s.apply()
	s.run()
	s.advance()
	s.sink.forget()
	source := s.origin.schema.Load().resources[1].sources[0].recorded
	for _, gap := range []bool{false, true} {
		if gap {
			s.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'slipstream%' AND pid <> pg_backend_pid()`)
		}
		s.exec("INSERT INTO slipstream.change(source, key) SELECT $1, (i % 20 + 1)::text FROM generate_series(1, $2::int) i", source, maxChanges+1)
		s.exec("INSERT INTO slipstream.change(source, key) SELECT 'of another definition', (i % 20 + 1)::text FROM generate_series(1, $1::int) i", maxChanges+1)
		s.advance()
		flushed := make(map[cache.ResourceID]bool)
		s.sink.mu.Lock()
		for _, e := range s.sink.events {
			if e.All {
				flushed[e.Key.Resource] = true
			}
		}
		s.sink.mu.Unlock()
		s.sink.forget()
		if flushed[0] || !flushed[1] {
			t.Errorf("flushed %v, want resource 1 only (after a gap: %t)", flushed, gap)
		}
	}
}

// While one transaction moves an employee, another adds a task to that employee: its
// trigger would still see the old department.
func TestStreamFindsTheRootOfAMovedParent(t *testing.T) {
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead} {
		t.Run(string(level), func(t *testing.T) {
			s := startStreamed(t)
			s.apply()
			s.run()
			s.expect("*")
			mover, adder := s.dial(t.Context()), s.dial(t.Context())
			move, err := mover.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := move.Exec(t.Context(), "UPDATE emp SET deptno = 9 WHERE empno = 1"); err != nil {
				t.Fatal(err)
			}
			add, err := adder.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := add.Exec(t.Context(), "INSERT INTO task VALUES (5000, 1, 'added')"); err != nil {
				t.Fatal(err)
			}
			if err := move.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.expect("1", "9")
			if err := add.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.expect("9")
		})
	}
}
