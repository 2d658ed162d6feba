package postgres

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// TestRecord is about the functions that keep the change table.
func TestRecord(t *testing.T) {
	pg := startServer(t, "max_prepared_transactions=5")
	for _, test := range []struct {
		name string
		run  func(*testing.T, *server)
	}{
		{"trim deletes what is old, oldest first", testTrimOld},
		{"trim stops at a young row", testTrimStopsAtYoung},
		{"trim keeps the newest row", testTrimKeepsNewest},
		{"trim leaves running transactions alone", testTrimRunning},
		{"two trimmers", testTwoTrimmers},
		{"trim refuses nonsense", testTrimArguments},
		{"renew", testRenew},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, pg)
		})
	}
}

// recordDatabase has an empty record that is complete from transaction 3 on.
func recordDatabase(t *testing.T, pg *server) *database {
	t.Helper()
	d := pg.database(t, deptSchema)
	d.apply(t, Config{}, deptResource())
	d.exec(t, `DELETE FROM slipstream.change`, `UPDATE slipstream.meta SET complete_from = '3'`)
	return d
}

func testTrimOld(t *testing.T, pg *server) {
	d := recordDatabase(t, pg)
	// One transaction of three rows, and three of one, the last of which is the newest.
	d.exec(t, `INSERT INTO slipstream.change(xid, at, source) SELECT '10', now() - interval '2 hours', 'a' FROM generate_series(1, 3)`,
		`INSERT INTO slipstream.change(xid, at, source) VALUES ('12', now() - interval '2 hours', 'b'), ('11', now() - interval '2 hours', 'b'), ('13', now() - interval '2 hours', 'c')`)
	for _, s := range []struct{ call, want string }{
		{trimCall + `('3 hours', 1073741824, 100)`, "0 3 6"},
		// More rows than fit one call: the floor is above all of them immediately.
		{trimCall + `('1 hour', 1073741824, 2)`, "2 11 4"},
		{trimCall + `('1 hour', 1073741824, 2)`, "2 12 2"},
		{trimCall + `('1h0m0s', 1073741824, 2)`, "1 13 1"}, // as Go writes durations
		{trimCall + `('1 hour', 1073741824, 2)`, "0 13 1"},
	} {
		got := d.text(t, `SELECT `+s.call) + " " + d.text(t, `SELECT complete_from, (SELECT count(*) FROM slipstream.change) FROM slipstream.meta`)
		if got != s.want {
			t.Errorf("%s: deleted, complete_from, left: %s, want %s", s.call, got, s.want)
		}
	}
	// Rolling back a transaction undoes both.
	d.exec(t, `INSERT INTO slipstream.change(xid, at, source) VALUES ('20', now() - interval '2 hours', 'a')`,
		`BEGIN; SELECT `+trimCall+`('1 hour', 1073741824, 10); ROLLBACK`)
	if got := d.text(t, `SELECT complete_from, (SELECT count(*) FROM slipstream.change) FROM slipstream.meta`); got != "13 2" {
		t.Errorf("after a rollback: %s", got)
	}
	if plan := d.text(t, `EXPLAIN SELECT c.ctid FROM slipstream.change AS c WHERE c.xid < pg_snapshot_xmin(pg_current_snapshot()) ORDER BY c.xid LIMIT 5`); !strings.Contains(plan, "change_xid") {
		t.Errorf("a page is not an index scan: %s", plan)
	}
}

func testTrimStopsAtYoung(t *testing.T, pg *server) {
	d := recordDatabase(t, pg)
	d.exec(t, `INSERT INTO slipstream.change(xid, at, source) VALUES
		('10', now() - interval '2 hours', 'a'), ('11', now() - interval '2 hours', 'half old'), ('11', now(), 'half young'), ('12', now() - interval '2 hours', 'clock set back')`)
	if n := d.text(t, `SELECT `+trimCall+`('1 hour', 1073741824, 100)`); n != "1" {
		t.Errorf("trimmed %s rows, want the one before the first young transaction", n)
	}
	if got := d.text(t, `SELECT string_agg(source, ', ' ORDER BY xid, source), (SELECT complete_from FROM slipstream.meta) FROM slipstream.change`); got != "half old, half young, clock set back 11" {
		t.Errorf("left %s", got)
	}
}

