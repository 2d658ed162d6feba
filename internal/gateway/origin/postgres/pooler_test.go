package postgres

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// Everything works through PgBouncer, in each of its modes, as on direct
// connections: triggers are created, documents load, and every change arrives, also
// after the server connections have been closed.
func TestEverythingWorksThroughPgBouncer(t *testing.T) {
	for _, mode := range testkit.PoolModes(t) {
		t.Run(mode.Name, func(t *testing.T) {
			server := startShared(t)
			testkit.NoLeaks(t)
			d := freshDatabase(t, streamedSchema)
			pooler := testkit.StartPgBouncer(t, server.Postgres, mode.Settings...)
			url := strings.Replace(pooler.URL, "/postgres?", "/"+d.name+"?", 1) + mode.Parameters
			depts := streamedResource()
			names := query(`SELECT deptno, json_build_object('name', dname, 'emps', (SELECT count(*) FROM emp e WHERE e.deptno = d.deptno)) FROM dept d WHERE deptno = ANY ($1)`,
				queryKey("deptno", "bigint"), on("dept", "deptno"), via("emp", "SELECT deptno FROM dept WHERE deptno = ANY ($1)", "deptno"))
			names.Name, names.Key, names.Freshness = "names", []string{"deptno"}, depts.Freshness
			s := &streamed{T: t, url: d.url}
			s.db = s.dial(t.Context())
			s.origin = openOrigin(t, Config{URL: url, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}, depts, names)
			s.apply()
			s.run()
			s.expect("*")
			for round := range 3 {
				s.exec("UPDATE emp SET deptno = $1 WHERE empno = 6", 4+round)
				s.expect(fmt.Sprint(4 + round))
				s.loadsTogether(fmt.Sprint(4+round), `"emps":6`)
				s.exec("UPDATE task SET what = 'x' WHERE taskno = 200")
				s.expect("20")
				// The pooler opens others, which do not have the prepared statements.
				s.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
				s.advance()
			}
			if got := s.sink.voided(); len(got) > 0 {
				t.Errorf("voided: %q", got)
			}
		})
	}
}

// loadsTogether loads a document of the second resource on more connections than the
// pooler has, and waits until all loads succeed: those that the server closed fail.
func (s *streamed) loadsTogether(id, want string) {
	s.Helper()
	testkit.Eventually(s.T, 10*time.Second, func() error {
		errs := make([]error, 24)
		var loads sync.WaitGroup
		for i := range errs {
			// Ends with its load; waited for below.
			loads.Go(func() {
				batch, err := s.origin.Load(s.Context(), 1, []string{id})
				if err == nil {
					err = batch.Docs[0].Err
				}
				if err == nil && !strings.Contains(strings.ReplaceAll(string(batch.Docs[0].Body), " ", ""), want) {
					err = fmt.Errorf("document %s is %s, want %s in it", id, batch.Docs[0].Body, want)
				}
				errs[i] = err
			})
		}
		loads.Wait()
		return errors.Join(errs...)
	})
}
