package gateway_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/gateway"
)

// shortFreshness keeps tests that wait for the end of a promise short.
const shortFreshness = "freshness: 400ms\n"

// expectUnavailable repeats the request until the answer is the problem 503 that
// clients may retry, within the freshness and a margin; until then it accepts only
// the old document.
func (s *served) expectUnavailable(path, old string) {
	s.t.Helper()
	began := time.Now()
	for {
		asked := time.Now()
		a := s.get(path)
		if a.status == http.StatusServiceUnavailable {
			if a.problem() != 503 || a.head.Get("Retry-After") == "" || a.head.Get("Cache-Control") != "no-store" {
				s.t.Errorf("%s: %v, head %v; expected a problem with Retry-After and no-store", path, a, a.head)
			}
			if strings.Contains(a.body, filepath.Dir(path)) && len(filepath.Dir(path)) > 1 || strings.Contains(a.body, ".db") {
				s.t.Errorf("%s reveals where the database is: %s", path, a.body)
			}
			return
		}
		if a.status != 200 || !strings.Contains(a.body, old) {
			s.t.Fatalf("%s: %v; expected the document with %q, or 503", path, a, old)
		}
		if late := asked.Sub(began); late > s.config.Freshness {
			s.t.Fatalf("%s is still answered %v after its database was removed: %v", path, late, a)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// replaceFile replaces path by the file that build writes, atomically, by a
// rename.
func replaceFile(t *testing.T, path string, build func(path string)) {
	t.Helper()
	build(path + ".new")
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOriginMissingAtStart: no file, then a file that is not a database, then the
// database without triggers, then with them; the same process all the time.
func TestOriginMissingAtStart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "app.db")
	cfg := configure(t, path, deptResource)
	s := serve(t, cfg)
	s.awaitNotReady("does not exist")
	if a := s.get("/depts/1"); a.problem() != 503 || a.head.Get("Retry-After") == "" {
		t.Errorf("without a database: %v", a)
	}
	if a := s.get("/nope/1"); a.problem() != 404 {
		t.Errorf("an unknown resource without a database: %v", a)
	}
	if a := s.do(http.MethodPost, s.admin+"/purge?resource=depts&key=1"); a.status != 200 {
		t.Errorf("purge without a database: %v", a)
	}
	writeFile(t, path, []byte(strings.Repeat("this is not a database\n", 1000)))
	s.awaitNotReady("not a database")
	if a := s.get("/depts/1"); a.problem() != 503 {
		t.Errorf("with a file of text: %v", a)
	}
	replaceFile(t, path, func(p string) { createDatabase(t, p, rollbackJournal+company) })
	s.awaitAnswer("/depts/1", 200, "dept 1")
	s.awaitNotReady("db apply")
	if a := s.get("/depts/1"); a.hit() {
		t.Errorf("cached without triggers: %v", a)
	}
	if err := gateway.ApplyTriggers(t.Context(), cfg, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaitReady()
	s.cached("/depts/1")
}

// TestOriginGoesAndComesBack: whatever replaces the database while the gateway
// runs, cached documents are no longer served after the freshness, nothing wrong is
// served, and when the file is back, with a change made elsewhere, it is served and
// cached again.
func TestOriginGoesAndComesBack(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		// instead takes the place of the file.
		instead func(t *testing.T, path string)
	}{
		{"deleted", func(*testing.T, string) {}},
		{"directory", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}},
		{"text", func(t *testing.T, path string) { writeFile(t, path, []byte(strings.Repeat("no database\n", 1000))) }},
		{"empty", func(t *testing.T, path string) { writeFile(t, path, nil) }},
		{"dangling link", func(t *testing.T, path string) {
			if err := os.Symlink(path+".nowhere", path); err != nil {
				t.Fatal(err)
			}
		}},
		{"truncated copy", func(t *testing.T, path string) {
			whole, err := os.ReadFile(path + ".aside")
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, path, whole[:len(whole)/3])
		}},
		{"pages of noise", func(t *testing.T, path string) {
			whole, err := os.ReadFile(path + ".aside")
			if err != nil {
				t.Fatal(err)
			}
			for i := 4096; i < len(whole); i++ {
				whole[i] = byte(i*7 + i>>8)
			}
			writeFile(t, path, whole)
		}},
		{"other tables", func(t *testing.T, path string) {
			createDatabase(t, path, "CREATE TABLE other (id INTEGER PRIMARY KEY)")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := newDatabase(t, rollbackJournal+company)
			s := serveReady(t, path, shortFreshness+deptResource)
			s.cached("/depts/1")
			s.cached("/depts/299")
			if err := os.Rename(path, path+".aside"); err != nil {
				t.Fatal(err)
			}
			test.instead(t, path)
			s.expectUnavailable("/depts/1", "dept 1")
			s.expectUnavailable("/depts/299", "dept 299")
			s.expectUnavailable("/depts/200", "dept 200") // was never loaded
			s.awaitNotReady("resource depts")

			write(t, path+".aside", "UPDATE dept SET dname = 'changed elsewhere'")
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+".aside", path); err != nil {
				t.Fatal(err)
			}
			s.awaitAnswer("/depts/1", 200, "changed elsewhere")
			s.awaitReady()
			for _, p := range []string{"/depts/1", "/depts/299"} {
				if a := s.cached(p); !strings.Contains(a.body, "changed elsewhere") {
					t.Errorf("%s after the return: %v", p, a)
				}
			}
		})
	}
}

