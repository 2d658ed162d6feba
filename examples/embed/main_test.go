package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/gateway/demo"
	"github.com/slipstream-go/slipstream/internal/gateway/origin/sqlite"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// prepare makes the demo's database and the triggers of the example, which is
// what "slipstream demo --keep" does.
func prepare(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "demo.db")
	if err := demo.Create(path, 1); err != nil {
		t.Fatal(err)
	}
	o, err := sqlite.Open(t.Context(), sqlite.Config{Path: path}, declare(path).Declarations())
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if _, err := o.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEmbed(t *testing.T) {
	testkit.NoLeaks(t)
	var out strings.Builder
	if err := run(t.Context(), prepare(t), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "200 OK  slipstream; fwd=") || !strings.HasPrefix(lines[1], "200 OK  slipstream; hit") {
		t.Errorf("printed\n%s", &out)
	}
	for _, line := range lines {
		if !strings.Contains(line, `{"deptno":42,"dname":`) {
			t.Errorf("not the department: %s", line)
		}
	}
}

func TestMakesItsTriggers(t *testing.T) {
	testkit.NoLeaks(t)
	path := filepath.Join(t.TempDir(), "demo.db")
	if err := demo.Create(path, 1); err != nil {
		t.Fatal(err)
	}
	out := new(strings.Builder)
	if err := run(t.Context(), path, out); err != nil || !strings.Contains(out.String(), "hit") {
		t.Errorf("%v; expected the second answer from memory: %s", err, out)
	}
}
