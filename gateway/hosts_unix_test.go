//go:build unix

package gateway_test

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
)

// byName requests a document with a Host, at an address of the gateway.
func byName(t *testing.T, at net.Addr, host string) (status int) {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, at.Network(), at.String())
	}}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport, Timeout: patience}).Get("http://" + host + "/depts/1")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}

// TestHostsOfListeners: by default a page whose name resolves to this machine cannot read from its
// loopback address, and other listeners accept every name; http.hosts applies to all of them after a
// reload.
func TestHostsOfListeners(t *testing.T) {
	path := newDatabase(t, writeAhead+company)
	cfg := configure(t, path, deptResource)
	if err := gateway.ApplyTriggers(t.Context(), cfg, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	cfg.Frontends.HTTP = config.Listeners{{Address: "127.0.0.1:0"}, {Address: "0.0.0.0:0", Open: true}, {Address: "unix:" + filepath.Join(filepath.Dir(path), "s")}}
	s := serve(t, cfg)
	s.awaitReady()
	at := s.gateway.Addrs(gateway.ListenHTTP)
	if len(at) != 3 {
		t.Fatalf("HTTP is served at %v, want three addresses", at)
	}
	check := func(when, host string, want ...int) {
		t.Helper()
		for i, a := range at {
			if got := byName(t, a, host); got != want[i] {
				t.Errorf("%s, %v by the name %s: %d, want %d", when, a, host, got, want[i])
			}
		}
	}
	check("by default", "localhost", 200, 200, 200)
	check("by default", "192.0.2.1:80", 200, 200, 200)
	check("by default", "evil.example", 421, 200, 200)
	change := func(hosts ...string) {
		t.Helper()
		next := *cfg
		next.HTTP.Hosts = hosts
		done, err := s.gateway.Reload(t.Context(), &next)
		if err != nil || len(done.Changes) != 1 || done.Changes[0].Key != "http.hosts" {
			t.Fatalf("reload: %+v, %v, want a change of http.hosts", done, err)
		}
	}
	change("docs.example")
	check("with names", "docs.example", 200, 200, 200)
	check("with names", "localhost", 200, 200, 200)
	check("with names", "evil.example", 421, 421, 421)
	change("*")
	check("with every name", "evil.example", 200, 200, 200)
	if n := s.metric(`slipstream_throttled_total\{frontend="http",rule="host"\}`); n != 4 {
		t.Errorf("%v refusals are counted, want 4", n)
	}
}
