// Package proc builds, starts and stops the programs that a benchmark needs.
package proc

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Build compiles a package of the module in directory module into out.
func Build(ctx context.Context, module, pkg, out string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, pkg)
	cmd.Dir = module
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, text)
	}
	return nil
}

// BenchModule returns the directory of the module that holds the benchmarks.
// Its parent is the module under test.
func BenchModule(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	dir := filepath.Dir(strings.TrimSpace(string(out)))
	if filepath.Base(dir) != "bench" {
		return "", fmt.Errorf("the module is in %s; start the program inside bench", dir)
	}
	return dir, nil
}

// FreePort returns a loopback address whose port was free a moment ago, for
// programs that cannot say which port they chose.
func FreePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// A Command is a program to be started. Path must be set.
type Command struct {
	Path string
	Args []string
	Env  []string // added to the environment of this process
	Dir  string   // to run in; if empty, that of this process
	// User is the user as which the program runs, if the system supports it; if empty, the current
	// one.
	User string
	// Ask is the signal that asks the program to end. If nil, it is the system's default.
	Ask os.Signal
	// Grace is how long it may take to end. If zero, it is 10 s.
	Grace time.Duration
}

// A Process is a running program.
type Process struct {
	// Immutable after Start.
	cmd    *exec.Cmd
	ask    os.Signal // nil for the default
	grace  time.Duration
	first  chan string // the first line of standard output
	exited chan struct{}

	// Guarded by mu.
	mu   sync.Mutex
	tail []string // the last lines it printed
	err  error
}

// tailLines is the number of lines of a program's output that an error message contains.
const tailLines = 20

// Start runs program with additional environment variables. Both outputs are
// kept for error messages.
func Start(env []string, program string, args ...string) (*Process, error) {
	return Command{Path: program, Args: args, Env: env}.Start()
}

// Start starts the program. Both outputs are kept for error messages.
func (c Command) Start() (*Process, error) {
	p := &Process{cmd: exec.Command(c.Path, c.Args...), ask: c.Ask, grace: cmp.Or(c.Grace, 10*time.Second), first: make(chan string, 1), exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), c.Env...)
	p.cmd.Dir = c.Dir
	if c.User != "" {
		if err := runAs(p.cmd, c.User); err != nil {
			return nil, err
		}
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	var readers sync.WaitGroup
	// Both end when the program closes its outputs; the next goroutine waits.
	readers.Go(func() { p.read(bufio.NewScanner(stdout), p.first) })
	readers.Go(func() { p.read(bufio.NewScanner(stderr), nil) })
	// Ends with the program; Stop waits for it.
	go func() {
		readers.Wait()
		err := p.cmd.Wait()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		close(p.exited)
	}()
	return p, nil
}

func (p *Process) read(lines *bufio.Scanner, first chan<- string) {
	for lines.Scan() {
		if first != nil {
			first <- lines.Text()
			first = nil
		}
		p.mu.Lock()
		p.tail = append(p.tail, lines.Text())
		if len(p.tail) > tailLines {
			p.tail = p.tail[1:]
		}
		p.mu.Unlock()
	}
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// FirstLine waits for the first line of standard output.
func (p *Process) FirstLine(ctx context.Context) (string, error) {
	select {
	case line := <-p.first:
		return line, nil
	case <-p.exited:
		return "", p.failure("ended before it was ready")
	case <-ctx.Done():
		return "", fmt.Errorf("%w: %w", p.failure("is not ready"), ctx.Err())
	}
}

// Await calls ready every 10 ms until it returns nil.
func (p *Process) Await(ctx context.Context, ready func(context.Context) error) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-p.exited:
			return p.failure("ended before it was ready")
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", p.failure("is not ready"), err)
		}
	}
}

// Wait returns when the program has ended.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.exited:
		p.mu.Lock()
		err := p.err
		p.mu.Unlock()
		if err != nil {
			return p.failure(err.Error())
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *Process) failure(what string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Errorf("%s %s; its last output:\n%s", filepath.Base(p.cmd.Path), what, strings.Join(p.tail, "\n"))
}

// CPU returns the user and system time of the program, once it has ended.
func (p *Process) CPU() time.Duration {
	<-p.exited
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// Stop signals the program to end and kills it when its grace period is over. It returns
// when the program has ended.
func (p *Process) Stop() error {
	select {
	case <-p.exited:
		return p.failure("had ended before it was stopped")
	default:
	}
	if p.ask == nil {
		_ = Interrupt(p.cmd.Process)
	} else {
		_ = p.cmd.Process.Signal(p.ask)
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(p.grace):
		_ = p.cmd.Process.Kill()
		<-p.exited
		return p.failure(fmt.Sprintf("did not end within %v after the request", p.grace))
	}
}
