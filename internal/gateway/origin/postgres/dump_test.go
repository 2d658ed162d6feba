package postgres

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// A pg_dump that takes hours, here because its output is not read, keeps its snapshot and its
// locks on all tables. Writers, the stream, trimming and db check continue meanwhile; in the
// end it writes the record, floor and rows, as of its beginning.
func TestTrimBesidePgDump(t *testing.T) {
	t.Setenv("SLIPSTREAM_POSTGRES", "") // pg_dump refuses a newer server; that of the system matches the system's server
	server := startServer(t, "autovacuum=off")
	s := streamedOn(t, server.database(t, streamedSchema))
	d := &database{conn: s.db, url: s.url}
	s.apply()
	s.exec("SET lock_timeout = '5s'")
	s.exec("DELETE FROM slipstream.change")                                                          // what apply wrote is young
	s.exec("CREATE TABLE bulk AS SELECT repeat('x', 1000) AS filler FROM generate_series(1, 20000)") // sorts before slipstream
	record(t, s.db, 200, 10, "2 hours")
	s.run()
	s.retained() // its own trim keeps one day
	s.advance()
	s.sink.forget()
	const kept = "SELECT (SELECT complete_from FROM slipstream.meta), (SELECT count(*) FROM slipstream.change WHERE source LIKE 'another@%')"
	before := d.text(t, kept)

	dump := server.Dump(t, s.db.Config().Database)
	output, err := dump.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var messages strings.Builder
	dump.Stderr = &messages
	if err := dump.Start(); err != nil {
		t.Fatal(err)
	}
	const stuck = "SELECT pid FROM pg_stat_activity WHERE application_name = 'pg_dump' AND query LIKE 'COPY public.bulk %' AND wait_event = 'ClientWrite'"
	testkit.Eventually(t, 20*time.Second, func() error {
		if d.text(t, stuck) == "" {
			return fmt.Errorf("pg_dump does not wait in its COPY: %q", d.text(t, "SELECT pid, wait_event, query FROM pg_stat_activity WHERE application_name = 'pg_dump'"))
		}
		return nil
	})
	pid := d.text(t, stuck)

	s.exec("UPDATE dept SET dname = 'beside the dump' WHERE deptno = 7")
	s.expect("7")
	d.settled(t)
	if n := d.trimAll(t, "1 hour", 1<<30); n != 2000 {
		t.Errorf("trimmed %d rows during the dump, want all 2,000", n)
	}
	s.exec("UPDATE dept SET dname = 'after the trim' WHERE deptno = 8")
	s.expect("8")
	if got := states(t, s.origin); len(got) > 0 {
		t.Errorf("findings of a check during the dump: %v", got)
	}
	holders, err := readHolders(t.Context(), s.db)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(holders, func(h origin.Holder) bool { return fmt.Sprint(h.PID) == pid && !h.Deletes }) {
		t.Errorf("held by %v, want pid %s among them, holding only vacuum", holders, pid) // a poll may be another
	}
	if d.text(t, stuck) != pid {
		t.Error("the dump does not wait anymore, so this tests nothing")
	}

	floor, rows := dumped(t, output)
	if err := dump.Wait(); err != nil {
		t.Fatalf("pg_dump: %v\n%s", err, messages.String())
	}
	if got := fmt.Sprint(floor, " ", rows); got != before {
		t.Errorf("the dump has floor and rows %s, want those of its beginning, %s", got, before)
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		if d.text(t, "SELECT count(*) FROM pg_stat_activity WHERE pid = "+pid) == "0" {
			return nil
		}
		return fmt.Errorf("the session of pg_dump has not ended")
	})
	const size = "SELECT pg_relation_size('slipstream.change')"
	full := d.text(t, size)
	s.exec("VACUUM slipstream.change")
	record(t, s.db, 150, 10, "0 hours")
	if now := d.text(t, size); now != full {
		t.Errorf("the table takes %s bytes, %s before: the space of the trimmed rows is not reused", now, full)
	}
	s.exec("UPDATE dept SET dname = 'after the dump' WHERE deptno = 9")
	s.expect("9")
	if got := s.sink.voided(); len(got) > 0 {
		t.Errorf("voided: %q", got)
	}
}

// dumped reads the output of pg_dump and returns the floor in it, and the number of rows made by
// record.
func dumped(t *testing.T, output io.Reader) (floor string, rows int) {
	t.Helper()
	lines := bufio.NewScanner(output)
	table := ""
	for lines.Scan() {
		line := lines.Text()
		switch fields := strings.Split(line, "\t"); {
		case strings.HasPrefix(line, "COPY "):
			table = strings.Fields(line)[1]
		case line == `\.`:
			table = ""
		case table == "slipstream.meta":
			floor = fields[2]
		case table == "slipstream.change" && strings.HasPrefix(fields[2], "another@"):
			rows++
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return floor, rows
}
