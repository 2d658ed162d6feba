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

// PgBouncer is a running connection pooler in front of a PostgreSQL server. By
// default a client has a server connection for one transaction, so that what it
// prepares or sets in its session is lost with the next one. Every client is
// trusted.
type PgBouncer struct {
	*Process
	Port int
	// URL leads to the database "postgres" as its superuser, through the pooler.
	URL string
}

// StartPgBouncer starts a pooler for the server. Settings are given as
// "name=value" and override ours: "pool_mode=session"; see [PoolModes].
func StartPgBouncer(t testing.TB, pg *Postgres, settings ...string) *PgBouncer {
	t.Helper()
	runAs := unprivileged(t) // it refuses root too
	dir := shortTempDir(t, "slip-pgb-")
	port := FreePort(t)
	// With auth_type any, every client is the user named by the entry of the database.
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
	psql := postgresClient(t, "psql")
	b := &PgBouncer{Port: port}
	b.URL = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
	command := Command{
		Path: pgbouncerPath(), Args: []string{file}, Dir: dir, User: runAs,
		Ready: func(ctx context.Context) error {
			out, err := exec.CommandContext(ctx, psql, "-X", "-q", "-A", "-t", "-d", b.URL, "-c", "SELECT 1").CombinedOutput()
			if err != nil {
				return fmt.Errorf("psql: %w %s", err, out)
			}
			return nil
		},
	}
	b.Process = Start(t, command)
	stop, ended := make(chan struct{}), make(chan struct{})
	// Ends with the test, which waits for it.
	go func() {
		defer close(ended)
		restartAfterCrash(t, b.Process, command, stop)
	}()
	t.Cleanup(func() {
		close(stop)
		<-ended
	})
	return b
}

// restartAfterCrash starts a pooler again that has ended because of an internal error, as a service manager
// would: 1.18 does so if a client that has sent a request to cancel a statement is gone early. A pooler that a test
// has stopped stays so.
func restartAfterCrash(t testing.TB, p *Process, command Command, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-p.Exited():
		}
		if !strings.Contains(p.Log(), " FATAL @src/") {
			return
		}
		t.Logf("PgBouncer has crashed and is started again:\n%s", p.logTail())
		var err error
		if p, err = Launch(t, command); err != nil {
			return // the test has ended, or will find that there is no pooler
		}
	}
}

// PoolMode is a way in which a pooler shares its connections to the server.
type PoolMode struct {
	Name string
	// Settings are for [StartPgBouncer], Parameters are to be added to a URL.
	Settings   []string
	Parameters string
}

// PoolModes returns the modes that tests of poolers run in: a server connection for
// a transaction, for a session, and, from PgBouncer 1.21 on, for a transaction with
// statements that it prepares wherever they are executed.
func PoolModes(t testing.TB) []PoolMode {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), pgbouncerPath(), "--version").Output()
	var major, minor int
	if _, scanErr := fmt.Sscanf(string(out), "PgBouncer %d.%d", &major, &minor); err != nil || scanErr != nil {
		t.Fatalf("pgbouncer --version: %v, %q", err, out)
	}
	// In session mode a client keeps its server connection for as long as it lives.
	modes := []PoolMode{{"transaction", nil, ""}, {"session", []string{"pool_mode=session", "default_pool_size=40"}, ""}}
	if major > 1 || minor >= 21 {
		modes[0].Settings = []string{"max_prepared_statements=0"}
		modes = append(modes, PoolMode{"transaction with prepared statements",
			[]string{"max_prepared_statements=100"}, "&default_query_exec_mode=cache_statement"})
	}
	return modes
}

// pgbouncerPath is the program. Debian keeps it where only root's PATH leads.
func pgbouncerPath() string {
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		return path
	}
	return "/usr/sbin/pgbouncer"
}
