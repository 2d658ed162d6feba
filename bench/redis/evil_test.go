package main

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// caseOf returns the case of that name.
func caseOf(t *testing.T, name string) evilCase {
	t.Helper()
	for _, c := range evilCases() {
		if c.name == name {
			return c
		}
	}
	t.Fatalf("no case %q", name)
	return evilCase{}
}

// The results are right for clients whose weaknesses are known. Every kind of result occurs, so
// each can be detected.
func TestEvilResults(t *testing.T) {
	for _, c := range []struct{ name, subject, result string }{
		{"a push before the reply", "rueidis", resultRight},
		{"garbage", "redigo", resultError},
		{"silence", "redispipe", resultTimeout},
		{"a second reply in one packet", "redigo", resultWrong},
		{"bulk length 1 GiB", "redigo", resultMemory},
		{"bulk length 2^63-1", "redigo", resultPanic},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			row, err := evilOnce(t.Context(), caseOf(t, c.name), c.subject, evilLimit)
			if err != nil {
				t.Fatal(err)
			}
			if row.Result != c.result {
				t.Errorf("%s: %+v, want %s", c.subject, row, c.result)
			}
		})
	}
}

// A process that does not end within the limit counts as hanging.
func TestEvilLimit(t *testing.T) {
	row, err := evilOnce(t.Context(), caseOf(t, "silence"), "redigo", 300*time.Millisecond)
	if err != nil || row.Result != resultHang {
		t.Errorf("%+v, %v", row, err)
	}
}

func TestEvilCases(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range evilCases() {
		if seen[c.name] {
			t.Errorf("two cases are named %q", c.name)
		}
		seen[c.name] = true
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := evilOnce(ctx, evilCases()[0], "redigo", evilLimit); err == nil {
		t.Error("an interrupted run has a result")
	}
}

func TestEvilMarkdown(t *testing.T) {
	dir := t.TempDir()
	if err := writeEvilMarkdown(io.Discard, dir); err != nil {
		t.Errorf("without results: %v", err)
	}
	rows := []evilRow{
		{Case: "x", Subject: "a", Result: resultError, After: "works"}, {Case: "x", Subject: "b", Result: resultPanic, After: "dead"},
		{Case: "y", Harmless: true, Subject: "a", Result: resultRight, After: "works"}, {Case: "y", Harmless: true, Subject: "b", Result: resultError, After: "broken"},
	}
	if err := storeEvil(filepath.Join(dir, evilFile), evilResults{Rows: rows}); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := writeEvilMarkdown(&out, dir); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| case | a | b |", "| x | error | panic |", "| y (valid) | right | error, then broken |", "| panic | 0 | 1 |", "| then broken | 0 | 1 |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}
