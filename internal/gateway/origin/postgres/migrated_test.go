package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// migratedSchema has a table with a column of each kind of key type, which documents
// of another table are found by.
const migratedSchema = `
	CREATE TYPE mood AS ENUM ('sad', 'glad');
	CREATE DOMAIN moment AS timestamptz;
	CREATE TABLE doc (id int PRIMARY KEY, note text);
	CREATE TABLE link (id int PRIMARY KEY, note text, i int, n numeric, t text, d date, ts timestamp, tz moment, u uuid, raw bytea, m mood, b bool);
	CREATE TABLE part (id int, day date, note text, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
	CREATE TABLE part_all PARTITION OF part FOR VALUES FROM (MINVALUE) TO (MAXVALUE)`

const linkRow = `7, '1.50', 'x', '2020-01-02', '2020-01-02 03:04:05', '2020-01-02 03:04:05+00', '11111111-2222-3333-4444-555555555555', '\xc0de', 'sad', true`

// migratedResources has a resource for each column of link, and two more.
func migratedResources() []resource.Resource {
	list := []resource.Resource{
		{Name: "docs", Key: []string{"id"}, Root: resource.Node{Table: "doc"}},
		{Name: "parts", Key: []string{"id", "day"}, Root: resource.Node{Table: "part"}},
	}
	for _, column := range []struct{ name, typ string }{{"i", "bigint"}, {"n", "numeric"}, {"t", "text"}, {"d", "date"}, {"ts", "timestamp"},
		{"tz", "timestamptz"}, {"u", "uuid"}, {"raw", "bytea"}, {"m", "mood"}, {"b", "boolean"}} {
		list = append(list, resource.Resource{Name: column.name, Key: []string{"k"}, Query: &resource.Query{
			SQL: "SELECT k, json_build_object('k', k) FROM unnest($1) AS k", Key: []resource.QueryKey{{Name: "k", Type: column.typ}},
			Depends: []resource.Depend{{Table: "link", Columns: []string{column.name}}}}})
	}
	return list
}

