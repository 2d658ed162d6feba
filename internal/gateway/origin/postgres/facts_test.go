package postgres

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// TestFacts reproduces the behavior of PostgreSQL that the design relies on, one
// test per claim: here the behavior of snapshots. See firing_test.go for
// triggers and durability_test.go for durability.
func TestFacts(t *testing.T) {
	pg := startServer(t, "max_prepared_transactions=10")
	for _, fact := range []struct {
		claim string
		run   func(*testing.T, *server)
	}{
		{"pg_current_snapshot in READ COMMITTED is the snapshot of the statement's data", factStatementSnapshot},
		{"xid >= xmax OR xid = ANY(xip) is exactly what became visible", factBecameVisible},
		{"a poll reads exactly what became visible since the last one", factPollReads},
		{"a trigger's own look at the parent misses a concurrent move", factTriggerSeesOldParent},
		{"PREPARE TRANSACTION fails after NOTIFY", factPrepareAfterNotify},
		{"a statement-level trigger fires only for its own table, with the rows of all partitions", factPartitions},
		{"an UPDATE of an inheritance parent fires the parent's triggers, with the children's rows", factInheritance},
		{"COPY, MERGE, upsert, writable CTE: what fires, with which rows", factStatements},
		{"cascades fire the triggers of the tables that they reach", factCascades},
		{"TRUNCATE fires on all that it empties, and on the partitions", factTruncate},
		{"session_replication_role = replica passes by all but ENABLE ALWAYS", factReplicaRole},
		{"ALTER TYPE USING rewrites rows and fires nothing", factRewrite},
		{"ATTACH and DETACH PARTITION of filled tables fire nothing", factAttach},
		{"DISABLE and ENABLE TRIGGER change pg_trigger.xmin", factTriggerXmin},
		{"a transition table goes before a temporary table of its name", factTransitionTableFirst},
		{"CREATE TRIGGER waits for writers and holds them up", factCreateTriggerLocks},
		{"vacuum and freezing keep xmin", factFreeze},
	} {
		t.Run(fact.claim, func(t *testing.T) {
			t.Parallel()
			fact.run(t, pg)
		})
	}
}

func factStatementSnapshot(t *testing.T, pg *server) {
	d := pg.database(t, `CREATE TABLE counter (n int, x xid8); INSERT INTO counter VALUES (0, pg_current_xact_id())`)
	order := []string{d.text(t, `SELECT x FROM counter`)} // numbers of writers in the order of their commits
	writer := d.connect(t, "")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // ends when stop is closed; waited for below
		for {
			select {
			case <-stop:
				return
			default:
			}
			order = append(order, textOn(t, writer, `UPDATE counter SET n = n + 1, x = pg_current_xact_id() RETURNING x`))
		}
	})
	type read struct{ seen, snapshot string }
	var reads []read
	for range 300 {
		// The snapshot is queried long before and after the row is read.
		got := strings.Fields(d.text(t, `SELECT x, s, pg_current_snapshot() FROM (SELECT pg_current_snapshot() AS s, pg_sleep(0.002)) AS s, counter`))
		if got[1] != got[2] {
			t.Fatalf("one statement has the snapshots %s and %s", got[1], got[2])
		}
		reads = append(reads, read{got[0], got[1]})
	}
	close(stop)
	wg.Wait()
	changed := 0
	for _, r := range reads {
		at := slices.Index(order, r.seen)
		sees := func(i int) bool {
			return d.text(t, fmt.Sprintf(`SELECT pg_visible_in_snapshot('%s', '%s')`, order[i], r.snapshot)) == "t"
		}
		if !sees(at) {
			t.Errorf("row of transaction %s in snapshot %s, which does not see it", r.seen, r.snapshot)
		}
		if at+1 < len(order) {
			changed++
			if sees(at + 1) {
				t.Errorf("snapshot %s sees transaction %s, but the row is of %s before it", r.snapshot, order[at+1], r.seen)
			}
		}
	}
	if changed < len(reads)/2 {
		t.Errorf("only %d of %d reads were followed by a write", changed, len(reads))
	}
}

// openTransaction is a session of randomTransactions.
type openTransaction struct {
	conn *pgx.Conn
	open bool
}

