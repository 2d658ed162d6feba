package pages

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3"
)

func TestDocumentsAreRowsOfTheTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pages.db")
	if err := WriteSQLite(path); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, _, err := db.Prepare("select code, body from page order by code")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for ; rows.Step(); n++ {
		var got struct{ Code, Body string }
		if err := json.Unmarshal(Document(n), &got); err != nil {
			t.Fatal(err)
		}
		if got.Code != rows.ColumnText(0) || got.Body != rows.ColumnText(1) || got.Code != Code(n) {
			t.Fatalf("row %d is %.40q %.40q, the document has %.40q %.40q", n, rows.ColumnText(0), rows.ColumnText(1), got.Code, got.Body)
		}
		if size := len(Document(n)); size != 1600 {
			t.Fatalf("document %d has %d bytes, want 1600", n, size)
		}
	}
	if n != Count || len(Values()) != Count {
		t.Errorf("%d rows and %d values, want %d", n, len(Values()), Count)
	}
}
