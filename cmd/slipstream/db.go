package main

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

func (p program) dbCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "db",
		Short: "Show, install, verify or remove the triggers that record changes",
		Long: `A gateway observes every change through triggers that append the keys of changed
documents to a dedicated table: slipstream_change in an SQLite file, and
slipstream.change in PostgreSQL. They are derived from the resources of the
configuration; an application does not see them.

PostgreSQL lets only the owner of a table create triggers on it, and a gateway
should not be one. --url, or SLIPSTREAM_DB_URL in the environment, runs as the
owner, and --grant lets the gateway's role read the table of changes. --definer
names the role that the trigger functions belong to, which may do nothing but
insert into that table: code of the owners of tables runs with its privileges.

` + exitCodes,
		Example: `  slipstream db plan -c slipstream.yaml      # read it first
  slipstream db apply -c slipstream.yaml
  slipstream db check -c slipstream.yaml     # 3 if something is missing

  # PostgreSQL, where the gateway connects as "gateway" and owner owns the tables:
  slipstream db apply -c slipstream.yaml --url postgres://owner@db/shop --grant gateway --definer slipstream_definer

  # after a deployment, when no gateway uses the previous configuration anymore:
  slipstream db prune -c slipstream.yaml -c other.yaml --url postgres://owner@db/shop`,
	})
	c.AddCommand(p.dbPlan(), p.dbApply(), p.dbCheck(), p.dbPrune(), p.dbDrop())
	return c
}

