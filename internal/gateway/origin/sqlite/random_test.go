package sqlite

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// coverSeeds is how many random databases TestRandomStatementsAreRecorded
// tries. SQLITE_SEED=n tries one, SQLITE_SEEDS=n more.
func coverSeeds(t *testing.T) (first, count uint64) {
	if s := os.Getenv("SQLITE_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n, 1
	}
	count = 40
	if raceEnabled {
		count = 5 // the race detector slows the driver down tenfold
	}
	if s := os.Getenv("SQLITE_SEEDS"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		count = n
	}
	return 1, count
}

// TestRandomStatementsAreRecorded checks the property that freshness rests on,
// over random schemas of three levels and random statements.
func TestRandomStatementsAreRecorded(t *testing.T) {
	first, count := coverSeeds(t)
	randomStatements(t, first, count, newWorld)
}

// TestRandomStatementsOfAForeignWriterAreRecorded runs a part of these
// statements through another library: triggers run in the library of the
// writer, not in ours.
func TestRandomStatementsOfAForeignWriterAreRecorded(t *testing.T) {
	_, count := coverSeeds(t)
	randomStatements(t, 10_001, (count+4)/5, newForeignWorld)
}

func randomStatements(t *testing.T, first, count uint64,
	create func(testing.TB, resource.Resource, ...string) *world) {
	failedBefore := false
	changes := 0
	for seed := first; seed < first+count && !failedBefore; seed++ {
		g := &generator{rng: rand.New(rand.NewPCG(seed, 0))}
		schema := g.schema()
		w := create(t, g.resource, schema...)
		var history []string
		for step := range 110 {
			sql := g.statement()
			if step < 30 {
				sql = g.insert()
			}
			history = append(history, sql)
			// A statement may break a constraint: then nothing happened.
			_ = w.exec(sql)
			changed, _ := w.verify(sql)
			changes += len(changed)
			if t.Failed() {
				t.Logf("replay with SQLITE_SEED=%d\n%s;\n%s", seed, strings.Join(schema, ";\n"), strings.Join(history, ";\n"))
				failedBefore = true
				break
			}
		}
	}
	t.Logf("%d seeds, %d changed documents", count, changes)
	if changes < 5*int(count) && !failedBefore {
		t.Errorf("only %d documents changed: the test would not notice much", changes)
	}
}

// generator makes random schemas and statements. All its tables have columns
// drawn from one small set of values, so that conflicts are frequent.
type generator struct {
	rng      *rand.Rand
	resource resource.Resource
	tables   []*genTable
}

type genTable struct {
	name         string
	columns      []string // that can be written
	unique       []string // targets for ON CONFLICT
	withoutRowid bool
}

func (g *generator) pick(of ...string) string { return of[g.rng.IntN(len(of))] }

func (g *generator) chance(percent int) bool { return g.rng.IntN(100) < percent }

// value draws from forms that affinities and collations confuse.
func (g *generator) value() string {
	if g.chance(60) {
		return g.pick("1", "2", "3", "'1'", "'2'")
	}
	return g.pick("4", "'03'", "'3'", "2.0", "'2.0'", "'a'", "'A'", "'b'", "x'01'", "x'02'", "NULL")
}

func (g *generator) action() string {
	return g.pick("", "", "ON DELETE CASCADE", "ON DELETE CASCADE ON UPDATE CASCADE", "ON DELETE SET NULL", "ON UPDATE CASCADE",
		"ON DELETE SET DEFAULT", "ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED")
}

