package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

func TestFaultOf(t *testing.T) {
	for code, unavailable := range map[string]bool{
		"08006": true, "28P01": true, "53300": true, "53100": true, "57P01": true, "57P03": true, "42501": true, "42P01": true, "42703": true, "42883": true,
		"0A000": true, "25006": true, "55000": true, "58030": true, "3D000": true, "XX000": true, "26000": true, "42P05": true,
		"57014": false, "22P02": false, "22003": false, "54000": false, "21000": false, "40001": false, "P0001": false, "": false,
	} {
		if got := faultOf(&pgconn.PgError{Code: code}) != nil; got != unavailable {
			t.Errorf("%s: unavailable %v, want %v", code, got, unavailable)
		}
	}
}

// Failures of the database under a running origin are described, count as
// unavailable, wake the stream if the schema changed, and end when their cause
// ends.
func TestFaultsAndRecovery(t *testing.T) {
	pg := testkit.StartPostgres(t)
	runScript(t, pg.URL, `CREATE TABLE dept (deptno int PRIMARY KEY, name text); INSERT INTO dept VALUES (1, 'a');
		CREATE ROLE reader LOGIN; GRANT SELECT ON dept TO reader`)
	o := openOrigin(t, Config{URL: strings.Replace(pg.URL, "postgres@", "reader@", 1), Connections: 2},
		resource.Resource{Name: "depts", Key: []string{"deptno"}, Root: resource.Node{Table: "dept"}})
	for _, tt := range []struct {
		name, break_, mend, want string
		wakes                    bool
	}{
		{"revoked", "REVOKE SELECT ON dept FROM reader", "GRANT SELECT ON dept TO reader", "GRANT SELECT on the tables", true},
		{"table renamed", "ALTER TABLE dept RENAME TO d", "ALTER TABLE d RENAME TO dept", "was dropped, renamed or changed", true},
		{"column renamed", "ALTER TABLE dept RENAME name TO n", "ALTER TABLE dept RENAME n TO name", "was dropped, renamed or changed", true},
		{"key of another type", "ALTER TABLE dept ALTER deptno TYPE text", "ALTER TABLE dept ALTER deptno TYPE int USING deptno::int", "was dropped, renamed or changed", true},
		{"no login", "ALTER ROLE reader NOLOGIN; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'", "ALTER ROLE reader LOGIN", "", false},
		{"out of connections", "ALTER ROLE reader CONNECTION LIMIT 0; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'",
			"ALTER ROLE reader CONNECTION LIMIT -1", "", false},
	} {
		runScript(t, pg.URL, tt.break_)
		// The first loads may find only a connection that has ended.
		var err error
		for range 3 {
			if _, err = o.Load(t.Context(), 0, []string{"1"}); err == nil {
				t.Fatalf("%s: no error", tt.name)
			}
			if !errors.Is(err, cache.ErrUnavailable) {
				t.Errorf("%s: %v, want it unavailable", tt.name, err)
			}
		}
		if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		woken := len(o.wake) > 0
		if woken != tt.wakes {
			t.Errorf("%s: woken %v, want %v", tt.name, woken, tt.wakes)
		}
		for len(o.wake) > 0 {
			<-o.wake
		}
		runScript(t, pg.URL, tt.mend)
		if body := loadOne(t, o, "1"); string(body) != `{"deptno":1,"name":"a"}` {
			t.Errorf("%s, after: %s", tt.name, body)
		}
	}
}

// A load that takes too long ends on the server; so does one whose caller has
// left.
func TestTimeLimits(t *testing.T) {
	pg := freshDatabase(t)
	runScript(t, pg.url, "CREATE TABLE dept (deptno int PRIMARY KEY); INSERT INTO dept VALUES (1)")
	depts := resource.Resource{Name: "depts", Key: []string{"deptno"}, Root: resource.Node{Table: "dept"}}
	short := openOrigin(t, Config{URL: pg.url, StatementTimeout: 200 * time.Millisecond, Connections: 1}, depts)
	long := openOrigin(t, Config{URL: pg.url, StatementTimeout: time.Minute, Connections: 1}, depts)
	locker, observer := connect(t, pg.url), connect(t, pg.url)
	if _, err := locker.Exec(t.Context(), "BEGIN; LOCK dept"); err != nil {
		t.Fatal(err)
	}
	waiting := func() bool {
		return scan[bool](t, observer, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'slipstream' AND wait_event_type = 'Lock')")
	}
	// The server's limit may be the fault of one key: not unavailable.
	if _, err := short.Load(t.Context(), 0, []string{"1"}); err == nil || errors.Is(err, cache.ErrUnavailable) || !strings.Contains(err.Error(), "57014") {
		t.Errorf("statement_timeout: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	result := make(chan error, 1)
	// Ended by ctx, awaited below.
	go func() {
		_, err := long.Load(ctx, 0, []string{"1"})
		result <- err
	}()
	for !waiting() {
		time.Sleep(5 * time.Millisecond)
	}
	// All connections are in use: that is not caused by a key.
	second, cancelSecond := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancelSecond()
	if _, err := long.Load(second, 0, []string{"1"}); !errors.Is(err, cache.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), "none of 1 connections became free") {
		t.Errorf("no free connection: %v", err)
	}
	if err := <-result; !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, cache.ErrUnavailable) {
		t.Errorf("caller's limit: %v", err)
	}
	testkit.Eventually(t, 5*time.Second, func() error {
		if waiting() {
			return errors.New("the statement of a caller that left still waits on the server")
		}
		return nil
	})
	if _, err := locker.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if body := loadOne(t, long, "1"); string(body) != `{"deptno":1}` {
		t.Errorf("afterwards: %s", body)
	}
}
