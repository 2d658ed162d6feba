package idl

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestErrorShowsItsLine(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"tabs", "struct A {\n\t1:\ti32\t5\n}", "a.thrift:2:9: expected the name of the field, found the number 5\n\t\t1:\ti32\t5\n\t\t  \t   \t^"},
		{"windows", "struct A {\r\n  1: 5 a\r\n}", "a.thrift:2:6: expected a type, found the number 5\n\t  1: 5 a\n\t     ^"},
		{"wide letters", "/* größer */ struct 5", "a.thrift:1:23: expected the name of the struct, found the number 5\n\t/* größer */ struct 5\n\t                    ^"},
		{"control characters", "/*\x01\xff*/ 5", "a.thrift:1:8: expected a declaration (const, typedef, enum, struct, union, exception or service), found the number 5\n\t/*??*/ 5\n\t       ^"},
		{"terminal escape sequences", "const S A = \"\\\x1b\"", "a.thrift:1:14: unknown escape \\?: expected \\r, \\n, \\t, \\\", \\' or \\\\\n\tconst S A = \"\\?\"\n\t             ^"},
		{"no line", "", ""},
		{"end of the file", "struct A {", "a.thrift:1:11: expected a field or \"}\", found the end of the file\n\tstruct A {\n\t          ^"},
		{"end of an empty line", "struct A {\n", "a.thrift:2:1: expected a field or \"}\", found the end of the file\n\t\n\t^"},
	} {
		_, err := Parse("a.thrift", []byte(c.src))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s:\n%s\nexpected\n%s", c.name, got, c.want)
		}
	}
}

func TestErrorInALongLineShowsAPartOfIt(t *testing.T) {
	src := "/*" + strings.Repeat("x", 10_000) + "*/ struct 5 /*" + strings.Repeat("y", 10_000) + "*/"
	_, err := Parse("a.thrift", []byte(src))
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 3 || len(lines[1]) > maxSource+1 || strings.IndexByte(lines[2], '^') != strings.IndexByte(lines[1], '5') {
		t.Errorf("the error is\n%s", err)
	}
	_, err = Parse("a.thrift", []byte("struct A { 1: "+strings.Repeat("é", 1000)+" a }"))
	if !utf8.ValidString(err.Error()) || len(err.Error()) > 1000 {
		t.Errorf("the error is\n%s", err)
	}
}

func TestPlaceInAFileOfManyLines(t *testing.T) {
	for _, line := range []int{1, 2, 1023, 1024, 1025, 2048, 5000} {
		_, err := Parse("a.thrift", []byte(strings.Repeat("#\n", line-1)+"struct 5 // here\n"+strings.Repeat("#\n", 3000)))
		list, ok := err.(ErrorList)
		if !ok || list[0].Pos != (Pos{int32(line), 8}) || list[0].Source != "struct 5 // here" {
			t.Errorf("line %d: %v", line, err)
		}
	}
}
