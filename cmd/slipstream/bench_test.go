package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// server starts a test server and returns its URL.
func server(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

// runBench runs slipstream bench. On a busy machine the generator may be the limit of any run,
// which counts as success.
func runBench(t *testing.T, args ...string) blackbox.Result {
	t.Helper()
	r := blackbox.Run(t, append([]string{"bench"}, args...)...)
	if r.Code == exitLimited && strings.Contains(r.Stderr, "the generator was the limit: ") && strings.Contains(r.Stdout, "THE GENERATOR WAS THE LIMIT") {
		r.Code = exitOK
	}
	return r
}

func expectBench(t *testing.T, code int, stdout, stderr string, args ...string) {
	t.Helper()
	if r := runBench(t, args...); r.Code != code || !strings.Contains(r.Stdout, stdout) || !strings.Contains(r.Stderr, stderr) {
		t.Errorf("slipstream bench %s: exit %d\nstdout: %s\nstderr: %s\nexpected exit %d, %q, %q", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr, code, stdout, stderr)
	}
}

func TestBenchHTTP(t *testing.T) {
	var posted atomic.Int64
	url := server(t, func(w http.ResponseWriter, r *http.Request) {
		if text, _ := io.ReadAll(r.Body); r.Method == "POST" && string(text) == "hello" && r.Header.Get("X") == "y" {
			posted.Add(1)
		}
		_, _ = io.WriteString(w, "hello")
	})
	expectBench(t, exitOK, "requests  100 completed, 0 failed", "", "http", "-c", "4", "-n", "100", url)
	expectBench(t, exitOK, "open loop, bursts arrivals, 4 callers", "", "http", "-c", "4", "-q", "500", "--arrivals", "bursts", "-n", "100", "--seed", "7", url)
	expectBench(t, exitOK, " s cut (fixed length): ", "", "http", "-c", "2", "-z", "100ms", "--warm-up", "50ms", "-t", "5", url)
	file := blackbox.WriteFile(t, "body", "hello")
	for _, body := range [][]string{{"-d", "hello"}, {"-D", file}} {
		posted.Store(0)
		expectBench(t, exitOK, "POST "+url, "", append([]string{"http", "-m", "POST", "-H", "X: y", "-n", "20", url}, body...)...)
		if posted.Load() != 20 {
			t.Errorf("%v: %d of 20 requests arrived as expected", body, posted.Load())
		}
	}
}

func TestBenchMixesOfHTTP(t *testing.T) {
	url := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/orders" {
			w.WriteHeader(http.StatusCreated)
		}
	})
	mix := blackbox.WriteFile(t, "mix.json", `{"operations": [{"weight": 9}, {"method": "POST", "path": "/orders", "body": "{}", "status": "201", "name": "order"}]}`)
	expectBench(t, exitOK, "\norder  ", "", "http", "-c", "4", "-n", "200", "--mix", mix, url)
	expectBench(t, exitOK, "GET / and order, 9 to 1, at "+url, "", "http", "-c", "4", "-n", "200", "--mix", mix, url+"/")
	wrong := blackbox.WriteFile(t, "wrong.json", "{\"operations\": [{},\n{\"path\": \"orders\"}]}")
	expectBench(t, exitUsage, "", wrong+`:2:1: path "orders"; expected one such as /orders?open=1`, "http", "--mix", wrong, url)
	expectBench(t, exitUsage, "", "none of the others can be", "http", "--mix", mix, "-d", "x", url)
}

func TestBenchKeysOfHTTP(t *testing.T) {
	var wrong atomic.Int64
	url := server(t, func(_ http.ResponseWriter, r *http.Request) {
		if n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/depts/d")); err != nil || n < 0 || n > 9 {
			wrong.Add(1)
		}
	})
	expectBench(t, exitOK, "GET "+url+"/depts/__key__", "", "http", "-c", "4", "-n", "200", "--keys", "10", "--key-prefix", "d", "--key-dist", "zipf", url+"/depts/__key__")
	if wrong.Load() > 0 {
		t.Errorf("%d requests had another key", wrong.Load())
	}
	expectBench(t, exitUsage, "", "0 keys; expected 1 to", "http", "--keys", "0", url+"/depts/__key__")
}