// A migration of a recorded column fails no writer, in any session: the one that migrates, one
// that has used the triggers before, and one that has not. A change while the column is
// missing is recorded as a change of all documents.
func testMigrations(t *testing.T, pg *server) {
	d := pg.database(t, migratedSchema)
	d.apply(t, Config{}, migratedResources()...)
	d.exec(t, `INSERT INTO doc VALUES (1)`, `INSERT INTO link VALUES (1, '', `+linkRow+`)`, `INSERT INTO part VALUES (1, '2020-01-02')`)
	const unchanged = "b/1=true,d/1=2020-01-02,i/1=7,m/1=sad,n/1=1.5,raw/1=c0de,t/1=x,ts/1=2020-01-02T03:04:05.000000,tz/1=2020-01-02T03:04:05.000000Z,u/1=11111111-2222-3333-4444-555555555555"
	without := func(column, instead string) string {
		words := strings.Split(unchanged, ",")
		for i, word := range words {
			if strings.HasPrefix(word, column+"/1=") {
				words[i] = column + "/1=" + instead
			}
		}
		return strings.Join(words, ",")
	}
	used := d.connect(t, "")
	for _, tt := range []struct {
		migration string
		update    string // "" is that of link
		want      string
	}{
		{`ALTER TABLE link RENAME i TO other`, "", without("i", "*")},
		{`ALTER TABLE link DROP i`, "", without("i", "*")},
		{`ALTER TABLE link DROP note, ADD note text, DROP i, ADD i int DEFAULT 8`, "", without("i", "8")},
		{`ALTER TABLE link RENAME i TO other; ALTER TABLE link ADD i int DEFAULT 9`, "", without("i", "9")},
		{`ALTER TABLE link ALTER i TYPE bigint`, "", unchanged},
		{`ALTER TABLE link ALTER i TYPE numeric`, "", unchanged},
		{`ALTER TABLE link ALTER i TYPE json USING to_json(i)`, "", unchanged},
		{`ALTER TABLE link ALTER i TYPE point USING point(i, i)`, "", without("i", "(7,7)")},
		{`ALTER TABLE link ALTER n TYPE text USING 'none.00'`, "", without("n", "none")},
		{`ALTER TABLE link RENAME n TO other`, "", without("n", "*")},
		{`ALTER TABLE link ALTER t TYPE jsonb USING to_jsonb(t)`, "", without("t", `"x"`)},
		{`ALTER TABLE link RENAME t TO other`, "", without("t", "*")},
		{`ALTER TABLE link ALTER d TYPE text USING 'none'`, "", without("d", "none")},
		{`ALTER TABLE link ALTER d TYPE timestamp`, "", without("d", "2020-01-02T00:00:00")},
		{`ALTER TABLE link RENAME d TO other`, "", without("d", "*")},
		{`ALTER TABLE link ALTER ts TYPE text USING 'none'`, "", without("ts", "none")},
		{`ALTER TABLE link ALTER ts TYPE int[] USING '{}'`, "", without("ts", "{}")},
		{`ALTER TABLE link RENAME ts TO other`, "", without("ts", "*")},
		{`ALTER TABLE link ALTER tz TYPE text USING 'none'`, "", without("tz", "none")},
		{`ALTER TABLE link DROP tz`, "", without("tz", "*")},
		{`ALTER TABLE link ALTER u TYPE text USING 'none'`, "", without("u", "none")},
		{`ALTER TABLE link ALTER raw TYPE text USING E'\\z'`, "", without("raw", `\z`)},
		{`ALTER TABLE link RENAME raw TO other`, "", without("raw", "*")},
		{`ALTER TABLE link ALTER m TYPE int USING 3`, "", without("m", "3")},
		{`ALTER TABLE link ALTER b TYPE text USING 'none'`, "", without("b", "none")},
		{`ALTER TABLE doc RENAME id TO other`, `UPDATE doc SET note = 'x'`, "docs=*"},
		{`ALTER TABLE doc ALTER id TYPE text`, `UPDATE doc SET note = 'x'`, "docs=1"},
		{`ALTER TABLE part RENAME id TO other`, `UPDATE part SET note = 'x'`, "parts=*,parts=*"},
		{`ALTER TABLE part RENAME day TO other`, `UPDATE part SET note = 'x'`, "parts=*,parts=*"},
		{`ALTER TABLE part DROP id`, `UPDATE part SET note = 'x'`, "parts=*,parts=*"},
		{`ALTER TABLE part RENAME id TO other`, `UPDATE part_all SET note = 'x'`, "parts=*,parts=*"},
	} {
		if tt.update == "" {
			tt.update = `UPDATE link SET note = 'x'`
		}
		execOn(t, used, tt.update, "BEGIN", tt.migration)
		d.expectRecorded(t, used, tt.migration, tt.update, tt.want)
		execOn(t, used, "ROLLBACK")
	}
	d.expectRecorded(t, used, "rolled back", `UPDATE link SET note = 'x'`, unchanged)
	d.exec(t, `ALTER TABLE link RENAME i TO other; ALTER TABLE doc RENAME id TO other`)
	for what, conn := range map[string]*pgx.Conn{"a session that used the triggers before": used, "another session": d.connect(t, "")} {
		d.expectRecorded(t, conn, what, `UPDATE link SET note = 'x'`, without("i", "*"))
		d.expectRecorded(t, conn, what, `INSERT INTO link VALUES (2, '', `+linkRow+`)`, without("i", "*"))
		d.expectRecorded(t, conn, what, `DELETE FROM link WHERE id = 2`, without("i", "*"))
		d.expectRecorded(t, conn, what, `UPDATE doc SET note = 'x'`, "docs=*")
		d.expectRecorded(t, conn, what, `INSERT INTO doc VALUES (3)`, "docs=*")
		d.expectRecorded(t, conn, what, `DELETE FROM doc WHERE other = 3`, "docs=*")
	}
}

