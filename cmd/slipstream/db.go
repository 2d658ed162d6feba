package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/gateway/origin"
	"github.com/slipstream-go/slipstream/gateway/origin/sqlite"
)

func (p program) dbCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "db",
		Short: "Show, make, verify or remove the triggers that tell of changes",
		Long: `A gateway hears of every change through triggers that append the keys of changed
documents to a table of their own, slipstream_change. They are derived from the
resources of the configuration; an application does not see them.

` + exitCodes,
		Example: `  slipstream db plan -c slipstream.yaml      # read it first
  slipstream db apply -c slipstream.yaml
  slipstream db check -c slipstream.yaml     # 3 if something is missing`,
	})
	c.AddCommand(p.dbPlan(), p.dbApply(), p.dbCheck(), p.dbDrop())
	return c
}

// dbSubcommand is a command that works on the opened database.
func dbSubcommand(c *cobra.Command, do func(c *cobra.Command, o *sqlite.Origin) error) *cobra.Command {
	var file string
	fileFlag(c, &file)
	c.Args = cobra.NoArgs
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := loadConfig(file)
		if err != nil {
			return err
		}
		o, err := openDatabase(c.Context(), file, cfg)
		if err != nil {
			return err
		}
		defer o.Close()
		return withHint(do(c, o), file)
	}
	return c
}

// printStatements writes SQL that could be fed to the database's own shell.
func printStatements(c *cobra.Command, list []origin.Statement) {
	for _, s := range list {
		if s.Comment != "" {
			fmt.Fprintf(c.OutOrStdout(), "-- %s\n", s.Comment)
		}
		fmt.Fprintf(c.OutOrStdout(), "%s;\n", s.SQL)
	}
}

func (p program) dbPlan() *cobra.Command {
	return dbSubcommand(&cobra.Command{
		Use:   "plan -c FILE",
		Short: "Print the SQL that apply would run",
		Long: `Plan compares the database with the configuration and prints the statements that
would make the triggers what they should be. It changes nothing.`,
		Example: `  slipstream db plan -c slipstream.yaml
  slipstream db plan -c slipstream.yaml | less`,
	}, func(c *cobra.Command, o *sqlite.Origin) error {
		list, err := o.Plan(c.Context())
		if err != nil {
			return err
		}
		if len(list) == 0 {
			fmt.Fprintln(c.OutOrStdout(), "-- nothing to do")
			return nil
		}
		fmt.Fprintln(c.OutOrStdout(), "BEGIN IMMEDIATE;")
		printStatements(c, list)
		fmt.Fprintln(c.OutOrStdout(), "COMMIT;")
		return nil
	})
}

func (p program) dbApply() *cobra.Command {
	return dbSubcommand(&cobra.Command{
		Use:   "apply -c FILE",
		Short: "Make the triggers what they should be",
		Long: `Apply runs what plan shows, in one transaction. It may be run at any time and
again: when all is well it does nothing. Gateways that are running notice.`,
		Example: `  slipstream db apply -c slipstream.yaml`,
	}, func(c *cobra.Command, o *sqlite.Origin) error {
		list, err := o.Apply(c.Context())
		if err != nil {
			return err
		}
		for _, s := range list {
			fmt.Fprintln(c.OutOrStdout(), s.Comment)
		}
		fmt.Fprintf(c.OutOrStdout(), "%d statements were run\n", len(list))
		return nil
	})
}

func (p program) dbCheck() *cobra.Command {
	return dbSubcommand(&cobra.Command{
		Use:   "check -c FILE",
		Short: "Say whether all triggers are in place",
		Long: `Check lists every object that the promise needs and its state. It changes nothing
and exits with 3 if one is missing or differs.`,
		Example: `  slipstream db check -c slipstream.yaml && slipstream serve -c slipstream.yaml`,
	}, func(c *cobra.Command, o *sqlite.Origin) error {
		findings, err := o.Check(c.Context())
		if err != nil {
			return err
		}
		wrong := 0
		for _, f := range findings {
			fmt.Fprintf(c.OutOrStdout(), "%-9s %s\n", f.State, f.Name)
			if f.State == origin.Missing || f.State == origin.Differs {
				wrong++
			}
		}
		if wrong > 0 {
			return fail(exitIncomplete, fmt.Errorf("%d of %d objects are missing or differ: the freshness promise cannot be given", wrong, len(findings)),
				"slipstream db apply makes them")
		}
		return nil
	})
}

func (p program) dbDrop() *cobra.Command {
	var yes bool
	c := dbSubcommand(&cobra.Command{
		Use:   "drop -c FILE --yes",
		Short: "Remove every trigger and the change table",
		Long: `Drop removes all that apply ever made in this database, for this configuration and
earlier ones. Gateways that are running give up the promise at once and serve by
their on_stale policy.`,
		Example: `  slipstream db drop -c slipstream.yaml --yes`,
	}, func(c *cobra.Command, o *sqlite.Origin) error {
		if !yes {
			return fail(exitUsage, errors.New("drop ends the promise of every gateway over this database; expected --yes"), "")
		}
		list, err := o.Drop(c.Context())
		if err != nil {
			return err
		}
		for _, s := range list {
			fmt.Fprintf(c.OutOrStdout(), "%s;\n", s.SQL)
		}
		fmt.Fprintf(c.OutOrStdout(), "%d objects were removed\n", len(list))
		return nil
	})
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	return c
}
