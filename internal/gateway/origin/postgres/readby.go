package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// reading is what a statement reads and calls, itself and through views, as
// reported by the database.
type reading struct {
	// text is the statement as the database writes it back, with every name
	// qualified, so that a search path changes nothing, and literals such as
	// 'today'::date have become the values that they had. parameterCall represents
	// parameters in it.
	text      string
	schemas   []string // in the path of the role
	relations []readRelation
	functions []*function
	types     []uint32 // of users
	unsteady  []string // as in ruleFacts
	// lookedUp are the functions and operators outside of pg_catalog that the
	// statement itself names.
	lookedUp []lookedUp
}

// readRelation is a table or a view that a statement reads.
type readRelation struct {
	relation
	kind  byte   // pg_class.relkind
	shown string // the name in the form that the search path permits
	// root is the name of the partitioned table that the relation is a
	// partition of, or "" if it is not one.
	root string
	view string // through which it is read, "" for the statement itself
}

// system reports whether the relation cannot have triggers.
func (r *readRelation) system() bool {
	return r.schema == "pg_catalog" || r.schema == "information_schema" || r.schema == "slipstream"
}

// statementProblem is why the database refuses a statement: a mistake in the
// declaration, not a failure of the connection.
type statementProblem struct{ problem string }

func (e *statementProblem) Error() string { return e.problem }

// statementError distinguishes mistakes in a statement from failures of the
// database or the connection.
func statementError(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || len(pg.Code) != 5 {
		return err
	}
	switch pg.Code[:2] {
	case "08", "40", "53", "55", "57", "58", "XX":
		return err
	}
	problem := pg.Message
	if pg.Code == "0A000" { // feature_not_supported: something in a query that is not one
		problem = "expected a statement that only reads: " + problem
	}
	if pg.Detail != "" {
		problem += "; " + pg.Detail
	}
	if pg.Hint != "" {
		problem += "; " + pg.Hint
	}
	return &statementProblem{strings.TrimSuffix(problem, ".")}
}

// resultColumns returns the types of the columns that a query returns. The text is
// analyzed and not executed.
//
// It must be between parentheses after FROM. Then the database refuses anything
// that could write, such as WITH d AS (DELETE ...), at any depth.
func resultColumns(ctx context.Context, tx pgx.Tx, text string) (oids []uint32, err error) {
	err = undone(ctx, tx, func(tx pgx.Tx) error {
		described, err := tx.Conn().PgConn().Prepare(ctx, "", "SELECT * FROM (\n"+text+"\n) AS statement", nil)
		if err != nil {
			return statementError(err)
		}
		for _, f := range described.Fields {
			oids = append(oids, f.DataTypeOID)
		}
		return nil
	})
	return oids, err
}

// plan makes the database plan a statement as if to execute it: this also checks
// privileges, including those on views and functions. Planning executes immutable
// functions. For the gateway this happens as in a load, with the path of the role. For
// an administrator the path is pinned; a function whose body needs another one cannot
// be planned then, which says nothing about the statement.
func (c *catalog) plan(ctx context.Context, text string, arguments ...any) error {
	if !c.administers {
		return c.path.asRole(ctx, func() error { return plan(ctx, c.tx, text, arguments...) })
	}
	err := plan(ctx, c.tx, text, arguments...)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Where != "" && strings.HasPrefix(pg.Code, "42") && pg.Code != "42501" {
		return nil
	}
	return err
}

func plan(ctx context.Context, tx pgx.Tx, text string, arguments ...any) error {
	return undone(ctx, tx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "EXPLAIN (COSTS OFF) "+text, arguments...)
		return statementError(err)
	})
}

// undone calls f inside a savepoint and rolls back to it.
func undone(ctx context.Context, tx pgx.Tx, f func(pgx.Tx) error) error {
	savepoint, err := tx.Begin(ctx)
	if err != nil {
		return err
	}
	err = f(savepoint)
	return errors.Join(err, savepoint.Rollback(ctx))
}

