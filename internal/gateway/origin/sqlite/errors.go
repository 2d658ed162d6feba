package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// errMoved is the error of a load whose file is not the one that the stream follows.
var errMoved = errors.New("the database file was replaced, and the stream of changes has not opened the new one yet")

// unavailable lists the result codes that say something about the database and
// nothing about the statement: any other request would fail in the same way.
var unavailable = []sqlite3.ErrorCode{
	sqlite3.BUSY, sqlite3.LOCKED, sqlite3.IOERR, sqlite3.CANTOPEN, sqlite3.NOTADB,
	sqlite3.CORRUPT, sqlite3.PERM, sqlite3.READONLY, sqlite3.FULL, sqlite3.PROTOCOL,
	sqlite3.AUTH, sqlite3.SCHEMA, sqlite3.NOLFS,
}

// wrapError adds what was being done and the file, and decides whether the error
// means that the origin is unavailable. All errors of SQLite leave the package
// through it; file system errors of open already have these details.
func (o *Origin) wrapError(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if ctxErr := context.Cause(ctx); ctxErr != nil && errors.Is(err, sqlite3.INTERRUPT) {
		return fmt.Errorf("sqlite: %s: %w", doing, ctxErr)
	}
	if errors.Is(err, cache.ErrUnavailable) {
		return err
	}
	var schemaErr *origin.SchemaError
	isUnavailable := errors.Is(err, errMoved) || errors.As(err, &schemaErr) ||
		slices.ContainsFunc(unavailable, func(code sqlite3.ErrorCode) bool { return errors.Is(err, code) })
	if isUnavailable {
		return fmt.Errorf("sqlite: %s (%s): %w: %w", doing, o.cfg.Path, cache.ErrUnavailable, err)
	}
	return fmt.Errorf("sqlite: %s (%s): %w", doing, o.cfg.Path, err)
}
