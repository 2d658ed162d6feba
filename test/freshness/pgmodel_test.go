//go:build unix

package freshness

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slipstream-go/slipstream/internal/testkit/freshness"
)

// pgTable is one of the tables of testdata/pgfreshness.sql, with the rows that it may hold. Rows
// are repeatedly inserted and deleted with the same numbers.
type pgTable struct {
	// Immutable after newPGWorld.
	name, id string
	key      string   // the primary key, as used in ON CONFLICT
	link     []string // the columns that lead to the parent
	parent   *pgTable // nil for roots
	children []*pgTable
	tops     []*pgRow // the possible parents of roots
	rows     []*pgRow

	// mu is held for reading while rows are written, and for writing while the whole table is
	// changed.
	mu sync.RWMutex
}

// pgRow is a row that may or may not exist.
type pgRow struct {
	// Immutable after newPGWorld.
	table *pgTable
	id    int
	name  string // of a position that is not a row
	model freshness.Row

	// mu is held by the writer of the row until the outcome is known. It guards kind.
	mu   sync.Mutex
	kind string // for an entry, the partition that contains it
	// under is held for reading by writers that put rows below this one, and for writing by a
	// writer that deletes it or changes its key.
	under sync.RWMutex

	// Atomics: written under mu, read by all.
	parent atomic.Pointer[pgRow] // nil if it does not exist
}

// pgWorld is everything that the writers know about the database.
type pgWorld struct {
	// Immutable after newPGWorld.
	model                              *freshness.Rows
	customer, orders, line, shipment   *pgTable
	dept, emp, account, entry, product *pgTable
	tables                             []*pgTable // all that have rows here, parents first
	sensors, readings                  []freshness.Row
	perSensor                          int
	extra                              freshness.Row // the default of dept.extra
	top                                *pgRow
	regions                            []*pgRow
	problem                            func(format string, args ...any)

	// gate is held for reading by every write, and for writing by code that needs exclusive access
	// to the database.
	gate sync.RWMutex
	// races is held for reading by a writer with several transactions, and for writing by db apply.
	// Otherwise one of these transactions might wait for a lock after apply, and apply for another
	// transaction of the same writer, until lock_timeout expires.
	races sync.RWMutex

	// Atomics: used by every writer.
	version atomic.Uint64
	// retyped says that columns of versions have another type than the readers' IDL.
	retyped atomic.Bool
	// unsettled counts writes that wait for settle; no other write begins in the meantime.
	unsettled atomic.Int64
	// settlements counts calls of settle: connections opened before one may lead to a server that
	// has gone.
	settlements atomic.Int64

	// Guarded by pending.
	pending sync.Mutex
	unknown []*pgWrite
}

func newPGWorld(model *freshness.Rows, sensors, perSensor int, problem func(string, ...any)) *pgWorld {
	w := &pgWorld{model: model, perSensor: perSensor, problem: problem}
	w.top = &pgRow{model: freshness.Top}
	for _, region := range []string{"eu", "us"} {
		w.regions = append(w.regions, &pgRow{name: region, model: model.Row("region " + region)})
	}
	add := func(rows int, table *pgTable) *pgTable {
		if table.key == "" {
			table.key = table.id
		}
		if table.parent != nil {
			table.parent.children = append(table.parent.children, table)
		} else if table.tops == nil {
			table.tops = []*pgRow{w.top}
		}
		for id := 1; id <= rows; id++ {
			table.rows = append(table.rows, &pgRow{table: table, id: id, kind: "a", model: model.Row(fmt.Sprint(table.name, " ", id))})
		}
		w.tables = append(w.tables, table)
		return table
	}
	w.customer = add(10, &pgTable{name: "customer", id: "id"})
	w.product = add(8, &pgTable{name: "product", id: "id"})
	w.orders = add(30, &pgTable{name: "orders", id: "id", link: []string{"customer_id"}, parent: w.customer})
	w.line = add(60, &pgTable{name: "line", id: "id", link: []string{"order_id"}, parent: w.orders})
	w.shipment = add(90, &pgTable{name: "shipment", id: "id", link: []string{"line_id"}, parent: w.line})
	w.dept = add(6, &pgTable{name: "dept", id: "deptno"})
	w.emp = add(40, &pgTable{name: "emp", id: "empno", link: []string{"deptno"}, parent: w.dept})
	w.account = add(8, &pgTable{name: "account", id: "id", key: "region, id", link: []string{"region"}, tops: w.regions})
	w.entry = add(40, &pgTable{name: "entry", id: "id", key: "id, kind", link: []string{"region", "account_id"}, parent: w.account})
	for id := 1; id <= sensors; id++ {
		w.sensors = append(w.sensors, model.Row(fmt.Sprint("sensor ", id)))
		w.readings = append(w.readings, model.Row(fmt.Sprint("readings of sensor ", id)))
	}
	w.extra = model.Row("default of dept.extra")
	return w
}

// next returns a version above all others.
func (w *pgWorld) next() uint64 { return w.version.Add(1) }

// columns returns the columns in an insert; values returns their values as text.
func (t *pgTable) columns() string {
	names := append([]string{t.id}, t.link...)
	switch t.name {
	case "line":
		names = append(names, "product_id")
	case "entry":
		names = append(names, "kind")
	}
	return strings.Join(append(names, "v"), ", ")
}

func (r *pgRow) values(parent *pgRow, version uint64) []string {
	values := append([]string{strconv.Itoa(r.id)}, r.table.linkTo(parent)...)
	switch r.table.name {
	case "line":
		values = append(values, strconv.Itoa(1+r.id%8))
	case "entry":
		values = append(values, r.kind)
	}
	return append(values, strconv.FormatUint(version, 10))
}

