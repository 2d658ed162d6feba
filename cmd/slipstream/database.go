package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/gateway/origin/sqlite"
)

// openDatabase opens the origin of the configuration, which verifies tables,
// columns and keys.
func openDatabase(ctx context.Context, file string, cfg *config.Config) (*sqlite.Origin, error) {
	path, err := cfg.Origin.SQLitePath()
	if err != nil {
		return nil, fail(exitUsage, fmt.Errorf("%s: origin.url: %w", file, err), "")
	}
	o, err := sqlite.Open(ctx, sqlite.Config{Path: path}, cfg.Declarations())
	if err != nil {
		return nil, databaseFailure(err, exitFailure)
	}
	return o, nil
}

// databaseFailure gives errors of the origin their exit code.
func databaseFailure(err error, code int) error {
	if _, ok := errors.AsType[*sqlite.SchemaError](err); ok {
		return fail(exitUsage, err, "the configuration and the database do not agree: correct one of them")
	}
	if errors.Is(err, cache.ErrUnavailable) {
		return fail(exitUnreachable, err, "does the file exist, and may this user read it and write beside it?")
	}
	return fail(code, err, "")
}
