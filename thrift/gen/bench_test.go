package gen

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// stamped returns a program with 625 structs of 12 fields each, about 10,000 lines.
func stamped(t testing.TB) *idl.Program {
	var src strings.Builder
	src.WriteString("namespace go stamped\nenum Status { NEW, PAID }\n")
	for i := range 625 {
		fmt.Fprintf(&src, `
struct S%[1]d {
  1: required i64 id
  2: bool paid
  3: optional i32 quantity
  4: optional double price
  5: optional string name
  6: optional binary payload
  7: optional Status status
  8: list<i64> codes
  9: list<string> tags
  10: map<string, string> attrs
  11: optional S%[1]d parent
  12: list<S%[1]d> lines
}
`, i)
	}
	return source(t, "stamped.thrift", src.String())
}

func BenchmarkGenerate(b *testing.B) {
	p := stamped(b)
	for _, name := range []string{"plain", "table"} {
		b.Run(name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				files, err := Generate(variants[name], p)
				if err != nil {
					b.Fatal(err)
				}
				n = len(files[0].Content)
			}
			b.ReportMetric(float64(n)/625, "source-B/struct")
		})
	}
}
