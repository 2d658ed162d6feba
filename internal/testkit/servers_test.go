//go:build unix

package testkit

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestStartRedis(t *testing.T) {
	NoLeaks(t)
	r := StartRedis(t, "--maxmemory", "7mb")
	port := strings.TrimPrefix(r.Addr, "127.0.0.1:")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := exchange(ctx, atoi(t, port), "CONFIG GET maxmemory\r\n", "*2\r\n$9\r\nmaxmemory\r\n$7\r\n7340032\r\n"); err != nil {
		t.Error(err)
	}
}

func TestRestartRedis(t *testing.T) {
	NoLeaks(t)
	r := StartRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	port := atoi(t, strings.TrimPrefix(r.Addr, "127.0.0.1:"))
	if err := exchange(t.Context(), port, "INCR n\r\n", ":1\r\n"); err != nil {
		t.Error(err)
	}
	before := r.PID()
	r.Restart(t) // while it is running
	r.Kill()
	r.Restart(t)
	if err := exchange(t.Context(), port, "INCR n\r\n", ":2\r\n"); err != nil {
		t.Errorf("persisted data: %v", err)
	}
	if r.PID() == before {
		t.Error("it is the same process")
	}
}

func TestStartTarantool(t *testing.T) {
	NoLeaks(t)
	tt := StartTarantool(t, "box.schema.space.create('made_by_setup'); require('log').error('spaces: %s', box.space.made_by_setup.name)")
	if !strings.Contains(tt.Log(), "spaces: made_by_setup") {
		t.Errorf("setup did not run; log:\n%s", tt.Log())
	}
	if err := exchange(t.Context(), atoi(t, strings.TrimPrefix(tt.Addr, "127.0.0.1:")), "", "Tarantool 2."); err != nil {
		t.Error(err)
	}
}

func TestStartPostgres(t *testing.T) {
	NoLeaks(t)
	pg := StartPostgres(t, "wal_level=logical")
	if got := pg.PSQL(t, "show wal_level"); got != "logical\n" {
		t.Errorf("wal_level is %q, want logical", got)
	}
	pg.PSQL(t, "create table dept (deptno int primary key); insert into dept values (10), (20)")
	if got := pg.PSQL(t, "select deptno from dept order by 1"); got != "10\n20\n" {
		t.Errorf("rows %q", got)
	}
	p := &probe{TB: t}
	p.run(func() { pg.PSQL(p, "select 1/0") })
	if !p.contains("division by zero") {
		t.Errorf("failed statement: %q, want the server's message", p.failure())
	}
	dir := pg.SocketDir
	t.Cleanup(func() {
		pg.Kill()
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("the cluster was removed before its server ended: %v", err)
		}
	})
}

// Data committed after the standby was cut off is lost once it is promoted; data committed before
// is kept. A crash and a restart lose nothing that was acknowledged.
func TestPostgresInOperation(t *testing.T) {
	NoLeaks(t)
	pg := StartPostgres(t)
	pg.PSQL(t, "create table note (n int primary key); insert into note values (1)")
	pg.Crash(t)
	pg.Restart(t)
	pg.PSQL(t, "insert into note values (2)")
	standby := pg.StartStandby(t, 0)
	pg.PSQL(t, "insert into note values (3)")
	standby.CatchUp(t, pg)
	standby.CutOff(t)
	pg.PSQL(t, "insert into note values (4)")
	pg.Stop(t)
	standby.Promote(t)
	if got := standby.PSQL(t, "insert into note values (5) returning (select string_agg(n::text, ',' order by n) from note)"); got != "1,2,3\n" {
		t.Errorf("the new primary holds %q, want 1,2,3", got)
	}
}

// A commit with synchronous_commit off before Flush survives a crash; one after it does not, which
// tests of crashes rely on.
func TestPostgresFlush(t *testing.T) {
	NoLeaks(t)
	pg := StartPostgres(t, "wal_writer_delay=10s", "synchronous_commit=off")
	pg.PSQL(t, "create table note (n int primary key)")
	pg.Flush(t)
	pg.PSQL(t, "insert into note values (1)")
	pg.Flush(t)
	pg.Crash(t)
	pg.Restart(t)
	pg.PSQL(t, "insert into note values (2)")
	pg.Crash(t)
	pg.Restart(t)
	if got := pg.PSQL(t, "select string_agg(n::text, ',' order by n) from note"); got != "1\n" {
		t.Errorf("rows after two crashes: %q, want 1: the first was flushed, the second was not", got)
	}
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Two statements of a client outside a transaction may run on two server connections, which is why
// tests use a pooler in transaction mode.
func TestStartPgBouncer(t *testing.T) {
	NoLeaks(t)
	pg := StartPostgres(t)
	b := StartPgBouncer(t, pg, "pool_mode=statement")
	psql := func(sql string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), postgresClient(t, "psql"), "-X", "-q", "-A", "-t", "-d", b.URL, "-c", sql).CombinedOutput()
		if err != nil {
			return err.Error() + string(out)
		}
		return strings.TrimSpace(string(out))
	}
	if got := psql("SELECT 40 + 2"); got != "42" {
		t.Errorf("through the pooler: %q", got)
	}
	if got := psql("BEGIN"); !strings.Contains(got, "transaction blocks not allowed") {
		t.Errorf("the setting has no effect: BEGIN gives %q", got)
	}
}
