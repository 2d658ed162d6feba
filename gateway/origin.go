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
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// connection is an origin that was reached, with its stream.
type connection struct {
	database origin.Origin
	stream   origin.Stream
}

// connect opens the origin that the configuration names, which has its defaults.
func connect(ctx context.Context, cfg *config.Config, log *slog.Logger) (*connection, error) {
	d, err := driverOf(cfg)
	if err != nil {
		return nil, err
	}
	o, err := d.open(ctx, cfg, DatabaseOptions{Logger: log, serves: true})
	if err != nil {
		return nil, err
	}
	return &connection{database: o, stream: o.Changes(bootTime)}, nil
}

// lateOrigin is the origin of the cache from the start on. Until the database
// has been reached, loads fail as unavailable.
type lateOrigin struct {
	// Written once by the goroutine that connects, read by all.
	reached atomic.Pointer[connection]
}

// errNotReached is the error of loads before the database is reached.
var errNotReached = fmt.Errorf("not reached yet: %w", cache.ErrUnavailable)

// Load implements [cache.Origin].
func (l *lateOrigin) Load(ctx context.Context, r cache.ResourceID, ids []string) (cache.Batch, error) {
	c := l.reached.Load()
	if c == nil {
		return cache.Batch{}, errNotReached
	}
	return c.database.Load(ctx, r, ids)
}

// wake is the cache's Wake. Before the database is reached there is no stream, and
// nothing cached to verify.
func (l *lateOrigin) wake() {
	if c := l.reached.Load(); c != nil {
		c.stream.Wake()
	}
}

// Times between attempts to reach the database.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// The time limits of the first and of later attempts. No listener is open
// before the first one has ended, and a server that hangs answers none of them.
const (
	connectPatience = 5 * time.Second
	lastPatience    = time.Minute
)

// connectWithin is connect, but treats a database that does not answer in time as
// one that cannot be reached.
func connectWithin(ctx context.Context, patience time.Duration, cfg *config.Config, log *slog.Logger) (*connection, error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := connect(limited, cfg, log)
	if err != nil && limited.Err() != nil && ctx.Err() == nil && !errors.Is(err, cache.ErrUnavailable) {
		err = fmt.Errorf("no answer within %v: %w: %w", patience, cache.ErrUnavailable, err)
	}
	return c, err
}

// reach connects, and retries while the database cannot be reached. It returns early
// for errors that waiting does not fix, such as a missing column, and when ctx ends.
func (g *Gateway) reach(ctx context.Context) (*connection, error) {
	patience := connectPatience
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		patience = min(2*patience, lastPatience) // reading the catalogs of a large, busy database takes a while
		c, err := connectWithin(ctx, patience, g.config, g.log)
		if err == nil || !errors.Is(err, cache.ErrUnavailable) {
			return c, err
		}
		why := err.Error()
		if last := g.waiting.Swap(&why); last == nil || *last != why {
			g.log.Warn("the database cannot be reached; retrying", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}
