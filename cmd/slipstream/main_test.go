package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// binary is the command, built once for all tests.
var binary string

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "slipstream-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "slipstream.exe") // the suffix is harmless where it is not needed
	build := []string{"build", "-o", binary}
	if raceEnabled {
		build = append(build, "-race")
	}
	if out, err := exec.Command("go", append(build, ".")...).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// result is what a finished run of the command said.
type result struct {
	code           int
	stdout, stderr string
}

// command runs the command to its end.
func command(t *testing.T, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, binary, withDefiner(args)...)
	c.Dir = t.TempDir() // no slipstream.yaml there
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	r := result{stdout: stdout.String(), stderr: stderr.String()}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		r.code = exit.ExitCode()
	} else if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return r
}

// withDefiner adds --definer to commands that apply as the superuser of a test
// server, which may not own trigger functions.
func withDefiner(args []string) []string {
	commands := [][]string{{"db", "plan"}, {"db", "apply"}, {"db", "check"}}
	if !slices.ContainsFunc(commands, func(c []string) bool { return len(args) > 2 && slices.Equal(args[:2], c) }) || slices.Contains(args, "--definer") {
		return args
	}
	origin := ""
	for i, arg := range args[:len(args)-1] {
		if arg == "--url" {
			origin = args[i+1]
		} else if arg == "-c" && origin == "" {
			text, _ := os.ReadFile(args[i+1]) // a file that is missing is one without a URL
			origin = string(text)
		}
	}
	if !strings.Contains(origin, "postgres://postgres@") {
		return args
	}
	return append(slices.Clone(args), "--definer", testkit.Definer)
}

// expect runs the command and compares the exit code and parts of its output.
func expect(t *testing.T, code int, stdout, stderr string, args ...string) result {
	t.Helper()
	r := command(t, args...)
	if r.code != code || !strings.Contains(r.stdout, stdout) || !strings.Contains(r.stderr, stderr) {
		t.Errorf("slipstream %s: exit %d\nstdout: %s\nstderr: %s\nexpected exit %d, %q, %q",
			strings.Join(args, " "), r.code, r.stdout, r.stderr, code, stdout, stderr)
	}
	return r
}

// get asks without keeping the connection.
func get(ctx context.Context, url string, header ...string) (status int, head http.Header, body string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, "", err
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	r.Close = true
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, string(text), err
}

// long reports whether this is a soak, in which faults are repeated and clients hardly pause.
func long() bool { return os.Getenv(testkit.SoakEnv) != "" }

// rounds is how often a fault repeats what it does.
func rounds(short, soak int) int {
	if long() {
		return soak
	}
	return short
}

// writeFile writes a file into a new folder and returns its path.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
