//go:build unix

package freshness

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
	"github.com/slipstream-go/slipstream/internal/testkit/freshness"
)

// This file contains the faults that change tables and triggers. Faults that change rows of a whole
// table lock the table exclusively.

var pgSchemaFaults = []pgFault{
	{"truncate", (*pgRun).truncateParents},
	{"alter-type-using", (*pgRun).alterType},
	{"add-column-default", (*pgRun).addColumn},
	{"trigger-disabled", (*pgRun).disableTriggers},
	{"trigger-not-always", (*pgRun).enableForOrigin},
	{"partition-detached", (*pgRun).detachPartition},
	{"changes-trimmed", (*pgRun).trimChanges},
	{"objects-dropped", (*pgRun).dropObjects},
	{"apply-concurrently", (*pgRun).applyConcurrently},
}

// alone plans an exclusive write of whole tables, parents before children.
func (r *pgRun) alone(tables ...*pgTable) *pgWrite {
	p := &pgWrite{world: r.world}
	for _, table := range tables {
		table.mu.Lock()
		p.release = append(p.release, table.mu.Unlock)
	}
	return p
}

// script runs statements as one transaction that is known to the model.
func (r *pgRun) script(p *pgWrite, sql ...string) {
	r.t.Helper()
	r.world.gate.RLock()
	defer r.world.gate.RUnlock()
	p.begin()
	c, err := r.dial(r.t.Context())
	if err == nil {
		defer c.Close(r.t.Context())
		// The gateway reads the same tables, so there may be deadlocks, whose victim has changed
		// nothing.
		for deadlocked := true; deadlocked; {
			_, err = c.PgConn().Exec(r.t.Context(), strings.Join(sql, ";\n")).ReadAll()
			e, ok := errors.AsType[*pgconn.PgError](err)
			deadlocked = ok && e.Code == "40P01"
		}
	}
	if !p.end(err) {
		r.t.Errorf("%s: %v", strings.Join(sql, "; "), err)
	}
}

