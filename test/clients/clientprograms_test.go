package clients

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit/faultproxy"
)

// client is a program or library that sends the steps to base.
type client struct {
	name string
	// connections is the maximum number that it may open for all steps; 0 means any number.
	connections int64
	zstd        func(t *testing.T) bool // nil if it does not support zstd
	send        func(t *testing.T, base string, steps []step) []answered
}

// TestForeignClients: every client understands the gateway's responses in the same way.
func TestForeignClients(t *testing.T) {
	clients := []client{
		{"go", 1, nil, sendGo},
		{"curl", 1, curlHasZstd, sendCurl},
		{"python-http.client", 1, nil, script("python3", "testdata/clients/client.py", "http.client")},
		{"python-urllib", 0, nil, script("python3", "testdata/clients/client.py", "urllib")},
		{"node-http", 1, nodeHasZstd, script("node", "testdata/clients/client.mjs", "http")},
		// It closes its connection after a HEAD request, whatever the response.
		{"node-fetch", 6, nil, script("node", "testdata/clients/client.mjs", "fetch")},
		{"java", 1, nil, script("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "testdata/clients/Client.java")},
	}
	var names []string
	for _, c := range clients {
		names = append(names, c.name)
	}
	s := startSurface(t, names)
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			zstd := c.zstd != nil && c.zstd(t)
			steps := s.steps(t, c.name, zstd)
			proxy := faultproxy.Start(t, s.address, faultproxy.Options{}) // counts connections
			got := c.send(t, "http://"+proxy.Addr(), steps)
			if len(got) != len(steps) {
				t.Fatalf("%d answers to %d requests", len(got), len(steps))
			}
			for i := range steps {
				steps[i].judge(t, got[i])
			}
			if n := proxy.Stats().Accepted; n == 0 || c.connections > 0 && n > c.connections {
				t.Errorf("%d connections for %d requests, want at most %d", n, len(steps), c.connections)
			}
			t.Logf("%d requests on %d connections, zstd %v", len(steps), proxy.Stats().Accepted, zstd)
		})
	}
}

// script is a client that reads lines of requests and writes lines of answers: see
// testdata/clients/client.py.
func script(name string, args ...string) func(t *testing.T, base string, steps []step) []answered {
	return func(t *testing.T, base string, steps []step) []answered {
		t.Helper()
		var in strings.Builder
		for _, s := range steps {
			fmt.Fprintln(&in, strings.Join(append([]string{s.method, base + s.path}, s.fields...), "\t"))
		}
		out := runForeign(t, in.String(), name, args...)
		var all []answered
		for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
			all = append(all, parseAnswer(t, lines.Text()))
		}
		return all
	}
}

func parseAnswer(t *testing.T, line string) answered {
	t.Helper()
	parts := strings.Split(line, "\t")
	if len(parts) < 3 {
		t.Fatalf("a line of %d parts: %q", len(parts), line)
	}
	a := answered{hash: parts[2], fields: map[string]string{}}
	var err error
	if a.status, err = strconv.Atoi(parts[0]); err != nil {
		t.Fatal(err)
	}
	if a.length, err = strconv.Atoi(parts[1]); err != nil {
		t.Fatal(err)
	}
	for _, f := range parts[3:] {
		name, value, _ := strings.Cut(f, ": ")
		a.fields[name] = value
	}
	return a
}

// runForeign runs a program that make prepare installs, and returns what it prints.
func runForeign(t *testing.T, stdin, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v (run: make prepare)", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(ctx, path, args...)
	// Proxies of the machine are not used, and curl reads no files of the user.
	c.Env = append(os.Environ(), "no_proxy=127.0.0.1", "NO_PROXY=127.0.0.1")
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", name, err, stderr.Bytes(), stdout.Bytes())
	}
	return stdout.String()
}

func nodeHasZstd(t *testing.T) bool {
	return strings.Contains(runForeign(t, "", "node", "testdata/clients/client.mjs", "codings"), "zstd")
}

func curlHasZstd(t *testing.T) bool {
	return strings.Contains(runForeign(t, "", "curl", "--version"), "zstd")
}

// sendCurl sends all steps with a single curl process, which decodes the bodies.
func sendCurl(t *testing.T, base string, steps []step) []answered {
	t.Helper()
	dir := t.TempDir()
	file := func(i int, what string) string { return filepath.Join(dir, fmt.Sprintf("%d.%s", i, what)) }
	args := []string{"--disable"}
	for i, s := range steps {
		if i > 0 {
			args = append(args, "--next")
		}
		args = append(args, "--silent", "--show-error", "--max-time", "20", "--compressed", "--output", file(i, "body"), "--dump-header", file(i, "head"))
		if s.method == http.MethodHead {
			args = append(args, "--head")
		} else {
			args = append(args, "--request", s.method)
		}
		for _, f := range s.fields {
			args = append(args, "--header", f)
		}
		args = append(args, base+s.path)
	}
	runForeign(t, "", "curl", args...)
	var all []answered
	for i, s := range steps {
		head, err := os.ReadFile(file(i, "head"))
		if err != nil {
			t.Fatal(err)
		}
		rsp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(head)), &http.Request{Method: http.MethodHead})
		if err != nil {
			t.Fatalf("%s: %v\n%s", s.name, err, head)
		}
		body, err := os.ReadFile(file(i, "body"))
		if err != nil && !os.IsNotExist(err) { // curl creates no file if there is no body
			t.Fatal(err)
		}
		if s.method == http.MethodHead {
			body = nil // curl writes the head to that file
		}
		all = append(all, observed(rsp.StatusCode, rsp.Header, body))
	}
	return all
}

// sendGo sends the steps with net/http, which decodes gzip if it requests it automatically.
func sendGo(t *testing.T, base string, steps []step) []answered {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	var all []answered
	for _, s := range steps {
		r, err := http.NewRequestWithContext(t.Context(), s.method, base+s.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range s.fields {
			if name, value, _ := strings.Cut(f, ": "); f != "Accept-Encoding: gzip" {
				r.Header.Set(name, value)
			}
		}
		rsp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		body, err := io.ReadAll(rsp.Body)
		rsp.Body.Close()
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if rsp.Uncompressed {
			rsp.Header.Set("Content-Encoding", "gzip")
		}
		if strings.HasPrefix(rsp.Header.Get("Content-Type"), "application/problem+json") && s.method != http.MethodHead {
			var p struct {
				Title, Detail string
				Status        int
			}
			if err := json.Unmarshal(body, &p); err != nil || p.Status != s.status || p.Title == "" || p.Detail == "" {
				t.Errorf("%s: %v in %s", s.name, err, body)
			}
		}
		all = append(all, observed(rsp.StatusCode, rsp.Header, body))
	}
	return all
}

func observed(status int, head http.Header, body []byte) answered {
	sum := sha256.Sum256(body)
	a := answered{status: status, length: len(body), hash: hex.EncodeToString(sum[:]), fields: map[string]string{}}
	for name, values := range head {
		a.fields[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return a
}