func factBecameVisible(t *testing.T, pg *server) {
	d := pg.database(t, `CREATE TABLE change (id bigserial, xid xid8 NOT NULL DEFAULT pg_current_xact_id())`)
	last := d.text(t, `SELECT pg_current_snapshot()`)
	known := make(map[string]bool)
	outOfOrder := 0
	poll := func() {
		t.Helper()
		parts := strings.Split(last, ":")
		running := "'{" + parts[2] + "}'::xid8[]"
		got := d.text(t, fmt.Sprintf(`SELECT pg_current_snapshot(), string_agg(id::text, '+' ORDER BY id),
			string_agg(id::text, '+' ORDER BY id) FILTER (WHERE xid >= '%[1]s' OR xid = ANY (%[2]s)),
			count(*) FILTER (WHERE xid < '%[1]s' AND xid = ANY (%[2]s)) FROM change`, parts[1], running))
		fields := strings.Split(got, " ")
		var became []string
		for id := range strings.SplitSeq(fields[1], "+") {
			if id != "" && !known[id] {
				known[id] = true
				became = append(became, id)
			}
		}
		if rule := fields[2]; rule != strings.Join(became, "+") {
			t.Fatalf("since %s: the rule finds %s, visible became %v", last, rule, became)
		}
		late, _ := strconv.Atoi(fields[3]) // of count(*)
		outOfOrder += late
		last = fields[0]
	}
	randomTransactions(t, d, `INSERT INTO change DEFAULT VALUES`, poll)
	if len(known) < 50 || outOfOrder < 20 {
		t.Errorf("%d rows, %d of them below the xmax of the snapshot that did not see them: too little happened", len(known), outOfOrder)
	}
}

// randomTransactions has six sessions insert rows in transactions that overlap, with savepoints,
// rollbacks and prepared transactions, next to one that stays open to the end, and calls poll in
// between.
func randomTransactions(t *testing.T, d *database, insert string, poll func()) {
	random := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	long := d.connect(t, "")
	execOn(t, long, `BEGIN; `+insert)
	sessions := make([]openTransaction, 6)
	for i := range sessions {
		sessions[i].conn = d.connect(t, "")
	}
	prepared := 0
	var waiting []string // prepared transactions
	for range 600 {
		s := &sessions[random.IntN(len(sessions))]
		switch action := random.IntN(10); {
		case !s.open:
			execOn(t, s.conn, `BEGIN; `+insert)
			s.open = true
		case action < 3:
			execOn(t, s.conn, insert)
		case action < 5:
			execOn(t, s.conn, `SAVEPOINT s; `+insert+`; `+[]string{`RELEASE s`, `ROLLBACK TO s`, `SAVEPOINT s2; ` + insert}[random.IntN(3)])
		case action == 5 && len(waiting) < 5:
			prepared++
			name := fmt.Sprintf("%s %d", d.name, prepared)
			execOn(t, s.conn, fmt.Sprintf(`PREPARE TRANSACTION '%s'`, name))
			waiting, s.open = append(waiting, name), false
		case action == 6 && len(waiting) > 0:
			i := random.IntN(len(waiting))
			d.exec(t, []string{`COMMIT`, `ROLLBACK`}[random.IntN(2)]+fmt.Sprintf(` PREPARED '%s'`, waiting[i]))
			waiting = slices.Delete(waiting, i, i+1)
		default:
			execOn(t, s.conn, []string{`COMMIT`, `COMMIT`, `ROLLBACK`}[random.IntN(3)])
			s.open = false
		}
		if random.IntN(3) > 0 {
			poll()
		}
	}
	for _, name := range waiting {
		d.exec(t, fmt.Sprintf(`COMMIT PREPARED '%s'`, name))
	}
	execOn(t, long, `COMMIT`)
	poll()
}

