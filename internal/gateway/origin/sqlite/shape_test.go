package sqlite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// describeShape formats a shape in one line: "a: string date?" is a date or null.
func describeShape(s *resource.Shape) string {
	if s == nil {
		return "unknown"
	}
	var fields []string
	for _, f := range s.Fields {
		text := f.Name + ": " + f.Type.String()
		for _, t := range f.Also {
			text += "/" + t.String()
		}
		if f.Format != "" {
			text += " " + f.Format
		}
		if f.Enum != nil {
			text += fmt.Sprintf(" %q", f.Enum)
		}
		if f.Children != nil {
			text += " of " + describeShape(f.Children)
		}
		if f.Nullable {
			text += "?"
		}
		fields = append(fields, text)
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// shapedTables are tables, the key of documents, and the expected shape of the
// documents.
var shapedTables = []struct{ sql, key, plain, quoted string }{
	{"CREATE TABLE t (a INTEGER PRIMARY KEY, b INT, c TEXT NOT NULL, d REAL, e NUMERIC(10,2), f BLOB, g, h BOOLEAN, i JSON, j TIMESTAMP, k TIMESTAMPTZ, l DATE, m VARCHAR(9))", "a",
		"{a: integer int64, b: integer/number/string int64?, c: string, d: number/string double?, e: number/string double?, f: string/number?, g: string/number?, " +
			"h: boolean/number/string?, i: any?, j: string/number?, k: string/number?, l: number/string double?, m: string?}",
		"{a: string int64, b: string/number int64?, c: string, d: number/string double?, e: number/string double?, f: string/number?, g: string/number?, " +
			"h: boolean/number/string?, i: any?, j: string/number?, k: string/number?, l: number/string double?, m: string?}"},
	{"CREATE TABLE t (a INT UNIQUE, b TEXT)", "a", "{a: integer int64, b: string?}", "{a: string int64, b: string?}"},
	{"CREATE TABLE t (a BLOB, b TEXT, c INT, PRIMARY KEY (a, b)) WITHOUT ROWID", "a,b", "{a: string byte, b: string, c: integer/number/string int64?}", "{a: string byte, b: string, c: string/number int64?}"},
	{"CREATE TABLE t (a TEXT PRIMARY KEY, b INT, c REAL NOT NULL, d BLOB, e ANY) STRICT", "a",
		`{a: string, b: integer int64?, c: number/string double ["NaN" "Infinity" "-Infinity"], d: string byte?, e: string/number?}`,
		`{a: string, b: string int64?, c: number/string double ["NaN" "Infinity" "-Infinity"], d: string byte?, e: string/number?}`},
}

func TestShape(t *testing.T) {
	for _, tt := range shapedTables {
		declare := func(quoted bool) resource.Resource {
			return resource.Resource{Name: fmt.Sprint("r", quoted), Key: strings.Split(tt.key, ","), BigintAsString: quoted, Root: resource.Node{Table: "t"}}
		}
		o := openOrigin(t, Config{Path: newFile(t, tt.sql)}, declare(false), declare(true))
		for i, want := range []string{tt.plain, tt.quoted} {
			if got := describeShape(o.Shape(i)); got != want {
				t.Errorf("%s:\n got %s\nwant %s", tt.sql, got, want)
			}
		}
	}
}

func TestShapeOfChildren(t *testing.T) {
	o := openOrigin(t, Config{Path: newFile(t, deptSchema...)}, resource.Resource{Name: "depts", Key: []string{"deptno"}, Root: resource.Node{
		Table: "dept", Columns: []string{"dname"}, Children: []resource.Child{{Name: "emps", Node: resource.Node{Table: "emp"}}, {Name: "names", Node: resource.Node{Table: "emp", Columns: []string{"ename"}}}}}})
	const want = "{dname: string, emps: array of {empno: integer int64, ename: string?, deptno: integer/number/string int64}, names: array of {ename: string?}}"
	if got := describeShape(o.Shape(0)); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
