// Command disk measures documents on disk, in a bbolt file, compared with the article's service
// with such a file:
//
//	cd bench && go run ./disk [-scenario disk-hit/64] [-quick]
//	cd bench && go run ./disk -curves ../docs/images
//
// It builds the subjects, fills their files, runs each as a separate process with the
// load in a third process, and writes results/disk.json and results/raw/disk.jsonl.
// With -curves it measures nothing: it draws the stored scenarios curve/MODE/N and
// prints them as tables.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"path/filepath"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
)

const suiteName = "disk"

// Documents of 1.8 KB: the file fits into the page cache of any machine.
const (
	usualDocuments = 200_000
	quickDocuments = 20_000
)

// options are the flags.
type options struct {
	command.Flags
	documents int64
	curves    string // directory for the pictures; if empty, measure
}

func main() {
	loadproc.Child()
	command.Main(suite())
}

// suite is the program.
func suite() command.Suite {
	var o options
	return command.Suite{
		Name: suiteName, Window: "2s, or 500ms with -quick", Descriptors: 16384 + 500, MaxRounds: 16,
		Register: func(flags *flag.FlagSet) {
			flags.Int64Var(&o.documents, "documents", 0, fmt.Sprintf("number of `documents` that each subject serves; if 0, %d, or %d with -quick", usualDocuments, quickDocuments))
			flags.StringVar(&o.curves, "curves", "", "draw the stored curves into this `directory`, print them as tables and exit")
		},
		Parsed: func(f *command.Flags, rest []string) error {
			usual := int64(usualDocuments)
			if f.Quick {
				usual = quickDocuments
			}
			o.documents = cmp.Or(o.documents, usual)
			if o.documents < 1 {
				return fmt.Errorf("%d documents, want at least 1", o.documents)
			}
			f.Markdown = f.Markdown || o.curves != "" // both read stored results, and need no scratch directory
			return command.None(rest)
		},
		Stored: func(stdout io.Writer, p command.Place) (bool, error) {
			if o.curves == "" {
				return false, nil
			}
			return true, writeCurves(filepath.Join(p.Results, "raw", suiteName+".jsonl"), o.curves, stdout)
		},
		Open: func(f *command.Flags, p command.Place, progress io.Writer) command.Harness {
			o.Flags = *f
			return newHarness(o, p, progress)
		},
	}
}
