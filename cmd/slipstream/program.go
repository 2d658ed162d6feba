package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// Exit codes. They are part of the interface: scripts depend on them.
const (
	exitOK          = 0
	exitFailure     = 1   // the command failed
	exitUsage       = 2   // the command line or the configuration is wrong
	exitIncomplete  = 3   // the database lacks what the promise needs, or a Redis Cluster has problems
	exitThrown      = 3   // the called function threw an exception that it declares
	exitUnreachable = 4   // the database, the Redis Cluster or the server to load or call could not be reached
	exitLimited     = 5   // the load generator was the limit
	exitUnanswered  = 5   // a call has no answer, and may have been executed
	exitInterrupted = 130 // a second signal cut off the drain, or a signal ended bench or call early
)

const exitCodes = `Exit codes:
  0    done, or drained after a signal
  1    the command failed
  2    the command line or the configuration is wrong
  3    the database lacks triggers that the promise needs; the Redis Cluster has problems;
       call: the function has thrown an exception that it declares
  4    the database, the Redis Cluster or the server to load or call could not be reached
  5    bench: the load generator was the limit, so the figures describe it, not the server;
       call: there is no answer, and the server may have executed the call
  130  a second signal cut the drain short, or a signal ended bench or call early`

// program is one run of the command.
type program struct {
	started        time.Time
	args           []string
	stdout, stderr io.Writer
}

// failure is an error that a command returned, with its exit code and a hint for
// the user. All other errors, which come from cobra, are about the command line.
type failure struct {
	code int
	err  error
	hint string
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// fail wraps err for the user; nil stays nil.
func fail(code int, err error, hint string) error {
	if err == nil {
		return nil
	}
	return &failure{code, err, hint}
}

// run executes the command line and returns the exit code.
func run(p program) int {
	root := p.root()
	root.SetArgs(p.args)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	executed, err := root.ExecuteC()
	if err == nil {
		return exitOK
	}
	f, ok := errors.AsType[*failure](err)
	if !ok {
		f = &failure{exitUsage, err, fmt.Sprintf("%s --help says more", executed.CommandPath())}
	}
	fmt.Fprintf(p.stderr, "slipstream: %s\n", strings.ReplaceAll(f.Error(), "\n", "\nslipstream: "))
	if f.hint != "" {
		fmt.Fprintf(p.stderr, "hint: %s\n", f.hint)
	}
	return f.code
}

// root is the tree of commands.
func (p program) root() *cobra.Command {
	cobra.EnableCommandSorting = false // help lists what users need first
	root := group(&cobra.Command{
		Use:   "slipstream",
		Short: "Serve documents over SQL tables by key, from memory, never staler than promised",
		Long: `Slipstream serves JSON documents that are declared once over SQL tables. A GET
by key is answered from memory, and one that begins more than a second after a
commit never returns the older version.

` + exitCodes,
		Example: `  slipstream demo                            # see it work, nothing needed
  slipstream config check -c slipstream.yaml
  slipstream db apply -c slipstream.yaml     # triggers, once
  slipstream serve -c slipstream.yaml`,
		SilenceUsage:  true,
		SilenceErrors: true,
	})
	root.CompletionOptions.DisableDefaultCmd = true // ours has examples
	root.AddCommand(p.serveCommand(), p.demoCommand(), p.dbCommand(), p.diskCommand(), p.configCommand(), p.keyCommand(), p.openapiCommand(), p.idlCommand(), p.probeCommand(), p.redisCommand(), p.callCommand(), p.benchCommand(), p.genCommand(),
		p.versionCommand(), p.completionCommand(), p.manCommand())
	return root
}

// groupMark is the annotation of commands that do nothing themselves.
const groupMark = "group"

// isGroup reports whether a command only has subcommands.
func isGroup(c *cobra.Command) bool {
	_, is := c.Annotations[groupMark]
	return is
}

// group makes a command that only has subcommands: without one, or with an unknown
// one, it is a mistake (cobra would print the help and succeed).
func group(c *cobra.Command) *cobra.Command {
	c.Annotations = map[string]string{groupMark: ""}
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		var names []string
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" {
				names = append(names, sub.Name())
			}
		}
		expected := "expected " + strings.Join(names, ", ")
		if len(args) == 0 {
			return fmt.Errorf("no command; %s", expected)
		}
		c.SuggestionsMinimumDistance = 2
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			return fmt.Errorf("unknown command %q (did you mean %q?); %s", args[0], near[0], expected)
		}
		return fmt.Errorf("unknown command %q; %s", args[0], expected)
	}
	return c
}
