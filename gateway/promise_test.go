package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// expectUncached changes a row ten times and checks that each GET right after it
// is loaded: without a promise nothing may come from memory.
func (s *served) expectUncached(path, file, update string) {
	s.t.Helper()
	for i := range 10 {
		want := fmt.Sprintf("uncached %d", i)
		write(s.t, file, fmt.Sprintf(update, want))
		a := s.get(path)
		how := a.head.Get("Cache-Status")
		if a.status != 200 || !strings.Contains(a.body, want) || !strings.HasPrefix(how, "slipstream; fwd=") || strings.Contains(how, "stored") {
			s.t.Fatalf("%s: %v; expected %q loaded and not stored", path, a, want)
		}
	}
}

// TestTriggerDropped: /ready names the trigger, documents stay fresh by being
// loaded each time, and once the triggers are applied again they are cached.
func TestTriggerDropped(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{rollbackJournal, writeAhead} {
		path := newDatabase(t, mode+company+"CREATE TABLE plain (id INTEGER PRIMARY KEY, v TEXT); INSERT INTO plain VALUES (1, 'v1')")
		s := serveReady(t, path, deptResource+"  plain: { table: plain, key: [id] }\n")
		s.cached("/depts/1")
		s.cached("/plain/1")
		for _, name := range []string{"slipstream_depts/emp/update", "slipstream_depts/dept/delete"} {
			committed := write(t, path, `DROP TRIGGER "`+name+`"; UPDATE emp SET ename = 'unheard' WHERE deptno = 1`)
			// The change that no trigger records is covered by the promise, too.
			s.expectChange("/depts/1", "unheard", committed)
			s.awaitNotReady(name + " is missing")
			s.expectUncached("/depts/1", path, "UPDATE emp SET ename = '%s' WHERE deptno = 1")
			if promised := s.do(http.MethodGet, s.admin+"/metrics").body; !strings.Contains(promised, `slipstream_promised{resource="depts"} 0`) ||
				!strings.Contains(promised, `slipstream_promised{resource="plain"} 1`) {
				t.Errorf("slipstream_promised does not say which resource lost its promise")
			}
			// The other resource is not affected.
			s.cached("/plain/1")
			if err := gateway.ApplyTriggers(t.Context(), s.config, gateway.DatabaseOptions{}); err != nil {
				t.Fatal(err)
			}
			s.awaitReady()
			if a := s.cached("/depts/1"); !strings.Contains(a.body, "uncached 9") {
				t.Errorf("cached again, but %v", a)
			}
		}
		committed := write(t, path, "UPDATE emp SET ename = 'heard' WHERE deptno = 1")
		s.expectChange("/depts/1", "heard", committed)
	}
}

