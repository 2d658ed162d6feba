package testkit

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// Postgres is a running PostgreSQL server with a cluster of its own. Everybody
// who reaches it is let in, and nothing is synced to disk: an acknowledged commit
// outlives a killed server process, but not the machine.
type Postgres struct {
	*Process
	// SocketDir holds the Unix socket; Port is used there and on loopback.
	SocketDir string
	Port      int
	// URL leads to the database "postgres" over TCP, as its superuser.
	URL string

	bin   string
	start Command // starts the server again
}

// StartPostgres makes a database cluster in a temporary directory and starts a
// server on it. Settings are given as "name=value" and win over ours:
// "wal_level=logical". PostgreSQL refuses to run as root; then the user
// "postgres" is taken, else "nobody".
func StartPostgres(t testing.TB, settings ...string) *Postgres {
	t.Helper()
	bin := postgresBin(t)
	runAs := unprivileged(t)
	dir := shortTempDir(t, "slip-pg-")
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	giveTo(t, runAs, dir, data)

	initdb := Start(t, Command{
		Path: filepath.Join(bin, "initdb"),
		Args: []string{"-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"},
		Dir:  dir,
		User: runAs,
	})
	if err := initdb.Wait(t.Context()); err != nil {
		t.Fatalf("initdb: %v", err)
	}

	pg := newPostgres(bin, runAs, dir, FreePort(t), settings)
	pg.Process = Start(t, pg.start)
	return pg
}

// newPostgres describes a server on the cluster in dir/data.
func newPostgres(bin, runAs, dir string, port int, settings []string) *Postgres {
	pg := &Postgres{SocketDir: dir, Port: port, bin: bin}
	pg.URL = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
	args := []string{"-D", filepath.Join(dir, "data"), "-k", dir, "-h", "127.0.0.1", "-p", strconv.Itoa(port)}
	for _, s := range append([]string{"fsync=off", "full_page_writes=off", "shared_buffers=32MB"}, settings...) {
		args = append(args, "-c", s)
	}
	pg.start = Command{
		Path: filepath.Join(bin, "postgres"), Args: args, Dir: dir, User: runAs,
		Ready: func(ctx context.Context) error {
			out, err := exec.CommandContext(ctx, filepath.Join(bin, "pg_isready"), "-q", "-h", dir, "-p", strconv.Itoa(port)).CombinedOutput()
			if err != nil {
				return fmt.Errorf("pg_isready: %w %s", err, out)
			}
			return nil
		},
	}
	return pg
}

// PSQL runs a script of statements through psql, stops at the first error and
// fails the test there. It returns the rows, unaligned, one a line.
func (pg *Postgres) PSQL(t testing.TB, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(pg.bin, "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
		"-h", pg.SocketDir, "-p", strconv.Itoa(pg.Port), "-U", "postgres", "-d", "postgres", "-c", script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("psql: %v\n%s", err, out)
	}
	return string(out)
}

// postgresBin returns the folder of the server's programs. Debian keeps them
// out of PATH, because several versions may be installed; the newest is taken.
func postgresBin(t testing.TB) string {
	t.Helper()
	if path, err := exec.LookPath("postgres"); err == nil {
		// A link in PATH often stands alone, without initdb beside it.
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		return filepath.Dir(path)
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // fails only on a bad pattern
	if len(found) == 0 {
		t.Fatal("postgres is neither in PATH nor in /usr/lib/postgresql (install what the tests need with: make prepare)")
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // not a number sorts first
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(version(a), version(b)) }))
}

// unprivileged returns the user that a server which refuses root runs as;
// empty when the test itself is not root.
func unprivileged(t testing.TB) string {
	t.Helper()
	if os.Geteuid() != 0 {
		return ""
	}
	for _, name := range []string{"postgres", "nobody"} {
		if _, err := user.Lookup(name); err == nil {
			return name
		}
	}
	t.Fatal("running as root, and there is neither a user postgres nor nobody for PostgreSQL to run as")
	return ""
}

func giveTo(t testing.TB, username string, paths ...string) {
	t.Helper()
	if username == "" {
		return
	}
	uid, gid, err := lookupIDs(username)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if err := os.Chown(path, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
}
