// Command compare measures the gateway of the working tree beside that of
// another commit:
//
//	cd bench && go run ./compare -ref main
//
// Both are built, run in turns over databases of their own, and compared by the
// rules of the gateway suite. Nothing is stored.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

func main() {
	loadproc.Child()
	command.Main("compare", run)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	var how command.Measurement
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	ref := flags.String("ref", os.Getenv("REF"), "commit, branch or tag to compare the working tree with (REF)")
	callers := flags.String("callers", "1,64,1024", "numbers of connections, separated by commas")
	if err := how.Register(flags, "2s"); err != nil {
		return err
	}
	if err := command.Parse(flags, args, stderr); err != nil {
		return err
	}
	window := cmp.Or(how.Duration, 2*time.Second)
	if *ref == "" {
		return errors.New("no commit to compare with, want -ref")
	}
	var numbers []int
	for text := range strings.SplitSeq(*callers, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("%q callers, want a positive number", text)
		}
		numbers = append(numbers, n)
	}
	module, err := proc.BenchModule(ctx)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "slipstream-compare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)

	other := filepath.Join(scratch, "other")
	if err := git(ctx, module, "worktree", "add", "--detach", other, *ref); err != nil {
		return err
	}
	defer func() {
		// Also when interrupted: a worktree left behind stays registered.
		if removeErr := git(context.WithoutCancel(ctx), module, "worktree", "remove", "--force", other); err == nil {
			err = removeErr
		}
	}()
	programs := map[string]subject.Program{}
	for name, source := range map[string]string{load.Ours: filepath.Dir(module), *ref: other} {
		fmt.Fprintf(stderr, "compare: building %s\n", name)
		dir := filepath.Join(scratch, "of-"+filepath.Base(source))
		binary := filepath.Join(dir, "slipstream")
		if err := subject.BuildSlipstream(ctx, source, binary); err != nil {
			return err
		}
		if programs[name], err = subject.NewSlipstream(ctx, binary, dir, depts.Count, "512MiB"); err != nil {
			return err
		}
	}
	programs[load.Control] = programs[load.Ours]

	suite := load.Suite{Name: "compare"}
	for _, n := range numbers {
		suite.Scenarios = append(suite.Scenarios, scenario(n, window, programs))
	}
	report, err := suite.Run(ctx, load.Options{
		Directory: filepath.Join(scratch, "results"), Command: "make bench-compare REF=" + *ref,
		Progress: stderr, Rounds: how.Rounds, Seed: how.Seed,
	})
	if report != nil {
		if textErr := report.WriteText(stdout); err == nil {
			err = textErr
		}
	}
	return err
}

// scenario is a memory hit of all programs.
func scenario(callers int, window time.Duration, programs map[string]subject.Program) load.Scenario {
	sc := load.Scenario{Name: fmt.Sprintf("memory-hit/%d", callers), Primary: load.ServerUS}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		program := programs[name]
		sc.Subjects = append(sc.Subjects, load.Subject{Name: name, Run: func(ctx context.Context, round int) (load.Sample, error) {
			return subject.Hit{Callers: callers, WarmUp: window / 4, Window: window, Seed: uint64(round)}.Run(ctx, program)
		}})
	}
	return sc
}

func git(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	return nil
}
