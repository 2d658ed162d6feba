package testkit

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// childEnv is the environment variable with the words for a child process.
const childEnv = "SLIPSTREAM_TEST_CHILD"

// ChildWords returns the words that [StartChild] gave to this process. There are none if the
// process is not a child.
func ChildWords() []string { return strings.Fields(os.Getenv(childEnv)) }

// Child is a process of the test binary that exchanges lines with its test: it reads them from its
// input and writes them to its output. It is killed when the test ends.
type Child struct {
	// Immutable after StartChild.
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// StartChild starts the test binary with arguments, for instance the test to run. There,
// [ChildWords] returns words.
func StartChild(t testing.TB, words string, args ...string) *Child {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv+"="+words)
	return StartProgram(t, cmd)
}

// StartProgram starts another program that exchanges lines with its test.
func StartProgram(t testing.TB, cmd *exec.Cmd) *Child {
	t.Helper()
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &Child{t, cmd, in, bufio.NewReader(out)}
	t.Cleanup(c.End)
	return c
}

// End kills the process if it is running, and waits for it.
func (c *Child) End() {
	_ = c.cmd.Process.Kill() // it may have ended
	_ = c.cmd.Wait()         // killed
}

// PID returns the process ID.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Poke writes an empty line to the process.
func (c *Child) Poke() {
	c.t.Helper()
	if _, err := io.WriteString(c.in, "\n"); err != nil {
		c.t.Fatal(err)
	}
}

// Line returns the next line of the output.
func (c *Child) Line() string {
	c.t.Helper()
	text, err := c.out.ReadString('\n')
	if err != nil {
		rest, _ := io.ReadAll(c.out) // a test that fails prints the reason
		c.t.Fatalf("a child process: %v\n%s%s", err, text, rest)
	}
	return strings.TrimSpace(text)
}

// Expect waits for the next line of the output, which must be want.
func (c *Child) Expect(want string) {
	c.t.Helper()
	if got := c.Line(); got != want {
		rest, _ := io.ReadAll(c.out)
		c.t.Fatalf("the child process wrote %q, want %q\n%s", got, want, rest)
	}
}
