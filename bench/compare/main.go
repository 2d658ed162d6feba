// Command compare measures the gateway of the working tree beside that of
// another commit:
//
//	cd bench && go run ./compare -ref main [-scenario redis-hit] [-callers 1,64,1024]
//
// Both are built, run interleaved over databases of their own, and compared by the
// rules of the suites. Nothing is stored.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/pages"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

func main() {
	loadproc.Child(pages.Targets())
	command.Main("compare", run)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	var how command.Measurement
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	ref := flags.String("ref", os.Getenv("REF"), "commit, branch or tag to compare the working tree with (REF)")
	callers := flags.String("callers", cmp.Or(os.Getenv("CALLERS"), "1,64,1024"), "numbers of connections, separated by commas (CALLERS)")
	kind := flags.String("scenario", cmp.Or(os.Getenv("SCENARIO"), "memory-hit"), "memory-hit over HTTP, redis-hit, or miss over PostgreSQL (SCENARIO)")
	if err := how.Register(flags, "2s"); err != nil {
		return err
	}
	if err := command.Parse(flags, args, stderr); err != nil {
		return err
	}
	if *ref == "" {
		return errors.New("no commit to compare with, want -ref")
	}
	numbers, err := positive(*callers)
	if err != nil {
		return err
	}
	c := comparison{ref: *ref, window: cmp.Or(how.Duration, 2*time.Second), progress: stderr, binaries: map[string]string{}}
	build, ok := kinds[*kind]
	if !ok {
		return fmt.Errorf("%q is no scenario, want memory-hit, redis-hit or miss", *kind)
	}
	module, err := proc.BenchModule(ctx)
	if err != nil {
		return err
	}
	if c.scratch, err = os.MkdirTemp("", "slipstream-compare-"); err != nil {
		return err
	}
	defer os.RemoveAll(c.scratch)

	other := filepath.Join(c.scratch, "other")
	if err := git(ctx, module, "worktree", "add", "--detach", other, *ref); err != nil {
		return err
	}
	defer func() {
		// Also when interrupted: a worktree left behind stays registered.
		if removeErr := git(context.WithoutCancel(ctx), module, "worktree", "remove", "--force", other); err == nil {
			err = removeErr
		}
	}()
	for name, source := range map[string]string{load.Ours: filepath.Dir(module), *ref: other} {
		fmt.Fprintf(stderr, "compare: building %s\n", name)
		c.binaries[name] = filepath.Join(c.scratch, "of-"+filepath.Base(source), "slipstream")
		if err := subject.BuildSlipstream(ctx, source, c.binaries[name]); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, c.close()) }()
	measure, err := build(ctx, &c)
	if err != nil {
		return err
	}
	suite := load.Suite{Name: "compare"}
	for _, n := range numbers {
		suite.Scenarios = append(suite.Scenarios, c.scenario(fmt.Sprintf("%s/%d", *kind, n), n, measure))
	}
	report, err := suite.Run(ctx, load.Options{
		Directory: filepath.Join(c.scratch, "results"), Command: "make bench-compare REF=" + *ref + " SCENARIO=" + *kind,
		Progress: stderr, Rounds: how.Rounds, Seed: how.Seed,
	})
	if report != nil {
		if textErr := report.WriteText(stdout); err == nil {
			err = textErr
		}
	}
	return err
}

// positive reads numbers separated by commas.
func positive(list string) ([]int, error) {
	var numbers []int
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q callers, want a positive number", text)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

func git(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	return nil
}
