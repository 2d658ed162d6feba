package depts

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3"
)

func TestDocumentsHaveTheSizeOfTheArticle(t *testing.T) {
	for n := int64(1); n <= Count; n++ {
		d := Make(n)
		body := d.AppendJSON(nil)
		if len(body) < 1600 || len(body) > 1800 {
			t.Fatalf("department %d has %d bytes", n, len(body))
		}
		if !json.Valid(body) {
			t.Fatalf("department %d: %s", n, body)
		}
		if again := Make(n); string(again.AppendJSON(nil)) != string(body) {
			t.Fatalf("department %d differs when made again", n)
		}
	}
}

func TestWriteSQLite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "depts.db")
	if err := WriteSQLite(path, 25); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for query, want := range map[string]int64{
		"select count(*) from dept":                         25,
		"select count(*) from emp":                          250,
		"select count(*) from emp where comm = 0":           0,
		"select count(*) from emp e natural join dept":      250,
		"select min(deptno) * 1000 + max(deptno) from dept": 1025,
	} {
		stmt, _, err := db.Prepare(query)
		if err != nil {
			t.Fatal(err)
		}
		if !stmt.Step() || stmt.ColumnInt64(0) != want {
			t.Errorf("%s: %d, want %d", query, stmt.ColumnInt64(0), want)
		}
		stmt.Close()
	}
}
