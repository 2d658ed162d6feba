package sqlite

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

func TestValuesOfEveryDeclaredType(t *testing.T) {
	tests := []struct{ declared, sql, want string }{
		{"INTEGER", "42", `42`},
		{"INTEGER", "9223372036854775807", `9223372036854775807`},
		{"INTEGER", "'text'", `"text"`},
		{"INTEGER", "NULL", `null`},
		{"BIGINT", "-9007199254740993", `-9007199254740993`},
		{"BOOLEAN", "1", `true`},
		{"bool", "0", `false`},
		{"BOOLEAN", "2", `2`},
		{"BOOLEAN", "'t'", `"t"`},
		{"REAL", "0.1", `0.1`},
		{"REAL", "1", `1.0`},
		{"REAL", "-0.0", `0.0`}, // SQLite stores the integer 0
		{"DOUBLE", "1e300", `1e+300`},
		{"DOUBLE", "1e20", `100000000000000000000.0`},
		{"DOUBLE", "1.7976931348623157e308", `1.7976931348623157e+308`},
		{"DOUBLE", "5e-324", `5e-324`},
		{"REAL", "9e999", `"Infinity"`},
		{"REAL", "-9e999", `"-Infinity"`},
		{"REAL", "9e999 - 9e999", `null`}, // SQLite has no NaN: it stores NULL
		{"NUMERIC(10,2)", "12.50", `12.5`},
		{"NUMERIC(10,2)", "'12'", `12`},
		{"DECIMAL", "'123456789012345678901234567890.5x'", `"123456789012345678901234567890.5x"`},
		{"TEXT", "'it''s \"x\" \\ /'", `"it's \"x\" \\ /"`},
		{"TEXT", "char(9, 10, 13, 0x1f, 0x7f, 0x2028, 0x1F600)", "\"\\t\\n\\r\\u001f\x7f\u2028\U0001F600\""},
		{"TEXT", "'a' || char(0) || 'b'", `"a\u0000b"`},
		{"TEXT", "CAST(x'61ff62c3' AS TEXT)", "\"a\uFFFDb\uFFFD\""},
		{"TEXT", "''", `""`},
		{"TEXT", "7", `"7"`},
		{"BLOB", "x'00ff10'", `"AP8Q"`},
		{"BLOB", "zeroblob(100)", `"` + strings.Repeat("AAAA", 33) + `AA=="`},
		{"BLOB", "x''", `""`},
		{"BLOB", "'text'", `"text"`},
		{"JSON", `'{"a": [1, null]}'`, `{"a": [1, null]}`},
		{"JSON", `'"x"'`, `"x"`},
		{"JSON", `'7'`, `7`},
		{"JSON", `'{"a":'`, `"{\"a\":"`},
		{"JSON", `'{} {}'`, `"{} {}"`},
		{"JSON", `''`, `""`},
		{"JSON", `'NaN'`, `"NaN"`},
		{"JSON", `'"' || CAST(x'ff' AS TEXT) || '"'`, "\"\\\"\uFFFD\\\"\""},
		{"JSONB", `'[]'`, `[]`},
		{"TIMESTAMPTZ", "'2024-03-31 01:30:00+02:00'", `"2024-03-30T23:30:00Z"`},
		{"timestamp with time zone (3)", "'2024-01-01T00:00:00.250-0530'", `"2024-01-01T05:30:00.250Z"`},
		{"TIMESTAMPTZ", "'2024-01-01 00:00:00+00'", `"2024-01-01T00:00:00Z"`},
		{"TIMESTAMPTZ", "'2024-01-01T00:00:00Z'", `"2024-01-01T00:00:00Z"`},
		{"TIMESTAMPTZ", "'2024-01-01 00:00:00'", `"2024-01-01 00:00:00"`},
		{"TIMESTAMPTZ", "'2024-02-30 00:00:00Z'", `"2024-02-30 00:00:00Z"`},
		{"TIMESTAMPTZ", "'0000-01-01 00:00:00+14'", `"0000-01-01 00:00:00+14"`},
		{"TIMESTAMPTZ", "1700000000", `1700000000`},
		{"TIMESTAMP", "'2024-02-29 12:00:00.5'", `"2024-02-29T12:00:00.5"`},
		{"DATETIME", "'2024-02-29 12:00:00'", `"2024-02-29T12:00:00"`},
		{"DATETIME", "'2023-02-29 12:00:00'", `"2023-02-29 12:00:00"`},
		{"DATETIME", "'2024-02-29 24:00:00'", `"2024-02-29 24:00:00"`},
		{"DATETIME", "'2024-02-29'", `"2024-02-29"`},
		{"DATE", "'2024-02-29'", `"2024-02-29"`},
		{"", "1", `1`},
		{"", "'1'", `"1"`},
	}
	for _, tt := range tests {
		path := newFile(t, "CREATE TABLE r (k INTEGER PRIMARY KEY, v "+tt.declared+")", "INSERT INTO r VALUES (1, "+tt.sql+")")
		o, err := Open(t.Context(), Config{Path: path}, []resource.Resource{{Name: "r", Key: []string{"k"}, Root: resource.Node{Table: "r", Columns: []string{"v"}}}})
		if err != nil {
			t.Fatal(err)
		}
		body := get(t, o, "1")
		o.Close()
		if want := `{"v":` + tt.want + `}`; body != want {
			t.Errorf("%s %s:\n got %s\nwant %s", tt.declared, tt.sql, body, want)
		}
		if !json.Valid([]byte(body)) || !utf8.ValidString(body) {
			t.Errorf("%s %s: not JSON: %q", tt.declared, tt.sql, body)
		}
	}
}

