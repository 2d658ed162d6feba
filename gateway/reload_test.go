package gateway_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// reload applies another configuration and returns the keys that changed.
func (s *served) reload(path, yaml string) (*gateway.Reloaded, error) {
	s.t.Helper()
	cfg := configure(s.t, path, yaml)
	done, err := s.gateway.Reload(s.t.Context(), cfg)
	if err == nil {
		s.config = cfg
	}
	return done, err
}

func (s *served) mustReload(path, yaml string, keys ...string) *gateway.Reloaded {
	s.t.Helper()
	done, err := s.reload(path, yaml)
	if err != nil {
		s.t.Fatal(err)
	}
	var got []string
	for _, c := range done.Changes {
		got = append(got, c.Key)
	}
	slices.Sort(got)
	if !slices.Equal(got, slices.Sorted(slices.Values(keys))) {
		s.t.Errorf("the reload changed %q, want %q", got, keys)
	}
	return done
}

const (
	emps     = "  emps: { table: emp, key: [empno] }\n"
	shortest = "\nresources:\n  depts: { table: dept, key: [deptno], columns: [dname] }\n"
)

// Resources are added, changed and removed; those that remain are served from the
// cache all the time.
func TestReloadOfResources(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead, company)
	both := configure(t, path, deptResource+emps)
	if err := gateway.ApplyTriggers(t.Context(), both, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	s := serveReady(t, path, deptResource)
	before := s.cached("/depts/7").body
	s.awaitAnswer("/emps/1007", http.StatusNotFound, "no such resource")

	// Added: served immediately, and from the cache once it was loaded.
	if done := s.mustReload(path, deptResource+emps, "resources.emps"); len(done.Warnings) != 0 {
		t.Errorf("warnings %q", done.Warnings)
	}
	if a := s.get("/emps/1007"); a.status != http.StatusOK || !strings.Contains(a.body, "emp of 7") {
		t.Errorf("the new resource: %v", a)
	}
	if a := s.get("/emps/1007"); !a.hit() {
		t.Errorf("the new resource again: %v, want a hit", a)
	}
	if a := s.get("/depts/7"); !a.hit() || a.body != before {
		t.Errorf("the resource that was there: %v, want a hit", a)
	}
	committed := write(t, path, "UPDATE emp SET ename = 'changed' WHERE empno = 1007")
	s.expectChange("/emps/1007", "changed", committed)
	s.expectChange("/depts/7", "changed", committed)
	if a := s.ready(); a.status != http.StatusOK {
		t.Errorf("/ready: %v", a)
	}

	// Changed: the new documents are served immediately, those of the other
	// resource stay.
	s.cached("/emps/1007")
	s.mustReload(path, shortest+emps, "resources.depts.columns", "resources.depts.children.emps.table",
		"resources.depts.children.emps.order", "resources.depts.children.emps.columns")
	if a := s.get("/depts/7"); a.hit() || a.body != `{"dname":"dept 7"}` {
		t.Errorf("the resource that changed: %v", a)
	}
	if a := s.get("/emps/1007"); !a.hit() {
		t.Errorf("the resource that stayed: %v, want a hit", a)
	}
	if n := s.metric("slipstream_hits_total"); n < 1 {
		t.Errorf("%v hits", n) // and no metric twice: the page could be read
	}
	if page := s.do(http.MethodGet, s.admin+"/config"); !strings.Contains(page.body, "dname") {
		t.Errorf("/config: %v", page)
	}

	// Removed, and added again.
	s.mustReload(path, deptResource, "resources.depts.columns", "resources.depts.children.emps.table",
		"resources.depts.children.emps.order", "resources.depts.children.emps.columns", "resources.emps")
	s.awaitAnswer("/emps/1007", http.StatusNotFound, "no such resource")
	s.mustReload(path, deptResource+emps, "resources.emps")
	s.cached("/emps/1007")
	committed = write(t, path, "UPDATE emp SET ename = 'again' WHERE empno = 1007")
	s.expectChange("/emps/1007", "again", committed)
	s.expectChange("/depts/7", "again", committed)
	s.mustReload(path, deptResource+emps)
}

