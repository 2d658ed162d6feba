package sqlite

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

func TestChangedKey(t *testing.T) {
	integer := resource.KeyColumn{Name: "i", Kind: resource.Integer}
	text := resource.KeyColumn{Name: "t", Kind: resource.Text}
	blob := resource.KeyColumn{Name: "b", Kind: resource.Bytes}
	tests := []struct {
		columns  []resource.KeyColumn
		literals string
		id       string
		verdict  verdict
	}{
		{[]resource.KeyColumn{integer}, "7", "7", oneKey},
		{[]resource.KeyColumn{integer}, "-9223372036854775808", "-9223372036854775808", oneKey},
		{[]resource.KeyColumn{integer}, "-9.22337203685477580e+18", "", everything},
		{[]resource.KeyColumn{integer}, "1.5", "", everything},
		{[]resource.KeyColumn{integer}, "007", "", everything},
		{[]resource.KeyColumn{integer}, "NULL", "", noKey},
		{[]resource.KeyColumn{integer}, "'x'", "", noKey},
		{[]resource.KeyColumn{integer}, "' 7 '", "", everything},
		{[]resource.KeyColumn{integer}, "X'37'", "", noKey},
		{[]resource.KeyColumn{integer}, "7,", "", everything},
		{[]resource.KeyColumn{integer}, "", "", everything},
		{[]resource.KeyColumn{text}, "'it''s'", "it's", oneKey},
		{[]resource.KeyColumn{text}, "''''", "'", oneKey},
		{[]resource.KeyColumn{text}, "''", "", noKey},
		{[]resource.KeyColumn{text}, "'open", "", everything},
		{[]resource.KeyColumn{text}, "'a'b", "", everything},
		{[]resource.KeyColumn{text}, "'\xff'", "", noKey},
		{[]resource.KeyColumn{text}, "7", "", everything},
		{[]resource.KeyColumn{text}, "X'61'", "", noKey},
		{[]resource.KeyColumn{text}, "'" + strings.Repeat("x", resource.MaxTextKey+1) + "'", "", noKey},
		{[]resource.KeyColumn{blob}, "X'0AFF'", "0aff", oneKey},
		{[]resource.KeyColumn{blob}, "X'0'", "", everything},
		{[]resource.KeyColumn{blob}, "X'0AFF", "", everything},
		{[]resource.KeyColumn{blob}, "X''", "", noKey},
		{[]resource.KeyColumn{blob}, "7", "", noKey},
		{[]resource.KeyColumn{text, integer, blob}, "'a,''b',7,X'01'", "4:a,'b1:701", oneKey},
		{[]resource.KeyColumn{text, integer}, "'a',NULL", "", noKey},
		{[]resource.KeyColumn{integer, text}, "NULL,'open", "", everything},
		{[]resource.KeyColumn{text, integer}, "'a'", "", everything},
		{[]resource.KeyColumn{text, integer}, "'a' 7", "", everything},
	}
	for _, tt := range tests {
		id, v := changedKey(tt.columns, tt.literals, nil)
		if id != tt.id || v != tt.verdict {
			t.Errorf("changedKey(%v, %.60q) = %q, %d; want %q, %d", tt.columns, tt.literals, id, v, tt.id, tt.verdict)
		}
	}
}

// FuzzChangedKey lets SQLite write the literals: a value that a path can express
// must become the ID of that path.
func FuzzChangedKey(f *testing.F) {
	f.Add("it's, X'41', NULL", int64(-7), []byte{0, 255})
	f.Add("\x00", int64(0), []byte{})
	db, err := sqlite3.Open(":memory:")
	if err != nil {
		f.Fatal(err)
	}
	defer db.Close()
	stmt, _, err := db.Prepare("SELECT quote(?)||','||quote(?)||','||quote(?)")
	if err != nil {
		f.Fatal(err)
	}
	columns := []resource.KeyColumn{{Name: "t", Kind: resource.Text}, {Name: "i", Kind: resource.Integer}, {Name: "b", Kind: resource.Bytes}}
	f.Fuzz(func(t *testing.T, text string, n int64, raw []byte) {
		if stmt.BindText(1, text) != nil || stmt.BindInt64(2, n) != nil || stmt.BindBlob(3, raw) != nil {
			return // too large for SQLite
		}
		if !stmt.Step() {
			t.Fatal(stmt.Err())
		}
		literals := stmt.ColumnText(0)
		stmt.Reset()
		want, err := resource.ID(columns, []string{text, strconv.FormatInt(n, 10), fmt.Sprintf("%x", raw)})
		got, v := changedKey(columns, literals, nil)
		switch {
		case err == nil && (v != oneKey || got != want):
			t.Fatalf("%q: got %q, %d; want %q", literals, got, v, want)
		case v == everything:
			t.Fatalf("%q cannot be read", literals)
		}
	})
}