// factPollReads: the polls read each row once, and no other rows.
func factPollReads(t *testing.T, pg *server) {
	d := pg.database(t, streamedSchema+"; CREATE SEQUENCE number")
	o := openOrigin(t, Config{URL: d.url}, streamedResource())
	if _, err := o.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	last := cache.Snapshot{XMin: 3, XMax: 3}
	known := make(map[string]bool)
	ranges := 0 // polls with a gap between transactions in progress
	poll := func() {
		t.Helper()
		rows, err := d.conn.Query(t.Context(), "SELECT s.*, v.visible FROM ("+changesStatement(false)+") AS s CROSS JOIN (SELECT string_agg(key, '+' ORDER BY key) AS visible FROM slipstream.change WHERE source = 'x') AS v",
			append(changesArguments(last, cache.Witness{}), []string{"x"})...)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var got, became []string
		for first := true; rows.Next(); first = false {
			values := rows.RawValues()
			if !first {
				got = append(got, string(values[columnKey]))
				continue
			}
			head, err := parsePollHead(values[:columns])
			if err != nil {
				t.Fatal(err)
			}
			if s := head.snapshot; len(s.InProgress) > 0 && s.InProgress[len(s.InProgress)-1] > last.XMax {
				ranges++
			}
			last = head.snapshot
			for key := range strings.SplitSeq(string(values[columns]), "+") {
				if key != "" && !known[key] {
					known[key] = true
					became = append(became, key)
				}
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		if !slices.Equal(got, became) {
			t.Fatalf("the poll read %v, visible became %v", got, became)
		}
	}
	randomTransactions(t, d, `INSERT INTO slipstream.change (source, key) VALUES ('x', nextval('number'))`, poll)
	if len(known) < 50 || ranges < 20 {
		t.Errorf("%d rows, %d polls with transactions in progress that began since the last one: too little happened", len(known), ranges)
	}
}

// factTriggerSeesOldParent is why triggers record links and the stream derives:
// a trigger that looks its row's root up finds the previous root.
func factTriggerSeesOldParent(t *testing.T, pg *server) {
	for _, isolation := range []string{"READ COMMITTED", "REPEATABLE READ"} {
		d := pg.database(t, `
			CREATE TABLE orders (id int PRIMARY KEY, customer int);
			CREATE TABLE line (id int PRIMARY KEY, order_id int REFERENCES orders);
			CREATE TABLE told (customer int);
			INSERT INTO orders VALUES (1, 10);
			CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				INSERT INTO told SELECT o.customer FROM orders o JOIN new_rows r ON r.order_id = o.id; RETURN NULL; END $$;
			CREATE TRIGGER tell AFTER INSERT ON line REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION tell()`)
		mover, inserter := d.connect(t, ""), d.connect(t, "")
		execOn(t, mover, `BEGIN ISOLATION LEVEL `+isolation+`; UPDATE orders SET customer = 20 WHERE id = 1`)
		execOn(t, inserter, `BEGIN ISOLATION LEVEL `+isolation+`; INSERT INTO line VALUES (7, 1)`)
		execOn(t, mover, `COMMIT`)
		execOn(t, inserter, `COMMIT`)
		if got := d.text(t, `SELECT customer FROM told`); got != "10" {
			t.Errorf("%s: the trigger recorded customer %s, expected the old one", isolation, got)
		}
		if got := d.text(t, `SELECT o.customer FROM line l JOIN orders o ON o.id = l.order_id`); got != "20" {
			t.Errorf("%s: the line is customer %s's", isolation, got)
		}
	}
}

func factPrepareAfterNotify(t *testing.T, pg *server) {
	d := pg.database(t)
	d.exec(t, `BEGIN; SELECT pg_current_xact_id()`, fmt.Sprintf(`PREPARE TRANSACTION 'quiet %s'`, d.name), fmt.Sprintf(`ROLLBACK PREPARED 'quiet %s'`, d.name))
	d.exec(t, `BEGIN; SELECT pg_notify('slipstream', '')`)
	err := tryOn(t, d.conn, fmt.Sprintf(`PREPARE TRANSACTION 'loud %s'`, d.name))
	if err == nil || !strings.Contains(err.Error(), "NOTIFY") {
		t.Errorf("PREPARE TRANSACTION after NOTIFY: %v", err)
	}
}

func factCreateTriggerLocks(t *testing.T, pg *server) {
	d := pg.database(t, `CREATE TABLE t (id int); CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`)
	writer := d.connect(t, "")
	execOn(t, writer, `BEGIN; INSERT INTO t VALUES (1)`)
	const create = `CREATE TRIGGER f AFTER INSERT ON t EXECUTE FUNCTION f()`
	if err := tryOn(t, d.conn, `SET lock_timeout = '50ms'; `+create); err == nil {
		t.Error("CREATE TRIGGER did not wait for a transaction that had written")
	}
	execOn(t, writer, `COMMIT`)
	d.exec(t, `BEGIN; `+create)
	if err := tryOn(t, writer, `SET lock_timeout = '50ms'; INSERT INTO t VALUES (2)`); err == nil {
		t.Error("a writer did not wait for CREATE TRIGGER")
	}
	execOn(t, writer, `SELECT * FROM t`) // readers do not
	d.exec(t, `ROLLBACK`)
}

func factFreeze(t *testing.T, pg *server) {
	d := pg.database(t, `CREATE TABLE t (id int); CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
		CREATE TRIGGER f AFTER INSERT ON t EXECUTE FUNCTION f()`)
	const digest = `SELECT (SELECT xmin FROM pg_trigger WHERE tgname = 'f'), (SELECT xmin FROM pg_class WHERE relname = 't'), (SELECT xmin FROM pg_proc WHERE proname = 'f')`
	before := d.text(t, digest)
	d.exec(t, `VACUUM FREEZE pg_trigger`, `VACUUM FREEZE pg_proc`)
	if after := d.text(t, digest); after != before {
		t.Errorf("xmin of catalog rows was %s, and is %s after freezing", before, after)
	}
}
