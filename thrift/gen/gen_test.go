package gen

import (
	"bytes"
	"flag"
	"go/format"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

var update = flag.Bool("update", false, "write the generated files that are committed")

// module is the import path of the generated packages that are committed.
const module = "github.com/slipstream-go/slipstream/thrift/internal"

// variants are sets of options.
var variants = map[string]Config{
	"kitex":    {RPC: true, Kitex: true, JSON: true, Body: true, KeepUnknown: true, SortedKeys: true},
	"plain":    {RPC: true},
	"table":    {Equal: true, JSON: true, Body: true, KeepUnknown: true, SortedKeys: true, Views: true, Setters: true},
	"pointers": {RPC: true, Pointers: true, Equal: true, JSON: true, Body: true, KeepUnknown: true, Views: true, Setters: true},
	"order":    {JSON: true, Body: true, SortedKeys: true, FixedFirst: true, Views: true, Descriptors: true},
}

// load loads test files.
func load(t testing.TB, pattern string) *idl.Program {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatal(pattern, err)
	}
	slices.Sort(names)
	p, err := idl.Load(idl.Config{}, names...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// source loads a program from files in memory. The first one is the root.
func source(t testing.TB, files ...string) *idl.Program {
	t.Helper()
	p, err := idl.Load(idl.Config{ReadFile: func(path string) ([]byte, error) {
		for i := 0; i < len(files); i += 2 {
			if files[i] == path {
				return []byte(files[i+1]), nil
			}
		}
		return nil, os.ErrNotExist
	}}, files[0])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// generate returns generated files, which must be formatted.
func generate(t testing.TB, c Config, p *idl.Program) []File {
	t.Helper()
	files, err := Generate(c, p)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		checkFormat(t, f)
	}
	return files
}

func checkFormat(t testing.TB, f File) {
	t.Helper()
	want, err := format.Source(f.Content)
	if err != nil {
		t.Fatalf("%s: %v\n%s", f.Name, err, f.Content)
	}
	if !bytes.Equal(want, f.Content) {
		t.Errorf("%s is not formatted: %s", f.Name, difference(string(f.Content), string(want)))
	}
}

// difference returns the first lines that differ.
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			return "\n" + strings.Join(g[max(0, i-2):min(len(g), i+4)], "\n") + "\nwant\n" + strings.Join(w[min(len(w), max(0, i-2)):min(len(w), i+4)], "\n")
		}
	}
	return "one of them is truncated"
}

// listStructs is a plug-in: for each file, it adds a variable with functions that create its
// structs.
func listStructs(f *GoFile) error {
	var structs []*idl.Struct
	for _, d := range f.IDL.Decls {
		if s, ok := d.(*idl.Struct); ok {
			structs = append(structs, s)
		}
	}
	if len(structs) == 0 {
		return nil
	}
	runtime := f.Import("github.com/slipstream-go/slipstream/thrift")
	name := f.Declare("StructsOf" + Exported(f.IDL.Name))
	f.Printf("")
	f.Printf("// %s has functions that make the structs of the file; true is for unions.", name)
	f.Printf("var %s = []func() (s %s.CompactStruct, isUnion bool){", name, runtime)
	for _, s := range structs {
		made := "new(" + f.NameOf(s) + ")"
		if f.gen.config.Kitex {
			made = f.gen.structs[s].newName + "()"
		}
		f.Printf("func() (%s.CompactStruct, bool) { return %s, %t },", runtime, made, s.Kind == idl.Union)
	}
	f.Printf("}")
	if !f.gen.config.Views {
		return nil
	}
	f.Printf("")
	name = f.Declare("ListOfViews" + Exported(f.IDL.Name))
	f.Printf("// %s has functions that make the views of the structs of the file.", name)
	f.Printf("var %s = []func() %s.Struct{", name, runtime)
	for _, s := range structs {
		f.Printf("func() %s.Struct { return new(%s) },", runtime, f.ViewOf(s))
	}
	f.Printf("}")
	return nil
}