// expectRecorded runs a statement in a session and compares what that session sees in the
// change table.
func (d *database) expectRecorded(t *testing.T, conn *pgx.Conn, what, statement, want string) {
	t.Helper()
	execOn(t, conn, `DELETE FROM slipstream.change`)
	if err := tryOn(t, conn, statement); err != nil {
		t.Errorf("%s: the writer fails: %v", what, err)
		return
	}
	if got := textOn(t, conn, recordedSQL); got != want {
		t.Errorf("%s: recorded %q, want %q", what, got, want)
	}
}

// A statement uses no transaction ID except the transaction's own: more than 64 of them in
// one transaction would cost every reader of the server.
func testNoSubtransactions(t *testing.T, pg *server) {
	d := pg.database(t, deptSchema)
	d.apply(t, Config{}, deptResource())
	const owned = `SELECT count(*) > 100, bool_and(xmin::text = (xid::text::numeric % 4294967296)::text) FROM slipstream.change WHERE source <> 'slipstream'`
	for _, migration := range []string{"", `ALTER TABLE emp RENAME deptno TO department`} {
		d.exec(t, `DELETE FROM slipstream.change`)
		if migration != "" {
			d.exec(t, migration)
		}
		d.exec(t, strings.Repeat(`UPDATE emp SET ename = 'x' WHERE empno = 1; UPDATE dept SET dname = 'x' WHERE deptno = 10;`, 60))
		if got := d.text(t, owned); got != "t t" {
			t.Errorf("%s: enough rows, all of them of the transaction itself: %s", migration, got)
		}
	}
}

// A migration under a writer and a stream: no statement of the writer fails, and no
// document stays as it was before.
func TestMigrationUnderWriters(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	s.run()
	s.expect("*")
	ctx, cancel := context.WithCancel(t.Context())
	writer := connect(t, s.url)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var failed error
	written := make(chan struct{}, 1)
	wg.Go(func() { // ends when ctx is canceled, or with the first error; waited for at the end
		defer close(written)
		for n := 0; ctx.Err() == nil; n++ {
			if _, err := writer.Exec(context.WithoutCancel(ctx), "UPDATE emp SET ename = $1 WHERE empno = 1", fmt.Sprint(n)); err != nil {
				failed = fmt.Errorf("statement %d: %w", n, err)
				return
			}
			select {
			case written <- struct{}{}:
			default:
			}
		}
	})
	wait := func() { // until at least one statement has begun and ended since the call
		t.Helper()
		for range 3 {
			select {
			case _, writing := <-written:
				if !writing {
					t.Fatalf("the writer fails: %v", failed)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("the writer is stuck")
			}
		}
	}
	promised := func(want bool) {
		t.Helper()
		testkit.Eventually(t, 30*time.Second, func() error {
			if why := s.sink.promise(); (why == "") != want {
				return fmt.Errorf("promise %q, want it kept: %t", why, want)
			}
			return nil
		})
	}
	for _, migration := range []struct{ do, undo string }{
		{"ALTER TABLE emp RENAME COLUMN deptno TO department", "ALTER TABLE emp RENAME COLUMN department TO deptno"},
		{"ALTER TABLE emp DROP COLUMN deptno", "ALTER TABLE emp ADD COLUMN deptno bigint REFERENCES dept; UPDATE emp SET deptno = (empno - 1) / 5 + 1"},
		{"ALTER TABLE emp DROP CONSTRAINT emp_deptno_fkey, ALTER deptno TYPE json USING to_json(deptno)", "ALTER TABLE emp ALTER deptno TYPE bigint USING deptno::text::bigint"},
	} {
		wait()
		s.exec(migration.do)
		promised(false) // nothing is served from the cache
		wait()
		s.sink.forget()
		s.exec(migration.undo)
		promised(true)
		if ids := s.sink.ids(); !strings.Contains(ids, "*") {
			t.Errorf("%s: the previous documents are kept; events %q", migration.do, ids)
		}
		wait()
		s.exec("UPDATE emp SET ename = 'last' WHERE empno = 10")
		testkit.Eventually(t, 30*time.Second, func() error {
			if ids := s.sink.ids(); !strings.Contains(" "+ids+" ", " 2 ") {
				return fmt.Errorf("after %s the stream reports %.200q", migration.undo, ids)
			}
			return nil
		})
	}
	wait()
}
