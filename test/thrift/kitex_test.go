package thrift

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/thrift/gen"
	"github.com/slipstream-go/slipstream/thrift/idl"
)

// kitexEdits changes the IDL for both generators where Kitex's tool does not support it.
var kitexEdits = []edit{
	{"", "", `\buuid\b`, "string", "it has no uuid"},
	{"", "types.thrift", `(?m)^.*map<(list|set)<.*\n`, "", "containers are keys of maps in Go, which does not compile"},
	{"", "constants.thrift", `(?m)^const map<list<.*\n`, "", "the same"},
	{"", "constants.thrift", `(?m)^const string FROM_BINARY.*\n`, "", "a binary is a variable of Go, which cannot be the value of a constant"},
	{"", "constants.thrift", `(?m)^const map<double.*\n`, "", "0.0 and -0.0 are the same key, which does not compile"},
	{"", "constants.thrift", `(?m)^const map<string, i32> UUIDS.*\n`, "", "without uuid, the keys have a different meaning"},
	{"", "constants.thrift", `"inner": INNER, `, "", "a constant as a field of a constant becomes a pointer to a pointer, which does not compile"},
	{"", "constants.thrift", `-0\.0`, "0.5", "constants of Go have no negative zero"},
	{"", "constants.thrift", `-1e10`, "-1.5", "its parser takes the exponent for the number"},
	{"", "shop.thrift", `, "place": shared.ORIGIN`, "", "the same"},
	{"", "names.thrift", ` \(go.tag = "db:\\"\x60\\""\)`, "", "a backquote ends the tag, which does not compile"},
	{"", "shop.thrift", `(?m)^ *SENT_BACK.*\n`, "", "a value must not have two names"},
	{"", "names.thrift", `(?m)^const i32 User .*\n`, "", "a constant must not have the name of a struct"},
	{"", "", `testpkg\.type\b`, "testpkg.kinds", "the name of the package is a keyword of Go, which does not compile"},
}

// kitexJSONEdits are further edits for TestKitexJSON.
var kitexJSONEdits = []edit{
	{"", "types.thrift", `(?m)^.*map<(shared.Point|WithDefaults),.*\n`, "", "keys that are structs have no JSON"},
	{"", "types.thrift", `, "b": \[\]`, "", "an empty list in a default is null"},
	{"", "types.thrift", `"\\tbytes"`, `"bytes"`, "strings in defaults keep their backslashes"},
	{"", "lib/shared.thrift", `-0\.0`, "0.5", "constants of Go have no negative zero"},
}

// notInOurs lists what Kitex's tool generates and we do not.
var notInOurs = []struct {
	name string // a regular expression
	why  string
	used bool
}{
	{`\.(BLength|FastRead|FastReadField_?\d+|FastWrite|FastWriteNocopy)$`, "Kitex's codec; ours has other methods", false},
	{`\.KitexUnusedProtection$`, "only for the compiler", false},
	{`^names\.User\.SizeThrift$`, "a method of ours; the field is SizeThrift_", false},
	{`^shop\.Nested\.(Get|Set)?(ByStruct|Defaults)$`, "keys that are structs are pointers, so entries cannot be found; ours are slices of entries", false},
}

