package gen

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// checker checks the types of generated packages, as the compiler would.
type checker struct {
	fset   *token.FileSet
	module string
	parsed map[string][]*ast.File // by import path
	done   map[string]*types.Package
	errs   []error
}

// others imports packages that are not generated, from their sources. This is slow, so all tests
// share it.
var others = sync.OnceValue(func() types.Importer {
	return importer.ForCompiler(token.NewFileSet(), "source", nil)
})

var othersMu sync.Mutex

// importOthers imports all packages that generated code imports.
func importOthers(t testing.TB) {
	for _, importPath := range []string{"context", "database/sql", "database/sql/driver", "encoding/binary", "errors", "fmt", "math", "strconv", "unsafe", runtimePath, rootPath} {
		if _, err := new(checker).Import(importPath); err != nil {
			t.Fatal(err)
		}
	}
}

// typeErrors returns the errors that the compiler would report.
func typeErrors(module string, files []File) []error {
	c := &checker{fset: token.NewFileSet(), module: module, parsed: make(map[string][]*ast.File), done: make(map[string]*types.Package)}
	for _, f := range files {
		parsed, err := parser.ParseFile(c.fset, f.Name, f.Content, parser.SkipObjectResolution)
		if err != nil {
			return []error{err}
		}
		importPath := path.Join(module, path.Dir(f.Name))
		c.parsed[importPath] = append(c.parsed[importPath], parsed)
	}
	for importPath := range c.parsed {
		_, _ = c.Import(importPath) // errors are in c.errs
	}
	return c.errs
}

// Import implements types.Importer.
func (c *checker) Import(importPath string) (*types.Package, error) {
	if p := c.done[importPath]; p != nil {
		return p, nil
	}
	if c.parsed[importPath] == nil {
		othersMu.Lock()
		defer othersMu.Unlock()
		return others().Import(importPath)
	}
	config := types.Config{Importer: c, Error: func(err error) { c.errs = append(c.errs, err) }}
	p, _ := config.Check(importPath, c.fset, c.parsed[importPath], nil)
	c.done[importPath] = p
	return p, nil
}

// The output for every accepted program compiles.
func TestOutputCompiles(t *testing.T) {
	for _, pattern := range []string{"testdata/idl/*.thrift", "testdata/idl/lib/*.thrift", "../idl/testdata/accept/*.thrift", "../idl/testdata/accept/lib/*.thrift"} {
		p := load(t, pattern)
		for name, c := range variants {
			c.Module, c.Plugins = "example.com/generated", []Plugin{listStructs}
			for _, err := range typeErrors(c.Module, generate(t, c, p)) {
				t.Errorf("%s, %s: %v", pattern, name, err)
			}
		}
	}
}

func TestNegativeIDs(t *testing.T) {
	p, err := idl.Load(idl.Config{NegativeIDs: true, ReadFile: func(string) ([]byte, error) {
		return []byte("struct A { -5: i32 a, -1: optional list<A> b, 0: bool c, 2: string d }"), nil
	}}, "a.thrift")
	if err != nil {
		t.Fatal(err)
	}
	files := generate(t, Config{}, p)
	for _, err := range typeErrors("", files) {
		t.Error(err)
	}
	for _, want := range []string{"case 65531<<8 | thrift.TypeI32:", "AppendCompactHead(b, thrift.CompactTypeI32, 65531, 0)", "case 0<<8 | thrift.CompactTypeTrue:"} {
		if !bytes.Contains(files[0].Content, []byte(want)) {
			t.Errorf("%s is missing in\n%s", want, files[0].Content)
		}
	}
}

// TestGeneratedModule builds a module of generated code as a user would, without network access,
// runs the tests of package testpkg in it, and vets it. As part of make reference, it does so for
// all sets of options except that of the committed packages, and also runs staticcheck; otherwise
// it does so only for the sets that change the most.
func TestGeneratedModule(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a module")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "go.sum"), sum)
	writeFile(t, filepath.Join(dir, "go.mod"), fmt.Appendf(nil, `module example.com/generated

go 1.26.0

require github.com/slipstream-go/slipstream v0.0.0

replace github.com/slipstream-go/slipstream => %s
`, root))
	for name, c := range variants {
		if name == "table" || name != "kitex" && name != "order" && os.Getenv("SLIPSTREAM_THRIFT") == "" {
			continue
		}
		c.Module, c.Plugins = "example.com/generated/"+name, []Plugin{listStructs}
		files, err := Generate(c, load(t, "testdata/idl/*.thrift"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			writeFile(t, filepath.Join(dir, name, f.Name), f.Content)
		}
		tests := []string{"doc.go", "structs_test.go", "fill_test.go", "roundtrip_test.go"}
		if c.Equal {
			tests = append(tests, "methods_test.go")
		}
		if !c.Pointers && !c.Kitex {
			tests = append(tests, "values_test.go")
		}
		if c.Views {
			tests = append(tests, "views_test.go")
		}
		if c.Setters {
			tests = append(tests, "viewsetters_test.go")
		}
		if c.Descriptors {
			tests = append(tests, "descriptors_test.go")
		}
		for _, test := range tests {
			text, err := fs.ReadFile(os.DirFS("../internal/testpkg"), test)
			if errors.Is(err, fs.ErrNotExist) {
				text, err = os.ReadFile(filepath.Join("testdata/inner", test))
			}
			if err != nil {
				t.Fatal(err)
			}
			text = bytes.ReplaceAll(text, []byte(module), []byte(c.Module))
			writeFile(t, filepath.Join(dir, name, "testpkg", test), text)
		}
		if c.Kitex {
			for from, to := range map[string]string{"handler.go.txt": "handler/handler.go", "rpc_test.go.txt": "handler/rpc_test.go", "types_test.go.txt": "testpkg/types_test.go"} {
				text, err := os.ReadFile(filepath.Join("testdata/kitex", from))
				if err != nil {
					t.Fatal(err)
				}
				writeFile(t, filepath.Join(dir, name, to), bytes.ReplaceAll(text, []byte("GENERATED"), []byte(c.Module)))
			}
		}
	}
	offline := []string{"GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off"}
	runTool(t, dir, offline, "go", "test", "./...")
	runTool(t, dir, offline, "go", "vet", "./...")
	if os.Getenv("SLIPSTREAM_THRIFT") == "" {
		return
	}
	checks, err := os.ReadFile(filepath.Join(root, "staticcheck.conf"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "staticcheck.conf"), checks)
	program := filepath.Join(t.TempDir(), "staticcheck")
	runTool(t, root, nil, "go", "build", "-modfile=tools/go.mod", "-o", program, "honnef.co/go/tools/cmd/staticcheck")
	runTool(t, dir, offline, program, "./...")
}

// runTool runs a program in a directory.
func runTool(t *testing.T, dir string, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, args[0], err, out[:min(len(out), 5000)])
	}
}
