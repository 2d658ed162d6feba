package gateway_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/audit"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// farConn is a connection that claims to come from another machine.
type farConn struct{ net.Conn }

func (farConn) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 9), Port: 9100} }
func (farConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5} }

type farListener struct{ net.Listener }

func (l farListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return farConn{c}, nil
}

// serveFar is serve with an admin listener whose callers come from another machine.
func serveFar(t *testing.T, cfg *config.Config, opts gateway.Options) *served {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	opts.Listeners = map[string][]net.Listener{gateway.ListenAdmin: {farListener{l}}}
	g, err := gateway.New(cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	return start(t, cfg, g)
}

// sharedText is a log that can be read while it is written.
type sharedText struct {
	mu   sync.Mutex
	text []byte
}

func (w *sharedText) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p...)
	return len(p), nil
}

func (w *sharedText) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.text)
}

// withToken sends a request with a bearer token and returns the status and the
// body.
func (s *served) withToken(method, url, token string) (status int, body string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, url, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// replaceSecret writes a file as editors do: a new file takes its name.
func replaceSecret(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

func digestLine(token string) string {
	sum := sha256.Sum256([]byte(token))
	return "sha256:" + hex.EncodeToString(sum[:]) + "\n"
}

// awaitEvents waits until the audit log has an event that matches each one wanted, and returns all.
func awaitEvents(t *testing.T, file string, want ...audit.Event) (all []audit.Event) {
	t.Helper()
	testkit.Eventually(t, 2*patience, func() error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		all = nil
		for line := range bytes.Lines(text) {
			var e audit.Event
			if err := json.Unmarshal(line, &e); err != nil {
				return err // the last one is being written
			}
			all = append(all, e)
		}
		for _, w := range want {
			found := false
			for _, e := range all {
				found = found || e.Event == w.Event && e.Listener == w.Listener && strings.HasPrefix(e.Peer, w.Peer) && e.Rule == w.Rule && e.Outcome == w.Outcome &&
					strings.Contains(e.Detail, w.Detail) && e.Resource == w.Resource && strings.HasSuffix(e.File, w.File) && strings.Contains(fmt.Sprint(e.Changes), strings.Trim(fmt.Sprint(w.Changes), "[]"))
			}
			if !found {
				return fmt.Errorf("no event like %+v in\n%s", w, text)
			}
		}
		return nil
	})
	return all
}

// TestAdminFromElsewhere: another machine reads three pages; for the rest it needs a token, and a
// token that is no longer in the file is refused.
func TestAdminFromElsewhere(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead+company)
	cfg := configure(t, path, deptResource+"log: { audit: audit.log }\n")
	before, after := access.NewKey(), access.NewKey()
	file := filepath.Join(filepath.Dir(path), "admin.token")
	replaceSecret(t, file, digestLine(before))
	cfg.Admin.Token, cfg.Admin.Line = "admin.token", 3
	s := serveFar(t, cfg, gateway.Options{})
	for _, page := range []string{"/metrics", "/live"} {
		if status, _ := s.withToken("GET", s.admin+page, ""); status != 200 {
			t.Errorf("%s: %d", page, status)
		}
	}
	for _, token := range []string{"", "wrong"} {
		for _, page := range [][2]string{{"POST", "/purge?resource=depts"}, {"GET", "/config"}, {"GET", "/debug/pprof/heap"}, {"GET", "/"}} {
			if status, body := s.withToken(page[0], s.admin+page[1], token); status != 401 || !strings.Contains(body, "line 3: admin: add token: ") {
				t.Errorf("%s %s with %q: %d %s", page[0], page[1], token, status, body)
			}
		}
	}
	purge := func(token string) int {
		status, _ := s.withToken("POST", s.admin+"/purge?resource=depts", token)
		return status
	}
	if status := purge(before); status != 200 {
		t.Errorf("with the token: %d", status)
	}
	replaceSecret(t, file, digestLine(before)+"ops "+digestLine(after))
	log := filepath.Join(filepath.Dir(path), "audit.log")
	awaitEvents(t, log, audit.Event{Event: "key_file_changed", Outcome: "done", File: "admin.token"})
	if a, b := purge(before), purge(after); a != 200 || b != 200 {
		t.Errorf("while there are two tokens: %d and %d", a, b)
	}
	replaceSecret(t, file, "ops "+digestLine(after))
	testkit.Eventually(t, 2*patience, func() error {
		if status := purge(before); status != 401 {
			return fmt.Errorf("the old token: %d", status)
		}
		return nil
	})
	if status := purge(after); status != 200 {
		t.Errorf("with the new token: %d", status)
	}
	awaitEvents(t, log,
		audit.Event{Event: "login_failed", Listener: "admin", Peer: "192.0.2.1:5", Rule: "none", Outcome: "refused"},
		audit.Event{Event: "purge", Listener: "admin", Peer: "192.0.2.1:5", Rule: "token", Outcome: "done", Resource: "depts"},
		audit.Event{Event: "purge", Listener: "admin", Peer: "192.0.2.1:5", Rule: "token:ops", Outcome: "done", Resource: "depts"})
}

