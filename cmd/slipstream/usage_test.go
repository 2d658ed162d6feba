package main

import (
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestUsageErrors(t *testing.T) {
	for _, test := range []struct {
		args   []string
		stderr string
	}{
		{nil, "expected serve, demo, db, disk, config, key, openapi, probe, version, completion, man"},
		{[]string{"srve"}, `unknown command "srve" (did you mean "serve"?)`},
		{[]string{"zebra"}, `unknown command "zebra"; expected`},
		{[]string{"db"}, "expected"},
		{[]string{"db", "aply"}, `did you mean "apply"?`},
		{[]string{"config", "zebra"}, "expected check, schema, show"},
		{[]string{"serve", "--zebra"}, "unknown flag: --zebra"},
		{[]string{"serve", "now"}, "slipstream serve --help says more"},
		{[]string{"serve"}, "try: slipstream demo"},
		{[]string{"serve", "-c", "none.yaml"}, "none.yaml"},
		{[]string{"serve", "--drain", "soon"}, "invalid argument"},
		{[]string{"demo", "--rate", "0"}, "expected 1 to 1000"},
		{[]string{"completion"}, "accepts 1 arg"},
		{[]string{"completion", "tcsh"}, "tcsh"},
		{[]string{"version", "1"}, ""},
	} {
		r := expect(t, exitUsage, "", test.stderr, test.args...)
		if r.stdout != "" || !strings.HasPrefix(r.stderr, "slipstream: ") {
			t.Errorf("%v: stdout %q, stderr %q", test.args, r.stdout, r.stderr)
		}
	}
}

// TestHelp: every command explains itself, and its examples are commands and
// flags that exist.
func TestHelp(t *testing.T) {
	expect(t, exitOK, "Exit codes:", "", "--help")
	expect(t, exitOK, "slipstream db apply -c slipstream.yaml", "", "help", "db", "apply")
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Short == "" || c.Long == "" || c.Example == "" {
			t.Errorf("%s: Short, Long or Example is empty", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			line, _, _ = strings.Cut(line, "#")
			line, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "source <("), ")")
			words := strings.Fields(line)
			if len(words) == 0 || words[0] != "slipstream" {
				continue
			}
			words = words[1:]
			if i := slices.IndexFunc(words, func(w string) bool { return strings.ContainsAny(w, "|>&") }); i >= 0 {
				words = words[:i]
			}
			named, args, err := program{}.root().Find(words)
			if err == nil {
				err = named.ParseFlags(args)
			}
			if err == nil && named.HasSubCommands() {
				err = named.RunE(named, args)
			}
			if err != nil {
				t.Errorf("%s: example %q: %v", c.CommandPath(), line, err)
			}
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(program{stdout: io.Discard, stderr: io.Discard}.root())
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		r := expect(t, exitOK, "slipstream", "", "completion", shell)
		if len(r.stdout) < 1000 {
			t.Errorf("%s: a script of %d bytes", shell, len(r.stdout))
		}
		if path, err := exec.LookPath(shell); err == nil && (shell == "bash" || shell == "zsh") {
			if out, err := exec.Command(path, "-n", writeFile(t, "script", r.stdout)).CombinedOutput(); err != nil {
				t.Errorf("%s does not understand it: %v %s", shell, err, out)
			}
		}
	}
	// What the scripts ask.
	expect(t, exitOK, "drop\tRemove every trigger", "", "__complete", "db", "")
	expect(t, exitOK, "--offline", "", "__complete", "config", "check", "--o")
	expect(t, exitOK, "powershell", "", "__complete", "completion", "")
}

func TestVersion(t *testing.T) {
	expect(t, exitOK, "slipstream ", "", "version")
	r := expect(t, exitOK, "", "", "version", "--json")
	var b build
	if err := json.Unmarshal([]byte(r.stdout), &b); err != nil || b.Version == "" || b.Go == "" || b.Platform == "" {
		t.Errorf("%v: %s", err, r.stdout)
	}
}

