package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

// trackedSettings are the pinned settings that PgBouncer tracks for each client and
// therefore accepts at the start of a session.
func trackedSettings() map[string]string {
	return map[string]string{
		"client_encoding":             "UTF8",
		"DateStyle":                   "ISO",
		"TimeZone":                    "UTC",
		"standard_conforming_strings": "on",
		"application_name":            "slipstream",
	}
}

// directSettings are the other pinned settings, which a pooler may refuse.
func directSettings(statementTimeout time.Duration) map[string]string {
	return map[string]string{
		// Polls read forty times per second, forever. As SERIALIZABLE transactions
		// they would make writers fail, and every statement must have its own
		// snapshot.
		"default_transaction_isolation": "read committed",
		// Settings that determine the form of values in documents.
		"IntervalStyle":      "iso_8601",
		"extra_float_digits": "1",
		"bytea_output":       "hex",
		// A load takes a millisecond. Compiling it costs 100, starting a worker 10.
		"jit":                             "off",
		"max_parallel_workers_per_gather": "0",
		// The plan of a load depends on no parameter (see loadStatement), so it
		// is made once per connection. By default PostgreSQL plans a load of one
		// key again each time, because the generic plan is costed for ten: 150 us
		// of CPU instead of 48 for a document with ten children.
		"plan_cache_mode":   "force_generic_plan",
		"statement_timeout": strconv.FormatInt(statementTimeout.Milliseconds(), 10),
	}
}

// ours are the pinned settings that a URL may override.
var ours = []string{"application_name", "statement_timeout", "jit", "max_parallel_workers_per_gather", "plan_cache_mode"}

// connector makes connections with pinned settings to the servers of one URL.
type connector struct {
	// Immutable after newConnector.
	pool   *pgxpool.Config
	direct map[string]string // the settings that a pooler may refuse
	mode   bool              // the URL names a query mode
	// several hosts may be the primary.
	several bool
	// warnings are about files with secrets that the URL names, in sentences.
	warnings []string
	// readOnlyWillDo says that the URL does not require a server that accepts writes.
	readOnlyWillDo bool

	// Atomic: set when a pooler has refused the direct settings, read by
	// every later attempt.
	pooled atomic.Bool
	// Atomic: of several hosts the one that the stream follows, and the one that dial
	// reached last.
	followed, reached atomic.Pointer[pgx.ConnConfig]
}

// newConnector reads a URL. An error does not show its password.
func newConnector(url string, statementTimeout time.Duration) (*connector, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	warnings, err := judgeFiles(url, cfg)
	if err != nil {
		return nil, err
	}
	c := &connector{
		pool: cfg,

		warnings: warnings,
		direct:   directSettings(statementTimeout),
		mode:     strings.Contains(url, "default_query_exec_mode"),
	}
	params := cfg.ConnConfig.RuntimeParams
	for name := range maps.Clone(params) {
		pinned := func(s string) bool { return strings.EqualFold(s, name) }
		if slices.ContainsFunc(ours, pinned) {
			maps.DeleteFunc(c.direct, func(s, _ string) bool { return pinned(s) })
			continue
		}
		if slices.ContainsFunc(slices.Collect(maps.Keys(c.direct)), pinned) || slices.ContainsFunc(slices.Collect(maps.Keys(trackedSettings())), pinned) {
			delete(params, name)
		}
	}
	for name, value := range trackedSettings() {
		if _, set := params[name]; !set {
			params[name] = value
		}
	}
	maps.Copy(params, c.direct)
	// Of several hosts, loads and stream must reach the same one.
	c.several = slices.ContainsFunc(cfg.ConnConfig.Fallbacks, func(f *pgconn.FallbackConfig) bool {
		return f.Host != cfg.ConnConfig.Host || f.Port != cfg.ConnConfig.Port
	})
	switch {
	case !c.several:
	case !strings.Contains(url, "target_session_attrs") && os.Getenv("PGTARGETSESSIONATTRS") == "":
		cfg.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	default:
		c.readOnlyWillDo = !strings.Contains(url, "read-write") && os.Getenv("PGTARGETSESSIONATTRS") != "read-write"
	}
	if cfg.ConnConfig.ConnectTimeout == 0 || cfg.ConnConfig.ConnectTimeout > time.Minute {
		cfg.ConnConfig.ConnectTimeout = 10 * time.Second // a host at a time
		if c.several {
			cfg.ConnConfig.ConnectTimeout = hostTimeout
		}
	}
	// If the context of a load ends, the load is also canceled on the server, and
	// the connection is kept. If the server does not answer, the connection is
	// closed.
	cfg.ConnConfig.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: time.Second}
	}
	cfg.BeforeConnect = func(_ context.Context, conn *pgx.ConnConfig) error {
		if c.pooled.Load() {
			c.reduce(conn)
		}
		if c.several {
			if host := c.followed.Load(); host != nil {
				c.prefer(conn, host)
			} else {
				c.prefer(conn, c.reached.Load())
			}
			noteDial(conn)
		}
		return nil
	}
	return c, nil
}