// parameterName is the name of the function that represents parameter i while a
// statement is a view, because views cannot have parameters.
func parameterName(i int) string { return "slipstream_parameter_" + strconv.Itoa(i+1) }

// parameterCall calls it; see replaceParameter for how the database writes that back.
func parameterCall(i int) string { return "pg_temp." + parameterName(i) + "()" }

// readStatement finds what a statement of the given number of columns reads, by
// creating it as a temporary view and reading what the database stored for it. types
// are those of the elements of its parameters. Everything is rolled back.
//
// The connected role needs the privilege TEMPORARY on the database, which PUBLIC
// has unless it was revoked, and USAGE on the language sql, the same. The
// transaction must not be read-only.
func readStatement(ctx context.Context, cat *catalog, statement *statementText, types []keyType, columns int) (*reading, error) {
	r := &reading{schemas: cat.path.schemas}
	err := undone(ctx, cat.tx, func(tx pgx.Tx) error {
		view, err := makeView(ctx, tx, cat.path, statement, types, columns)
		if err != nil {
			return err
		}
		if err := r.followViews(ctx, tx, view); err != nil {
			return err
		}
		if err := r.readTypes(ctx, tx, view); err != nil {
			return err
		}
		// The pinned path leads to pg_catalog only: everything else is qualified.
		if err := tx.QueryRow(ctx, "SELECT pg_catalog.pg_get_viewdef($1::pg_catalog.text::pg_catalog.oid)", formatOID(view)).Scan(&r.text); err != nil {
			return err
		}
		return r.qualify(ctx, tx, columns)
	})
	if err != nil {
		return nil, explainPrivilege(ctx, cat.tx, cat.role, err)
	}
	return r, nil
}

// qualify qualifies what the database left unqualified in the text, unless that
// would change what the text means: then names of pg_catalog are looked up along
// the path of the role.
func (r *reading) qualify(ctx context.Context, tx pgx.Tx, columns int) error {
	r.text = strings.TrimSuffix(strings.TrimSpace(r.text), ";")
	text, err := qualified(r.text)
	if err != nil {
		return err
	}
	same, err := sameQuery(ctx, tx, columns, r.text, text)
	if wrong := (*statementProblem)(nil); errors.As(err, &wrong) {
		err = nil
	}
	if same {
		r.text = text
	}
	return err
}

func viewColumns(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "c" + strconv.Itoa(i)
	}
	return names
}

// makeView creates the functions that represent the parameters, and the view. Only the
// statement is parsed with the path of the role.
func makeView(ctx context.Context, tx pgx.Tx, path *path, statement *statementText, types []keyType, columns int) (oid uint32, err error) {
	calls := make([]string, len(types))
	for i, t := range types {
		calls[i] = parameterCall(i)
		// Immutable, so that a statement which may not call others may call it.
		if _, err := tx.Exec(ctx, fmt.Sprintf("CREATE FUNCTION pg_temp.%s() RETURNS %s[] LANGUAGE sql IMMUTABLE AS 'SELECT NULL::%[2]s[]'",
			parameterName(i), t.sql)); err != nil {
			return 0, err
		}
	}
	if err := path.asRole(ctx, func() error {
		_, err := tx.Exec(ctx, fmt.Sprintf("CREATE TEMPORARY VIEW slipstream_statement (%s) AS\n%s\n",
			strings.Join(viewColumns(columns), ", "), statement.with(calls)))
		return err
	}); err != nil {
		return 0, err
	}
	err = tx.QueryRow(ctx, `SELECT oid FROM pg_catalog.pg_class
		WHERE relname OPERATOR(pg_catalog.=) 'slipstream_statement' AND relnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()`).Scan(&oid)
	return oid, err
}

