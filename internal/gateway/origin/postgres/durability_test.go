package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// TestDurability reproduces which data survives: a server goes through all the
// ways in which it may end.
func TestDurability(t *testing.T) {
	pg := startServer(t, "autovacuum=off", "full_page_writes=on")
	d := pg.database(t, `CREATE UNLOGGED TABLE incarnation (id int); INSERT INTO incarnation VALUES (7); CREATE TABLE t (id int)`)
	// again waits until the server accepts connections. The server belongs to this
	// test, not to the one that restarts it.
	again := func(restart bool) {
		t.Helper()
		if restart {
			pg.Restart(t)
		}
		testkit.Eventually(t, 30*time.Second, func() error {
			conn, err := pgx.Connect(t.Context(), d.url)
			if err == nil {
				d.conn = conn
			}
			return err
		})
		t.Cleanup(func() { _ = d.conn.Close(context.Background()) }) // the test is over
	}
	for _, fact := range []struct {
		claim string
		run   func(*testing.T, *server, *database, func(bool))
	}{
		{"commits that notify wait for one another", factNotifySerialises},
		{"a copy of a database keeps unlogged tables, timeline and system identifier", factCopyKeepsUnlogged},
		{"an unlogged table outlives a clean restart", factCleanRestart},
		{"a promoted standby has another timeline and an empty unlogged table", factPromotion},
		{"an unlogged table is empty after kill -9 of a backend", factBackendKilled},
		{"an acknowledged commit with synchronous_commit off is lost in a crash", factAsyncCommitLost},
	} {
		// In this order: it is the life of one server.
		t.Run(fact.claim, func(t *testing.T) { fact.run(t, pg, d, again) })
	}
}

