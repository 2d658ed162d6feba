package slipstream_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// make matrix runs the whole package of the origin, and elsewhere selects tests by
// name: one that starts a PostgreSQL under another name, or in a package that is not
// listed, would run on one version only.
func TestMatrixRunsEveryTestOfPostgres(t *testing.T) {
	script, err := os.ReadFile("scripts/matrix.sh")
	if err != nil {
		t.Fatal(err)
	}
	pattern := regexp.MustCompile(`(?m)^pattern='(.*)'$`).FindSubmatch(script)
	packages := regexp.MustCompile(`(?m)^packages=\((.*)\)$`).FindSubmatch(script)
	blackbox := regexp.MustCompile(`(?m)^blackbox=\((.*)\) # of the module test$`).FindSubmatch(script)
	if pattern == nil || packages == nil || blackbox == nil {
		t.Fatal("scripts/matrix.sh sets no pattern or no packages")
	}
	listed := strings.Fields(string(packages[1]))
	for _, folder := range strings.Fields(string(blackbox[1])) {
		listed = append(listed, "./test/"+strings.TrimPrefix(folder, "./"))
	}
	selected := regexp.MustCompile(string(pattern[1]))
	files := make(map[string][]*ast.File) // by directory
	sources(t, func(path string, text []byte) {
		if !strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "bench") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		folder := filepath.ToSlash(filepath.Dir(path))
		files[folder] = append(files[folder], file)
	})
	found := 0
	for folder, of := range files {
		tests := testsThatCall(of, "StartPostgres")
		found += len(tests)
		if len(tests) == 0 || folder == "internal/gateway/origin/postgres" {
			continue
		}
		if !slices.Contains(listed, "./"+folder) {
			t.Errorf("tests of %s start a PostgreSQL (%s), and scripts/matrix.sh does not list the package", folder, tests[0])
		}
		for _, name := range tests {
			if !selected.MatchString(name) {
				t.Errorf("%s: %s starts a PostgreSQL, and make matrix would not select it: name it so that %s matches", folder, name, selected)
			}
		}
	}
	if found < 30 {
		t.Errorf("%d tests that start a PostgreSQL were found, expected 30 or more: the check looks in the wrong place", found)
	}
}

// testsThatCall returns the tests that call a function by this name, directly or
// through functions and methods of their package.
func testsThatCall(files []*ast.File, name string) (tests []string) {
	calling := []string{name}
	for grown := true; grown; {
		grown = false
		for _, file := range files {
			for _, declaration := range file.Decls {
				f, ok := declaration.(*ast.FuncDecl)
				if !ok || slices.Contains(calling, f.Name.Name) || !mentions(f, calling) {
					continue
				}
				calling, grown = append(calling, f.Name.Name), true
			}
		}
	}
	for _, each := range calling[1:] {
		if strings.HasPrefix(each, "Test") {
			tests = append(tests, each)
		}
	}
	return tests
}

func mentions(f *ast.FuncDecl, names []string) (found bool) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			switch called := call.Fun.(type) {
			case *ast.Ident:
				found = found || slices.Contains(names, called.Name)
			case *ast.SelectorExpr:
				found = found || slices.Contains(names, called.Sel.Name)
			}
		}
		return !found
	})
	return found
}
