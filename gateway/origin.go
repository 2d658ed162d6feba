package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/gateway/origin/sqlite"
	"github.com/slipstream-go/slipstream/gateway/resource"
)

// database is what the gateway asks of an origin once it was reached.
type database interface {
	cache.Origin
	KeyColumns(i int) []resource.KeyColumn
	Warnings() []string
	Close() error
}

// stream is the invalidation stream of an origin. Run returns when ctx ends.
type stream interface {
	Run(ctx context.Context, sink cache.Invalidations) error
}

// connection is an origin that was reached, with its stream.
type connection struct {
	database database
	stream   stream
	stats    func() originStats
}

// originStats are the figures of an origin that the metrics show.
type originStats struct {
	polls, pollErrors, events int64
	lastPoll                  time.Duration
}

// connect opens the origin that the configuration names: the one place that
// knows which there are.
func connect(ctx context.Context, cfg *config.Config, log *slog.Logger) (*connection, error) {
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

// ApplyTriggers makes the triggers of the database those that the promise of the
// configuration's resources needs, as "slipstream db apply" does. It is safe to
// call when they are in place already.
func ApplyTriggers(ctx context.Context, cfg *config.Config) error {
	full := cfg.WithDefaults()
	o, err := openSQLite(ctx, &full, nil)
	if err != nil {
		return err
	}
	_, err = o.Apply(ctx)
	return errors.Join(err, o.Close())
}

// lateOrigin is the origin of the cache from the start on; until the database
// was reached, loads fail as unavailable.
type lateOrigin struct {
	// Written once by the goroutine that connects, read by all.
	reached atomic.Pointer[connection]
}

// errNotReached is what loads get before the database was reached.
var errNotReached = fmt.Errorf("not reached yet: %w", cache.ErrUnavailable)

// Load implements [cache.Origin].
func (l *lateOrigin) Load(ctx context.Context, r cache.ResourceID, ids []string) (cache.Batch, error) {
	c := l.reached.Load()
	if c == nil {
		return cache.Batch{}, errNotReached
	}
	return c.database.Load(ctx, r, ids)
}

// Times between attempts to reach the database.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// reach connects, and tries again while the database is not there. It returns
// early for what no waiting mends, such as a column that does not exist, and when
// ctx ends.
func (g *Gateway) reach(ctx context.Context) (*connection, error) {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		c, err := connect(ctx, g.config, g.log)
		if err == nil || !errors.Is(err, cache.ErrUnavailable) {
			return c, err
		}
		why := err.Error()
		if last := g.waiting.Swap(&why); last == nil || *last != why {
			g.log.Warn("the database cannot be reached, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}
