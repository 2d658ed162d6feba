//go:build unix

package testkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestProcessLifecycle(t *testing.T) {
	NoLeaks(t)
	p := Start(t, Command{Path: "sh", Args: []string{"-c", `trap 'echo bye; exit 3' TERM; echo "hello $WHO"; while :; do sleep 0.01; done`},
		Env: []string{"WHO=world"}})
	Eventually(t, 10*time.Second, func() error {
		if !strings.Contains(p.Log(), "hello world") {
			return fmt.Errorf("log is %q", p.Log())
		}
		return nil
	})
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := p.Wait(t.Context()); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("Wait = %v, want exit code 3", err)
	}
	if !strings.HasSuffix(p.Log(), "bye\n") {
		t.Errorf("log is %q", p.Log())
	}
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal after the end: %v, want os.ErrProcessDone", err)
	}
	p.Kill() // does nothing after the end, and does not hang
}

func TestProcessStopAndContinue(t *testing.T) {
	p := Start(t, Command{Path: "sh", Args: []string{"-c", `i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done`}})
	grows := func() bool {
		before := len(p.Log())
		time.Sleep(150 * time.Millisecond)
		return len(p.Log()) > before
	}
	Eventually(t, 10*time.Second, func() error {
		if !grows() {
			return errors.New("no output yet")
		}
		return nil
	})
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// SIGSTOP takes effect soon, but not immediately.
	Eventually(t, 10*time.Second, func() error {
		if grows() {
			return errors.New("still writes after SIGSTOP")
		}
		return nil
	})
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	Eventually(t, 10*time.Second, func() error {
		if !grows() {
			return errors.New("silent after SIGCONT")
		}
		return nil
	})
}

func TestKillReachesGrandchildren(t *testing.T) {
	p := Start(t, Command{Path: "sh", Args: []string{"-c", `sleep 600 & echo $!; wait`}})
	var pid int
	Eventually(t, 10*time.Second, func() (err error) {
		pid, err = strconv.Atoi(strings.TrimSpace(p.Log()))
		return err
	})
	p.Kill()
	awaitGone(t, pid)
}

func TestStartFailures(t *testing.T) {
	never := func(context.Context) error { return errors.New("nobody answers") }
	for _, c := range []struct {
		name string
		cmd  Command
		want []string
	}{
		{"missing program", Command{Path: "no-such-server"}, []string{"no-such-server", "make prepare"}},
		{"ends early", Command{Path: "sh", Args: []string{"-c", "echo 'port taken' >&2; exit 1"}, Ready: never}, []string{"ended early", "exit status 1", "nobody answers"}},
		{"never ready", Command{Path: "sleep", Args: []string{"600"}, Ready: never, ReadyTimeout: 50 * time.Millisecond}, []string{"not ready", "50ms", "nobody answers"}},
		{"unknown user", Command{Path: "true", User: "no-such-user"}, []string{"no-such-user"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &probe{TB: t}
			p.run(func() { Start(p, c.cmd) })
			p.runCleanups()
			for _, want := range c.want {
				if !p.contains(want) {
					t.Errorf("failure %q, want one that contains %q", p.failure(), want)
				}
			}
			if c.name == "ends early" && !strings.Contains(strings.Join(p.logs, "\n"), "port taken") {
				t.Errorf("logs %q, want the program's output", p.logs)
			}
		})
	}
}

// When a test binary dies without running its cleanups, the kernel kills the processes it has
// started. Here, the dying parent is another process of this binary.
func TestProcessDiesWithTheTestBinary(t *testing.T) {
	const role = "SLIPSTREAM_TESTKIT_ORPHAN"
	if os.Getenv(role) != "" {
		p := Start(t, Command{Path: "sleep", Args: []string{"600"}})
		fmt.Printf("child %d\n", p.PID())
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Log("only Linux has a parent-death signal")
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProcessDiesWithTheTestBinary$")
	cmd.Env = append(os.Environ(), role+"=1")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the inner test ended with %v, want SIGKILL; output %q", err, out)
	}
	_, number, ok := bytes.Cut(out, []byte("child "))
	if !ok {
		t.Fatalf("output %q, want the child's number", out)
	}
	number, _, _ = bytes.Cut(number, []byte("\n"))
	pid, err := strconv.Atoi(string(number))
	if err != nil {
		t.Fatal(err)
	}
	awaitGone(t, pid)
}

// awaitGone waits until a process that is not our child has ended. A zombie that is never reaped,
// as in a container without init, counts as ended.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	Eventually(t, 10*time.Second, func() error {
		if err := syscall.Kill(pid, 0); err != nil {
			return nil
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && bytes.Contains(stat, []byte(") Z ")) {
			return nil
		}
		return fmt.Errorf("process %d is still running", pid)
	})
}

// TestFreePortsDiffer: a test that requests two ports gets two different ones.
func TestFreePortsDiffer(t *testing.T) {
	seen := make(map[int]bool)
	for range 500 {
		port := FreePort(t)
		if seen[port] {
			t.Fatalf("port %d was returned twice", port)
		}
		seen[port] = true
	}
}
