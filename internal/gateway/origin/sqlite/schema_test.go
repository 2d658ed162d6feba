package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

func TestOpenSaysWhatIsWrongWithTheFile(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.db")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, want string }{
		{filepath.Join(dir, "missing.db"), "does not exist"},
		{filepath.Join(dir, "no", "such", "dir.db"), "does not exist"},
		{dir, "not a regular file"},
		{garbage, "not a database"},
	} {
		_, err := Open(t.Context(), Config{Path: tt.path}, []resource.Resource{deptResource()})
		if !errors.Is(err, cache.ErrUnavailable) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.path) {
			t.Errorf("Open(%s) = %v, want ErrUnavailable with %q", tt.path, err, tt.want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "missing.db")); err == nil {
		t.Error("Open created a file")
	}
	if _, err := Open(t.Context(), Config{}, nil); err == nil || errors.Is(err, cache.ErrUnavailable) {
		t.Errorf("Open without a path = %v", err)
	}
}

func TestDatabaseInAnotherEncodingIsRefused(t *testing.T) {
	path := newFile(t, `PRAGMA encoding = 'UTF-16le'`, `CREATE TABLE dept (deptno INTEGER PRIMARY KEY)`)
	_, err := Open(t.Context(), Config{Path: path}, []resource.Resource{deptResource()})
	if err == nil || !strings.Contains(err.Error(), "UTF-16le") || errors.Is(err, cache.ErrUnavailable) {
		t.Errorf("Open = %v", err)
	}
}

