package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/gateway/origin/tree"
)

// Config configures an [Origin]. Only URL must be set.
type Config struct {
	// URL is a PostgreSQL connection URI, with several hosts if there are
	// standbys: the gateway uses the one that accepts writes. It may lead through
	// a pooler.
	URL string
	// StreamURL, if set, is where the stream connects: directly to the server,
	// when URL leads through a pooler. It is needed for Notify. Default: URL.
	StreamURL string
	// Notify makes Plan and Apply write triggers that send NOTIFY. Commits
	// that notify wait for one another; see docs/operations/postgresql.md.
	Notify bool
	// GrantTo, if set, is a role to which Plan and Apply grant reading the change
	// table and calling the functions of a gateway: the role of the gateway's
	// URL, if a different role, such as the owner of the tables, runs Apply.
	// SELECT on the tables of the resources is granted by their owner.
	GrantTo string
	// Definer is the role that Plan and Apply give the trigger functions to. It needs
	// no privileges; Plan shows how to create it. Default: the role that they belong to,
	// and on a first installation the role that applies, if it is not a superuser and
	// owns every table concerned.
	Definer string
	// Adopt lets Plan and Apply give the schema slipstream and all in it to the role
	// that applies, and the trigger functions to Definer, regardless of their present
	// owners.
	Adopt bool
	// Administer says that the origin is opened for Plan, Apply, Check and Drop, by a
	// role that may have more privileges than the gateway's. Then Open executes
	// no code of users: it verifies the resources without planning statements
	// under the search path of the role.
	Administer bool
	// MaxDocument is the size in bytes above which a JSON body is refused;
	// 0 means 8 MiB.
	MaxDocument int
	// Connections is the maximum number of concurrent loads. If zero, it defaults to 4.
	// The stream has an additional connection.
	Connections int
	// StatementTimeout ends loads on the server too; 0 means 10 s.
	StatementTimeout time.Duration
	// PollInterval is how often the stream polls for changes. If zero, it defaults
	// to 25 ms.
	PollInterval time.Duration
	// CheckInterval is how often the stream verifies triggers and tables, and
	// so how often the horizon moves; 0 means 100 ms.
	CheckInterval time.Duration
	// Freshness is the smallest bound of the resources. How far the clocks of
	// gateway and server may diverge between two polls is proportional to it. If
	// zero, it defaults to 1 s.
	Freshness time.Duration
	// KeepChanges is how long rows of the change table are kept. If zero, it
	// defaults to 24 h.
	KeepChanges time.Duration
	// KeepBytes is the size of the rows of the change table, with their index entries,
	// above which the oldest are deleted, regardless of their age. If zero, it
	// defaults to 1 GiB.
	KeepBytes int64
	// Logger receives what operators should know. If nil, it is discarded.
	Logger *slog.Logger
}

func (cfg Config) withDefaults() Config {
	orElse(&cfg.MaxDocument, 8<<20)
	orElse(&cfg.Connections, 4)
	orElse(&cfg.StatementTimeout, 10*time.Second)
	orElse(&cfg.PollInterval, 25*time.Millisecond)
	orElse(&cfg.CheckInterval, 100*time.Millisecond)
	orElse(&cfg.Freshness, time.Second)
	orElse(&cfg.KeepChanges, 24*time.Hour)
	orElse(&cfg.KeepBytes, 1<<30)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg
}

func orElse[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Origin loads documents from one PostgreSQL database. See [origin.Origin].
type Origin struct {
	// Immutable after Open.
	cfg      Config
	warnings []string
	loadFrom *connector
	streamTo *connector // loadFrom without a StreamURL
	pool     *pgxpool.Pool
	database string    // its name, as the server at URL knows it
	began    time.Time // the zero time of met

	// The resources. Atomic: written by Open, Extend and Retire, one at a time; read by
	// the stream.
	set atomic.Pointer[origin.Set]

	// Atomics. Written by Open and then by the stream, read by loads. The
	// stream stores a new schema before it flushes the resources, so that a
	// load which began after the flush has used it.
	schema atomic.Pointer[schema]
	// history is the one that the stream follows, or nil before its first poll. A
	// load from another one is served, but never stored.
	history atomic.Pointer[history]

	// lineage is the highest known timeline of the system that the stream follows, or nil
	// before its first survey without a store. Lower timelines are neither loaded from
	// nor followed.
	lineage atomic.Pointer[lineage]

	// met is the time since began up to which the stream last vouched that the server
	// which it follows is the primary.
	met atomic.Int64

	// wake makes the stream poll immediately; its capacity is one. Loads that find
	// an unexpected history or schema send without blocking.
	wake chan struct{}
}

var _ origin.Origin = (*Origin)(nil)

// minVersion is the oldest version that has the catalogs and functions used
// here: its pg_inherits has a column for partitions that are being detached.
const minVersion = 14

// Open connects to the database and resolves the resources against it. The error
// wraps [cache.ErrUnavailable] if the database cannot be read now but may be
// later, is an *[origin.SettingError] if waiting does not fix the URL, and holds an
// *[origin.SchemaError] for every resource that does not match the database.
// Triggers need not exist yet: see [Origin.Check].
func Open(ctx context.Context, cfg Config, resources []resource.Resource) (*Origin, error) {
	o := &Origin{cfg: cfg.withDefaults(), began: time.Now(), wake: make(chan struct{}, 1)}
	o.set.Store(origin.NewSet(resources))
	var err error
	if o.loadFrom, err = newConnector(o.cfg.URL, o.cfg.StatementTimeout); err != nil {
		return nil, &origin.SettingError{Setting: "url", Err: err}
	}
	o.streamTo = o.loadFrom
	if o.cfg.StreamURL != "" {
		if o.streamTo, err = newConnector(o.cfg.StreamURL, o.cfg.StatementTimeout); err != nil {
			return nil, &origin.SettingError{Setting: "stream_url", Err: err}
		}
	}
	s, err := o.readFirst(ctx)
	if unknownParameter(err) {
		return nil, &origin.SettingError{Setting: "url", Err: fmt.Errorf("postgres: a parameter that the server refuses: %w", oneLine{err})}
	}
	if err != nil {
		return nil, o.wrapError(ctx, "open", o.loadFrom, err)
	}
	first, err := tree.Addition(s.set, s.resources)
	if err != nil {
		return nil, err
	}
	o.warnings = append(o.warnings, o.loadFrom.warnings...)
	if o.streamTo != o.loadFrom {
		o.warnings = append(o.warnings, o.streamTo.warnings...)
	}
	o.warnings = append(o.warnings, first.Warnings...)
	s.set.Keys = first.Keys // the set is not shared yet
	o.schema.Store(s)
	pool := o.loadFrom.pool
	pool.MaxConns = int32(min(o.cfg.Connections, 10_000))
	pool.HealthCheckPeriod = 10 * time.Second
	pool.PingTimeout = 5 * time.Second
	if o.pool, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		return nil, o.wrapError(ctx, "open", o.loadFrom, err)
	}
	return o, nil
}

