//go:build unix

package gateway_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/audit"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// TestAdminSocket: operators may do everything over a unix socket, whose mode and owner are those
// of the configuration; the socket of metrics has three pages.
func TestAdminSocket(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead+company)
	dir := filepath.Dir(path)
	cfg := configure(t, path, deptResource+"log: { audit: audit.log }\n")
	cfg.Admin = config.Admin{Address: "unix:admin.sock", Mode: 0o640, Metrics: config.Listener{Address: "unix:metrics.sock", Mode: 0o666}}
	if os.Getuid() == 0 { // only root can change the owner of a file
		cfg.Admin.Owner = "4321:1234"
	}
	g, err := gateway.New(cfg, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	start(t, cfg, g)
	for name, mode := range map[string]os.FileMode{"admin.sock": 0o640, "metrics.sock": 0o666} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != mode {
			t.Errorf("%s has the mode %v, want %v", name, info.Mode(), mode)
		}
		if is := info.Sys().(*syscall.Stat_t); os.Getuid() == 0 && name == "admin.sock" && (is.Uid != 4321 || is.Gid != 1234) {
			t.Errorf("%s is of %d:%d, want 4321:1234", name, is.Uid, is.Gid)
		}
	}
	ask := func(socket, method, target string) int {
		t.Helper()
		transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, socket))
		}}
		defer transport.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+target, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := (&http.Client{Transport: transport, Timeout: patience}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode
	}
	for _, c := range []struct {
		socket, method, target string
		want                   int
	}{
		{"admin.sock", "POST", "/purge?resource=depts", 200}, {"admin.sock", "GET", "/config", 200}, {"admin.sock", "GET", "/live", 200},
		{"metrics.sock", "POST", "/purge?resource=depts", 404}, {"metrics.sock", "GET", "/config", 404}, {"metrics.sock", "GET", "/metrics", 200},
	} {
		if got := ask(c.socket, c.method, c.target); got != c.want {
			t.Errorf("%s of %s at %s: %d, want %d", c.method, c.target, c.socket, got, c.want)
		}
	}
	awaitEvents(t, filepath.Join(dir, "audit.log"), audit.Event{Event: "purge", Listener: "admin", Peer: "unix:", Rule: "unix", Outcome: "done", Resource: "depts"})
}
