package gen

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The packages below thrift/internal/testpkg are the current output of the generator. They are
// compiled and tested like other packages.
func TestCommittedPackagesAreUpToDate(t *testing.T) {
	c := variants["table"]
	c.Module, c.Plugins = module, []Plugin{listStructs}
	files := generate(t, c, load(t, "testdata/idl/*.thrift"))
	for _, f := range files {
		path := filepath.Join("..", "internal", filepath.FromSlash(f.Name))
		if *update {
			writeFile(t, path, f.Content)
			continue
		}
		compare(t, path, f.Content)
	}
	committed, err := filepath.Glob("../internal/testpkg/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	if len(committed) != len(files) {
		t.Errorf("%d files are committed, %d are generated: %q", len(committed), len(files), committed)
	}
}

// Golden outputs show what options change.
func TestGoldenOutputs(t *testing.T) {
	for name, c := range variants {
		var all bytes.Buffer
		for _, f := range generate(t, c, load(t, "testdata/idl/lib/small.thrift")) {
			fmt.Fprintf(&all, "== %s ==\n%s", f.Name, f.Content)
		}
		path := filepath.Join("testdata", "golden", name+".txt")
		if *update {
			writeFile(t, path, all.Bytes())
			continue
		}
		compare(t, path, all.Bytes())
	}
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func compare(t *testing.T, path string, content []byte) {
	t.Helper()
	want, err := os.ReadFile(path)
	if err != nil {
		t.Errorf("%v (go test ./thrift/gen -update writes it)", err)
		return
	}
	if !bytes.Equal(want, content) {
		t.Errorf("%s differs (go test ./thrift/gen -update writes it): %s", path, difference(string(content), strings.ReplaceAll(string(want), "\r", "")))
	}
}
