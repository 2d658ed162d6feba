package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// commandLimit bounds one run of a command, because a mutant may hang. The default limit of go
// test, 10 minutes for each package, should apply first.
const commandLimit = 15 * time.Minute

// outcome is the result of a mutant.
type outcome string

const (
	caught   outcome = "caught"
	survived outcome = "SURVIVED"
	broken   outcome = "ERROR" // the list is wrong, and nothing was proved
)

type result struct {
	mutant  mutant
	outcome outcome
	took    time.Duration
	detail  string // the test that failed, or what is wrong
}

// runner runs the mutants of the module at root.
type runner struct {
	root string
	log  io.Writer
}

// errNotAllCaught is returned after the table, which shows why, was printed.
var errNotAllCaught = errors.New("not every mutant was caught")

// runAll runs the mutants one by one, prints a table, and fails unless all
// were caught.
func (r runner) runAll(ctx context.Context, list []mutant) error {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	results := make([]result, 0, len(list))
	sound := make(map[string]string) // command -> what is wrong with it without a mutant
	for _, m := range list {
		command := strings.Join(m.command, " ")
		if _, known := sound[command]; !known {
			begin := time.Now()
			sound[command] = r.checkUnmutated(ctx, m.command)
			fmt.Fprintf(r.log, "unmutated %-60s %s (%.1f s)\n", command, okOr(sound[command]), time.Since(begin).Seconds())
		}
		res := result{mutant: m, outcome: broken, detail: sound[command]}
		if res.detail == "" {
			res = r.runOne(ctx, dir, m)
		}
		if err := ctx.Err(); err != nil {
			return err // a test killed by Ctrl-C has not caught the mutant
		}
		fmt.Fprintf(r.log, "%-9s %s (%.1f s)\n", res.outcome, m.name, res.took.Seconds())
		results = append(results, res)
	}
	return r.report(results)
}

func okOr(problem string) string {
	if problem == "" {
		return "passes"
	}
	return problem
}

// report prints the table.
func (r runner) report(results []result) error {
	fmt.Fprintln(r.log)
	table := tabwriter.NewWriter(r.log, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "mutant\tresult\tseconds\tby\tbreaks")
	bad := 0
	for _, res := range results {
		if res.outcome != caught {
			bad++
		}
		fmt.Fprintf(table, "%s\t%s\t%.1f\t%s\t%s\n", res.mutant.name, res.outcome, res.took.Seconds(), res.detail, res.mutant.why)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(r.log, "\n%d of %d mutants caught\n", len(results)-bad, len(results))
	if bad > 0 {
		return errNotAllCaught
	}
	return nil
}

// checkUnmutated returns what makes a command useless as a detector, or "".
func (r runner) checkUnmutated(ctx context.Context, command []string) string {
	out, err := r.command(ctx, command, "")
	switch {
	case err != nil:
		return "fails without a mutant: " + lastLine(out)
	case bytes.Contains(out, []byte("[no tests to run]")) || bytes.Contains(out, []byte("[no test files]")):
		return "runs no test: " + lastLine(out)
	}
	return ""
}

// runOne builds one mutant into the code and runs its command.
func (r runner) runOne(ctx context.Context, dir string, m mutant) result {
	res := result{mutant: m, outcome: broken}
	overlay, err := r.writeOverlay(dir, m)
	if err != nil {
		res.detail = err.Error()
		return res
	}
	begin := time.Now()
	out, err := r.command(ctx, m.command, overlay)
	res.took = time.Since(begin)
	switch build := buildFailure.Find(out); {
	case build != nil:
		// No test ran, so the mutant was not caught; otherwise a list of mutants that do not
		// compile would look perfect.
		res.detail = "does not compile: " + firstProblem(out)
	case err == nil:
		res.outcome = survived
	default:
		res.outcome, res.detail = caught, failedTest(out)
	}
	return res
}

// writeOverlay writes the overlay file with which the go command reads the mutated text instead of
// the real file.
func (r runner) writeOverlay(dir string, m mutant) (string, error) {
	path, err := filepath.Abs(filepath.Join(r.root, filepath.FromSlash(m.file)))
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		return "", fmt.Errorf("the old text occurs %d times in %s, expected once", n, m.file)
	}
	mutated := filepath.Join(dir, "mutated.go")
	if err := os.WriteFile(mutated, []byte(strings.Replace(string(text), m.old, m.new, 1)), 0o644); err != nil {
		return "", err
	}
	spec, err := json.Marshal(map[string]any{"Replace": map[string]string{path: mutated}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, spec, 0o644)
}

// command runs a go command. The overlay is passed in GOFLAGS, so that tests that build our
// programs build the mutant, too. Vet is disabled, because it would reject mutants before any test
// runs.
func (r runner) command(ctx context.Context, command []string, overlay string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = r.root
	// The go command passes an interrupt on to the tests it runs, but a kill would
	// leave them running.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	flags, err := exec.CommandContext(ctx, "go", "env", "GOFLAGS").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOFLAGS: %w", err)
	}
	goflags := strings.TrimSpace(string(flags)) + " -vet=off"
	if overlay != "" {
		goflags += " -overlay=" + overlay
	}
	cmd.Env = append(slices.Clone(os.Environ()), "GOFLAGS="+strings.TrimSpace(goflags))
	return cmd.CombinedOutput()
}

var (
	buildFailure = regexp.MustCompile(`(?m)^FAIL\t\S+ \[(build|setup) failed\]$`)
	failure      = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	problem      = regexp.MustCompile(`(?m)^\S+\.go:\d+:\d+: .*$`)
)

// failedTest returns the name of the test that noticed the fault: the first failing test at the
// deepest level.
func failedTest(out []byte) string {
	if found := failure.FindSubmatch(out); found != nil {
		return string(found[1])
	}
	if bytes.Contains(out, []byte("panic: test timed out")) {
		return "(time limit)"
	}
	if i := bytes.Index(out, []byte("panic: ")); i >= 0 {
		line, _, _ := bytes.Cut(out[i:], []byte("\n"))
		return string(line)
	}
	return lastLine(out)
}

func firstProblem(out []byte) string {
	if found := problem.Find(out); found != nil {
		return string(found)
	}
	return lastLine(out)
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