// TestAllowRemoteStarts: a configuration of an earlier version starts, and callers on this machine
// may do what they could; a real address of the network counts as another machine.
func TestAllowRemoteStarts(t *testing.T) {
	testkit.NoLeaks(t)
	cfg := configure(t, newDatabase(t, writeAhead+company), deptResource)
	cfg.Admin = config.Admin{Address: ":0", AllowRemote: true}
	s := serve(t, cfg)
	_, port, err := net.SplitHostPort(s.gateway.AdminAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	if status, body := s.withToken("POST", "http://127.0.0.1:"+port+"/purge?resource=depts", ""); status != 200 {
		t.Errorf("this machine: %d %s", status, body)
	}
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range interfaces {
		ip, ok := a.(*net.IPNet)
		if !ok || ip.IP.IsLoopback() || ip.IP.To4() == nil {
			continue
		}
		base := "http://" + net.JoinHostPort(ip.IP.String(), port)
		if status, _ := s.withToken("GET", base+"/metrics", ""); status != 200 {
			t.Errorf("/metrics at %v: %d", ip.IP, status)
		}
		if status, _ := s.withToken("POST", base+"/purge?resource=depts", ""); status != 401 {
			t.Errorf("/purge at %v: %d, want 401", ip.IP, status)
		}
	}
}

// TestAdminCertificate: a certificate of a client counts as a token, and a listener that requires
// one refuses clients without it.
func TestAdminCertificate(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead+company)
	cfg := configure(t, path, deptResource+"log: { audit: audit.log }\n")
	dir := filepath.Dir(path)
	roots := gateway.WriteCertificate(t, dir, 1)
	cfg.Admin.TLS = config.TLS{Cert: "cert.pem", Key: "key.pem", Clients: "cert.pem"} // its own authority
	s := serveFar(t, cfg, gateway.Options{})
	own, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(own ...tls.Certificate) (int, error) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost", Certificates: own}}
		defer transport.CloseIdleConnections()
		answer, err := (&http.Client{Transport: transport, Timeout: patience}).Post("https://"+s.gateway.AdminAddr().String()+"/purge?resource=depts", "", nil)
		if err != nil {
			return 0, err
		}
		defer answer.Body.Close()
		return answer.StatusCode, nil
	}
	if status, err := ask(own); err != nil || status != 200 {
		t.Errorf("with the certificate: %d, %v", status, err)
	}
	if status, err := ask(); err == nil {
		t.Errorf("without one: %d", status)
	}
	awaitEvents(t, filepath.Join(dir, "audit.log"),
		audit.Event{Event: "login_failed", Listener: "admin", Peer: "192.0.2.1:5", Rule: "certificate", Outcome: "refused", Detail: "certificate"},
		audit.Event{Event: "purge", Listener: "admin", Peer: "192.0.2.1:5", Rule: "certificate:localhost", Outcome: "done", Resource: "depts"})
}