// ddl runs a statement that changes no rows of documents and locks many tables, while the writers
// are between two writes; otherwise it would be the victim of one deadlock after another.
func (r *pgRun) ddl(sql string) {
	r.t.Helper()
	r.world.gate.Lock()
	defer r.world.gate.Unlock()
	c, err := r.dial(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close(r.t.Context())
	// The gateway reads the same tables.
	testkit.Eventually(r.t, 10*time.Second, func() error {
		_, err := c.PgConn().Exec(r.t.Context(), sql).ReadAll()
		return err
	})
}

// truncateParents truncates tables together with those that reference them.
func (r *pgRun) truncateParents() {
	w := r.world
	for range blackbox.Rounds(1, 2) {
		p := r.alone(w.dept, w.emp)
		for _, table := range []*pgTable{w.dept, w.emp} {
			for _, row := range table.rows {
				if row.parent.Load() != nil {
					p.gone(row)
				}
			}
		}
		r.script(p, "TRUNCATE dept CASCADE")
		r.lull()
	}
}

// alterType rewrites a table and changes every row of it; no trigger fires.
func (r *pgRun) alterType() {
	w := r.world
	w.retyped.Store(true)
	for i, table := range []*pgTable{w.emp, w.line, w.entry, w.emp} {
		p := r.alone(table)
		step := uint64(1_000_000)
		w.version.Add(2 * step) // above all current versions, and above all that are being assigned
		versions := r.versionsOf(table)
		for _, row := range table.rows {
			if row.parent.Load() != nil {
				p.puts(row, row.parent.Load(), versions[row.id]+step)
			}
		}
		typ := []string{"numeric", "numeric", "bigint", "bigint"}[i]
		r.script(p, fmt.Sprintf("ALTER TABLE %s ALTER COLUMN v TYPE %s USING v + %d", table.name, typ, step))
		r.lull()
	}
}

// versionsOf queries the database: the writers do not keep versions.
func (r *pgRun) versionsOf(table *pgTable) map[int]uint64 {
	r.t.Helper()
	versions := make(map[int]uint64)
	for line := range strings.FieldsSeq(r.query(fmt.Sprintf("SELECT %s, v FROM %s", table.id, table.name))) {
		var id int
		var version uint64
		if _, err := fmt.Sscanf(line, "%d|%d", &id, &version); err != nil {
			r.t.Fatalf("version in %s: %q: %v", table.name, line, err)
		}
		versions[id] = version
	}
	return versions
}

// addColumn changes every document of a table without writing a row.
func (r *pgRun) addColumn() {
	for range blackbox.Rounds(1, 3) {
		p := r.alone(r.world.dept)
		version := r.world.next()
		p.change(r.world.extra, version, freshness.Top)
		r.script(p, "ALTER TABLE dept DROP COLUMN extra", fmt.Sprintf("ALTER TABLE dept ADD COLUMN extra bigint NOT NULL DEFAULT %d", version))
		r.lull()
	}
}

// triggers returns a format for a statement about each trigger of a table and its partitions.
func (r *pgRun) triggers(format string) []string {
	r.t.Helper()
	var all []string
	for line := range strings.Lines(r.query(`SELECT format('ALTER TABLE %s %%s TRIGGER %I', tgrelid::regclass, tgname)
		FROM pg_trigger WHERE NOT tgisinternal AND tgrelid::regclass::text NOT LIKE 'slipstream%'`)) {
		all = append(all, fmt.Sprintf(strings.TrimSpace(line), format))
	}
	if len(all) == 0 {
		r.t.Fatal("there are no triggers")
	}
	return all
}

// disableTriggers makes writes that no trigger records, in one transaction and in several within a
// second.
func (r *pgRun) disableTriggers() {
	off, on := r.triggers("DISABLE"), r.triggers("ENABLE ALWAYS")
	for _, separator := range [][]string{nil, {"COMMIT", "BEGIN"}} {
		p := r.alone(r.world.tables...)
		sql := append([]string{"BEGIN"}, off...)
		sql = append(sql, separator...)
		w := r.newWriter(r.t.Context(), 53)
		for range 10 {
			if row := w.anyTable().pick(w.random, true); row != nil && !p.writes(row) {
				sql = append(sql, fmt.Sprintf("UPDATE %s SET v = %d WHERE %s = %d", row.table.name, p.put(row, row.parent.Load()), row.table.id, row.id))
			}
		}
		sql = append(sql, separator...)
		r.script(p, append(append(sql, on...), "COMMIT")...)
		r.lull()
	}
}

// writes reports whether the transaction already writes the row.
func (p *pgWrite) writes(row *pgRow) bool {
	for _, c := range p.changes {
		if c.Row == row.model {
			return true
		}
	}
	return false
}

// enableForOrigin creates triggers that do not fire for writes of replication. The
// promise cannot be kept, and must be suspended until they are repaired.
func (r *pgRun) enableForOrigin() {
	r.ddl(strings.Join(r.triggers("ENABLE"), ";\n"))
	time.Sleep(r.options.bound)
	w := r.newWriter(r.t.Context(), 54)
	defer w.close()
	for range 20 {
		w.attempt((*pgWriter).asReplica)
	}
	r.lull()
	r.givenUp()
	r.apply()
}

// givenUp checks that the gateway reports that it makes no promise.
func (r *pgRun) givenUp() {
	r.t.Helper()
	if err := r.ready(r.t.Context()); err == nil {
		r.t.Error("the gateway is ready, expected that it gives up the promise")
	}
}

// detachPartition detaches a filled partition, changes its rows and attaches it again.
func (r *pgRun) detachPartition() {
	w := r.world
	for range blackbox.Rounds(1, 2) {
		p := r.alone(w.account, w.entry)
		var away []*pgRow
		for _, row := range w.entry.rows {
			if row.parent.Load() != nil && row.kind == "a" {
				away = append(away, row)
			}
		}
		parents := make(map[*pgRow]*pgRow)
		for _, row := range away {
			parents[row] = row.parent.Load()
			p.gone(row)
		}
		// No other writer may write entries until the rows are back.
		held := p.release
		p.release = nil
		r.script(p, "ALTER TABLE entry DETACH PARTITION entry_a")
		r.lull()
		back := &pgWrite{world: w, release: held}
		var sql []string
		for _, row := range away {
			sql = append(sql, fmt.Sprintf("UPDATE entry_a SET v = %d WHERE id = %d", back.put(row, parents[row]), row.id))
		}
		r.script(back, append(sql, "ALTER TABLE entry ATTACH PARTITION entry_a FOR VALUES IN ('a')")...)
		r.lull()
	}
	// Another partition is made from a table that never had triggers.
	p := r.alone(w.account, w.entry)
	var account *pgRow
	for _, row := range w.account.rows {
		if row.parent.Load() != nil {
			account = row
		}
	}
	for _, row := range w.entry.rows {
		if account == nil || row.parent.Load() != nil {
			continue
		}
		row.kind = "d"
		sql := []string{
			"CREATE TABLE entry_d (LIKE entry)",
			fmt.Sprintf("INSERT INTO entry_d (%s) VALUES %s", row.table.columns(), tuple(row.values(account, p.put(row, account)))),
			"ALTER TABLE entry ATTACH PARTITION entry_d FOR VALUES IN ('d')",
		}
		r.script(p, sql...)
		r.lull()
		r.givenUp()
		r.apply()
		r.lull()
		r.dropPartition()
		return
	}
	p.giveUp()
}

// dropPartition moves the rows of partition d elsewhere, and drops it.
func (r *pgRun) dropPartition() {
	p := r.alone(r.world.account, r.world.entry)
	var sql []string
	for _, row := range r.world.entry.rows {
		if row.kind != "d" {
			continue
		}
		row.kind = "a"
		if row.parent.Load() != nil {
			sql = append(sql, fmt.Sprintf("UPDATE entry SET kind = 'a', v = %d WHERE id = %d", p.put(row, row.parent.Load()), row.id))
		}
	}
	r.script(p, append(sql, "ALTER TABLE entry DETACH PARTITION entry_d", "DROP TABLE entry_d")...)
}

// dropObjects drops the objects on which the promise depends.
func (r *pgRun) dropObjects() {
	for _, sql := range []string{
		r.triggers("DROP")[0],
		"TRUNCATE slipstream.change",
		"DROP TABLE slipstream.change CASCADE",
		"DROP SCHEMA slipstream CASCADE",
	} {
		if table, trigger, found := strings.Cut(strings.TrimPrefix(sql, "ALTER TABLE "), " DROP TRIGGER "); found {
			sql = "DROP TRIGGER " + trigger + " ON " + table
		}
		r.ddl(sql)
		time.Sleep(2 * r.options.bound)
		if !strings.HasPrefix(sql, "TRUNCATE") {
			r.givenUp()
		}
		began := time.Now()
		r.apply()
		applied := time.Since(began)
		testkit.Eventually(r.t, 30*time.Second, func() error { return r.ready(r.t.Context()) })
		r.t.Logf("%.40s: applied again in %v, ready after %v", sql, applied.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	}
}

// applyConcurrently runs db apply several times concurrently, and drops objects in between.
func (r *pgRun) applyConcurrently() {
	var runs sync.WaitGroup
	defer runs.Wait()
	outs := make([]blackbox.Result, 3)
	drop := r.triggers("DISABLE")
	r.world.races.Lock()
	for i := range outs {
		// Ends with the command, which has a time limit; waited for below.
		runs.Go(func() { outs[i] = blackbox.Run(r.whole, "db", "apply", "-c", r.config) })
		r.query(drop[(i*3)%len(drop)])
	}
	runs.Wait()
	r.world.races.Unlock()
	for _, out := range outs {
		if out.Code != 0 {
			r.t.Logf("one db apply of several: exit %d %s", out.Code, out.Stderr)
		}
	}
	r.apply()
}
