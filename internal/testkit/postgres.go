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
	"strings"
	"testing"
)

// postgresVariable is the environment variable with the directory of the programs that
// [StartPostgres] starts, initdb and postgres. If it is empty, those of the system are used.
const postgresVariable = "SLIPSTREAM_POSTGRES"

// Postgres is a running PostgreSQL server with its own cluster. Every connection
// is trusted, and nothing is synced to disk: an acknowledged commit outlives a
// killed server process, but not the machine.
type Postgres struct {
	*Process
	// SocketDir holds the Unix socket; Port is used there and on loopback.
	SocketDir string
	Port      int
	// URL is the URL of the database "postgres" over TCP, as the superuser.
	URL string

	bin   string  // the directory of initdb and postgres; clients are elsewhere
	start Command // starts the server again
}

// StartPostgres creates a database cluster in a temporary directory and starts a server on it: the
// newest version on the system, or the one in the directory SLIPSTREAM_POSTGRES. Settings are given
// as "name=value" and override ours: "wal_level=logical". PostgreSQL refuses to run as root; under
// root it runs as the user "postgres" if there is one, otherwise as "nobody".
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

	pg := newPostgres(t, bin, runAs, dir, FreePort(t), settings)
	pg.Process = Start(t, pg.start)
	pg.PSQL(t, "BEGIN READ WRITE; CREATE ROLE "+Definer+" NOLOGIN; COMMIT")
	return pg
}

// Definer is a role without privileges that exists on every server: the owner of trigger functions
// that a superuser creates (db apply --definer).
const Definer = "slipstream_definer"

// newPostgres returns the description of a server for the cluster in dir/data.
func newPostgres(t testing.TB, bin, runAs, dir string, port int, settings []string) *Postgres {
	t.Helper()
	isReady := postgresClient(t, "pg_isready")
	pg := &Postgres{SocketDir: dir, Port: port, bin: bin}
	pg.URL = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
	args := []string{"-D", filepath.Join(dir, "data"), "-k", dir, "-h", "127.0.0.1", "-p", strconv.Itoa(port)}
	for _, s := range append([]string{"fsync=off", "full_page_writes=off", "shared_buffers=32MB"}, settings...) {
		args = append(args, "-c", s)
	}
	pg.start = Command{
		Path: filepath.Join(bin, "postgres"), Args: args, Dir: dir, User: runAs,
		Ready: func(ctx context.Context) error {
			out, err := exec.CommandContext(ctx, isReady, "-q", "-h", dir, "-p", strconv.Itoa(port)).CombinedOutput()
			if err != nil {
				return fmt.Errorf("pg_isready: %w %s", err, out)
			}
			return nil
		},
	}
	return pg
}

// PSQL runs a script of statements through psql, stops at the first error and
// fails the test there. It returns the rows, unaligned, one per line.
func (pg *Postgres) PSQL(t testing.TB, script string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), postgresClient(t, "psql"), pg.psqlArgs("-c", script)...).CombinedOutput()
	if err != nil {
		t.Fatalf("psql: %v\n%s", err, out)
	}
	return string(out)
}

// Dump returns a command, not started yet, that runs pg_dump for a database and is killed when the
// test ends. The program is in the directory of the server's programs, which is so for the system's
// server.
func (pg *Postgres) Dump(t testing.TB, database string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), filepath.Join(pg.bin, "pg_dump"),
		"-h", pg.SocketDir, "-p", strconv.Itoa(pg.Port), "-U", "postgres", "-d", database)
}

// Restore runs the statements of a dump in a database, and fails the test at the first error.
func (pg *Postgres) Restore(t testing.TB, database, dump string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), postgresClient(t, "psql"), pg.psqlArgs("-d", database, "-f", dump)...).CombinedOutput()
	if err != nil {
		t.Fatalf("psql: %v\n%s", err, out)
	}
}

// Major returns the major version of the server, such as 18.
func (pg *Postgres) Major(t testing.TB) int {
	t.Helper()
	version, err := strconv.Atoi(strings.TrimSpace(pg.PSQL(t, "SHOW server_version_num")))
	if err != nil {
		t.Fatal(err)
	}
	return version / 10_000
}

// psqlArgs returns the arguments for a psql that prints only values and stops at the first error.
func (pg *Postgres) psqlArgs(more ...string) []string {
	return append([]string{"-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
		"-h", pg.SocketDir, "-p", strconv.Itoa(pg.Port), "-U", "postgres", "-d", "postgres"}, more...)
}

// postgresBin returns the directory of the server's programs.
func postgresBin(t testing.TB) string {
	t.Helper()
	folder := os.Getenv(postgresVariable)
	if folder == "" {
		return systemPostgres(t)
	}
	for _, program := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(folder, program)); err != nil {
			t.Fatalf("%s=%s is not a directory with the programs initdb and postgres: %v", postgresVariable, folder, err)
		}
	}
	return folder
}

// postgresClient returns the path of a program that connects to a server, such as psql. It is
// always the system's, whichever server runs: the builds for which SLIPSTREAM_POSTGRES is intended
// do not include it.
func postgresClient(t testing.TB, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	return filepath.Join(systemPostgres(t), name)
}

// systemPostgres returns the directory of the system's PostgreSQL. On Debian it is not in PATH,
// because several versions may be installed; the newest one is used.
func systemPostgres(t testing.TB) string {
	t.Helper()
	if path, err := exec.LookPath("postgres"); err == nil {
		// PATH may contain only a link to postgres, in a directory without initdb.
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
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // names that are not numbers sort first
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(version(a), version(b)) }))
}

// unprivileged returns the user as which a server that refuses to run as root is run. It is empty
// if the test itself does not run as root.
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
	t.Fatal("running as root, and PostgreSQL can be run neither as the user postgres nor as nobody, because they do not exist")
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
