package main

import (
	"io"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// TestManual: the page has every command with its flags, and no text is taken for a macro.
func TestManual(t *testing.T) {
	page := blackbox.Expect(t, exitOK, "", "", "man").Stdout
	macro := regexp.MustCompile(`^\.(TH|SH|SS|PP|EX|EE|nh|ad l)( "[^"]*")*$`)
	for n, line := range strings.Split(page, "\n") {
		if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !macro.MatchString(line) {
			t.Errorf("line %d would be taken for a macro: %s", n+1, line)
		}
	}
	plain := strings.NewReplacer(`\-`, "-", `\(dq`, `"`, `\e`, `\`).Replace(page)
	commands := 0
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			visit(sub)
		}
		if isGroup(c) || c.Name() == "help" {
			return
		}
		commands++
		_, section, found := strings.Cut(plain, `.SS "`+c.UseLine()+"\"\n")
		if !found {
			t.Errorf("no section %s", c.UseLine())
			return
		}
		section, _, _ = strings.Cut(section, "\n.S")
		for flag := range strings.FieldsSeq(c.NonInheritedFlags().FlagUsages()) {
			if strings.HasPrefix(flag, "--") && !strings.Contains(section, flag) {
				t.Errorf("%s: no %s", c.CommandPath(), flag)
			}
		}
		for line := range strings.Lines(c.Example) {
			if !strings.Contains(section, strings.TrimSpace(line)) {
				t.Errorf("%s: no example %s", c.CommandPath(), line)
			}
		}
	}
	visit(program{stdout: io.Discard, stderr: io.Discard}.root())
	if commands < 15 {
		t.Errorf("only %d commands", commands)
	}
	for _, want := range []string{`.SH "EXIT STATUS"`, "  130  a second signal", "slipstream - serve documents"} {
		if !strings.Contains(plain, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Count(plain, "130  a second signal") != 1 {
		t.Error("exit codes are repeated in sections of commands")
	}
}

func TestManualTextIsNoMacro(t *testing.T) {
	var p page
	p.text(".so /etc/passwd\n'br\na\\b -c\n\n")
	p.macro("SH", `a "b"`)
	if got, want := p.String(), "\\&.so /etc/passwd\n\\&'br\na\\eb \\-c\n\n.SH \"a \\(dqb\\(dq\"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if groff, err := exec.LookPath("groff"); err == nil { // if groff is installed, it must report nothing
		cmd := exec.CommandContext(t.Context(), groff, "-man", "-Tascii", "-ww", "-z")
		cmd.Stdin = strings.NewReader(blackbox.Expect(t, exitOK, "", "", "man").Stdout)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("groff: %v\n%s", err, out)
		}
	}
}