// dbSubcommand is a command that works on the opened database.
func dbSubcommand(c *cobra.Command, do func(c *cobra.Command, driver config.Driver, db gateway.Database) error) *cobra.Command {
	var file string
	var options gateway.DatabaseOptions
	fileFlag(c, &file)
	urlFlag(c, &options)
	c.Flags().StringVar(&options.GrantTo, "grant", "", "the `role` of the gateway in PostgreSQL, if it is not the one that runs this")
	c.Flags().StringVar(&options.Definer, "definer", "", "the `role` without privileges that trigger functions in PostgreSQL belong to; by default they keep their owner")
	if c.Name() == "plan" || c.Name() == "apply" {
		c.Flags().BoolVar(&options.Adopt, "adopt", false, "make the role that runs this the owner of the schema slipstream in PostgreSQL and everything in it, and the definer the owner of trigger functions")
	}
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
		if driver == config.SQLite && (options.URL != "" || options.GrantTo != "" || options.Definer != "" || options.Adopt) {
			return fail(exitUsage, errors.New("an SQLite file has no roles; expected --url, --grant, --definer and --adopt with an origin.url of PostgreSQL"), "")
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

// urlFlag adds --url.
func urlFlag(c *cobra.Command, options *gateway.DatabaseOptions) {
	c.Flags().StringVar(&options.URL, "url", "", "connect to PostgreSQL as the owner of the tables, with this `URL`; "+urlVariable+" in the environment keeps its password out of the process list")
}

// urlVariable names the environment variable that replaces --url.
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

// statements returns the statements of the list that an administrator must run,
// or those for the role that applies.
func statements(list []origin.Statement, administrator bool) iter.Seq[origin.Statement] {
	return func(yield func(origin.Statement) bool) {
		for _, s := range list {
			if s.Administrator == administrator && !yield(s) {
				return
			}
		}
	}
}

func (p program) dbPlan() *cobra.Command {
	return dbSubcommand(&cobra.Command{
		Use:   "plan -c FILE",
		Short: "Print the SQL that apply would run",
		Long: `Plan compares the database with the configuration and prints the statements that
would make the triggers what they should be. It changes nothing.

In PostgreSQL it also prints, before BEGIN, what an administrator must run once if the
role of --definer does not exist yet or may not be used by the role that applies. At the
end it reports what the table of changes retains: its size, whether keep_changes or
keep_bytes bounds it, how long a gateway may be disconnected, and which transaction keeps
old rows in place.`,
		Example: `  slipstream db plan -c slipstream.yaml
  slipstream db plan -c slipstream.yaml | less
  slipstream db plan -c slipstream.yaml --url postgres://owner@db/shop --grant gateway`,
	}, func(c *cobra.Command, driver config.Driver, db gateway.Database) error {
		list, err := db.Plan(c.Context())
		if err != nil {
			return err
		}
		retained, err := gateway.Retained(c.Context(), db)
		if err != nil {
			return err
		}
		defer func() {
			for _, sentence := range retained {
				fmt.Fprintf(c.OutOrStdout(), "-- %s\n", sentence)
			}
		}()
		if len(list) == 0 {
			fmt.Fprintln(c.OutOrStdout(), "-- nothing to do")
			return nil
		}
		printStatements(c, slices.Collect(statements(list, true)))
		begin := "BEGIN;"
		if driver == config.SQLite {
			begin = "BEGIN IMMEDIATE;" // locks out writers immediately, so that none can interfere
		}
		fmt.Fprintln(c.OutOrStdout(), begin)
		printStatements(c, slices.Collect(statements(list, false)))
		fmt.Fprintln(c.OutOrStdout(), "COMMIT;")
		return nil
	})
}

func (p program) dbApply() *cobra.Command {
	return dbSubcommand(&cobra.Command{
		Use:   "apply -c FILE",
		Short: "Install or repair the triggers",
		Long: `Apply runs what plan shows, in one transaction. It may be run at any time and
repeatedly: if everything is in place it does nothing. Running gateways notice it.

In PostgreSQL it only adds. Triggers of another configuration, or of an earlier version
of this one, remain: gateways that still run with it keep their promise. When they are gone,
"slipstream db prune" drops what is not needed anymore.

In PostgreSQL it waits for transactions that have written to the tables, and
writers wait for it: run it when there are no long ones, and after CREATE TABLE ...
PARTITION OF, because a new partition has no triggers.`,
		Example: `  slipstream db apply -c slipstream.yaml
  slipstream db apply -c slipstream.yaml --url postgres://owner@db/shop --grant gateway

  # the password of the owner stays out of the process list
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
		Short: "Report whether all triggers are in place",
		Long: `Check lists every object that the promise needs and its state. It changes nothing
and exits with 3 if one is missing or differs, or, in PostgreSQL, if a trigger
function belongs to a superuser or an object to a foreign role. Objects that are
left over only cost writers time; check reports how many there are on each
table. A warning does not affect the exit code. One of them names what the text
of a resource calls outside of pg_catalog without naming its schema: a role that may create
functions or operators in a schema of the search path decides what that is.`,
		Example: `  slipstream db check -c slipstream.yaml && slipstream serve -c slipstream.yaml
  slipstream db check -c slipstream.yaml --grant gateway     # and may that role read the changes?`,
	}, func(c *cobra.Command, _ config.Driver, db gateway.Database) error {
		findings, err := db.Check(c.Context())
		if err != nil {
			return err
		}
		for _, w := range db.Warnings() {
			fmt.Fprintf(c.OutOrStdout(), "warning   %s\n", w)
		}
		for _, f := range findings {
			note := ""
			if f.Note != "" {
				note = ": " + f.Note
			}
			fmt.Fprintf(c.OutOrStdout(), "%-9s %s%s\n", f.State, f.Name, note)
		}
		for _, line := range leftOverCosts(findings) {
			fmt.Fprintln(c.OutOrStdout(), line)
		}
		if wrong := incomplete(findings); wrong > 0 {
			return fail(exitIncomplete, fmt.Errorf("%d of %d objects are missing or differ: the freshness promise cannot be kept", wrong, len(findings)),
				"run slipstream db apply as the owner of the tables to install them; --grant ROLE grants what the gateway's role lacks")
		}
		if wrong := count(findings, origin.Foreign, origin.SuperuserOwned); wrong > 0 {
			return fail(exitIncomplete, fmt.Errorf("%d of %d objects belong to the wrong role: the promise holds, but code of the owners of tables may run with privileges that it should not have", wrong, len(findings)),
				"slipstream db apply --definer ROLE --adopt corrects their owners")
		}
		return nil
	})
}

// leftOverCosts describes what triggers of other definitions cost the writers of
// each table. The figures are those of docs/PERFORMANCE.md.
func leftOverCosts(findings []origin.Finding) (lines []string) {
	triggers := make(map[string]int)
	for _, f := range findings {
		if f.State == origin.LeftOver && f.Table != "" {
			triggers[f.Table]++
		}
	}
	for _, table := range slices.Sorted(maps.Keys(triggers)) {
		lines = append(lines, fmt.Sprintf("%d triggers on %s are not needed by this configuration. Each statement that writes to the table also inserts rows for them: "+
			"one set of 4 triggers lowers the rate of single-row updates by 18 %% with one writer, and by 29 %% with 16.  "+
			"slipstream db prune drops what no configuration needs", triggers[table], table))
	}
	return lines
}

// incomplete counts the missing or differing objects of the promise.
func incomplete(findings []origin.Finding) int {
	return count(findings, origin.Missing, origin.Differs)
}

// count returns how many findings have one of the states.
func count(findings []origin.Finding, states ...origin.State) (n int) {
	for _, f := range findings {
		if slices.Contains(states, f.State) {
			n++
		}
	}
	return n
}

func (p program) dbPrune() *cobra.Command {
	var files []string
	var options gateway.DatabaseOptions
	c := &cobra.Command{
		Use:   "prune -c FILE [-c FILE ...]",
		Short: "Drop the triggers that no configuration needs (PostgreSQL)",
		Long: `Prune drops every trigger and function of slipstream in the database that none of the
given configurations needs, and prints what it dropped. Give the configuration of
EVERY gateway over the database, including those that are still being rolled out or back:
objects of a configuration that is not given are dropped, and its gateways lose their
promise until "slipstream db apply" has run for it.

The triggers of one table are dropped in one transaction, which needs an exclusive lock:
prune waits for it at most 5 s at a time, so that writers do not wait longer, and
retries. If it gives up, run it again: what it has dropped stays dropped.

An SQLite file has nothing to prune: apply drops what it does not need.`,
		Example: `  slipstream db prune -c slipstream.yaml
  slipstream db prune -c shop.yaml -c reports.yaml --url postgres://owner@db/shop`,
		Args: cobra.NoArgs,
	}
	c.Flags().StringArrayVarP(&files, "config", "c", []string{defaultFile}, "the configuration `file` of a gateway over the database; repeat it for each one")
	// Fails only if there is no such flag.
	_ = c.MarkFlagFilename("config", "yaml", "yml")
	urlFlag(c, &options)
	c.RunE = func(c *cobra.Command, _ []string) error {
		var configs []*config.Config
		for _, file := range files {
			cfg, err := loadConfig(file)
			if err != nil {
				return err
			}
			if driver, err := cfg.Origin.Driver(); err != nil || driver != config.PostgreSQL {
				return fail(exitUsage, fmt.Errorf("%s: origin.url is not a PostgreSQL URL; in an SQLite file apply drops what it does not need", file), "")
			}
			configs = append(configs, cfg)
		}
		if options.URL == "" {
			options.URL = os.Getenv(urlVariable)
		}
		dropped := 0
		err := gateway.Prune(c.Context(), configs, options, func(s origin.Statement) {
			dropped++
			fmt.Fprintf(c.OutOrStdout(), "%s;\n", s.SQL)
		})
		fmt.Fprintf(c.OutOrStdout(), "%d objects were dropped\n", dropped)
		if err != nil {
			return databaseFailure(err, strings.Join(files, ", "), exitFailure)
		}
		return nil
	}
	return c
}

func (p program) dbDrop() *cobra.Command {
	var yes bool
	c := dbSubcommand(&cobra.Command{
		Use:   "drop -c FILE --yes",
		Short: "Remove every trigger and the change table",
		Long: `Drop removes everything that apply ever created in this database, for this configuration and
earlier ones. Running gateways give up the promise immediately and serve by
their on_stale policy.`,
		Example: `  slipstream db drop -c slipstream.yaml --yes
  slipstream db drop -c slipstream.yaml --yes --url postgres://owner@db/shop`,
	}, func(c *cobra.Command, _ config.Driver, db gateway.Database) error {
		if !yes {
			return fail(exitUsage, errors.New("without its triggers, no gateway over this database can keep the freshness promise; expected --yes"), "")
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
	c.Flags().BoolVar(&yes, "yes", false, "confirm")
	return c
}
