package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/gateway/origin/tree"
)

// Config configures an [Origin]. Only Path must be set.
type Config struct {
	// Path of the database file. It is never created.
	Path string
	// MaxDocument is the size in bytes above which a JSON body is refused;
	// 0 means 8 MiB.
	MaxDocument int
	// Connections is the maximum number of concurrent loads; further ones wait, at the
	// cost of their timeout. It should be the sum of the concurrent statements of
	// the cache (Resource.MaxLoads), up to a few times the number of cores: each
	// connection has a page cache of 2 MiB. If zero, it defaults to 4, the cache's
	// default for one resource. The stream has an additional connection.
	Connections int
	// BusyTimeout is how long a statement waits for a writer's lock; 0 means 1 s.
	BusyTimeout time.Duration
	// PollInterval is how often the stream polls for changes. If zero, it defaults
	// to 100 ms. The horizon is never older than this plus one poll.
	PollInterval time.Duration
	// KeepChanges is how long rows of the change table are kept. If zero, it
	// defaults to 24 h.
	KeepChanges time.Duration
	// Logger receives what operators should know. If nil, it is discarded.
	Logger *slog.Logger
}

func (cfg Config) withDefaults() Config {
	if cfg.MaxDocument <= 0 {
		cfg.MaxDocument = 8 << 20
	}
	if cfg.Connections <= 0 {
		cfg.Connections = 4
	}
	if cfg.BusyTimeout <= 0 {
		cfg.BusyTimeout = time.Second
	}
	if cfg.PollInterval <= 0 {
		cfg.PollInterval = 100 * time.Millisecond
	}
	if cfg.KeepChanges <= 0 {
		cfg.KeepChanges = 24 * time.Hour
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg
}

// Origin loads documents from one SQLite file. See [origin.Origin].
type Origin struct {
	// Immutable after Open.
	cfg      Config
	warnings []string
	slots    chan struct{} // one token per connection in use

	// The resources. Atomic: written by Open, Extend and Retire, one at a time; read by
	// the stream and by loads.
	set atomic.Pointer[origin.Set]
	// Atomics: the stream writes, loads read. The file that the stream has open
	// or had open last; nil before it first opened one. See loadAll.
	followed atomic.Pointer[fs.FileInfo]
	// The schema that the stream saw last, or that of Open before that. Loads use
	// that of their own snapshot.
	current atomic.Pointer[schema]

	// Guarded by mu.
	mu     sync.Mutex
	idle   []*conn // last used last
	closed bool
}

var _ origin.Origin = (*Origin)(nil)

// Open reads the schema of the database and resolves the resources against it. The
// error wraps [cache.ErrUnavailable] if the database cannot be read now but may be
// later, and holds a *[SchemaError] for every resource that does not match it.
// Triggers need not exist yet: see [Origin.Check] and [Stream].
func Open(ctx context.Context, cfg Config, resources []resource.Resource) (*Origin, error) {
	path, err := filepath.Abs(cfg.Path)
	if cfg.Path == "" || err != nil {
		return nil, fmt.Errorf("sqlite: no usable path of a database file: %q", cfg.Path)
	}
	cfg.Path = path
	o := &Origin{cfg: cfg.withDefaults()}
	o.set.Store(origin.NewSet(resources))
	o.slots = make(chan struct{}, o.cfg.Connections)
	var found *schema
	err = o.withConn(ctx, "open", func(c *conn) error {
		return c.read(func() error {
			if err := o.adopt(c); err != nil {
				return err
			}
			found = c.schema
			return nil
		})
	})
	if err != nil {
		o.Close()
		return nil, err
	}
	first, err := tree.Addition(found.set, found.resources)
	if err != nil {
		o.Close()
		return nil, err
	}
	o.warnings = first.Warnings
	found.set.Keys = first.Keys // the set is not shared yet
	o.current.Store(found)
	return o, nil
}

// KeyColumns returns the key columns of the i-th resource, in path order.
func (o *Origin) KeyColumns(i int) []resource.KeyColumn { return o.set.Load().Keys[i] }

// Warnings returns what works but will be slow, in sentences.
func (o *Origin) Warnings() []string { return o.warnings }

// Close closes the connections. Loads in flight finish on their own connections,
// which are closed when they are returned.
func (o *Origin) Close() error {
	o.mu.Lock()
	idle := o.idle
	o.idle, o.closed = nil, true
	o.mu.Unlock()
	for _, c := range idle {
		c.close()
	}
	return nil
}

// withConn runs do on a connection whose file is the one at the path.
func (o *Origin) withConn(ctx context.Context, doing string, do func(*conn) error) error {
	select {
	case o.slots <- struct{}{}:
	case <-ctx.Done():
		// This is not caused by the keys: it is unavailable, because otherwise the
		// cache would retry in halves and make the shortage worse.
		return fmt.Errorf("sqlite: %s: none of %d connections became free: %w: %w",
			doing, cap(o.slots), cache.ErrUnavailable, context.Cause(ctx))
	}
	defer func() { <-o.slots }()
	c, err := o.acquire(ctx)
	if err != nil {
		return err
	}
	c.SetInterrupt(ctx)
	err = do(c)
	if !c.crashed {
		c.SetInterrupt(context.Background())
	}
	o.release(c, err)
	return o.wrapError(ctx, doing, err)
}

// acquire returns an idle connection or opens one. A connection whose file was
// replaced is closed instead: the check comes before the caller's snapshot, so a
// load never reads a file that was replaced before the load began.
func (o *Origin) acquire(ctx context.Context) (*conn, error) {
	for {
		o.mu.Lock()
		if o.closed {
			o.mu.Unlock()
			return nil, fmt.Errorf("sqlite: %s: %w", o.cfg.Path, cache.ErrClosed)
		}
		if len(o.idle) == 0 {
			o.mu.Unlock()
			return o.open(ctx)
		}
		c := o.idle[len(o.idle)-1]
		o.idle = o.idle[:len(o.idle)-1]
		o.mu.Unlock()
		moved, err := c.moved()
		if err == nil && !moved {
			return c, nil
		}
		c.close()
	}
}

// release keeps the connection unless it has failed.
func (o *Origin) release(c *conn, err error) {
	var sqliteErr *sqlite3.Error
	broken := errors.As(err, &sqliteErr) && sqliteErr.Code() != sqlite3.BUSY && sqliteErr.Code() != sqlite3.INTERRUPT
	o.mu.Lock()
	keep := !c.crashed && !broken && !o.closed && c.GetAutocommit()
	if keep {
		o.idle = append(o.idle, c)
	}
	o.mu.Unlock()
	if !keep {
		c.close()
	}
}

// adopt makes c use the schema of its current snapshot, which it only reads if the
// schema's version or the resources have changed.
func (o *Origin) adopt(c *conn) error {
	version, err := c.schemaVersion()
	if err != nil {
		return err
	}
	set := o.set.Load()
	if c.schema != nil && c.schema.version == version && c.schema.set == set {
		return nil
	}
	s, err := readSchema(c.Conn, version, set)
	if err != nil {
		return err
	}
	s.refuseNewKinds()
	c.setSchema(s)
	return nil
}
