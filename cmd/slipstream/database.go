package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/gateway/origin"
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
		return nil, databaseFailure(err, file, exitFailure)
	}
	return o, nil
}

// databaseFailure gives errors of the origin their exit code, and what the
// database lacks its place in the configuration file.
func databaseFailure(err error, file string, code int) error {
	if _, ok := errors.AsType[*origin.SchemaError](err); ok {
		return fail(exitUsage, inFile(err, file), "the configuration and the database do not agree: correct one of them")
	}
	if errors.Is(err, cache.ErrUnavailable) {
		return fail(exitUnreachable, err, "does the file exist, and may this user read it and write beside it?")
	}
	return fail(code, err, "")
}

// inFile puts file:line before each of the joined errors that has a line.
func inFile(err error, file string) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, one := range many.Unwrap() {
			all = append(all, inFile(one, file))
		}
		return errors.Join(all...)
	}
	if s, ok := err.(*origin.SchemaError); ok && s.Line > 0 {
		placeless := *s
		placeless.Line = 0
		return fmt.Errorf("%s:%d: %w", file, s.Line, &placeless)
	}
	return err
}