func TestBigintAsString(t *testing.T) {
	path := newFile(t, "CREATE TABLE r (k INTEGER PRIMARY KEY, b BOOLEAN, f REAL, t)", "INSERT INTO r VALUES (1, 1, 2, 3)")
	o := openOrigin(t, Config{Path: path}, resource.Resource{Name: "r", Key: []string{"k"}, BigintAsString: true, Root: resource.Node{Table: "r"}})
	wantDoc(t, o, "1", `{"k":"1","b":true,"f":2.0,"t":"3"}`)
}

func TestNotANumber(t *testing.T) {
	if got := string(appendFloat(nil, math.NaN())); got != `"NaN"` {
		t.Errorf("NaN is %s", got)
	}
}

// FuzzAppendString checks that every text becomes one valid JSON string that
// decodes to the text, with invalid UTF-8 replaced.
func FuzzAppendString(f *testing.F) {
	f.Add("plain")
	f.Add("q\"\\\x00\x1f\x7f\xff\xc0\xaf\u2028\U0001F600")
	f.Fuzz(func(t *testing.T, s string) {
		encoded := appendString(nil, []byte(s))
		var back string
		if err := json.Unmarshal(encoded, &back); err != nil {
			t.Fatalf("%q: %v", encoded, err)
		}
		if want := string([]rune(s)); back != want {
			t.Fatalf("%q reads back as %q, want %q", s, back, want)
		}
	})
}

// FuzzTimestamp checks that every accepted timestamp is valid in RFC 3339.
func FuzzTimestamp(f *testing.F) {
	f.Add("2024-02-29 12:00:00.5+02:00")
	f.Add("0000-01-01T00:00:00Z")
	f.Add("9999-12-31 23:59:59-14")
	f.Fuzz(func(t *testing.T, s string) {
		for _, shape := range []shape{shapeTimestamp, shapeTimestampTZ, shapeJSON} {
			field := field{shape: shape}
			if out := field.appendText(nil, []byte(s)); !json.Valid(out) || !utf8.Valid(out) {
				t.Fatalf("%q became %q", s, out)
			}
		}
		if out, ok := appendUTC(nil, []byte(s)); ok {
			if _, err := parseRFC3339(string(out)); err != nil {
				t.Fatalf("%q became %s: %v", s, out, err)
			}
		}
	})
}

func parseRFC3339(quoted string) (time.Time, error) {
	return time.Parse(time.RFC3339Nano, strings.Trim(quoted, `"`))
}
