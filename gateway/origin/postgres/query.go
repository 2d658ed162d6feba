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
)

// resolveQuery resolves a resource that is declared by a statement.
//
// What is promised must be checked: every table that the statement reads has to
// be in depends, and nothing that it calls may give another result without a
// change of these tables. The statement that is then loaded from is the one that
// was checked, as the database writes it back, so that nobody can put another
// table or function in its way by a schema earlier in the search path. Without a
// promise the declared text is used as it is, and it is enough that it can be
// planned and has the right columns.
//
// Nothing is executed here.
func (c *compiled) resolveQuery(ctx context.Context, tx pgx.Tx, cat *catalog) error {
	q := &queryResolver{compiled: c, tx: tx, cat: cat, query: c.resource.Query}
	if tx.Conn().PgConn().ParameterStatus("standard_conforming_strings") == "off" {
		return c.fail(q.query.Line, "standard_conforming_strings is off for role %s, so what is a string cannot be told; expected: ALTER ROLE %s SET standard_conforming_strings = on",
			cat.role, quoteName(cat.role))
	}
	for _, step := range []func(context.Context) error{q.resolveKey, q.resolveStatement, q.resolveDepends, q.checkReads, q.writeLoad} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// queryResolver holds what the steps of resolveQuery hand on.
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
}

