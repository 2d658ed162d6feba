package postgres

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// Config says how to reach the database. Only URL must be set.
type Config struct {
	// URL is a PostgreSQL connection URI, with several hosts if there are
	// standbys: the gateway keeps to the one that accepts writes. It may lead
	// through a pooler.
	URL string
	// StreamURL, if set, is where the stream connects: directly to the server,
	// when URL leads through a pooler. It is needed for Notify. Default: URL.
	StreamURL string
	// Notify makes Plan and Apply write triggers that send NOTIFY. Commits
	// that notify wait for one another; see OPERATIONS.md.
	Notify bool
	// GrantTo, if set, is a role that Plan and Apply let read the change table
	// and call what a gateway calls: the role of URL when another one, the
	// owner of the tables, applies. SELECT on the tables of the resources is
	// granted by their owner.
	GrantTo string
	// MaxDocument is the size in bytes above which a JSON body is refused;
	// 0 means 8 MiB.
	MaxDocument int
	// Connections is how many loads may run at once; 0 means 4. The stream has
	// a connection of its own on top.
	Connections int
	// StatementTimeout ends loads on the server too; 0 means 10 s.
	StatementTimeout time.Duration
	// PollInterval is how often the stream asks for changes; 0 means 25 ms.
	PollInterval time.Duration
	// CheckInterval is how often the stream verifies triggers and tables, and
	// so how often the horizon moves; 0 means 100 ms.
	CheckInterval time.Duration
	// KeepChanges is how long rows of the change table are kept; 0 means 24 h.
	KeepChanges time.Duration
	// Logger hears of what an operator should know; nil discards it.
	Logger *slog.Logger
}

func (cfg Config) withDefaults() Config {
	orElse(&cfg.MaxDocument, 8<<20)
	orElse(&cfg.Connections, 4)
	orElse(&cfg.StatementTimeout, 10*time.Second)
	orElse(&cfg.PollInterval, 25*time.Millisecond)
	orElse(&cfg.CheckInterval, 100*time.Millisecond)
	orElse(&cfg.KeepChanges, 24*time.Hour)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg
}

func orElse[T int | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Origin loads documents from one PostgreSQL database. Its methods may be called
// from many goroutines at once.
type Origin struct {
	// Immutable after Open.
	cfg       Config
	resources []resource.Resource
	keys      [][]resource.KeyColumn
	warnings  []string
	pool      *pgxpool.Pool

	// Atomics. Written by Open and then by the stream, read by loads. The
	// stream stores a new schema before it flushes the resources, so that a
	// load which began after the flush has used it.
	schema atomic.Pointer[schema]
	// history is the one that the stream follows, nil before its first poll. A
	// load that was read from another is answered with, but never stored.
	history atomic.Pointer[history]

	// wake makes the stream poll at once; of capacity one. Loads that met an
	// unexpected history or schema send without waiting.
	wake chan struct{}
}

// history identifies a line of commits that nothing was lost from.
type history struct {
	timeline    string // eight hexadecimal digits, as in names of WAL files
	incarnation string // the id in slipstream.incarnation, "" if there is none
}

// header is what a statement says about itself, in one text, to be read by
// parseHeader: its snapshot and the history it was read from. tracked is false
// while the schema slipstream does not exist.
func header(tracked bool) string {
	incarnation := "''"
	if tracked {
		incarnation = "(SELECT id::pg_catalog.text FROM slipstream.incarnation)"
	}
	// pg_current_wal_lsn fails on a standby: what is read there is of no use.
	return "pg_catalog.concat_ws('/', pg_catalog.pg_current_snapshot(), " +
		"pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8), " + incarnation + ")"
}
