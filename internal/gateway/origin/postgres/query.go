package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin/tree"
)

// resolveQuery resolves a resource that is declared by a statement.
//
// A promise requires checks: every table that the statement reads must be in
// depends, and no function that it calls may return another result without a change
// of these tables. The statement for loads is the checked one, as the database
// writes it back, so that no other table or function can replace one through a
// schema earlier in the search path. Without a promise the declared text is used
// unchanged, and it is enough that it can be planned and has the right columns.
//
// Nothing is executed here.
func (c *compiled) resolveQuery(ctx context.Context, tx pgx.Tx, cat *catalog) error {
	q := &queryResolver{compiled: c, tx: tx, cat: cat, query: c.Resource.Query}
	if tx.Conn().PgConn().ParameterStatus("standard_conforming_strings") == "off" {
		return c.Fail(q.query.Line, "standard_conforming_strings is off for role %s, so strings cannot be recognized; expected: ALTER ROLE %s SET standard_conforming_strings = on",
			cat.role, quoteName(cat.role))
	}
	for _, step := range []func(context.Context) error{q.resolveKey, q.resolveStatement, q.resolveDepends, q.checkReads, q.writeLoad} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// queryResolver holds the intermediate results of resolveQuery.
type queryResolver struct {
	*compiled
	tx    pgx.Tx
	cat   *catalog
	query *resource.Query

	statement *statementText
	// text is the statement to load from, given the arrays for its parameters.
	text     func(arrays []string) (string, error)
	readings []declaredReading // none without a promise
	depends  []*table          // as query.Depends
}

// declaredReading is the reading of the statement, or of a via.
type declaredReading struct {
	*reading
	what string // the subject of a message
	line int
	via  bool
	at   int // of a via: the index of its dependency
}

// resolveKey looks up the types of the key columns.
func (q *queryResolver) resolveKey(ctx context.Context) error {
	if len(q.query.Key) == 0 {
		return q.Fail(q.query.Line, "no key; name the key columns of the statement and their types, such as key: { order_id: bigint }")
	}
	var problems []string
	for i, k := range q.query.Key {
		if slices.ContainsFunc(q.query.Key[:i], func(other resource.QueryKey) bool { return other.Name == k.Name }) {
			problems = append(problems, fmt.Sprintf("key column %s is listed twice", k.Name))
		}
		t, problem, err := q.keyTypeOfName(ctx, k.Type)
		if err != nil {
			return err
		}
		if problem != "" {
			problems = append(problems, fmt.Sprintf("key column %s: %s", k.Name, problem))
		}
		q.Key = append(q.Key, resource.KeyColumn{Name: k.Name, Kind: t.kind})
		q.keyTypes = append(q.keyTypes, t)
	}
	return q.failAll(q.query.Line, problems)
}

// keyTypeOfName returns the key type of a type by name, or why there is none.
func (q *queryResolver) keyTypeOfName(ctx context.Context, name string) (t keyType, problem string, err error) {
	// A name such as "big int(" is an error to the database, not an unknown type.
	err = undone(ctx, q.tx, func(pgx.Tx) error {
		var err error
		t, err = q.cat.keyType(ctx, name)
		return statementError(err)
	})
	if wrong := (*tree.NoTable)(nil); errors.As(err, &wrong) {
		return t, wrong.Problem, nil
	}
	if wrong := (*statementProblem)(nil); errors.As(err, &wrong) {
		return t, fmt.Sprintf("%q is not the name of a type: %s", name, wrong.problem), nil
	}
	return t, "", err
}

// resolveStatement checks the statement's parameters and columns.
func (q *queryResolver) resolveStatement(ctx context.Context) error {
	var err error
	if q.statement, err = parseStatement(q.query.SQL, len(q.keyTypes)); err != nil {
		return q.Fail(q.query.Line, "sql: %v", err)
	}
	got, err := q.resultColumns(ctx, q.statement, q.keyTypes, "sql", q.query.Line)
	if err != nil {
		return err
	}
	want := len(q.keyTypes) + 1
	if len(got) != want {
		return q.Fail(q.query.Line, "sql returns columns of types (%s); expected the key (%s), then the document",
			strings.Join(got, ", "), q.keyNames())
	}
	var problems []string
	if doc := got[want-1]; doc != "json" && doc != "jsonb" {
		problems = append(problems, fmt.Sprintf("sql returns a document of type %s; expected json or jsonb, such as json_build_object(...) or row_to_json(t)", doc))
	}
	more, err := q.checkKeyColumns(ctx, "sql", got[:want-1])
	if err != nil {
		return err
	}
	if err := q.failAll(q.query.Line, append(problems, more...)); err != nil {
		return err
	}
	q.text, err = q.read(ctx, q.statement, q.keyTypes, want, declaredReading{what: "sql", line: q.query.Line})
	return err
}

// resultColumns returns the names of the types that a statement returns.
func (q *queryResolver) resultColumns(ctx context.Context, s *statementText, types []keyType, what string, line int) (names []string, err error) {
	nulls := make([]string, len(types))
	for i, t := range types {
		nulls[i] = "NULL::" + t.sql + "[]"
	}
	var oids []uint32
	err = q.cat.path.asRole(ctx, func() error {
		oids, err = resultColumns(ctx, q.tx, s.with(nulls))
		return err
	})
	if err != nil {
		return nil, q.failStatement(line, what, err)
	}
	for _, oid := range oids {
		var name string
		if err := q.tx.QueryRow(ctx, "SELECT pg_catalog.format_type($1::pg_catalog.text::pg_catalog.oid, NULL)", formatOID(oid)).Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// checkKeyColumns compares the types of columns with those of the key.
func (q *queryResolver) checkKeyColumns(ctx context.Context, what string, got []string) (problems []string, err error) {
	for i, name := range got {
		t, problem, err := q.keyTypeOfName(ctx, name)
		if err != nil {
			return nil, err
		}
		if problem != "" || !servesAs(t, q.keyTypes[i]) {
			problems = append(problems, fmt.Sprintf("%s returns column %d, %s, as %s; the key declares it as %s", what, i+1, q.Key[i].Name, name, q.query.Key[i].Type))
		}
	}
	return problems, nil
}

// servesAs reports whether every value of a type has the text that the equal
// value of the key's type has.
func servesAs(t, key keyType) bool {
	return t == key || t.kind == resource.Integer && key.kind == resource.Decimal
}

func (q *queryResolver) keyNames() string {
	names := make([]string, len(q.Key))
	for i, k := range q.Key {
		names[i] = k.Name
	}
	return strings.Join(names, ", ")
}

// read determines what a statement reads, if required, and returns a function that
// writes the statement to execute.
func (q *queryResolver) read(ctx context.Context, s *statementText, types []keyType, columns int, d declaredReading) (text func([]string) (string, error), err error) {
	if q.Resource.NoPromise {
		return func(arrays []string) (string, error) { return s.with(arrays), nil }, nil
	}
	d.reading, err = readStatement(ctx, q.cat, s, types, columns)
	if err != nil {
		return nil, q.failStatement(d.line, d.what, err)
	}
	q.warnOfPath(&d, s.source)
	q.readings = append(q.readings, d)
	q.types = append(q.types, d.reading.types...)
	return func(arrays []string) (string, error) {
		text := d.reading.text
		for i, array := range arrays {
			var err error
			if text, err = replaceParameter(text, i, "("+array+")"); err != nil {
				return "", err
			}
		}
		return text, nil
	}, nil
}

// columnNames names the key columns of a subquery, and casts them to their types.
func (q *queryResolver) columnNames(alias string) (names, values []string) {
	for i, t := range q.keyTypes {
		name := "k" + strconv.Itoa(i+1)
		names = append(names, name)
		values = append(values, "("+alias+"."+name+")::"+t.sql)
	}
	return names, values
}

// writeLoad writes the load statement; see [loadStatement] for its parameters and
// rows. The declared statement is executed once, for all keys. Its rows are
// matched with the keys by their canonical texts: a row with a key that was not
// requested is dropped, two rows of one key return its place twice, and a NULL
// document counts as a missing row.
//
// The planner assumes ten keys and would match them in nested loops, a million
// comparisons for a thousand keys. A FULL JOIN it can only hash or merge, and the
// CASE keeps it from seeing that it could be an inner one.
func (q *queryResolver) writeLoad(ctx context.Context) error {
	var arrays, texts, names, matches []string
	answerNames, values := q.columnNames("q")
	for i, t := range q.keyTypes {
		number := strconv.Itoa(i + 1)
		texts = append(texts, "$"+number+"::pg_catalog.text[]")
		arrays = append(arrays, arrayParameter(t, texts[i]))
		names = append(names, "k"+number)
		values[i] = t.text(values[i]) + " AS k" + number
		matches = append(matches, equal("a.k"+number, "k.k"+number+` COLLATE pg_catalog."C"`))
	}
	statement, err := q.text(arrays)
	if err != nil {
		return q.Fail(q.query.Line, "sql: %v", err)
	}
	q.load = "WITH answer AS MATERIALIZED (SELECT " + strings.Join(values, ", ") + ", (q.doc)::pg_catalog.text AS doc FROM (\n" +
		statement + "\n) AS q (" + strings.Join(answerNames, ", ") + ", doc) WHERE q.doc IS NOT NULL) " +
		"SELECT 0::pg_catalog.int4 AS place, " + header(q.cat.tracked) + " AS doc UNION ALL " +
		"SELECT k.place::pg_catalog.int4, CASE WHEN pg_catalog.octet_length(a.doc) OPERATOR(pg_catalog.<=) $" + strconv.Itoa(len(q.Key)+1) +
		"::pg_catalog.int8 THEN a.doc END FROM " + unnest(texts) + " WITH ORDINALITY AS k (" +
		strings.Join(names, ", ") + ", place) FULL JOIN answer AS a ON " + strings.Join(matches, " AND ") +
		" WHERE CASE WHEN k.place IS NULL OR a.doc IS NULL THEN false ELSE true END"
	arguments := make([]any, 0, len(q.Key)+1)
	for range q.Key {
		arguments = append(arguments, []string{})
	}
	if q.cat.administers && q.Resource.NoPromise {
		return nil // the text is that of the user, not what the database wrote back
	}
	if err := q.cat.plan(ctx, q.load, append(arguments, 0)...); err != nil {
		return q.failStatement(q.query.Line, "sql", err)
	}
	return nil
}

// arrayParameter writes the array of values that corresponds to an array of texts
// which [resource.KeyColumn.Check] has accepted.
func arrayParameter(t keyType, texts string) string {
	switch {
	case t.kind == resource.Bytes || t.enum:
		return "ARRAY(SELECT " + t.parameter("u.k") + " FROM pg_catalog.unnest(" + texts + ") AS u (k))"
	case t.kind == resource.Text:
		return texts
	default:
		return texts + "::" + t.sql + "[]"
	}
}

// failStatement turns a refusal of the database into an error of the declaration,
// and returns other errors unchanged.
func (c *compiled) failStatement(line int, what string, err error) error {
	if wrong := (*statementProblem)(nil); errors.As(err, &wrong) {
		return c.Fail(line, "%s: %s", what, wrong.problem)
	}
	return err
}

// failAll returns one error for all problems, or nil if there are none.
func (c *compiled) failAll(line int, problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return c.Fail(line, "%s", strings.Join(problems, "; "))
}
