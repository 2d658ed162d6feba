package resource

import (
	"errors"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCheckAcceptsOneFormOnly(t *testing.T) {
	tests := []struct {
		kind   Kind
		accept []string
		refuse []string
	}{
		{Integer,
			[]string{"0", "7", "-7", "10", "9223372036854775807", "-9223372036854775808"},
			[]string{"", "-", "+7", "007", "-0", "-07", "00", "7 ", " 7", "7.0", "7e0", "0x7", "1_000",
				"9223372036854775808", "-9223372036854775809", "99999999999999999999999", "٧", "7\x00"}},
		{Text,
			[]string{"a", " ", "007", "ÄÖ", "a/b", "..", "%41", "'; DROP TABLE dept; --", strings.Repeat("x", MaxTextKey)},
			[]string{"", "a\x00b", "\xff", "\xc0\xaf", "\xed\xa0\x80", strings.Repeat("x", MaxTextKey+1)}},
		{Bytes,
			[]string{"00", "ff", "0a1b", strings.Repeat("ab", MaxBytesKey)},
			[]string{"", "f", "FF", "0A", "0x00", "gg", "0 0", strings.Repeat("ab", MaxBytesKey+1)}},
		{Decimal,
			[]string{"0", "7", "-7", "10", "0.5", "-0.5", "100.05", "99999999999999999999999", strings.Repeat("9", MaxDecimalKey)},
			[]string{"", "-", ".", "+7", "007", "-0", "-0.0", "0.0", "1.0", "1.50", "1.", ".5", "-.5", "1e3", "1E3", "1,5", "0x7",
				"1.2.3", "--1", "1-", " 1", "1 ", "NaN", "Infinity", "-Infinity", "٧", "1\x00", strings.Repeat("9", MaxDecimalKey+1)}},
		{UUID,
			[]string{"00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
			[]string{"", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc999c0b4ef8bb6d6bb9bd380a11", "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
				"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a111", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1g",
				"a0eebc99-9c0b4-ef8-bb6d-6bb9bd380a11"}},
		{Date,
			[]string{"0001-01-01", "1999-12-31", "2000-02-29", "2024-02-29", "9999-12-31"},
			[]string{"", "0000-01-01", "2023-02-29", "1900-02-29", "2024-13-01", "2024-00-01", "2024-01-00", "2024-04-31", "2024-1-1",
				"24-01-01", "10000-01-01", "2024/01/01", "2024-01-01 BC", "20240101", "infinity", "2024-01-01T00:00:00", "-001-01-01"}},
		{Timestamp,
			[]string{"0001-01-01T00:00:00.000000", "2024-02-29T23:59:59.999999"},
			[]string{"", "2024-02-29", "2024-02-29T23:59:59", "2024-02-29T23:59:59.9", "2024-02-29 23:59:59.999999", "2024-02-29T24:00:00.000000",
				"2024-02-29T23:60:00.000000", "2024-02-29T23:59:60.000000", "2023-02-29T23:59:59.999999", "2024-02-29T23:59:59.999999Z",
				"2024-02-29t23:59:59.999999", "0000-02-29T23:59:59.999999", "infinity"}},
		{TimestampTZ,
			[]string{"0001-01-01T00:00:00.000000Z", "2024-02-29T23:59:59.999999Z"},
			[]string{"", "Z", "2024-02-29T23:59:59.999999", "2024-02-29T23:59:59.999999z", "2024-02-29T23:59:59.999999+00:00",
				"2024-02-29T23:59:59Z", "2024-02-29T23:59:59.999999ZZ", "2024-02-30T23:59:59.999999Z"}},
		{Boolean, []string{"true", "false"}, []string{"", "t", "f", "TRUE", "True", "1", "0", "yes", "true "}},
		{Kind(0), nil, []string{"7"}},
	}
	for _, tt := range tests {
		column := KeyColumn{Name: "k", Kind: tt.kind}
		for _, s := range tt.accept {
			if err := column.Check(s); err != nil {
				t.Errorf("%v: Check(%.50q) = %v, want it accepted", tt.kind, s, err)
			}
		}
		for _, s := range tt.refuse {
			var keyErr *KeyError
			if err := column.Check(s); !errors.As(err, &keyErr) {
				t.Errorf("%v: Check(%.50q) = %v, want a KeyError", tt.kind, s, err)
			} else if keyErr.Column != "k" {
				t.Errorf("%v: Check(%.50q) names column %q", tt.kind, s, keyErr.Column)
			}
		}
	}
}

func TestKeyErrorIsSafeToPrint(t *testing.T) {
	err := KeyColumn{Name: "k", Kind: Integer}.Check("1\r\nlevel=info msg=\x1b[31mforged" + strings.Repeat("9", 5000))
	text := err.Error()
	if len(text) > 250 || strings.ContainsAny(text, "\r\n\x1b") {
		t.Errorf("message of %d bytes: %q", len(text), text)
	}
}

func TestIDOfOneColumnIsTheSegment(t *testing.T) {
	columns := []KeyColumn{{"id", Integer}}
	segments := []string{"42"}
	if allocs := testing.AllocsPerRun(100, func() {
		if id, err := ID(columns, segments); err != nil || id != "42" {
			t.Fatal(id, err)
		}
	}); allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}

func TestIDWithWrongNumberOfSegments(t *testing.T) {
	columns := []KeyColumn{{"a", Integer}, {"b", Text}}
	for _, segments := range [][]string{nil, {"1"}, {"1", "x", "y"}} {
		_, err := ID(columns, segments)
		if err == nil || !strings.Contains(err.Error(), "expected 2 (a/b)") {
			t.Errorf("ID(%q) = %v", segments, err)
		}
	}
}

func TestSplitRefusesWhatIDNeverWrites(t *testing.T) {
	columns := []KeyColumn{{"a", Text}, {"b", Text}}
	for _, id := range []string{"", "x", ":x", "01:ax", "+1:ax", "2:a", "9999999:a", "1:a", "0:a", "-1:a", "1"} {
		if segments, err := Split(columns, id); err == nil {
			t.Errorf("Split(%q) = %q, want an error", id, segments)
		}
	}
}

func TestPathIsOneSegmentAColumn(t *testing.T) {
	columns := []KeyColumn{{"a", Text}, {"b", Text}}
	for _, tt := range []struct{ a, b, path string }{
		{"x", "y", "/r/x/y"},
		{"a/b", "c?d#e", "/r/a%2Fb/c%3Fd%23e"},
		{"..", ".", "/r/%2E%2E/%2E"},
		{"ä %", "'", "/r/%C3%A4%20%25/%27"},
	} {
		id, err := ID(columns, []string{tt.a, tt.b})
		if err != nil {
			t.Fatal(err)
		}
		path, err := Path("r", columns, id)
		if err != nil || path != tt.path {
			t.Errorf("Path(%q, %q) = %q, %v; want %q", tt.a, tt.b, path, err, tt.path)
		}
	}
}

// FuzzKey checks the three properties that keys need: Split is the inverse of ID,
// two lists of segments never share an ID, and the path parses to the same key.
func FuzzKey(f *testing.F) {
	f.Add("1", "a", "1", "b")
	f.Add("1:a", "b", "1", "a:b")
	f.Add("12", "3:x", "1", "23:x")
	f.Add("ff", "..", "ff", "%2E%2E")
	f.Add("-1.5", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "1.5", "2024-02-29")
	f.Add("2024-02-29T23:59:59.999999", "2024-02-29T23:59:59.999999Z", "true", "false")
	kinds := []Kind{Integer, Text, Bytes, Decimal, UUID, Date, Timestamp, TimestampTZ, Boolean}
	f.Fuzz(func(t *testing.T, a1, a2, b1, b2 string) {
		for _, k1 := range kinds {
			for _, k2 := range kinds {
				columns := []KeyColumn{{"x", k1}, {"y", k2}}
				a, errA := ID(columns, []string{a1, a2})
				b, errB := ID(columns, []string{b1, b2})
				if errA == nil && errB == nil && (a == b) != (a1 == b1 && a2 == b2) {
					t.Fatalf("(%q,%q) and (%q,%q): IDs %q and %q", a1, a2, b1, b2, a, b)
				}
				if errA != nil {
					continue
				}
				back, err := Split(columns, a)
				if err != nil || !slices.Equal(back, []string{a1, a2}) {
					t.Fatalf("Split(%q) = %q, %v; want %q, %q", a, back, err, a1, a2)
				}
				path, err := Path("r", columns, a)
				if err != nil {
					t.Fatal(err)
				}
				parts := strings.Split(path, "/")
				if len(parts) != 4 {
					t.Fatalf("path %q", path)
				}
				for i, want := range []string{a1, a2} {
					if got, err := url.PathUnescape(parts[2+i]); err != nil || got != want {
						t.Fatalf("path %q leads to %q, %v; want %q", path, got, err, want)
					}
				}
			}
		}
		// An ID from outside is either refused or the same as the result of ID.
		columns := []KeyColumn{{"x", Text}, {"y", Text}}
		if segments, err := Split(columns, a1); err == nil {
			if id, err := ID(columns, segments); err != nil || id != a1 {
				t.Fatalf("Split(%q) = %q, whose ID is %q, %v", a1, segments, id, err)
			}
		}
	})
}

// FuzzCheckIsCanonical compares with the parsers of the standard library: accepted
// text is what they format, so no value has two keys.
func FuzzCheckIsCanonical(f *testing.F) {
	for _, s := range []string{"-0", "1.50", "10", "2024-02-30", "2024-02-29T23:59:59.999999Z", "-9223372036854775808", "0.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		accepted := func(k Kind) bool { return KeyColumn{Name: "k", Kind: k}.Check(s) == nil }
		if accepted(Integer) && !accepted(Decimal) {
			t.Errorf("%q is an integer and not a decimal", s)
		}
		if accepted(Decimal) {
			r, ok := new(big.Rat).SetString(s)
			if !ok {
				t.Fatalf("%q is accepted but is not a number", s)
			}
			_, fraction, _ := strings.Cut(s, ".")
			if back := r.FloatString(len(fraction)); back != s {
				t.Errorf("%q is accepted, its value is written %q", s, back)
			}
		}
		for kind, layout := range map[Kind]string{
			Date: "2006-01-02", Timestamp: "2006-01-02T15:04:05.000000", TimestampTZ: "2006-01-02T15:04:05.000000Z",
		} {
			moment, err := time.Parse(layout, s)
			canonical := err == nil && moment.Year() >= 1 && moment.Format(layout) == s
			if got := accepted(kind); got != canonical {
				t.Errorf("%v: Check(%q) accepts: %v, want %v", kind, s, got, canonical)
			}
		}
	})
}
