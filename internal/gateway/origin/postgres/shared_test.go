package postgres

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// This file keeps one server for all tests that only need a database: creating a cluster
// takes longer than most of them.

func TestMain(m *testing.M) {
	code := m.Run()
	if n := everyTest.end(); n > 0 && code == 0 {
		code = 1
	}
	os.Exit(code)
}

// everyTest represents all tests together: processes that are started with it end after the
// last one.
var everyTest wholeRun

// wholeRun is a testing.TB whose cleanups run at the end of the test binary.
type wholeRun struct {
	testing.TB // the first test that needs it

	cleanups []func()
	failures int
}

func (w *wholeRun) Cleanup(f func())                { w.cleanups = append(w.cleanups, f) }
func (w *wholeRun) Failed() bool                    { return w.failures > 0 }
func (w *wholeRun) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
func (w *wholeRun) Errorf(format string, args ...any) {
	w.failures++
	w.Logf(format, args...)
}

func (w *wholeRun) TempDir() string {
	dir, err := os.MkdirTemp("", "slip-run-")
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			w.Errorf("%v", err)
		}
	})
	return dir
}

// end runs the cleanups and returns how many failures there were.
func (w *wholeRun) end() int {
	for i := len(w.cleanups) - 1; i >= 0; i-- {
		w.cleanups[i]()
	}
	return w.failures
}

// sharedServer is started by the first test that needs it.
var sharedServer struct {
	once sync.Once
	*server
}

func startShared(t *testing.T) *server {
	t.Helper()
	sharedServer.once.Do(func() {
		everyTest.TB = t
		sharedServer.server = &server{Postgres: testkit.StartPostgres(&everyTest)}
	})
	if sharedServer.server == nil {
		t.Fatal("the shared server did not start")
	}
	return sharedServer.server
}

// freshDatabase makes a database on the shared server and runs scripts in it. It ends with the
// test, and so do the roles that the test created: tests use the server one after the other, never in
// parallel.
func freshDatabase(t *testing.T, scripts ...string) *database {
	t.Helper()
	s := startShared(t)
	var d *database
	t.Cleanup(func() { // after the connections of the test are closed
		if d == nil {
			return
		}
		after := outliving{t}
		s.PSQL(after, "DROP DATABASE "+d.name+" WITH (FORCE)")
		roles := s.PSQL(after, `SELECT quote_ident(rolname) FROM pg_roles WHERE rolname !~ '^(pg_|postgres$|`+testkit.Definer+`$)'`)
		// From PostgreSQL 16 on, a role that has granted a membership stays until that is revoked.
		for _, drop := range []string{"DROP OWNED BY ", "DROP ROLE "} {
			for role := range strings.Lines(roles) {
				s.PSQL(after, drop+role)
			}
		}
	})
	d = s.database(t, scripts...)
	return d
}

// outliving is a test that has ended, for work in its cleanups.
type outliving struct{ testing.TB }

func (outliving) Context() context.Context { return context.Background() }
