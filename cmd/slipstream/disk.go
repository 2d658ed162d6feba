package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/tier/disk"
)

func (p program) diskCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "disk",
		Short: "Inspect, verify, shrink, erase from or reset the file of the disk tier",
		Long: `The disk tier keeps documents across restarts, in a dedicated file (tiers.disk). These
commands work on that file while no gateway has it open; a running gateway shows
the same numbers in its metrics, and erases with a purge.

` + exitCodes,
		Example: `  slipstream disk stats /var/lib/slipstream
  slipstream disk check /var/lib/slipstream      # 1 if something is damaged
  slipstream disk compact /var/lib/slipstream    # frees unused space
  slipstream disk erase /var/lib/slipstream depts 17
  slipstream disk forget /var/lib/slipstream     # after the database was rolled back on purpose`,
	})
	c.AddCommand(p.diskStats(), p.diskCheck(), p.diskCompact(), p.diskErase(), p.diskForget())
	return c
}

// diskFailure is an error about the file, with a hint.
func diskFailure(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrNotExist):
		return fail(exitFailure, err, "expected the directory of tiers.disk.path")
	case errors.As(err, new(*disk.HeldError)):
		return fail(exitFailure, err, "stop the gateway first; a running one shows slipstream_tier_* in its metrics, and erases with a purge")
	}
	return fail(exitFailure, err, "the file is a cache: it may be removed while the gateway is stopped")
}

func (p program) diskStats() *cobra.Command {
	return &cobra.Command{
		Use: "stats DIR", Short: "Print what the file holds", Args: cobra.ExactArgs(1),
		Long: `Stats prints how large the file is, how much of it is in use, how many documents it holds
and up to which transaction of the database they are current.`,
		Example: `  slipstream disk stats /var/lib/slipstream`,
		RunE: func(c *cobra.Command, args []string) error {
			i, err := disk.Inspect(args[0])
			if err != nil {
				return diskFailure(err)
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
			fmt.Fprintf(w, "file\t%s\nformat\t%d\nsize\t%d bytes\nin use\t%d bytes\ndocuments\t%d\ntheir bytes\t%d\n", i.Path, i.Format, i.FileSize, i.Used, i.Documents, i.Bytes)
			history := i.Position.History
			if history == "" {
				history = "none: the next start begins with an empty tier"
			}
			fmt.Fprintf(w, "history\t%s\nnext transaction\t%d\n", history, i.Position.Seen.XMax)
			for _, r := range i.Resources {
				fmt.Fprintf(w, "resource\t%s (number %d, epoch %d)\n", r.Name, r.Number, r.Epoch)
			}
			return w.Flush()
		},
	}
}

func (p program) diskCheck() *cobra.Command {
	return &cobra.Command{
		Use: "check DIR", Short: "Read every page and every document, and verify their checksums", Args: cobra.ExactArgs(1),
		Long: `Check reads the whole file: the pages, the counts that the file keeps of itself, and the
checksum of every document. It changes nothing, and reports its progress after 2 s.
The exit code is 1 if it finds an error.`,
		Example: `  slipstream disk check /var/lib/slipstream`,
		RunE: func(c *cobra.Command, args []string) error {
			progress, end := reportProgress(c.ErrOrStderr(), "documents")
			found, err := disk.Check(c.Context(), args[0], progress)
			end()
			if err != nil {
				return diskFailure(err)
			}
			fmt.Fprintf(c.OutOrStdout(), "%d documents, %d unreachable, %d damaged\n", found.Documents, found.Garbage, found.Damaged)
			for _, f := range found.Faults {
				fmt.Fprintln(c.OutOrStdout(), f)
			}
			if !found.OK() {
				return fail(exitFailure, errors.New("the file is damaged"), "the gateway would never serve a damaged document; remove the file, it is a cache")
			}
			return nil
		},
	}
}

func (p program) diskCompact() *cobra.Command {
	return &cobra.Command{
		Use: "compact DIR", Short: "Rewrite the file without free pages", Args: cobra.ExactArgs(1),
		Example: `  systemctl stop slipstream
  slipstream disk compact /var/lib/slipstream
  systemctl start slipstream`,
		Long: `Compact writes a second file next to the first, without free pages and without what was
flushed or erased, and replaces the first at the end. It needs as much
free space as the documents take.`,
		RunE: func(c *cobra.Command, args []string) error {
			progress, end := reportProgress(c.ErrOrStderr(), "documents")
			before, after, err := disk.Compact(c.Context(), args[0], progress)
			end()
			if err != nil {
				return diskFailure(err)
			}
			fmt.Fprintf(c.OutOrStdout(), "%d bytes before, %d after\n", before, after)
			return nil
		},
	}
}

func (p program) diskErase() *cobra.Command {
	return &cobra.Command{
		Use: "erase DIR RESOURCE KEY...", Short: "Remove the document of a key", Args: cobra.MinimumNArgs(3),
		Example: `  slipstream disk erase /var/lib/slipstream depts 17
  slipstream disk erase /var/lib/slipstream orders eu 4711    # a key of two columns`,
		Long: `Erase removes the document of a key, given as its key columns. The bytes stay in a free
page of the file until that is used again; compact writes the file without it.`,
		RunE: func(c *cobra.Command, args []string) error {
			found, err := disk.Erase(args[0], args[1], resource.JoinID(args[2:]))
			switch {
			case err != nil:
				return diskFailure(err)
			case found:
				fmt.Fprintln(c.OutOrStdout(), "erased")
			default:
				fmt.Fprintln(c.OutOrStdout(), "there was no such document")
			}
			return nil
		},
	}
}

func (p program) diskForget() *cobra.Command {
	return &cobra.Command{
		Use: "forget DIR", Short: "Forget the history of the database, with all documents", Args: cobra.ExactArgs(1),
		Example: `  systemctl stop slipstream
  slipstream disk forget /var/lib/slipstream
  systemctl start slipstream`,
		Long: `Forget removes all documents and the history of the database from the file.
A gateway refuses a server on a timeline that the database has abandoned: it is a former
primary. If the database was rolled back to that timeline deliberately, forget makes
the gateway accept it. The gateway must be stopped.`,
		RunE: func(c *cobra.Command, args []string) error {
			history, err := disk.Forget(args[0])
			switch {
			case err != nil:
				return diskFailure(err)
			case history == "":
				fmt.Fprintln(c.OutOrStdout(), "there was no history to forget")
			default:
				fmt.Fprintf(c.OutOrStdout(), "forgot the history %s and all documents\n", history)
			}
			return nil
		},
	}
}

// reportProgress prints the progress of an operation, starting in its second second: done,
// total, rate and time remaining.
func reportProgress(w io.Writer, what string) (progress disk.Progress, end func()) {
	began := time.Now()
	last, printed := began, false
	progress = func(done, total int64) {
		now := time.Now()
		if now.Sub(began) < 2*time.Second || now.Sub(last) < time.Second && printed {
			return
		}
		last, printed = now, true
		rate := float64(done) / now.Sub(began).Seconds()
		line := fmt.Sprintf("\r%d", done)
		if total > 0 {
			line += fmt.Sprintf(" of %d", total)
		}
		line += fmt.Sprintf(" %s, %.0f/s", what, rate)
		if total > done && rate > 0 {
			line += fmt.Sprintf(", %s left", (time.Duration(float64(total-done)/rate) * time.Second).Round(time.Second))
		}
		fmt.Fprintf(w, "%-78s", line)
	}
	return progress, func() {
		if printed {
			fmt.Fprintln(w)
		}
	}
}