// A resource whose triggers are missing is served without being cached, and the reload reports it.
func TestReloadWithoutTriggers(t *testing.T) {
	path := newDatabase(t, writeAhead, company)
	s := serveReady(t, path, deptResource)
	done := s.mustReload(path, deptResource+emps, "resources.emps")
	if len(done.Warnings) != 1 || !strings.Contains(done.Warnings[0], "db apply") {
		t.Errorf("warnings %q, want one that says what to do", done.Warnings)
	}
	s.awaitAnswer("/emps/1007", http.StatusOK, "emp of 7")
	s.awaitNotReady("resource emps")
	if err := gateway.ApplyTriggers(t.Context(), s.config, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaitReady()
	s.cached("/emps/1007")
}

// A refused reload changes nothing.
func TestReloadRefused(t *testing.T) {
	path := newDatabase(t, writeAhead, company)
	s := serveReady(t, path, deptResource)
	s.cached("/depts/7")
	_, err := s.reload(path, strings.Replace(deptResource, "table: dept,", "table: depp,", 1)+"freshness: 2s\n")
	var problem *origin.SchemaError
	if !errors.As(err, &problem) || !strings.Contains(problem.Problem, "dept") {
		t.Errorf("a table that does not exist: %v", err)
	}
	var restart *gateway.RestartError
	_, err = s.reload(path, deptResource+emps+"tiers: { memory: 64MiB }\n")
	if !errors.As(err, &restart) || !strings.Contains(err.Error(), "tiers.memory") || strings.Contains(err.Error(), "emps") {
		t.Errorf("another budget: %v, want a RestartError", err)
	}
	_, err = s.reload(path, deptResource+"auth: { keys: missing.keys }\n")
	if err == nil || !strings.Contains(err.Error(), "missing.keys") {
		t.Errorf("keys that cannot be read: %v", err)
	}
	wrong := configure(t, path, deptResource)
	wrong.Resources[0].OnStale = "sometimes"
	var mistakes *config.Errors
	if _, err := s.gateway.Reload(t.Context(), wrong); !errors.As(err, &mistakes) {
		t.Errorf("a wrong configuration: %v", err)
	}
	if a := s.get("/depts/7"); !a.hit() {
		t.Errorf("after all: %v, want a hit", a)
	}
	s.awaitAnswer("/emps/1", http.StatusNotFound, "")
}

// Access, rates and freshness change while documents stay cached.
func TestReloadOfTerms(t *testing.T) {
	path := newDatabase(t, writeAhead, company)
	keys := filepath.Join(filepath.Dir(path), "web.keys")
	if err := os.WriteFile(keys, []byte("web sha256:"+strings.Repeat("0", 64)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveReady(t, path, deptResource)
	s.cached("/depts/7")

	s.mustReload(path, deptResource+"http: { limits: { client: { rate: 0.001, burst: 3 } } }\n",
		"http.limits.client.rate", "http.limits.client.burst")
	for range 3 {
		if a := s.get("/depts/7"); !a.hit() {
			t.Errorf("within the limit: %v, want a hit", a)
		}
	}
	s.awaitAnswer("/depts/7", http.StatusTooManyRequests, "")
	// A client gets no new burst because something else changes.
	s.mustReload(path, deptResource+"http: { batch: 7, limits: { client: { rate: 0.001, burst: 3 } } }\n", "http.batch")
	if a := s.get("/depts/7"); a.status != http.StatusTooManyRequests {
		t.Errorf("after a reload of something else: %v, want 429", a)
	}

	s.mustReload(path, deptResource+"freshness: 5s\nhttp: { cors: { origins: [\"*\"] } }\n",
		"freshness", "resources.depts.freshness", "http.batch", "http.limits.client.rate", "http.limits.client.burst", "http.cors.origins", "http.cors.max_age")
	a := s.get("/depts/7")
	if !a.hit() {
		t.Errorf("on other terms: %v, want a hit", a)
	}
	if s.gateway.Config().Freshness != 5*time.Second || s.metric("slipstream_freshness_seconds") != 5 {
		t.Error("the new freshness does not show")
	}

	s.mustReload(path, strings.Replace(deptResource, "[deptno],", "[deptno], access: { keys: [web] },", 1)+"auth: { keys: web.keys }\n",
		"freshness", "resources.depts.freshness", "resources.depts.access.keys", "resources.depts.cache_control",
		"http.cors.origins", "http.cors.max_age", "auth.keys")
	s.awaitAnswer("/depts/7", http.StatusUnauthorized, "")
	s.mustReload(path, deptResource, "resources.depts.access.keys", "resources.depts.cache_control", "auth.keys")
	if a := s.get("/depts/7"); !a.hit() {
		t.Errorf("open again: %v, want a hit", a)
	}
}