// readFirst checks the server and reads the schema through a separate connection.
func (o *Origin) readFirst(ctx context.Context) (*schema, error) {
	conn, err := o.loadFrom.connect(ctx)
	if err != nil {
		return nil, err
	}
	// ctx may have ended; the server notices the closed socket anyway.
	defer func() { _ = conn.Close(ctx) }()
	var s *schema
	err = readCatalog(ctx, conn, o.set.Load(), func(tx pgx.Tx) error {
		var version int
		var standby bool
		var encoding string
		err := tx.QueryRow(ctx, `SELECT pg_catalog.current_setting('server_version_num')::pg_catalog.int4 OPERATOR(pg_catalog./) 10000, pg_catalog.pg_is_in_recovery(),
			pg_catalog.current_setting('server_encoding'), pg_catalog.current_database()::pg_catalog.text`).Scan(&version, &standby, &encoding, &o.database)
		switch {
		case err != nil:
			return err
		case version < minVersion:
			return fmt.Errorf("the server is PostgreSQL %d; expected %d or later", version, minVersion)
		case standby:
			return errors.New("the server is a standby, which cannot be the origin: name the primary, or all hosts with target_session_attrs=read-write")
		case encoding == "SQL_ASCII":
			o.warnings = append(o.warnings, "the encoding of the database is SQL_ASCII: documents with text that is not UTF-8 are not JSON")
		}
		unpinned, err := o.loadFrom.unpinned(ctx, tx)
		if err != nil {
			return err
		}
		o.warnings = append(o.warnings, unpinned...)
		if o.cfg.Administer {
			s, err = administeredSchema(ctx, tx, o.set.Load())
		} else {
			s, err = readSchema(ctx, tx, o.set.Load())
		}
		return err
	})
	return s, err
}

// KeyColumns returns the key columns of the i-th resource, in path order.
func (o *Origin) KeyColumns(i int) []resource.KeyColumn { return o.set.Load().Keys[i] }

// Warnings returns, in sentences, what works but could work better.
func (o *Origin) Warnings() []string { return o.warnings }

// closePatience is how long Close waits. A server that hangs keeps the driver
// waiting for 15 s for each connection to be closed from the other side.
const closePatience = 2 * time.Second

// Close closes the connections of loads, and waits for those in flight, but not
// long for a server that does not answer.
func (o *Origin) Close() error {
	closed := make(chan struct{})
	// Ends within the 15 s of the driver; Close waits for the first two.
	go func() {
		defer close(closed)
		o.pool.Close()
	}()
	select {
	case <-closed:
	case <-time.After(closePatience):
		o.cfg.Logger.Warn("connections to a server that does not answer were abandoned", "within", closePatience)
	}
	return nil
}

// history identifies a sequence of commits from which nothing was lost.
type history struct {
	timeline    string // eight hexadecimal digits, as in names of WAL files
	incarnation string // the id in slipstream.incarnation, or "" if there is none
	database    string // the oid of the database, which a copy of it does not share
}

// header is the text in which a statement describes itself, for parseHeader: its
// snapshot and the history it was read from. tracked is false while the schema
// slipstream does not exist.
func header(tracked bool) string {
	incarnation := "''"
	if tracked {
		incarnation = "COALESCE((SELECT id::pg_catalog.text FROM slipstream.incarnation), '')"
	}
	// pg_current_wal_lsn fails on a standby: data that is read there is of no use.
	return "pg_catalog.concat_ws('/', pg_catalog.pg_current_snapshot(), " +
		"pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8), " + incarnation + ", " +
		"(SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()))"
}
