package testkit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// baseBackup copies the cluster of a running server to the new directory to, as pg_basebackup -R
// does: a server that starts there is a standby. The program itself is not included in every build
// and version of the server.
func (pg *Postgres) baseBackup(t testing.TB, runAs, to string) {
	t.Helper()
	from := filepath.Join(pg.SocketDir, "data")
	start, stop := "pg_backup_start('standby', true)", "pg_backup_stop(false)"
	if pg.Major(t) < 15 {
		start, stop = "pg_start_backup('standby', true, false)", "pg_stop_backup(false, false)"
	}
	// A backup belongs to a session, and so does a temporary slot, which makes the server retain
	// the WAL that is written in the meantime.
	session := pg.openSession(t)
	session.run(t, "SELECT pg_create_physical_replication_slot('base_backup', true, true)")
	session.run(t, "SELECT "+start)
	copyFolder(t, from, to, func(path string) bool { return !slices.Contains(notInBackup, path) })
	label := session.run(t, "SELECT labelfile FROM "+stop)
	copyFolder(t, filepath.Join(from, "pg_wal"), filepath.Join(to, "pg_wal"), func(string) bool { return true })
	session.close(t)

	writeFile(t, filepath.Join(to, "backup_label"), label)
	writeFile(t, filepath.Join(to, "standby.signal"), "")
	auto := filepath.Join(to, "postgresql.auto.conf")
	settings, err := os.ReadFile(auto)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, auto, fmt.Sprintf("%sprimary_conninfo = '%s'\n", settings, pg.URL))
	err = filepath.WalkDir(to, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			giveTo(t, runAs, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// notInBackup lists the files of a cluster that belong to the running server. Directories are
// created empty. A standby clears unlogged tables itself.
var notInBackup = []string{
	"postmaster.pid", "postmaster.opts", "pg_wal", "pg_replslot", "pg_dynshmem", "pg_notify",
	"pg_serial", "pg_snapshots", "pg_stat_tmp", "pg_subtrans",
}

// copyFolder copies a directory whose files may be written, extended and removed at the same time.
// If with returns false, a directory is created empty and a file is omitted; with is called with
// paths relative to from.
func copyFolder(t testing.TB, from, to string, with func(path string) bool) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != from {
			return nil // removed since its directory was read
		}
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		switch {
		case entry.IsDir():
			if err := os.MkdirAll(target, 0o700); err != nil {
				return err
			}
			if !with(relative) {
				return fs.SkipDir
			}
			return nil
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s is %v; tablespaces are not supported", path, entry.Type())
		case !with(relative):
			return nil
		}
		return copyFile(path, target)
	})
	if err != nil {
		t.Fatalf("copy cluster: %v", err)
	}
}

// copyFile copies a file. It is not an error if from does not exist anymore.
func copyFile(from, to string) error {
	source, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(target, source); err != nil {
		target.Close()
		return err
	}
	return target.Close()
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// psqlSession is a psql process that runs statements one after another in one session.
type psqlSession struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Reader
}

func (pg *Postgres) openSession(t testing.TB) *psqlSession {
	t.Helper()
	s := &psqlSession{cmd: exec.CommandContext(t.Context(), postgresClient(t, "psql"), pg.psqlArgs("-f", "-")...)}
	s.cmd.Stderr = os.Stderr
	var err error
	if s.input, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.output = bufio.NewReader(output)
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("psql: %v", err)
	}
	t.Cleanup(func() { // in case the test fails before close is called
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	})
	return s
}

// run runs a statement and returns its rows. It fails the test if psql ends, as it
// does when a statement fails; the reason is in the test's standard error.
func (s *psqlSession) run(t testing.TB, statement string) string {
	t.Helper()
	const end = "-- end of the statement --\n"
	if _, err := io.WriteString(s.input, statement+";\n\\echo "+end); err != nil {
		t.Fatalf("psql: %s: %v", statement, err)
	}
	var rows strings.Builder
	for {
		line, err := s.output.ReadString('\n')
		if err != nil {
			t.Fatalf("psql: %s: %v", statement, err)
		}
		if line == end {
			return rows.String()
		}
		rows.WriteString(line)
	}
}

func (s *psqlSession) close(t testing.TB) {
	t.Helper()
	s.input.Close()
	if err := s.cmd.Wait(); err != nil {
		t.Fatalf("psql: %v", err)
	}
}
