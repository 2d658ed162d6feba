package testkit

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Golden compares got with testdata/name of the package under test. With `go test -update` it
// writes the file instead, so that the difference can be reviewed in git.
func Golden(t testing.TB, name string, got []byte) {
	t.Helper()
	golden(t, filepath.Join("testdata", filepath.FromSlash(name)), got, updateFlag)
}

func golden(t testing.TB, path string, got []byte, update bool) {
	t.Helper()
	if update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("golden file: %v (create it with: go test -run '^%s$' -update)", err, t.Name())
		return
	}
	if bytes.Equal(got, want) {
		return
	}
	line, gotLine, wantLine := firstDifference(got, want)
	t.Errorf("%s line %d differs\n got: %s\nwant: %s\n(accept with: go test -run '^%s$' -update)", path, line, gotLine, wantLine, t.Name())
}

// firstDifference returns the number of the first line that differs, and both
// versions of it.
func firstDifference(got, want []byte) (line int, g, w string) {
	gs, ws := bytes.SplitAfter(got, []byte("\n")), bytes.SplitAfter(want, []byte("\n"))
	for i := range max(len(gs), len(ws)) {
		g, w := "(end of file)", "(end of file)"
		if i < len(gs) {
			g = string(gs[i])
		}
		if i < len(ws) {
			w = string(ws[i])
		}
		if g != w {
			return i + 1, g, w
		}
	}
	return 0, "", ""
}
