//go:build unix

package gateway_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// everyListener is a configuration with listeners of each kind.
func everyListener(t *testing.T, path string) (*config.Config, *x509.CertPool) {
	t.Helper()
	cfg := configure(t, path, deptResource)
	if err := gateway.ApplyTriggers(t.Context(), cfg, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	roots := gateway.WriteCertificate(t, filepath.Dir(path), 1)
	pair := config.TLS{Cert: "cert.pem", Key: "key.pem"}
	mutual := pair
	mutual.Clients, mutual.MinVersion = "cert.pem", "1.3" // the certificate is its own authority
	cfg.Frontends.HTTP = config.Listeners{
		{Address: "127.0.0.1:0"}, {Address: "127.0.0.1:0", TLS: pair}, {Address: "127.0.0.1:0", TLS: mutual}, {Address: "unix:http.sock", Mode: 0o660},
	}
	cfg.Frontends.Redis = config.Listeners{{Address: "127.0.0.1:0"}, {Address: "127.0.0.1:0", TLS: pair}, {Address: "unix:redis.sock"}}
	return cfg, roots
}

// TestListeners: a gateway serves the same documents at all of its listeners.
func TestListeners(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead+company)
	cfg, roots := everyListener(t, path)
	stale := filepath.Join(filepath.Dir(path), "http.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	left.Close() // as a process that was killed leaves it
	s := serve(t, cfg)
	defer s.client.CloseIdleConnections()
	s.awaitReady()
	at := s.gateway.Addrs(gateway.ListenHTTP)
	if len(at) != 4 {
		t.Fatalf("HTTP is served at %v, want four addresses", at)
	}
	info, err := os.Stat(stale)
	if err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("the socket: %v, %v, want the mode 0660", info.Mode(), err)
	}
	own, err := tls.LoadX509KeyPair(filepath.Join(filepath.Dir(path), "cert.pem"), filepath.Join(filepath.Dir(path), "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	get := func(url string, trust *tls.Config, unix string) (string, error) {
		transport := &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true}
		if unix != "" {
			transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", unix)
			}
		}
		defer transport.CloseIdleConnections()
		answer, err := (&http.Client{Transport: transport, Timeout: patience}).Get(url)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return fmt.Sprintf("%s %d %s", answer.Proto, answer.StatusCode, body), err
	}
	want, err := get("http://"+at[0].String()+"/depts/1", nil, "")
	if err != nil || !strings.HasPrefix(want, "HTTP/1.1 200 {") {
		t.Fatalf("got %s, %v", want, err)
	}
	over2 := strings.Replace(want, "HTTP/1.1", "HTTP/2.0", 1)
	for _, test := range []struct {
		name, url, unix string
		trust           *tls.Config
		want            string // if "", refused
	}{
		{"TLS", "https://" + at[1].String(), "", &tls.Config{RootCAs: roots, ServerName: "localhost"}, over2},
		{"TLS 1.2", "https://" + at[1].String(), "", &tls.Config{RootCAs: roots, ServerName: "localhost", MaxVersion: tls.VersionTLS12}, over2},
		{"TLS 1.1", "https://" + at[1].String(), "", &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, ""},
		{"certificate", "https://" + at[2].String(), "", &tls.Config{RootCAs: roots, ServerName: "localhost", Certificates: []tls.Certificate{own}}, over2},
		{"no certificate", "https://" + at[2].String(), "", &tls.Config{RootCAs: roots, ServerName: "localhost"}, ""},
		{"certificate, TLS 1.2", "https://" + at[2].String(), "", &tls.Config{RootCAs: roots, ServerName: "localhost", Certificates: []tls.Certificate{own}, MaxVersion: tls.VersionTLS12}, ""},
		{"unix", "http://localhost", stale, nil, want},
	} {
		got, err := get(test.url+"/depts/1", test.trust, test.unix)
		if (err != nil) != (test.want == "") || got != test.want {
			t.Errorf("%s: got %q, %v, want %q", test.name, got, err, test.want)
		}
	}
	if curl, err := exec.LookPath("curl"); err == nil {
		out, err := exec.CommandContext(t.Context(), curl, "-sS", "--http2", "--cacert", filepath.Join(filepath.Dir(path), "cert.pem"),
			"--resolve", "localhost:"+port(at[1])+":127.0.0.1", "-w", " %{http_version}", "https://localhost:"+port(at[1])+"/depts/1").CombinedOutput()
		if body := strings.TrimPrefix(want, "HTTP/1.1 200 "); err != nil || string(out) != body+" 2" {
			t.Errorf("curl --http2: %q, %v, want %q", out, err, body+" 2")
		}
	}
	redis := s.gateway.Addrs(gateway.ListenRedis)
	for _, test := range []struct {
		addr   net.Addr
		secure bool
	}{{redis[0], false}, {redis[1], true}, {redis[2], false}} {
		raw, err := net.Dial(test.addr.Network(), test.addr.String())
		if err != nil {
			t.Fatal(err)
		}
		if test.secure {
			raw = tls.Client(raw, &tls.Config{RootCAs: roots, ServerName: "localhost"})
		}
		raw.SetDeadline(time.Now().Add(patience))
		io.WriteString(raw, "STRLEN depts:1\r\nQUIT\r\n")
		got, err := io.ReadAll(raw)
		if err != nil || !strings.HasPrefix(string(got), ":") {
			t.Errorf("redis at %v: %q, %v", test.addr, got, err)
		}
		raw.Close()
	}
	s.client.CloseIdleConnections()
	if err := shutdown(t, s.gateway); err != nil {
		t.Error(err)
	}
}

func port(a net.Addr) string {
	_, p, _ := net.SplitHostPort(a.String())
	return p
}

// TestSocketsAreNotTaken: a socket at which a process listens, and a file that is not a
// socket, are not replaced.
func TestSocketsAreNotTaken(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead+company)
	cfg := configure(t, path, deptResource)
	file := filepath.Join(filepath.Dir(path), "taken.sock")
	cfg.Frontends.HTTP = config.ListenAt("unix:taken.sock")
	if err := gateway.ApplyTriggers(t.Context(), cfg, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	try := func(want string) {
		t.Helper()
		g, err := gateway.New(cfg, gateway.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Start(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
		_ = shutdown(t, g) // it has served nothing
	}
	l, err := net.Listen("unix", file)
	if err != nil {
		t.Fatal(err)
	}
	try("another process listens there")
	l.Close()
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	try("exists and is not a socket")
	if text, err := os.ReadFile(file); err != nil || string(text) != "precious" {
		t.Errorf("the file: %q, %v", text, err)
	}
}

// TestSocketOwner: a unix socket belongs to the owner in the configuration, and no other user
// can access it before.
func TestSocketOwner(t *testing.T) {
	if os.Getuid() != 0 {
		return // only root can change the owner of a file
	}
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead+company)
	cfg := configure(t, path, deptResource)
	cfg.Frontends.HTTP = config.Listeners{{Address: "unix:owned.sock", Mode: 0o640, Owner: "4321:1234"}}
	s := serve(t, cfg)
	info, err := os.Stat(filepath.Join(filepath.Dir(path), "owned.sock"))
	if err != nil {
		t.Fatal(err)
	}
	if is := info.Sys().(*syscall.Stat_t); is.Uid != 4321 || is.Gid != 1234 || info.Mode().Perm() != 0o640 {
		t.Errorf("the socket is of %d:%d with %v, want 4321:1234 with 0640", is.Uid, is.Gid, info.Mode())
	}
	if err := shutdown(t, s.gateway); err != nil {
		t.Error(err)
	}
}
