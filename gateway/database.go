package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/gateway/origin"
	"github.com/slipstream-go/slipstream/gateway/origin/sqlite"
)

// This file is the one place that knows which origins there are.

// Database is the origin of a configuration for those who look after it: the
// triggers that the promise of its resources needs.
type Database interface {
	// Plan returns the statements that would make the triggers what they
	// should be, in order. It changes nothing.
	Plan(ctx context.Context) ([]origin.Statement, error)
	// Apply runs what Plan returns, in one transaction, and returns it.
	Apply(ctx context.Context) ([]origin.Statement, error)
	// Check returns every object that the promise needs, and its state.
	Check(ctx context.Context) ([]origin.Finding, error)
	// Drop removes all that Apply ever made, and returns how.
	Drop(ctx context.Context) ([]origin.Statement, error)
	// Warnings returns what works but will be slow, in sentences.
	Warnings() []string
	Close() error
}

var (
	_ Database = (*sqlite.Origin)(nil)
)

// DatabaseOptions say how to open a [Database] besides the configuration. The
// zero value is usable.
type DatabaseOptions struct {
	// URL connects as another role than the gateway's: as the owner of the
	// tables, who may make triggers. Only for PostgreSQL. Default: that of the
	// configuration.
	URL string
	// GrantTo is the role that Plan and Apply let read the record of changes:
	// the gateway's, if URL is another's. Only for PostgreSQL.
	GrantTo string
	// Logger gets what operators should know. Default: discarded.
	Logger *slog.Logger
}

// OpenDatabase opens the origin of a configuration, which verifies tables, columns
// and keys. The error wraps [cache.ErrUnavailable] if the database cannot be
// reached, and holds an [origin.SchemaError] for every resource that does not fit
// it. The caller closes it.
func OpenDatabase(ctx context.Context, cfg *config.Config, options DatabaseOptions) (Database, error) {
	full := cfg.WithDefaults()
	driver, err := full.Origin.Driver()
	switch {
	case err != nil:
		return nil, fmt.Errorf("origin: %w", err)
	case driver == config.SQLite && (options.URL != "" || options.GrantTo != ""):
		return nil, errors.New("an SQLite file has no roles: another URL and a grant are for PostgreSQL")
	case driver == config.SQLite:
		return openSQLite(ctx, &full, options.Logger)
	}
	if options.URL != "" {
		full.Origin.URL, full.Origin.StreamURL = options.URL, ""
		if driver, err := full.Origin.Driver(); err != nil || driver != config.PostgreSQL {
			return nil, errors.Join(errors.New("the URL of the other role is no connection URL of PostgreSQL"), err)
		}
	}
	return nil, errors.New("origin: not SQLite")
}

// ApplyTriggers makes the triggers of the database those that the promise of the
// configuration's resources needs, as "slipstream db apply" does. It is safe to
// call when they are in place already.
func ApplyTriggers(ctx context.Context, cfg *config.Config) error {
	db, err := OpenDatabase(ctx, cfg, DatabaseOptions{})
	if err != nil {
		return err
	}
	_, err = db.Apply(ctx)
	return errors.Join(err, db.Close())
}

// connect opens the origin that the configuration names, with its stream.
func connect(ctx context.Context, cfg *config.Config, log *slog.Logger) (*connection, error) {
	driver, err := cfg.Origin.Driver()
	if err != nil {
		return nil, fmt.Errorf("origin: %w", err)
	}
	if driver != config.SQLite {
		return nil, errors.New("origin: not SQLite")
	}
	o, err := openSQLite(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	s := o.Stream(bootTime)
	return &connection{database: o, stream: s, stats: func() originStats {
		n := s.Stats()
		return originStats{polls: n.Polls, pollErrors: n.PollErrors, events: n.Events, lastPoll: n.LastPoll}
	}}, nil
}

// wakes says that the stream of the origin can be asked to report at once. That
// of an SQLite file looks every 100 ms, which costs as much as being asked.
func wakes(cfg *config.Config) bool {
	driver, err := cfg.Origin.Driver()
	return err == nil && driver == config.PostgreSQL
}

func openSQLite(ctx context.Context, cfg *config.Config, log *slog.Logger) (*sqlite.Origin, error) {
	path, err := cfg.Origin.SQLitePath()
	if err != nil {
		return nil, fmt.Errorf("origin: %w", err)
	}
	connections := 0 // as many as statements are allowed at once
	for _, r := range cfg.Resources {
		connections += r.Load.Concurrency
	}
	return sqlite.Open(ctx, sqlite.Config{
		Path: path, MaxDocument: int(cfg.MaxDocument), Connections: min(connections, maxConnections), Logger: log,
	}, cfg.Declarations())
}

// maxConnections bounds the connections to one SQLite file: each has a page cache
// of 2 MiB, and more than a few times the cores only wait for one another.
const maxConnections = 16
