package sqlite

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// world is a database with an origin over it and a writer, and the oracle of
// this package: whatever a statement did to the documents, the change table
// must have recorded every document that is different afterwards.
type world struct {
	t      testing.TB
	origin *Origin
	writer *sqlite3.Conn
	exec   func(sql string) error // how the application writes
	last   int64
	docs   map[string]string
}

func newWorld(t testing.TB, r resource.Resource, schema ...string) *world {
	t.Helper()
	path := newFile(t, schema...)
	w := &world{t: t, origin: openOrigin(t, Config{Path: path}, r), writer: openWriter(t, path)}
	w.exec = w.writer.Exec
	w.docs = w.dump()
	w.changes()
	return w
}

// newForeignWorld is a world whose application writes with another library.
func newForeignWorld(t testing.TB, r resource.Resource, schema ...string) *world {
	t.Helper()
	w := newWorld(t, r, schema...)
	w.exec = newForeignWriter(t, w.origin.cfg.Path).exec
	return w
}

// dump loads every document of the database.
func (w *world) dump() map[string]string {
	w.t.Helper()
	ids := make(map[string]bool)
	root := w.origin.set.Load().Resources[0].Root.Table
	var keys []string
	for _, c := range w.origin.set.Load().Keys[0] {
		keys = append(keys, "quote("+quoteName(c.Name)+")")
	}
	err := query(w.writer, "SELECT "+strings.Join(keys, "||','||")+" FROM "+quoteName(root), nil, func(s *sqlite3.Stmt) error {
		id, v := changedKey(w.origin.set.Load().Keys[0], s.ColumnText(0), nil)
		if v == oneKey {
			ids[id] = true
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for id := range w.docs {
		ids[id] = true
	}
	list := slices.Sorted(maps.Keys(ids))
	batch, err := w.origin.Load(w.t.Context(), 0, list)
	if err != nil {
		w.t.Fatal(err)
	}
	docs := make(map[string]string)
	for i, id := range list {
		if batch.Docs[i].Err != nil {
			w.t.Fatal(batch.Docs[i].Err)
		}
		docs[id] = string(batch.Docs[i].Body)
	}
	return docs
}

// changes returns the IDs recorded since the last call, and whether a change of
// all documents was recorded.
func (w *world) changes() (ids map[string]bool, all bool, rows int) {
	w.t.Helper()
	ids = make(map[string]bool)
	err := query(w.writer, "SELECT id, key FROM slipstream_change WHERE id > "+strconv.FormatInt(w.last, 10)+" ORDER BY id", nil,
		func(s *sqlite3.Stmt) error {
			rows++
			w.last = s.ColumnInt64(0)
			if s.ColumnType(1) == sqlite3.NULL {
				all = true
				return nil
			}
			switch id, v := changedKey(w.origin.set.Load().Keys[0], s.ColumnText(1), nil); v {
			case oneKey:
				ids[id] = true
			case everything:
				all = true
			}
			return nil
		})
	if err != nil {
		w.t.Fatal(err)
	}
	return ids, all, rows
}

// verify compares what changed since the last call with what was recorded. It
// returns the IDs that changed and how many rows were recorded.
func (w *world) verify(what string) (changed []string, rows int) {
	w.t.Helper()
	before := w.docs
	w.docs = w.dump()
	recorded, all, rows := w.changes()
	for id, after := range w.docs {
		if before[id] == after {
			continue
		}
		changed = append(changed, id)
		if !all && !recorded[id] {
			w.t.Errorf("%s\nchanged document %q without a record of it (recorded: %v)\nbefore %s\nafter  %s",
				what, id, slices.Sorted(maps.Keys(recorded)), before[id], after)
		}
	}
	slices.Sort(changed)
	return changed, rows
}

// do runs statements that must succeed and verifies the result.
func (w *world) do(sql string) (changed []string, rows int) {
	w.t.Helper()
	if err := w.exec(sql); err != nil {
		w.t.Fatalf("%v\nin %s", err, sql)
	}
	return w.verify(sql)
}

// wantChanged runs a statement and checks which documents it changes: otherwise a
// test of the oracle could pass by changing nothing.
func (w *world) wantChanged(sql string, want ...string) {
	w.t.Helper()
	if changed, _ := w.do(sql); !slices.Equal(changed, want) {
		w.t.Errorf("%s\nchanged %q, want %q", sql, changed, want)
	}
}

// orders is a tree of three levels whose foreign keys cascade.
func ordersResource() resource.Resource {
	return resource.Resource{Name: "customers", Key: []string{"id"}, Root: resource.Node{
		Table: "customer", Children: []resource.Child{{Name: "orders", Node: resource.Node{
			Table: "ord", Children: []resource.Child{{Name: "lines", Node: resource.Node{Table: "line"}}},
		}}},
	}}
}

func ordersSchema(action string) []string {
	return []string{
		`CREATE TABLE customer (id INTEGER PRIMARY KEY, email TEXT UNIQUE COLLATE NOCASE)`,
		`CREATE TABLE ord (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customer ` + action + `, ref TEXT UNIQUE)`,
		`CREATE TABLE line (ord INTEGER REFERENCES ord ` + action + `, n INTEGER, what TEXT, PRIMARY KEY (ord, n)) WITHOUT ROWID`,
		`CREATE INDEX ord_customer ON ord (customer)`,
		`INSERT INTO customer VALUES (1, 'a@x'), (2, 'b@x'), (3, 'c@x')`,
		`INSERT INTO ord VALUES (11, 1, 'r11'), (12, 1, 'r12'), (21, 2, 'r21')`,
		`INSERT INTO line VALUES (11, 1, 'pen'), (11, 2, 'ink'), (12, 1, 'cup'), (21, 1, 'hat')`,
	}
}

func TestEveryKindOfStatementIsRecorded(t *testing.T) {
	tests := []struct {
		name, action, pragma, sql string
		want                      []string
	}{
		{"insert of a root", "", "", `INSERT INTO customer VALUES (4, 'd@x')`, []string{"4"}},
		{"update of a root", "", "", `UPDATE customer SET email = 'z@x' WHERE id = 1`, []string{"1"}},
		{"update of a key", "", "", `UPDATE customer SET id = 9 WHERE id = 3`, []string{"3", "9"}},
		{"keys swapped through a third", "", "", `UPDATE customer SET id = id + 10`, []string{"1", "11", "12", "13", "2", "3"}},
		{"delete of a root", "", "", `DELETE FROM customer WHERE id = 3`, []string{"3"}},
		{"delete without WHERE", "", "", `DELETE FROM customer`, []string{"1", "2", "3"}},
		{"delete of all grandchildren", "", "", `DELETE FROM line`, []string{"1", "2"}},
		{"insert of a child", "", "", `INSERT INTO ord VALUES (31, 3, NULL)`, []string{"3"}},
		{"insert of an orphan", "", "", `INSERT INTO ord VALUES (31, NULL, NULL)`, nil},
		{"update of a grandchild", "", "", `UPDATE line SET what = 'fez' WHERE ord = 21`, []string{"2"}},
		{"update of many rows", "", "", `UPDATE line SET what = what || '!'`, []string{"1", "2"}},
		{"child moved", "", "", `UPDATE ord SET customer = 3 WHERE id = 11`, []string{"1", "3"}},
		{"grandchild moved", "", "", `UPDATE line SET ord = 21, n = 7 WHERE ord = 11 AND n = 1`, []string{"1", "2"}},
		{"intermediate key changed", "", "", `UPDATE ord SET id = 77 WHERE id = 21`, []string{"2"}},
		{"intermediate deleted, no action", "", "", `DELETE FROM ord WHERE id = 21`, []string{"2"}},
		{"orphans adopted", "", "", `DELETE FROM ord WHERE id = 21; INSERT INTO ord VALUES (21, 3, 'new')`, []string{"2", "3"}},
		{"root cascade", "ON DELETE CASCADE", "foreign_keys=on", `DELETE FROM customer WHERE id = 1`, []string{"1"}},
		{"intermediate cascade", "ON DELETE CASCADE", "foreign_keys=on", `DELETE FROM ord WHERE id = 21`, []string{"2"}},
		{"intermediate set null", "ON DELETE SET NULL", "foreign_keys=on", `DELETE FROM customer WHERE id = 2`, []string{"2"}},
		{"update cascade of a root", "ON UPDATE CASCADE", "foreign_keys=on", `UPDATE customer SET id = 9 WHERE id = 1`, []string{"1", "9"}},
		{"update cascade of an intermediate", "ON UPDATE CASCADE", "foreign_keys=on", `UPDATE ord SET id = 99 WHERE id = 21`, []string{"2"}},
		{"replace of a root", "", "", `INSERT OR REPLACE INTO customer VALUES (1, 'n@x')`, []string{"1"}},
		{"replace of another root by a unique column", "", "", `INSERT OR REPLACE INTO customer VALUES (5, 'A@X')`, []string{"1", "5"}},
		{"replace of a child of another parent", "", "", `REPLACE INTO ord VALUES (11, 3, 'r11')`, []string{"1", "3"}},
		{"replace by a unique column", "", "", `REPLACE INTO ord VALUES (50, 3, 'r21')`, []string{"2", "3"}},
		{"replace of two rows at once", "", "", `REPLACE INTO ord VALUES (11, 3, 'r21')`, []string{"1", "2", "3"}},
		{"replace that cascades", "ON DELETE CASCADE", "foreign_keys=on", `REPLACE INTO ord VALUES (50, 3, 'r21')`, []string{"2", "3"}},
		{"replace with recursive triggers", "ON DELETE CASCADE", "recursive_triggers=on", `REPLACE INTO ord VALUES (11, 3, 'r21')`, []string{"1", "2", "3"}},
		{"update or replace", "", "", `UPDATE OR REPLACE ord SET ref = 'r21', customer = 3 WHERE id = 11`, []string{"1", "2", "3"}},
		{"update or replace of a rowid", "", "", `UPDATE OR REPLACE ord SET id = 21 WHERE id = 11`, []string{"1", "2"}},
		{"update or replace of a root", "", "", `UPDATE OR REPLACE customer SET email = 'B@x' WHERE id = 1`, []string{"1", "2"}},
		{"update or replace without rowid", "", "", `UPDATE OR REPLACE line SET ord = 21 WHERE ord = 11 AND n = 1`, []string{"1", "2"}},
		{"upsert", "", "", `INSERT INTO ord VALUES (60, 3, 'r21') ON CONFLICT (ref) DO UPDATE SET customer = 3`, []string{"2", "3"}},
		{"upsert that does nothing", "", "", `INSERT INTO ord VALUES (60, 3, 'r21') ON CONFLICT (ref) DO NOTHING`, nil},
		{"update from", "", "", `UPDATE line SET what = o.ref FROM ord AS o WHERE o.id = line.ord AND o.id = 21`, []string{"2"}},
		{"rolled back", "", "", `BEGIN; UPDATE customer SET email = id; ROLLBACK`, nil},
		{"savepoint rolled back", "", "", `BEGIN; SAVEPOINT s; DELETE FROM line; ROLLBACK TO s; UPDATE line SET n = 9 WHERE ord = 21; COMMIT`, []string{"2"}},
		{"order moved while a line is added", "", "", `BEGIN; INSERT INTO line VALUES (11, 9, 'x'); UPDATE ord SET customer = 3 WHERE id = 11; COMMIT`, []string{"1", "3"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, ordersResource(), ordersSchema(tt.action)...)
			if tt.pragma != "" {
				mustExec(t, w.writer, "PRAGMA "+tt.pragma)
			}
			w.wantChanged(tt.sql, tt.want...)
		})
	}
}

// TestTrapsOfReplaceAndAffinity has one case for each condition in the triggers
// that looks superfluous and is not.
func TestTrapsOfReplaceAndAffinity(t *testing.T) {
	tests := []struct {
		name   string
		key    []string
		on     resource.Join
		schema string
		sql    string
		want   []string
	}{
		{"text does not join an integer in a column without affinity", []string{"k"}, resource.Join{Column: "fk", Parent: "v"},
			`CREATE TABLE root (k INTEGER PRIMARY KEY, v); CREATE TABLE child (id INTEGER PRIMARY KEY, fk TEXT);
			INSERT INTO root VALUES (1, 7)`,
			`INSERT INTO child VALUES (1, '7')`, []string{}},
		{"integer joins text with leading zeros", []string{"k"}, resource.Join{Column: "fk", Parent: "k"},
			`CREATE TABLE root (k TEXT PRIMARY KEY); CREATE TABLE child (id INTEGER PRIMARY KEY, fk INTEGER);
			INSERT INTO root VALUES ('7'), ('007')`,
			`INSERT INTO child VALUES (1, 7)`, []string{"007", "7"}},
		{"equal numbers join one row", []string{"k"}, resource.Join{Column: "fk", Parent: "v"},
			`CREATE TABLE root (k INTEGER PRIMARY KEY, v REAL); CREATE TABLE child (id INTEGER PRIMARY KEY, fk UNIQUE);
			INSERT INTO root VALUES (1, 1); INSERT INTO child VALUES (1, 1)`,
			`REPLACE INTO child VALUES (2, 1.0)`, []string{"1"}},
		{"NULL becomes a default that is taken", []string{"k"}, resource.Join{Column: "fk", Parent: "k"},
			`CREATE TABLE root (k INTEGER PRIMARY KEY); CREATE TABLE child (id INTEGER PRIMARY KEY, fk INTEGER, u TEXT NOT NULL DEFAULT 'd' UNIQUE);
			INSERT INTO root VALUES (1), (2); INSERT INTO child VALUES (1, 1, 'd')`,
			`REPLACE INTO child VALUES (2, 2, NULL)`, []string{"1", "2"}},
		{"NULL becomes a default that a generated column holds", []string{"k"}, resource.Join{Column: "fk", Parent: "k"},
			`CREATE TABLE root (k INTEGER PRIMARY KEY);
			CREATE TABLE child (id INTEGER PRIMARY KEY, fk INTEGER, u TEXT NOT NULL DEFAULT 'd', g AS (u || '-') UNIQUE);
			INSERT INTO root VALUES (1), (2); INSERT INTO child VALUES (1, 1, 'd')`,
			`REPLACE INTO child VALUES (2, 2, NULL)`, []string{"1", "2"}},
		{"index stricter than its column", []string{"k"}, resource.Join{Column: "fk", Parent: "k"},
			`CREATE TABLE root (k INTEGER PRIMARY KEY); CREATE TABLE child (id INTEGER PRIMARY KEY, fk INTEGER, u TEXT COLLATE NOCASE);
			CREATE UNIQUE INDEX child_u ON child (u COLLATE BINARY);
			INSERT INTO root VALUES (1), (2); INSERT INTO child VALUES (1, 1, 'a'), (2, 2, 'A')`,
			`UPDATE OR REPLACE child SET u = 'A' WHERE id = 1`, []string{"1", "2"}},
		{"index looser than its column", []string{"k"}, resource.Join{Column: "fk", Parent: "k"},
			`CREATE TABLE root (k INTEGER PRIMARY KEY); CREATE TABLE child (id INTEGER PRIMARY KEY, fk INTEGER, u TEXT);
			CREATE UNIQUE INDEX child_u ON child (u COLLATE NOCASE);
			INSERT INTO root VALUES (1), (2); INSERT INTO child VALUES (1, 1, 'a')`,
			`REPLACE INTO child VALUES (2, 2, 'A')`, []string{"1", "2"}},
		{"second index over the key is looser", []string{"k"}, resource.Join{Column: "fk", Parent: "k"},
			`CREATE TABLE root (k TEXT PRIMARY KEY); CREATE UNIQUE INDEX root_k ON root (k COLLATE NOCASE);
			CREATE TABLE child (id INTEGER PRIMARY KEY, fk TEXT); INSERT INTO root VALUES ('a')`,
			`REPLACE INTO root VALUES ('A')`, []string{"A", "a"}},
		{"second index over a part of the key", []string{"k", "k2"}, resource.Join{Column: "fk", Parent: "k"},
			`CREATE TABLE root (k INTEGER UNIQUE, k2 INTEGER, PRIMARY KEY (k, k2));
			CREATE TABLE child (id INTEGER PRIMARY KEY, fk INTEGER); INSERT INTO root VALUES (1, 1)`,
			`REPLACE INTO root VALUES (1, 2)`, []string{"1:11", "1:12"}},
		{"rowid that no column names", []string{"k"}, resource.Join{Column: "fk", Parent: "k"},
			`CREATE TABLE root (k TEXT PRIMARY KEY); CREATE TABLE child (id INTEGER PRIMARY KEY, fk TEXT);
			INSERT INTO root VALUES ('a'), ('b')`,
			`REPLACE INTO root (rowid, k) VALUES (1, 'c')`, []string{"a", "c"}},
		{"unique index on an expression", []string{"k"}, resource.Join{Column: "fk", Parent: "k"},
			`CREATE TABLE root (k INTEGER PRIMARY KEY); CREATE TABLE child (id INTEGER PRIMARY KEY, fk INTEGER, u TEXT);
			CREATE UNIQUE INDEX child_u ON child (lower(u));
			INSERT INTO root VALUES (1), (2); INSERT INTO child VALUES (1, 1, 'a')`,
			`REPLACE INTO child VALUES (2, 2, 'A')`, []string{"1", "2"}},
		{"ANY in a STRICT table converts nothing", []string{"k"}, resource.Join{Column: "fk", Parent: "v"},
			`CREATE TABLE root (k INTEGER PRIMARY KEY, v ANY) STRICT; CREATE TABLE child (id INTEGER PRIMARY KEY, fk INTEGER);
			INSERT INTO root VALUES (1, '7')`,
			`INSERT INTO child VALUES (1, 7)`, []string{"1"}},
		{"virtual generated join column", []string{"k"}, resource.Join{Column: "fk", Parent: "k"},
			`CREATE TABLE root (k INTEGER PRIMARY KEY);
			CREATE TABLE child (id INTEGER PRIMARY KEY, doc TEXT, fk INTEGER AS (substr(doc, 2)) VIRTUAL);
			INSERT INTO root VALUES (1), (2); INSERT INTO child (id, doc) VALUES (1, 'x01')`,
			`UPDATE child SET doc = 'y02'`, []string{"1", "2"}},
		{"stored generated join column", []string{"k"}, resource.Join{Column: "fk", Parent: "k"},
			`CREATE TABLE root (k INTEGER PRIMARY KEY);
			CREATE TABLE child (id INTEGER PRIMARY KEY, doc TEXT, fk INTEGER AS (substr(doc, 2)) STORED);
			INSERT INTO root VALUES (1), (2); INSERT INTO child (id, doc) VALUES (1, 'x01')`,
			`REPLACE INTO child (id, doc) VALUES (1, 'y02')`, []string{"1", "2"}},
		{"generated key", []string{"k"}, resource.Join{Column: "fk", Parent: "k"},
			`CREATE TABLE root (doc TEXT, k TEXT AS (substr(doc, 2)) VIRTUAL UNIQUE);
			CREATE TABLE child (id INTEGER PRIMARY KEY, fk TEXT); INSERT INTO root (doc) VALUES ('xa')`,
			`UPDATE root SET doc = 'yb'`, []string{"a", "b"}},
		{"NULL becomes the default of the join column", []string{"k"}, resource.Join{Column: "fk", Parent: "k"},
			`CREATE TABLE root (k INTEGER PRIMARY KEY); INSERT INTO root VALUES (1), (2);
			CREATE TABLE child (id INTEGER PRIMARY KEY, fk INTEGER NOT NULL DEFAULT 1)`,
			`REPLACE INTO child VALUES (1, NULL)`, []string{"1"}},
		{"triggers of the application change more rows", []string{"k"}, resource.Join{Column: "fk", Parent: "k"},
			`CREATE TABLE root (k INTEGER PRIMARY KEY, n INTEGER); CREATE TABLE child (id INTEGER PRIMARY KEY, fk INTEGER, u UNIQUE);
			INSERT INTO root VALUES (1, 0), (2, 0), (3, 0); INSERT INTO child VALUES (1, 1, 'a'), (2, 2, 'b');
			CREATE TRIGGER app BEFORE UPDATE ON root WHEN NEW.n > OLD.n BEGIN
				UPDATE OR REPLACE child SET u = 'b', fk = 3 WHERE id = 1; END`,
			`UPDATE root SET n = 1 WHERE k = 3`, []string{"1", "2", "3"}},
		{"writer that does not trust the schema", []string{"k"}, resource.Join{Column: "fk", Parent: "k"},
			`CREATE TABLE root (k INTEGER PRIMARY KEY, n); CREATE TABLE child (id INTEGER PRIMARY KEY, fk); INSERT INTO root VALUES (1, 1)`,
			`PRAGMA trusted_schema = OFF; UPDATE root SET n = 2`, []string{"1"}},
		{"row that enters a partial index", []string{"k"}, resource.Join{Column: "fk", Parent: "k"},
			`CREATE TABLE root (k INTEGER PRIMARY KEY); INSERT INTO root VALUES (1), (2);
			CREATE TABLE child (id INTEGER PRIMARY KEY, fk INTEGER, w, live);
			CREATE UNIQUE INDEX child_w ON child (w) WHERE live;
			INSERT INTO child VALUES (1, 1, 'w', 1), (2, 2, 'w', 0)`,
			`UPDATE OR REPLACE child SET live = 1 WHERE id = 2`, []string{"1", "2"}},
		{"quotes in names and keys", []string{"k"}, resource.Join{Column: "f\"k", Parent: "k"},
			`CREATE TABLE root (k TEXT PRIMARY KEY); CREATE TABLE child (id INTEGER PRIMARY KEY, "f""k" TEXT);
			INSERT INTO root VALUES ('it''s, X''41'',')`,
			`INSERT INTO child VALUES (1, 'it''s, X''41'',')`, []string{"it's, X'41',"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := resource.Resource{Name: "r", Key: tt.key, Root: resource.Node{Table: "root", Children: []resource.Child{
				{Name: "children", Node: resource.Node{Table: "child", On: []resource.Join{tt.on}}}}}}
			for _, create := range []func(testing.TB, resource.Resource, ...string) *world{newWorld, newForeignWorld} {
				w := create(t, r, tt.schema)
				changed, _ := w.do(tt.sql)
				if !slices.Equal(changed, tt.want) {
					t.Errorf("changed %q, want %q", changed, tt.want)
				}
			}
		})
	}
}

// TestEveryPairOfAffinitiesJoinsAlike compares the join of a load with the
// lookup of a trigger for each pair of declared types and values that
// comparisons convert, in both libraries.
func TestEveryPairOfAffinitiesJoinsAlike(t *testing.T) {
	types := []string{"INTEGER", "TEXT", "", "BLOB", "NUMERIC", "REAL"}
	values := []string{"7", "'7'", "'07'", "' 7'", "7.0", "'7.0'", "7.5", "'7.5'", "'7e0'", "x'37'", "'x'", "NULL",
		"9007199254740993", "'9007199254740993'", "9007199254740992.0", "-0.0", "0", "'-0'"}
	// One root with a column of each type, one child table per type, and each
	// child table as a list under each column.
	rootColumns, childTables := "k INTEGER PRIMARY KEY", []string(nil)
	var children []resource.Child
	for i, parentType := range types {
		rootColumns += fmt.Sprintf(", p%d %s", i, parentType)
		childTables = append(childTables, fmt.Sprintf("CREATE TABLE c%d (id INTEGER PRIMARY KEY, fk %s)", i, parentType))
		for j := range types {
			children = append(children, resource.Child{Name: fmt.Sprintf("c%d_p%d", i, j), Node: resource.Node{
				Table: fmt.Sprintf("c%d", i), Columns: []string{"id"},
				On: []resource.Join{{Column: "fk", Parent: fmt.Sprintf("p%d", j)}}}})
		}
	}
	schema := append(childTables, "CREATE TABLE root ("+rootColumns+")")
	for k, v := range values {
		schema = append(schema, fmt.Sprintf("INSERT INTO root VALUES (%d%s)", k, strings.Repeat(", "+v, len(types))))
	}
	r := resource.Resource{Name: "r", Key: []string{"k"}, Root: resource.Node{Table: "root", Columns: []string{"k"}, Children: children}}
	for name, create := range map[string]func(testing.TB, resource.Resource, ...string) *world{"own": newWorld, "foreign": newForeignWorld} {
		t.Run(name, func(t *testing.T) {
			w := create(t, r, schema...)
			changes := 0
			for i := range types {
				for _, v := range values {
					changed, _ := w.do(fmt.Sprintf("DELETE FROM c%d; INSERT INTO c%d VALUES (1, %s)", i, i, v))
					changes += len(changed)
				}
				for _, v := range values {
					changed, _ := w.do(fmt.Sprintf("UPDATE c%d SET fk = %s", i, v))
					changes += len(changed)
				}
			}
			if changes < 500 {
				t.Errorf("only %d documents changed", changes)
			}
		})
	}
}
