package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/gateway"
)

func (p program) openapiCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "openapi -c FILE",
		Short: "Print the OpenAPI document of what is served",
		Long: `Openapi prints what serve would answer for /openapi.json: an OpenAPI 3.1 document
with the paths of the resources, how keys are written, and what documents look
like. It reads the columns from the database, so the database must be available; if it
cannot be reached the exit code is 4. It changes nothing. If neither the
file nor the tables change, the document is byte-for-byte the same.`,
		Example: `  slipstream openapi -c slipstream.yaml > openapi.json

  # a client in Go, and one in Python:
  oapi-codegen -generate types,client -package shop openapi.json > shop.go
  openapi-python-client generate --path openapi.json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return printOpenAPI(c, file) },
	}
	fileFlag(c, &file)
	return c
}

func printOpenAPI(c *cobra.Command, file string) error {
	cfg, err := loadConfig(file)
	if err != nil {
		return err
	}
	db, err := openDatabase(c.Context(), file, cfg, gateway.DatabaseOptions{})
	if err != nil {
		return err
	}
	text, err := gateway.OpenAPI(cfg, db)
	if err = errors.Join(err, db.Close()); err != nil {
		return fail(exitFailure, err, "")
	}
	_, err = c.OutOrStdout().Write(text)
	return fail(exitFailure, err, "")
}
