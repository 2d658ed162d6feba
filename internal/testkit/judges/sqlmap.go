package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// vulnerableScript is a server with vulnerabilities.
//
//go:embed vulnerable.py
var vulnerableScript string

// target is a request that sqlmap attacks. An asterisk marks the positions where it inserts its
// payloads.
type target struct {
	name, path string
	headers    []string
}

// agents is the target for the header fields that every client sends.
const agents = "client and host"

// sqlmap tries to reach the database through everything that clients can send. First it must find
// the vulnerabilities of a server that has some.
func (t *tools) sqlmap(ctx context.Context, g *gateway) (verdict, error) {
	inPath := target{name: "text key", path: "/orders/emea*/17"}
	inBatch := target{name: "batch", path: "/orders?key=emea/17*"}
	if err := t.provoke(ctx, inPath, inBatch); err != nil {
		return verdict{}, err
	}
	key, open := "X-API-Key: "+g.apiKey, "/orders/emea/17"
	v, requests := verdict{}, 0
	targets := []target{
		inPath, inBatch,
		{"integer key", "/orders/emea/17*", nil},
		{"guarded key", "/depts/42*", []string{key}},
		{"guarded batch", "/depts?key=1&key=42*", []string{key}},
		{"name of a parameter", "/orders?key*=emea/17", nil},
		{"name of a resource", "/orders*/emea/17", nil},
		{"ids", open, []string{"X-Request-Id: a*", "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01*"}},
		{"conditions", open, []string{`If-None-Match: "a*"`, `If-Match: "a*"`}},
		{"negotiation", open, []string{"Accept-Encoding: gzip*", "Origin: https://app.example*"}},
		{"API key", "/depts/42", []string{key + "*"}},
		{"token", "/depts/42", []string{"Authorization: Bearer " + g.token + "*"}},
		{agents, open, []string{"X-Forwarded-For: 192.0.2.1*", "User-Agent: a*", "Referer: a*", "Cookie: a=b*"}},
	}
	for _, target := range targets {
		strength := []string{"--level", "5", "--risk", "3", "--keep-alive"}
		if target.name != agents { // once is enough: sqlmap would try these with every target
			strength = append(strength, "--skip", "user-agent,referer,host")
		}
		out, err := t.attack(ctx, g.url, target, strength...)
		if err != nil {
			return verdict{}, err
		}
		n, found, err := judgeAttack(out)
		if err != nil {
			return verdict{}, fmt.Errorf("sqlmap: %s: %w\n%s", target.name, err, out)
		}
		requests += n
		for _, f := range found {
			v.add(target.name, "injection", f)
		}
	}
	v.looked = fmt.Sprintf("%d targets, %d requests with an error response", len(targets), requests)
	return v, nil
}

// attack runs sqlmap to its end and returns its output.
func (t *tools) attack(ctx context.Context, url string, a target, strength ...string) (string, error) {
	args := []string{"--batch", "--flush-session", "--output-dir", filepath.Join(t.dir, "sqlmap"), "--disable-coloring",
		"--dbms", "SQLite", "--time-sec", "2", "--ignore-code", "400,401,404,406,412", "-u", url + a.path}
	args = append(args, strength...)
	for _, h := range a.headers {
		args = append(args, "-H", h)
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	return output(ctx, t.dir, "sqlmap", args...)
}

var (
	tested   = regexp.MustCompile(`\[(?:ERROR|CRITICAL)\] all tested parameters do not appear to be injectable`)
	injected = regexp.MustCompile(`(?m)^(?:Parameter: .*|    Title: .*)$`)
	answered = regexp.MustCompile(`([0-9]+) times\b`)
)

// judgeAttack reads the output of sqlmap: the number of requests with an error response, and the
// vulnerabilities that were found.
func judgeAttack(out string) (requests int, found []string, err error) {
	for _, m := range answered.FindAllStringSubmatch(out, -1) {
		n := 0
		if _, err := fmt.Sscan(m[1], &n); err == nil {
			requests += n
		}
	}
	found = injected.FindAllString(out, -1)
	for i, f := range found {
		found[i] = strings.TrimSpace(f)
	}
	if len(found) == 0 && !tested.MatchString(out) {
		return requests, found, fmt.Errorf("it reports neither that there is a vulnerability nor that there is none")
	}
	return requests, found, nil
}

// provoke attacks the vulnerable server.
func (t *tools) provoke(ctx context.Context, targets ...target) error {
	ctx, cancel := context.WithCancel(ctx)
	port := &watcher{word: []byte("\n"), found: make(chan struct{})}
	var stderr bytes.Buffer
	c := exec.CommandContext(ctx, filepath.Join(t.python, "python"), "-c", vulnerableScript)
	c.Stdout, c.Stderr = port, &stderr
	if err := c.Start(); err != nil {
		cancel()
		return err
	}
	defer func() {
		cancel()
		_ = c.Wait() // it was killed
	}()
	select {
	case <-port.found:
	case <-time.After(10 * time.Second):
		return fmt.Errorf("the vulnerable server does not start\n%s", stderr.Bytes())
	}
	for _, a := range targets {
		out, err := t.attack(ctx, "http://127.0.0.1:"+strings.TrimSpace(port.text.String()), a, "--level", "1", "--risk", "1")
		if err != nil {
			return err
		}
		if _, found, _ := judgeAttack(out); len(found) == 0 {
			return fmt.Errorf("sqlmap: the vulnerability of the %s in the vulnerable server was not found\n%s", a.name, out)
		}
	}
	return nil
}
