package slipstream_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// workflow has the fields of a file in .github/workflows that the tests check.
type workflow struct {
	Permissions map[string]string
	Jobs        map[string]struct {
		TimeoutMinutes int `yaml:"timeout-minutes"`
		Steps          []struct{ Uses, Run string }
	}
}

var (
	pinnedAction = regexp.MustCompile(`^\s*(?:- )?uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	makeTarget   = regexp.MustCompile(`\bmake ([a-z-]+)`)
)

// wrongInWorkflow returns what is wrong with a workflow: actions that are not pinned by
// the hash of a commit with its version beside it, permissions that are not restricted,
// jobs without a timeout, targets that the Makefile does not have.
func wrongInWorkflow(text string, targets []string) (actions int, wrong []string) {
	var w workflow
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		return 0, []string{err.Error()}
	}
	if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
		wrong = append(wrong, "permissions of the workflow are not { contents: read }; a job may ask for more")
	}
	lines := 0
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if !strings.Contains(line, "uses:") {
			continue
		}
		if lines++; !pinnedAction.MatchString(line) {
			wrong = append(wrong, fmt.Sprintf("%q; expected uses: owner/action@<40 hexadecimal digits> # v1.2.3", line))
		}
	}
	for name, job := range w.Jobs {
		if job.TimeoutMinutes == 0 {
			wrong = append(wrong, name+" has no timeout-minutes")
		}
		for _, step := range job.Steps {
			if step.Uses != "" {
				actions++
			}
			for _, m := range makeTarget.FindAllStringSubmatch(step.Run, -1) {
				if !slices.Contains(targets, m[1]) {
					wrong = append(wrong, fmt.Sprintf("%s: there is no make %s", name, m[1]))
				}
			}
		}
	}
	if lines != actions {
		wrong = append(wrong, fmt.Sprintf("%d lines with uses:, but %d steps that use an action", lines, actions))
	}
	return actions, wrong
}

func makeTargets(t *testing.T) (targets []string) {
	t.Helper()
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllSubmatch(text, -1) {
		targets = append(targets, string(m[1]))
	}
	return targets
}

// A tag or a branch can be moved to other code; the hash of a commit cannot.
func TestActionsArePinned(t *testing.T) {
	targets := makeTargets(t)
	actions := 0
	err := filepath.WalkDir(".github", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(filepath.Dir(path)) != "workflows" && d.Name() != "action.yml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n, wrong := wrongInWorkflow(string(text), targets)
		for _, w := range wrong {
			t.Errorf("%s: %s", path, w)
		}
		actions += n
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if actions < 10 {
		t.Errorf("only %d uses of actions were checked", actions)
	}
}

func TestPinnedActionsCheckBites(t *testing.T) {
	const hash = "3d3c42e5aac5ba805825da76410c181273ba90b1"
	for uses, ok := range map[string]bool{
		"actions/checkout@" + hash + " # v7.0.1":                             true,
		"github/codeql-action/init@" + hash + " # v4.36.2":                   true,
		"actions/checkout@" + hash:                                           false,
		"actions/checkout@" + hash + " # v7":                                 false,
		"actions/checkout@" + hash[1:] + " # v7.0.1":                         false,
		"actions/checkout@v7.0.1":                                            false,
		"actions/checkout@main # " + hash:                                    false,
		"docker://alpine:3":                                                  false,
		"actions/checkout@" + hash + " # v7.0.1\n    - uses: a/b@v1":         false,
		"actions/checkout@" + hash + " # v7.0.1\n    - { uses: \"a/b@v1\" }": false,
	} {
		text := "permissions: { contents: read }\njobs:\n  a:\n    timeout-minutes: 1\n    steps:\n    - uses: " + uses + "\n"
		if _, wrong := wrongInWorkflow(text, nil); (len(wrong) == 0) != ok {
			t.Errorf("%s: %q", uses, wrong)
		}
	}
	for _, text := range []string{
		"jobs: {}\n",
		"permissions: { contents: write }\n",
		"permissions: { contents: read, packages: write }\n",
		"permissions: { contents: read }\njobs: { a: { steps: [] } }\n",
		"permissions: { contents: read }\njobs: { a: { timeout-minutes: 1, steps: [{ run: make zebra }] } }\n",
	} {
		if _, wrong := wrongInWorkflow(text, []string{"check"}); len(wrong) != 1 {
			t.Errorf("%q: %q, want one complaint", text, wrong)
		}
	}
}

// Each module and the workflows are kept up to date.
func TestUpdatesCoverEveryModule(t *testing.T) {
	text, err := os.ReadFile(".github/dependabot.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directory   string
			Directories []string
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var covered []string
	for _, u := range file.Updates {
		for _, d := range append(u.Directories, u.Directory) {
			covered = append(covered, u.Ecosystem+" "+d)
		}
	}
	expected := []string{"github-actions /", "docker /deploy"}
	modules := []string{"go.mod"}
	for _, pattern := range []string{"*/go.mod", "*/*/go.mod"} {
		below, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		modules = append(modules, below...)
	}
	for _, m := range modules {
		expected = append(expected, "gomod "+strings.TrimSuffix("/"+filepath.ToSlash(filepath.Dir(m)), "."))
	}
	for _, e := range expected {
		if !slices.Contains(covered, e) {
			t.Errorf(".github/dependabot.yml has no %s", e)
		}
	}
}

// A check that could not run has not passed, unless the user said that it may not run.
func TestVulnerabilitiesAreCheckedOrSaidNotToBe(t *testing.T) {
	const (
		clean       = "echo 'No vulnerabilities found.'"
		found       = "echo 'Vulnerability #1: GO-2026-0001'; exit 3"
		unreachable = "echo 'govulncheck: fetching vulnerabilities: no route' >&2; exit 1"
		broken      = "echo 'govulncheck: loading packages: no such package' >&2; exit 1"
	)
	for _, c := range []struct {
		play, offline string
		passes        bool
		says          string
	}{
		{clean, "", true, "No vulnerabilities found."},
		{clean, "1", true, "No vulnerabilities found."},
		{found, "", false, "GO-2026-0001"},
		{found, "1", false, "GO-2026-0001"},
		{unreachable, "", false, "make check OFFLINE=1"},
		{unreachable, "0", false, "make check OFFLINE=1"},
		{unreachable, "1", true, "skipped"},
		{broken, "1", false, "no such package"},
	} {
		program := filepath.Join(t.TempDir(), "go")
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+c.play+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "scripts/vulnerabilities.sh")
		cmd.Env = append(os.Environ(), "GO="+program, "OFFLINE="+c.offline)
		cmd.WaitDelay = time.Minute
		out, err := cmd.CombinedOutput()
		if (err == nil) != c.passes || !strings.Contains(string(out), c.says) {
			t.Errorf("OFFLINE=%q, %q: %v\n%s", c.offline, c.play, err, out)
		}
	}
}