func TestBenchUsageErrors(t *testing.T) {
	for _, test := range []struct {
		args   []string
		stderr string
	}{
		{nil, "expected http"},
		{[]string{"http"}, "accepts 1 arg"},
		{[]string{"http", "http://192.0.2.1/"}, "GET http://192.0.2.1/ is not on this machine; expected --yes"},
		{[]string{"http", "ftp://a.example/"}, `scheme "ftp"`},
		{[]string{"http", "-c", "0", "127.0.0.1"}, "0 connections"},
		{[]string{"http", "-n", "0", "127.0.0.1"}, "-n 0; expected at least 1"},
		{[]string{"http", "-z", "soon", "127.0.0.1"}, "expected a duration such as 10s"},
		{[]string{"http", "-q", "-5", "127.0.0.1"}, "-5 requests a second"},
		{[]string{"http", "--arrivals", "even", "-q", "1", "127.0.0.1"}, "expected constant, poisson or bursts"},
		{[]string{"http", "--arrivals", "poisson", "127.0.0.1"}, "without a rate"},
		{[]string{"http", "-H", "nothing", "127.0.0.1"}, `header "nothing"`},
		{[]string{"http", "-D", "none", "127.0.0.1"}, "none"},
		{[]string{"http", "-D", "none", "-d", "x", "127.0.0.1"}, "none of the others can be"},
		{[]string{"http", "--cert", "a.pem", "https://127.0.0.1"}, "missing [key]"},
		{[]string{"http", "--max-failed", "101", "127.0.0.1"}, "expected a percentage"},
		{[]string{"http", "--rounds", "6", "127.0.0.1"}, "need --vs"},
		{[]string{"http", "--vs", "192.0.2.1", "127.0.0.1"}, "GET http://192.0.2.1 is not on this machine"},
		{[]string{"http", "--vs", "127.0.0.2", "--find-knee", "127.0.0.1"}, "none of the others can be"},
		{[]string{"http", "--find-knee", "--p99", "0", "127.0.0.1"}, "expected a positive duration"},
		{[]string{"http", "--json", "-", "--benchfmt", "-", "127.0.0.1"}, "expected only one of them"},
		{[]string{"http", "--cacert", "none.pem", "https://127.0.0.1"}, "none.pem"},
		{[]string{"http", "--insecure", "http://127.0.0.1"}, "without TLS"},
	} {
		r := blackbox.Expect(t, exitUsage, "", test.stderr, append([]string{"bench"}, test.args...)...)
		if r.Stdout != "" || !strings.HasPrefix(r.Stderr, "slipstream: ") {
			t.Errorf("%v: stdout %q, stderr %q", test.args, r.Stdout, r.Stderr)
		}
	}
}

func TestBenchExitCodes(t *testing.T) {
	closed := "127.0.0.1:" + strconv.Itoa(testkit.FreePort(t))
	expectBench(t, exitUnreachable, "", "connection refused", "http", "-n", "1", closed)
	var n atomic.Int64
	url := server(t, func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1)%4 == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	expectBench(t, exitFailure, " status 503", "25 % of the requests failed", "http", "-c", "1", "-n", "20", url)
	expectBench(t, exitOK, " status 503", "", "http", "-c", "1", "-n", "20", "--max-failed", "25", url)
	expectBench(t, exitFailure, "0 completed, 4 failed", "no request got a correct answer: status 200 OK", "http", "-c", "1", "-n", "4", "--status", "404", server(t, func(http.ResponseWriter, *http.Request) {}))
	if runtime.GOOS == "linux" {
		expectBench(t, exitFailure, "", "process 1073741824: there is no such process", "http", "-n", "1", "--pid", "1073741824", url)
	}
	expectBench(t, exitFailure, "", "404", "http", "-n", "1", "--metrics", server(t, http.NotFound), url)
}

// awaitRequests waits for a few requests.
func awaitRequests(t *testing.T, asked *atomic.Int64) {
	t.Helper()
	testkit.Eventually(t, 30*time.Second, func() error {
		if n := asked.Load(); n < 20 {
			return fmt.Errorf("%d requests", n)
		}
		return nil
	})
}

// A signal ends a run early, and the results so far are printed.
//
// mutant: bench-throws-interrupted-run-away
func TestBenchInterrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no process can send the signal there")
	}
	var asked atomic.Int64
	url := server(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(t.Context(), blackbox.Program(), "bench", "http", "-c", "2", "-z", "1h", "--warm-up", "0", url)
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	awaitRequests(t, &asked)
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := c.Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != exitInterrupted || !strings.Contains(stderr.String(), "interrupted: the report is partial") {
		t.Errorf("%v, stderr %s", err, &stderr)
	}
	if out := stdout.String(); !strings.Contains(out, "PARTIAL: ") || strings.Contains(out, "requests  0 completed") {
		t.Errorf("stdout %s", out)
	}
}

// If a server dies during a run, a report is printed; with --pid, the run ends then.
func TestBenchTargetDies(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are watched on Linux only")
	}
	redis := testkit.StartRedis(t)
	var asked atomic.Int64
	url := server(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	result := make(chan blackbox.Result, 1)
	go func() { // ends with the process, received below
		result <- blackbox.Run(t, "bench", "http", "-c", "2", "-z", "1h", "--warm-up", "0", "--pid", strconv.Itoa(redis.PID()), url)
	}()
	awaitRequests(t, &asked)
	redis.Kill()
	r := <-result
	if r.Code != exitFailure || !strings.Contains(r.Stderr, "the server process ended during the run") || !strings.Contains(r.Stdout, "PARTIAL: ") || strings.Contains(r.Stdout, "requests  0 completed") {
		t.Errorf("exit %d, %s\n%s", r.Code, r.Stderr, r.Stdout)
	}
}

