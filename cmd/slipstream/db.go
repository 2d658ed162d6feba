package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/gateway/origin"
)

func (p program) dbCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "db",
		Short: "Show, make, verify or remove the triggers that tell of changes",
		Long: `A gateway hears of every change through triggers that append the keys of changed
documents to a table of their own: slipstream_change in an SQLite file, and
slipstream.change in PostgreSQL. They are derived from the resources of the
configuration; an application does not see them.

PostgreSQL lets only the owner of a table make triggers on it, and a gateway
should not be one. --url, or SLIPSTREAM_DB_URL in the environment, runs as the
owner, and --grant lets the gateway's role read the table of changes.

` + exitCodes,
		Example: `  slipstream db plan -c slipstream.yaml      # read it first
  slipstream db apply -c slipstream.yaml
  slipstream db check -c slipstream.yaml     # 3 if something is missing

  # PostgreSQL, where the gateway connects as "gateway" and owner owns the tables:
  slipstream db apply -c slipstream.yaml --url postgres://owner@db/shop --grant gateway`,
	})
	c.AddCommand(p.dbPlan(), p.dbApply(), p.dbCheck(), p.dbDrop())
	return c
}

// dbSubcommand is a command that works on the opened database.
func dbSubcommand(c *cobra.Command, do func(c *cobra.Command, driver config.Driver, db gateway.Database) error) *cobra.Command {
	var file string
	var options gateway.DatabaseOptions
	fileFlag(c, &file)
	c.Flags().StringVar(&options.URL, "url", "", "connect to PostgreSQL as the owner of the tables, with this `URL`; "+urlVariable+" in the environment keeps its password out of the list of processes")
	c.Flags().StringVar(&options.GrantTo, "grant", "", "the `role` of the gateway in PostgreSQL, if it is not the one that runs this")
	c.Args = cobra.NoArgs
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := loadConfig(file)
		if err != nil {
			return err
		}
		driver, err := cfg.Origin.Driver()
		if err != nil {
			return fail(exitUsage, fmt.Errorf("%s: origin.url: %w", file, err), "")
		}
		if driver == config.SQLite && (options.URL != "" || options.GrantTo != "") {
			return fail(exitUsage, errors.New("an SQLite file has no roles; expected --url and --grant with an origin.url of PostgreSQL"), "")
		}
		if driver == config.PostgreSQL && options.URL == "" {
			options.URL = os.Getenv(urlVariable)
		}
		db, err := openDatabase(c.Context(), file, cfg, options)
		if err != nil {
			return err
		}
		return withHint(errors.Join(do(c, driver, db), db.Close()), file)
	}
	return c
}

// urlVariable names the environment variable in place of --url.
const urlVariable = "SLIPSTREAM_DB_URL"

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
  slipstream db plan -c slipstream.yaml | less
  slipstream db plan -c slipstream.yaml --url postgres://owner@db/shop --grant gateway`,
	}, func(c *cobra.Command, driver config.Driver, db gateway.Database) error {
		list, err := db.Plan(c.Context())
		if err != nil {
			return err
		}
		if len(list) == 0 {
			fmt.Fprintln(c.OutOrStdout(), "-- nothing to do")
			return nil
		}
		begin := "BEGIN;"
		if driver == config.SQLite {
			begin = "BEGIN IMMEDIATE;" // the lock of writers at once, so that none can come between
		}
		fmt.Fprintln(c.OutOrStdout(), begin)
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
again: when all is well it does nothing. Gateways that are running notice.

In PostgreSQL it waits for transactions that have written to the tables, and
writers wait for it: run it when there are no long ones, and after CREATE TABLE ...
PARTITION OF, because a new partition has no triggers.`,
		Example: `  slipstream db apply -c slipstream.yaml
  slipstream db apply -c slipstream.yaml --url postgres://owner@db/shop --grant gateway

  # the password of the owner stays out of the list of processes
  SLIPSTREAM_DB_URL=postgres://owner:secret@db/shop slipstream db apply -c slipstream.yaml --grant gateway`,
	}, func(c *cobra.Command, _ config.Driver, db gateway.Database) error {
		list, err := db.Apply(c.Context())
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
		Example: `  slipstream db check -c slipstream.yaml && slipstream serve -c slipstream.yaml
  slipstream db check -c slipstream.yaml --grant gateway     # and may that role read the changes?`,
	}, func(c *cobra.Command, _ config.Driver, db gateway.Database) error {
		findings, err := db.Check(c.Context())
		if err != nil {
			return err
		}
		for _, f := range findings {
			fmt.Fprintf(c.OutOrStdout(), "%-9s %s\n", f.State, f.Name)
		}
		if wrong := incomplete(findings); wrong > 0 {
			return fail(exitIncomplete, fmt.Errorf("%d of %d objects are missing or differ: the freshness promise cannot be given", wrong, len(findings)),
				"slipstream db apply makes them, run as the owner of the tables; what the gateway's role lacks is granted with --grant ROLE")
		}
		return nil
	})
}

// incomplete counts the objects that the promise lacks.
func incomplete(findings []origin.Finding) (wrong int) {
	for _, f := range findings {
		if f.State == origin.Missing || f.State == origin.Differs {
			wrong++
		}
	}
	return wrong
}

func (p program) dbDrop() *cobra.Command {
	var yes bool
	c := dbSubcommand(&cobra.Command{
		Use:   "drop -c FILE --yes",
		Short: "Remove every trigger and the change table",
		Long: `Drop removes all that apply ever made in this database, for this configuration and
earlier ones. Gateways that are running give up the promise at once and serve by
their on_stale policy.`,
		Example: `  slipstream db drop -c slipstream.yaml --yes
  slipstream db drop -c slipstream.yaml --yes --url postgres://owner@db/shop`,
	}, func(c *cobra.Command, _ config.Driver, db gateway.Database) error {
		if !yes {
			return fail(exitUsage, errors.New("drop ends the promise of every gateway over this database; expected --yes"), "")
		}
		list, err := db.Drop(c.Context())
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