// explainPrivilege adds what to grant if a privilege was missing.
func explainPrivilege(ctx context.Context, tx pgx.Tx, role string, err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	const purpose = "a temporary view of the statement is needed to find what it reads: "
	switch pg.Code {
	case "25006": // read_only_sql_transaction
		return &statementProblem{fmt.Sprintf("%s%s; expected: ALTER ROLE %s SET default_transaction_read_only = off, or promise: none", purpose, pg.Message, quoteName(role))}
	case "42501": // insufficient_privilege
		var database string
		var temporary, language bool
		if err := tx.QueryRow(ctx, `SELECT d.name::pg_catalog.text, pg_catalog.has_database_privilege(d.name, 'TEMPORARY'), pg_catalog.has_language_privilege('sql', 'USAGE')
			FROM pg_catalog.current_database() AS d (name)`).Scan(&database, &temporary, &language); err != nil {
			return err
		}
		if !temporary {
			return &statementProblem{fmt.Sprintf("%s%s; expected: GRANT TEMPORARY ON DATABASE %s TO %s, or promise: none", purpose, pg.Message, quoteName(database), quoteName(role))}
		}
		if !language {
			return &statementProblem{fmt.Sprintf("%s%s; expected: GRANT USAGE ON LANGUAGE sql TO %s, or promise: none", purpose, pg.Message, quoteName(role))}
		}
	}
	return statementError(err)
}

// followViews reads the rules of the view, of the views that it reads, and so on.
func (r *reading) followViews(ctx context.Context, tx pgx.Tx, view uint32) error {
	views := map[uint32]string{view: ""} // names of those to be read
	known := []uint32{view}
	var functions, operators, namedFunctions, namedOperators []uint32
	for len(views) > 0 {
		found := make(map[uint32]string) // the view that each relation is read through
		rows, err := tx.Query(ctx, `SELECT ev_class, ev_action::pg_catalog.text FROM pg_catalog.pg_rewrite
			WHERE ev_type OPERATOR(pg_catalog.=) '1' AND ev_class OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.text::pg_catalog.oid[]) ORDER BY ev_class`, formatOIDs(keysOf(views)))
		if err != nil {
			return err
		}
		var oid uint32
		var action string
		if _, err := pgx.ForEachRow(rows, []any{&oid, &action}, func() error {
			facts := parseRule(action)
			if oid == view {
				namedFunctions, namedOperators = facts.namedFunctions, facts.namedOperators
			}
			for _, f := range facts.functions {
				functions = appendNew(functions, f)
			}
			for _, o := range facts.operators {
				operators = appendNew(operators, o)
			}
			for _, what := range facts.unsteady {
				r.unsteady = append(r.unsteady, what.name+through(views[oid])+", which "+what.why)
			}
			for _, relation := range facts.relations {
				if !slices.Contains(known, relation) {
					known = append(known, relation)
					found[relation] = views[oid]
				}
			}
			return nil
		}); err != nil {
			return err
		}
		if views, err = r.readRelations(ctx, tx, found); err != nil {
			return err
		}
	}
	if err := r.readFunctions(ctx, tx, functions, operators); err != nil {
		return err
	}
	return r.readLookedUp(ctx, tx, namedFunctions, namedOperators)
}

