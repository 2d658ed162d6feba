package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/demo"
)

const (
	// demoFile is the name of the database file.
	demoFile = "demo.db"
	// demoConfigName is the name of the demo's configuration in messages.
	demoConfigName = "(demo)"
)

// demoFlags are the flags of the demo.
type demoFlags struct {
	http, admin string
	keep        string
	rate        int
	seed        uint64
	noWriter    bool
	printConfig bool
	verbose     bool
	// httpChosen and adminChosen report whether the user gave the address,
	// which is then not replaced.
	httpChosen, adminChosen bool
}

func (p program) demoCommand() *cobra.Command {
	var f demoFlags
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run a gateway over a generated database that keeps changing",
		Long: `Demo makes a small company's database in one SQLite file (1,000 departments,
10,000 employees, 2,000 orders with lines and shipments), installs the triggers,
starts a gateway over it and a writer that changes it 20 times a second, and
prints what to try. Nothing else is needed, and nothing is left behind: Ctrl-C
drains and removes the file.

If the default ports are taken, free ones are used.

` + exitCodes,
		Example: `  slipstream demo
  slipstream demo --http 127.0.0.1:9000 --rate 200
  slipstream demo --keep ./demo            # keep the database, use it again
  slipstream demo --print-config > slipstream.yaml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.rate < 1 || f.rate > 1000 {
				return fail(exitUsage, fmt.Errorf("--rate %d; expected 1 to 1000 changes a second", f.rate), "")
			}
			f.httpChosen, f.adminChosen = c.Flags().Changed("http"), c.Flags().Changed("admin")
			if f.printConfig {
				_, err := io.WriteString(p.stdout, demo.Config(demoFile, f.http, f.admin))
				return fail(exitFailure, err, "")
			}
			return p.demo(c.Context(), f)
		},
	}
	defaults := config.Default()
	c.Flags().StringVar(&f.http, "http", defaults.Frontends.HTTP[0].Address, "`host:port` of the documents")
	c.Flags().StringVar(&f.admin, "admin", defaults.Admin.Address, "`host:port` of the admin listener")
	c.Flags().StringVar(&f.keep, "keep", "", "keep the database in this `directory`, or use an existing one")
	c.Flags().IntVar(&f.rate, "rate", 20, "changes a second")
	c.Flags().Uint64Var(&f.seed, "seed", 1, "the same seed gives the same database and changes")
	c.Flags().BoolVar(&f.noWriter, "no-writer", false, "change nothing")
	c.Flags().BoolVar(&f.printConfig, "print-config", false, "print the configuration and exit")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "log what the gateway does")
	// Fails only if there is no such flag.
	_ = c.MarkFlagDirname("keep")
	return c
}

// demo creates the database, serves it, and cleans up.
func (p program) demo(ctx context.Context, f demoFlags) error {
	signals, stop := notifySignals()
	defer stop()
	// "slipstream demo | head" closes the output; the files must still be removed.
	signal.Ignore(syscall.SIGPIPE)
	dir, remove, err := demoFolder(f.keep)
	if err != nil {
		return fail(exitFailure, err, "")
	}
	defer remove()
	cfg, err := f.prepare(ctx, filepath.Join(dir, demoFile))
	if err != nil {
		return err
	}
	log := config.Log{Level: "warn"}
	if f.verbose {
		log.Level = "debug"
	}
	g, err := startGateway(ctx, demoConfigName, cfg, gateway.Options{Logger: newLogger(p.stderr, log)}, signals)
	if err != nil {
		return err
	}
	g.LimitMemory()
	g.SpareProcessor()

	w := &demo.Writer{Path: filepath.Join(dir, demoFile), Rate: f.rate, Seed: f.seed}
	stopWriter := p.startWriter(ctx, w, f.noWriter)
	waitReady(ctx, g)
	p.printDemo(f, g, dir)

	err = untilSignal(g, signals, nil, new(hangUp), func(string) time.Duration {
		fmt.Fprintln(p.stdout, "\ndraining ...")
		stopWriter()
		return 5 * time.Second
	})
	stopWriter()
	p.printGoodbye(g, w, f.keep)
	return withHint(err, demoConfigName)
}

// demoFolder returns a directory for the database and a function that cleans up at
// the end.
func demoFolder(keep string) (dir string, remove func(), err error) {
	if keep != "" {
		if err := os.MkdirAll(keep, 0o755); err != nil {
			return "", nil, err
		}
		return keep, func() {}, nil
	}
	dir, err = os.MkdirTemp("", "slipstream-demo-")
	if err != nil {
		return "", nil, err
	}
	return dir, func() { os.RemoveAll(dir) }, nil
}

// prepare creates the database, unless it was kept, and its triggers.
func (f *demoFlags) prepare(ctx context.Context, path string) (*config.Config, error) {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := demo.Create(path, f.seed); err != nil {
			return nil, fail(exitFailure, err, "")
		}
	}
	text := demo.Config(path, freeAddress(f.http, f.httpChosen), freeAddress(f.admin, f.adminChosen))
	cfg, err := config.Parse(demoConfigName, []byte(text))
	if err != nil {
		return nil, fail(exitUsage, err, "")
	}
	if err := gateway.ApplyTriggers(ctx, cfg, gateway.DatabaseOptions{}); err != nil {
		return nil, databaseFailure(err, demoConfigName, exitFailure)
	}
	return cfg, nil
}

// freeAddress returns the address, or a free port of its host if the address is
// only the default and taken.
func freeAddress(address string, chosen bool) string {
	if chosen {
		return address
	}
	l, err := net.Listen("tcp", address)
	if err == nil {
		l.Close()
		return address
	}
	host, _, splitErr := net.SplitHostPort(address)
	if splitErr != nil || errors.Is(err, syscall.EADDRNOTAVAIL) {
		return address // Start reports what is wrong with it
	}
	return net.JoinHostPort(host, "0")
}

// startWriter runs the writer until the returned function is called, which waits
// for it and may be called more than once.
func (p program) startWriter(ctx context.Context, w *demo.Writer, off bool) (stop func()) {
	if off {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	// Stopped and awaited by stop, which the demo calls on every way out.
	go func() {
		defer close(done)
		if err := w.Run(ctx); err != nil {
			fmt.Fprintf(p.stderr, "slipstream: the writer has stopped, the gateway continues: %v\n", err)
		}
	}()
	return func() { cancel(); <-done }
}

// waitReady waits a little until the promise holds, so that the first answer
// that a user sees can come from memory. A gateway that is not ready still
// serves.
func waitReady(ctx context.Context, g *gateway.Gateway) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for len(g.Ready()) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (p program) printDemo(f demoFlags, g *gateway.Gateway, dir string) {
	base, admin := "http://"+g.HTTPAddr().String(), "http://"+g.AdminAddr().String()
	fmt.Fprintf(p.stdout, `Slipstream serves JSON documents over SQL tables from memory, never more than 1 s
older than the last commit. Here: %d departments, %d employees, %d orders in
%s, ready after %d ms.

A department with its employees, an order with its lines and their shipments:

  curl %s/depts/1
  curl %s/depts/%d
  curl %s/depts/%d
  curl %s/orders/emea/17

Many in one request, and a description of the resources:

  curl --compressed '%s/depts?key=1&key=42&key=1000'
  curl %s/openapi.json

Repeat it with the ETag, and it is 304 until the document changes:

  curl -I %s/depts/1000
  curl -i -H "If-None-Match: $(curl -sI %s/depts/1000 | sed -n 's/^[Ee][Tt]ag: //p' | tr -d '\r')" %s/depts/1000

`, demo.Depts, demo.Depts*demo.EmpsPerDept, len(demo.Regions)*demo.OrdersPerArea,
		filepath.Join(dir, demoFile), time.Since(p.started).Milliseconds(),
		base, base, demo.WatchedDept, base, demo.Depts, base, base, base, base, base, base)
	if f.noWriter {
		fmt.Fprint(p.stdout, "There is no writer (--no-writer).\n\n")
	} else {
		fmt.Fprintf(p.stdout, `A writer commits %d changes per second. The budget of depts/%d grows every second,
depts/1 to depts/%d and orders/{%s}/1 to %d change now and then:

  while sleep 1; do curl -s %s/depts/%d | cut -c 1-120; echo; done

`, f.rate, demo.WatchedDept, demo.BusiestDepts, "amer,apac,emea,latam", demo.BusiestDepts, base, demo.WatchedDept)
	}
	fmt.Fprintf(p.stdout, "Dashboard: %s/\nOperators: %s/ready, /metrics, /config, /debug/pprof/\nCtrl-C stops.\n", admin, admin)
}

// printGoodbye prints a summary.
func (p program) printGoodbye(g *gateway.Gateway, w *demo.Writer, kept string) {
	var hits, misses, statements, seen int64
	for _, r := range g.Stats().Resources {
		hits += r.Hits
		misses += r.Misses
		statements += r.Statements
		seen += r.Events
	}
	fate := "the database was removed"
	if kept != "" {
		fate = "the database is " + filepath.Join(kept, demoFile)
	}
	fmt.Fprintf(p.stdout, "%d documents requested, %d from memory, %d statements to load the rest; %d changes written, %d invalidations; %s. Goodbye.\n",
		hits+misses, hits, statements, w.Changes(), seen, fate)
}
