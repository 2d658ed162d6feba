//go:build unix

package freshness

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit/freshness"
)

// This file contains queries of the database itself.

// settle determines from the database the outcome of writes for which it is unknown, and which
// writes were lost. back is when it accepted connections again.
func (r *pgRun) settle(back int64) (lost int) {
	r.t.Helper()
	r.world.gate.Lock()
	defer r.world.gate.Unlock()
	return r.settleAlone(back)
}

// settleAlone is like settle, but the caller holds the gate exclusively.
func (r *pgRun) settleAlone(back int64) (lost int) {
	r.t.Helper()
	for name := range strings.FieldsSeq(r.query("SELECT gid FROM pg_prepared_xacts")) {
		r.query("ROLLBACK PREPARED '" + name + "'")
	}
	lost, err := r.model.Settle(r.look(), back)
	if err != nil {
		r.t.Error(err)
	}
	return lost
}

// aloneQuery is like query, but runs while nothing writes. A failure that ends the test must not
// leave the writers waiting forever.
func (r *pgRun) aloneQuery(sql string) string {
	r.t.Helper()
	r.world.gate.Lock()
	defer r.world.gate.Unlock()
	return r.query(sql)
}

// query runs statements on the server that accepts writes; it returns rows of text.
func (r *pgRun) query(sql string) string {
	r.t.Helper()
	return r.servers[r.primary].PSQL(r.t, sql)
}

// look reads the versions of all rows that exist, and updates the writers' knowledge of them.
// Nothing may write in the meantime.
func (r *pgRun) look() map[freshness.Row]uint64 {
	r.t.Helper()
	held := make(map[freshness.Row]uint64)
	parents := make(map[*pgRow]*pgRow)
	w := r.world
	for _, table := range w.tables {
		link := "0"
		switch {
		case table == w.account:
			link = "region"
		case table.parent != nil:
			link = table.link[len(table.link)-1]
		}
		kind := "'a'"
		if table == w.entry {
			kind = "kind"
		}
		for text := range strings.FieldsSeq(r.query(fmt.Sprintf("SELECT %s, v, %s, %s FROM %s", table.id, link, kind, table.name))) {
			var id int
			var version uint64
			var under string
			parts := strings.Split(text, "|")
			if _, err := fmt.Sscan(strings.Join(parts[:3], " "), &id, &version, &under); err != nil {
				r.t.Fatalf("row %q of %s: %v", text, table.name, err)
			}
			row := table.rows[id-1]
			row.kind = parts[3]
			held[row.model] = version
			parents[row] = table.parentNamed(under)
		}
	}
	w.settled(func(row *pgRow) *pgRow { return parents[row] })
	for text := range strings.FieldsSeq(r.query("SELECT s.id, s.v, min(g.v) FROM sensor s JOIN reading g ON g.sensor_id = s.id GROUP BY 1, 2")) {
		var id int
		var sensor, readings uint64
		if _, err := fmt.Sscanf(text, "%d|%d|%d", &id, &sensor, &readings); err != nil {
			r.t.Fatal(err)
		}
		held[w.sensors[id-1]], held[w.readings[id-1]] = sensor, readings
	}
	var extra uint64
	if _, err := fmt.Sscan(r.query("INSERT INTO dept (deptno, v) VALUES (0, 0); DELETE FROM dept WHERE deptno = 0 RETURNING extra"), &extra); err != nil {
		r.t.Fatal(err)
	}
	held[w.extra] = extra
	return held
}

// parentNamed finds a parent by the value of the column that leads to it.
func (t *pgTable) parentNamed(text string) *pgRow {
	for _, top := range t.tops {
		if top.name == text || top.name == "" {
			return top
		}
	}
	var id int
	if _, err := fmt.Sscan(text, &id); err != nil || t.parent == nil || id < 1 || id > len(t.parent.rows) {
		return nil
	}
	return t.parent.rows[id-1]
}

// commitToFresh updates rows of cached documents, one by one. For each it measures the time from
// the acknowledgement to the start of the first request that returned the new version, and returns
// these times in order.
func (r *pgRun) commitToFresh(times int) []time.Duration {
	r.t.Helper()
	w := r.newWriter(r.t.Context(), 70)
	defer w.close()
	reader := newPGReader(r.world, newOverHTTP(r.url), w.random, &r.reads)
	defer reader.from.close()
	var ages []time.Duration
	for tries := 0; len(ages) < times && tries < 20*times; tries++ {
		dept := r.world.dept.pick(w.random, true)
		if dept == nil { // a TRUNCATE has emptied the table: the writers fill it again
			time.Sleep(10 * time.Millisecond)
			continue
		}
		path := fmt.Sprint("/depts/", dept.id)
		version := func() uint64 {
			if !reader.ask(path, dept.model, freshness.Top, r.world.readDept) || reader.seen[path] == nil {
				return 0
			}
			return reader.seen[path].document.Version(dept.model)
		}
		version()
		time.Sleep(time.Duration(w.random.Int64N(int64(40 * time.Millisecond)))) // not synchronous with the polls
		var written uint64
		if !w.attempt(func(w *pgWriter) bool {
			p := w.plan()
			if !p.take(dept) || dept.parent.Load() == nil {
				p.giveUp()
				return false
			}
			written = p.put(dept, dept.parent.Load())
			p.begin()
			return p.end(w.one(0, 1, "UPDATE dept SET v = %d WHERE deptno = %d", written, dept.id))
		}) {
			continue
		}
		acked := time.Now()
		for time.Since(acked) < 10*time.Second {
			asked := time.Now()
			if version() >= written {
				ages = append(ages, asked.Sub(acked))
				break
			}
			time.Sleep(500 * time.Microsecond)
		}
	}
	if len(ages) == 0 {
		r.t.Fatal("no update was ever seen")
	}
	slices.Sort(ages)
	return ages
}
