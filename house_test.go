package slipstream_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxLines is the hard limit for the lines of a file; aim for 500.
const maxLines = 600

func TestEveryPackageHasADocComment(t *testing.T) {
	for _, pkg := range listPackages(t) {
		if _, ours := pkg.own(); ours && len(pkg.GoFiles) > 0 && pkg.Doc == "" {
			t.Errorf("%s has no doc comment", pkg.ImportPath)
		}
	}
}

// sources calls visit with every Go file of the repository, in all modules,
// including tests and excluding generated code.
func sources(t *testing.T, visit func(path string, text []byte)) {
	t.Helper()
	generated := regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !generated.Match(text) {
			visit(path, text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFilesStayShort(t *testing.T) {
	sources(t, func(path string, text []byte) {
		if n := bytes.Count(text, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines, the limit is %d: split it by what its parts are about", path, n, maxLines)
		}
	})
}

// Every goroutine is stopped and waited for, and the comment at its go statement
// says by what: on the line above or on the same line. One comment may precede
// several goroutines that are started on consecutive lines.
func TestGoStatementsNameTheirEnd(t *testing.T) {
	seen := 0
	sources(t, func(path string, text []byte) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		found, wrong := unexplainedGo(path, text)
		seen += found
		for _, w := range wrong {
			t.Error(w)
		}
	})
	if seen == 0 {
		t.Error("no go statement found: the check covers nothing")
	}
}

var namesAnEnd = regexp.MustCompile(`(?i)\b(stop|wait|await|end|clos|cancel|exit|return|until|leave|reap|bound)`)

// unexplainedGo returns how many goroutines a file starts (go statements and
// the Go method of wait groups), and those without a comment that
// says how they end.
func unexplainedGo(path string, text []byte) (found int, wrong []string) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.ParseComments)
	if err != nil {
		return 0, []string{err.Error()}
	}
	comments := make(map[int]string) // by the line they end on
	explained := make(map[int]bool)  // last lines of goroutines that have one
	for _, group := range file.Comments {
		comments[fset.Position(group.End()).Line] += group.Text()
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Go" || len(n.Args) != 1 {
				return true
			}
		default:
			return true
		}
		found++
		line, last := fset.Position(n.Pos()).Line, fset.Position(n.End()).Line
		explained[last] = namesAnEnd.MatchString(comments[line-1]) || namesAnEnd.MatchString(comments[last]) || explained[line-1]
		if !explained[last] {
			wrong = append(wrong, fmt.Sprintf("%s:%d: a goroutine without a comment on the line above that says who stops it and who waits for it", path, line))
		}
		return true
	})
	return found, wrong
}

func TestGoStatementCheckBites(t *testing.T) {
	for _, c := range []struct {
		body         string
		found, wrong int
	}{
		{"// Stopped by Close, which waits for it.\ngo f()", 1, 0},
		{"go f()", 1, 1},
		{"// Runs f.\ngo f()", 1, 1},
		{"// Ends with f.\n\ngo f()", 1, 1}, // not directly above
		{"// Ends at the end of the input; Wait waits.\nwg.Go(f)", 1, 0},
		{"wg.Go(f)", 1, 1},
		{"go f() // ended by ctx, awaited below", 1, 0},
		{"// Both end with ctx.\ngo f()\ngo g()", 2, 0},
		{"// Ends with ctx.\ngo f()\n\ngo g()", 2, 1},
		{"go f() // runs f", 1, 1},
		{"x.Go(f, g)", 0, 0},
	} {
		found, wrong := unexplainedGo("x.go", []byte("package p\nfunc g() {\n"+c.body+"\n}\n"))
		if found != c.found || len(wrong) != c.wrong {
			t.Errorf("%q: found %d, wrong %q; want %d and %d", c.body, found, wrong, c.found, c.wrong)
		}
	}
}

// A user must be able to name everything that a public package shows: no
// exported identifier may mention a type of an internal package.
func TestPublicPackagesShowNoInternalTypes(t *testing.T) {
	all := listPackages(t)
	decl := declarations{all: all, fset: token.NewFileSet(), loaded: make(map[string]*types.Package)}
	seen := 0
	for _, pkg := range all {
		name, ours := pkg.own()
		if !ours || pkg.Name == "main" || slices.Contains(strings.Split(name, "/"), "internal") {
			continue
		}
		loaded, err := decl.Import(pkg.ImportPath)
		if err != nil {
			t.Fatal(err)
		}
		seen++
		for _, w := range shownInternals(loaded) {
			t.Errorf("%s: %s", name, w)
		}
	}
	if seen == 0 {
		t.Error("no public package was checked")
	}
}

// declarations reads the declarations of packages from source, without function
// bodies and without building anything. Packages of other modules are left
// empty: they cannot mention ours, and their types are invalid here, so they are
// ignored.
type declarations struct {
	all    map[string]goPackage
	fset   *token.FileSet
	loaded map[string]*types.Package
}

