package gateway

import (
	"context"
	"errors"
	"log/slog"

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// Database is the origin of a configuration as administrators see it: the triggers
// that the promise of its resources needs.
type Database interface {
	// Plan returns the statements that would make the triggers what they
	// should be, in order. It changes nothing.
	Plan(ctx context.Context) ([]Statement, error)
	// Apply runs what Plan returns, in one transaction, and returns it.
	Apply(ctx context.Context) ([]Statement, error)
	// Check returns every object that the promise needs, and its state.
	Check(ctx context.Context) ([]Finding, error)
	// Drop removes everything that Apply ever created, and returns the statements.
	Drop(ctx context.Context) ([]Statement, error)
	// KeyColumns returns the key columns of the i-th resource, in path order.
	KeyColumns(i int) []resource.KeyColumn
	// Shape returns what the documents of the i-th resource look like, or nil if
	// that is unknown, as for those of a statement.
	Shape(i int) *resource.Shape
	// Warnings returns, in sentences, what works but will be slow.
	Warnings() []string
	Close() error
}

var _ Database = origin.Origin(nil)

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
	LeftOver       = origin.LeftOver       // of another definition; it only costs writers time
	Foreign        = origin.Foreign        // there, but belongs to a role that may change it
	SuperuserOwned = origin.SuperuserOwned // a trigger function that runs with the rights of a superuser
)

// DatabaseOptions are the settings of a [Database] apart from the configuration.
// The zero value is usable.
type DatabaseOptions struct {
	// URL connects as another role than the gateway's: such as the owner of the
	// tables, which may create triggers. Only for PostgreSQL. Default: that of the
	// configuration.
	URL string
	// GrantTo is the role that Plan and Apply let read the record of changes:
	// the gateway's, if URL names another. Only for PostgreSQL.
	GrantTo string
	// Definer is the role that Plan and Apply give the trigger functions to. It
	// should have no privileges: code of the owners of tables runs with its
	// privileges. Plan shows how to create it. Only for PostgreSQL. Default: the role
	// that the functions belong to; on a first installation the role that applies, if
	// it is not a superuser and owns every table concerned.
	Definer string
	// Adopt lets Plan and Apply give the schema slipstream and all in it to the role
	// that applies, and the trigger functions to Definer, regardless of their present
	// owners. Only for PostgreSQL.
	Adopt bool
	// Logger receives what operators should know. If nil, it is discarded.
	Logger *slog.Logger

	serves bool // it is opened by a gateway
}

// hasRoles reports whether an option is set that concerns roles of PostgreSQL.
func (o DatabaseOptions) hasRoles() bool {
	return o.URL != "" || o.GrantTo != "" || o.Definer != "" || o.Adopt
}

// OpenDatabase opens the origin of a configuration, which verifies tables, columns
// and keys. The error wraps [cache.ErrUnavailable] if the database cannot be
// reached, and holds a [SchemaError] for every resource that does not fit it. The
// caller closes it.
func OpenDatabase(ctx context.Context, cfg *config.Config, options DatabaseOptions) (Database, error) {
	o, err := openOrigin(ctx, cfg, options)
	if err != nil {
		return nil, err
	}
	return o, nil
}

func openOrigin(ctx context.Context, cfg *config.Config, options DatabaseOptions) (origin.Origin, error) {
	full := cfg.WithDefaults()
	d, err := driverOf(&full)
	switch {
	case err != nil:
		return nil, err
	case d.noRoles != "" && options.hasRoles():
		return nil, errors.New(d.noRoles)
	case options.URL != "":
		full.Origin.URL, full.Origin.StreamURL = options.URL, ""
		other, err := full.Origin.Driver()
		if err != nil || drivers[other] != d {
			return nil, errors.Join(errors.New("the URL of the other role is not a connection URL of "+d.name), err)
		}
	}
	return d.open(ctx, &full, options)
}

// ApplyTriggers installs the triggers that the promise of the configuration's
// resources needs, as "slipstream db apply" does. It is safe to call when they are
// in place already.
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
// dropped, too. It connects with options.URL or that of the first configuration.
func Prune(ctx context.Context, configs []*config.Config, options DatabaseOptions, report func(Statement)) error {
	if len(configs) == 0 {
		return errors.New("prune: no configuration; expected those of every gateway over the database")
	}
	var others [][]resource.Resource
	for i, cfg := range configs {
		full := cfg.WithDefaults()
		d, err := driverOf(&full)
		switch {
		case err != nil:
			return err
		case d.noPrune != "":
			return errors.New("prune: " + d.noPrune)
		}
		if i > 0 {
			others = append(others, full.Declarations())
		}
	}
	o, err := openOrigin(ctx, configs[0], options)
	if err != nil {
		return err
	}
	return errors.Join(o.Prune(ctx, others, report), o.Close())
}

// Retained reports, in sentences, what the change table of a database keeps, which of
// its bounds applies, and what a longer gap costs. It returns none for an SQLite file,
// and if there is no such table or the role may not read it.
func Retained(ctx context.Context, db Database) ([]string, error) {
	o, ok := db.(origin.Administration)
	if !ok {
		return nil, nil
	}
	r, ok, err := o.Retention(ctx)
	if err != nil || !ok {
		return nil, err
	}
	return r.Sentences(), nil
}
