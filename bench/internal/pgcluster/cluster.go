// Package pgcluster runs a separate PostgreSQL server for a benchmark: a new
// cluster in a directory that is removed at the end, and a meter of the CPU time
// that all of its processes use.
package pgcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/proc"
)

// A Cluster is a database cluster and, between Start and Stop, its server.
// All users of this machine may connect. Close it.
type Cluster struct {
	// Immutable after New.
	bin   string // directory of PostgreSQL's programs
	dir   string
	runAs string // user that runs the server; if empty, ours
	port  int

	server *proc.Process // nil if not running
}

// New creates a cluster below the system's directory for temporary files.
func New(ctx context.Context) (c *Cluster, err error) {
	c = &Cluster{}
	if c.bin, err = programs(); err != nil {
		return nil, err
	}
	if c.runAs, err = unprivileged(); err != nil {
		return nil, err
	}
	if c.dir, err = os.MkdirTemp("", "slipstream-pg-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(c.dir)
		}
	}()
	if c.runAs != "" {
		if err := proc.GiveTo(c.runAs, c.dir); err != nil {
			return nil, err
		}
	}
	address, err := proc.FreePort()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if c.port, err = strconv.Atoi(port); err != nil {
		return nil, err
	}
	initdb, err := proc.Command{
		Path: c.Program("initdb"), Dir: c.dir, User: c.runAs,
		Args: []string{"-D", c.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"},
	}.Start()
	if err != nil {
		return nil, err
	}
	if err := initdb.Wait(ctx); err != nil {
		_ = initdb.Stop() // it may have already ended
		return nil, err
	}
	return c, nil
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// Program returns the path of one of PostgreSQL's programs.
func (c *Cluster) Program(name string) string { return filepath.Join(c.bin, name) }

// URL returns the URL of the database "postgres" over TCP, as the superuser.
func (c *Cluster) URL() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", c.port)
}

// Environment returns environment variables that make PostgreSQL's own clients connect over the
// Unix socket.
func (c *Cluster) Environment() []string {
	return []string{"PGHOST=" + c.dir, "PGPORT=" + strconv.Itoa(c.port), "PGUSER=postgres", "PGDATABASE=postgres"}
}

// Postmaster returns the main process of the server, the parent of all others.
func (c *Cluster) Postmaster() int { return c.server.PID() }

// Start starts the server with settings, "name=value" each.
func (c *Cluster) Start(ctx context.Context, settings ...string) error {
	args := []string{"-D", c.data(), "-k", c.dir, "-h", "127.0.0.1", "-p", strconv.Itoa(c.port)}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	// The interrupt is "fast shutdown": sessions are ended, and then a checkpoint
	// writes up to all of shared_buffers.
	server, err := proc.Command{
		Path: c.Program("postgres"), Args: args, Dir: c.dir, User: c.runAs, Ask: os.Interrupt, Grace: 2 * time.Minute,
	}.Start()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err = server.Await(ctx, func(ctx context.Context) error {
		out, err := exec.CommandContext(ctx, c.Program("pg_isready"), "-q", "-h", c.dir, "-p", strconv.Itoa(c.port)).CombinedOutput()
		if err != nil {
			return fmt.Errorf("pg_isready: %w %s", err, out)
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, server.Stop())
	}
	c.server = server
	return nil
}

// Stop shuts the server down gracefully, if it is running.
func (c *Cluster) Stop() error {
	if c.server == nil {
		return nil
	}
	server := c.server
	c.server = nil
	return server.Stop()
}

// Close ends the server and removes the cluster.
func (c *Cluster) Close() error {
	return errors.Join(c.Stop(), os.RemoveAll(c.dir))
}

// programs returns the directory of the server's programs. On Debian they are not in PATH, because
// several versions may be installed; the newest one is used.
func programs() (string, error) {
	if path, err := exec.LookPath("postgres"); err == nil {
		// The directory of a link in PATH often does not contain initdb.
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		return filepath.Dir(path), nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // fails only on a bad pattern
	if len(found) == 0 {
		return "", errors.New("postgres is neither in PATH nor in /usr/lib/postgresql; make prepare installs it")
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // names that are not numbers sort first
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(version(a), version(b)) })), nil
}

// unprivileged returns the user that the server runs as, because PostgreSQL
// refuses root; empty if the current user is not root.
func unprivileged() (string, error) {
	if os.Geteuid() != 0 {
		return "", nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if _, err := user.Lookup(name); err == nil {
			return name, nil
		}
	}
	return "", errors.New("running as root, and PostgreSQL can be run neither as the user postgres nor as nobody, because they do not exist")
}
