package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
)

func (p program) configCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "config",
		Short: "Check, describe or show the configuration",
		Long: `The configuration is one YAML file, read strictly: anything misspelled, of the wrong
type or impossible is an error with file, line and column. ${NAME} in a value is
the environment variable NAME.

` + exitCodes,
		Example: `  slipstream config check -c slipstream.yaml
  slipstream config show -c slipstream.yaml
  slipstream config schema > slipstream.schema.json`,
	})
	c.AddCommand(p.configCheck(), p.configSchema(), p.configShow())
	return c
}

func (p program) configCheck() *cobra.Command {
	var file, against, token string
	var offline, exposed bool
	c := &cobra.Command{
		Use:   "check -c FILE",
		Short: "Report mistakes in a configuration",
		Long: `Check reads the file, reports every mistake, and then checks whether the database
has the tables, columns, keys and joins in the file. With --offline only
the file is read. If the database cannot be reached the exit code is 4: the file
itself is valid.

With --against it gets the configuration in force from the admin listener of a running
gateway, instead of checking the database, and prints what a reload would change: each key,
its old and new value, and whether it takes effect by a reload or needs a restart.

With --exposed it prints, instead of checking the database, what other machines can
reach: each listener with its TLS, the credentials that it accepts, what anyone may
read there, and the limits. The exit code is 0 whatever they can reach.`,
		Example: `  slipstream config check -c slipstream.yaml
  slipstream config check -c slipstream.yaml --offline    # in a build, without the database
  slipstream config check -c slipstream.yaml --exposed    # what can the network reach?
  slipstream config check -c slipstream.yaml --against http://127.0.0.1:9100   # before a reload`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := loadConfig(file)
			if err != nil {
				return err
			}
			for _, w := range cfg.Warnings {
				fmt.Fprintf(c.ErrOrStderr(), "warning: %s\n", w)
			}
			if exposed {
				return printExposed(c.OutOrStdout(), cfg)
			}
			if against != "" {
				at := operatorAt(against)
				if token != "" {
					if at.token, err = readToken(token); err != nil {
						return fail(exitUsage, err, "")
					}
				}
				return checkAgainst(c.Context(), c.OutOrStdout(), at, cfg)
			}
			if offline {
				fmt.Fprintf(c.OutOrStdout(), "%s: %d resources, no mistakes; the database was not checked\n", file, len(cfg.Resources))
				return nil
			}
			return checkDatabase(c, file, cfg)
		},
	}
	fileFlag(c, &file)
	c.Flags().BoolVar(&offline, "offline", false, "do not check the database")
	c.Flags().StringVar(&against, "against", "", "URL of the admin listener of a running gateway, or unix: and the path of its socket: print what differs")
	c.Flags().StringVar(&token, "token", "", "the `file` of a token for --against, where the gateway is on another machine")
	c.Flags().BoolVar(&exposed, "exposed", false, "print what other machines can reach")
	c.MarkFlagsMutuallyExclusive("exposed", "against")
	return c
}

func checkDatabase(c *cobra.Command, file string, cfg *config.Config) error {
	db, err := openDatabase(c.Context(), file, cfg, gateway.DatabaseOptions{})
	if err != nil {
		return err
	}
	for _, w := range db.Warnings() {
		fmt.Fprintf(c.ErrOrStderr(), "warning: %s\n", w)
	}
	for _, w := range gateway.ThriftWarnings(cfg, db) {
		fmt.Fprintf(c.ErrOrStderr(), "warning: %s\n", w)
	}
	findings, err := db.Check(c.Context())
	if err = errors.Join(err, db.Close()); err != nil {
		return databaseFailure(err, file, exitFailure)
	}
	fmt.Fprintf(c.OutOrStdout(), "%s: %d resources, no mistakes; the database has their tables and keys\n", file, len(cfg.Resources))
	if incomplete(findings) > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "warning: the triggers are not all in place; slipstream db apply -c %s installs them\n", file)
	}
	return nil
}

func (p program) configSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration",
		Long: `Schema prints the JSON Schema (draft 2020-12) that editors use to complete and
check the file while it is written.`,
		Example: `  slipstream config schema > slipstream.schema.json

  # first line of slipstream.yaml, for editors with the YAML language server:
  # yaml-language-server: $schema=slipstream.schema.json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(config.Schema())
			return fail(exitFailure, err, "")
		},
	}
}

func (p program) configShow() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "show -c FILE",
		Short: "Print the configuration with every default, secrets hidden",
		Long: `Show prints what serve would use: the file with all defaults filled in and the
environment substituted. Passwords are hidden. A resource that is served without
the freshness promise says so: promise: none.`,
		Example: `  slipstream config show -c slipstream.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := loadConfig(file)
			if err != nil {
				return err
			}
			_, err = c.OutOrStdout().Write(cfg.Redacted())
			return fail(exitFailure, err, "")
		},
	}
	fileFlag(c, &file)
	return c
}
