package operation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/demo"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
	"github.com/slipstream-go/slipstream/redis"
)

// handoverConfig is demoConfig with database, triggers and a handover socket.
func handoverConfig(t *testing.T, more string) (file, http, admin string) {
	t.Helper()
	file, http, admin = blackbox.DemoConfig(t)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	blackbox.Write(t, file, string(text)+"\nhandover: handover.sock\n"+more)
	if err := demo.Create(filepath.Join(filepath.Dir(file), blackbox.DemoFile), 1); err != nil {
		t.Fatal(err)
	}
	blackbox.Expect(t, blackbox.ExitOK, "statements were run", "", "db", "apply", "-c", file)
	return file, http, admin
}

// shellWithFile runs a script that has f as descriptor 3.
func shellWithFile(t *testing.T, script string, f *os.File) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.ExtraFiles = []*os.File{f}
	cmd.Stderr = t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return cmd
}

// drainLoad holds the results of several kinds of clients. They run until stop is closed.
type drainLoad struct {
	stop    chan struct{}
	clients sync.WaitGroup
	kinds   []*drainKind
}

// drainKind is one kind of client.
type drainKind struct {
	name string

	// Atomics. Written by its clients.
	calls, failed, resets atomic.Int64
	first                 atomic.Pointer[error] // of the first failure
}

func (k *drainKind) failure(err error) {
	k.failed.Add(1)
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		k.resets.Add(1)
	}
	k.first.CompareAndSwap(nil, &err)
}

// run starts n clients, each of which makes one call after another. Each call gets its number.
func (l *drainLoad) run(name string, n int, pause time.Duration, call func(i int) error) {
	k := &drainKind{name: name}
	l.kinds = append(l.kinds, k)
	for client := range n {
		l.clients.Go(func() {
			for i := client; ; i += n {
				select {
				case <-l.stop:
					return
				case <-time.After(pause): // leaves CPU time to starting processes
				}
				began := time.Now()
				if err := call(i); err != nil {
					k.failure(fmt.Errorf("call %d, which began at %s and took %v: %w", i, began.UTC().Format("15:04:05.000"), time.Since(began), err))
				}
				k.calls.Add(1)
			}
		})
	}
}

// end stops the clients and fails the test for every call that failed.
func (l *drainLoad) end(t *testing.T) {
	t.Helper()
	for _, k := range l.kinds {
		testkit.Eventually(t, time.Minute, func() error {
			if n := k.calls.Load(); n < 100 && k.failed.Load() == 0 {
				return fmt.Errorf("%s: %d calls: too few to prove anything", k.name, n)
			}
			return nil
		})
	}
	close(l.stop)
	l.clients.Wait()
	for _, k := range l.kinds {
		t.Logf("%s: %d calls", k.name, k.calls.Load())
		if k.failed.Load() > 0 {
			err := error(nil)
			if p := k.first.Load(); p != nil {
				err = *p
			}
			t.Errorf("%s: %d of %d calls failed, %d of them by a reset; want none. The first: %v",
				k.name, k.failed.Load(), k.calls.Load(), k.resets.Load(), err)
		}
	}
}

// dept checks the answer to a GET of /depts/{n}.
func dept(n int, body []byte) error {
	if want := fmt.Sprintf(`{"deptno":%d,`, n); !bytes.HasPrefix(body, []byte(want)) {
		return fmt.Errorf("body %.100q, want %s", body, want)
	}
	return nil
}

