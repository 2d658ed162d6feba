package operation

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// withAdmin replaces the admin line of the demo's configuration.
func withAdmin(t *testing.T, file, admin string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	found := false
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "admin:") {
			line, found = admin+"\n", true
		}
		all = append(all, line)
	}
	if !found {
		t.Fatalf("no line of admin in %s", text)
	}
	blackbox.Write(t, file, strings.Join(all, ""))
}

// awaitProbe waits until a probe succeeds.
func awaitProbe(t *testing.T, args ...string) {
	t.Helper()
	testkit.Eventually(t, 30*time.Second, func() error {
		if r := blackbox.Run(t, append([]string{"probe", "live"}, args...)...); r.Code != blackbox.ExitOK {
			return errors.New(r.Stderr)
		}
		return nil
	})
}

// TestOperatorOverSocket: probes and comparisons reach a gateway whose admin listener is a unix
// socket, through the configuration and through its path.
func TestOperatorOverSocket(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // owners and modes of sockets are those of Unix
	}
	file := blackbox.DemoFiles(t)
	withAdmin(t, file, "admin: unix:admin.sock")
	testkit.Start(t, testkit.Command{Path: blackbox.Program(), Args: []string{"serve", "-c", file}})
	awaitProbe(t, "-c", file)
	at := "unix:" + filepath.Join(filepath.Dir(file), "admin.sock")
	blackbox.Expect(t, blackbox.ExitOK, "live\n", "", "probe", "live", "--admin", at)
	blackbox.Expect(t, blackbox.ExitOK, "no difference", "", "config", "check", "-c", file, "--against", at)
	blackbox.Expect(t, blackbox.ExitFailure, "", "none.sock", "probe", "live", "--admin", "unix:none.sock")
}

// TestProbeOverTLS: a probe does not verify the certificate, and if the admin listener requires a
// client certificate, the probe uses the listener of metrics.
func TestProbeOverTLS(t *testing.T) {
	for _, c := range []struct{ name, admin, failure string }{
		{"TLS", "admin: { address: \"127.0.0.1:%d\", tls: { cert: cert.pem, key: key.pem } }", ""},
		{"certificates", "admin: { address: \"127.0.0.1:%d\", tls: { cert: cert.pem, key: key.pem, clients: cert.pem }, metrics: \"127.0.0.1:%d\" }", ""},
		{"certificates, no metrics", "admin: { address: \"127.0.0.1:%d\", tls: { cert: cert.pem, key: key.pem, clients: cert.pem } }", "add admin.metrics"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := blackbox.DemoFiles(t)
			testkit.SelfSigned(t, &x509.Certificate{DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true}).WritePair(t, filepath.Dir(file))
			ports := []any{testkit.FreePort(t), testkit.FreePort(t)}
			withAdmin(t, file, fmt.Sprintf(c.admin, ports[:strings.Count(c.admin, "%d")]...))
			testkit.Start(t, testkit.Command{Path: blackbox.Program(), Args: []string{"serve", "-c", file}})
			if c.failure == "" {
				awaitProbe(t, "-c", file)
				return
			}
			testkit.Eventually(t, 30*time.Second, func() error {
				if r := blackbox.Run(t, "probe", "live", "-c", file); r.Code != blackbox.ExitFailure || !strings.Contains(r.Stderr, c.failure) {
					return errors.New(r.Stderr)
				}
				return nil
			})
		})
	}
}

// TestAgainstWithToken: the token from a file is sent, and without it there is an error that says
// so.
func TestAgainstWithToken(t *testing.T) {
	file := blackbox.DemoFiles(t)
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer slk_secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(cfg.Redacted()) // an error is noticed by the client
	}))
	defer s.Close()
	token := blackbox.WriteFile(t, "ops.token", "slk_secret\n")
	blackbox.Expect(t, blackbox.ExitOK, "no difference", "", "config", "check", "-c", file, "--against", s.URL, "--token", token)
	blackbox.Expect(t, blackbox.ExitFailure, "", "requires a token", "config", "check", "-c", file, "--against", s.URL)
	hash := blackbox.WriteFile(t, "admin.token", "sha256:"+strings.Repeat("0", 64)+"\n")
	blackbox.Expect(t, blackbox.ExitUsage, "", "does not hold a token", "config", "check", "-c", file, "--against", s.URL, "--token", hash)
	blackbox.Expect(t, blackbox.ExitUsage, "", "none.token", "config", "check", "-c", file, "--against", s.URL, "--token", "none.token")
}
