package gateway_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
)

// exposedConfig has listeners of each kind.
const exposedConfig = `origin: { url: sqlite:shop.db }
resources:
  depts: { table: dept, key: [deptno] }
  orders: { table: orders, key: [id], access: { keys: [web], jwt: true, certificates: [web.example] } }
  items: { table: items, key: [id] }
auth: { keys: keys.txt, jwt: { keys: jwks.json, issuer: "https://issuer.example", audience: docs } }
frontends:
  http:
    - 127.0.0.1:8080
    - { address: ":8443", tls: { cert: c.pem, key: k.pem } }
    - { address: "192.0.2.7:8444", tls: { cert: c.pem, key: k.pem, clients: ca.pem, min_version: "1.3" } }
    - { address: "unix:http.sock", mode: "0660" }
  redis: { address: "[2001:db8::1]:6379", plaintext: true }
admin: { address: ":9100", tls: { cert: c.pem, key: k.pem }, token: admin.token, metrics: "192.0.2.7:9101", profiles: false }
http: { hosts: [docs.example], openapi: false, limits: { client: { rate: 0.5, burst: 20 }, connections_per_address: 50 } }
`

func exposures(t *testing.T, text string) map[string]gateway.Exposure {
	t.Helper()
	cfg, err := config.Parse("exposed.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]gateway.Exposure)
	for _, e := range gateway.Exposures(cfg) {
		all[e.Address] = e
	}
	return all
}

// TestExposures: the description of a listener agrees with its configuration.
func TestExposures(t *testing.T) {
	all := exposures(t, exposedConfig+"redis: { open: true }\n")
	for _, test := range []struct {
		address, listener, reach, tls, callers, hosts, limits string
		remote                                                bool
		open                                                  []string
	}{
		{"127.0.0.1:8080", "http", "this machine", "clear text", "keys.txt", "docs.example", "0.5 requests/s, bursts of 20, 50 connections", false, []string{"depts", "items"}},
		{":8443", "http", "every machine that can route to an address", "1.2 and later", "tokens of https://issuer.example for audience docs", "docs.example", "17000 connections", true, []string{"depts", "items"}},
		{"192.0.2.7:8444", "http", "every machine that can route to 192.0.2.7", "1.3, client certificates required", "only holders of a client certificate, and of these: API keys of keys.txt; tokens of https://issuer.example for audience docs; names in client certificates", "docs.example", "", true, []string{"depts", "items"}},
		{"unix:http.sock", "http", "mode 0660, owner the user of the gateway", "clear text", "API keys", "docs.example", "", false, []string{"depts", "items"}},
		{"[2001:db8::1]:6379", "redis", "2001:db8::1", "clear text", "API keys", "", "no limit on requests, no limit on connections", true, nil},
		{":9100", "admin", "every machine", "1.2 and later", "anyone for /metrics, /live and /ready; tokens of admin.token for the rest", "localhost", "", true, nil},
		{"192.0.2.7:9101", "metrics", "192.0.2.7", "clear text", "everyone who can reach it", "localhost", "", true, nil},
	} {
		e, ok := all[test.address]
		if !ok {
			t.Errorf("%s is missing", test.address)
			continue
		}
		for _, c := range [][2]string{{e.Listener, test.listener}, {e.Reach, test.reach}, {e.TLS, test.tls}, {e.Callers, test.callers}, {e.Hosts, test.hosts}, {e.Limits, test.limits}} {
			if !strings.Contains(c[0], c[1]) {
				t.Errorf("%s: got %q, want %q in it", test.address, c[0], c[1])
			}
		}
		if e.Remote != test.remote || test.listener != "redis" && !slices.Equal(e.Open, test.open) {
			t.Errorf("%s: remote %v, open %v; want %v, %v", test.address, e.Remote, e.Open, test.remote, test.open)
		}
	}
	if e := all["[2001:db8::1]:6379"]; e.OpenText() != "depts, items" {
		t.Errorf("redis without a required login: open %s, want depts, items", e.OpenText())
	}
	all = exposures(t, strings.Replace(exposedConfig, "hosts: [docs.example], ", "", 1))
	if e := all["[2001:db8::1]:6379"]; e.OpenText() != "none" || !strings.Contains(e.Callers, "a login is required") {
		t.Errorf("redis with a required login: open %s, callers %s", e.OpenText(), e.Callers)
	}
	if a, b := all["127.0.0.1:8080"].Hosts, all[":8443"].Hosts; a != "localhost and IP addresses" || b != "every name" {
		t.Errorf("without http.hosts: %q at loopback, %q elsewhere", a, b)
	}
	if e := all["127.0.0.1:8080"]; e.Pages != "" {
		t.Errorf("pages %q, want none without openapi", e.Pages)
	}
	var many string
	for i := range 20 {
		many += fmt.Sprintf("  r%02d: { table: t, key: [k] }\n", i)
	}
	e := exposures(t, "origin: { url: sqlite:shop.db }\nresources:\n"+many)["127.0.0.1:8080"]
	if text := e.OpenText(); !strings.HasSuffix(text, "r11 and 8 more") || len(e.Open) != 20 {
		t.Errorf("of 20 resources %q are named", text)
	}
	if !strings.Contains(e.Callers, "no credentials are configured") || !strings.Contains(e.Pages, "/openapi.json") {
		t.Errorf("without auth: callers %q, pages %q", e.Callers, e.Pages)
	}
}

// TestExposureIsLogged: the start logs one line for each listener, with the address that it is
// bound to.
func TestExposureIsLogged(t *testing.T) {
	path := newDatabase(t, writeAhead+company)
	cfg := configure(t, path, deptResource)
	cfg.Frontends.Redis = config.ListenAt("127.0.0.1:0")
	var log logText
	g, err := gateway.New(cfg, gateway.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	start(t, cfg, g)
	text := log.String()
	for _, want := range []string{
		"msg=listening listener=http address=" + g.HTTPAddr().String(), "listener=redis address=" + g.RedisAddr().String(),
		"listener=admin address=" + g.AdminAddr().String(), "open_resources=depts", `hosts="localhost and IP addresses"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the log does not say %s:\n%s", want, text)
		}
	}
	if n := strings.Count(text, "msg=listening "); n != 3 {
		t.Errorf("%d lines about listeners, want 3:\n%s", n, text)
	}
}

// logText collects the log.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
