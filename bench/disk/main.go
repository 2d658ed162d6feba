// Command disk measures documents that lie on disk, in a bbolt file, beside the
// article's service over such a file:
//
//	cd bench && go run ./disk [-scenario disk-hit/64] [-quick]
//	cd bench && go run ./disk -curves ../docs/images
//
// It builds the subjects, fills their files, runs each as a process of its own with
// the load in a third process, and writes results/disk.json and
// results/raw/disk.jsonl. With -curves it measures nothing: it draws the stored
// scenarios curve/MODE/N and prints them as tables.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/internal/load"
)

const suiteName = "disk"

// maxRounds ends the search for a calm control.
const maxRounds = 16

// Documents of 1.8 KB: the file lies in the page cache of any machine.
const (
	usualDocuments = 200_000
	quickDocuments = 20_000
)

// options are the flags.
type options struct {
	command.Suite
	documents int64
	curves    string // directory for the pictures; empty: measure
}

func main() {
	loadproc.Child()
	command.Main(suiteName, run)
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet(suiteName, flag.ContinueOnError)
	if err := o.Register(flags, "2s, or 500ms with -quick"); err != nil {
		return o, err
	}
	flags.Int64Var(&o.documents, "documents", 0, fmt.Sprintf("that each subject serves; 0: %d, or %d with -quick", usualDocuments, quickDocuments))
	flags.StringVar(&o.curves, "curves", "", "draw the stored curves into this `directory`, print them as tables and end")
	if err := command.Parse(flags, args, stderr); err != nil {
		return o, err
	}
	usual := int64(usualDocuments)
	if o.Quick {
		usual = quickDocuments
	}
	o.documents = cmp.Or(o.documents, usual)
	if o.documents < 1 {
		return o, fmt.Errorf("%d documents, want at least 1", o.documents)
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	o.Markdown = o.Markdown || o.curves != "" // both read what is stored, and need no place to work
	place, err := o.Prepare(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.Close()) }()
	switch {
	case o.curves != "":
		return writeCurves(filepath.Join(place.Results, "raw", suiteName+".jsonl"), o.curves, stdout)
	case o.Markdown:
		return place.WriteMarkdown(stdout, suiteName)
	}
	if err := proc.NeedDescriptors(16384 + 500); err != nil {
		return err
	}
	h := newHarness(o, place, stderr)
	defer func() { err = errors.Join(err, h.close()) }()
	suite := load.Suite{Name: suiteName, Scenarios: o.Restrict(h.scenarios())}
	return o.Run(ctx, suite, place, maxRounds, stdout, stderr, h.check)
}
