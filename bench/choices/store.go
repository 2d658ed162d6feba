package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// readRows reads raw results. If the file does not exist, there are none.
func readRows(path string) ([]row, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var rows []row
	number := 0
	for line := range bytes.Lines(data) {
		number++
		var r row
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("raw results %s, line %d: %w", path, number, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// storeRows replaces the rows of one question and keeps the others, except those of questions that
// no longer exist. After a crash, the old file remains.
func storeRows(path, question string, rows []row) error {
	old, err := readRows(path)
	if err != nil {
		return err
	}
	known := names(questions())
	old = slices.DeleteFunc(old, func(r row) bool { return r.Question == question || !slices.Contains(known, r.Question) })
	all := append(old, rows...)
	slices.SortStableFunc(all, func(a, b row) int {
		return slices.Index(known, a.Question) - slices.Index(known, b.Question)
	})
	var out bytes.Buffer
	for _, r := range all {
		line, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("raw results %s: %w", path, err)
		}
		out.Write(line)
		out.WriteByte('\n')
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, out.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