// testTrimKeepsNewest trims an idle record repeatedly. Its newest row is the witness
// of the history, and the floor must not pass it.
func testTrimKeepsNewest(t *testing.T, pg *server) {
	d := recordDatabase(t, pg)
	d.exec(t, `INSERT INTO slipstream.change(xid, at, source) VALUES ('10', now() - interval '3 hours', 'a'),
		('11', now() - interval '3 hours', 'first'), ('11', now() - interval '2 hours', 'last')`)
	for _, deleted := range []string{"1", "0", "0"} {
		if n := d.text(t, `SELECT `+trimCall+`('1 hour', 1073741824, 100)`); n != deleted {
			t.Errorf("trimmed %s rows, want %s", n, deleted)
		}
		if got := d.text(t, `SELECT string_agg(source, ' ' ORDER BY xid, at), (SELECT complete_from FROM slipstream.meta) FROM slipstream.change`); got != "first last 11" {
			t.Errorf("left, complete_from: %s, want the newest transaction and no floor above it", got)
		}
	}
}

// testTrimRunning has a transaction that wrote its rows long ago and is still
// open: polls have yet to read them.
func testTrimRunning(t *testing.T, pg *server) {
	d := recordDatabase(t, pg)
	for _, open := range []struct{ begin, end string }{
		{`BEGIN`, `COMMIT`},
		{`BEGIN`, `PREPARE TRANSACTION 'long'`},
	} {
		d.exec(t, `DELETE FROM slipstream.change`)
		writer := d.connect(t, "")
		execOn(t, writer, open.begin, `INSERT INTO slipstream.change(at, source) VALUES (now() - interval '2 hours', 'open')`)
		d.exec(t, `INSERT INTO slipstream.change(at, source) VALUES (now() - interval '2 hours', 'later')`)
		if open.end != `COMMIT` {
			execOn(t, writer, open.end)
		}
		if n := d.text(t, `SELECT `+trimCall+`('1 hour', 1073741824, 100)`); n != "0" {
			t.Errorf("%s: trimmed %s rows at or above a transaction in progress", open.end, n)
		}
		if open.end == `COMMIT` {
			execOn(t, writer, open.end)
		} else {
			d.exec(t, `COMMIT PREPARED 'long'`)
		}
		// Other tests' transactions count too.
		deadline := time.Now().Add(20 * time.Second)
		for left := "2"; left != "1"; left = d.text(t, `SELECT count(*) FROM slipstream.change`) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %s rows are never trimmed", open.end, left)
			}
			d.exec(t, `SELECT `+trimCall+`('1 hour', 1073741824, 100)`)
		}
	}
}

func testTwoTrimmers(t *testing.T, pg *server) {
	d := recordDatabase(t, pg)
	d.exec(t, `INSERT INTO slipstream.change(xid, at, source) VALUES ('10', now() - interval '2 hours', 'a'), ('11', now() - interval '2 hours', 'a'), ('12', now() - interval '2 hours', 'a')`)
	first := d.connect(t, "")
	execOn(t, first, `BEGIN; SELECT `+trimCall+`('1 hour', 1073741824, 1)`)
	if n := d.text(t, `SET lock_timeout = '3s'; SELECT `+trimCall+`('1 hour', 1073741824, 1)`); n != "0" {
		t.Errorf("a second trimmer deleted %s rows", n)
	}
	execOn(t, first, `COMMIT`)
	if n := d.text(t, `SELECT `+trimCall+`('1 hour', 1073741824, 1)`); n != "1" {
		t.Errorf("the next trimmer deleted %s rows", n)
	}
}

func testTrimArguments(t *testing.T, pg *server) {
	d := recordDatabase(t, pg)
	for _, call := range []string{trimCall + `('59 seconds', 1073741824, 10)`, trimCall + `(NULL, 1073741824, 10)`, trimCall + `('-1 hour', 1073741824, 10)`,
		trimCall + `('1 hour', 1073741824, 0)`, trimCall + `('1 hour', 1073741824, NULL)`} {
		if err := tryOn(t, d.conn, `SELECT `+call); err == nil || !strings.Contains(err.Error(), "expected at least 1") {
			t.Errorf("%s: %v", call, err)
		}
	}
}

func testRenew(t *testing.T, pg *server) {
	d := recordDatabase(t, pg)
	for range 5 {
		d.exec(t, `DELETE FROM slipstream.incarnation`)
		var wg sync.WaitGroup
		ids := make([]string, 8)
		for i := range ids {
			conn := d.connect(t, "")
			wg.Go(func() { // ends with its statement; waited for below
				ids[i] = textOn(t, conn, `SELECT slipstream.renew()`)
			})
		}
		wg.Wait()
		for _, id := range ids {
			if id == "" || id != ids[0] {
				t.Fatalf("callers at once got different ids: %v", ids)
			}
		}
		if got := d.text(t, `SELECT id FROM slipstream.incarnation`); got != ids[0] {
			t.Errorf("the table holds %s, callers got %s", got, ids[0])
		}
		if again := d.text(t, `SELECT slipstream.renew()`); again != ids[0] {
			t.Errorf("an id that is there was replaced: %s", again)
		}
	}
}
