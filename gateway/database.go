package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/gateway/origin"
	"github.com/slipstream-go/slipstream/gateway/origin/postgres"
	"github.com/slipstream-go/slipstream/gateway/origin/sqlite"
	"github.com/slipstream-go/slipstream/gateway/resource"
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
	// KeyColumns returns the key columns of the i-th resource, in path order.
	KeyColumns(i int) []resource.KeyColumn
	// Shape returns what the documents of the i-th resource look like, nil if
	// that is unknown: those of a statement.
	Shape(i int) *resource.Shape
	// Warnings returns what works but will be slow, in sentences.
	Warnings() []string
	Close() error
}

var (
	_ Database = (*sqlite.Origin)(nil)
	_ Database = (*postgres.Origin)(nil)
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
	return openPostgres(ctx, &full, options)
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
	if driver == config.PostgreSQL {
		o, err := openPostgres(ctx, cfg, DatabaseOptions{Logger: log})
		if err != nil {
			return nil, err
		}
		s := o.Stream(bootTime)
		return &connection{database: o, stream: s, wake: s.Wake, stats: func() originStats { return postgresStats(s.Stats()) }}, nil
	}
	o, err := openSQLite(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	s := o.Stream(bootTime)
	return &connection{database: o, stream: s, stats: func() originStats {
		return sqliteStats(s.Stats())
	}}, nil
}

func sqliteStats(n sqlite.StreamStats) originStats {
	fresh := histogram{counts: n.ToFresh.Counts[:], sum: n.ToFresh.Sum.Seconds(), max: n.ToFresh.Max.Seconds(), atMost: true}
	for _, bound := range sqlite.Bounds {
		fresh.bounds = append(fresh.bounds, bound.Seconds())
	}
	return originStats{polls: n.Polls, pollErrors: n.PollErrors, events: n.Events, lastPoll: n.LastPoll,
		historyBreaks: n.Voids, trimmed: n.Trimmed, changeToFresh: fresh}
}

func postgresStats(n postgres.StreamStats) originStats {
	fresh := histogram{counts: n.ToFresh.Counts[:], sum: n.ToFresh.Sum.Seconds()}
	for _, bound := range postgres.Bounds {
		fresh.bounds = append(fresh.bounds, bound.Seconds())
	}
	return originStats{polls: n.Polls, pollErrors: n.PollErrors, events: n.Events, lastPoll: n.LastPoll,
		historyBreaks: n.Voids, surveys: n.Surveys, trimmed: n.Trimmed, wakes: n.Wakes, changeToFresh: fresh, trouble: n.Trouble}
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

func openPostgres(ctx context.Context, cfg *config.Config, options DatabaseOptions) (*postgres.Origin, error) {
	return postgres.Open(ctx, postgresConfig(cfg, options), cfg.Declarations())
}

// postgresConfig says how a gateway of this configuration uses the database.
func postgresConfig(cfg *config.Config, options DatabaseOptions) postgres.Config {
	timeout := time.Duration(0)
	for _, r := range cfg.Resources {
		timeout = max(timeout, r.Load.Timeout)
	}
	// An eighth of the promise leaves room for checks that are late or fail; the
	// configuration keeps Poll below it.
	check := min(max(100*time.Millisecond, cfg.Origin.Poll), cfg.MinFreshness()/8)
	return postgres.Config{
		URL:         cfg.Origin.URL,
		StreamURL:   cfg.Origin.StreamURL,
		Notify:      cfg.Origin.Notify,
		GrantTo:     options.GrantTo,
		MaxDocument: int(cfg.MaxDocument),
		Connections: cfg.Origin.Connections,
		// The gateway gives up first and says so better than the server would.
		StatementTimeout: timeout + time.Second,
		PollInterval:     cfg.Origin.Poll,
		CheckInterval:    check,
		KeepChanges:      cfg.Origin.KeepChanges,
		Logger:           options.Logger,
	}
}
