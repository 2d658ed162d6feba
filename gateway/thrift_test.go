package gateway_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift/genericrpc"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// thriftClient calls by the IDL of a configuration.
type thriftClient struct {
	t    testing.TB
	call *genericrpc.Client
}

// numbered returns a configuration in which all fields have numbers, and its IDL.
func numbered(t testing.TB, cfg *config.Config) (*config.Config, *idl.Service) {
	t.Helper()
	db, err := gateway.OpenDatabase(t.Context(), cfg, gateway.DatabaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if w := gateway.ThriftWarnings(cfg, db); len(w) != len(cfg.Resources) {
		t.Errorf("without numbers: %q", w)
	}
	ids, err := gateway.AssignFieldIDs(cfg, db)
	if err != nil {
		t.Fatal(err)
	}
	text, err := config.WithFieldIDs("test.yaml", cfg.Marshal(), ids)
	if err != nil {
		t.Fatal(err)
	}
	next, err := config.Parse("test.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	next.Origin.Dir = cfg.Origin.Dir
	source, warnings, err := gateway.ThriftIDL(next, db)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v, %q", err, warnings)
	}
	program, err := idl.Load(idl.Config{ReadFile: func(string) ([]byte, error) { return source, nil }}, "x.thrift")
	if err != nil {
		t.Fatal(err)
	}
	return next, program.Roots[0].Service("Slipstream")
}

func dialThrift(t testing.TB, service *idl.Service, config rpc.ClientConfig) *thriftClient {
	t.Helper()
	c, err := rpc.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	g, err := genericrpc.NewClient(c, service, genericrpc.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return &thriftClient{t, g}
}

// do returns the document, or the name of an exception.
func (c *thriftClient) do(ctx context.Context, method, key string) string {
	c.t.Helper()
	b, err := c.call.Call(ctx, method, fmt.Appendf(nil, `{"key":%q}`, key))
	if e, ok := errors.AsType[*genericrpc.Exception](err); ok {
		return e.Field.Type.String()
	}
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// TestThriftFrontend: it serves the documents of HTTP with the same promise, and is in the metrics, the dashboard
// and the log of requests.
func TestThriftFrontend(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead+company)
	cfg := configure(t, path, deptResource+"log: { requests: requests.log }\n")
	cfg.Frontends.Thrift = config.ListenAt("127.0.0.1:0")
	cfg, service := numbered(t, cfg)
	if err := gateway.ApplyTriggers(t.Context(), cfg, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	s := serve(t, cfg)
	s.awaitReady()
	c := dialThrift(t, service, rpc.ClientConfig{Addr: s.gateway.ThriftAddr().String()})
	for range 2 {
		if got, want := c.do(t.Context(), "get_depts", "1"), s.get("/depts/1").body; got != want {
			t.Errorf("got %s, over HTTP %s", got, want)
		}
	}
	for key, want := range map[string]string{"9999": "NotFound", "x": "Invalid"} {
		if got := c.do(t.Context(), "get_depts", key); got != want {
			t.Errorf("%s: got %s, want %s", key, got, want)
		}
	}
	committed := write(t, path, "UPDATE dept SET dname = 'other' WHERE deptno = 1")
	for {
		began := time.Now()
		if strings.Contains(c.do(t.Context(), "get_depts", "1"), "other") {
			break
		}
		if age := began.Sub(committed); age > cfg.Freshness {
			t.Fatalf("the change is missing %v after its commit", age)
		}
		time.Sleep(10 * time.Millisecond)
	}
	write(t, path, "UPDATE dept SET dname = x'00' WHERE deptno = 2; UPDATE emp SET ename = NULL WHERE deptno = 2")
	if got := c.do(t.Context(), "get_depts", "2"); !strings.HasPrefix(got, `{"deptno":2,"dname":"`) && got != "Unavailable" {
		t.Errorf("a value of another type: %s", got)
	}
	for name, least := range map[string]float64{
		"slipstream_thrift_calls_total": 6, "slipstream_thrift_exceptions_total": 2, "slipstream_thrift_body_bytes_total": 50,
		"slipstream_thrift_call_duration_seconds_count": 4, "slipstream_engine_accepted_total": 2, "slipstream_frontend_connections": 2,
	} {
		if got := s.metric(name); got < least {
			t.Errorf("%s is %v, want at least %v", name, got, least)
		}
	}
	testkit.Eventually(t, patience, func() error {
		var page struct{ Frontends []struct{ Name string } }
		a := s.do("GET", s.admin+"/dashboard.json")
		if err := json.Unmarshal([]byte(a.body), &page); err != nil || len(page.Frontends) != 2 || page.Frontends[1].Name != "thrift" {
			return fmt.Errorf("the dashboard shows %+v, %v", page, err)
		}
		return nil
	})
	s.client.CloseIdleConnections()
	if err := shutdown(t, s.gateway); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(path), "requests.log"))
	if err != nil {
		t.Fatal(err)
	}
	if part := `"protocol":"thrift","client":"127.0.0.1","method":"get_depts","target":"1","bytes":`; !strings.Contains(string(text), part) {
		t.Errorf("the log of requests lacks %s:\n%s", part, text)
	}
}

// serveThriftIdentified is serveIdentified with two listeners for Thrift, of which the first asks for certificates.
func serveThriftIdentified(t *testing.T) (i *identified, service *idl.Service) {
	t.Helper()
	i = serveIdentified(t, func(cfg *config.Config) {
		cfg.Frontends.Thrift = config.Listeners{
			{Address: "127.0.0.1:0", TLS: config.TLS{Cert: "server.pem", Key: "server.key", Clients: "authority.pem"}}, {Address: "127.0.0.1:0"}}
		next, s := numbered(t, cfg)
		*cfg, service = *next, s
	})
	return i, service
}

// TestThriftCertificateEnds: a certificate that expires identifies nobody anymore on a connection that stays open.
func TestThriftCertificateEnds(t *testing.T) {
	testkit.NoLeaks(t)
	i, service := serveThriftIdentified(t)
	for lifetime := 2 * time.Second; ; lifetime *= 2 { // a slow machine may need more
		template := web(t)
		template.NotAfter = time.Now().Add(lifetime)
		c := dialThrift(t, service, rpc.ClientConfig{Addr: i.gateway.Addrs(gateway.ListenThrift)[0].String(), TLS: i.trusting(i.authority.Issue(t, template)), FailFast: true})
		if got := c.do(t.Context(), "get_web", "1"); !strings.HasPrefix(got, `{"deptno":1,`) {
			if lifetime > time.Minute {
				t.Fatalf("a certificate of %v is never good: %s", lifetime, got)
			}
			continue
		}
		testkit.Eventually(t, lifetime+2*patience, func() error {
			if got := c.do(t.Context(), "get_web", "1"); got != "Denied" {
				return fmt.Errorf("after its end: %s, want Denied", got)
			}
			return nil
		})
		if got := c.do(t.Context(), "get_everybody", "1"); !strings.HasPrefix(got, `{"deptno":1,`) {
			t.Errorf("a document without access rules: %s", got)
		}
		return
	}
}

// TestThriftIdentities: who may read what, by the header of a call and by the certificate of the connection.
func TestThriftIdentities(t *testing.T) {
	testkit.NoLeaks(t)
	i, service := serveThriftIdentified(t)
	clear := i.gateway.Addrs(gateway.ListenThrift)[1].String()
	secured := rpc.ClientConfig{Addr: i.gateway.Addrs(gateway.ListenThrift)[0].String()}
	with := func(one *testkit.Issued, tr rpc.Transport) *thriftClient {
		c := secured
		c.Transport, c.TLS = tr, i.trusting(one)
		return dialThrift(t, service, c)
	}
	key := rpc.WithMeta(t.Context(), rpc.Meta{Key: "authorization", Value: i.key})
	wrong := rpc.WithMeta(t.Context(), rpc.Meta{Key: "authorization", Value: "Bearer x"})
	named := i.authority.Issue(t, web(t))
	for _, row := range []struct {
		who    string
		client *thriftClient
		ctx    context.Context
		may    string // resources
	}{
		{"nobody", dialThrift(t, service, rpc.ClientConfig{Addr: clear}), t.Context(), "everybody"},
		{"the key", dialThrift(t, service, rpc.ClientConfig{Addr: clear}), key, "everybody batch"},
		{"a wrong token", dialThrift(t, service, rpc.ClientConfig{Addr: clear}), wrong, "everybody"},
		{"the key, framed", dialThrift(t, service, rpc.ClientConfig{Addr: clear, Transport: rpc.Framed}), key, "everybody"},
		{"a named certificate", with(named, rpc.TTHeader), t.Context(), "everybody any web either"},
		{"a named certificate, framed", with(named, rpc.Framed), t.Context(), "everybody any web either"},
		{"a certificate and the key", with(named, rpc.TTHeader), key, "everybody any web either batch"},
		{"a certificate without names", with(i.authority.Issue(t, &x509.Certificate{}), rpc.TTHeader), t.Context(), "everybody any"},
	} {
		for _, resource := range []string{"everybody", "any", "web", "mail", "batch", "either"} {
			want := "Denied"
			if strings.Contains(" "+row.may+" ", " "+resource+" ") {
				want = `{"deptno":1,`
			}
			for range 2 { // a load and a hit
				if got := row.client.do(row.ctx, "get_"+resource, "1"); !strings.HasPrefix(got, want) {
					t.Errorf("%s, %s: %s, want %s", row.who, resource, got, want)
				}
			}
		}
	}
	without := secured
	without.TLS, without.Retries, without.Timeout = &tls.Config{RootCAs: i.authority.Pool, ServerName: "localhost"}, -1, 2*time.Second
	if got := dialThrift(t, service, without).do(t.Context(), "get_everybody", "1"); !strings.Contains(got, "rpc") && !strings.Contains(got, "tls") {
		t.Errorf("without a certificate: %s", got)
	}
	i.logs("cert:web.internal", "key:batch")
}
