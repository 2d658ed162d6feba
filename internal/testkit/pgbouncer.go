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

// PgBouncer is a running connection pooler in front of a PostgreSQL server. By default a client
// keeps a server connection for one transaction, so statements that it prepares and settings of its
// session are lost with the next one. Every client is trusted.
type PgBouncer struct {
	*Process
	Port int
	// URL is the URL of the database "postgres", through the pooler and as the superuser.
	URL string
}

// StartPgBouncer starts a pooler for the server. Settings are given as
// "name=value" and override ours: "pool_mode=session"; see [PoolModes].
func StartPgBouncer(t testing.TB, pg *Postgres, settings ...string) *PgBouncer {
	t.Helper()
	runAs := unprivileged(t) // PgBouncer also refuses to run as root
	dir := shortTempDir(t, "slip-pgb-")
	port := FreePort(t)
	// With auth_type any, every client is the user given in the entry of the database.
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

// restartAfterCrash restarts a pooler that has ended because of an internal error, as a service
// manager would. Version 1.18 crashes if a client that has requested the cancellation of a
// statement disconnects early. A pooler that a test has stopped is not restarted.
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
		t.Logf("PgBouncer has crashed and is restarted:\n%s", p.logTail())
		var err error
		if p, err = Launch(t, command); err != nil {
			return // the test has ended or will notice that there is no pooler
		}
	}
}

// PoolMode is a way in which a pooler shares its connections to the server.
type PoolMode struct {
	Name string
	// Settings are passed to [StartPgBouncer], Parameters are added to a URL.
	Settings   []string
	Parameters string
}

// PoolModes returns the modes in which tests of poolers run: with a server connection for each
// transaction, for each session and, from PgBouncer 1.21 on, for each transaction with prepared
// statements, which the pooler prepares on each server connection that executes them.
func PoolModes(t testing.TB) []PoolMode {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), pgbouncerPath(), "--version").Output()
	var major, minor int
	if _, scanErr := fmt.Sscanf(string(out), "PgBouncer %d.%d", &major, &minor); err != nil || scanErr != nil {
		t.Fatalf("pgbouncer --version: %v, %q", err, out)
	}
	// In session mode, a client keeps its server connection until it disconnects.
	modes := []PoolMode{{"transaction", nil, ""}, {"session", []string{"pool_mode=session", "default_pool_size=40"}, ""}}
	if major > 1 || minor >= 21 {
		modes[0].Settings = []string{"max_prepared_statements=0"}
		modes = append(modes, PoolMode{"transaction with prepared statements",
			[]string{"max_prepared_statements=100"}, "&default_query_exec_mode=cache_statement"})
	}
	return modes
}

// pgbouncerPath returns the path of the program. On Debian it is in a directory that only root has
// in PATH.
func pgbouncerPath() string {
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		return path
	}
	return "/usr/sbin/pgbouncer"
}