// TestKitexDeclarations compares what Kitex's tool generates with what we generate with
// Config.Kitex, for the IDL with which our generator is tested. Everything that a handler can use
// exists with the same type. A handler compiles with both.
//
//	make reference
//
// SLIPSTREAM_KITEX is the path of the tool.
func TestKitexDeclarations(t *testing.T) {
	tool := os.Getenv("SLIPSTREAM_KITEX")
	if tool == "" {
		t.Skip("SLIPSTREAM_KITEX is not the path of Kitex's tool: make reference runs this test")
	}
	m := module{dir: t.TempDir()}
	write(t, filepath.Join(m.dir, "go.mod"), "module generated\n\ngo 1.26.0\n")
	var roots []string
	for name, text := range kitexSources(t) {
		file := filepath.Join(m.dir, "idl", name)
		write(t, file, text)
		if !strings.Contains(name, "/") {
			roots = append(roots, file)
		}
	}
	slices.Sort(roots)
	for _, root := range roots {
		run(t, m.dir, nil, tool, "-module", "generated", "-type", "thrift", "-gen-path", "theirs", "-no-dependency-check", root)
	}
	var err error
	if m.program, err = idl.Load(idl.Config{NegativeIDs: true}, roots...); err != nil {
		t.Fatal(err)
	}
	files, err := gen.Generate(gen.Config{Kitex: true, Module: "generated/ours"}, m.program)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		write(t, filepath.Join(m.dir, "ours", f.Name), string(f.Content))
	}
	handler := read(t, "../../thrift/gen/testdata/kitex/handler.go.txt")
	for _, side := range []string{"ours", "theirs"} {
		write(t, filepath.Join(m.dir, side, "handler/handler.go"), strings.ReplaceAll(handler, "GENERATED", "generated/"+side))
	}
	std := compiled(t)
	ours, theirs := newPackages(m.dir, "generated/ours", std), newPackages(m.dir, "generated/theirs", std)
	for _, p := range []*packages{ours, theirs} {
		if _, err := p.Import(p.prefix + "/handler"); err != nil {
			t.Errorf("the handler does not compile with %s: %v", p.prefix, err)
		}
	}
	done := make(map[string]bool)
	for _, f := range m.program.Files {
		namespace := strings.ReplaceAll(f.Namespace("go"), ".", "/")
		if done[namespace] {
			continue
		}
		done[namespace] = true
		our, err := ours.Import(ours.prefix + "/" + namespace)
		if err != nil {
			t.Errorf("our %s: %v", namespace, err)
			continue
		}
		their, err := theirs.Import(theirs.prefix + "/" + namespace)
		if err != nil {
			t.Errorf("their %s: %v", namespace, err)
			continue
		}
		compareLists(t, describe(our), describe(their))
	}
	for i, one := range notInOurs {
		if !one.used {
			t.Errorf("Kitex's tool generates nothing that matches %s anymore (%d)", one.name, i)
		}
	}
}

// TestKitexJSON compares the JSON of types with Config.Kitex with that of Kitex's generic calls, in both
// directions.
func TestKitexJSON(t *testing.T) {
	if os.Getenv("SLIPSTREAM_KITEX") == "" {
		t.Skip("SLIPSTREAM_KITEX is not set: make reference runs this test")
	}
	all := kitexSources(t)
	applyEdits(t, all, kitexJSONEdits)
	all["mapping.thrift"] = read(t, "testdata/kitex/mapping.thrift")
	dir := t.TempDir()
	includes, functions, table := "", "", ""
	for name, text := range all {
		write(t, filepath.Join(dir, "idl", name), text)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		base := strings.TrimSuffix(name, ".thrift")
		if strings.Contains(base, "/") {
			continue
		}
		p, err := idl.Load(idl.Config{NegativeIDs: true}, filepath.Join(dir, "idl", name))
		if err != nil {
			t.Fatal(err)
		}
		includes += "include \"" + name + "\"\n"
		for _, d := range p.Files[len(p.Files)-1].Decls {
			if s, ok := d.(*idl.Struct); ok && s.Kind != idl.Exception {
				n := strconv.Itoa(strings.Count(table, "\n"))
				functions += "  " + base + "." + s.Name + " f" + n + "(1: " + base + "." + s.Name + " value)\n"
				table += "\t{\"f" + n + "\", func() argsStruct { return all.NewCallsF" + n + "Args() }, func() resultStruct { return all.NewCallsF" + n + "Result() }},\n"
			}
		}
	}
	root := filepath.Join(dir, "idl/calls.thrift")
	write(t, root, "namespace go testpkg.calls\n"+includes+"service Calls {\n"+functions+"}\n")
	p, err := idl.Load(idl.Config{NegativeIDs: true}, root)
	if err != nil {
		t.Fatal(err)
	}
	files, err := gen.Generate(gen.Config{Kitex: true, JSON: true, SortedKeys: true, Module: "generated"}, p)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		write(t, filepath.Join(dir, f.Name), string(f.Content))
	}
	write(t, filepath.Join(dir, "testpkg/calls_test.go"), "package testpkg\n\nimport all \"generated/testpkg/calls\"\n\nvar calls = []call{\n"+table+"}\n")
	write(t, filepath.Join(dir, "testpkg/fill_test.go"), read(t, "../../thrift/internal/testpkg/fill_test.go"))
	write(t, filepath.Join(dir, "testpkg/kitexjson_test.go"), read(t, "testdata/inner/kitexjson_test.go"))
	version := line(t, read(t, "../../bench/thrift-codec/versions.mod"), "github.com/cloudwego/kitex ")
	write(t, filepath.Join(dir, "go.mod"), "module generated\n\ngo 1.26.0\n\n"+version+`
require github.com/slipstream-go/slipstream v0.0.0

replace github.com/slipstream-go/slipstream => `+absolute(t, "../..")+"\n")
	run(t, dir, []string{"GOFLAGS=-mod=mod", "GOWORK=off"}, "go", "test", "-count=1", "-v", "-run", "JSON", "./testpkg")
}