func TestBenchOutputs(t *testing.T) {
	url := server(t, func(http.ResponseWriter, *http.Request) {})
	file := filepath.Join(t.TempDir(), "report.json")
	expectBench(t, exitOK, "requests  20 completed", "", "http", "-n", "20", "--json", file, url)
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), `"schema": "slipstream-bench/1"`) {
		t.Errorf("%v: %s", err, text)
	}
	if r := blackbox.Run(t, "bench", "http", "-n", "20", "--json", "-", url); !json.Valid([]byte(r.Stdout)) {
		t.Errorf("%s%s", r.Stdout, r.Stderr)
	}
	if r := blackbox.Run(t, "bench", "http", "-n", "20", "--benchfmt", "-", url); !strings.Contains(r.Stdout, "\nBenchmarkRequests/loop=closed/callers=50/subject=A-") {
		t.Errorf("%s%s", r.Stdout, r.Stderr)
	}
	if r := blackbox.Run(t, "bench", "http", "-n", "20", "--hdr", "-", url); !strings.HasPrefix(r.Stdout, "#[Logged by slipstream bench]\n#[Histogram log format version 1.3]\n#[StartTime: ") || !strings.Contains(r.Stdout, "\nTag=window,0.000,") {
		t.Errorf("%s%s", r.Stdout, r.Stderr)
	}
	raw := filepath.Join(t.TempDir(), "raw.csv")
	expectBench(t, exitOK, "rows     20 in "+raw+"\n", "", "http", "-n", "20", "--raw", raw, url)
	if text, err := os.ReadFile(raw); err != nil || bytes.Count(text, []byte{'\n'}) != 21 || !bytes.HasPrefix(text, []byte("caller,intended_ns,start_ns,latency_ns,status,error,bytes\n")) {
		t.Errorf("%v: %s", err, text)
	}
	expectBench(t, exitFailure, "", "no such file", "http", "-n", "20", "--raw", filepath.Join(t.TempDir(), "none", "x"), url)
	expectBench(t, exitUsage, "", "none of the others can be", "http", "--hdr", file, "--find-knee", url)
	expectBench(t, exitFailure, "", "no such file", "http", "-n", "20", "--json", filepath.Join(t.TempDir(), "none", "x"), url)
}

func TestBenchCompares(t *testing.T) {
	fast := server(t, func(http.ResponseWriter, *http.Request) {})
	slow := server(t, func(http.ResponseWriter, *http.Request) { time.Sleep(5 * time.Millisecond) })
	r := runBench(t, "http", "-c", "2", "-n", "50", "--rounds", "2", "--vs", slow, fast)
	if r.Code != exitOK && r.Code != exitLimited || !strings.Contains(r.Stdout, "A  GET "+fast+"\nB  GET "+slow+"\n") || !strings.Contains(r.Stdout, "cannot tell: the ratio of A to itself") || !strings.Contains(r.Stderr, "round 2 of 2") {
		t.Errorf("exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	expectBench(t, exitUnreachable, "", "connection refused", "http", "-n", "5", "--vs", "127.0.0.1:"+strconv.Itoa(testkit.FreePort(t)), fast)
}

func TestBenchFindsTheKnee(t *testing.T) {
	// Each request takes 10 ms, and there are 2 connections: 200 a second and no more.
	url := server(t, func(http.ResponseWriter, *http.Request) { time.Sleep(10 * time.Millisecond) })
	r := runBench(t, "http", "-c", "2", "-z", "300ms", "--warm-up", "0", "--find-knee", "--p99", "2s", "-q", "1600", url)
	if r.Code != exitOK && r.Code != exitFailure || !strings.Contains(r.Stdout, "planned/s") || !strings.Contains(r.Stderr, "1 a second: ") && !strings.Contains(r.Stderr, "00 a second: ") {
		t.Errorf("exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	if strings.Contains(r.Stdout, "the maximum that -q allows") {
		t.Errorf("a server of 200 requests a second kept the limit at 1,600:\n%s", r.Stdout)
	}
}

// More connections than the limit of descriptors allows are refused before the first one is opened;
// the soft limit is raised.
func TestBenchDescriptors(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("needs a shell that sets limits")
	}
	var conns atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	limited := func(limits string, args ...string) (string, error) {
		c := exec.CommandContext(t.Context(), sh, slices.Concat([]string{"-c", limits + `; exec "$@"`, "sh", blackbox.Program(), "bench", "http"}, args)...)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	out, err := limited("ulimit -n 1024", "-c", "20000", "-n", "20000", s.URL)
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitFailure || !strings.Contains(out, "20100 descriptors are needed, and this process may open at most 1024") || conns.Load() > 0 {
		t.Errorf("%v after %d connections: %s", err, conns.Load(), out)
	}
	if out, err := limited("ulimit -Sn 64", "-c", "200", "-n", "400", "--max-failed", "0", s.URL); !strings.Contains(out, "400 completed, 0 failed") {
		t.Errorf("%v: %s", err, out)
	}
}