// schema makes root <- mid <- leaf, and at times a second child of the root.
func (g *generator) schema() []string {
	var sql []string
	rootKey := g.pick("INTEGER", "INT", "TEXT", "VARCHAR(9)", "BLOB", "BIGINT")
	rootKeys := []string{"k"}
	composite := g.chance(25)
	root := &genTable{name: "root", columns: []string{"k", "u", "v"}}
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE root (k %s", rootKey)
	switch {
	case composite:
		rootKeys = append(rootKeys, "k2")
		root.columns = append(root.columns, "k2")
		b.WriteString(", k2 " + g.pick("INTEGER", "TEXT") + ", u, v, PRIMARY KEY (k, k2)")
	case g.chance(70):
		b.WriteString(" PRIMARY KEY" + g.pick("", "", " ON CONFLICT REPLACE") + ", u, v")
	default:
		b.WriteString(" UNIQUE, u, v")
	}
	if g.chance(40) {
		b.WriteString(", UNIQUE (u)")
		root.unique = append(root.unique, "u")
	}
	root.unique = append(root.unique, strings.Join(rootKeys, ", "))
	root.withoutRowid = strings.Contains(b.String(), "PRIMARY KEY") && g.chance(30)
	b.WriteString(")")
	if root.withoutRowid {
		b.WriteString(" WITHOUT ROWID")
	}
	sql = append(sql, b.String())
	g.tables = []*genTable{root}
	mid, midSQL := g.child("mid", "root", "k")
	leaf, leafSQL := g.child("leaf", "mid", "id")
	sql = append(append(sql, midSQL...), leafSQL...)
	midNode := resource.Node{Table: "mid", On: mid, Children: []resource.Child{
		{Name: "leafs", Node: resource.Node{Table: "leaf", On: leaf}}}}
	children := []resource.Child{{Name: "mids", Node: midNode}}
	if g.chance(40) {
		side, sideSQL := g.child("side", "root", g.pick("k", "v"))
		sql = append(sql, sideSQL...)
		children = append(children, resource.Child{Name: "sides", Node: resource.Node{Table: "side", On: side}})
	}
	g.resource = resource.Resource{Name: "r", Key: rootKeys, Root: resource.Node{Table: "root", Children: children}}
	return sql
}

// child creates a table whose fk may have another type than the referenced column.
func (g *generator) child(name, parent, parentColumn string) ([]resource.Join, []string) {
	t := &genTable{name: name, columns: []string{"id", "fk", "u", "w"}}
	var parts []string
	kind := g.rng.IntN(4)
	idType := g.pick("INTEGER", "TEXT", "INT", "", "NUMERIC", "REAL")
	switch kind {
	case 0:
		parts = append(parts, "id INTEGER PRIMARY KEY")
		t.unique = append(t.unique, "id")
	case 1:
		parts = append(parts, "id "+idType+" PRIMARY KEY")
		t.unique = append(t.unique, "id")
		t.withoutRowid = g.chance(50)
	case 2:
		parts = append(parts, "id "+idType)
	default:
		parts = append(parts, "id "+idType+" UNIQUE")
		t.unique = append(t.unique, "id")
	}
	fkType := g.pick("INTEGER", "TEXT", "", "BLOB", "NUMERIC", "REAL", "VARCHAR(5)")
	fk := "fk " + fkType
	if g.chance(25) {
		fk += " DEFAULT 1"
	}
	if g.chance(60) {
		fk += fmt.Sprintf(" REFERENCES %s (%s) %s", parent, parentColumn, g.action())
	}
	u := "u " + g.pick("", "TEXT", "TEXT COLLATE NOCASE", "INTEGER")
	if g.chance(25) {
		u += " NOT NULL DEFAULT " + g.pick("1", "'a'", "(1+1)")
	}
	parts = append(parts, fk, u, "w")
	if g.chance(25) {
		parts = append(parts, "g AS (w || '-') "+g.pick("STORED", "VIRTUAL"))
	}
	generated := strings.HasPrefix(parts[len(parts)-1], "g AS")
	switch g.rng.IntN(4) {
	case 0:
		parts = append(parts, "UNIQUE (u)"+g.pick("", " ON CONFLICT REPLACE"))
		t.unique = append(t.unique, "u")
	case 1:
		parts = append(parts, "UNIQUE (fk, u)")
		t.unique = append(t.unique, "fk, u")
	}
	suffix := ""
	if t.withoutRowid {
		suffix = " WITHOUT ROWID"
	}
	sql := []string{fmt.Sprintf("CREATE TABLE %s (%s)%s", name, strings.Join(parts, ", "), suffix)}
	switch g.rng.IntN(8) {
	case 0:
		sql = append(sql, fmt.Sprintf("CREATE UNIQUE INDEX %s_w ON %s (w) WHERE u IS NOT NULL", name, name))
	case 1:
		sql = append(sql, fmt.Sprintf("CREATE UNIQUE INDEX %s_e ON %s (w || '.')", name, name))
	case 2:
		sql = append(sql, fmt.Sprintf("CREATE UNIQUE INDEX %s_c ON %s (w COLLATE NOCASE)", name, name))
	case 3:
		if generated {
			sql = append(sql, fmt.Sprintf("CREATE UNIQUE INDEX %s_g ON %s (g)", name, name))
		}
	}
	g.tables = append(g.tables, t)
	return []resource.Join{{Column: "fk", Parent: parentColumn}}, sql
}

func (g *generator) table() *genTable { return g.tables[g.rng.IntN(len(g.tables))] }

func (g *generator) insert() string {
	t := g.table()
	columns := slices.Clone(t.columns)
	if g.chance(30) {
		columns = columns[:1+g.rng.IntN(len(columns))]
	}
	if !t.withoutRowid && g.chance(10) {
		columns = append(columns, "rowid")
	}
	var rows []string
	for range 1 + g.rng.IntN(2) {
		values := make([]string, len(columns))
		for i := range values {
			values[i] = g.value()
			if columns[i] == "rowid" {
				values[i] = g.pick("1", "2", "3", "4", "NULL")
			}
		}
		rows = append(rows, "("+strings.Join(values, ", ")+")")
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", t.name, strings.Join(columns, ", "), strings.Join(rows, ", "))
}

func (g *generator) statement() string {
	t := g.table()
	column := func() string { return t.columns[g.rng.IntN(len(t.columns))] }
	where := func() string {
		if g.chance(10) {
			return ""
		}
		return fmt.Sprintf(" WHERE %s IS %s", column(), g.value())
	}
	switch g.rng.IntN(14) {
	case 0:
		return fmt.Sprintf("PRAGMA foreign_keys = %d", g.rng.IntN(2))
	case 1:
		return fmt.Sprintf("PRAGMA recursive_triggers = %d", g.rng.IntN(2))
	case 2, 3:
		return g.insert()
	case 4, 5, 6:
		return strings.Replace(g.insert(), "INSERT", g.pick("INSERT OR REPLACE", "REPLACE", "INSERT OR IGNORE", "INSERT OR FAIL"), 1)
	case 7:
		insert := g.insert()
		return insert + fmt.Sprintf(" ON CONFLICT DO %s", g.pick("NOTHING", "UPDATE SET w = "+g.value(), "UPDATE SET fk = "+g.value()))
	case 8:
		return "DELETE FROM " + t.name + where()
	default:
		set := fmt.Sprintf("%s = %s", column(), g.value())
		if g.chance(40) {
			set += fmt.Sprintf(", %s = %s", column(), g.value())
		}
		if !t.withoutRowid && g.chance(8) {
			set = "rowid = " + g.pick("1", "2", "3")
		}
		return fmt.Sprintf("UPDATE %s%s SET %s%s", g.pick("", "OR REPLACE ", "OR REPLACE ", "OR IGNORE "), t.name, set, where())
	}
}