// Import implements types.Importer.
func (d declarations) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if pkg, ok := d.loaded[path]; ok {
		return pkg, nil
	}
	listed := d.all[path]
	if _, ours := ownPath(path); !ours && !listed.Standard {
		d.loaded[path] = types.NewPackage(path, listed.Name)
		d.loaded[path].MarkComplete()
		return d.loaded[path], nil
	}
	var files []*ast.File
	for _, name := range listed.GoFiles {
		file, err := parser.ParseFile(d.fset, filepath.Join(listed.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	// Errors are expected, because other modules are empty.
	conf := types.Config{Importer: d, IgnoreFuncBodies: true, FakeImportC: true, Error: func(error) {}}
	d.loaded[path], _ = conf.Check(path, d.fset, files, nil)
	return d.loaded[path], nil
}

// shownInternals returns the exported identifiers of pkg that mention an
// internal type, and which. A type for which pkg has an exported alias can be
// named; it is checked as if pkg declared it.
func shownInternals(pkg *types.Package) []string {
	var found []string
	aliased := make(map[types.Type]bool)
	for _, name := range pkg.Scope().Names() {
		if tn, ok := pkg.Scope().Lookup(name).(*types.TypeName); ok && tn.Exported() && tn.IsAlias() {
			aliased[types.Unalias(tn.Type())] = true
		}
	}
	for _, name := range pkg.Scope().Names() {
		obj := pkg.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		look := func(what string, t types.Type) {
			if inner := internalIn(t, maps.Clone(aliased)); inner != "" {
				found = append(found, what+" shows "+inner)
			}
		}
		if tn, ok := obj.(*types.TypeName); ok {
			if named, ok := types.Unalias(tn.Type()).(*types.Named); ok {
				look(name, named.Underlying())
				for m := range named.Methods() {
					if m.Exported() {
						look(name+"."+m.Name(), m.Type())
					}
				}
				continue
			}
		}
		look(name, obj.Type())
	}
	return found
}

// internalIn returns the first type of an internal package that a user would
// need to spell t out. Named types are not entered: they are checked where
// they are declared.
func internalIn(t types.Type, seen map[types.Type]bool) string {
	if seen[t] {
		return ""
	}
	seen[t] = true
	switch t := t.(type) {
	case *types.Named:
		if p := t.Obj().Pkg(); p != nil && slices.Contains(strings.Split(p.Path(), "/"), "internal") && strings.HasPrefix(p.Path(), modulePath) {
			return types.TypeString(t, nil)
		}
		for arg := range t.TypeArgs().Types() {
			if inner := internalIn(arg, seen); inner != "" {
				return inner
			}
		}
	case *types.Alias:
		return internalIn(types.Unalias(t), seen)
	case *types.Map:
		if inner := internalIn(t.Key(), seen); inner != "" {
			return inner
		}
		return internalIn(t.Elem(), seen)
	case interface{ Elem() types.Type }: // pointer, slice, array, channel
		return internalIn(t.Elem(), seen)
	case *types.Signature:
		for _, tuple := range []*types.Tuple{t.Params(), t.Results()} {
			for v := range tuple.Variables() {
				if inner := internalIn(v.Type(), seen); inner != "" {
					return inner
				}
			}
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				if inner := internalIn(f.Type(), seen); inner != "" {
					return inner
				}
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			if inner := internalIn(m.Type(), seen); inner != "" {
				return inner
			}
		}
	}
	return ""
}

func TestInternalTypesCheckBites(t *testing.T) {
	hidden := types.NewPackage(modulePath+"/internal/x", "x")
	secret := types.NewNamed(types.NewTypeName(0, hidden, "Secret", nil), types.NewStruct(nil, nil), nil)
	pub := types.NewPackage(modulePath+"/pub", "pub")
	declare := func(name string, typ types.Type) { pub.Scope().Insert(types.NewVar(0, pub, name, typ)) }
	declare("Fine", types.Typ[types.Int])
	declare("unexported", secret)
	declare("A", types.NewPointer(secret))
	declare("B", types.NewMap(types.Typ[types.Int], types.NewSlice(secret)))
	declare("C", types.NewSignatureType(nil, nil, nil, nil, types.NewTuple(types.NewVar(0, pub, "", secret)), false))
	hiddenField := types.NewStruct([]*types.Var{types.NewField(0, pub, "inner", secret, false)}, nil)
	shownField := types.NewStruct([]*types.Var{types.NewField(0, pub, "Inner", secret, false)}, nil)
	pub.Scope().Insert(types.NewTypeName(0, pub, "D", nil))
	types.NewNamed(pub.Scope().Lookup("D").(*types.TypeName), shownField, nil)
	pub.Scope().Insert(types.NewTypeName(0, pub, "E", nil))
	types.NewNamed(pub.Scope().Lookup("E").(*types.TypeName), hiddenField, nil)
	named := types.NewNamed(types.NewTypeName(0, hidden, "Named", nil), shownField, nil)
	pub.Scope().Insert(types.NewAlias(types.NewTypeName(0, pub, "F", nil), named).Obj())
	declare("G", named)
	got := shownInternals(pub)
	if len(got) != 5 || !strings.HasPrefix(got[0], "A ") || !strings.HasPrefix(got[3], "D ") || !strings.HasPrefix(got[4], "F ") {
		t.Errorf("found %q, want A, B, C, D and F", got)
	}
}