// kitexSources returns the IDL that both generators get.
func kitexSources(t *testing.T) map[string]string {
	t.Helper()
	all := sources(t)
	applyEdits(t, all, kitexEdits)
	return all
}

func applyEdits(t *testing.T, all map[string]string, edits []edit) {
	t.Helper()
	for _, e := range edits {
		done := false
		for name, text := range all {
			if e.file == "" || name == e.file {
				all[name] = regexp.MustCompile(e.old).ReplaceAllString(text, e.new)
				done = done || all[name] != text
			}
		}
		if !done {
			t.Errorf("the edit %q of %s changes nothing", e.old, e.file)
		}
	}
}

// compareLists reports what is in their list and not in ours.
func compareLists(t *testing.T, ours, theirs map[string]string) {
	t.Helper()
	for name, their := range theirs {
		our, ok := ours[name]
		if ok && our == their {
			continue
		}
		excused := false
		for i := range notInOurs {
			if regexp.MustCompile(notInOurs[i].name).MatchString(name) {
				notInOurs[i].used, excused = true, true
			}
		}
		switch {
		case excused:
		case !ok:
			t.Errorf("%s is missing: %s", name, their)
		default:
			t.Errorf("%s is\n\t%s\nwant\n\t%s", name, our, their)
		}
	}
}

// describe returns the exported declarations of a package, by name.
func describe(p *types.Package) map[string]string {
	all := make(map[string]string)
	text := func(t types.Type) string {
		s := types.TypeString(withoutNames(t), func(other *types.Package) string {
			return strings.TrimPrefix(strings.TrimPrefix(other.Path(), "generated/ours/"), "generated/theirs/")
		})
		return strings.ReplaceAll(s, "interface{}", "any")
	}
	prefix := p.Name() + "."
	for _, name := range p.Scope().Names() {
		if !token.IsExported(name) {
			continue
		}
		o := p.Scope().Lookup(name)
		switch o := o.(type) {
		case *types.Const:
			all[prefix+name] = "const " + text(o.Type()) + " = " + o.Val().ExactString()
		case *types.TypeName:
			all[prefix+name] = "type " + text(o.Type())
			if o.IsAlias() {
				all[prefix+name] = "type = " + text(types.Unalias(o.Type()))
				continue
			}
			describeType(all, prefix+name, o.Type(), text)
		default:
			all[prefix+name] = reflect.TypeOf(o).String() + " " + text(o.Type())
		}
	}
	return all
}

