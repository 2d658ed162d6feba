package idl

import (
	"fmt"
	"strings"
	"testing"
)

// largeSource returns 10,000 lines of IDL: 625 structs of 12 fields interspersed with two enums, a
// service and constants.
func largeSource() string {
	var b strings.Builder
	b.WriteString("namespace go large\n\nenum Color { RED = 1, GREEN = 2 }\nstruct S0 { 1: i32 a }\n")
	types := []string{"i32", "string", "bool", "double", "list<i64>", "map<string,S%d>", "set<string>", "Color", "S%d", "binary", "i64", "list<S%d>"}
	for i := 1; i <= 620; i++ {
		fmt.Fprintf(&b, "/** Documents S%d. */\nstruct S%d {\n", i, i)
		for f, typ := range types {
			typ = strings.ReplaceAll(typ, "%d", fmt.Sprint(i-1))
			value := ""
			switch typ {
			case "i32":
				value = " = 5"
			case "Color":
				value = " = Color.RED"
			}
			fmt.Fprintf(&b, "  %d: optional %s field_%d%s, // comment\n", f+1, typ, f, value)
		}
		fmt.Fprintf(&b, "}\n\n")
		if i%50 == 0 {
			fmt.Fprintf(&b, "const S%d C%d = {\"field_0\": 1, \"field_4\": [1, 2, 3]}\n", i, i)
			fmt.Fprintf(&b, "service V%d {\n  S%d f(1: S%d a) throws (1: X%d x)\n}\nexception X%d {}\n", i, i, i, i, i)
		}
	}
	return b.String()
}

func TestLargeSourceIsAccepted(t *testing.T) {
	src := largeSource()
	if n := strings.Count(src, "\n"); n < 9_900 || n > 10_100 {
		t.Errorf("%d lines", n)
	}
	files{"a.thrift": src}.mustLoad(t)
}

// BenchmarkLoad parses and checks 10,000 lines.
func BenchmarkLoad(b *testing.B) {
	f := files{"a.thrift": largeSource()}
	b.SetBytes(int64(len(f["a.thrift"])))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.load("a.thrift"); err != nil {
			b.Fatal(err)
		}
	}
}