// reduce removes from a configuration what a pooler refuses.
func (c *connector) reduce(conn *pgx.ConnConfig) {
	conn.RuntimeParams = maps.Clone(conn.RuntimeParams)
	for name := range c.direct {
		delete(conn.RuntimeParams, name)
	}
	if !c.mode {
		// The next statement may run on another server connection, which
		// does not have the statements that were prepared on this one.
		conn.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
}

// refused notes whether err is a pooler's refusal of a setting, and reports
// whether another attempt without the refused ones makes sense.
func (c *connector) refused(err error) bool {
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || c.pooled.Load() {
		return false
	}
	isRefusal := pgErr.Code == "08P01" && strings.Contains(pgErr.Message, "startup parameter") || // PgBouncer
		pgErr.Code == "42704" // a server that does not know one of them
	if isRefusal {
		c.pooled.Store(true)
	}
	return isRefusal
}

// connect opens a connection outside of any pool.
func (c *connector) connect(ctx context.Context) (*pgx.Conn, error) {
	for {
		cfg := c.pool.ConnConfig.Copy()
		if c.pooled.Load() {
			c.reduce(cfg)
		}
		c.prefer(cfg, c.followed.Load())
		conn, err := c.dial(ctx, cfg)
		if err == nil || !c.refused(err) {
			return conn, err
		}
	}
}

// connectHost opens a connection to one of the hosts.
func (c *connector) connectHost(ctx context.Context, host *pgx.ConnConfig) (*pgx.Conn, error) {
	for {
		cfg := host.Copy()
		if c.pooled.Load() {
			c.reduce(cfg)
		}
		conn, err := pgx.ConnectConfig(ctx, cfg)
		if err == nil || !c.refused(err) {
			return conn, err
		}
	}
}

// where names the server and the database for messages.
func (c *connector) where() string {
	cfg := c.pool.ConnConfig
	return fmt.Sprintf("%s:%d/%s", cfg.Host, cfg.Port, cfg.Database)
}

// unpinned returns a sentence for each setting that a pooler did not let the
// connection pin and whose value on the server differs.
func (c *connector) unpinned(ctx context.Context, tx pgx.Tx) ([]string, error) {
	if !c.pooled.Load() {
		return nil, nil
	}
	names := slices.Sorted(maps.Keys(c.direct))
	rows, err := tx.Query(ctx, `SELECT name, setting, pg_catalog.quote_ident(current_user)
		FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.text[]) ORDER BY name`, names)
	if err != nil {
		return nil, err
	}
	var warnings []string
	var name, setting, role string
	_, err = pgx.ForEachRow(rows, []any{&name, &setting, &role}, func() error {
		if want := c.direct[name]; want != setting {
			warnings = append(warnings, fmt.Sprintf("the pooler at %s does not accept the startup parameter %s, which is %s and should be %s: ALTER ROLE %s SET %s = %s",
				c.where(), name, setting, want, role, name, quoteText(want)))
		}
		return nil
	})
	return warnings, err
}

// connectOne opens a connection for the stream, which the caller closes. Errors
// wrap [cache.ErrUnavailable].
func (o *Origin) connectOne(ctx context.Context) (*pgx.Conn, error) {
	conn, err := o.streamTo.connect(ctx)
	if err != nil {
		return nil, o.wrapError(ctx, "connect the stream", o.streamTo, err)
	}
	return conn, nil
}
