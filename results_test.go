package slipstream_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Raw results are megabytes: they are kept only while a page presents their figures and
// names them as its source.
func TestRawResultsAreShown(t *testing.T) {
	var pages bytes.Buffer
	add := func(path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pages.Write(text)
	}
	add("README.md")
	err := filepath.WalkDir("docs", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			add(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := filepath.Glob("bench/results/raw/*")
	if err != nil || len(raw) == 0 {
		t.Fatalf("%d raw results, %v", len(raw), err)
	}
	for _, path := range raw {
		if !bytes.Contains(pages.Bytes(), []byte(filepath.Base(path))) {
			t.Errorf("no page below docs names %s: delete it", path)
		}
	}
}