func TestSchemaErrors(t *testing.T) {
	node := func(table string, on []resource.Join, children ...resource.Child) resource.Node {
		return resource.Node{Table: table, On: on, Children: children}
	}
	child := func(table string, on ...resource.Join) resource.Child {
		return resource.Child{Name: "list", Node: node(table, on)}
	}
	pk := func(r resource.Node) resource.Resource { return resource.Resource{Key: []string{"id"}, Root: r} }
	schema := []string{
		`CREATE TABLE dept (id INTEGER PRIMARY KEY, dname TEXT)`,
		`CREATE TABLE emp (id INTEGER PRIMARY KEY, dept INTEGER REFERENCES dept, boss INTEGER REFERENCES emp, ci TEXT COLLATE NOCASE)`,
		`CREATE TABLE two (id INTEGER PRIMARY KEY, a INTEGER REFERENCES dept, b INTEGER REFERENCES dept (id))`,
		`CREATE TABLE badkeys (id, f FLOAT PRIMARY KEY, n NUMERIC UNIQUE, c TEXT COLLATE NOCASE UNIQUE, r TEXT COLLATE RTRIM UNIQUE, d DATE UNIQUE,
			notunique INTEGER, part INTEGER, x INTEGER, y INTEGER, UNIQUE (x, y))`,
		`CREATE UNIQUE INDEX badkeys_part ON badkeys (part) WHERE part > 0`,
		`CREATE VIEW v AS SELECT id FROM dept`,
		`CREATE TABLE shadowed (rowid INTEGER, _rowid_ INTEGER, oid INTEGER, id TEXT PRIMARY KEY)`,
	}
	for i := range 6 {
		schema = append(schema, "CREATE TABLE l"+string(rune('0'+i))+" (id INTEGER PRIMARY KEY)")
	}
	deep := resource.Child{Name: "d", Node: node("l5", []resource.Join{{Column: "id", Parent: "id"}})}
	for _, table := range []string{"l4", "l3", "l2", "l1"} {
		deep = resource.Child{Name: "d", Node: node(table, []resource.Join{{Column: "id", Parent: "id"}}, deep)}
	}
	tests := []struct {
		name     string
		resource resource.Resource
		want     []string
	}{
		{"unknown table", pk(node("detp", nil)), []string{`no table "detp"`, `did you mean "dept"?`}},
		{"view", pk(node("v", nil)), []string{`"v" is a view`}},
		{"virtual table", pk(node("fts", nil)), []string{"virtual table"}},
		{"system table", pk(node("sqlite_schema", nil)), []string{"system"}},
		{"change table", pk(node("slipstream_change", nil)), []string{"slipstream_change"}},
		{"unknown key", resource.Resource{Key: []string{"idd"}, Root: node("dept", nil)}, []string{`no column "idd"`, `did you mean "id"?`, "dname"}},
		{"no key", resource.Resource{Root: node("dept", nil)}, []string{"no key"}},
		{"key twice", resource.Resource{Key: []string{"id", "ID"}, Root: node("dept", nil)}, []string{"listed twice"}},
		{"unknown column", resource.Resource{Key: []string{"id"}, Root: resource.Node{Table: "dept", Columns: []string{"id", "name"}}}, []string{`no column "name"`, `did you mean "dname"?`}},
		{"column twice", resource.Resource{Key: []string{"id"}, Root: resource.Node{Table: "dept", Columns: []string{"id", "ID"}}}, []string{"listed twice"}},
		{"untyped key", resource.Resource{Key: []string{"id"}, Root: node("badkeys", nil)}, []string{"no declared type"}},
		{"float key", resource.Resource{Key: []string{"f"}, Root: node("badkeys", nil)}, []string{"FLOAT", "floating-point"}},
		{"numeric key", resource.Resource{Key: []string{"n"}, Root: node("badkeys", nil)}, []string{"NUMERIC"}},
		{"date key", resource.Resource{Key: []string{"d"}, Root: node("badkeys", nil)}, []string{"DATE"}},
		{"NOCASE key", resource.Resource{Key: []string{"c"}, Root: node("badkeys", nil)}, []string{"NOCASE", "several spellings"}},
		{"RTRIM key", resource.Resource{Key: []string{"r"}, Root: node("badkeys", nil)}, []string{"RTRIM"}},
		{"key that is not unique", resource.Resource{Key: []string{"notunique"}, Root: node("badkeys", nil)}, []string{"does not name one row"}},
		{"key unique in a part", resource.Resource{Key: []string{"part"}, Root: node("badkeys", nil)}, []string{"does not name one row"}},
		{"half of a unique key", resource.Resource{Key: []string{"x"}, Root: node("badkeys", nil)}, []string{"does not name one row"}},
		{"no foreign key", pk(node("dept", nil, child("l1"))), []string{"no foreign key leads from table l1 to dept"}},
		{"two foreign keys", pk(node("dept", nil, child("two"))), []string{"2 foreign keys", "(a) references (id)", "(b) references (id)"}},
		{"cycle", pk(node("emp", nil, child("emp", resource.Join{Column: "boss", Parent: "id"}))), []string{"contains itself"}},
		{"too deep", pk(node("l0", nil, deep)), []string{"nested 5 levels deep, at most 4"}},
		{"unknown join column", pk(node("dept", nil, child("emp", resource.Join{Column: "deptt", Parent: "id"}))), []string{`did you mean "dept"?`}},
		{"unknown join parent", pk(node("dept", nil, child("emp", resource.Join{Column: "dept", Parent: "ix"}))), []string{`table dept has no column "ix"`}},
		{"collated join", pk(node("dept", nil, child("emp", resource.Join{Column: "ci", Parent: "dname"}))), []string{"emp.ci has collation NOCASE"}},
		{"joined root", pk(node("dept", []resource.Join{{Column: "id", Parent: "id"}})), []string{"nothing to be joined to"}},
		{"member twice", resource.Resource{Key: []string{"id"}, Root: resource.Node{Table: "dept", Children: []resource.Child{
			{Name: "dname", Node: resource.Node{Table: "emp"}}}}}, []string{`two members called "dname"`}},
		{"unknown order", resource.Resource{Key: []string{"id"}, Root: resource.Node{Table: "dept", Children: []resource.Child{
			{Name: "emps", Node: resource.Node{Table: "emp", Order: []resource.Order{{Column: "bos"}}}}}}}, []string{`did you mean "boss"?`}},
		{"no name for a row", pk(node("shadowed", nil)), []string{"rowid, _rowid_ and oid"}},
	}
	path := newFile(t, schema...)
	// A module that the driver does not have.
	if err := newForeignWriter(t, path).exec(`CREATE VIRTUAL TABLE fts USING fts5(x)`); err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.resource.Name, tt.resource.Line = "things", 7
			_, err := Open(t.Context(), Config{Path: path}, []resource.Resource{tt.resource})
			var schemaErr *origin.SchemaError
			if !errors.As(err, &schemaErr) || errors.Is(err, cache.ErrUnavailable) {
				t.Fatalf("Open = %v, want a SchemaError", err)
			}
			if schemaErr.Resource != "things" || schemaErr.Line != 7 {
				t.Errorf("error is of %s, line %d", schemaErr.Resource, schemaErr.Line)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\ndoes not say %q", err, want)
				}
			}
		})
	}
}

func TestEveryBadResourceIsNamedAtOnce(t *testing.T) {
	path := newFile(t, deptSchema...)
	a, b := deptResource(), deptResource()
	a.Name, a.Root.Table = "first", "nothing"
	b.Name, b.Key = "second", []string{"nobody"}
	_, err := Open(t.Context(), Config{Path: path}, []resource.Resource{a, deptResource(), b})
	if err == nil || !strings.Contains(err.Error(), "first") || !strings.Contains(err.Error(), "second") {
		t.Errorf("Open = %v", err)
	}
}

func TestWarnings(t *testing.T) {
	schema := []string{deptSchema[0], deptSchema[1], `CREATE UNIQUE INDEX emp_name ON emp (lower(ename))`}
	o := openOrigin(t, Config{Path: newFile(t, schema...)}, deptResource())
	text := strings.Join(o.Warnings(), "\n")
	for _, want := range []string{"no index of table emp starts with its join column deptno", "unique index over an expression"} {
		if !strings.Contains(text, want) {
			t.Errorf("warnings %q do not say %q", text, want)
		}
	}
	if o := openOrigin(t, Config{Path: newFile(t, deptSchema...)}, deptResource()); len(o.Warnings()) != 0 {
		t.Errorf("warnings %q about a sound schema", o.Warnings())
	}
}
