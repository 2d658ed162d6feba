package sqlite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit/shapes"
)

// holds loads documents and validates them.
func holds(t *testing.T, o *Origin, i int, ids []string) {
	t.Helper()
	batch, err := o.Load(t.Context(), cache.ResourceID(i), ids)
	if err != nil {
		t.Fatal(err)
	}
	shapes.Hold(t, o.set.Load().Resources[i].Name, o.KeyColumns(i), o.Shape(i), batch.Docs)
}

// Every declared type, holding values of every storage class that SQLite accepts.
func TestShapesHold(t *testing.T) {
	declared := []string{"INTEGER", "BIGINT", "INT NOT NULL", "BOOLEAN", "BOOL NOT NULL", "REAL", "DOUBLE PRECISION", "NUMERIC(10,2)", "DECIMAL", "TEXT", "VARCHAR(9) NOT NULL",
		"BLOB", "BLOB NOT NULL", "JSON", "JSONB NOT NULL", "TIMESTAMP", "DATETIME NOT NULL", "TIMESTAMPTZ", "timestamp with time zone (3)", "DATE", "UUID", "", "NOT NULL", "STRING", "ANY"}
	values := []string{"0", "1", "-9223372036854775808", "9007199254740993", "1.5", "2.0", "1e300", "9e999", "-9e999", "''", "'text'", "'12'", "'1e3'", "'true'", "'null'",
		"'{\"a\": [1]}'", "'{broken'", "'2024-02-29 12:30:00.5'", "'2024-02-29T12:30:00+02:00'", "'2024-02-29'", "x''", "x'00ff'", "CAST(x'ff' AS TEXT)", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"}
	script := []string{"PRAGMA foreign_keys = OFF"}
	columns := []string{"id INTEGER PRIMARY KEY"}
	for i, d := range declared {
		columns = append(columns, fmt.Sprintf("c%d %s", i, d))
	}
	script = append(script, "CREATE TABLE loose ("+strings.Join(columns, ", ")+")",
		"CREATE TABLE part (id INTEGER PRIMARY KEY, loose INT REFERENCES loose, v); CREATE INDEX part_loose ON part (loose)",
		"CREATE TABLE exact (id TEXT PRIMARY KEY, i INTEGER, r REAL NOT NULL, t TEXT, b BLOB, a ANY) STRICT",
		"CREATE TABLE pair (a BLOB, b INT, c REAL, PRIMARY KEY (a, b)) WITHOUT ROWID")
	var ids, texts, pairs []string
	for row, v := range values {
		all := strings.Repeat(", "+v, len(declared))
		script = append(script, fmt.Sprintf("INSERT INTO loose VALUES (%d%s)", row, all),
			fmt.Sprintf("INSERT INTO part (loose, v) VALUES (%d, %s), (%d, NULL)", row, v, row),
			// Values that a STRICT table refuses are skipped.
			fmt.Sprintf("INSERT OR IGNORE INTO exact VALUES ('r%d', %d, %d, CAST(%s AS TEXT), CAST(%s AS BLOB), %s)", row, row, row, v, v, v),
			fmt.Sprintf("INSERT INTO pair VALUES (x'%02x', %d, %s)", row, row, v))
		ids = append(ids, fmt.Sprint(row))
		texts = append(texts, fmt.Sprintf("r%d", row))
		pairs = append(pairs, resource.JoinID([]string{fmt.Sprintf("%02x", row), fmt.Sprint(row)}))
	}
	script = append(script, "INSERT INTO exact VALUES ('inf', NULL, 9e999, NULL, NULL, NULL), ('sum', 9223372036854775807, 0.5, 7, x'', 1.5)")
	var resources []resource.Resource
	for _, quoted := range []bool{false, true} {
		suffix := map[bool]string{true: "q"}[quoted]
		part := resource.Child{Name: "parts", Node: resource.Node{Table: "part"}}
		resources = append(resources,
			resource.Resource{Name: "looses" + suffix, Key: []string{"id"}, BigintAsString: quoted, Root: resource.Node{Table: "loose", Children: []resource.Child{part}}},
			resource.Resource{Name: "exacts" + suffix, Key: []string{"id"}, BigintAsString: quoted, Root: resource.Node{Table: "exact"}},
			resource.Resource{Name: "pairs" + suffix, Key: []string{"a", "b"}, BigintAsString: quoted, Root: resource.Node{Table: "pair"}})
	}
	o := openOrigin(t, Config{Path: newFile(t, script...)}, resources...)
	for i := range resources {
		switch i % 3 {
		case 0:
			holds(t, o, i, append(ids, "99"))
		case 1:
			holds(t, o, i, append(texts, "inf", "sum", "none"))
		default:
			holds(t, o, i, pairs)
		}
	}
}
