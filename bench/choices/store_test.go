package main

import (
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/slipstream-go/slipstream/internal/load"
)

// The results of a question until it failed are kept, marked, and not compared.
func TestAQuestionThatDoesNotFinishIsStoredApart(t *testing.T) {
	dir := t.TempDir()
	q := questions()[0]
	b := &bench{path: filepath.Join(dir, "raw", "choices.jsonl"), progress: io.Discard}
	if err := b.storePartial(q, []row{{Suite: suiteName, Question: q.name}}, errors.New("killed")); err != nil {
		t.Fatal(err)
	}
	if rows, err := readRows(b.path); err != nil || rows != nil {
		t.Errorf("%v, rows %+v among the whole results", err, rows)
	}
	rows, err := readRows(filepath.Join(dir, load.PartialDirectory, "raw", "choices.jsonl"))
	if err != nil || len(rows) != 1 || rows[0].Partial != "killed" {
		t.Errorf("%v, rows %+v, want one, marked", err, rows)
	}
}
