package testkit

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// This file contains what happens to servers in operation: they are stopped, they crash, and they
// have standbys that are promoted. None of these methods may run while another goroutine uses the
// server's Process.

// Stop shuts down the server: sessions are ended, open transactions are rolled back, and a
// checkpoint is written.
func (pg *Postgres) Stop(t testing.TB) {
	t.Helper()
	if err := pg.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_ = pg.Wait(ctx) // how it ended does not matter
	if ctx.Err() != nil {
		t.Fatal("the server did not shut down when requested")
	}
}

// Crash ends all processes of the server together and leaves the cluster as it
// is, to be recovered by the next Restart.
func (pg *Postgres) Crash(t testing.TB) {
	t.Helper()
	if err := pg.Signal(immediateShutdown); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_ = pg.Wait(ctx) // how it ended does not matter
	pg.Kill()        // if the server hangs, its sessions are killed, too
}

// Restart starts the server on the same port after Stop, Crash or Kill.
func (pg *Postgres) Restart(t testing.TB) {
	t.Helper()
	pg.Process = Start(t, pg.start)
}

// KillBackend kills one session's process (SIGKILL). The server then ends all other sessions,
// because shared memory may be damaged, and recovers from its WAL.
func (pg *Postgres) KillBackend(t testing.TB, pid int) {
	t.Helper()
	backend, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Release()
	if err := backend.Kill(); err != nil {
		t.Fatalf("kill backend %d: %v", pid, err)
	}
}

// StartStandby copies the cluster and starts a hot standby that streams from it.
// If port is 0, it gets a free one.
func (pg *Postgres) StartStandby(t testing.TB, port int, settings ...string) *Postgres {
	t.Helper()
	runAs := unprivileged(t)
	dir := shortTempDir(t, "slip-pg-")
	giveTo(t, runAs, dir)
	pg.baseBackup(t, runAs, filepath.Join(dir, "data"))
	if port == 0 {
		port = FreePort(t)
	}
	standby := newPostgres(t, pg.bin, runAs, dir, port, settings)
	standby.Process = Start(t, standby.start)
	return standby
}

// Flush makes everything durable that was committed so far, including with synchronous_commit off.
// Without it, the WAL writer may take three times wal_writer_delay, and from PostgreSQL 17 on,
// filled WAL pages no longer wake it up before wal_writer_flush_after (1 MB).
func (pg *Postgres) Flush(t testing.TB) {
	t.Helper()
	pg.PSQL(t, "SET synchronous_commit = local; SELECT pg_logical_emit_message(true, 'flush', '')")
}

// CutOff permanently ends the replication of a standby. It returns when no more
// data arrives.
func (pg *Postgres) CutOff(t testing.TB) {
	t.Helper()
	pg.PSQL(t, "ALTER SYSTEM SET primary_conninfo = ''")
	pg.PSQL(t, "SELECT pg_reload_conf()")
	Eventually(t, 10*time.Second, func() error {
		return pg.holds(t, "SELECT count(*) = 0 FROM pg_stat_wal_receiver")
	})
}

// CatchUp waits until a standby has replayed everything that the primary has written.
func (pg *Postgres) CatchUp(t testing.TB, primary *Postgres) {
	t.Helper()
	primary.Flush(t) // only flushed data is sent
	position := strings.TrimSpace(primary.PSQL(t, "SELECT pg_current_wal_insert_lsn()"))
	Eventually(t, 30*time.Second, func() error {
		return pg.holds(t, "SELECT pg_last_wal_replay_lsn() >= '"+position+"'")
	})
}

// Promote promotes a standby. It returns when the server accepts writes.
func (pg *Postgres) Promote(t testing.TB) {
	t.Helper()
	if got := strings.TrimSpace(pg.PSQL(t, "SELECT pg_promote(true, 30)")); got != "t" {
		t.Fatalf("pg_promote returned %q", got)
	}
}

// holds runs a query that returns one boolean, and returns an error unless it is true.
func (pg *Postgres) holds(t testing.TB, question string) error {
	out, err := exec.Command(postgresClient(t, "psql"), pg.psqlArgs("-c", question)...).CombinedOutput()
	if err != nil {
		return &answerError{question, strings.TrimSpace(string(out)) + ": " + err.Error()}
	}
	if answer := strings.TrimSpace(string(out)); answer != "t" {
		return &answerError{question, answer}
	}
	return nil
}

type answerError struct{ question, answer string }

func (e *answerError) Error() string { return e.question + ": " + e.answer + ", expected t" }
