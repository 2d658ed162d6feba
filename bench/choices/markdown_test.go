package main

import (
	"os"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

func TestMarkdownOfFixture(t *testing.T) {
	rows, err := readRows("testdata/choices.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := writeMarkdown(&out, questions(), rows); err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "choices.md", []byte(out.String()))
}

func TestBrokenResultsAreNamed(t *testing.T) {
	path := t.TempDir() + "/raw.jsonl"
	if err := os.WriteFile(path, []byte("{\"question\":\"k\"}\nno\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readRows(path); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("error %v, want the line", err)
	}
	if err := storeRows(path, "k", nil); err == nil {
		t.Error("results that cannot be read were replaced")
	}
	if rows, err := readRows(t.TempDir() + "/none"); err != nil || rows != nil {
		t.Errorf("%v, %v for a file that does not exist", rows, err)
	}
}
