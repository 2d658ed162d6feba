package postgres

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// voidedFor waits until the stream has broken with the history for a reason.
func (s *streamed) voidedFor(reason string) {
	s.Helper()
	testkit.Eventually(s.T, 20*time.Second, func() error {
		if got := s.sink.voided(); len(got) == 0 || !strings.Contains(got[len(got)-1], reason) {
			return fmt.Errorf("voided for %q, want %q", got, reason)
		}
		return nil
	})
}

func TestParseWitness(t *testing.T) {
	for text, want := range map[string]cache.Witness{"": {}, "7@1732374000000001": {Tx: 7, Nonce: 1732374000000001}} {
		if got, err := parseWitness(text); err != nil || got != want {
			t.Errorf("parseWitness(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"7", "@", "7@", "@1", "-7@1", "7@x", "7@1@2"} {
		if got, err := parseWitness(text); err == nil {
			t.Errorf("parseWitness(%q) = %v, want an error", text, got)
		}
	}
}

// The witness outlives trimming: while nothing changes, nothing is flushed.
func TestIdleDatabaseKeepsItsDocumentsOverTrimming(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	s.exec("UPDATE slipstream.change SET at = at - interval '1 day'") // rows that db apply writes
	s.run()
	s.expect("*")
	for _, dept := range []string{"3", "4"} { // recorded a day ago
		execOn(t, s.db, "BEGIN; UPDATE dept SET dname = 'x' WHERE deptno = "+dept+
			"; UPDATE slipstream.change SET at = at - interval '1 day' WHERE xid = pg_current_xact_id(); COMMIT")
	}
	s.expect("3", "4")
	for range 2 {
		s.exec("SELECT " + trimCall + "('1 minute', 1073741824, 1000)")
		s.expect() // no flush
		s.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'slipstream' AND datname = current_database()")
		s.expect() // and none by a survey
	}
	if got := textOn(t, s.db, "SELECT count(*), bool_and(xid >= (SELECT complete_from FROM slipstream.meta)) FROM slipstream.change"); got != "1 t" {
		t.Errorf("rows left, and whether the floor is not above them: %s; want 1 t: the newest", got)
	}
	if got := s.sink.voided(); len(got) > 0 {
		t.Errorf("voided: %q", got)
	}
}

// Rows that someone deletes from the change table by hand may not have been read yet,
// and nothing else reveals that.
func TestDeletedChangesAreAnotherHistory(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	s.run()
	s.expect("*")
	s.exec("UPDATE dept SET dname = 'x' WHERE deptno = 3")
	s.expect("3")
	s.exec("DELETE FROM slipstream.change")
	s.voidedFor("newest change")
	s.expect("*")
}

// A cluster that was shut down cleanly and then replaced by an earlier copy of itself
// has the same timeline and incarnation, and assigns the same transaction IDs again.
func TestRollbackOfAStoppedClusterIsNoticed(t *testing.T) {
	testkit.NoLeaks(t)
	server := startServer(t)
	d := server.database(t, streamedSchema)
	d.apply(t, Config{}, streamedResource())
	d.exec(t, "UPDATE dept SET dname = 'before' WHERE deptno = 1")
	again := func() {
		t.Helper()
		server.Restart(t)
		d.conn = d.connect(t, "")
	}
	run := func(program string, args ...string) {
		t.Helper()
		if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v %s", program, args, err, out)
		}
	}
	d.live(t, cache.Position{}).end() // which gives the history its incarnation
	data := filepath.Join(server.SocketDir, "data")
	server.Stop(t)
	run("cp", "-a", data, data+".kept")
	again()
	first := d.live(t, cache.Position{})
	d.exec(t, "UPDATE dept SET dname = 'lost' WHERE deptno = 2")
	first.advance()
	p := first.end()
	server.Stop(t)
	run("rm", "-rf", data)
	run("mv", data+".kept", data)
	again()
	testkit.Eventually(t, 20*time.Second, func() error {
		d.exec(t, "UPDATE dept SET dname = 'another' WHERE deptno = 3")
		if got := d.text(t, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint >= "+fmt.Sprint(p.Seen.XMax)); got != "t" {
			return fmt.Errorf("transaction numbers are below %d", p.Seen.XMax)
		}
		return nil
	})
	second := d.live(t, p)
	if _, discarded := second.storing.vouched(t); !discarded {
		t.Errorf("the documents of a history that was rolled back are kept; dropped %q", second.dropped())
	}
	if got := second.dropped(); got != "*" {
		t.Errorf("dropped %q, want everything", got)
	}
	second.end()
}

// With a pooler, the connection of the stream outlives the database that it leads to.
func TestCopyRenamedIntoPlaceBehindAPoolerIsNoticed(t *testing.T) {
	testkit.NoLeaks(t)
	server := startServer(t)
	bouncer := testkit.StartPgBouncer(t, server.Postgres, "admin_users=postgres")
	d := server.database(t, streamedSchema)
	d.apply(t, Config{}, streamedResource())
	// A template must have no sessions but those of the pooler, which it pauses.
	server.PSQL(t, fmt.Sprintf("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '%s'", d.name))
	admin := &database{url: strings.Replace(bouncer.URL, "/postgres?", "/pgbouncer?default_query_exec_mode=simple_protocol&", 1)}
	admin.conn = admin.connect(t, "")
	// swapped runs statements while no session uses the database.
	swapped := func(statements ...string) {
		t.Helper()
		admin.exec(t, "PAUSE "+d.name)
		for _, sql := range statements {
			server.PSQL(t, sql)
		}
		admin.exec(t, "RESUME "+d.name)
	}
	began := time.Now()
	clock := func() time.Duration { return time.Since(began) }
	through := strings.Replace(bouncer.URL, "/postgres?", "/"+d.name+"?", 1)
	s := &streamed{T: t, url: through, sink: &recorder{clock: clock, promises: map[cache.ResourceID]string{}}}
	s.origin = openOrigin(t, Config{URL: through}, streamedResource())
	s.runInto(clock, s.sink)
	s.db = s.dial(t.Context())
	s.expect("*")
	swapped("CREATE DATABASE copied TEMPLATE " + d.name)
	if _, err := s.db.PgConn().Exec(t.Context(), "UPDATE dept SET dname = 'x' WHERE deptno = 3").ReadAll(); err != nil {
		t.Fatal(err)
	}
	s.expect("3")
	swapped("ALTER DATABASE "+d.name+" RENAME TO old", "ALTER DATABASE copied RENAME TO "+d.name)
	s.voidedFor("another database")
	s.expect("*")
}

// Every poll looks for the witness. The number of rows that its transaction recorded
// must not matter.
func TestWitnessIsFoundAtOnceInALargeTransaction(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	large := func() {
		s.exec("INSERT INTO slipstream.change (source, key) SELECT 'another', i::text FROM generate_series(1, 20000) AS i")
		s.exec("ANALYZE slipstream.change")
	}
	probe := func(seen string) {
		t.Helper()
		s.stop()
		arguments := witnessArguments(s.stream.witness)
		sql := strings.NewReplacer("$3", quoteText(arguments[0].(string)), "$4", quoteText(arguments[1].(string))).Replace(witnessExists)
		s.exec("SET plan_cache_mode = force_generic_plan")
		plan := textOn(t, s.db, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT "+sql)
		if strings.Contains(plan, "Rows Removed by Filter") || !strings.Contains(plan, "change_xid") {
			t.Errorf("the witness of %s: %s; want it found through the index", seen, plan)
		}
	}
	large()
	s.run() // a survey reads the newest row
	probe("a survey")
	s.run()
	large()
	s.expect("*") // a poll does
	probe("a poll")
}
