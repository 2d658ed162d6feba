package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// errOldPrimary is the error of a load from a server on an abandoned timeline.
var errOldPrimary = errors.New("this server is on an older timeline than the one that changes are read from: it is a former primary")

// fault is what an SQLSTATE reveals about the database.
type fault struct {
	prefix  string // of the SQLSTATE
	changed bool   // the schema differs from the compiled one
	hint    string // what to do about it, "" if the message suffices
}

// unavailable lists the states that say something about the database or about
// the statement, and nothing about its keys: any other request would fail in the
// same way. The first matching prefix counts. All other states may be caused by the
// data of one key, and the cache then loads the keys in halves.
var unavailable = []fault{
	{prefix: "08P01", hint: "if this is a pooler, see its ignore_startup_parameters"},
	{prefix: "08"},
	{prefix: "0A000", changed: true, hint: "a table or a function was changed"},
	{prefix: "25006", hint: "the server accepts no writes: name the primary, or all hosts with target_session_attrs=read-write"},
	{prefix: "26000", hint: "a pooler gives statements to different servers: add default_query_exec_mode=exec to the URL, or prepare for the pooler's max_prepared_statements"},
	{prefix: "28", hint: "check user, password and pg_hba.conf"},
	{prefix: "3D000", hint: "check the name of the database in the URL"},
	{prefix: "3F000", changed: true, hint: "a schema was dropped or renamed"},
	{prefix: "42501", changed: true, hint: "the gateway's role lacks a privilege: GRANT SELECT on the tables of its resources, and for the schema slipstream run slipstream db apply --grant ROLE"},
	{prefix: "42P05", hint: "a pooler gives statements to different servers: add default_query_exec_mode=exec to the URL, or prepare for the pooler's max_prepared_statements"},
	{prefix: "42", changed: true, hint: "a table, column, type or function was dropped, renamed or changed"},
	{prefix: "53100", hint: "the server's disk is full"},
	{prefix: "53200", hint: "the server is out of memory"},
	{prefix: "53300", hint: "the server has no connection left: raise max_connections or lower connections of the gateways"},
	{prefix: "53"},
	{prefix: "55000", hint: "a standby cannot be the origin: name the primary, or all hosts with target_session_attrs=read-write"},
	{prefix: "55P03", hint: "a lock on the table was not released in time: look for ALTER TABLE, VACUUM FULL or LOCK"},
	{prefix: "57P"},
	{prefix: "58", hint: "the server's disk or files have a fault: see its log"},
	{prefix: "XX", hint: "the server's data or program has a fault: see its log"},
}

// faultOf returns the fault of an error of the server, or nil if it may be about
// the data of a key.
func faultOf(err *pgconn.PgError) *fault {
	for i := range unavailable {
		if strings.HasPrefix(err.Code, unavailable[i].prefix) {
			return &unavailable[i]
		}
	}
	return nil
}

// wrapError adds what was being done, where, and what to do about it, and decides
// whether the error means that the origin is unavailable. All errors of the driver
// leave the package through it; none reveals a password. An error that indicates a
// changed schema wakes the stream, which checks the schema.
func (o *Origin) wrapError(ctx context.Context, doing string, to *connector, err error) error {
	if err == nil || errors.Is(err, cache.ErrUnavailable) || errors.Is(err, cache.ErrClosed) {
		return err
	}
	where := to.where()
	var pgErr *pgconn.PgError
	isServer := errors.As(err, &pgErr)
	if cause := context.Cause(ctx); cause != nil && (!isServer || pgErr.Code == "57014") {
		return fmt.Errorf("postgres: %s (%s): %w", doing, where, cause)
	}
	to.refused(err) // the next connection of the pool omits it
	err = oneLine{err}
	if !isServer {
		return fmt.Errorf("postgres: %s (%s): %w: %w", doing, where, cache.ErrUnavailable, err)
	}
	f := faultOf(pgErr)
	if f == nil {
		return fmt.Errorf("postgres: %s (%s): %w", doing, where, err)
	}
	if f.changed {
		o.wakeStream()
	}
	if f.hint != "" {
		return fmt.Errorf("postgres: %s (%s): %w: %w (%s)", doing, where, cache.ErrUnavailable, err, f.hint)
	}
	return fmt.Errorf("postgres: %s (%s): %w: %w", doing, where, cache.ErrUnavailable, err)
}

// unknownParameter reports whether the server refused the connection because of an
// unknown parameter, or value, in the URL.
func unknownParameter(err error) bool {
	connect, isConnect := errors.AsType[*pgconn.ConnectError](err)
	if !isConnect {
		return false
	}
	pgErr, isServer := errors.AsType[*pgconn.PgError](connect)
	return isServer && (pgErr.Code == "42704" || pgErr.Code == "22023")
}

// oneLine is an error whose message has no line breaks: the driver writes one
// for every address it has tried.
type oneLine struct{ err error }

func (e oneLine) Error() string { return strings.Join(strings.Fields(e.err.Error()), " ") }
func (e oneLine) Unwrap() error { return e.err }

// schemaFault is the error of a load of a resource that does not fit the database.
func schemaFault(doing string, err *origin.SchemaError) error {
	return fmt.Errorf("postgres: %s: %w: %w", doing, cache.ErrUnavailable, err)
}
