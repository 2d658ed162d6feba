package gateway_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
)

// documentedMetrics returns the names in the first column of the tables of all pages
// for operators.
func documentedMetrics(t *testing.T) (names []string) {
	t.Helper()
	pages, err := filepath.Glob("../docs/operations/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if cells := strings.Split(line, "|"); len(cells) > 2 {
				names = append(names, regexp.MustCompile(`slipstream_\w+`).FindAllString(cells[1], -1)...)
			}
		}
	}
	if len(names) < 50 {
		t.Fatalf("docs/operations documents %q; expected tables of at least 50 metrics", names)
	}
	return names
}

// TestDocumentedMetricsExist: /metrics serves every metric that docs/operations
// names, with a help text, from the first request on.
func TestDocumentedMetricsExist(t *testing.T) {
	t.Parallel()
	path := newDatabase(t, writeAhead+company)
	cfg := configure(t, path, deptResource+"log: { requests: requests.log }\n")
	cfg.Frontends.Redis, cfg.Frontends.Thrift = config.ListenAt("127.0.0.1:0"), config.ListenAt("127.0.0.1:0")
	cfg.Redis.TLS = config.TLS{Cert: "cert.pem", Key: "key.pem"}
	gateway.WriteCertificate(t, filepath.Dir(path), 1)
	withCredentials(t, cfg)
	if err := gateway.ApplyTriggers(t.Context(), cfg, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	s := serve(t, cfg)
	s.awaitReady()
	s.get("/depts/1")
	page := s.do(http.MethodGet, s.admin+"/metrics").body
	for _, name := range documentedMetrics(t) {
		if !regexp.MustCompile(`(?m)^` + name + `(_count)?(\{[^}]*\})? `).MatchString(page) {
			t.Errorf("/metrics has no %s, which docs/operations names", name)
		}
		if !regexp.MustCompile(`(?m)^# HELP ` + name + ` \S`).MatchString(page) {
			t.Errorf("%s has no help text", name)
		}
	}
}

// withCredentials gives a configuration the kinds of credentials that have metrics.
func withCredentials(t *testing.T, cfg *config.Config) {
	t.Helper()
	line, err := access.KeyLine("web", access.NewKey())
	if err == nil {
		line, err = access.LineUntil(line, "2199-12-31")
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(cfg.Origin.Dir, "keys.txt"), []byte(line+"\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	cfg.Auth.Keys = "keys.txt"
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"keys":[{"kty":"oct","k":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"}]}`)
	}))
	t.Cleanup(issuer.Close)
	cfg.Auth.JWT = config.JWT{Keys: issuer.URL + "/keys", Audience: config.AnyAudience, Issuer: "https://login.example"}
}

// TestMetricsCount: the counters say what happened.
func TestMetricsCount(t *testing.T) {
	t.Parallel()
	path := newDatabase(t, writeAhead+company)
	s := serveReady(t, path, "freshness: 10s\n"+deptResource)
	s.get("/depts/1") // a load
	s.get("/depts/1") // a hit
	s.get("/depts/1") // another
	s.get("/depts/9999")
	s.get("/depts/x")
	for name, want := range map[string]float64{
		"slipstream_hits_total": 2, "slipstream_misses_total": 2, "slipstream_load_statements_total": 2,
		"slipstream_loaded_documents_total": 2, "slipstream_load_failures_total": 0, "slipstream_promised": 1,
		"slipstream_tier_documents": 2, "slipstream_tier_missing_rows": 1, "slipstream_tier_budget_bytes": 256 << 20,
		"slipstream_http_connections": 1, "slipstream_http_answers_total": 5, "slipstream_voids_total": 0,
		"slipstream_http_request_duration_seconds_count": 5, `slipstream_http_request_duration_seconds_count\{source="load"\}`: 2,
		`slipstream_http_request_duration_seconds_bucket\{source="hit",le="10"\}`: 2,
		`slipstream_http_answers_total\{status="404"\}`:                           1, `slipstream_http_answers_total\{status="400"\}`: 1,
	} {
		if got := s.metric(name); got != want {
			t.Errorf("%s is %v, expected %v", name, got, want)
		}
	}
	if sum := s.metric(`slipstream_http_request_duration_seconds_sum\{source="load"\}`); sum <= 0 || sum > 10 {
		t.Errorf("two loads took %v s", sum)
	}
	for _, path := range []string{"/depts/1", "/depts/9999", "/depts/x"} {
		before := s.metric("slipstream_http_body_bytes_total")
		if sent, got := len(s.get(path).body), s.metric("slipstream_http_body_bytes_total")-before; got != float64(sent) {
			t.Errorf("%s: %v bytes are counted for a body of %d", path, got, sent)
		}
	}
	if age := s.metric("slipstream_horizon_age_seconds"); age < 0 || age > 1 {
		t.Errorf("the horizon is %v s old", age)
	}
	committed := write(t, path, "UPDATE dept SET dname = 'changed' WHERE deptno = 1")
	s.expectChange("/depts/1", "changed", committed)
	if n := s.metric("slipstream_invalidations_total"); n != 1 {
		t.Errorf("%v invalidations for one change", n)
	}
}

// TestPurge: a purged document is loaded again, its neighbors are not; the
// same holds for a whole resource.
func TestPurge(t *testing.T) {
	t.Parallel()
	path := newDatabase(t, writeAhead+company+`CREATE TABLE pairs (region TEXT, no INTEGER, PRIMARY KEY (region, no));
		INSERT INTO pairs VALUES ('a/b', 1), ('a', 1)`)
	s := serveReady(t, path, "freshness: 10s\n"+deptResource+"  pairs: { table: pairs, key: [region, \"no\"] }\n")
	purge := func(query string, status int) answer {
		t.Helper()
		a := s.do(http.MethodPost, s.admin+"/purge?"+query)
		if a.status != status || status != 200 && a.problem() != status {
			t.Errorf("purge of %s: %v; expected %d", query, a, status)
		}
		return a
	}
	expectLoad := func(path string) {
		t.Helper()
		if a := s.get(path); a.head.Get("Cache-Status") != "slipstream; fwd=uri-miss; stored" {
			t.Errorf("%s after its purge: %v; expected a load", path, a)
		}
	}
	expectHit := func(paths ...string) {
		t.Helper()
		for _, path := range paths {
			if a := s.get(path); !a.hit() {
				t.Errorf("%s, which was not purged: %v", path, a)
			}
		}
	}
	all := []string{"/depts/1", "/depts/2", "/depts/9999", "/pairs/a%2Fb/1", "/pairs/a/1"}
	for _, p := range all {
		s.cached(p)
	}
	purge("resource=depts&key=1", 200)
	expectHit(all[1:]...)
	expectLoad("/depts/1")
	expectHit("/depts/1")
	purge("resource=depts&key=9999", 200) // a missing row is an entry too
	expectLoad("/depts/9999")
	purge("resource=pairs&key=a%252Fb/1", 200) // the query's escapes, then the path's
	expectHit("/pairs/a/1")
	expectLoad("/pairs/a%2Fb/1")

	// A refused request purges nothing.
	purge("resource=nope", 404)
	purge("resource=nope&key=1", 404)
	purge("resource=depts&key=", 400)
	purge("resource=depts&key=x", 400)
	purge("resource=depts&key=1/2", 400)
	purge("resource=pairs&key=a", 400)
	purge("key=1", 400)
	purge("", 400)
	if a := s.do(http.MethodGet, s.admin+"/purge?resource=depts"); a.status != 405 {
		t.Errorf("GET of /purge: %v", a)
	}
	expectHit(all...)

	purge("resource=depts", 200)
	expectHit("/pairs/a%2Fb/1", "/pairs/a/1")
	for _, p := range []string{"/depts/1", "/depts/2", "/depts/9999"} {
		expectLoad(p)
	}
}

// TestAdminPages: the gateway is alive and ready, and shows the configuration in
// force, which can be parsed again.
func TestAdminPages(t *testing.T) {
	t.Parallel()
	s := serveReady(t, newDatabase(t, writeAhead+company), deptResource)
	for path, want := range map[string]string{"/live": `{"live":true}`, "/ready": `{"ready":true}`} {
		if a := s.do(http.MethodGet, s.admin+path); a.status != 200 || strings.TrimSpace(a.body) != want {
			t.Errorf("%s: %v; expected %s", path, a, want)
		}
	}
	shown := s.do(http.MethodGet, s.admin+"/config")
	back, err := config.Parse("shown", []byte(shown.body))
	if err != nil {
		t.Fatalf("/config cannot be read back: %v\n%s", err, shown.body)
	}
	back.Origin.Dir = s.config.Origin.Dir
	if got, want := string(back.Marshal()), string(s.config.Marshal()); got != want {
		t.Errorf("/config is\n%s\nexpected\n%s", got, want)
	}
	// The pages of operators are not on the public listener, nor are documents on
	// the admin listener.
	for _, p := range []string{"/live", "/ready", "/metrics", "/config", "/purge", "/debug/pprof/"} {
		if a := s.get(p); a.problem() != 404 {
			t.Errorf("%s on the public listener: %v", p, a)
		}
	}
	if a := s.do(http.MethodGet, s.admin+"/depts/1"); a.problem() != 404 {
		t.Errorf("a document on the admin listener: %v", a)
	}
}

// TestSecretsStayHidden: an origin that no gateway can serve is refused without
// repeating its password, and shown without it.
func TestSecretsStayHidden(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for _, url := range []string{"mysql://app:" + secret + "@db/shop", "postgres://app:" + secret + "@x@db/shop", "sqlite://app:" + secret + "@host/app.db",
		"sqlite:app.db?password=" + secret, secret + ":app.db"} {
		cfg := configure(t, "app.db", deptResource)
		cfg.Origin.URL = url
		_, err := gateway.New(cfg, gateway.Options{})
		var wrong *config.Errors
		if !errors.As(err, &wrong) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v; expected a refusal without the secret", url, err)
		}
		if shown := string(cfg.Redacted()); strings.Contains(shown, secret) {
			t.Errorf("shown as\n%s", shown)
		}
	}
}

// TestReadyOfOneResource: the reasons name only the resource at fault.
func TestReadyOfOneResource(t *testing.T) {
	t.Parallel()
	path := newDatabase(t, writeAhead+company+"CREATE TABLE plain (id INTEGER PRIMARY KEY)")
	s := serveReady(t, path, deptResource+"  plain: { table: plain, key: [id] }\n")
	write(t, path, `DROP TRIGGER "slipstream_plain/plain/insert"`)
	s.awaitNotReady("resource plain")
	reasons := s.gateway.Ready()
	if len(reasons) != 1 || !strings.Contains(reasons[0], "slipstream_plain/plain/insert") {
		t.Errorf("reasons %q; expected only the trigger of plain", reasons)
	}
	if !slices.Equal(s.gateway.Ready(), reasons) {
		t.Error("reading the reasons changes them")
	}
	time.Sleep(300 * time.Millisecond) // a few polls
	if a := s.ready(); a.status != 503 {
		t.Errorf("/ready: %v", a)
	}
}
