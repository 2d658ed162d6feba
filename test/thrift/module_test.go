package thrift

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/thrift/gen"
	"github.com/slipstream-go/slipstream/thrift/idl"
)

// module is the module of the code that our generator writes for the IDL in a directory. Its package
// testpkg has the tests in testdata/inner.
type module struct {
	dir     string
	program *idl.Program
}

// newModule generates a module. sources are the files of the IDL by path.
func newModule(t *testing.T, c gen.Config, sources map[string]string, inner string) module {
	t.Helper()
	m := module{dir: t.TempDir()}
	var roots []string
	for name, text := range sources {
		write(t, filepath.Join(m.dir, "idl", name), text)
		if !strings.Contains(name, "/") {
			roots = append(roots, filepath.Join(m.dir, "idl", name))
		}
	}
	slices.Sort(roots)
	var err error
	if m.program, err = idl.Load(idl.Config{NegativeIDs: true}, roots...); err != nil {
		t.Fatal(err)
	}
	registry := registry{imports: make(map[string]bool)}
	c.Module, c.Plugins = "generated", []gen.Plugin{registry.add}
	files, err := gen.Generate(c, m.program)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		write(t, filepath.Join(m.dir, f.Name), string(f.Content))
	}
	root := absolute(t, "../..")
	sum, mod := read(t, "../go.sum"), read(t, "../go.mod")
	write(t, filepath.Join(m.dir, "go.sum"), sum)
	// Versions are those in go.mod of the module test.
	write(t, filepath.Join(m.dir, "go.mod"), "module generated\n\ngo 1.26.0\n\n"+line(t, mod, "github.com/apache/thrift ")+`
require github.com/slipstream-go/slipstream v0.0.0
require github.com/slipstream-go/slipstream/test v0.0.0
require github.com/slipstream-go/slipstream/thrift/apache v0.0.0

replace github.com/slipstream-go/slipstream => `+root+`
replace github.com/slipstream-go/slipstream/test => `+root+`/test
replace github.com/slipstream-go/slipstream/thrift/apache => `+root+"/thrift/apache\n")
	write(t, filepath.Join(m.dir, "testpkg", "structs_test.go"), registry.source())
	write(t, filepath.Join(m.dir, "testpkg", "fill_test.go"), read(t, "../../thrift/internal/testpkg/fill_test.go"))
	for _, name := range []string{"values_test.go", inner} {
		write(t, filepath.Join(m.dir, "testpkg", name), read(t, "testdata/inner/"+name))
	}
	return m
}

// offline returns the environment of the go command for a module. The module cache contains what it
// needs.
var offline = []string{"GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off"}

// test runs the tests of the module.
func (m module) test(t *testing.T, env ...string) {
	t.Helper()
	run(t, m.dir, append(env, offline...), "go", "test", "-count=1", "-v", "./testpkg")
}

func run(t *testing.T, dir string, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out[:min(len(out), 8000)])
	}
	if name == "go" && args[0] == "test" {
		t.Logf("%s", out)
	}
}

// registry lists all structs of a program: it is a plug-in that adds functions that create them.
type registry struct {
	imports map[string]bool
	names   []string
}

func (r *registry) add(f *gen.GoFile) error {
	name := ""
	for _, d := range f.IDL.Decls {
		s, ok := d.(*idl.Struct)
		if !ok {
			continue
		}
		if name == "" {
			runtime := f.Import("github.com/slipstream-go/slipstream/thrift")
			name = f.Declare("StructsOf" + gen.Exported(f.IDL.Name))
			r.imports[f.Dir()] = true
			r.names = append(r.names, packageVar(f.Dir())+"."+name)
			f.Printf("")
			f.Printf("// %s has functions that make the structs of the file.", name)
			f.Printf("var %s = map[string]func() %s.CompactStruct{", name, runtime)
		}
		f.Printf("\"%s.%s\": func() %s.CompactStruct { p := new(%s); p.Reset(); return p },", f.IDL.Name, s.Name, f.Import("github.com/slipstream-go/slipstream/thrift"), f.NameOf(s))
	}
	if name != "" {
		f.Printf("}")
	}
	return nil
}

func packageVar(dir string) string { return "p_" + strings.ReplaceAll(dir, "/", "_") }

// source returns the text of a file with a map of all structs.
func (r *registry) source() string {
	var b bytes.Buffer
	b.WriteString("package testpkg\n\nimport (\n\t\"github.com/slipstream-go/slipstream/thrift\"\n")
	for dir := range r.imports {
		fmt.Fprintf(&b, "\t%s \"generated/%s\"\n", packageVar(dir), dir)
	}
	b.WriteString(")\n\nvar made = []map[string]func() thrift.CompactStruct{\n")
	for _, name := range r.names {
		fmt.Fprintf(&b, "\t%s,\n", name)
	}
	b.WriteString("}\n")
	return b.String()
}

// sources returns the IDL with which the generator is tested, and that of this package, by path.
func sources(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, dir := range []string{"../../thrift/gen/testdata/idl", "testdata/idl"} {
		for _, pattern := range []string{"*.thrift", "lib/*.thrift"} {
			paths, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range paths {
				name, err := filepath.Rel(dir, path)
				if err != nil {
					t.Fatal(err)
				}
				all[filepath.ToSlash(name)] = read(t, path)
			}
		}
	}
	return all
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// line returns the requirement in go.mod for the module with the given path.
func line(t *testing.T, mod, path string) string {
	t.Helper()
	for one := range strings.Lines(mod) {
		if strings.HasPrefix(strings.TrimSpace(one), path) {
			return "require " + strings.TrimSuffix(strings.TrimSpace(one), "// indirect") + "\n"
		}
	}
	t.Fatalf("go.mod does not require %s", path)
	return ""
}