// TestMetricsListener: the second listener has three pages, and is closed with the first.
func TestMetricsListener(t *testing.T) {
	testkit.NoLeaks(t)
	cfg := configure(t, newDatabase(t, writeAhead+company), deptResource)
	cfg.Admin.Metrics = config.Listener{Address: "127.0.0.1:0"}
	s := serve(t, cfg)
	base := "http://" + s.gateway.Addrs(gateway.ListenMetrics)[0].String()
	for page, want := range map[string]int{"/metrics": 200, "/live": 200, "/config": 404, "/": 404, "/debug/pprof/": 404, "/purge?resource=depts": 404, "/reload": 404} {
		if status, body := s.withToken("GET", base+page, ""); status != want {
			t.Errorf("%s: %d %.100s, want %d", page, status, body, want)
		}
	}
	if err := s.gateway.ShutdownAdmin(t.Context()); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, patience, func() error { // it may have just begun to serve
		c, err := net.Dial("tcp", s.gateway.Addrs(gateway.ListenMetrics)[0].String())
		if err != nil {
			return nil
		}
		c.Close()
		return errors.New("the listener continues after ShutdownAdmin")
	})
}

// TestAuditLog: actions of operators, refused callers and changed key files have a line each, in a
// new file after a rename.
func TestAuditLog(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead+company)
	dir := filepath.Dir(path)
	text := strings.Replace(deptResource, "key: [deptno],", `key: [deptno], access: { keys: ["*"] },`, 1) +
		"auth: { keys: keys.txt }\nlog: { audit: audit.log }\n"
	cfg := configure(t, path, text)
	cfg.Frontends.Redis = config.ListenAt("127.0.0.1:0")
	key := access.NewKey()
	replaceSecret(t, filepath.Join(dir, "keys.txt"), "web "+digestLine(key))
	next := *cfg
	g, err := gateway.New(cfg, gateway.Options{Load: func() (*config.Config, error) { return &next, nil }})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, cfg, g)
	s.do("POST", s.admin+"/purge?resource=depts&key=7")
	next.Freshness = 2 * time.Second
	s.do("POST", s.admin+"/reload")
	if _, err := g.ReloadFile(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.do("GET", s.admin+"/debug/pprof/heap")
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.http+"/depts/1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-API-Key", "wrong")
	answer, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != 401 {
		t.Errorf("a wrong key: %s", answer.Status)
	}
	c, err := net.Dial("tcp", g.RedisAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, "AUTH web wrong\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	replaceSecret(t, filepath.Join(dir, "keys.txt"), "# none\n")
	log := filepath.Join(dir, "audit.log")
	awaitEvents(t, log,
		audit.Event{Event: "purge", Listener: "admin", Peer: "127.0.0.1:", Rule: "loopback", Outcome: "done", Resource: "depts"},
		audit.Event{Event: "reload", Listener: "admin", Peer: "127.0.0.1:", Rule: "loopback", Outcome: "done", Changes: []string{"freshness"}},
		audit.Event{Event: "reload", Rule: "process", Outcome: "done"},
		audit.Event{Event: "profile", Listener: "admin", Peer: "127.0.0.1:", Rule: "loopback", Outcome: "done", Detail: "/debug/pprof/heap"},
		audit.Event{Event: "login_failed", Listener: "http", Peer: "127.0.0.1", Rule: "key", Outcome: "refused", Detail: "not known"},
		audit.Event{Event: "login_failed", Listener: "redis", Peer: "127.0.0.1", Rule: "password", Outcome: "refused"},
		audit.Event{Event: "key_file_changed", Outcome: "done", File: "keys.txt"})
	if written, err := os.ReadFile(log); err != nil || bytes.Contains(written, []byte("wrong")) {
		t.Errorf("credentials are in the audit log: %s, %v", written, err)
	}
	if runtime.GOOS != "windows" { // where an open file cannot be renamed
		if err := os.Rename(log, log+".1"); err != nil {
			t.Fatal(err)
		}
		g.ReopenLogs()
		testkit.Eventually(t, patience, func() error { _, err := os.Stat(log); return err })
		s.do("POST", s.admin+"/purge?resource=depts")
		awaitEvents(t, log, audit.Event{Event: "purge", Listener: "admin", Peer: "127.0.0.1:", Rule: "loopback", Outcome: "done", Resource: "depts"})
	}
	replaceSecret(t, filepath.Join(dir, "keys.txt"), "nonsense\n")
	awaitEvents(t, log, audit.Event{Event: "key_file_changed", Outcome: "refused", File: "keys.txt", Detail: "keys.txt:1: "})
}