// readRelations describes the relations found, and returns the views among them.
func (r *reading) readRelations(ctx context.Context, tx pgx.Tx, found map[uint32]string) (views map[uint32]string, err error) {
	rows, err := tx.Query(ctx, `SELECT c.oid, n.nspname::pg_catalog.text, c.relname::pg_catalog.text, c.relkind::pg_catalog.text,
			pg_catalog.concat(CASE WHEN n.nspname::pg_catalog.text OPERATOR(pg_catalog.<>) ALL ($2::pg_catalog.text[])
				THEN pg_catalog.format('%I.', n.nspname) END, pg_catalog.quote_ident(c.relname)),
			CASE WHEN c.relispartition AND r.relname IS NOT NULL THEN pg_catalog.concat(CASE WHEN rn.nspname::pg_catalog.text OPERATOR(pg_catalog.<>) ALL ($2::pg_catalog.text[])
				THEN pg_catalog.format('%I.', rn.nspname) END, pg_catalog.quote_ident(r.relname)) ELSE '' END
		FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
		LEFT JOIN pg_catalog.pg_class AS r ON r.oid OPERATOR(pg_catalog.=) pg_catalog.pg_partition_root(c.oid)::pg_catalog.oid
		LEFT JOIN pg_catalog.pg_namespace AS rn ON rn.oid OPERATOR(pg_catalog.=) r.relnamespace
		WHERE c.oid OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.text::pg_catalog.oid[]) ORDER BY n.nspname, c.relname`, formatOIDs(keysOf(found)), r.schemas)
	if err != nil {
		return nil, err
	}
	views = make(map[uint32]string)
	var one readRelation
	var kind string
	_, err = pgx.ForEachRow(rows, []any{&one.oid, &one.schema, &one.name, &kind, &one.shown, &one.root}, func() error {
		one.kind, one.view = kind[0], found[one.oid]
		if one.kind == 'v' && !one.system() {
			views[one.oid] = one.shown
		}
		r.relations = append(r.relations, one)
		return nil
	})
	return views, err
}

// readFunctions describes the functions that are called by oid, the functions of
// operators, and the parts of user-defined aggregates.
func (r *reading) readFunctions(ctx context.Context, tx pgx.Tx, functions, operators []uint32) error {
	rows, err := tx.Query(ctx, `WITH called AS (
			SELECT o AS oid, '' AS part FROM pg_catalog.unnest($1::pg_catalog.text::pg_catalog.oid[]) AS o
			UNION SELECT oprcode, '' FROM pg_catalog.pg_operator WHERE oid OPERATOR(pg_catalog.=) ANY ($2::pg_catalog.text::pg_catalog.oid[])
			UNION SELECT s.oid, a.aggfnoid::pg_catalog.regproc::pg_catalog.text FROM pg_catalog.pg_aggregate AS a
			CROSS JOIN LATERAL pg_catalog.unnest(ARRAY[aggtransfn, aggfinalfn, aggmtransfn, aggminvtransfn, aggmfinalfn]::pg_catalog.oid[]) AS s (oid)
			WHERE a.aggfnoid OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.text::pg_catalog.oid[]) AND a.aggfnoid OPERATOR(pg_catalog.>=) $3::pg_catalog.text::pg_catalog.oid)
		SELECT p.oid, n.nspname::pg_catalog.text, p.proname::pg_catalog.text, pg_catalog.oidvectortypes(p.proargtypes), p.provolatile::pg_catalog.text, called.part
		FROM called JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) called.oid JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
		WHERE n.oid OPERATOR(pg_catalog.<>) pg_catalog.pg_my_temp_schema() ORDER BY n.nspname, p.proname, p.oid, called.part`,
		formatOIDs(functions), formatOIDs(operators), formatOID(firstUserOID))
	if err != nil {
		return err
	}
	r.functions, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (*function, error) {
		f := &function{}
		return f, row.Scan(&f.oid, &f.schema, &f.name, &f.arguments, &f.volatility, &f.part)
	})
	return err
}

// through is the part of a message that says through which view something is
// reached.
func through(view string) string {
	if view == "" {
		return ""
	}
	return " through view " + view
}

func keysOf(m map[uint32]string) []uint32 {
	oids := make([]uint32, 0, len(m))
	for oid := range m {
		oids = append(oids, oid)
	}
	return oids
}

// formatOIDs writes an array of oids as text, for
// $1::pg_catalog.text::pg_catalog.oid[]: no query mode of pgx has to know the type.
func formatOIDs(oids []uint32) string {
	texts := make([]string, len(oids))
	for i, oid := range oids {
		texts[i] = formatOID(oid)
	}
	return "{" + strings.Join(texts, ",") + "}"
}

func formatOID(oid uint32) string { return strconv.FormatUint(uint64(oid), 10) }
