package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// embed installs the triggers and starts a gateway that has no listener, and waits until its promise
// holds.
func embed(t testing.TB, path, yaml string) *gateway.Gateway {
	t.Helper()
	g := unstarted(t, path, yaml)
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := g.AwaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	return g
}

// unstarted installs the triggers and makes a gateway without a listener, which ends with the
// test.
func unstarted(t testing.TB, path, yaml string) *gateway.Gateway {
	t.Helper()
	cfg := configure(t, path, yaml)
	cfg.Frontends.HTTP, cfg.Admin.Address = nil, ""
	if err := gateway.ApplyTriggers(t.Context(), cfg, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(cfg, gateway.Options{NoDefaultListeners: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endEmbedded(t, g) })
	return g
}

func endEmbedded(t testing.TB, g *gateway.Gateway) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := g.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

const keysOfAllSorts = `
resources:
  depts: { table: dept, key: [deptno], children: { emps: { table: emp, order: [empno], columns: [empno, ename] } } }
  pairs: { table: pairs, key: [region, "no"] }
`

func TestLibraryGet(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead+company+`
		CREATE TABLE pairs (region TEXT, no INTEGER, v TEXT, PRIMARY KEY (region, no));
		INSERT INTO pairs VALUES ('a/b%41', 1, 'one');`)
	g := embed(t, path, keysOfAllSorts)
	defer endEmbedded(t, g)
	first, err := g.Get(t.Context(), "depts", "42")
	if err != nil || !first.Exists || first.Source != cache.FromLoad || !strings.Contains(string(first.Body), `"dname":"dept 42"`) {
		t.Fatalf("%+v, %v; expected department 42, loaded", first, err)
	}
	second, err := g.Get(t.Context(), "depts", "42")
	if err != nil || second.Source != cache.FromTier || second.Tier != "memory" || second.Age <= 0 || second.Age > patience || &second.Body[0] != &first.Body[0] {
		t.Errorf("%+v, %v; expected the same bytes from memory", second, err)
	}
	if tag := second.ETag(); tag == "" || tag != first.ETag() {
		t.Errorf("ETag %q and %q; expected the same tag twice", first.ETag(), tag)
	}
	if pair, err := g.Get(t.Context(), "pairs", "a/b%41", "1"); err != nil || !strings.Contains(string(pair.Body), `"one"`) {
		t.Errorf("%+v, %v; expected the row whose key has a slash and a percent sign", pair, err)
	}
	none, err := g.Get(t.Context(), "depts", "4711")
	if err != nil || none.Exists || none.Body != nil || none.ETag() != "" {
		t.Errorf("%+v, %v; expected no row and no error", none, err)
	}
	// The promise holds without a listener, too.
	committed := write(t, path, "UPDATE dept SET dname = 'renamed' WHERE deptno = 42")
	for {
		began := time.Now()
		d, err := g.Get(t.Context(), "depts", "42")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(d.Body), "renamed") {
			break
		}
		if age := began.Sub(committed); age > time.Second {
			t.Fatalf("%s, %v after the commit", d.Body, age)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestLibraryGetAllocatesNothing(t *testing.T) {
	g := embed(t, newDatabase(t, writeAhead+company), deptResource)
	get := func() {
		if d, err := g.Get(t.Context(), "depts", "42"); err != nil || !d.Exists {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	testkit.Eventually(t, patience, func() error { // the canary's sample copies a key now and then
		if n := testing.AllocsPerRun(1000, get); n != 0 {
			return fmt.Errorf("%v allocations a hit; expected none", n)
		}
		return nil
	})
}

func TestLibraryGetMany(t *testing.T) {
	g := embed(t, newDatabase(t, writeAhead+company), deptResource)
	if _, err := g.Get(t.Context(), "depts", "2"); err != nil {
		t.Fatal(err)
	}
	statements := g.Stats().Resources[0].Statements
	all, err := g.GetMany(t.Context(), "depts", [][]string{{"3"}, {"4711"}, {"2"}, {"1"}})
	if err != nil || len(all) != 4 {
		t.Fatalf("%v, %v; expected four documents", all, err)
	}
	for i, want := range []string{`{"deptno":3,`, "", `{"deptno":2,`, `{"deptno":1,`} {
		if !strings.HasPrefix(string(all[i].Body), want) || all[i].Exists != (want != "") {
			t.Errorf("document %d: %+v; expected %q", i, all[i], want)
		}
	}
	if n := g.Stats().Resources[0].Statements - statements; n != 1 || all[2].Source != cache.FromTier {
		t.Errorf("%d statements, and %v for the document in memory; expected one for the three others", n, all[2].Source)
	}
	if all, err := g.GetMany(t.Context(), "depts", nil); err != nil || len(all) != 0 {
		t.Errorf("%v, %v; expected nothing for no keys", all, err)
	}
}

func TestLibraryErrors(t *testing.T) {
	path := newDatabase(t, rollbackJournal+company)
	g := unstarted(t, path, deptResource)
	both := func(ctx context.Context, name string, key ...string) []error {
		_, err := g.Get(ctx, name, key...)
		_, many := g.GetMany(ctx, name, [][]string{key})
		return []error{err, many}
	}
	for _, err := range both(t.Context(), "depts", "1") {
		if !errors.Is(err, cache.ErrUnavailable) {
			t.Errorf("before Start: %v; expected that the database was not reached", err)
		}
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, err := range both(t.Context(), "dept", "1") {
		if !errors.Is(err, gateway.ErrUnknownResource) || !strings.Contains(err.Error(), `"dept"`) {
			t.Errorf("%v; expected that the resource is not known", err)
		}
	}
	for _, key := range [][]string{{"x"}, {"01"}, {"1", "2"}, {}} {
		for _, err := range both(t.Context(), "depts", key...) {
			var wrong *resource.KeyError
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "depts") {
				t.Errorf("key %q: %v; expected a KeyError that names the resource", key, err)
			}
		}
	}
	_, release := lock(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for _, err := range both(ctx, "depts", "77") {
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "depts") {
			t.Errorf("%v; expected the error of the context", err)
		}
	}
	release()
	endEmbedded(t, g)
	for _, err := range both(t.Context(), "depts", "1") {
		if !errors.Is(err, cache.ErrClosed) {
			t.Errorf("after Shutdown: %v; expected ErrClosed", err)
		}
	}
}

// mount serves the handler below a prefix, next to a page of the caller.
func mount(t testing.TB, g *gateway.Gateway) (base string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/api/", http.StripPrefix("/api", g.Handler()))
	mux.Handle("/slash/", http.StripPrefix("/slash/", g.Handler()))
	mux.HandleFunc("/own", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "mine") })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// fetch sends a GET with the fields.
func fetch(t testing.TB, url string, fields ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	rsp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	body, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{rsp.StatusCode, rsp.Header, string(body)}
}

func TestHandlerBelowPrefix(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead+company+`
		CREATE TABLE pairs (region TEXT, no INTEGER, v TEXT, PRIMARY KEY (region, no));
		INSERT INTO pairs VALUES ('a/b%41', 1, 'one'), ('//..', 2, 'two');`)
	g := unstarted(t, path, keysOfAllSorts)
	base := mount(t, g)
	if a := fetch(t, base+"/api/depts/42"); a.status != http.StatusServiceUnavailable || a.head.Get("Retry-After") == "" {
		t.Errorf("before Start: %v; expected 503 with Retry-After", a)
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/own":                           "mine",
		"/api/depts/42":                  `{"deptno":42,`,
		"/slash/depts/42":                `{"deptno":42,`,
		"/api/depts?key=1&key=2":         `[{"deptno":1,`,
		"/api/pairs/a%2Fb%2541/1":        `"v":"one"`,
		"/api/pairs/%2F%2F%2E%2E/2":      `"v":"two"`,
		"/slash/pairs/%2F%2F%2E%2E/2?x=": `"v":"two"`,
		"/api/openapi.json":              `"openapi"`,
	} {
		if a := fetch(t, base+path); a.status != http.StatusOK || !strings.Contains(a.body, want) {
			t.Errorf("%s: %v; expected %s", path, a, want)
		}
	}
	d, err := g.Get(t.Context(), "depts", "42")
	if err != nil {
		t.Fatal(err)
	}
	if a := fetch(t, base+"/api/depts/42", "If-None-Match", d.ETag()); a.status != http.StatusNotModified {
		t.Errorf("with the ETag of Get: %v; expected 304", a)
	}
	if a := fetch(t, base+"/api/depts/x"); a.problem() != http.StatusBadRequest {
		t.Errorf("%v; expected a problem", a)
	}
	endEmbedded(t, g)
	if a := fetch(t, base+"/api/depts/42"); a.status != http.StatusServiceUnavailable {
		t.Errorf("after Shutdown: %v; expected 503", a)
	}
}

// The handler applies the same rules to requests as a listener; Get does not.
func TestHandlerKeepsRulesAndGetDoesNot(t *testing.T) {
	path := newDatabase(t, writeAhead+company)
	dir, key := filepath.Dir(path), access.NewKey()
	line, err := access.KeyLine("web", key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "keys.txt"), []byte(line+"\n"))
	g := embed(t, path, `
resources:
  depts: { table: dept, key: [deptno] }
  emps: { table: emp, key: [empno], access: { keys: [web] } }
auth: { keys: keys.txt }
http: { limits: { client: { rate: 0.001, burst: 2 } } }
log: { requests: requests.log }
`)
	base := mount(t, g)
	if a := fetch(t, base+"/api/emps/1001"); a.problem() != http.StatusUnauthorized {
		t.Errorf("%v; expected that a key is required", a)
	}
	if a := fetch(t, base+"/api/emps/1001", "X-API-Key", key); a.status != http.StatusOK {
		t.Errorf("%v; expected the document for its key", a)
	}
	for _, want := range []int{http.StatusTooManyRequests, http.StatusTooManyRequests} {
		if a := fetch(t, base+"/api/depts/1"); a.status != want {
			t.Errorf("%v; expected %d", a, want)
		}
	}
	for range 10 {
		if d, err := g.Get(t.Context(), "emps", "1001"); err != nil || !d.Exists {
			t.Errorf("%+v, %v; expected the document without a key or a limit", d, err)
		}
	}
	endEmbedded(t, g)
	log, err := os.ReadFile(filepath.Join(dir, "requests.log"))
	if err != nil || strings.Count(string(log), "\n") != 4 || !strings.Contains(string(log), `"/depts/1"`) {
		t.Errorf("%s, %v; expected a line for each of the four requests, without the prefix", log, err)
	}
}

// Shutdown waits for the requests of the handler.
func TestHandlerDrains(t *testing.T) {
	path := newDatabase(t, rollbackJournal+company)
	g := embed(t, path, deptResource)
	base := mount(t, g)
	_, release := lock(t, path)
	answers := make(chan answer, 1)
	go func() { answers <- fetch(t, base+"/api/depts/77") }() // ends below, when the lock is released
	testkit.Eventually(t, patience, func() error {
		if s := g.Stats().Resources[0]; s.InFlight+s.Queued == 0 {
			return errors.New("the request does not wait for its document yet")
		}
		return nil
	})
	ended := make(chan struct{})
	go func() { defer close(ended); endEmbedded(t, g) }() // ends below, after the request
	select {
	case <-ended:
		t.Error("Shutdown did not wait for the request")
	case <-time.After(100 * time.Millisecond):
	}
	release()
	if a := <-answers; a.status != http.StatusOK {
		t.Errorf("%v; expected the document", a)
	}
	<-ended
}

func TestHandlerAndGetAfterReload(t *testing.T) {
	path := newDatabase(t, writeAhead+company)
	g := embed(t, path, deptResource)
	base := mount(t, g)
	cfg := configure(t, path, `
resources:
  depts: { table: dept, key: [deptno], freshness: 2s }
  emps: { table: emp, key: [empno] }
`)
	cfg.Frontends.HTTP, cfg.Admin.Address = nil, ""
	if err := gateway.ApplyTriggers(t.Context(), cfg, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Reload(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if d, err := g.Get(t.Context(), "emps", "1001"); err != nil || !d.Exists {
		t.Errorf("%+v, %v; expected the document of the resource that was added", d, err)
	}
	if a := fetch(t, base+"/api/emps/1001"); a.status != http.StatusOK {
		t.Errorf("%v; expected the document of the resource that was added", a)
	}
}

// collected returns the names of the metrics in a registry.
func collected(t *testing.T, from prometheus.Gatherer) []string {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, f := range families {
		names[f.GetName()] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func TestCollector(t *testing.T) {
	before := collected(t, prometheus.DefaultGatherer)
	path := newDatabase(t, writeAhead+company)
	g := unstarted(t, path, deptResource)
	registry := prometheus.NewRegistry()
	registry.MustRegister(g.Collector())
	if names := collected(t, registry); len(names) > 0 {
		t.Errorf("before Start: %v; expected none", names)
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	fetch(t, mount(t, g)+"/api/depts/1")
	names := collected(t, registry)
	for _, want := range []string{"slipstream_hits_total", "slipstream_http_answers_total", "slipstream_canary_checks_total", "slipstream_origin_polls_total"} {
		if !slices.Contains(names, want) {
			t.Errorf("there is no %s in %v", want, names)
		}
	}
	if slices.ContainsFunc(names, func(n string) bool { return !strings.HasPrefix(n, "slipstream_") }) {
		t.Errorf("%v; expected none of the process or of Go", names)
	}
	if after := collected(t, prometheus.DefaultGatherer); !slices.Equal(before, after) {
		t.Errorf("the default registry has %v; expected %v as before", after, before)
	}
	if err := registry.Register(g.Collector()); err == nil {
		t.Error("the same gateway was registered twice")
	}
	endEmbedded(t, g)
	if names := collected(t, registry); len(names) > 0 {
		t.Errorf("after Shutdown: %v; expected none", names)
	}
	if !registry.Unregister(g.Collector()) {
		t.Error("the collector could not be unregistered")
	}
}

func TestLibraryListeners(t *testing.T) {
	path := newDatabase(t, writeAhead+company)
	for _, c := range []struct {
		name  string
		set   func(*config.Config)
		names []string
	}{
		{"none", func(*config.Config) {}, nil},
		{"http", func(c *config.Config) { c.Frontends.HTTP = config.ListenAt("127.0.0.1:0") }, []string{gateway.ListenHTTP}},
		{"redis", func(c *config.Config) { c.Frontends.Redis = config.ListenAt("127.0.0.1:0") }, []string{gateway.ListenRedis}},
		{"admin", func(c *config.Config) { c.Admin.Address = "127.0.0.1:0" }, []string{gateway.ListenAdmin}},
		{"metrics", func(c *config.Config) { c.Admin.Metrics.Address = "127.0.0.1:0" }, []string{gateway.ListenMetrics}},
	} {
		t.Run(c.name, func(t *testing.T) {
			testkit.NoLeaks(t)
			cfg := configure(t, path, deptResource)
			cfg.Frontends.HTTP, cfg.Admin = nil, config.Admin{}
			c.set(cfg)
			g, err := gateway.New(cfg, gateway.Options{NoDefaultListeners: true})
			if err != nil {
				t.Fatal(err)
			}
			defer endEmbedded(t, g)
			if err := g.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			var bound []string
			for _, name := range []string{gateway.ListenHTTP, gateway.ListenRedis, gateway.ListenAdmin, gateway.ListenMetrics} {
				if len(g.Addrs(name)) > 0 {
					bound = append(bound, name)
				}
			}
			if !slices.Equal(bound, c.names) {
				t.Errorf("listeners %v; expected %v", bound, c.names)
			}
			if (g.HTTPAddr() != nil) != (c.name == "http") || (g.AdminAddr() != nil) != (c.name == "admin") {
				t.Errorf("HTTP at %v and admin at %v", g.HTTPAddr(), g.AdminAddr())
			}
			if changes, err := g.Difference(cfg); err != nil || len(changes) > 0 {
				t.Errorf("%v, %v; expected no difference to itself", changes, err)
			}
			if c.name == "metrics" {
				a := fetch(t, "http://"+g.Addrs(gateway.ListenMetrics)[0].String()+"/metrics")
				if a.status != http.StatusOK || !strings.Contains(a.body, "slipstream_hits_total") {
					t.Errorf("%v; expected metrics", a)
				}
			}
		})
	}
	t.Run("defaults", func(t *testing.T) {
		cfg := configure(t, path, deptResource)
		cfg.Frontends.HTTP, cfg.Admin = nil, config.Admin{}
		g, err := gateway.New(cfg, gateway.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer endEmbedded(t, g)
		if c := g.Config(); len(c.Frontends.HTTP) != 1 || c.Admin.Address == "" {
			t.Errorf("listeners %v and %q; expected the defaults where nothing else is set", c.Frontends.HTTP, c.Admin.Address)
		}
	})
}
