package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
)

func (p program) idlCommand() *cobra.Command {
	var file string
	var assign bool
	c := &cobra.Command{
		Use:   "idl -c FILE",
		Short: "Print the Thrift IDL of what is served, or number its fields",
		Long: `Idl prints the IDL from which Thrift clients are compiled: a struct for the documents
of each resource, and a method for one document and for several. It reads the
columns from the database, so the database must be available; if it cannot be reached
the exit code is 4. Members of documents without a number are named as warnings.

With --assign it first writes numbers into the file: each member without one gets the
next number of its struct, and the numbers of members that documents no longer have
become reserved. Comments and layout stay. Numbers that the file has are never
changed, so clients that were compiled before stay right. It changes nothing else;
a running gateway uses the numbers after a reload.`,
		Example: `  slipstream idl -c slipstream.yaml --assign > shop.thrift
  slipstream gen thrift -o shop shop.thrift`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return printIDL(c, file, assign) },
	}
	fileFlag(c, &file)
	c.Flags().BoolVar(&assign, "assign", false, "write missing numbers into the configuration file")
	return c
}

func printIDL(c *cobra.Command, file string, assign bool) error {
	cfg, err := loadConfig(file)
	if err != nil {
		return err
	}
	db, err := openDatabase(c.Context(), file, cfg, gateway.DatabaseOptions{})
	if err != nil {
		return err
	}
	if assign {
		cfg, err = assignIDs(file, cfg, db)
	}
	var text []byte
	var warnings []string
	if err == nil {
		text, warnings, err = gateway.ThriftIDL(cfg, db)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return fail(exitFailure, err, "")
	}
	for _, w := range warnings {
		fmt.Fprintf(c.ErrOrStderr(), "warning: %s\n", w)
	}
	_, err = c.OutOrStdout().Write(text)
	return fail(exitFailure, err, "")
}

// assignIDs writes missing numbers of fields into the file, and returns the configuration with them.
func assignIDs(file string, cfg *config.Config, db gateway.Database) (*config.Config, error) {
	ids, err := gateway.AssignFieldIDs(cfg, db)
	if err != nil {
		return nil, err
	}
	old, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	text, err := config.WithFieldIDs(file, old, ids)
	if err != nil {
		return nil, err
	}
	if string(text) != string(old) {
		if err := replaceFile(file, text); err != nil {
			return nil, fmt.Errorf("the numbers were not written: %w", err)
		}
	}
	return config.Load(file)
}

// replaceFile replaces the contents of a file, completely or not at all. The file keeps its owner and mode; a symbolic
// link keeps leading to it.
func replaceFile(file string, text []byte) (err error) {
	if file, err = filepath.EvalSymlinks(file); err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(next.Name()))
		}
	}()
	// The owner before the mode: a change of owner may clear bits of the mode.
	_, err = next.Write(text)
	err = errors.Join(err, keepOwner(next, info), next.Chmod(info.Mode().Perm()), next.Sync(), next.Close())
	if err != nil {
		return err
	}
	return os.Rename(next.Name(), file)
}
