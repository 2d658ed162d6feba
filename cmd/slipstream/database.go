package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// openDatabase opens the origin of the configuration, which verifies tables,
// columns and keys.
func openDatabase(ctx context.Context, file string, cfg *config.Config, options gateway.DatabaseOptions) (gateway.Database, error) {
	db, err := gateway.OpenDatabase(ctx, cfg, options)
	if err != nil {
		return nil, databaseFailure(err, file, exitFailure)
	}
	return db, nil
}

// databaseFailure adds exit codes to errors of the origin, and positions in the
// configuration file to errors about the schema.
func databaseFailure(err error, file string, code int) error {
	if _, ok := errors.AsType[*origin.SchemaError](err); ok {
		return fail(exitUsage, inFile(err, file), "the configuration and the database do not agree: correct one of them")
	}
	if setting, ok := errors.AsType[*origin.SettingError](err); ok {
		return fail(exitUsage, fmt.Errorf("%s: %w", file, setting), "the parameters are those of libpq's connection URIs")
	}
	if state, ok := errors.AsType[interface {
		error
		SQLState() string // of an error that a PostgreSQL server sent
	}](err); ok {
		return serverFailure(err, state.SQLState(), code)
	}
	if !errors.Is(err, cache.ErrUnavailable) {
		return fail(code, err, "")
	}
	hint := ""
	if strings.Contains(err.Error(), "sqlite: ") {
		hint = "does the file exist, and may this user read it and write to its directory?"
	} else if strings.Contains(err.Error(), "tls error") {
		hint = "sslmode in the URL says whether TLS is requested, and the server's ssl whether it is offered; sslrootcert names the authority"
	} else if _, ok := errors.AsType[*net.DNSError](err); ok {
		hint = "the host name cannot be resolved: is it right in the URL?"
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		hint = "is PostgreSQL running there, and does it listen on this address (listen_addresses)?"
	} else if errors.Is(err, fs.ErrNotExist) {
		hint = "no server has this socket: is PostgreSQL running, with this directory in unix_socket_directories and this port?"
	} else if _, ok := errors.AsType[net.Error](err); ok {
		hint = "is PostgreSQL running there, and does a firewall permit this machine?"
	}
	return fail(exitUnreachable, err, hint)
}

// serverFailure is databaseFailure for errors from a PostgreSQL server.
func serverFailure(err error, state string, code int) error {
	for _, s := range []struct {
		prefix string
		code   int
		hint   string
	}{
		{"28P01", exitUnreachable, "the password comes from the URL, or from PGPASSWORD or ~/.pgpass if the URL has none"},
		{"28", exitUnreachable, "does the role exist, and does pg_hba.conf admit it from this machine?"},
		{"3D000", exitUnreachable, "the database is the last part of the URL: postgres://user@host/database"},
		{"42501", exitFailure, "run it as the owner of the tables, with --url or " + urlVariable + ", and name the gateway's role with --grant; docs/operations/postgresql.md lists the grants"},
		{"53300", exitUnreachable, "the server has no connection left: see max_connections, and origin.connections of every gateway"},
		{"55P03", exitFailure, "a long transaction holds a lock on a table: end it, or retry later"},
		{"57P", exitUnreachable, "the server is starting or stopping: retry"},
	} {
		if strings.HasPrefix(state, s.prefix) {
			return fail(s.code, err, s.hint)
		}
	}
	if errors.Is(err, cache.ErrUnavailable) {
		code = exitUnreachable
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
