//go:build unix

package operation

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// TestTutorialOverPostgres: the commands of docs/tutorial-postgres.md print what the page shows, with roles that need their
// passwords.
func TestTutorialOverPostgres(t *testing.T) {
	page, err := os.ReadFile("../../docs/tutorial-postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	pg := testkit.StartPostgres(t)
	pg.PSQL(t, "DROP ROLE "+testkit.Definer) // because the page creates it
	const rules = "host all owner,gateway 127.0.0.1/32 scram-sha-256\nhost all postgres 127.0.0.1/32 trust\nlocal all postgres trust\n"
	if err := os.WriteFile(filepath.Join(pg.SocketDir, "data", "pg_hba.conf"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	pg.PSQL(t, "SELECT pg_reload_conf()")
	port := func() string { return fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t)) }
	text := strings.NewReplacer("127.0.0.1:5432", fmt.Sprintf("127.0.0.1:%d", pg.Port), "127.0.0.1:8080", port(), "127.0.0.1:9100", port()).Replace(string(page))

	dir := t.TempDir()
	s := newShell(t, dir, "PGHOST=127.0.0.1", fmt.Sprintf("PGPORT=%d", pg.Port), "PGUSER=postgres")
	commands := 0
	for _, step := range tutorialSteps(text) {
		if step.file != "" {
			blackbox.Write(t, filepath.Join(dir, step.file), step.text)
			continue
		}
		commands++
		s.expect(step)
	}
	if commands < 20 {
		t.Errorf("found only %d commands in the page, expected at least 20: the test does not parse it", commands)
	}
}

// A tutorialStep is a file to write, or a command to run and what it prints.
type tutorialStep struct {
	file    string // empty for a command
	text    string // of the file, or the output; in it, ... matches any text and, as a line, any number of lines
	command string
}

var fileOfBlock = regexp.MustCompile(`^\S+ title="([^"/]+)"$`)

// tutorialSteps returns the steps of a page: code blocks with a title are files. In code blocks of
// the language console, lines that begin with a prompt are commands, and the others are their
// output. Other blocks are ignored.
func tutorialSteps(page string) (steps []tutorialStep) {
	fence, info := false, ""
	var lines []string
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		after, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && !fence:
			fence, info, lines = true, after, nil
		case isFence:
			fence = false
			if m := fileOfBlock.FindStringSubmatch(info); m != nil {
				steps = append(steps, tutorialStep{file: m[1], text: strings.Join(lines, "\n") + "\n"})
			} else if info == "console" {
				steps = append(steps, consoleSteps(lines)...)
			}
		case fence:
			lines = append(lines, line)
		}
	}
	return steps
}

func consoleSteps(lines []string) (steps []tutorialStep) {
	for _, line := range lines {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			steps = append(steps, tutorialStep{command: command})
		} else if len(steps) > 0 {
			steps[len(steps)-1].text += line + "\n"
		}
	}
	return steps
}

// matchesOutput reports whether a command printed what the page shows.
func matchesOutput(shown, printed string) bool {
	var pattern strings.Builder
	for line := range strings.Lines(shown) {
		if line == "...\n" {
			pattern.WriteString(`(?:.*\n)*`)
			continue
		}
		pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, `.*`))
	}
	return regexp.MustCompile(`^` + pattern.String() + `$`).MatchString(printed)
}

func TestTutorialCheckBites(t *testing.T) {
	page := "```sql title=\"a.sql\"\nSELECT 1;\n```\ntext\n```yaml\na: b\n```\n```console\n$ one\n$ two | x\n1\n...\n```\n"
	want := []tutorialStep{{file: "a.sql", text: "SELECT 1;\n"}, {command: "one"}, {command: "two | x", text: "1\n...\n"}}
	if got := tutorialSteps(page); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the steps are %+v, want %+v", got, want)
	}
	for _, c := range []struct {
		shown, printed string
		want           bool
	}{
		{"", "", true},
		{"", "x\n", false},
		{"401\n", "401\n", true},
		{"401\n", "200\n", false},
		{"...\n3 done\n", "a\nb\n3 done\n", true},
		{"...\n3 done\n", "3 done\n", true},
		{"...\n3 done\n", "a\n13 done\n", false},
		{"a\n...\nb\n", "a\nx\n", false},
		{"{\"a\":...}\n", "{\"a\":[1]}\n", true},
		{"{\"a\":...}\n", "{\"b\":[1]}\n", false},
		{"a.c\n", "abc\n", false},
	} {
		if got := matchesOutput(c.shown, c.printed); got != c.want {
			t.Errorf("%q for %q: %t, want %t", c.printed, c.shown, got, c.want)
		}
	}
}

// shell is a bash process that runs one command after another, with the slipstream of the tests in
// its PATH. It is killed with its background jobs when the test ends.
type shell struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

// endOfCommand is what the shell prints after a command, followed by the exit code.
const endOfCommand = "--- end of the command:"

func newShell(t *testing.T, dir string, env ...string) *shell {
	t.Helper()
	bin := t.TempDir()
	if err := os.Symlink(blackbox.Program(), filepath.Join(bin, "slipstream")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "--noprofile", "--norc")
	cmd.Dir = dir
	// Nothing else from the environment: proxies and passwords must have no influence.
	cmd.Env = append(env, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+t.TempDir(), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
		_ = cmd.Wait()                                      // killed
		if log, err := os.ReadFile(filepath.Join(dir, "slipstream.log")); t.Failed() && err == nil {
			t.Logf("slipstream.log:\n%s", log)
		}
	})
	s := &shell{t, in, bufio.NewReader(out)}
	// If this process dies, the shell reaches the end of its input.
	if output, code := s.run("trap 'kill $(jobs -p) 2>/dev/null' EXIT"); output != "" || code != "0" {
		t.Fatalf("bash: exit code %s\n%s", code, output)
	}
	return s
}

// run runs a command and returns what it printed, with a newline at the end if it printed anything, and its exit code.
func (s *shell) run(command string) (output, code string) {
	s.t.Helper()
	// Commands must not read the commands that follow.
	if _, err := fmt.Fprintf(s.in, "{ %s\n} </dev/null; printf '\\n%%s%%d\\n' '%s' $?\n", command, endOfCommand); err != nil {
		s.t.Fatalf("%s: %v", command, err)
	}
	var printed strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			s.t.Fatalf("%s: %v after\n%s", command, err, printed.String())
		}
		if end, ok := strings.CutPrefix(line, endOfCommand); ok {
			output = strings.TrimRight(strings.ReplaceAll(printed.String(), "\r\n", "\n"), "\n")
			if output != "" {
				output += "\n"
			}
			return output, strings.TrimSpace(end)
		}
		printed.WriteString(line)
	}
}

// expect runs a command of the page. A command that only reads is repeated until it prints what the
// page shows, because on a busy machine the gateway may need longer than a reader of the page.
func (s *shell) expect(step tutorialStep) {
	s.t.Helper()
	try := func() error {
		output, code := s.run(step.command)
		if code != "0" || !matchesOutput(step.text, output) {
			return fmt.Errorf("$ %s\n%sexit code %s, the page shows\n%s", step.command, output, code, step.text)
		}
		return nil
	}
	if reads := strings.HasPrefix(step.command, "grep ") || strings.HasPrefix(step.command, "curl ") && !strings.Contains(step.command, " -X "); reads {
		testkit.Eventually(s.t, 10*time.Second, try)
	} else if err := try(); err != nil {
		s.t.Fatal(err)
	}
}
