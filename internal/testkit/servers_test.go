//go:build unix

package testkit

import (
	"context"
	"os"
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
			t.Errorf("the cluster went before its server: %v", err)
		}
	})
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
