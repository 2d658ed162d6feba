// Command mutants proves that the tests detect faults. It reads a list of deliberate faults, builds
// each into the code through an overlay (source files are never changed), and runs the tests that
// must fail. A fault that no test notices is a survivor, and a single survivor fails the run.
//
//	go run ./internal/testkit/mutants internal/testkit/mutants/mutants.txt
//	go run ./internal/testkit/mutants -run token internal/testkit/mutants/mutants.txt
//
// It is run from the module root; mutants.txt explains the format of the list.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	only := flags.String("run", "", "run only mutants whose name matches this regular expression")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("got %d arguments, expected the list file", flags.NArg())
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	text, err := os.ReadFile(flags.Arg(0))
	if err != nil {
		return err
	}
	list, err := parseList(flags.Arg(0), string(text))
	if err != nil {
		return err
	}
	var chosen []mutant
	for _, m := range list {
		if pattern.MatchString(m.name) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("%s: none of its %d mutants has a name that matches %q", flags.Arg(0), len(list), *only)
	}
	r := runner{root: ".", log: os.Stdout}
	return r.runAll(ctx, chosen)
}