// TestTriggerReplaced: a trigger of the right name that does something else is
// as bad as none.
func TestTriggerReplaced(t *testing.T) {
	t.Parallel()
	path := newDatabase(t, writeAhead+company)
	s := serveReady(t, path, deptResource)
	s.cached("/depts/1")
	write(t, path, `DROP TRIGGER "slipstream_depts/emp/update"; CREATE TRIGGER "slipstream_depts/emp/update" AFTER UPDATE ON emp BEGIN SELECT 1; END`)
	s.awaitNotReady("slipstream_depts/emp/update")
	s.expectUncached("/depts/1", path, "UPDATE emp SET ename = '%s' WHERE deptno = 1")
	if err := gateway.ApplyTriggers(t.Context(), s.config, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaitReady()
	s.cached("/depts/1")
}

// TestSchemaChangesAtRunTime: tables are dropped, renamed, extended and restored
// while the gateway runs. The documents always match the tables of that moment.
func TestSchemaChangesAtRunTime(t *testing.T) {
	t.Parallel()
	serveCompany := func(t *testing.T) (*served, string) {
		path := newDatabase(t, writeAhead+company)
		s := serveReady(t, path, deptResource)
		s.cached("/depts/1")
		s.cached("/depts/2")
		return s, path
	}
	recover := func(s *served, path, want string) {
		s.t.Helper()
		if err := gateway.ApplyTriggers(s.t.Context(), s.config, gateway.DatabaseOptions{}); err != nil {
			s.t.Fatal(err)
		}
		s.awaitReady()
		if a := s.cached(path); a.status != 200 || !strings.Contains(a.body, want) {
			s.t.Errorf("%s after the repair: %v; expected %s", path, a, want)
		}
	}
	t.Run("column added", func(t *testing.T) {
		t.Parallel()
		s, path := serveCompany(t)
		committed := write(t, path, "ALTER TABLE dept ADD COLUMN budget INTEGER DEFAULT 5")
		for _, p := range []string{"/depts/1", "/depts/2", "/depts/3"} {
			s.expectChange(p, `"budget":5`, committed)
		}
		recover(s, "/depts/1", `"budget":5`)
		committed = write(t, path, "UPDATE dept SET budget = 6 WHERE deptno = 1")
		s.expectChange("/depts/1", `"budget":6`, committed)
	})
	t.Run("column renamed", func(t *testing.T) {
		t.Parallel()
		s, path := serveCompany(t)
		committed := write(t, path, "ALTER TABLE dept RENAME COLUMN dname TO title")
		s.expectChange("/depts/1", `"title":"dept 1"`, committed)
		recover(s, "/depts/1", `"title":"dept 1"`)
	})
	t.Run("declared column dropped", func(t *testing.T) {
		t.Parallel()
		s, path := serveCompany(t)
		write(t, path, "ALTER TABLE emp DROP COLUMN ename")
		s.expectUnavailable("/depts/1", "dept 1")
		s.awaitNotReady("ename")
		write(t, path, "ALTER TABLE emp ADD COLUMN ename TEXT DEFAULT 'again'")
		s.awaitAnswer("/depts/1", 200, "again")
		recover(s, "/depts/1", "again")
	})
	t.Run("child dropped", func(t *testing.T) {
		t.Parallel()
		s, path := serveCompany(t)
		write(t, path, "DROP TABLE emp")
		s.expectUnavailable("/depts/1", "dept 1")
		s.awaitNotReady("emp")
		write(t, path, "CREATE TABLE emp (empno INTEGER PRIMARY KEY, deptno INTEGER REFERENCES dept (deptno), ename TEXT); INSERT INTO emp VALUES (1, 1, 'rehired')")
		s.awaitAnswer("/depts/1", 200, "rehired")
		recover(s, "/depts/1", "rehired")
	})
	t.Run("root renamed", func(t *testing.T) {
		t.Parallel()
		s, path := serveCompany(t)
		write(t, path, "ALTER TABLE dept RENAME TO department")
		s.expectUnavailable("/depts/2", "dept 2")
		s.awaitNotReady("dept")
		write(t, path, "UPDATE department SET dname = 'renamed'; ALTER TABLE department RENAME TO dept")
		s.awaitAnswer("/depts/2", 200, "renamed")
		recover(s, "/depts/2", "renamed")
	})
	t.Run("rebuilt by a migration", func(t *testing.T) {
		t.Parallel()
		s, path := serveCompany(t)
		committed := write(t, path, "PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON", `BEGIN; CREATE TABLE dept2 (deptno INTEGER PRIMARY KEY, dname TEXT, extra TEXT);
			INSERT INTO dept2 SELECT deptno, 'migrated', NULL FROM dept; DROP TABLE dept; ALTER TABLE dept2 RENAME TO dept; COMMIT`)
		s.expectChange("/depts/1", "migrated", committed)
		s.awaitNotReady("is missing")
		s.expectUncached("/depts/1", path, "UPDATE dept SET dname = '%s' WHERE deptno = 1")
		recover(s, "/depts/1", "uncached 9")
	})
	t.Run("key of another kind", func(t *testing.T) {
		t.Parallel()
		s, path := serveCompany(t)
		write(t, path, "PRAGMA foreign_keys = OFF", `BEGIN; DROP TABLE dept; CREATE TABLE dept (deptno TEXT PRIMARY KEY, dname TEXT); INSERT INTO dept VALUES ('1', 'text'); COMMIT`)
		s.expectUnavailable("/depts/1", "dept 1")
		s.awaitNotReady("restart")
	})
}

const policies = shortFreshness + `
resources:
  loaded: { table: dept, key: [deptno], on_stale: reload }
  marked: { table: dept, key: [deptno], on_stale: stale }
  refused: { table: dept, key: [deptno], on_stale: unavailable }
`

// TestOnStale: the stream is blocked for longer than the freshness, because a
// writer holds the lock. Each policy does what its name says.
func TestOnStale(t *testing.T) {
	t.Parallel()
	path := newDatabase(t, rollbackJournal+company)
	s := serveReady(t, path, policies)
	for _, p := range []string{"/loaded/1", "/marked/1", "/refused/1"} {
		s.cached(p)
	}
	db, release := lock(t, path)
	run(t, db, "UPDATE dept SET dname = 'new' WHERE deptno = 1")
	time.Sleep(s.config.Freshness + 100*time.Millisecond)

	a := s.get("/marked/1")
	if status := a.head.Get("Cache-Status"); a.status != 200 || !strings.Contains(a.body, "dept 1") ||
		!strings.HasPrefix(status, "slipstream; hit; ttl=-") || !strings.HasSuffix(status, "; detail=unverified") {
		t.Errorf("stale: %v; expected the old document, marked", a)
	}
	if a := s.get("/marked/2"); a.problem() != 503 {
		t.Errorf("stale, but nothing is cached: %v", a)
	}
	asked := time.Now()
	if a := s.get("/refused/1"); a.problem() != 503 || !strings.Contains(a.body, "freshness") || time.Since(asked) > time.Second/2 {
		t.Errorf("unavailable: %v after %v; expected 503 at once", a, time.Since(asked))
	}
	if a := s.get("/loaded/1"); a.problem() != 503 {
		t.Errorf("reload under a lock: %v", a)
	}
	for _, m := range []string{"slipstream_stale_answers_total", "slipstream_unavailable_answers_total"} {
		if n := s.metric(m); n != 1 {
			t.Errorf("%s is %v, expected 1", m, n)
		}
	}
	committed := release()
	for _, p := range []string{"/loaded/1", "/marked/1", "/refused/1"} {
		if p == "/loaded/1" {
			s.expectChange(p, `"new"`, committed)
			continue
		}
		// The policies allow old answers and 503 until the stream is back, but
		// never an old answer without a mark.
		testkit.Eventually(t, patience, func() error {
			began := time.Now()
			a := s.get(p)
			if strings.Contains(a.body, "dept 1") && began.Sub(committed) > s.config.Freshness && a.hit() {
				t.Errorf("%s: %v, %v after the commit", p, a, began.Sub(committed))
			}
			if !strings.Contains(a.body, `"new"`) || !a.hit() {
				return fmt.Errorf("%s: %v; expected the new document from memory", p, a)
			}
			return nil
		})
	}
}
