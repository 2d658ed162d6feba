//go:build linux

package clients

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// TestHostsThroughNginx: requests of a proxy on this machine that forwards Host are served if the
// proxy is trusted or the name is listed. Otherwise the response and the log name the configuration
// keys that help.
func TestHostsThroughNginx(t *testing.T) {
	for _, test := range []struct {
		name, setting string
		status        int
	}{
		{"trusted", "trusted_proxies: [127.0.0.1]", 200},
		{"listed", "hosts: [docs.example]", 200},
		{"neither", "batch: 10", 421},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := startPlain(t, test.setting)
			proxy := passingHost(t, g.address)
			r, err := http.NewRequestWithContext(t.Context(), "GET", proxy+order, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = "docs.example"
			answer, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != test.status {
				t.Fatalf("status %d, %v, want %d: %s", answer.StatusCode, err, test.status, body)
			}
			if test.status == 200 {
				return
			}
			for where, text := range map[string]string{"answer": string(body), "log": g.process.Log()} {
				if !strings.Contains(text, "http.hosts") || !strings.Contains(text, "http.trusted_proxies") {
					t.Errorf("the %s names no key that helps:\n%s", where, text)
				}
			}
		})
	}
}

// passingHost starts an nginx that forwards Host, and returns its URL.
func passingHost(t *testing.T, upstream string) string {
	dir, port := t.TempDir(), testkit.FreePort(t)
	config := filepath.Join(dir, "nginx.conf")
	blackbox.Write(t, config, fmt.Sprintf(`daemon off;
master_process off;
pid %[1]s/pid;
error_log stderr warn;
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
  server {
    listen 127.0.0.1:%[2]d;
    location / {
      proxy_pass http://%[3]s;
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }
  }
}
`, dir, port, upstream))
	startProxy(t, "nginx", []string{"-e", "stderr", "-p", dir, "-c", config}, port)
	return loopback(port)
}