// kept makes calls over the connections that Go's client keeps.
func kept(client *http.Client, base string) func(i int) error {
	return func(i int) error {
		n := 1 + i%40
		response, err := client.Get(fmt.Sprintf("%s/depts/%d", base, n))
		if err != nil {
			return err
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err == nil && response.StatusCode != 200 {
			err = fmt.Errorf("status %d: %s", response.StatusCode, body)
		}
		if err != nil {
			return err
		}
		return dept(n, body)
	}
}

// fresh opens a connection for each call.
func fresh(address string, last bool) func(i int) error {
	return func(i int) error {
		c, err := net.DialTimeout("tcp", address, 10*time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			return err
		}
		n := 1 + i%40
		// Without "Connection: close", the client closes the connection.
		field := ""
		if last {
			field = "Connection: close\r\n"
		}
		if _, err := fmt.Fprintf(c, "GET /depts/%d HTTP/1.1\r\nHost: localhost\r\n%s\r\n", n, field); err != nil {
			return err
		}
		var answer []byte
		if last {
			answer, err = io.ReadAll(c)
		} else {
			answer = make([]byte, 64<<10)
			var read int
			read, err = c.Read(answer)
			answer = answer[:read]
		}
		if err != nil {
			return err
		}
		head, body, found := bytes.Cut(answer, []byte("\r\n\r\n"))
		if !found || !bytes.HasPrefix(head, []byte("HTTP/1.1 200 ")) {
			return fmt.Errorf("answer %.200q", answer)
		}
		return dept(n, body)
	}
}

// TestHandOvers: one process after another takes over under load, and no call fails.
func TestHandOvers(t *testing.T) {
	times, callers := 20, 32
	if blackbox.Race { // starting and loading take a hundred times as long, so calls would time out
		times, callers = 3, 2
	}
	file, base, _ := handoverConfig(t, "")
	address := strings.TrimPrefix(base, "http://")
	redisAddress := fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	front := fmt.Sprintf("frontends: { http: %q", address)
	blackbox.Write(t, file, strings.Replace(string(text), front, fmt.Sprintf("%s, redis: %q", front, redisAddress), 1))
	old := blackbox.Serving(t, file)

	load := &drainLoad{stop: make(chan struct{})}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}, Timeout: 20 * time.Second}
	defer client.CloseIdleConnections()
	load.run("kept connections", callers, 2*time.Millisecond, kept(client, base))
	load.run("a connection a request", 1+callers/8, time.Millisecond, fresh(address, true))
	load.run("connections that the client ends", 1+callers/8, time.Millisecond, fresh(address, false))
	connected, err := redis.Connect(t.Context(), redis.Options{Addr: redisAddress})
	if err != nil {
		t.Fatal(err)
	}
	defer connected.Close()
	load.run("our Redis client", callers/2, 2*time.Millisecond, func(i int) error {
		n := 1 + i%40
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		body, found, err := connected.Get(ctx, fmt.Sprintf("depts:%d", n))
		if err != nil || !found {
			return fmt.Errorf("found: %t, %w", found, err)
		}
		return dept(n, []byte(body))
	})

	var replaced []*testkit.Process
	began := time.Now()
	for range times {
		next := blackbox.Serving(t, file)
		replaced = append(replaced, old)
		old = next
	}
	took := time.Since(began)
	for _, p := range replaced {
		if code := blackbox.ExitCode(t, p, 20*time.Second); code != blackbox.ExitOK || !strings.Contains(p.Log(), "msg=drained") {
			t.Errorf("exit code %d of a process that was replaced\n%s", code, p.Log())
		}
	}
	load.end(t)
	client.CloseIdleConnections()
	t.Logf("%d handovers in %v", times, took)
	// The last one ends like an ordinary process.
	if err := old.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := blackbox.ExitCode(t, old, 10*time.Second); code != blackbox.ExitOK {
		t.Errorf("exit code %d after SIGTERM\n%s", code, old.Log())
	}
	if _, err := os.Lstat(filepath.Join(filepath.Dir(file), "handover.sock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the handover socket after the end: %v; want that it does not exist", err)
	}
}

