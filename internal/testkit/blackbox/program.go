package blackbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// ProgramEnv is the environment variable with the path of a command that was already built, so that
// a run of all tests builds it only once; see the Makefile.
const ProgramEnv = "SLIPSTREAM_PROGRAM"

// Exit codes of the command, as documented in its help.
const (
	ExitOK          = 0
	ExitFailure     = 1
	ExitUsage       = 2
	ExitIncomplete  = 3
	ExitUnreachable = 4
	ExitLimited     = 5
	ExitInterrupted = 130
)

// program is the command; set by Main.
var program string

// Main implements TestMain for tests that run the command.
func Main(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	if program = os.Getenv(ProgramEnv); program != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "slipstream-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "slipstream.exe") // on other systems the suffix is harmless
	if err := build(program); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// build builds the command in its own module, whichever module the tests belong to.
func build(path string) error {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/slipstream-go/slipstream").Output()
	if err != nil {
		return fmt.Errorf("go list -m: %w", err)
	}
	args := []string{"build", "-o", path}
	if Race {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./cmd/slipstream")...)
	cmd.Dir = strings.TrimSpace(string(root))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// Program returns the path of the command.
func Program() string {
	if program == "" {
		panic("blackbox: TestMain does not call Main")
	}
	return program
}

// Result is the output of a finished run of the command.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// Run runs the command to its end, in an empty directory.
func Run(t testing.TB, args ...string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, Program(), withDefiner(args)...)
	c.Dir = t.TempDir() // it contains no slipstream.yaml
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	r := Result{Stdout: stdout.String(), Stderr: stderr.String()}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		r.Code = exit.ExitCode()
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
			text, _ := os.ReadFile(args[i+1]) // a missing file contains no URL
			origin = string(text)
		}
	}
	if !strings.Contains(origin, "postgres://postgres@") {
		return args
	}
	return append(slices.Clone(args), "--definer", testkit.Definer)
}

// Expect runs the command and compares the exit code and parts of its output.
func Expect(t testing.TB, code int, stdout, stderr string, args ...string) Result {
	t.Helper()
	r := Run(t, args...)
	if r.Code != code || !strings.Contains(r.Stdout, stdout) || !strings.Contains(r.Stderr, stderr) {
		t.Errorf("slipstream %s: exit %d\nstdout: %s\nstderr: %s\nexpected exit %d, %q, %q",
			strings.Join(args, " "), r.Code, r.Stdout, r.Stderr, code, stdout, stderr)
	}
	return r
}

// ExitCode waits for the end of a process.
func ExitCode(t testing.TB, p *testkit.Process, within time.Duration) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	err := p.Wait(ctx)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, p.Log())
	}
	return 0
}

// Long reports whether this is a soak test, in which faults are repeated and clients hardly pause.
func Long() bool { return os.Getenv(testkit.SoakEnv) != "" }

// Rounds returns how many times a fault is injected.
func Rounds(short, soak int) int {
	if Long() {
		return soak
	}
	return short
}
