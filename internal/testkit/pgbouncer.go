package testkit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// PgBouncer is a running connection pooler in front of a PostgreSQL server. It
// gives a server connection for the length of one transaction, so that what a
// session prepares or sets is gone with the next. Everybody is let in.
type PgBouncer struct {
	*Process
	Port int
	// URL leads to the database "postgres" as its superuser, through the pooler.
	URL string
}

// StartPgBouncer starts a pooler for the server. Settings are given as
// "name=value" and win over ours: "pool_mode=session".
func StartPgBouncer(t testing.TB, pg *Postgres, settings ...string) *PgBouncer {
	t.Helper()
	runAs := unprivileged(t) // it refuses root too
	dir := shortTempDir(t, "slip-pgb-")
	port := FreePort(t)
	// With auth_type any, everybody is the user that the entry of the database names.
	ini := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%d user=postgres\n[pgbouncer]\n", pg.Port)
	ours := []string{
		"listen_addr=127.0.0.1", fmt.Sprintf("listen_port=%d", port), "unix_socket_dir=",
		"auth_type=any", "pool_mode=transaction", "default_pool_size=8", "max_client_conn=200",
	}
	ini += strings.Join(append(ours, settings...), "\n") + "\n"
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(ini), 0o644); err != nil {
		t.Fatal(err)
	}
	giveTo(t, runAs, dir, file)
	b := &PgBouncer{Port: port}
	b.URL = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
	b.Process = Start(t, Command{
		Path: pgbouncerPath(), Args: []string{file}, Dir: dir, User: runAs,
		Ready: func(ctx context.Context) error {
			out, err := exec.CommandContext(ctx, filepath.Join(pg.bin, "psql"), "-X", "-q", "-A", "-t", "-d", b.URL, "-c", "SELECT 1").CombinedOutput()
			if err != nil {
				return fmt.Errorf("psql: %w %s", err, out)
			}
			return nil
		},
	})
	return b
}

// pgbouncerPath is the program. Debian keeps it where only root's PATH leads.
func pgbouncerPath() string {
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		return path
	}
	return "/usr/sbin/pgbouncer"
}