// TestHandOverRefused: a new process that cannot serve does not affect the old one.
func TestHandOverRefused(t *testing.T) {
	file, base, admin := handoverConfig(t, "drain: { grace: 0s }\n")
	old := blackbox.Serving(t, file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	beside := filepath.Join(filepath.Dir(file), "other.yaml")
	for _, c := range []struct {
		name, from, to string
		code           int
		want           string
	}{
		{"no database", blackbox.DemoFile, "none.db", blackbox.ExitUnreachable, "continues to serve"},
		{"wrong table", "table: dept", "table: depp", blackbox.ExitUsage, `did you mean "dept"`},
		{"another folder", "handover: handover.sock", "handover: none/handover.sock", blackbox.ExitFailure, "no such file"},
	} {
		blackbox.Write(t, beside, strings.Replace(string(text), c.from, c.to, 1))
		blackbox.Expect(t, c.code, "", c.want, "serve", "-c", beside)
		if status, _, _, err := blackbox.Get(t.Context(), base+"/depts/42"); err != nil || status != 200 {
			t.Errorf("%s: the old process: %d, %v", c.name, status, err)
		}
	}

	// A signal ends a process that waits for its turn.
	lock, err := os.OpenFile(filepath.Join(filepath.Dir(file), "handover.sock.lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	waiting := testkit.Start(t, testkit.Command{Path: blackbox.Program(), Args: []string{"serve", "-c", file}})
	time.Sleep(500 * time.Millisecond)
	if err := waiting.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := blackbox.ExitCode(t, waiting, 10*time.Second); code != blackbox.ExitInterrupted {
		t.Errorf("exit code %d of a process that waited\n%s", code, waiting.Log())
	}
	lock.Close()

	// With another address, the new process binds it, and operators see the new process
	// immediately.
	other := fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	blackbox.Write(t, beside, strings.Replace(string(text), strings.TrimPrefix(base, "http://"), other, 1))
	next := blackbox.Serving(t, beside)
	if code := blackbox.ExitCode(t, old, 10*time.Second); code != blackbox.ExitOK {
		t.Errorf("exit code %d of the old process\n%s", code, old.Log())
	}
	if status, _, _, err := blackbox.Get(t.Context(), "http://"+other+"/depts/42"); err != nil || status != 200 {
		t.Errorf("the new address: %d, %v\n%s", status, err, next.Log())
	}
	if _, _, _, err := blackbox.Get(t.Context(), base+"/depts/42"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the old address: %v, want no listener", err)
	}
	if !strings.Contains(next.Log(), "is not bound to a configured address") {
		t.Errorf("no warning about the other address\n%s", next.Log())
	}
	if status, _, _, err := blackbox.Get(t.Context(), admin+"/ready"); err != nil || status != 200 {
		t.Errorf("/ready of the new process: %d, %v", status, err)
	}
}

// TestHandOverOfAdmin: the listeners of operators, a unix socket and that of the metrics, are
// passed to the new process, too.
func TestHandOverOfAdmin(t *testing.T) {
	file, _, _ := handoverConfig(t, "drain: { grace: 0s }\n")
	metrics := fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	withAdmin(t, file, "admin: { address: \"unix:admin.sock\", metrics: \""+metrics+"\" }")
	old := blackbox.Serving(t, file)
	next := blackbox.Serving(t, file)
	if code := blackbox.ExitCode(t, old, 20*time.Second); code != blackbox.ExitOK {
		t.Errorf("exit code %d of the old process\n%s", code, old.Log())
	}
	if strings.Contains(next.Log(), "is not used by the configuration") || strings.Contains(next.Log(), "is not bound to a configured address") {
		t.Errorf("an inherited listener is closed\n%s", next.Log())
	}
	blackbox.Expect(t, blackbox.ExitOK, "live", "", "probe", "live", "-c", file)
	blackbox.Expect(t, blackbox.ExitOK, "live", "", "probe", "live", "--admin", metrics)
	if !strings.Contains(next.Log(), "metrics="+metrics) {
		t.Errorf("the log does not contain the address of the metrics\n%s", next.Log())
	}
}

// TestHandOverCutsOff: a request that does not end is cut off after drain.timeout, and immediately
// by a signal, as in every drain; the new process serves in the meantime.
func TestHandOverCutsOff(t *testing.T) {
	file, base, _ := handoverConfig(t, "")
	for _, c := range []struct {
		drain  string
		signal bool
		code   int
	}{{"1s", false, blackbox.ExitFailure}, {"1m", true, blackbox.ExitInterrupted}} {
		old := blackbox.Serving(t, file, "--drain", c.drain)
		unfinished(t, base)
		next := blackbox.Serving(t, file)
		time.Sleep(400 * time.Millisecond) // within 200 ms, the command treats a second signal as the same
		if c.signal {
			if err := old.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
		if code := blackbox.ExitCode(t, old, 10*time.Second); code != c.code {
			t.Errorf("exit code %d, want %d\n%s", code, c.code, old.Log())
		}
		if status, _, _, err := blackbox.Get(t.Context(), base+"/depts/42"); err != nil || status != 200 {
			t.Errorf("the new process: %d, %v", status, err)
		}
		next.Kill()
	}
}

// TestActivatedService: systemd passes the sockets and is notified of the state of
// the process.
func TestActivatedService(t *testing.T) {
	file, base, admin := handoverConfig(t, "drain: { grace: 0s }\n")
	name := filepath.Join(filepath.Dir(file), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	hears := func(want ...string) {
		t.Helper()
		var got []string
		for range want {
			b := make([]byte, 100)
			manager.SetReadDeadline(time.Now().Add(20 * time.Second))
			n, err := manager.Read(b)
			if err != nil {
				t.Errorf("the service manager: %v", err)
			}
			got = append(got, string(b[:n]))
		}
		slices.Sort(got) // sent by two processes in any order
		if !slices.Equal(got, want) {
			t.Errorf("the service manager got %q, want %q", got, want)
		}
	}
	socket, err := net.Listen("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	f, err := socket.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// The shell makes the socket descriptor 3 and keeps its process ID when it executes the
	// program.
	script := fmt.Sprintf("exec env LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=slipstream.socket NOTIFY_SOCKET=%s %s serve -c %s", name, blackbox.Program(), file)
	first := shellWithFile(t, script, f)
	hears("READY=1")
	if status, _, _, err := blackbox.Get(t.Context(), base+"/depts/42"); err != nil || status != 200 {
		t.Errorf("over the socket of systemd: %d, %v", status, err)
	}
	if err := blackbox.Alive(admin)(t.Context()); err != nil {
		t.Error(err)
	}
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	hears("STOPPING=1")
	if err := first.Wait(); err != nil {
		t.Error(err)
	}

	// systemd keeps the socket open: clients that connect while no process serves are served by the
	// next one.
	answer := make(chan error)
	go func() { answer <- fresh(strings.TrimPrefix(base, "http://"), true)(1) }() // ends within its time limit, awaited below
	time.Sleep(100 * time.Millisecond)
	second := shellWithFile(t, script, f)
	hears("READY=1")
	if err := <-answer; err != nil {
		t.Errorf("a call between two processes: %v", err)
	}
	third := testkit.Start(t, testkit.Command{Path: blackbox.Program(), Args: []string{"serve", "-c", file}, Env: []string{"NOTIFY_SOCKET=" + name}})
	hears(fmt.Sprintf("MAINPID=%d", third.PID()), "READY=1")
	if err := second.Wait(); err != nil {
		t.Error(err)
	}
	if err := third.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	hears("STOPPING=1") // only from the first process
	_ = third.Wait(context.WithoutCancel(t.Context()))
}
