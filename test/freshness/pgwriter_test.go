//go:build unix

package freshness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// pgOp is one kind of write. Its function returns false if nothing was committed.
type pgOp struct {
	name   string
	weight int
	do     func(*pgWriter) bool
	since  int // the first major version that supports it, 0 for all
}

var pgOps = []pgOp{
	{"update one", 20, (*pgWriter).updateOne, 0},
	{"update many", 5, (*pgWriter).updateMany, 0},
	{"insert", 15, (*pgWriter).insert, 0},
	{"insert on conflict", 8, (*pgWriter).upsert, 0},
	{"merge", 6, (*pgWriter).merge, 15},
	{"copy", 6, (*pgWriter).copyIn, 0},
	{"delete", 4, (*pgWriter).remove, 0},
	{"delete cascade", 2, (*pgWriter).cascade, 0},
	{"move child", 10, (*pgWriter).move, 0},
	// PostgreSQL 14 treats it as a deletion, which cascades.
	{"move key between partitions", 3, (*pgWriter).moveAccount, 15},
	{"move between partitions", 4, (*pgWriter).moveEntry, 0},
	{"write to a partition", 5, (*pgWriter).intoPartition, 0},
	{"savepoint", 4, (*pgWriter).savepoint, 0},
	{"rollback", 2, (*pgWriter).rollback, 0},
	{"prepared transaction", 2, (*pgWriter).prepared, 0},
	{"parent and child at once", 5, (*pgWriter).together, 0},
	{"replica role", 2, (*pgWriter).asReplica, 0},
	{"truncate", 1, (*pgWriter).truncate, 0},
	{"truncate a partition", 1, (*pgWriter).truncatePartition, 0},
	{"held open", 2, (*pgWriter).heldOpen, 0},
	{"race of a move, read committed", 5, func(w *pgWriter) bool { return w.race("READ COMMITTED") }, 0},
	{"race of a move, repeatable read", 5, func(w *pgWriter) bool { return w.race("REPEATABLE READ") }, 0},
}

// pgOpCounts counts how often each of pgOps was committed.
type pgOpCounts [32]atomic.Int64

// pgWriter is one client that writes.
type pgWriter struct {
	ctx    context.Context
	world  *pgWorld
	random *rand.Rand
	dial   func(context.Context) (*pgx.Conn, error)
	conns  [3]*pgx.Conn // more than one only in a race
	since  [3]int64     // value of settlements when each was opened
	number int
	major  int // version of the server
	counts *pgOpCounts

	noHeld     bool // no transaction may stay open for long
	noPrepared bool // PREPARE TRANSACTION is refused, because triggers notify
}

// step makes one random write.
func (w *pgWriter) step() {
	total := 0
	for _, op := range pgOps {
		if op.since <= w.major {
			total += op.weight
		}
	}
	n := w.random.IntN(total)
	for i, op := range pgOps {
		if op.since > w.major {
			continue
		}
		if n -= op.weight; n < 0 {
			if w.attempt(op.do) {
				w.counts[i].Add(1)
			}
			return
		}
	}
}

func (w *pgWriter) attempt(do func(*pgWriter) bool) bool {
	w.world.gate.RLock()
	defer w.world.gate.RUnlock()
	if w.world.unsettled.Load() > 0 {
		return false
	}
	return w.connected(0) && do(w)
}

// connected ensures that the n-th connection is open.
func (w *pgWriter) connected(n int) bool {
	now := w.world.settlements.Load()
	if c := w.conns[n]; c != nil && !c.IsClosed() {
		if w.since[n] == now {
			return true
		}
		_ = c.Close(context.Background())
	}
	w.since[n] = now
	var err error
	if w.conns[n], err = w.dial(w.ctx); err != nil {
		w.conns[n] = nil
		return false
	}
	// Some writers commit before their WAL record is written, so a crash loses these commits.
	if (w.number+n)%3 == 0 {
		err = w.exec(n, "SET synchronous_commit = off")
	}
	return err == nil
}

func (w *pgWriter) close() {
	for _, c := range w.conns {
		if c != nil {
			_ = c.Close(context.Background())
		}
	}
}

// exec sends statements in one simple query, which is one transaction unless it contains BEGIN.
func (w *pgWriter) exec(n int, sql ...string) error {
	ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
	defer cancel()
	_, err := w.conns[n].PgConn().Exec(ctx, strings.Join(sql, "; ")).ReadAll()
	return err
}