const minimal = "origin: { url: \"sqlite:shop.db\" }\nresources:\n  depts: { table: dept, key: [deptno] }\n"

func TestConfigCommands(t *testing.T) {
	bad := writeFile(t, "bad.yaml", minimal+"freshnes: 1s\nlog: { level: loud }\n")
	for _, args := range [][]string{{"config", "check"}, {"config", "check", "--offline"}, {"config", "show"}, {"serve"}, {"db", "plan"}} {
		r := expect(t, exitUsage, "", bad+`:4:1: freshnes: unknown field (did you mean "freshness"?)`, append(args, "-c", bad)...)
		if !strings.Contains(r.stderr, bad+":5:15: log.level: ") {
			t.Errorf("%v: the second mistake is not told: %s", args, r.stderr)
		}
	}
	good := writeFile(t, "good.yaml", minimal)
	expect(t, exitOK, "1 resources, no mistakes; the database was not asked", "", "config", "check", "--offline", "-c", good)
	expect(t, exitUnreachable, "", "shop.db", "config", "check", "-c", good)
	r := expect(t, exitOK, "cache_control: no-cache", "", "config", "show", "-c", good)
	expect(t, exitOK, "", "", "config", "show", "-c", writeFile(t, "shown.yaml", r.stdout))

	r = expect(t, exitOK, "", "", "config", "schema")
	var schema map[string]any
	if err := json.Unmarshal([]byte(r.stdout), &schema); err != nil || schema["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
		t.Errorf("schema: %v %.200s", err, r.stdout)
	}
}

// TestConfigAgainstDatabase: what the file names must exist.
func TestConfigAgainstDatabase(t *testing.T) {
	file := demoFiles(t)
	expect(t, exitOK, "2 resources, no mistakes; the database has their tables and keys", "db apply", "config", "check", "-c", file)
	dir := filepath.Dir(file)
	for name, text := range map[string]string{
		"table":  "origin: { url: \"sqlite:" + demoFile + "\" }\nresources:\n  depts: { table: dpt, key: [deptno] }\n",
		"column": "origin: { url: \"sqlite:" + demoFile + "\" }\nresources:\n  depts: { table: dept, key: [deptnr] }\n",
	} {
		path := filepath.Join(dir, name+".yaml")
		mustWrite(t, path, text)
		expect(t, exitUsage, "", path+":3: resource depts: ", "config", "check", "-c", path)
		expect(t, exitUsage, "", path+":3: resource depts: ", "serve", "-c", path)
	}
}

func TestDatabaseCommands(t *testing.T) {
	file := demoFiles(t)
	const table = `CREATE TABLE "slipstream_change"`
	expect(t, exitIncomplete, "missing", "slipstream db apply", "db", "check", "-c", file)
	plan := expect(t, exitOK, table, "", "db", "plan", "-c", file)
	if again := command(t, "db", "plan", "-c", file); again.stdout != plan.stdout {
		t.Error("plan changed something")
	}
	expect(t, exitOK, "the record of changes", "", "db", "apply", "-c", file)
	expect(t, exitOK, "present", "", "db", "check", "-c", file)
	expect(t, exitOK, "nothing to do", "", "db", "plan", "-c", file)
	expect(t, exitOK, "0 statements were run", "", "db", "apply", "-c", file)
	expect(t, exitUsage, "", "expected --yes", "db", "drop", "-c", file)
	expect(t, exitOK, "DROP TRIGGER", "", "db", "drop", "-c", file, "--yes")
	expect(t, exitIncomplete, "missing", "", "db", "check", "-c", file)

	// The printed plan is SQL that the database takes as it is.
	execute(t, filepath.Join(filepath.Dir(file), demoFile), plan.stdout)
	expect(t, exitOK, "present", "", "db", "check", "-c", file)
}
