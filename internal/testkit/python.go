package testkit

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"testing"
	"time"
)

// PythonStep is a Python expression, and another one for its expected value.
type PythonStep struct {
	Do   string `json:"do"`
	Want string `json:"want"`
}

// PythonTarantool runs steps against a server with Tarantool's official Python client, and fails
// the test for each step whose value is not the expected one. script is the path of
// internal/testkit/testdata/steps.py, relative to the test; that program runs the steps and
// documents the names that expressions may use.
func PythonTarantool(t testing.TB, script, addr, user, password string, steps []PythonStep) {
	t.Helper()
	input, err := json.Marshal(map[string]any{"addr": addr, "user": user, "password": password, "steps": steps})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "python-tarantool", script)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v (install what the tests need with: make prepare)\n%s%s", err, stderr.Bytes(), out)
	}
	var result struct {
		Done  int
		Wrong []struct{ Do, Got, Want string }
	}
	if err := json.Unmarshal(out, &result); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	for _, w := range result.Wrong {
		t.Errorf("Python: %.300s\n got %.300s\nwant %.300s", w.Do, w.Got, w.Want)
	}
	if result.Done != len(steps) {
		t.Errorf("Python ran %d steps of %d", result.Done, len(steps))
	}
}
