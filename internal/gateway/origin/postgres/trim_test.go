package postgres

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// record writes rows of the change table as that many transactions of writers do, each
// with the given number of rows, all of the given age.
func record(t testing.TB, conn *pgx.Conn, transactions, rows int, age string) {
	t.Helper()
	_, err := conn.PgConn().Exec(t.Context(), fmt.Sprintf(`DO $$ BEGIN
		SET synchronous_commit = off;
		FOR n IN 1..%d LOOP
			INSERT INTO slipstream.change (at, source, key) SELECT clock_timestamp() - interval '%s', 'another@0123456789ab', (n * i)::text FROM generate_series(1, %d) AS i;
			COMMIT;
		END LOOP;
	END $$`, transactions, age, rows)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
}

// settled waits until all transactions of the change table are below every one in
// progress. Autovacuum has one now and then.
func (d *database) settled(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, 20*time.Second, func() error {
		if d.text(t, `SELECT pg_snapshot_xmin(pg_current_snapshot()) > xid FROM slipstream.change ORDER BY xid DESC LIMIT 1`) != "t" {
			return fmt.Errorf("a transaction is in progress")
		}
		return nil
	})
}

// trimOnce calls the trimming function and returns how many rows it deleted.
func (d *database) trimOnce(t *testing.T, keep string, keepBytes, atMost int) int {
	t.Helper()
	n, err := strconv.Atoi(d.text(t, fmt.Sprintf("SELECT %s('%s', %d, %d)", trimCall, keep, keepBytes, atMost)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// trimAll trims until nothing is left to delete.
func (d *database) trimAll(t *testing.T, keep string, keepBytes int) (deleted int) {
	t.Helper()
	for {
		n := d.trimOnce(t, keep, keepBytes, trimRows)
		if deleted += n; n == 0 {
			return deleted
		}
	}
}

// measureTrim calls a trimming function and counts the pages that it touched.
func measureTrim(t testing.TB, conn *pgx.Conn, call string) (buffers int, took time.Duration) {
	t.Helper()
	var text string
	if err := conn.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT "+call).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return explained(t, text)
}

// explained returns the totals of EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON).
func explained(t testing.TB, text string) (buffers int, took time.Duration) {
	t.Helper()
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
		Time float64 `json:"Execution Time"`
	}
	if err := json.Unmarshal([]byte(text), &plans); err != nil || len(plans) != 1 || plans[0].Plan.Hit == 0 {
		t.Fatalf("the plan: %v\n%s", err, text)
	}
	return plans[0].Plan.Hit + plans[0].Plan.Read, time.Duration(plans[0].Time * float64(time.Millisecond))
}

func countChanges(t testing.TB, conn *pgx.Conn) (n int) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM slipstream.change").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// While pg_dump or another old snapshot runs, rows that were deleted since stay in
// the index. A trim that scanned them would take longer with each earlier one.
func TestTrimIsNotSlowedDownByRowsDeletedBefore(t *testing.T) {
	d := freshDatabase(t, deptSchema)
	d.apply(t, Config{}, deptResource())
	d.exec(t, `DELETE FROM slipstream.change`) // what apply wrote is young
	record(t, d.conn, 600, 100, "2 hours")
	d.settled(t)
	dump := d.connect(t, "")
	execOn(t, dump, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
	const all = `SELECT count(*), (SELECT complete_from FROM slipstream.meta) FROM slipstream.change`
	seen := textOn(t, dump, all)

	call := trimCall + "('1 hour', 1073741824, 100)"
	for range 5 { // the first calls read catalogs
		d.trimOnce(t, "1 hour", 1<<30, 100)
	}
	left := countChanges(t, d.conn)
	first, _ := measureTrim(t, d.conn, call)
	for range 3 {
		if n := d.trimOnce(t, "1 hour", 1<<30, 18_000); n != 18_000 {
			t.Fatalf("trimmed %d rows, want 18,000", n)
		}
	}
	last, _ := measureTrim(t, d.conn, call)
	if n := left - countChanges(t, d.conn); n != 54_200 {
		t.Fatalf("trimmed %d rows, want 54,200", n)
	}
	t.Logf("100 rows: %d buffers, and %d after 54,000 dead rows", first, last)
	if last > 2*first {
		t.Errorf("100 rows touched %d buffers, 100 rows after 54,000 deleted ones %d; want at most twice as many", first, last)
	}
	if now := textOn(t, dump, all); now != seen {
		t.Errorf("the old snapshot shows %s rows and floor, it began with %s", now, seen)
	}
}

// The retained rows take keep_bytes, measured as the table without any dead rows, and
// not much less. If it is vacuumed in between, the table stays that small.
func TestKeepBytesBoundsTheTable(t *testing.T) {
	for _, keepBytes := range []int{1 << 20, 4 << 20} { // read completely, and sampled
		t.Run(fmt.Sprint(keepBytes>>20, " MiB"), func(t *testing.T) {
			d := freshDatabase(t, deptSchema)
			d.apply(t, Config{}, deptResource())
			rows := keepBytes / 100
			for range 3 {
				record(t, d.conn, rows/50, 50, "0 hours")
				d.settled(t)
				d.exec(t, `ANALYZE slipstream.change`)
				d.trimAll(t, "24 hours", keepBytes)
				d.exec(t, `VACUUM slipstream.change`)
			}
			size := func() int {
				n, err := strconv.Atoi(d.text(t, `SELECT pg_total_relation_size('slipstream.change')`))
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			if n := size(); n > 3*keepBytes {
				t.Errorf("the table takes %d bytes, with rows of %d bytes that are kept and as many that came between two vacuums", n, keepBytes)
			}
			if n := d.trimOnce(t, "24 hours", keepBytes, trimRows); n != 0 {
				t.Errorf("trimmed %d rows again", n)
			}
			d.exec(t, `VACUUM FULL slipstream.change`)
			if n := size(); n > keepBytes+keepBytes/5 || n < keepBytes*3/5 {
				t.Errorf("the rows that are left take %d bytes, want %d or little less", n, keepBytes)
			}
			if got := d.text(t, `SELECT count(*) FROM slipstream.change AS c, slipstream.meta AS m WHERE c.xid < m.complete_from AND c.xid::text::bigint < m.complete_from::text::bigint - 1`); got != "0" {
				t.Errorf("%s rows are left below where trimming begins", got)
			}
		})
	}
}

// A transaction of two hours, open while everything around it is trimmed: neither
// bound touches its rows or later ones, and its changes reach the stream.
func TestTrimBesideALongWriter(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	d := &database{conn: s.db, url: s.url}
	record(t, s.db, 100, 100, "3 hours")
	d.settled(t)
	writer := s.dial(t.Context())
	execOn(t, writer, `BEGIN; UPDATE dept SET dname = 'long' WHERE deptno = 7`,
		`UPDATE slipstream.change SET at = at - interval '2 hours' WHERE xid = pg_current_xact_id()`)
	xid := textOn(t, writer, `SELECT pg_current_xact_id()`)
	record(t, s.db, 200, 100, "2 hours")
	s.run()
	s.expect("*")
	s.retained() // its own trim has ended

	if n := d.trimAll(t, "1 hour", 1<<20); n < 9_900 {
		t.Errorf("trimmed %d rows, want all but the last transaction below the writer's", n)
	}
	if got := d.text(t, `SELECT count(*) FROM slipstream.change WHERE xid > '`+xid+`'`); got != "20000" {
		t.Errorf("%s later rows are left, want all 20,000", got)
	}
	if got := d.text(t, `SELECT complete_from <= '`+xid+`' FROM slipstream.meta`); got != "t" {
		t.Error("the floor has passed a transaction in progress")
	}
	s.expect()

	r, holders, err := readRetention(t.Context(), s.db, Config{KeepChanges: time.Hour, KeepBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	pid := textOn(t, writer, `SELECT pg_backend_pid()`)
	if len(holders) == 0 || !holders[0].Deletes || fmt.Sprint(holders[0].PID) != pid || holders[0].XID != xid || holders[0].Kind != "transaction" {
		t.Errorf("held by %v, want pid %s and xid %s", holders, pid, xid)
	}
	if r.Kept < 1<<20 || r.Reach < 2*time.Hour {
		t.Errorf("kept %d bytes for %v, want more than both bounds", r.Kept, r.Reach)
	}

	execOn(t, writer, `COMMIT`)
	s.expect("7")
	d.settled(t)
	d.trimAll(t, "1 hour", 1<<20)
	if got := d.text(t, `SELECT count(*) FROM slipstream.change WHERE xid = '`+xid+`'`); got != "0" {
		t.Errorf("%s rows of the writer are left after it has ended", got)
	}
	s.expect()
	if got := s.sink.voided(); len(got) > 0 {
		t.Errorf("voided: %q", got)
	}
}

// A survey and the poll that follows it have a snapshot each. Rows that are trimmed
// between the two are missed by no document.
func TestTrimBetweenASurveysSnapshotAndItsRead(t *testing.T) {
	for _, test := range []struct {
		name  string
		trims bool
		want  string
	}{
		{"rows that stay are read", false, "4"},
		{"rows that are gone flush", true, "*"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := startStreamed(t)
			s.apply()
			s.exec(`UPDATE slipstream.change SET at = at - interval '2 hours'`)
			s.run()
			s.expect("*")
			s.stop()
			d := &database{conn: s.db, url: s.url}
			s.exec(`UPDATE dept SET dname = 'in the gap' WHERE deptno = 4`)
			record(t, s.db, 2, 1, "0 hours")
			d.settled(t)
			s.exec(fmt.Sprintf(`UPDATE slipstream.change SET at = at - interval '2 hours' WHERE xid > '%d'`, s.stream.witness.Tx))

			if err := s.stream.connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer s.stream.disconnect()
			if err := s.stream.survey(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := s.sink.ids(); got != "" {
				t.Errorf("events of the survey: %q, want none", got)
			}
			if test.trims {
				d.trimAll(t, "1 hour", 1<<30)
				if left := d.text(t, `SELECT count(*) FROM slipstream.change WHERE key = '4'`); left != "0" {
					t.Fatalf("%s rows of the gap are left, so this tests nothing", left)
				}
			}
			// A poll whose witness is gone requests another survey.
			for range 2 {
				intact, err := s.stream.readOn(t.Context(), s.stream.clock(), true)
				if err != nil {
					t.Fatal(err)
				}
				if intact {
					break
				}
				if err := s.stream.survey(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := s.sink.ids(); got != test.want {
				t.Errorf("events %q, want %q", got, test.want)
			}
			if got := s.sink.voided(); len(got) > 0 {
				t.Errorf("voided: %q", got)
			}
		})
	}
}

// retained waits until the stream has trimmed and read the retention.
func (s *streamed) retained() {
	s.Helper()
	testkit.Eventually(s.T, 20*time.Second, func() error {
		if s.stream.Stats().Retention == nil {
			return fmt.Errorf("no report after %d trimmed rows", s.stream.Stats().Trimmed)
		}
		return nil
	})
}

// The stream trims to both bounds of its configuration and reports what is kept.
func TestStreamTrimsToItsBounds(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	record(t, s.db, 300, 100, "0 hours")
	(&database{conn: s.db}).settled(t)
	s.origin.cfg.KeepBytes = 1 << 20
	s.run()
	s.retained()
	stats := s.stream.Stats()
	if r := stats.Retention; stats.Trimmed < 10_000 || r.Bound != "bytes" || r.Kept > 1<<20 || r.Kept < 1<<19 || r.Bytes < r.Kept || r.Reach > time.Hour {
		t.Errorf("trimmed %d rows, %+v; want keep_bytes as the bound", stats.Trimmed, *r)
	}
}

// A gateway of another release trims as well, from the left end of the index. Each
// continues where the other stopped, even in the middle of a transaction.
func TestTrimBesideAnotherRelease(t *testing.T) {
	d := freshDatabase(t, deptSchema)
	d.apply(t, Config{}, deptResource())
	text, err := os.ReadFile("testdata/unhashed.sql")
	if err != nil {
		t.Fatal(err)
	}
	d.exec(t, oldTrim(t, text))
	d.exec(t, `DELETE FROM slipstream.change`)
	record(t, d.conn, 8, 5, "2 hours")
	d.settled(t)
	for left := 40; left > 5; { // 5 are of the newest transaction
		want := strconv.Itoa(min(3, left-5))
		if got := d.text(t, `SELECT slipstream."trim@0123456789ab"('1 hour', 3)`); got != want {
			t.Fatalf("theirs trimmed %s of %d rows, want %s", got, left, want)
		}
		left -= min(3, left-5)
		want = strconv.Itoa(min(4, left-5))
		if got := d.trimOnce(t, "1 hour", 1<<30, 4); strconv.Itoa(got) != want {
			t.Fatalf("ours trimmed %d of %d rows, want %s", got, left, want)
		}
		left -= min(4, left-5)
	}
	if got := d.text(t, `SELECT count(DISTINCT xid), count(*) FROM slipstream.change`); got != "1 5" {
		t.Errorf("transactions and rows that are left: %s, want the newest one", got)
	}
	if got := states(t, d.origin(t, Config{}, "", deptResource())); len(got) != 1 {
		t.Errorf("findings %v, want theirs, which a prune drops", got)
	}
}

// A transaction that was open when the record began writes below its beginning, where
// trimming does not look: its rows are found gradually, and only when the floor moves, so
// that streams that have not read them notice it.
func TestTrimSweepsBelowTheBeginning(t *testing.T) {
	d := freshDatabase(t, deptSchema)
	d.apply(t, Config{}, deptResource())
	d.exec(t, `DELETE FROM slipstream.change`,
		`INSERT INTO slipstream.change (xid, at, source) SELECT '4', now() - interval '2 hours', 'old' FROM generate_series(1, 100)`,
		`INSERT INTO slipstream.change (xid, at, source) VALUES ('5', now(), 'young')`)
	const below = `SELECT string_agg(DISTINCT source, ' ') FROM slipstream.change WHERE xid < '10'`
	d.trimAll(t, "1 hour", 1<<30)
	if got := d.text(t, below); got != "old young" {
		t.Errorf("left %s, although the floor did not move", got)
	}
	floor := d.text(t, `SELECT complete_from FROM slipstream.meta`)
	record(t, d.conn, 3, 1, "2 hours")
	d.settled(t)
	d.trimAll(t, "1 hour", 1<<30)
	if got := d.text(t, below); got != "young" {
		t.Errorf("left %s, want what is young", got)
	}
	if now := d.text(t, `SELECT complete_from FROM slipstream.meta`); now == floor {
		t.Error("rows were deleted and the floor has not moved")
	}
}

// The database does not report the start of a slot, and the gateway's role may not see
// that of other roles' transactions: their age counts from when they were first seen
// with the same transaction ID.
func TestAgesOfHolders(t *testing.T) {
	var s sightings
	slot := func(xid string) []origin.Holder {
		return []origin.Holder{{Kind: "replication slot", XID: xid, Name: "standby"}}
	}
	for _, step := range []struct {
		at      time.Duration
		holders []origin.Holder
		want    string
	}{
		{0, slot("10"), "[]"},
		{59 * time.Second, slot("10"), "[]"},
		{2 * time.Minute, slot("10"), `[replication slot "standby" (xid 10, for 2m)]`},
		{3 * time.Minute, slot("20"), "[]"},
		{4 * time.Minute, slot("20"), `[replication slot "standby" (xid 20, for 1m)]`},
		{5 * time.Minute, []origin.Holder{{Kind: "transaction", PID: 7, XID: "30", Name: "report", Age: 2 * time.Hour}}, `[transaction "report" (pid 7, xid 30, for 2h0m)]`},
	} {
		if got := fmt.Sprint(s.watch(step.holders, step.at)); got != step.want {
			t.Errorf("at %v: %s, want %s", step.at, got, step.want)
		}
	}
}

// oldTrim returns the trimming function of a release whose names had no hashes, with
// such a name.
func oldTrim(t testing.TB, unhashed []byte) string {
	t.Helper()
	function := regexp.MustCompile(`(?s)CREATE OR REPLACE FUNCTION slipstream\.trim\(.*?\$body\$.*?\$body\$;`).Find(unhashed)
	if function == nil {
		t.Fatal("testdata/unhashed.sql has no function slipstream.trim")
	}
	return strings.Replace(string(function), "slipstream.trim(", `slipstream."trim@0123456789ab"(`, 1)
}