// execute is exec for a complete transaction on the first connection, which is idle afterwards.
func (w *pgWriter) execute(sql ...string) error {
	err := w.exec(0, sql...)
	w.idle(0)
	return err
}

// idle rolls back a transaction that a failure has left open.
func (w *pgWriter) idle(n int) {
	if c := w.conns[n]; !c.IsClosed() && c.PgConn().TxStatus() != 'I' {
		if err := w.exec(n, "ROLLBACK"); err != nil {
			_ = c.Close(context.Background())
		}
	}
}

func (w *pgWriter) plan() *pgWrite { return &pgWrite{world: w.world} }

// one is exec for one statement that must write the given number of rows.
func (w *pgWriter) one(n int, rows int64, format string, args ...any) error {
	ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
	defer cancel()
	sql := fmt.Sprintf(format, args...)
	tag, err := w.conns[n].PgConn().Exec(ctx, sql).ReadAll()
	if err == nil && len(tag) > 0 && tag[len(tag)-1].CommandTag.RowsAffected() != rows {
		w.world.problem("%s: wrote %v, expected %d rows: the test's own model is wrong", sql, tag[len(tag)-1].CommandTag, rows)
	}
	return err
}

// anyTable returns a random table whose rows may be updated individually.
func (w *pgWriter) anyTable() *pgTable { return w.world.tables[w.random.IntN(len(w.world.tables))] }

// someUpdates plans updates of up to n rows of a table that exist.
func (w *pgWriter) someUpdates(p *pgWrite, t *pgTable, n int) (values []string) {
	for range n {
		if r := t.pick(w.random, true); r != nil && p.take(r) && r.parent.Load() != nil {
			values = append(values, fmt.Sprintf("(%d, %d)", r.id, p.put(r, r.parent.Load())))
		}
	}
	return values
}

// update plans the update of one existing row and returns its SQL, or "" if there is none.
func (w *pgWriter) update(p *pgWrite, t *pgTable) string {
	r := t.pick(w.random, true)
	if !p.take(r) || r.parent.Load() == nil {
		return ""
	}
	return fmt.Sprintf("UPDATE %s SET v = %d WHERE %s = %d", t.name, p.put(r, r.parent.Load()), t.id, r.id)
}

func (w *pgWriter) updateOne() bool {
	p := w.plan()
	sql := w.update(p, w.anyTable())
	if sql == "" {
		p.giveUp()
		return false
	}
	p.begin()
	return p.end(w.one(0, 1, "%s", sql))
}

func (w *pgWriter) updateMany() bool {
	p, t := w.plan(), w.anyTable()
	values := w.someUpdates(p, t, 8)
	if len(values) == 0 {
		p.giveUp()
		return false
	}
	p.begin()
	return p.end(w.one(0, int64(len(values)), "UPDATE %s AS t SET v = x.v FROM (VALUES %s) AS x(id, v) WHERE t.%s = x.id",
		t.name, strings.Join(values, ", "), t.id))
}

// newRow plans the insert of a row that does not exist, under a random parent.
func (w *pgWriter) newRow(p *pgWrite, t *pgTable) (values []string) {
	r, parent := t.pick(w.random, false), t.pickParent(w.random)
	if parent == nil || !p.take(r) || r.parent.Load() != nil || !p.below(parent) {
		return nil
	}
	if t == w.world.entry {
		r.kind = string("abc"[w.random.IntN(3)])
	}
	return r.values(parent, p.put(r, parent))
}

// fuller returns a table with room for another row, a random one if possible.
func (w *pgWriter) fuller() *pgTable {
	for range 5 {
		if t := w.anyTable(); t.pick(w.random, false) != nil {
			return t
		}
	}
	return w.world.shipment
}

func (w *pgWriter) insert() bool {
	p, t := w.plan(), w.fuller()
	var rows []string
	for range 1 + w.random.IntN(4) {
		values := w.newRow(p, t)
		if values == nil {
			break
		}
		rows = append(rows, tuple(values))
	}
	if len(rows) == 0 {
		p.giveUp()
		return false
	}
	p.begin()
	return p.end(w.one(0, int64(len(rows)), "INSERT INTO %s (%s) VALUES %s", t.name, t.columns(), strings.Join(rows, ", ")))
}