// resolveKey looks up the types of the key columns.
func (q *queryResolver) resolveKey(ctx context.Context) error {
	if len(q.query.Key) == 0 {
		return q.fail(q.query.Line, "no key; name the key columns of the statement and their types, such as key: { order_id: bigint }")
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
		q.key = append(q.key, resource.KeyColumn{Name: k.Name, Kind: t.kind})
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
	if wrong := (*errNoTable)(nil); errors.As(err, &wrong) {
		return t, wrong.problem, nil
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
		return q.fail(q.query.Line, "sql: %v", err)
	}
	got, err := q.resultColumns(ctx, q.statement, q.keyTypes, "sql", q.query.Line)
	if err != nil {
		return err
	}
	want := len(q.keyTypes) + 1
	if len(got) != want {
		return q.fail(q.query.Line, "sql gives %d columns (%s); expected %d: the key (%s), then the document",
			len(got), strings.Join(got, ", "), want, q.keyNames())
	}
	var problems []string
	if doc := got[want-1]; doc != "json" && doc != "jsonb" {
		problems = append(problems, fmt.Sprintf("sql gives a document of type %s; expected json or jsonb, such as json_build_object(...) or row_to_json(t)", doc))
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

// resultColumns returns the names of the types that a statement gives.
func (q *queryResolver) resultColumns(ctx context.Context, s *statementText, types []keyType, what string, line int) (names []string, err error) {
	nulls := make([]string, len(types))
	for i, t := range types {
		nulls[i] = "NULL::" + t.sql + "[]"
	}
	oids, err := resultColumns(ctx, q.tx, s.with(nulls))
	if err != nil {
		return nil, q.failStatement(line, what, err)
	}
	for _, oid := range oids {
		var name string
		if err := q.tx.QueryRow(ctx, "SELECT pg_catalog.format_type($1::text::oid, NULL)", formatOID(oid)).Scan(&name); err != nil {
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
			problems = append(problems, fmt.Sprintf("%s gives column %d, %s, as %s; the key declares it as %s", what, i+1, q.key[i].Name, name, q.query.Key[i].Type))
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
	names := make([]string, len(q.key))
	for i, k := range q.key {
		names[i] = k.Name
	}
	return strings.Join(names, ", ")
}

// read finds out what a statement reads if that has to be known, and returns a
// function that writes the statement to be executed.
func (q *queryResolver) read(ctx context.Context, s *statementText, types []keyType, columns int, d declaredReading) (text func([]string) (string, error), err error) {
	if q.resource.NoPromise {
		return func(arrays []string) (string, error) { return s.with(arrays), nil }, nil
	}
	d.reading, err = readStatement(ctx, q.tx, s, types, columns, q.cat.role)
	if err != nil {
		return nil, q.failStatement(d.line, d.what, err)
	}
	q.readings = append(q.readings, d)
	return func(arrays []string) (string, error) {
		text := d.reading.text
		for i, array := range arrays {
			var err error
			if text, err = replaceCode(text, parameterCall(i), "("+array+")"); err != nil {
				return "", err
			}
		}
		return text, nil
	}, nil
}

// resolveDepends makes a source of each dependency.
func (q *queryResolver) resolveDepends(ctx context.Context) error {
	for i := range q.query.Depends {
		d := &q.query.Depends[i]
		t, err := q.resolveTable(ctx, q.cat, d.Table, d.Line)
		if err != nil {
			return err
		}
		s := source{name: q.resource.Name + "/" + strconv.Itoa(i+1), table: t}
		types, err := q.resolveColumns(d, &s)
		if err != nil {
			return err
		}
		if d.Via != "" {
			err = q.resolveVia(ctx, d, &s, types)
		} else {
			err = q.checkDirect(d, t, types)
		}
		if err != nil {
			return err
		}
		q.depends = append(q.depends, t)
		q.sources = append(q.sources, s)
		for _, r := range t.tree {
			q.relations = appendNew(q.relations, r.oid)
		}
	}
	return nil
}

// resolveColumns looks up what a trigger on the table records.
func (q *queryResolver) resolveColumns(d *resource.Depend, s *source) ([]keyType, error) {
	switch {
	case len(d.Columns) > 0:
		for _, name := range d.Columns {
			at, err := q.lookUp(s.table, d.Line, name)
			if err != nil {
				return nil, err
			}
			if slices.Contains(s.columns, at) {
				return nil, q.fail(d.Line, "column %s of table %s is listed twice", name, s.table.name)
			}
			s.columns = append(s.columns, at)
		}
	case d.Via == "":
		return nil, q.fail(d.Line, "the dependency on table %s says neither key nor via; expected its columns that are the key (%s), or a statement that finds the keys", s.table.name, q.keyNames())
	case len(s.table.primaryKey) == 0:
		return nil, q.fail(d.Line, "table %s has no primary key; name the columns that via is given with key", s.table.name)
	default:
		s.columns = s.table.primaryKey
	}
	var types []keyType
	for _, at := range s.columns {
		t, problem := keyTypeOf(&s.table.columns[at])
		if problem != "" {
			return nil, q.fail(d.Line, "column %s.%s, by which documents are found, %s", s.table.name, s.table.columns[at].name, problem)
		}
		types = append(types, t)
	}
	return types, nil
}

// checkDirect checks a dependency whose columns are the key itself.
func (q *queryResolver) checkDirect(d *resource.Depend, t *table, types []keyType) error {
	if len(types) != len(q.key) {
		return q.fail(d.Line, "the dependency on table %s names %d columns, and the key has %d (%s); if rows of the table find documents in another way, say via",
			t.name, len(types), len(q.key), q.keyNames())
	}
	var problems []string
	for i := range types {
		if !servesAs(types[i], q.keyTypes[i]) {
			col := &t.columns[t.column(d.Columns[i])]
			problems = append(problems, fmt.Sprintf("column %s.%s has type %s, and key column %s has type %s", t.name, col.name, col.typeName, q.key[i].Name, q.query.Key[i].Type))
		}
	}
	return q.failAll(d.Line, problems)
}

// resolveVia checks a via and writes the derivation that it means.
//
// The derivation is executed in the snapshot of the poll, for the values that
// the columns had before the change as well as for those after it, whether or not
// the row still exists: via must find the documents from the values alone, by the
// tables that are not the changed one. A row of a table between, which is gone or
// points elsewhere in that snapshot, has left a change of its own, and that is why
// every table that via reads must be a dependency too.
func (q *queryResolver) resolveVia(ctx context.Context, d *resource.Depend, s *source, types []keyType) error {
	what := fmt.Sprintf("via of the dependency on table %s", s.table.name)
	statement, err := parseStatement(d.Via, len(types))
	if err != nil {
		return q.fail(d.Line, "%s: %v", what, err)
	}
	got, err := q.resultColumns(ctx, statement, types, what, d.Line)
	if err != nil {
		return err
	}
	if len(got) != len(q.key) {
		return q.fail(d.Line, "%s gives %d columns (%s); expected %d, the key (%s)", what, len(got), strings.Join(got, ", "), len(q.key), q.keyNames())
	}
	problems, err := q.checkKeyColumns(ctx, what, got)
	if err != nil {
		return err
	}
	if err := q.failAll(d.Line, problems); err != nil {
		return err
	}
	text, err := q.read(ctx, statement, types, len(got), declaredReading{what: what, line: d.Line, via: true})
	if err != nil {
		return err
	}
	if s.derive, err = q.derivation(text, types); err != nil {
		return q.fail(d.Line, "%s: %v", what, err)
	}
	if err := plan(ctx, q.tx, "SELECT d.* FROM (SELECT ''::text AS key) AS c CROSS JOIN LATERAL ("+s.derive+") AS d"); err != nil {
		return q.failStatement(d.Line, what, err)
	}
	return nil
}

// derivation writes the SELECT that gives the keys of documents for one recorded
// text. The arrays have a name that no table in via has: "c" could be one.
func (q *queryResolver) derivation(text func([]string) (string, error), types []keyType) (string, error) {
	values, arrays := make([]string, len(types)), make([]string, len(types))
	for i := range types {
		values[i] = "ARRAY[" + keyValue(types, "c.key", i) + "] AS p" + strconv.Itoa(i+1)
		arrays[i] = "slipstream_recorded.p" + strconv.Itoa(i+1)
	}
	via, err := text(arrays)
	if err != nil {
		return "", err
	}
	names, keys := q.columnNames("q")
	return "SELECT DISTINCT " + keyText(q.keyTypes, keys) + " FROM (SELECT " + strings.Join(values, ", ") +
		" OFFSET 0) AS slipstream_recorded CROSS JOIN LATERAL (\n" + via + "\n) AS q (" + strings.Join(names, ", ") +
		") WHERE " + strings.Join(keys, " IS NOT NULL AND ") + " IS NOT NULL", nil
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

// checkReads compares what the statement and every via read with the
// dependencies, and judges what they call.
func (q *queryResolver) checkReads(context.Context) error {
	var problems []string
	line := 0
	used := make(map[uint32]bool)
	for _, d := range q.readings {
		found := q.checkRelations(&d, used)
		for _, what := range d.unsteady {
			found = append(found, fmt.Sprintf("%s has %s; leave it out, or say promise: none", d.what, what))
		}
		for _, f := range d.functions {
			if why := f.unsteady(); why != "" {
				found = append(found, fmt.Sprintf("%s calls %s, which %s; leave it out, or say promise: none", d.what, f, why))
			}
			if !f.builtin() {
				q.functions = appendNew(q.functions, f.oid)
			}
		}
		if len(found) > 0 && line == 0 {
			line = d.line
		}
		problems = append(problems, found...)
	}
	if len(q.readings) > 0 {
		for _, t := range q.depends {
			if !slices.ContainsFunc(t.tree, func(r relation) bool { return used[r.oid] }) {
				q.warn("nothing reads table %s of depends; its triggers cost writers time for no document", t.name)
			}
		}
	}
	return q.failAll(line, problems)
}

// checkRelations says which relations that a statement reads cannot be followed,
// or are not. It marks what is read as used.
func (q *queryResolver) checkRelations(d *declaredReading, used map[uint32]bool) (problems []string) {
	for _, r := range d.reading.relations {
		used[r.oid] = true
		problem := ""
		switch {
		case r.system():
			problem = fmt.Sprintf("system table %s, which can have no trigger; leave it out, or say promise: none", r.shown)
		case r.kind == 'v':
			q.compiled.relations = appendNew(q.compiled.relations, r.oid)
			continue
		case r.kind == 'm':
			problem = fmt.Sprintf("materialized view %s, whose refresh no trigger hears of; read the tables behind it, or say promise: none", r.shown)
		case r.kind == 'f':
			problem = fmt.Sprintf("foreign table %s, and what changes on the other server is not heard of; leave it out, or say promise: none", r.shown)
		case r.kind != 'r' && r.kind != 'p':
			problem = fmt.Sprintf("%s, which is no table and can have no trigger; leave it out, or say promise: none", r.shown)
		case !slices.ContainsFunc(q.depends, func(t *table) bool {
			return slices.ContainsFunc(t.tree, func(part relation) bool { return part.oid == r.oid })
		}):
			problem = q.missingDepend(d, &r)
		}
		if problem != "" {
			problems = append(problems, d.what+" reads "+problem+through(r.view))
		}
	}
	return problems
}

// missingDepend words the message for a table that no dependency names.
func (q *queryResolver) missingDepend(d *declaredReading, r *readRelation) string {
	name, partition := r.shown, ""
	if r.root != "" {
		name, partition = r.root, ", a partition of "+r.root
	}
	why := ""
	if d.via {
		why = fmt.Sprintf("a change of %s alone may change which documents are found, ", name)
	}
	return fmt.Sprintf("table %s%s, which is not in depends; %sadd { table: %s, key: … } or say promise: none", r.shown, partition, why, name)
}

// writeLoad writes the load statement; see [loadStatement] for its parameters and
// rows. The declared statement is executed once, for all keys. Its rows are
// matched with the keys by their canonical texts: a row of a key that nobody asked
// for is dropped, two of one key give the place twice, and a NULL document is no
// row.
func (q *queryResolver) writeLoad(ctx context.Context) error {
	var arrays, texts, names, matches []string
	answerNames, values := q.columnNames("q")
	for i, t := range q.keyTypes {
		number := strconv.Itoa(i + 1)
		texts = append(texts, "$"+number+"::pg_catalog.text[]")
		arrays = append(arrays, arrayParameter(t, texts[i]))
		names = append(names, "k"+number)
		values[i] = t.text(values[i]) + " AS k" + number
		matches = append(matches, `a.k`+number+` = k.k`+number+` COLLATE pg_catalog."C"`)
	}
	statement, err := q.text(arrays)
	if err != nil {
		return q.fail(q.query.Line, "sql: %v", err)
	}
	q.load = "WITH answer AS MATERIALIZED (SELECT " + strings.Join(values, ", ") + ", (q.doc)::pg_catalog.text AS doc FROM (\n" +
		statement + "\n) AS q (" + strings.Join(answerNames, ", ") + ", doc) WHERE q.doc IS NOT NULL) " +
		"SELECT 0::pg_catalog.int4 AS place, " + header(q.cat.tracked) + " AS doc UNION ALL " +
		"SELECT k.place::pg_catalog.int4, CASE WHEN pg_catalog.octet_length(a.doc) <= $" + strconv.Itoa(len(q.key)+1) +
		"::pg_catalog.int8 THEN a.doc END FROM unnest(" + strings.Join(texts, ", ") + ") WITH ORDINALITY AS k (" +
		strings.Join(names, ", ") + ", place) JOIN answer AS a ON " + strings.Join(matches, " AND ")
	arguments := make([]any, 0, len(q.key)+1)
	for range q.key {
		arguments = append(arguments, []string{})
	}
	if err := plan(ctx, q.tx, q.load, append(arguments, 0)...); err != nil {
		return q.failStatement(q.query.Line, "sql", err)
	}
	return nil
}

// arrayParameter writes the array of values that stands for an array of texts
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

// failStatement turns what the database refuses into an error of the
// declaration, and leaves other errors alone.
func (c *compiled) failStatement(line int, what string, err error) error {
	if wrong := (*statementProblem)(nil); errors.As(err, &wrong) {
		return c.fail(line, "%s: %s", what, wrong.problem)
	}
	return err
}

// failAll returns one error for all problems, nil if there are none.
func (c *compiled) failAll(line int, problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return c.fail(line, "%s", strings.Join(problems, "; "))
}
