package postgres

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// describeField formats a field in one line: "string date?" is a date or null.
func describeField(f resource.Field) string {
	text := f.Type.String()
	for _, t := range f.Also {
		text += "/" + t.String()
	}
	if f.Format != "" {
		text += " " + f.Format
	}
	if f.Enum != nil {
		text += fmt.Sprintf(" %q", f.Enum)
	}
	if f.Items != nil {
		text += " of (" + describeField(*f.Items) + ")"
	}
	if f.Children != nil {
		text += " of " + describeShape(f.Children)
	}
	if f.Nullable {
		text += "?"
	}
	return text
}

func describeShape(s *resource.Shape) string {
	if s == nil {
		return "unknown"
	}
	var fields []string
	for _, f := range s.Fields {
		fields = append(fields, f.Name+": "+describeField(f))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

const number = ` ["NaN" "Infinity" "-Infinity"]`

// shapeSamples are types of columns, their expected shapes, and values. A document
// is loaded for each and must match its shape: see TestShapesHold.
var shapeSamples = []struct {
	sql, shape string
	values     []string
}{
	{"boolean", "boolean?", []string{"true", "NULL"}},
	{"smallint NOT NULL", "integer int32", []string{"-32768"}},
	{"int", "integer int32?", []string{"2147483647"}},
	{"bigint", "integer int64?", []string{"-9223372036854775808"}},
	{"real", "number/string float" + number + "?", []string{"1.5", "'NaN'", "'-Infinity'"}},
	{"double precision", "number/string double" + number + "?", []string{"5e-324", "'Infinity'", "0"}},
	{"numeric", "number/string double" + number + "?", []string{"123456789012345678901234567890.5", "'NaN'", "'-Infinity'"}},
	{"numeric(10,2)", "number/string double" + number + "?", []string{"12.50", "'NaN'"}},
	{"money", "string?", []string{"12.5"}},
	{"oid", "string?", []string{"7"}},
	{"text", "string?", []string{"''", `E'\u2028"\\'`}},
	{"varchar(9)", "string?", []string{"'x '"}},
	{"char(9)", "string?", []string{"'x'"}},
	{`"char"`, "string?", []string{"'x'"}},
	{"name", "string?", []string{"'x'"}},
	{"bytea", "string byte?", []string{`'\x00ff'`, "''", "decode(repeat('ab', 100), 'hex')"}},
	{"uuid", "string uuid?", []string{"'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"}},
	{"date", "string date?", []string{"'2024-02-29'"}},
	{"time", "string?", []string{"'12:30'"}},
	{"timetz", "string?", []string{"'12:30+02'"}},
	{"timestamp", "string?", []string{"'2024-02-29 12:30'", "'infinity'"}},
	{"timestamptz", "string date-time?", []string{"'2024-02-29 12:30:01.25+02'", "'2024-02-29 12:30+02'"}},
	{"interval", "string?", []string{"'-1 year 3 seconds'"}},
	{"json", "any?", []string{`'{"a": [1]}'`, "'7'", "'null'"}},
	{"jsonb NOT NULL", "any", []string{`'[]'`, `'"x"'`, "'null'"}},
	{"xml", "string?", []string{"'<a/>'"}},
	{"bit(3)", "string?", []string{"'101'"}},
	{"inet", "string?", []string{"'10.0.0.1'"}},
	{"int4range", "string?", []string{"'[1,3)'"}},
	{"int4multirange", "string?", []string{"'{[1,3)}'"}},
	{"point", "string?", []string{"'(1,2)'"}},
	{"int2vector", "array of (integer int32?)?", []string{"'1 2'"}},
	{"text[]", "array of (string?)?", []string{`'{}'`, `'{a,NULL,"b c"}'`}},
	{"text[] NOT NULL", "array of (string?)", []string{`'{}'`}},
	{"int[][]", "array of (array of (integer int32?))?", []string{"'{{1,2},{3,NULL}}'", "'{}'"}},
	{"bigint[]", "array of (integer int64?)?", []string{"'{9223372036854775807}'"}},
	{"numeric[]", "array of (number/string double" + number + "?)?", []string{"'{1.5,NaN}'"}},
	{"timestamptz[]", "array of (string date-time?)?", []string{"'{2024-01-01 00:00+02}'"}},
	{"bytea[]", "array of (string?)?", []string{`ARRAY['\x00ff'::bytea]`}},
	{"jsonb[]", "array of (any?)?", []string{`ARRAY['{}'::jsonb, NULL]`}},
	{"mood", `string ["sad" "it's"]?`, []string{"'sad'", `'it''s'`}},
	{"mood[]", `array of (string ["sad" "it's"]?)?`, []string{`'{sad,NULL}'`}},
	{"posint", "integer int32?", []string{"5"}},
	{"posints", "array of (integer int32?)?", []string{"'{5,NULL}'"}},
	{"posint[]", "array of (integer int32?)?", []string{"'{5}'"}},
	{"posints[]", "array of (array of (integer int32?)?)?", []string{`'{"{5,6}",NULL}'`}},
	{"pair", "object?", []string{"ROW(1, 'x')"}},
	{"pair[]", "array of (object?)?", []string{"ARRAY[ROW(1, 'x')::pair, NULL]"}},
	{"lie", "any?", []string{"'true'"}},
	{"span", "string?", []string{"'[1,3)'"}},
}

// shapeTypes are the users' types of shapeSamples. The cast makes documents show a
// label as whatever JSON it spells.
const shapeTypes = `CREATE TYPE mood AS ENUM ('sad', 'it''s'); CREATE DOMAIN posint AS int CHECK (VALUE > 0); CREATE DOMAIN posints AS posint[];
	CREATE TYPE pair AS (a int, b text); CREATE TYPE span AS RANGE (subtype = int); CREATE TYPE lie AS ENUM ('true', '{"a": 1}');
	CREATE FUNCTION tell(lie) RETURNS json LANGUAGE sql IMMUTABLE AS $$ SELECT $1::text::json $$; CREATE CAST (lie AS json) WITH FUNCTION tell(lie);`

func sampleTable(t *testing.T, url string) resource.Resource {
	t.Helper()
	columns, names, longest := []string{"id int PRIMARY KEY"}, []string{"id"}, 0
	for i, s := range shapeSamples {
		columns = append(columns, fmt.Sprintf("c%d %s", i, s.sql))
		names = append(names, fmt.Sprintf("c%d", i))
		longest = max(longest, len(s.values))
	}
	script := shapeTypes + "CREATE TABLE sample (" + strings.Join(columns, ", ") + ");"
	for row := range longest {
		values := []string{fmt.Sprint(row)}
		for _, s := range shapeSamples {
			values = append(values, s.values[row%len(s.values)])
		}
		script += "INSERT INTO sample VALUES (" + strings.Join(values, ", ") + ");"
	}
	runScript(t, url, script)
	return resource.Resource{Name: "samples", Key: []string{"id"}, Root: resource.Node{Table: "sample", Columns: names}}
}

func TestShapeOfEveryType(t *testing.T) {
	pg := freshDatabase(t)
	o := openOrigin(t, Config{URL: pg.url}, sampleTable(t, pg.url))
	fields := o.Shape(0).Fields
	if got := describeField(fields[0]); got != "integer int32" {
		t.Errorf("the key is %s", got)
	}
	for i, s := range shapeSamples {
		f := fields[i+1]
		if got := describeField(f); got != s.shape || f.Name != fmt.Sprintf("c%d", i) || f.SQL == "" {
			t.Errorf("%s: %s of %q is %s, want %s", s.sql, f.Name, f.SQL, got, s.shape)
		}
	}
}

func TestShapeOfTrees(t *testing.T) {
	pg := freshDatabase(t)
	runScript(t, pg.url, `CREATE TABLE dept (id bigint PRIMARY KEY, name text NOT NULL);
		CREATE TABLE emp (id bigint PRIMARY KEY, dept bigint REFERENCES dept, boss bigint);
		CREATE INDEX ON emp (dept);
		CREATE TABLE old (id int PRIMARY KEY, note text NOT NULL); CREATE TABLE older () INHERITS (old)`)
	declare := func(bigintAsString bool) resource.Resource {
		return resource.Resource{Name: "depts", Key: []string{"id"}, BigintAsString: bigintAsString, Root: resource.Node{Table: "dept", Columns: []string{"name", "id"},
			Children: []resource.Child{childOf("emps", resource.Node{Table: "emp"}), childOf("ids", resource.Node{Table: "emp", Columns: []string{"id"}})}}}
	}
	query := resource.Resource{Name: "counts", Query: &resource.Query{
		SQL: "SELECT dept, json_build_object('n', count(*)) FROM emp WHERE dept = ANY ($1) GROUP BY dept",
		Key: []resource.QueryKey{{Name: "dept", Type: "bigint"}}, Depends: []resource.Depend{{Table: "emp", Columns: []string{"dept"}}}}}
	o := openOrigin(t, Config{URL: pg.url}, declare(false), declare(true), query,
		resource.Resource{Name: "olds", Key: []string{"id"}, Root: resource.Node{Table: "old"}})
	for i, want := range []string{
		"{name: string, id: integer int64, emps: array of {id: integer int64, dept: integer int64, boss: integer int64?}, ids: array of {id: integer int64}}",
		"{name: string, id: string int64, emps: array of {id: string int64, dept: string int64, boss: string int64?}, ids: array of {id: string int64}}",
		"unknown",
		"{id: integer int32, note: string?}",
	} {
		if got := describeShape(o.Shape(i)); got != want {
			t.Errorf("shape %d:\n got %s\nwant %s", i, got, want)
		}
	}
}

// The shape is that of the current tables: the stream detects changes of the
// schema.
func TestShapeFollowsTheSchema(t *testing.T) {
	s := startStreamed(t)
	before := s.origin.Shape(0)
	s.exec("ALTER TABLE dept ADD COLUMN budget numeric NOT NULL DEFAULT 1")
	if s.origin.Shape(0) != before {
		t.Fatal("the shape changed before the database was checked")
	}
	s.run()
	const want = "budget: number/string double"
	testkit.Eventually(t, 10*time.Second, func() error {
		if got := describeShape(s.origin.Shape(0)); !strings.Contains(got, want) {
			return fmt.Errorf("got %s, want %s", got, want)
		}
		return nil
	})
	s.exec("ALTER TABLE dept DROP COLUMN budget, DROP COLUMN dname")
	testkit.Eventually(t, 10*time.Second, func() error {
		if got := describeShape(s.origin.Shape(0)); !strings.HasPrefix(got, "{deptno: integer int64, emps: ") {
			return fmt.Errorf("got %s", got)
		}
		return nil
	})
	s.exec("ALTER TABLE dept RENAME COLUMN deptno TO number")
	testkit.Eventually(t, 10*time.Second, func() error {
		if got := s.origin.Shape(0); got != nil {
			return fmt.Errorf("got %s of a resource without its key", describeShape(got))
		}
		return nil
	})
}
