package gen

import (
	"go/format"
	"math/rand/v2"
	"strings"
	"testing"
)

// Comments in IDL may contain anything. They become Go comments that gofmt leaves unchanged, and never
// directives.
func TestCommentsAreFormatted(t *testing.T) {
	parts := []string{"\n", "\n", "\n\n", " ", "  ", "\t", "- ", "* ", "1. ", "12) ", "#", "# ", "Heading", "text", "Text more", ".", "[a]: http://x.y", "[B]", "``", "''",
		"`", "'", "```", "{", "}", "\\", "go:x", "//", "/*", "*/", "é", "\xff", "\ufeff", "\x00", "•", "http://a.b/c", "a:b", "+build", "line 5", "\r", "\u00a0", "\u2028",
		"Deprecated: x", "(", "[x", "]:"}
	r := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		var src strings.Builder
		for range 1 + r.IntN(25) {
			src.WriteString(parts[r.IntN(len(parts))])
		}
		for _, inStruct := range []bool{false, true} {
			var x text
			if inStruct {
				x.p("package x")
				x.p("")
				x.p("type A struct {")
				x.comment(docLines(src.String())...)
				x.p("X int")
				x.p("}")
			} else {
				x.comment(docLines(src.String())...)
				x.p("package x")
			}
			got := x.out.String()
			want, err := format.Source([]byte(got))
			if err != nil || string(want) != got {
				t.Fatalf("%q: %v\n%s\nwant\n%s", src.String(), err, got, want)
			}
		}
	}
}

func TestCommentsKeepTheirMeaning(t *testing.T) {
	for in, want := range map[string]string{
		"One line.":                               "One line.",
		"First.\nSecond.\n\nAnother.":             "First.\nSecond.\n\nAnother.",
		"Text:\n\n  code {\n    more\n  }\n\nEnd": "Text:\n\n\tcode {\n\t  more\n\t}\n\nEnd",
		"- a\n- b":                                "- a\n- b",
		"Use ``x'' or ```y```.":                   "Use “x” or \"y\".",
		"\n\n  \n":                                "",
	} {
		if got := strings.Join(docLines(in), "\n"); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
