package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// Every name in a statement of Slipstream is qualified (see words.go). In addition
// these statements run with a search path that leads nowhere else, set for one
// transaction: a pooler may give the session to another client after it.
//
// Four things need the path of the role, because they contain names that users
// chose or run code of theirs: plain table names of the configuration (looked up
// in the schemas of that path, see [path.schemas]), the parsing of sql and via,
// loads, and the derivations that lead from rows to documents. Policies, casts and
// functions of the user resolve names in it.

const pinnedPath = "pg_catalog, pg_temp"

// pinSQL pins the path for the rest of the transaction, which in a batch lasts to
// the end of the batch. SET LOCAL would need a transaction block.
const pinSQL = "SELECT pg_catalog.set_config('search_path', '" + pinnedPath + "', true)"

// path is the search path of one transaction.
type path struct {
	tx pgx.Tx
	// role is the path that the connected role has, as a setting.
	role string
	// schemas are those that the path searches for tables, in order, whether or
	// not they exist.
	schemas []string
}

// pinPath pins the path for the rest of the transaction.
func pinPath(ctx context.Context, tx pgx.Tx) (*path, error) {
	p := &path{tx: tx}
	var role, temporary string
	if err := tx.QueryRow(ctx, `SELECT pg_catalog.current_setting('search_path'), current_user::pg_catalog.text, coalesce(
			(SELECT nspname FROM pg_catalog.pg_namespace WHERE oid OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()), 'pg_temp')::pg_catalog.text`).
		Scan(&p.role, &role, &temporary); err != nil {
		return nil, err
	}
	p.schemas = schemasOf(p.role, role, temporary)
	_, err := tx.Exec(ctx, pinSQL)
	return p, err
}

// asRole calls do with the path of the role.
func (p *path) asRole(ctx context.Context, do func() error) error {
	if _, err := p.tx.Exec(ctx, "SELECT pg_catalog.set_config('search_path', $1::pg_catalog.text, true)", p.role); err != nil {
		return err
	}
	err := do()
	if p.tx.Conn().PgConn().TxStatus() == 'E' {
		return err // the transaction can only be rolled back
	}
	if _, pinErr := p.tx.Exec(ctx, pinSQL); err == nil {
		err = pinErr
	}
	return err
}

// hiding returns the names of tables that would be found instead of t if they were
// made, for a name in the configuration.
func (p *path) hiding(name string, t *table) (names []string) {
	schemaName, tableName, err := splitName(name)
	if err != nil || schemaName != "" {
		return nil
	}
	for _, s := range p.schemas {
		if s == t.schema {
			break
		}
		if !strings.HasPrefix(s, "pg_") { // where no one can create tables, or only this session
			names = append(names, quoteName(s)+"."+quoteName(tableName))
		}
	}
	return names
}

// schemasOf splits the setting search_path of a role as PostgreSQL does. temporary is
// the session's schema of temporary tables. That schema and pg_catalog are searched
// first if the setting does not name them.
func schemasOf(setting, role, temporary string) (schemas []string) {
	for rest := setting; rest != ""; {
		rest = strings.TrimLeft(rest, " \t\n\r\f\v,")
		name := ""
		if strings.HasPrefix(rest, `"`) {
			end := 1
			for end < len(rest) && (rest[end] != '"' || strings.HasPrefix(rest[end:], `""`)) {
				if rest[end] == '"' {
					end++
				}
				end++
			}
			name = strings.ReplaceAll(rest[1:min(end, len(rest))], `""`, `"`)
			rest = rest[min(end+1, len(rest)):]
		} else {
			name, rest, _ = strings.Cut(rest, ",")
			name = strings.ToLower(strings.TrimSpace(name))
		}
		switch name {
		case "$user":
			name = role
		case "pg_temp":
			name = temporary
		}
		if name != "" && !slices.Contains(schemas, name) {
			schemas = append(schemas, name)
		}
	}
	for _, implicit := range []string{"pg_catalog", temporary} {
		if !slices.Contains(schemas, implicit) {
			schemas = slices.Insert(schemas, 0, implicit)
		}
	}
	return schemas
}

// readCatalog calls do in a transaction that changes nothing: read only or, for the
// temporary view that reveals what a statement reads, rolled back.
func readCatalog(ctx context.Context, db interface {
	BeginTx(context.Context, pgx.TxOptions) (pgx.Tx, error)
}, set *origin.Set, do func(pgx.Tx) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	for i, r := range set.Resources {
		if r.Query != nil && !r.NoPromise && !set.Retired[i] {
			options.AccessMode = "" // as the role has it
		}
	}
	tx, err := db.BeginTx(ctx, options)
	if err != nil {
		return err
	}
	err = do(tx)
	if undoErr := tx.Rollback(ctx); err == nil {
		err = undoErr
	}
	return err
}