func (w *pgWriter) copyIn() bool {
	p, t := w.plan(), w.fuller()
	var text strings.Builder
	for range 8 {
		values := w.newRow(p, t)
		if values == nil {
			break
		}
		text.WriteString(strings.Join(values, "\t") + "\n")
	}
	if text.Len() == 0 {
		p.giveUp()
		return false
	}
	p.begin()
	_, err := w.conns[0].PgConn().CopyFrom(w.ctx, strings.NewReader(text.String()), fmt.Sprintf("COPY %s (%s) FROM STDIN", t.name, t.columns()))
	return p.end(err)
}

// putAnywhere locks a row, which may or may not exist, and puts it under a random parent.
func (w *pgWriter) putAnywhere(p *pgWrite, t *pgTable, r *pgRow) (values []string) {
	parent := t.pickParent(w.random)
	if parent == nil || !p.take(r) || !p.below(parent) {
		return nil
	}
	if old := r.parent.Load(); old != nil && !p.below(old) {
		return nil
	}
	return r.values(parent, p.put(r, parent))
}

// movable returns the tables whose rows can be put under any parent with one statement.
func (w *pgWriter) movable() *pgTable {
	all := []*pgTable{w.world.orders, w.world.line, w.world.shipment, w.world.emp, w.world.entry}
	return all[w.random.IntN(len(all))]
}

func (w *pgWriter) upsert() bool {
	p, t := w.plan(), w.movable()
	values := w.putAnywhere(p, t, t.rows[w.random.IntN(len(t.rows))])
	if values == nil {
		p.giveUp()
		return false
	}
	set := "v = excluded.v"
	for _, column := range t.link {
		set += fmt.Sprintf(", %s = excluded.%s", column, column)
	}
	p.begin()
	return p.end(w.one(0, 1, "INSERT INTO %s (%s) VALUES %s ON CONFLICT (%s) DO UPDATE SET %s", t.name, t.columns(), tuple(values), t.key, set))
}

// merge updates and inserts rows and deletes rows without children in one statement.
//
// On the partitioned table, PostgreSQL 15.18 passes the row that a MERGE inserted last to triggers,
// instead of each row that it updates after that. Our triggers notice this.
func (w *pgWriter) merge() bool {
	p := w.plan()
	t := []*pgTable{w.world.shipment, w.world.emp, w.world.entry}[w.random.IntN(3)]
	var rows []string
	for range 4 {
		r := t.rows[w.random.IntN(len(t.rows))]
		if w.random.IntN(4) > 0 {
			if values := w.putAnywhere(p, t, r); values != nil {
				rows = append(rows, strings.TrimSuffix(tuple(values), ")")+", false)")
			}
		} else if p.take(r) && r.parent.Load() != nil && p.below(r.parent.Load()) {
			values := r.values(r.parent.Load(), 0)
			p.gone(r)
			rows = append(rows, strings.TrimSuffix(tuple(values), ")")+", true)")
		}
	}
	if len(rows) == 0 || len(rows) != len(p.changes) {
		p.giveUp()
		return false
	}
	set := "v = s.v"
	for _, column := range t.link {
		set += fmt.Sprintf(", %s = s.%s", column, column)
	}
	p.begin()
	return p.end(w.one(0, int64(len(rows)), `MERGE INTO %s AS t USING (VALUES %s) AS s(%s, gone) ON t.%s = s.%s
		WHEN MATCHED AND s.gone THEN DELETE
		WHEN MATCHED THEN UPDATE SET %s
		WHEN NOT MATCHED AND NOT s.gone THEN INSERT (%s) VALUES (s.%s)`,
		t.name, strings.Join(rows, ", "), t.columns(), t.id, t.id, set, t.columns(), strings.ReplaceAll(t.columns(), ", ", ", s.")))
}

// remove deletes a row and, by cascade, all rows below it, if there are few.
func (w *pgWriter) remove() bool {
	t := []*pgTable{w.world.line, w.world.shipment, w.world.emp, w.world.entry, w.world.product}[w.random.IntN(5)]
	return w.delete(t)
}

func (w *pgWriter) cascade() bool {
	t := []*pgTable{w.world.customer, w.world.orders, w.world.dept, w.world.account}[w.random.IntN(4)]
	return w.delete(t)
}

func (w *pgWriter) delete(t *pgTable) bool {
	p := w.plan()
	r := t.pick(w.random, true)
	if r == nil || !p.dropTree(r) {
		p.giveUp()
		return false
	}
	p.begin()
	return p.end(w.one(0, 1, "DELETE FROM %s WHERE %s = %d", t.name, t.id, r.id))
}

