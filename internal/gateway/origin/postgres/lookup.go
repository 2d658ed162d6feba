package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// lookedUp is a function or an operator outside of pg_catalog that the text of a user
// names. If the text does not qualify it, a role that may create another one earlier in
// the path, or one that matches better, decides what runs.
type lookedUp struct {
	operator     bool
	schema, name string
	signature    string // for humans
}

// readLookedUp describes those of the functions and operators that are not built in.
func (r *reading) readLookedUp(ctx context.Context, tx pgx.Tx, functions, operators []uint32) error {
	rows, err := tx.Query(ctx, `SELECT false, n.nspname::pg_catalog.text, p.proname::pg_catalog.text,
			pg_catalog.format('%I.%I(%s)', n.nspname, p.proname, pg_catalog.oidvectortypes(p.proargtypes))
		FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
		WHERE p.oid OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.text::pg_catalog.oid[])
			AND n.nspname OPERATOR(pg_catalog.<>) 'pg_catalog' AND n.oid OPERATOR(pg_catalog.<>) pg_catalog.pg_my_temp_schema()
		UNION ALL SELECT true, n.nspname::pg_catalog.text, o.oprname::pg_catalog.text,
			pg_catalog.format('operator %I.%s(%s)', n.nspname, o.oprname, pg_catalog.concat_ws(', ',
				CASE WHEN o.oprleft OPERATOR(pg_catalog.<>) 0 THEN pg_catalog.format_type(o.oprleft, NULL) END, pg_catalog.format_type(o.oprright, NULL)))
		FROM pg_catalog.pg_operator AS o JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) o.oprnamespace
		WHERE o.oid OPERATOR(pg_catalog.=) ANY ($2::pg_catalog.text::pg_catalog.oid[]) AND n.nspname OPERATOR(pg_catalog.<>) 'pg_catalog'
		ORDER BY 4`, formatOIDs(functions), formatOIDs(operators))
	if err != nil {
		return err
	}
	r.lookedUp, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (l lookedUp, err error) {
		return l, row.Scan(&l.operator, &l.schema, &l.name, &l.signature)
	})
	return err
}

// warnOfPath warns about functions that the text of a user calls through the
// search path.
func (q *queryResolver) warnOfPath(d *declaredReading, text string) {
	for _, l := range d.lookedUp {
		if l.qualifiedIn(text) {
			continue
		}
		what, write := "calls "+l.signature, fmt.Sprintf("%s.%s or pg_catalog.%[2]s", l.schema, l.name)
		if l.operator {
			what, write = "uses "+l.signature, fmt.Sprintf("OPERATOR(%s.%s) or OPERATOR(pg_catalog.%[2]s)", l.schema, l.name)
		}
		q.Warn("%s %s through the search path of role %s; write %s", d.what, what, q.cat.role, write)
	}
}

// qualifiedIn reports whether a statement names the object with its schema, and never
// without one. Objects that a statement calls without naming them, such as the operator
// of IN, are not qualified.
func (l *lookedUp) qualifiedIn(text string) bool {
	var tokens []string
	for scan := (scanner{text: text}); ; {
		t, err := scan.nextOperator()
		if err != nil || t.kind == tokenEnd {
			break
		}
		if t.kind == tokenBlank {
			continue
		}
		word := text[t.start:t.end]
		switch {
		case t.kind == tokenWord:
			word = strings.ToLower(word)
		case word[0] == '"':
			word = strings.ReplaceAll(word[1:len(word)-1], `""`, `"`)
		case t.kind == tokenQuoted:
			word = "" // a string
		}
		tokens = append(tokens, word)
	}
	qualified := false
	for i, t := range tokens {
		switch {
		case t != l.name || !l.operator && (i+1 == len(tokens) || tokens[i+1] != "("):
		case i >= 2 && tokens[i-1] == ".":
			qualified = qualified || tokens[i-2] == l.schema
		default:
			return false
		}
	}
	return qualified
}
