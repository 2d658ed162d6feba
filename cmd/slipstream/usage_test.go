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

	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

func TestUsageErrors(t *testing.T) {
	for _, test := range []struct {
		args   []string
		stderr string
	}{
		{nil, "expected serve, demo, db, disk, config, key, openapi, idl, probe, redis, call, bench, gen, version, completion, man"},
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
		r := blackbox.Expect(t, exitUsage, "", test.stderr, test.args...)
		if r.Stdout != "" || !strings.HasPrefix(r.Stderr, "slipstream: ") {
			t.Errorf("%v: stdout %q, stderr %q", test.args, r.Stdout, r.Stderr)
		}
	}
}

// TestHelp: every command explains itself, and its examples are commands and
// flags that exist.
func TestHelp(t *testing.T) {
	blackbox.Expect(t, exitOK, "Exit codes:", "", "--help")
	blackbox.Expect(t, exitOK, "slipstream db apply -c slipstream.yaml", "", "help", "db", "apply")
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
			if err == nil && isGroup(named) {
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
		r := blackbox.Expect(t, exitOK, "slipstream", "", "completion", shell)
		if len(r.Stdout) < 1000 {
			t.Errorf("%s: a script of %d bytes", shell, len(r.Stdout))
		}
		if path, err := exec.LookPath(shell); err == nil && (shell == "bash" || shell == "zsh") {
			if out, err := exec.Command(path, "-n", blackbox.WriteFile(t, "script", r.Stdout)).CombinedOutput(); err != nil {
				t.Errorf("%s does not accept it: %v %s", shell, err, out)
			}
		}
	}
	// What the completion scripts query.
	blackbox.Expect(t, exitOK, "drop\tRemove every trigger", "", "__complete", "db", "")
	blackbox.Expect(t, exitOK, "--offline", "", "__complete", "config", "check", "--o")
	blackbox.Expect(t, exitOK, "powershell", "", "__complete", "completion", "")
}

func TestVersion(t *testing.T) {
	blackbox.Expect(t, exitOK, "slipstream ", "", "version")
	r := blackbox.Expect(t, exitOK, "", "", "version", "--json")
	var b build
	if err := json.Unmarshal([]byte(r.Stdout), &b); err != nil || b.Version == "" || b.Go == "" || b.Platform == "" {
		t.Errorf("%v: %s", err, r.Stdout)
	}
}

const minimal = "origin: { url: \"sqlite:shop.db\" }\nresources:\n  depts: { table: dept, key: [deptno] }\n"

func TestConfigCommands(t *testing.T) {
	bad := blackbox.WriteFile(t, "bad.yaml", minimal+"freshnes: 1s\nlog: { level: loud }\n")
	for _, args := range [][]string{{"config", "check"}, {"config", "check", "--offline"}, {"config", "show"}, {"serve"}, {"db", "plan"}} {
		r := blackbox.Expect(t, exitUsage, "", bad+`:4:1: freshnes: unknown field (did you mean "freshness"?)`, append(args, "-c", bad)...)
		if !strings.Contains(r.Stderr, bad+":5:15: log.level: ") {
			t.Errorf("%v: the second mistake is not reported: %s", args, r.Stderr)
		}
	}
	good := blackbox.WriteFile(t, "good.yaml", minimal)
	blackbox.Expect(t, exitOK, "1 resources, no mistakes; the database was not checked", "", "config", "check", "--offline", "-c", good)
	blackbox.Expect(t, exitUnreachable, "", "shop.db", "config", "check", "-c", good)
	r := blackbox.Expect(t, exitOK, "cache_control: no-cache", "", "config", "show", "-c", good)
	blackbox.Expect(t, exitOK, "", "", "config", "show", "-c", blackbox.WriteFile(t, "shown.yaml", r.Stdout))

	r = blackbox.Expect(t, exitOK, "", "", "config", "schema")
	var schema map[string]any
	if err := json.Unmarshal([]byte(r.Stdout), &schema); err != nil || schema["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
		t.Errorf("schema: %v %.200s", err, r.Stdout)
	}
}

// TestConfigAgainstDatabase: everything that the file names must exist.
func TestConfigAgainstDatabase(t *testing.T) {
	file := blackbox.DemoFiles(t)
	blackbox.Expect(t, exitOK, "2 resources, no mistakes; the database has their tables and keys", "db apply", "config", "check", "-c", file)
	dir := filepath.Dir(file)
	for name, text := range map[string]string{
		"table":  "origin: { url: \"sqlite:" + demoFile + "\" }\nresources:\n  depts: { table: dpt, key: [deptno] }\n",
		"column": "origin: { url: \"sqlite:" + demoFile + "\" }\nresources:\n  depts: { table: dept, key: [deptnr] }\n",
	} {
		path := filepath.Join(dir, name+".yaml")
		blackbox.Write(t, path, text)
		blackbox.Expect(t, exitUsage, "", path+":3: resource depts: ", "config", "check", "-c", path)
		blackbox.Expect(t, exitUsage, "", path+":3: resource depts: ", "serve", "-c", path)
	}
}

func TestDatabaseCommands(t *testing.T) {
	file := blackbox.DemoFiles(t)
	const table = `CREATE TABLE "slipstream_change"`
	blackbox.Expect(t, exitIncomplete, "missing", "slipstream db apply", "db", "check", "-c", file)
	plan := blackbox.Expect(t, exitOK, table, "", "db", "plan", "-c", file)
	if again := blackbox.Run(t, "db", "plan", "-c", file); again.Stdout != plan.Stdout {
		t.Error("plan changed something")
	}
	blackbox.Expect(t, exitOK, "the record of changes", "", "db", "apply", "-c", file)
	blackbox.Expect(t, exitOK, "present", "", "db", "check", "-c", file)
	blackbox.Expect(t, exitOK, "nothing to do", "", "db", "plan", "-c", file)
	blackbox.Expect(t, exitOK, "0 statements were run", "", "db", "apply", "-c", file)
	blackbox.Expect(t, exitUsage, "", "expected --yes", "db", "drop", "-c", file)
	blackbox.Expect(t, exitOK, "DROP TRIGGER", "", "db", "drop", "-c", file, "--yes")
	blackbox.Expect(t, exitIncomplete, "missing", "", "db", "check", "-c", file)

	// The printed plan is SQL that the database accepts unchanged.
	blackbox.Execute(t, filepath.Join(filepath.Dir(file), demoFile), plan.Stdout)
	blackbox.Expect(t, exitOK, "present", "", "db", "check", "-c", file)
}