// TestAuditLogFails: a file that cannot be written is counted and reported, and the gateway
// serves.
func TestAuditLogFails(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // there is no /dev/full
	}
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead+company)
	if err := os.Symlink("/dev/full", filepath.Join(filepath.Dir(path), "audit.log")); err != nil {
		t.Fatal(err)
	}
	told := new(sharedText)
	cfg := configure(t, path, deptResource+"log: { audit: audit.log }\n")
	g, err := gateway.New(cfg, gateway.Options{Logger: slog.New(slog.NewTextHandler(told, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, cfg, g)
	if a := s.do("POST", s.admin+"/purge?resource=depts"); a.status != 200 {
		t.Errorf("a purge: %v", a)
	}
	testkit.Eventually(t, patience, func() error {
		if n := s.metric("slipstream_audit_failures_total"); n != 1 {
			return fmt.Errorf("%v failures", n)
		}
		return nil
	})
	if text := told.String(); !strings.Contains(text, "the audit log cannot be written") || !strings.Contains(text, "event=purge") {
		t.Errorf("the log says %s", text)
	}
	if a := s.get("/depts/1"); a.status != 200 {
		t.Errorf("a document: %v", a)
	}
}

// TestReloadOfAdmin: tokens, profiles and the audit log change with a reload, listeners do not.
func TestReloadOfAdmin(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead+company)
	dir := filepath.Dir(path)
	token := access.NewKey()
	replaceSecret(t, filepath.Join(dir, "admin.token"), digestLine(token))
	load := func(admin, more string) *config.Config {
		t.Helper()
		cfg := configure(t, path, deptResource+more)
		withAdmin, err := config.Parse("x.yaml", []byte("origin: { url: sqlite:x.db }\nresources: { a: { table: a, key: [a] } }\n"+admin))
		if err != nil {
			t.Fatal(err)
		}
		cfg.Admin = withAdmin.Admin
		return cfg
	}
	first := load("admin: 127.0.0.1:0\n", "")
	s := serveFar(t, first, gateway.Options{})
	if status, _ := s.withToken("GET", s.admin+"/debug/pprof/heap", token); status != 401 {
		t.Errorf("before there are tokens: %d", status)
	}
	for _, step := range []struct {
		admin, more string
		status      int
	}{
		{"admin: { address: 127.0.0.1:0, token: admin.token }\n", "log: { audit: a.log }\n", 200},
		{"admin: { address: 127.0.0.1:0, token: admin.token, profiles: false }\n", "log: { audit: b.log }\n", 404},
		{"admin: 127.0.0.1:0\n", "", 401},
	} {
		if _, err := s.gateway.Reload(t.Context(), load(step.admin, step.more)); err != nil {
			t.Fatal(err)
		}
		if status, body := s.withToken("GET", s.admin+"/debug/pprof/heap", token); status != step.status {
			t.Errorf("%s: %d %s, want %d", step.admin, status, body, step.status)
		}
	}
	awaitEvents(t, filepath.Join(dir, "a.log"), audit.Event{Event: "profile", Listener: "admin", Peer: "192.0.2.1:5", Rule: "token", Outcome: "done", Detail: "/debug/pprof/heap"})
	if _, err := os.Stat(filepath.Join(dir, "b.log")); err != nil {
		t.Error(err)
	}
	_, err := s.gateway.Reload(t.Context(), load("admin: { address: 127.0.0.1:0, metrics: 127.0.0.1:0 }\n", ""))
	if restart, ok := errors.AsType[*gateway.RestartError](err); !ok || restart.Changes[0].Key != "admin.metrics" {
		t.Errorf("another listener: %v, want an error that it needs a restart", err)
	}
	wrong := load("admin: { address: 127.0.0.1:0, token: none.token }\n", "")
	if _, err := s.gateway.Reload(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "admin.token: ") {
		t.Errorf("a file that is not there: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.gateway.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}
