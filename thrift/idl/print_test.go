package idl

import (
	"strings"
	"testing"
)

// print writes a file as IDL in a canonical form, so that equivalent files have the same text.
// Parsing and printing the output again does not change it.
func print(f *File) string {
	p := &printer{}
	if f.Doc != "" {
		p.line("", "/**\n * %s\n */", strings.ReplaceAll(f.Doc, "\n", "\n * "))
	}
	for _, i := range f.Includes {
		p.line("", "include %s", literal(i.Path))
	}
	for _, i := range f.CppIncludes {
		p.line("", "cpp_include %s", literal(i.Path))
	}
	for _, n := range f.Namespaces {
		p.line("", "namespace %s %s%s", n.Scope, n.Name, annotations(n.Annotations))
	}
	for _, d := range f.Decls {
		p.WriteString("\n")
		p.decl(d)
	}
	return p.String()
}

// Text returns a single declaration or function as IDL.
func TestTextOfADeclaration(t *testing.T) {
	f, err := Parse("a.thrift", []byte(`const i32 most = 5
/** An order. */
struct Order { 1:required i64 id, 2 : list<string> items=["a"] // those that were paid
}
service Orders {
  # Finds one.
  Order find(1:i64 id = most) throws(1:Lost lost)(slipstream.idempotent="true")
  oneway void seen()
}`))
	if err != nil {
		t.Fatal(err)
	}
	want := "// An order.\nstruct Order {\n\t1: required i64 id\n\t2: list<string> items = [\"a\"] // those that were paid\n}\n"
	if got := Text(f.Decls[1]); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	want = "// Finds one.\nOrder find(1: i64 id = most) throws (1: Lost lost) (slipstream.idempotent = \"true\")\n"
	orders := f.Decls[2].(*Service)
	if got := orders.Functions[0].Text(); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	if got := Text(orders); got != "service Orders {\n\t"+strings.ReplaceAll(strings.TrimSuffix(want, "\n"), "\n", "\n\t")+"\n\toneway void seen()\n}\n" {
		t.Errorf("got\n%s", got)
	}
}