// linkTo returns the values of the columns that lead to a parent.
func (t *pgTable) linkTo(parent *pgRow) []string {
	switch {
	case t.name == "entry":
		return []string{parent.parent.Load().name, strconv.Itoa(parent.id)}
	case t.name == "account":
		return []string{parent.name}
	case t.parent == nil:
		return nil
	}
	return []string{strconv.Itoa(parent.id)}
}

// literal formats a value for SQL; only the names of kinds and regions are strings.
func literal(value string) string {
	if value[0] >= '0' && value[0] <= '9' {
		return value
	}
	return "'" + value + "'"
}

func tuple(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = literal(v)
	}
	return "(" + strings.Join(quoted, ", ") + ")"
}

// moveTo returns the SET clause that moves a row.
func (t *pgTable) moveTo(parent *pgRow) string {
	var set []string
	for i, v := range t.linkTo(parent) {
		set = append(set, t.link[i]+" = "+literal(v))
	}
	return strings.Join(set, ", ")
}

// pick returns a random row that exists or does not exist, as requested, or nil if it found none.
func (t *pgTable) pick(random *rand.Rand, present bool) *pgRow {
	for range 20 {
		if r := t.rows[random.IntN(len(t.rows))]; (r.parent.Load() != nil) == present {
			return r
		}
	}
	return nil
}

// pickParent returns a possible parent for a row of the table.
func (t *pgTable) pickParent(random *rand.Rand) *pgRow {
	if t.parent == nil {
		return t.tops[random.IntN(len(t.tops))]
	}
	return t.parent.pick(random, true)
}

// pgWrite is one transaction: the rows that it has locked and how it changes them.
type pgWrite struct {
	world   *pgWorld
	changes []freshness.Change
	apply   []func()
	release []func()
	tx      *freshness.Transaction
}

// take locks a row for writing. Like all methods that lock rows, it never waits: if it returns
// false, the write is abandoned and all of its rows are released.
func (p *pgWrite) take(r *pgRow) bool {
	if r == nil || !p.try(r.table.mu.TryRLock, r.table.mu.RUnlock) {
		return false
	}
	return p.try(r.mu.TryLock, r.mu.Unlock)
}

func (p *pgWrite) try(lock func() bool, unlock func()) bool {
	if !lock() {
		return false
	}
	p.release = append(p.release, unlock)
	return true
}

// below ensures that a row exists and keeps its key until the write has ended.
func (p *pgWrite) below(parent *pgRow) bool {
	if parent == nil {
		return false
	}
	return parent.table == nil || p.try(parent.under.TryRLock, parent.under.RUnlock) && parent.parent.Load() != nil
}

// put gives a locked row its next version and a parent.
func (p *pgWrite) put(r, parent *pgRow) uint64 {
	version := p.world.next()
	p.puts(r, parent, version)
	return version
}

func (p *pgWrite) puts(r, parent *pgRow, version uint64) {
	p.change(r.model, version, parent.model)
	p.apply = append(p.apply, func() { r.parent.Store(parent) })
}

func (p *pgWrite) change(row freshness.Row, version uint64, parent freshness.Row) {
	p.changes = append(p.changes, freshness.Change{Row: row, Version: version, Parent: parent})
}

// gone deletes a locked row.
func (p *pgWrite) gone(r *pgRow) {
	p.change(r.model, p.world.next(), freshness.Absent)
	p.apply = append(p.apply, func() { r.parent.Store(nil) })
}

// dropTree locks a row and all rows below it, for a cascade.
func (p *pgWrite) dropTree(r *pgRow) bool {
	if !p.take(r) || r.parent.Load() == nil || !p.try(r.under.TryLock, r.under.Unlock) {
		return false
	}
	for _, table := range r.table.children {
		// The children of this row cannot change now, so the result is exact.
		for _, child := range table.rows {
			if child.parent.Load() == r && !p.dropTree(child) {
				return false
			}
		}
	}
	p.gone(r)
	return true
}

// giveUp releases all rows of a write that has not begun.
func (p *pgWrite) giveUp() {
	for _, unlock := range slices.Backward(p.release) {
		unlock()
	}
	p.release = nil
}

func (p *pgWrite) begin() { p.tx = p.world.model.Begin(p.changes...) }

// end tells the model how the write ended, and reports whether it was committed. A write with an
// unknown outcome keeps its rows until settle has determined it.
func (p *pgWrite) end(err error) (committed bool) {
	switch {
	case err == nil:
		p.tx.Acked()
		for _, apply := range p.apply {
			apply()
		}
	case isRefused(err):
		p.tx.Aborted()
	default:
		p.world.pending.Lock()
		defer p.world.pending.Unlock()
		p.world.unknown = append(p.world.unknown, p)
		p.world.unsettled.Store(int64(len(p.world.unknown)))
		return false
	}
	p.giveUp()
	return err == nil
}

// errRolledBack ends a write that was rolled back on purpose.
var errRolledBack = errors.New("rolled back")

// isRefused reports whether err is an error of a server that is still running and has committed
// nothing.
func isRefused(err error) bool {
	if errors.Is(err, errRolledBack) {
		return true
	}
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refusal.Severity == "ERROR"
}

// settled makes the writers' knowledge agree with the database: place returns the parent of each
// row, or nil if the row does not exist. The caller holds the gate exclusively.
func (w *pgWorld) settled(place func(r *pgRow) *pgRow) {
	for _, table := range w.tables {
		for _, r := range table.rows {
			r.parent.Store(place(r))
		}
	}
	w.pending.Lock()
	defer w.pending.Unlock()
	for _, p := range w.unknown {
		p.giveUp()
	}
	w.unknown = nil
	w.unsettled.Store(0)
	w.settlements.Add(1)
}
