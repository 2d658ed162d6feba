package testkit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Command describes a program for [Start].
type Command struct {
	// Path is the program; a name without a slash is looked up in PATH.
	Path string
	Args []string
	// Dir is the working directory; empty means the test's own.
	Dir string
	// Env is added to the environment of the test.
	Env []string
	// User runs the program as another user. Empty means the same one; it
	// may be set only by root on a Unix system.
	User string
	// Ready is called until it returns nil; nil means ready immediately.
	Ready func(ctx context.Context) error
	// ReadyTimeout bounds the wait for Ready; zero means 30 s.
	ReadyTimeout time.Duration
}

// Process is a running program. It is killed, together with all processes that it has started, when
// the test ends, and on Linux also when the test binary dies. Its methods may be called from any
// goroutine.
type Process struct {
	// Immutable after Start.
	name    string
	logPath string
	pid     int
	exited  chan struct{} // closed once the program has been reaped

	// Written before exited is closed, read after.
	exitErr error
}

// Start runs the program and returns when it is ready. It fails the test, with
// the end of the program's output, if that does not happen in time.
func Start(t testing.TB, c Command) *Process {
	t.Helper()
	p, err := Launch(t, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Launch is like [Start], but returns an error instead of failing the test; in that case the
// program has ended. It may be called from any goroutine.
func Launch(t testing.TB, c Command) (*Process, error) {
	t.Helper()
	path, err := exec.LookPath(c.Path)
	if err != nil {
		return nil, fmt.Errorf("%w (install what the tests need with: make prepare)", err)
	}
	p := &Process{
		name:    filepath.Base(path),
		logPath: filepath.Join(t.TempDir(), "output"),
		exited:  make(chan struct{}),
	}
	// Output goes to a file instead of a pipe: a pipe needs a goroutine, and a grandchild that
	// keeps it open would block Wait.
	log, err := os.Create(p.logPath)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, c.Args...)
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := isolate(cmd, c.User); err != nil {
		log.Close()
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	started := make(chan error)
	// Ends with the program; Kill, registered below, ends it and waits for it.
	go p.run(cmd, started)
	err = <-started
	log.Close()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("output of %s (end):\n%s", p.name, p.logTail())
		}
	})
	if err := p.awaitReady(t.Context(), c); err != nil {
		p.Kill()
		return nil, fmt.Errorf("%s not ready: %w", p.name, err)
	}
	return p, nil
}

// run starts the program and reaps it. It keeps its thread, because Linux sends
// the parent-death signal when the thread that forked ends, not the process.
func (p *Process) run(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Start()
	if err == nil {
		p.pid = cmd.Process.Pid
	}
	started <- err
	if err != nil {
		return
	}
	p.exitErr = cmd.Wait()
	close(p.exited)
}

func (p *Process) awaitReady(ctx context.Context, c Command) error {
	if c.Ready == nil {
		return nil
	}
	timeout := c.ReadyTimeout
	if timeout == 0 {
		timeout = 30 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		err := c.Ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("ended early: %v (last probe: %w)", p.exitErr, err)
		case <-ctx.Done():
			return fmt.Errorf("after %v: %w", timeout, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// PID returns the process id.
func (p *Process) PID() int { return p.pid }

// Exited is closed when the program has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Signal sends sig to the program itself: syscall.SIGSTOP freezes it, syscall.SIGCONT continues it,
// os.Interrupt asks it to end.
func (p *Process) Signal(sig os.Signal) error {
	select {
	case <-p.exited: // its process ID may have been reused
		return fmt.Errorf("signal %v to %s: %w", sig, p.name, os.ErrProcessDone)
	default:
	}
	proc, err := os.FindProcess(p.pid)
	if err != nil {
		return fmt.Errorf("signal %v to %s: %w", sig, p.name, err)
	}
	defer proc.Release()
	return proc.Signal(sig)
}

// Kill kills the program and everything it has started (SIGKILL), and waits until it has ended. It
// may be called again.
func (p *Process) Kill() {
	select {
	case <-p.exited:
		return
	default:
	}
	killGroup(p.pid)
	<-p.exited
}

// Wait waits until the program ends. It returns nil for exit code 0, otherwise an [exec.ExitError].
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.exited:
		return p.exitErr
	case <-ctx.Done():
		return fmt.Errorf("%s is still running: %w", p.name, ctx.Err())
	}
}

// Log returns everything the program has written to its output so far.
func (p *Process) Log() string {
	b, err := os.ReadFile(p.logPath)
	if err != nil {
		return fmt.Sprintf("(output not readable: %v)", err)
	}
	return string(b)
}

func (p *Process) logTail() string {
	const most = 16 << 10
	text := p.Log()
	return text[max(0, len(text)-most):]
}

// portsGiven contains the ports that FreePort has returned in this process or found in use.
var portsGiven sync.Map

// FreePort returns a TCP port of the loopback address that was free a moment ago. It is below the
// range from which the kernel assigns ports automatically (from 32768 on), because a connection of
// another test could take such a port before it is used. No port is returned twice. If two
// processes call FreePort at the same time, they get the same port with a probability of about 1 in
// 16,000.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 16<<10 + rand.IntN(16<<10)
		if _, twice := portsGiven.LoadOrStore(port, true); twice {
			continue
		}
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("none of 100 ports is free")
	return 0
}

// shortTempDir returns a directory that is removed when the test ends. Its path is short, because
// the path of a Unix socket may have only 107 bytes. Unlike with t.TempDir, every user can enter
// all of its parent directories.
func shortTempDir(t testing.TB, prefix string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Processes of PostgreSQL notice only after a moment that their server was killed, and the
		// statistics collector of version 14 may still write a file.
		var err error
		for range 100 {
			if err = os.RemoveAll(dir); err == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Errorf("remove temporary directory: %v", err)
	})
	return dir
}

// exchange connects to a port of the loopback address, writes send, and reads until the answer is
// at least as long as want. It is the readiness probe for servers that answer a single packet.
func exchange(ctx context.Context, port int, send, want string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte(send)); err != nil {
		return err
	}
	var got []byte
	buf := make([]byte, 256)
	for len(got) < len(want) {
		n, err := conn.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			return errors.Join(fmt.Errorf("answer %q", got), err)
		}
	}
	if string(got[:len(want)]) != want {
		return fmt.Errorf("answer %q, expected %q", got, want)
	}
	return nil
}