// describeType adds the fields and methods of a type.
func describeType(all map[string]string, prefix string, t types.Type, text func(types.Type) string) {
	switch u := t.Underlying().(type) {
	case *types.Struct:
		all[prefix] += " struct"
		for i := range u.NumFields() {
			if f := u.Field(i); f.Exported() {
				all[prefix+"."+f.Name()] = "field " + text(f.Type()) + " json:" + reflect.StructTag(u.Tag(i)).Get("json")
			}
		}
	case *types.Interface:
		all[prefix] += " interface"
	default:
		all[prefix] += " " + text(u)
	}
	pointer, value := types.NewMethodSet(types.NewPointer(t)), types.NewMethodSet(t)
	if types.IsInterface(t) {
		pointer = value
	}
	for i := range pointer.Len() {
		m := pointer.At(i).Obj()
		if !m.Exported() {
			continue
		}
		kind := "method of the pointer "
		if value.Lookup(m.Pkg(), m.Name()) != nil {
			kind = "method "
		}
		all[prefix+"."+m.Name()] = kind + text(m.Type())
	}
}

// withoutNames returns the type of a function without names of parameters.
func withoutNames(t types.Type) types.Type {
	sig, ok := t.(*types.Signature)
	if !ok {
		return t
	}
	tuple := func(of *types.Tuple) *types.Tuple {
		var all []*types.Var
		for i := range of.Len() {
			all = append(all, types.NewParam(token.NoPos, nil, "", of.At(i).Type()))
		}
		return types.NewTuple(all...)
	}
	return types.NewSignatureType(nil, nil, nil, tuple(sig.Params()), tuple(sig.Results()), sig.Variadic())
}

// packages imports the packages of one side. The packages of Kitex are not needed: their uses are
// listed in notInOurs.
type packages struct {
	dir, prefix string
	std         types.Importer
	fset        *token.FileSet
	done        map[string]*types.Package
}

func newPackages(dir, prefix string, std types.Importer) *packages {
	return &packages{dir: dir, prefix: prefix, std: std, fset: token.NewFileSet(), done: make(map[string]*types.Package)}
}

// compiled returns an importer of packages that generated code imports, and of those that they import.
func compiled(t *testing.T) types.Importer {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}",
		"bytes", "context", "database/sql", "encoding/binary", "errors", "fmt", "math", "reflect", "strings", "github.com/slipstream-go/slipstream/thrift")
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, problems.String())
	}
	files := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		importPath, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[importPath] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(importPath string) (io.ReadCloser, error) {
		if files[importPath] == "" {
			return nil, fmt.Errorf("%s is not in the list of packages", importPath)
		}
		return os.Open(files[importPath])
	})
}

// Import implements types.Importer.
func (p *packages) Import(importPath string) (*types.Package, error) {
	if done := p.done[importPath]; done != nil {
		return done, nil
	}
	if strings.HasPrefix(importPath, "github.com/cloudwego/") {
		// Only files with methods of Kitex's codec import it; errors in them are ignored below.
		done := types.NewPackage(importPath, path.Base(importPath))
		done.MarkComplete()
		p.done[importPath] = done
		return done, nil
	}
	if !strings.HasPrefix(importPath, p.prefix) {
		return p.std.Import(importPath)
	}
	names, err := filepath.Glob(filepath.Join(p.dir, strings.TrimPrefix(importPath, "generated/"), "*.go"))
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(p.fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	var first error
	config := types.Config{Importer: p, Error: func(err error) {
		position := p.fset.Position(err.(types.Error).Pos)
		if first == nil && !strings.HasPrefix(filepath.Base(position.Filename), "k-") {
			first = err
		}
	}}
	done, _ := config.Check(importPath, p.fset, files, nil)
	p.done[importPath] = done
	return done, first
}
