package gateway

import (
	"context"
	"fmt"
	"time"

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/gateway/origin/postgres"
	"github.com/slipstream-go/slipstream/internal/gateway/origin/sqlite"
)

// Only this file knows the existing kinds of origins. Everything else uses
// [origin.Origin].

// driver is what the gateway must know about a kind of database before it is opened.
type driver struct {
	name string // for humans
	open func(context.Context, *config.Config, DatabaseOptions) (origin.Origin, error)
	// loadLag returns how old the data that a load reads may be when the load starts. If nil,
	// it is current.
	loadLag func(*config.Config) time.Duration
	// wakes says whether the stream can be asked to report immediately. A stream that polls
	// often enough does not support it: the report would not come sooner.
	wakes bool
	// noRoles is why the options about roles are refused, or "" if they are not; noPrune is why
	// [Prune] is refused.
	noRoles, noPrune string
}

// drivers are those that the URL of a configuration can name.
var drivers = map[config.Driver]*driver{
	config.PostgreSQL: {
		name:    "PostgreSQL",
		open:    openPostgres,
		loadLag: func(cfg *config.Config) time.Duration { return postgresConfig(cfg, DatabaseOptions{}).LoadLag() },
		wakes:   true,
	},
	config.SQLite: {
		name:    "SQLite",
		open:    openSQLite,
		noRoles: "an SQLite file has no roles: another URL, a grant, a definer and adoption are for PostgreSQL",
		noPrune: "origin.url is not a connection URL of PostgreSQL; in an SQLite file, apply drops what it does not need",
	},
}

// driverOf returns the driver that the configuration names.
func driverOf(cfg *config.Config) (*driver, error) {
	name, err := cfg.Origin.Driver()
	if err != nil {
		return nil, fmt.Errorf("origin: %w", err)
	}
	return drivers[name], nil
}

// wakes reports whether the stream of the origin can be asked to report
// immediately.
func wakes(cfg *config.Config) bool {
	d, err := driverOf(cfg)
	return err == nil && d.wakes
}

// loadLag returns how old the data that a load reads may be when the load starts.
func loadLag(cfg *config.Config) time.Duration {
	d, err := driverOf(cfg)
	if err != nil || d.loadLag == nil {
		return 0
	}
	return d.loadLag(cfg)
}

// maxConnections bounds the connections to one SQLite file: each has a page cache
// of 2 MiB, and more than a few times the number of cores only wait for one another.
const maxConnections = 16

func openSQLite(ctx context.Context, cfg *config.Config, options DatabaseOptions) (origin.Origin, error) {
	path, err := cfg.Origin.SQLitePath()
	if err != nil {
		return nil, fmt.Errorf("origin: %w", err)
	}
	connections := 0 // as many as there may be concurrent statements
	for _, r := range cfg.Resources {
		connections += r.Load.Concurrency
	}
	o, err := sqlite.Open(ctx, sqlite.Config{
		Path: path, MaxDocument: int(cfg.MaxDocument), Connections: min(connections, maxConnections), Logger: options.Logger,
	}, cfg.Declarations())
	if err != nil {
		return nil, err
	}
	return o, nil
}

func openPostgres(ctx context.Context, cfg *config.Config, options DatabaseOptions) (origin.Origin, error) {
	o, err := postgres.Open(ctx, postgresConfig(cfg, options), cfg.Declarations())
	if err != nil {
		return nil, err
	}
	return o, nil
}

// postgresConfig returns how a gateway with this configuration uses the database.
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
		// The gateway gives up first and reports it better than the server would.
		StatementTimeout: timeout + time.Second,
		PollInterval:     cfg.Origin.Poll,
		CheckInterval:    check,
		Freshness:        cfg.MinFreshness(),
		KeepChanges:      cfg.Origin.KeepChanges,
		KeepBytes:        cfg.Origin.KeepBytes,
		Logger:           options.Logger,
	}
}