func factNotifySerialises(t *testing.T, pg *server, d *database, _ func(bool)) {
	// A standby that does not exist holds commits up after they are flushed
	// and before they are visible.
	d.exec(t, `CREATE TABLE n (id int)`)
	setSync := func(to string) {
		t.Helper()
		d.exec(t, `ALTER SYSTEM SET synchronous_standby_names = '`+to+`'`, `SELECT pg_reload_conf()`)
		testkit.Eventually(t, 10*time.Second, func() error {
			if got := d.text(t, `SHOW synchronous_standby_names`); got != to {
				return fmt.Errorf("synchronous_standby_names is %q", got)
			}
			return nil
		})
	}
	d.exec(t, `SET synchronous_commit = local`)
	setSync("nowhere")
	first, second, quiet := d.connect(t, ""), d.connect(t, ""), d.connect(t, "")
	execOn(t, second, `SET synchronous_commit = local`)
	execOn(t, quiet, `SET synchronous_commit = local`)
	commit := func(conn *pgx.Conn, script string) chan error {
		done := make(chan error, 1)
		// Ends when the commits continue below; waited for at the channel.
		go func() {
			_, err := conn.PgConn().Exec(t.Context(), script).ReadAll()
			done <- err
		}()
		return done
	}
	// The lock is on "database 0": class 1262 is pg_database.
	locks := func(granted bool) string {
		return d.text(t, fmt.Sprintf(`SELECT count(*) FROM pg_locks WHERE locktype = 'object' AND classid = 1262 AND objid = 0 AND mode = 'AccessExclusiveLock' AND granted = %t`, granted))
	}
	await := func(granted bool) {
		t.Helper()
		testkit.Eventually(t, 10*time.Second, func() error {
			if got := locks(granted); got != "1" {
				return fmt.Errorf("%s sessions have the lock (granted %t)", got, granted)
			}
			return nil
		})
	}
	one := commit(first, `BEGIN; INSERT INTO n VALUES (1); NOTIFY slipstream; COMMIT`)
	await(true)
	two := commit(second, `BEGIN; INSERT INTO n VALUES (2); NOTIFY slipstream; COMMIT`)
	await(false)
	execOn(t, quiet, `INSERT INTO n VALUES (3)`) // without NOTIFY no session waits
	if got := d.text(t, `SELECT string_agg(id::text, '+') FROM n`); got != "3" {
		t.Errorf("committed while a notifying commit is held up: %s", got)
	}
	setSync("")
	for _, done := range []chan error{one, two} {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	d.exec(t, `RESET synchronous_commit`)
}

func factCopyKeepsUnlogged(t *testing.T, pg *server, d *database, _ func(bool)) {
	pg.PSQL(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+d.name+"'")
	pg.PSQL(t, "CREATE DATABASE copy TEMPLATE "+d.name)
	d.conn = d.connect(t, "")
	original := d.text(t, timelineSQL)
	conn, err := pgx.Connect(t.Context(), strings.Replace(d.url, "/"+d.name+"?", "/copy?", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }() // the test is over
	if got := textOn(t, conn, `SELECT id, (SELECT relpersistence FROM pg_class WHERE relname = 'incarnation') FROM incarnation`); got != "7 u" {
		t.Errorf("the copy holds %q, want 7 u: a copy that lost the row would be recognized by that", got)
	}
	if got := textOn(t, conn, timelineSQL); got != original {
		t.Errorf("timeline and system identifier are %s in the original and %s in the copy", original, got)
	}
}

func factCleanRestart(t *testing.T, pg *server, d *database, again func(restart bool)) {
	pg.Stop(t)
	again(true)
	if got := d.text(t, `SELECT id FROM incarnation`); got != "7" {
		t.Errorf("after a clean restart the unlogged table holds %q", got)
	}
}

const timelineSQL = `SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8), (SELECT system_identifier FROM pg_control_system())`

func factPromotion(t *testing.T, pg *server, d *database, _ func(bool)) {
	before := d.text(t, timelineSQL)
	standby := pg.StartStandby(t, 0)
	url := strings.Replace(standby.URL, "/postgres?", "/"+d.name+"?", 1)
	onStandby, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = onStandby.Close(context.Background()) }() // the test is over
	d.exec(t, `INSERT INTO t VALUES (1)`)
	testkit.Eventually(t, 20*time.Second, func() error {
		if got := textOn(t, onStandby, `SELECT count(*) FROM t`); got != "1" {
			return fmt.Errorf("the standby has %s rows", got)
		}
		return nil
	})
	if err := tryOn(t, onStandby, `SELECT * FROM incarnation`); err == nil {
		t.Error("a standby can read an unlogged table")
	}
	if err := tryOn(t, onStandby, `SELECT pg_walfile_name(pg_current_wal_lsn())`); err == nil {
		t.Error("a standby has a position in the log that it writes")
	}
	standby.Promote(t)
	if got := textOn(t, onStandby, `SELECT count(*), (SELECT count(*) FROM t) FROM incarnation`); got != "0 1" {
		t.Errorf("rows in the unlogged and in the logged table after promotion: %s, want 0 1", got)
	}
	after := textOn(t, onStandby, timelineSQL)
	was, is := strings.Fields(before), strings.Fields(after)
	if was[0] == is[0] {
		t.Errorf("the timeline is %s before and after promotion", is[0])
	}
	if was[1] != is[1] {
		t.Errorf("the system identifier went from %s to %s", was[1], is[1])
	}
	if got := d.text(t, timelineSQL); got != before {
		t.Errorf("the old primary went from %s to %s", before, got)
	}
}

func factBackendKilled(t *testing.T, pg *server, d *database, again func(restart bool)) {
	before := d.text(t, timelineSQL)
	victim := d.connect(t, "")
	pid, err := strconv.Atoi(textOn(t, victim, `SELECT pg_backend_pid()`))
	if err != nil {
		t.Fatal(err)
	}
	pg.KillBackend(t, pid)
	testkit.Eventually(t, 10*time.Second, func() error {
		if err := d.conn.Ping(t.Context()); err == nil {
			return fmt.Errorf("the other sessions survive")
		}
		return nil
	})
	again(false)
	if got := d.text(t, `SELECT count(*), (SELECT count(*) FROM t) FROM incarnation`); got != "0 1" {
		t.Errorf("rows in the unlogged and in the logged table after a backend was killed: %s, want 0 1", got)
	}
	// The timeline does not change, which is why there is the unlogged table.
	if got := d.text(t, timelineSQL); got != before {
		t.Errorf("timeline and system identifier went from %s to %s", before, got)
	}
}

func factAsyncCommitLost(t *testing.T, pg *server, d *database, again func(restart bool)) {
	// The WAL writer is stopped, so that commits with synchronous_commit off stay
	// in memory for longer than 0.2 s.
	d.exec(t, `ALTER SYSTEM SET wal_writer_delay = '10s'`, `SELECT pg_reload_conf()`)
	time.Sleep(300 * time.Millisecond) // it is in the old delay
	d.exec(t, `INSERT INTO incarnation VALUES (8)`, `INSERT INTO t VALUES (2)`)
	d.exec(t, `SET synchronous_commit = off`, `INSERT INTO t VALUES (3)`)
	if got := textOn(t, d.connect(t, ""), `SELECT count(*) FROM t`); got != "3" {
		t.Errorf("%s rows are visible to others before the crash, want 3", got)
	}
	pg.Crash(t)
	again(true)
	if got := d.text(t, `SELECT count(*), (SELECT count(*) FROM incarnation) FROM t`); got != "2 0" {
		t.Errorf("rows after a crash in the logged and the unlogged table: %s, want 2 0: the acknowledged third is lost, and the unlogged table says so", got)
	}
}
