package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// gateway is the command under test, which serves the demo's database.
type gateway struct {
	url    string
	apiKey string // of the caller "judge"
	token  string // a JWT that the local key set verifies
	admin  string
	redis  string // port of the Redis frontend, where apiKey is the password
	log    string // path of its output
	pid    int
}

// settings are inserted before the resources of the demo's configuration. They enable all features,
// with limits that are never reached.
const settings = `auth:
  keys: keys.txt
  jwt: { keys: jwks.json, issuer: "https://issuer.example", audience: slipstream }
http:
  compression: [zstd, gzip]
  cors: { origins: ["https://app.example"], headers: [X-Custom], max_age: 10m }
  limits:
    client: { rate: 100000, burst: 100000 }
    caller: { rate: 100000, burst: 100000 }
log: { level: warn }

resources:
`

// guarded is inserted for the departments; orders remain open to all clients.
const guarded = `    key: [deptno]
    access: { keys: [judge], jwt: true }
`

const (
	keySet = `{"keys":[{"kty":"oct","kid":"judge","alg":"HS256","k":"%s"}]}`
	secret = "a secret of the judges, long enough for HS256"
)

// startGateway creates a database in dir and serves it until ctx ends. wait returns when the
// process has ended.
func startGateway(ctx context.Context, binary, dir string) (g *gateway, wait func(), err error) {
	if err := makeDatabase(ctx, binary, dir); err != nil {
		return nil, nil, err
	}
	g = &gateway{token: mintToken(time.Now()), log: filepath.Join(dir, "serve.log")}
	key, err := output(ctx, dir, binary, "key", "new", "judge", "--file", "keys.txt")
	if err != nil {
		return nil, nil, err
	}
	g.apiKey = strings.TrimSpace(key)
	listen, err := freeAddress()
	if err != nil {
		return nil, nil, err
	}
	g.url = "http://" + listen
	admin, err := freeAddress()
	if err != nil {
		return nil, nil, err
	}
	g.admin = "http://" + admin
	config, err := output(ctx, dir, binary, "demo", "--print-config", "--http", listen, "--admin", admin)
	if err != nil {
		return nil, nil, err
	}
	if listen, err = freeAddress(); err != nil {
		return nil, nil, err
	}
	if _, g.redis, err = net.SplitHostPort(listen); err != nil {
		return nil, nil, err
	}
	config = strings.Replace(config, "frontends: {", fmt.Sprintf("frontends: { redis: %q,", listen), 1)
	config = strings.Replace(config, "resources:\n", settings, 1)
	config = strings.Replace(config, "    key: [deptno]\n", guarded, 1)
	set := fmt.Sprintf(keySet, base64.RawURLEncoding.EncodeToString([]byte(secret)))
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, "slipstream.yaml"), []byte(config), 0o600),
		os.WriteFile(filepath.Join(dir, "jwks.json"), []byte(set), 0o600),
	); err != nil {
		return nil, nil, err
	}
	wait, err = g.serve(ctx, binary, dir)
	return g, wait, err
}

// serve starts the command and returns when it serves documents.
func (g *gateway) serve(ctx context.Context, binary, dir string) (wait func(), err error) {
	log, err := os.Create(g.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c := command(ctx, dir, binary, "serve", "-c", "slipstream.yaml")
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		return nil, err
	}
	g.pid = c.Process.Pid
	gone := make(chan struct{})
	// Ends with the process, which ends with ctx; wait waits for it.
	go func() {
		_ = c.Wait() // it was stopped by a signal, or its log shows why it ended
		close(gone)
	}()
	deadline := time.Now().Add(30 * time.Second)
	for {
		if err = g.answers(ctx); err == nil {
			return func() { <-gone }, nil
		}
		select {
		case <-gone:
		case <-time.After(100 * time.Millisecond):
			if time.Now().Before(deadline) {
				continue
			}
		}
		text, _ := os.ReadFile(g.log) // an empty log is informative enough
		return nil, fmt.Errorf("slipstream serve does not answer: %w\n%s", err, text)
	}
}

func (g *gateway) answers(ctx context.Context) error {
	for _, path := range []string{"/depts/42", "/openapi.json"} {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+path, nil)
		if err != nil {
			return err
		}
		r.Header.Set("X-API-Key", g.apiKey)
		rsp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		_ = rsp.Body.Close() // the body is not read
		if rsp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: status %d", path, rsp.StatusCode)
		}
	}
	return nil
}

// makeDatabase runs the demo until it has created its database and triggers in dir.
func makeDatabase(ctx context.Context, binary, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c := command(ctx, dir, binary, "demo", "--keep", ".", "--no-writer", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	ready := &watcher{word: []byte("Ctrl-C stops."), found: make(chan struct{})}
	c.Stdout = ready
	if err := c.Start(); err != nil {
		return err
	}
	select {
	case <-ready.found:
		_ = c.Process.Signal(os.Interrupt) // if this fails, Wait returns an error
	case <-ctx.Done():
	}
	if err := c.Wait(); err != nil {
		return fmt.Errorf("slipstream demo: %w\n%s", err, ready.text.Bytes())
	}
	return nil
}

// watcher records what is written, and reports when a word appears.
type watcher struct {
	word  []byte
	found chan struct{} // closed when the word appears
	text  bytes.Buffer
	done  bool
}

// Write implements [io.Writer].
func (w *watcher) Write(b []byte) (int, error) {
	w.text.Write(b)
	if !w.done && bytes.Contains(w.text.Bytes(), w.word) {
		w.done = true
		close(w.found)
	}
	return len(b), nil
}

// command is a program in dir that is interrupted when ctx ends, and killed if it ignores that.
func command(ctx context.Context, dir, path string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, path, args...)
	c.Dir = dir
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	return c
}

// output runs a program to its end.
func output(ctx context.Context, dir, path string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	c := command(ctx, dir, path, args...)
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(path), strings.Join(args, " "), err, stderr.Bytes())
	}
	return stdout.String(), nil
}

// freeAddress returns an address of the loopback interface that was free a moment ago.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// mintToken creates a JWT (RFC 7519) that is valid for an hour.
func mintToken(now time.Time) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256","kid":"judge","typ":"JWT"}`)) + "." +
		encode(fmt.Appendf(nil, `{"iss":"https://issuer.example","aud":"slipstream","sub":"judge","iat":%d,"exp":%d}`, now.Unix(), now.Add(time.Hour).Unix()))
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(text))
	return text + "." + encode(h.Sum(nil))
}