// planMove locks a row of the table and plans its move; it returns "" if the row cannot be moved.
func (w *pgWriter) planMove(p *pgWrite, r *pgRow) string {
	if r == nil {
		return ""
	}
	parent := r.table.pickParent(w.random)
	old := r.parent.Load()
	if parent == nil || old == nil || parent == old || !p.take(r) || r.parent.Load() != old || !p.below(old) || !p.below(parent) {
		return ""
	}
	return fmt.Sprintf("UPDATE %s SET v = %d, %s WHERE %s = %d", r.table.name, p.put(r, parent), r.table.moveTo(parent), r.table.id, r.id)
}

func (w *pgWriter) move() bool {
	p := w.plan()
	sql := w.planMove(p, w.movable().pick(w.random, true))
	if sql == "" {
		p.giveUp()
		return false
	}
	p.begin()
	return p.end(w.one(0, 1, "%s", sql))
}

// moveAccount changes the key of a document and thereby the partition of its root; the entries
// follow by ON UPDATE CASCADE.
func (w *pgWriter) moveAccount() bool {
	p := w.plan()
	r := w.world.account.pick(w.random, true)
	if !p.take(r) || r.parent.Load() == nil || !p.try(r.under.TryLock, r.under.Unlock) {
		p.giveUp()
		return false
	}
	to := w.world.regions[0]
	if r.parent.Load() == to {
		to = w.world.regions[1]
	}
	version := p.put(r, to)
	p.begin()
	return p.end(w.one(0, 1, "UPDATE account SET region = '%s', v = %d WHERE id = %d", to.name, version, r.id))
}

// moveEntry moves a child between partitions; its parent stays the same.
func (w *pgWriter) moveEntry() bool {
	p := w.plan()
	r := w.world.entry.pick(w.random, true)
	if !p.take(r) || r.parent.Load() == nil {
		p.giveUp()
		return false
	}
	kind := string("abc"[w.random.IntN(3)])
	version := p.put(r, r.parent.Load())
	p.apply = append(p.apply, func() { r.kind = kind })
	p.begin()
	return p.end(w.one(0, 1, "UPDATE entry SET kind = '%s', v = %d WHERE id = %d", kind, version, r.id))
}

// intoPartition writes directly to a partition, not to the partitioned table.
func (w *pgWriter) intoPartition() bool {
	p := w.plan()
	if w.random.IntN(3) == 0 {
		r := w.world.account.pick(w.random, true)
		if !p.take(r) || r.parent.Load() == nil {
			p.giveUp()
			return false
		}
		version := p.put(r, r.parent.Load())
		p.begin()
		return p.end(w.one(0, 1, "UPDATE account_%s SET v = %d WHERE id = %d", r.parent.Load().name, version, r.id))
	}
	r := w.world.entry.rows[w.random.IntN(len(w.world.entry.rows))]
	partition := func() string {
		return map[string]string{"a": "entry_a", "b": "entry_b", "c": "entry_rest", "d": "entry_d"}[r.kind]
	}
	parent := w.world.entry.pickParent(w.random)
	if parent == nil || !p.take(r) || !p.below(parent) {
		p.giveUp()
		return false
	}
	var sql string
	switch old := r.parent.Load(); {
	case old == nil:
		sql = fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", partition(), r.table.columns(), tuple(r.values(parent, p.put(r, parent))))
	case w.random.IntN(3) == 0:
		p.gone(r)
		sql = fmt.Sprintf("DELETE FROM %s WHERE id = %d", partition(), r.id)
	default:
		sql = fmt.Sprintf("UPDATE %s SET v = %d WHERE id = %d", partition(), p.put(r, old), r.id)
	}
	p.begin()
	return p.end(w.one(0, 1, "%s", sql))
}

// rest waits for d, or until the test ends.
func (w *pgWriter) rest(d time.Duration) {
	if d > 0 {
		select {
		case <-w.ctx.Done():
		case <-time.After(time.Duration(w.random.Int64N(int64(d)))):
		}
	}
}

// refused converts a failure before the commit to the outcome of the writes.
func refused(err error) error {
	if err == nil || isRefused(err) {
		return err
	}
	return errors.Join(errOutcomeUnknown, err)
}

var errOutcomeUnknown = errors.New("the outcome is not known")
