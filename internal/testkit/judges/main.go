// Command judges checks the gateway's HTTP responses with third-party programs. It starts the
// slipstream command with the demo's database and all features enabled, and runs against it
//
//   - REDbot, which knows what RFC 9110, RFC 9111 and related ones require of an
//     answer: no note above "info";
//   - schemathesis, which makes requests out of /openapi.json and compares the
//     answers with it: no failure;
//   - sqlmap, which tries to reach the database through keys, batches and header
//     fields: nothing found;
//   - slowhttptest, which sends heads and bodies and reads answers as slowly as it
//     can on 1,000 connections: others are served meanwhile, about as fast, in about
//     as much memory;
//   - redis-benchmark, which tests the Redis frontend: no answer is an error;
//   - hiredis, below a program of C: it reads what HTTP says.
//
// It is run by scripts/judges.sh, which installs them. Findings that the gateway need not or cannot
// fix are listed with their reasons in allowed.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"time"
)

// patience bounds the time of a whole run.
const patience = 20 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "judges:", err)
		os.Exit(1)
	}
}

// tools holds the paths of the judges and the directory of a run.
type tools struct {
	slipstream string // the command
	python     string // the directory of the programs of a Python virtual environment
	dir        string
}

// errFound means that a judge has reported findings, which were printed.
var errFound = errors.New("the judges have findings")

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("judges", flag.ContinueOnError)
	binary := flags.String("slipstream", "bin/slipstream", "the slipstream command to be checked")
	python := flags.String("python", "", "directory with the programs of a Python environment that has redbot and schemathesis")
	only := flags.String("run", "", "run only the judges whose name matches this regular expression")
	if err := flags.Parse(args); err != nil {
		return err
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	path, err := filepath.Abs(*binary)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "slipstream-judges-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	serving, stop := context.WithCancel(ctx)
	g, wait, err := startGateway(serving, path, dir)
	if err != nil {
		stop()
		return err
	}
	defer wait()
	defer stop()

	t := &tools{slipstream: path, python: *python, dir: dir}
	found := false
	for _, j := range []judge{
		{"redbot", t.redbot},
		{"schemathesis", t.schemathesis},
		{"sqlmap", t.sqlmap},
		{"slowhttptest", t.slowhttptest},
		{"redis-benchmark", t.redisBenchmark},
		{"hiredis", t.hiredis},
	} {
		if !pattern.MatchString(j.name) {
			continue
		}
		begun := time.Now()
		v, err := j.look(ctx, g)
		if err != nil {
			return err
		}
		v.print(os.Stdout, j.name, time.Since(begun))
		found = found || len(v.counted(j.name)) > 0
	}
	if text, err := os.ReadFile(g.log); err == nil && len(text) > 0 {
		fmt.Printf("log of the gateway:\n%s", text)
	}
	if found {
		return errFound
	}
	return nil
}
