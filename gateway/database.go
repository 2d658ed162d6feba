package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/gateway/origin/postgres"
	"github.com/slipstream-go/slipstream/internal/gateway/origin/sqlite"
)

// This file is the one place that knows which origins there are.

// Database is the origin of a configuration for those who look after it: the
// triggers that the promise of its resources needs.
type Database interface {
	// Plan returns the statements that would make the triggers what they
	// should be, in order. It changes nothing.
	Plan(ctx context.Context) ([]Statement, error)
	// Apply runs what Plan returns, in one transaction, and returns it.
	Apply(ctx context.Context) ([]Statement, error)
	// Check returns every object that the promise needs, and its state.
	Check(ctx context.Context) ([]Finding, error)
	// Drop removes all that Apply ever made, and returns how.
	Drop(ctx context.Context) ([]Statement, error)
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

// The statements, findings and errors of a [Database].
type (
	Statement   = origin.Statement
	Object      = origin.Object
	Finding     = origin.Finding
	State       = origin.State
	SchemaError = origin.SchemaError
)

// States of a [Finding].
const (
	Present        = origin.Present        // as it should be
	Missing        = origin.Missing        // not in the database
	Differs        = origin.Differs        // there, but with another text
	LeftOver       = origin.LeftOver       // of another definition; costs writers time and nothing else
	Foreign        = origin.Foreign        // there, but belongs to a role that may change it at will
	SuperuserOwned = origin.SuperuserOwned // a trigger function that runs with the rights of a superuser
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
	// Definer is the role that Plan and Apply give the trigger functions to. It
	// should have no rights: code of the owners of tables runs with its rights.
	// Plan says how it is created. Only for PostgreSQL. Default: the role that the
	// functions belong to; on a first installation the role that applies, if it is
	// no superuser and owns every table concerned.
	Definer string
	// Adopt lets Plan and Apply give the schema slipstream and all in it to the role
	// that applies, and the trigger functions to Definer, whoever they belong to
	// now. Only for PostgreSQL.
	Adopt bool
	// Logger gets what operators should know. Default: discarded.
	Logger *slog.Logger

	serves bool // it is opened by a gateway
}

// hasRoles reports whether an option is set that is about roles of PostgreSQL.
func (o DatabaseOptions) hasRoles() bool {
	return o.URL != "" || o.GrantTo != "" || o.Definer != "" || o.Adopt
}

// OpenDatabase opens the origin of a configuration, which verifies tables, columns
// and keys. The error wraps [cache.ErrUnavailable] if the database cannot be
// reached, and holds an [SchemaError] for every resource that does not fit
// it. The caller closes it.
func OpenDatabase(ctx context.Context, cfg *config.Config, options DatabaseOptions) (Database, error) {
	full := cfg.WithDefaults()
	driver, err := full.Origin.Driver()
	switch {
	case err != nil:
		return nil, fmt.Errorf("origin: %w", err)
	case driver == config.SQLite && options.hasRoles():
		return nil, errors.New("an SQLite file has no roles: another URL, a grant, a definer and adoption are for PostgreSQL")
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
func ApplyTriggers(ctx context.Context, cfg *config.Config, options DatabaseOptions) error {
	db, err := OpenDatabase(ctx, cfg, options)
	if err != nil {
		return err
	}
	_, err = db.Apply(ctx)
	return errors.Join(err, db.Close())
}

// Prune drops the triggers and functions in PostgreSQL that none of the
// configurations needs, which are all of one database, and calls report with each
// statement after it took effect. Objects of configurations that are not given are
// dropped, too. It connects as the first configuration or options.URL says.
func Prune(ctx context.Context, configs []*config.Config, options DatabaseOptions, report func(Statement)) error {
	if len(configs) == 0 {
		return errors.New("prune: no configuration; expected those of every gateway over the database")
	}
	var others [][]resource.Resource
	for i, cfg := range configs {
		full := cfg.WithDefaults()
		driver, err := full.Origin.Driver()
		switch {
		case err != nil:
			return fmt.Errorf("origin: %w", err)
		case driver != config.PostgreSQL:
			return errors.New("prune: origin.url is no connection URL of PostgreSQL; in an SQLite file, apply drops what it does not need")
		}
		if i > 0 {
			others = append(others, full.Declarations())
		}
	}
	db, err := OpenDatabase(ctx, configs[0], options)
	if err != nil {
		return err
	}
	return errors.Join(db.(*postgres.Origin).Prune(ctx, others, report), db.Close())
}

// Retained says in sentences what the change table of a database keeps, which of its
// bounds holds, and what a longer gap costs. It returns none for an SQLite file, and
// if there is no such table or the role may not read it.
func Retained(ctx context.Context, db Database) ([]string, error) {
	o, ok := db.(*postgres.Origin)
	if !ok {
		return nil, nil
	}
	r, ok, err := o.Retention(ctx)
	if err != nil || !ok {
		return nil, err
	}
	return r.Sentences(), nil
}

// connect opens the origin that the configuration names, with its stream.
func connect(ctx context.Context, cfg *config.Config, log *slog.Logger) (*connection, error) {
	driver, err := cfg.Origin.Driver()
	if err != nil {
		return nil, fmt.Errorf("origin: %w", err)
	}
	if driver == config.PostgreSQL {
		o, err := openPostgres(ctx, cfg, DatabaseOptions{Logger: log, serves: true})
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
		historyBreaks: n.Voids, surveys: n.Surveys, trimmed: n.Trimmed, wakes: n.Wakes, clockJumps: n.ClockJumps, derivationsFailed: n.DerivationsFailed, changeToFresh: fresh, trouble: n.Trouble, ownerFaults: n.OwnerFaults, retention: n.Retention}
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

// loadLag returns how old what a load reads may be when the load begins.
func loadLag(cfg *config.Config) time.Duration {
	if driver, err := cfg.Origin.Driver(); err != nil || driver != config.PostgreSQL {
		return 0
	}
	return postgresConfig(cfg, DatabaseOptions{}).LoadLag()
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
		Definer:     options.Definer,
		Adopt:       options.Adopt,
		Administer:  !options.serves,
		MaxDocument: int(cfg.MaxDocument),
		Connections: cfg.Origin.Connections,
		// The gateway gives up first and says so better than the server would.
		StatementTimeout: timeout + time.Second,
		PollInterval:     cfg.Origin.Poll,
		CheckInterval:    check,
		Freshness:        cfg.MinFreshness(),
		KeepChanges:      cfg.Origin.KeepChanges,
		KeepBytes:        cfg.Origin.KeepBytes,
		Logger:           options.Logger,
	}
}