// TestPermissionTakenAway: at start the gateway waits for a file that it may not
// read. Root may read everything; for root the path is a directory.
func TestPermissionTakenAway(t *testing.T) {
	t.Parallel()
	path := newDatabase(t, rollbackJournal+company)
	cfg := configure(t, path, deptResource)
	if err := gateway.ApplyTriggers(t.Context(), cfg, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	why := "may not be read"
	give := func() error { return os.Chmod(path, 0o600) }
	if os.Geteuid() == 0 {
		why = "is not a regular file"
		give = func() error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Rename(path+".aside", path)
		}
		if err := os.Rename(path, path+".aside"); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
	} else if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	s := serve(t, cfg)
	s.awaitNotReady(why)
	if a := s.get("/depts/1"); a.problem() != 503 {
		t.Errorf("without permission: %v", a)
	}
	if err := give(); err != nil {
		t.Fatal(err)
	}
	s.awaitReady()
	if a := s.cached("/depts/1"); a.status != 200 {
		t.Errorf("with permission: %v", a)
	}
}

// TestFileTruncatedInPlace: SQLite reads a file that was truncated under open
// connections as an empty database. Nothing may be served from it, and nothing that
// was cached before.
func TestFileTruncatedInPlace(t *testing.T) {
	t.Parallel()
	path := newDatabase(t, rollbackJournal+company)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := serveReady(t, path, shortFreshness+deptResource)
	s.cached("/depts/1")
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	s.expectUnavailable("/depts/1", "dept 1")
	s.expectUnavailable("/depts/2", "dept 2")
	s.awaitNotReady("resource depts")
	// The file is put back by a rename, as documented for operators, without
	// triggers.
	replaceFile(t, path, func(p string) { writeFile(t, p, whole) })
	s.awaitAnswer("/depts/1", 200, "dept 1")
	if err := gateway.ApplyTriggers(t.Context(), s.config, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaitReady()
	s.cached("/depts/1")
}

// TestDatabaseLocked: a writer blocks all readers for two seconds with an
// uncommitted change. Until the commit only the old document or 503 may be returned,
// after it the new one in time.
func TestDatabaseLocked(t *testing.T) {
	t.Parallel()
	path := newDatabase(t, rollbackJournal+company)
	s := serveReady(t, path, shortFreshness+deptResource)
	s.cached("/depts/1")
	db, release := lock(t, path)
	run(t, db, "UPDATE dept SET dname = 'new ' || deptno")
	began := time.Now()
	refused := 0
	for took := time.Duration(0); took < 2*time.Second || refused == 0 && took < 30*time.Second; took = time.Since(began) {
		for _, p := range []string{"/depts/1", "/depts/2"} {
			asked := time.Since(began)
			a := s.get(p)
			switch {
			case a.problem() == 503:
				refused++
			case a.status != 200 || !strings.Contains(a.body, "dept ") || asked > s.config.Freshness+200*time.Millisecond:
				t.Errorf("%s, requested %v after the lock: %v", p, asked, a)
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	if refused == 0 {
		t.Error("no answer was 503 while the database was locked")
	}
	s.awaitNotReady("behind")
	committed := release()
	for _, p := range []string{"/depts/1", "/depts/2"} {
		s.expectChange(p, "new "+p[len("/depts/"):], committed)
	}
	s.awaitReady()
	s.cached("/depts/1")
	// With a write-ahead log the same lock blocks no reader.
	write(t, path, "PRAGMA journal_mode = WAL")
	s.awaitReady()
	s.cached("/depts/3")
	db = connect(t, path, sqlite3.OPEN_READWRITE)
	defer db.Close()
	run(t, db, "BEGIN EXCLUSIVE; UPDATE dept SET dname = 'newer'")
	time.Sleep(2 * s.config.Freshness)
	if a := s.cached("/depts/3"); !strings.Contains(a.body, "new 3") {
		t.Errorf("under a lock of WAL: %v", a)
	}
	run(t, db, "COMMIT")
	s.expectChange("/depts/3", "newer", time.Now())
}
