package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// resolveDepends makes a source of each dependency.
func (q *queryResolver) resolveDepends(ctx context.Context) error {
	for i := range q.query.Depends {
		d := &q.query.Depends[i]
		t, err := q.resolveTable(ctx, q.cat, d.Table, d.Line)
		if err != nil {
			return err
		}
		s := source{name: q.Resource.Name + "/" + strconv.Itoa(i+1), table: t}
		types, err := q.resolveColumns(d, &s)
		if err != nil {
			return err
		}
		if d.Via != "" {
			err = q.resolveVia(ctx, i, &s, types)
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
	case d.Via == "":
		return nil, q.Fail(d.Line, "the dependency on table %s has neither key nor via; expected its columns that are the key (%s), or a statement that finds the keys", s.table.name, q.keyNames())
	default:
		return nil, q.Fail(d.Line, "the dependency on table %s has a via and no key; expected the columns that via starts from, because it cannot read a deleted or moved row: add key: %s",
			s.table.name, s.table.onwards(nil))
	}
	for _, name := range d.Columns {
		at, err := q.LookUp(s.table, d.Line, name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(s.columns, at) {
			return nil, q.Fail(d.Line, "column %s of table %s is listed twice", name, s.table.name)
		}
		s.columns = append(s.columns, at)
	}
	var types []keyType
	for _, at := range s.columns {
		t, problem := keyTypeOf(&s.table.columns[at])
		if problem != "" {
			return nil, q.Fail(d.Line, "column %s.%s, by which documents are found, %s", s.table.name, s.table.columns[at].name, problem)
		}
		types = append(types, t)
	}
	return types, nil
}

// checkDirect checks a dependency whose columns are the key itself.
func (q *queryResolver) checkDirect(d *resource.Depend, t *table, types []keyType) error {
	if len(types) != len(q.Key) {
		return q.Fail(d.Line, "the dependency on table %s names the columns (%s), and the key is (%s); if rows of the table find documents in another way, add via",
			t.name, strings.Join(d.Columns, ", "), q.keyNames())
	}
	var problems []string
	for i := range types {
		if !servesAs(types[i], q.keyTypes[i]) {
			col := &t.columns[t.Column(d.Columns[i])]
			problems = append(problems, fmt.Sprintf("column %s.%s has type %s, and key column %s has type %s", t.name, col.name, col.typeName, q.Key[i].Name, q.query.Key[i].Type))
		}
	}
	return q.failAll(d.Line, problems)
}

// resolveVia checks a via and writes its derivation.
//
// The derivation is executed in the snapshot of the poll, for the values that
// the columns had before the change as well as for those after it, whether or not
// the row still exists: via must find the documents from these values and from
// tables other than the changed one; see [queryResolver.checkOnwards]. If a row of a
// table in between is gone or points elsewhere in that snapshot, its change was recorded
// as well, which is why every table that via reads must also be a dependency.
func (q *queryResolver) resolveVia(ctx context.Context, at int, s *source, types []keyType) error {
	d := &q.query.Depends[at]
	what := fmt.Sprintf("via of the dependency on table %s", s.table.name)
	statement, err := parseStatement(d.Via, len(types))
	if err != nil {
		return q.Fail(d.Line, "%s: %v", what, err)
	}
	got, err := q.resultColumns(ctx, statement, types, what, d.Line)
	if err != nil {
		return err
	}
	if len(got) != len(q.Key) {
		return q.Fail(d.Line, "%s gives columns of types (%s); expected the key (%s)", what, strings.Join(got, ", "), q.keyNames())
	}
	problems, err := q.checkKeyColumns(ctx, what, got)
	if err != nil {
		return err
	}
	if err := q.failAll(d.Line, problems); err != nil {
		return err
	}
	text, err := q.read(ctx, statement, types, len(got), declaredReading{what: what, line: d.Line, via: true, at: at})
	if err != nil {
		return err
	}
	if s.derive, err = q.derivation(text, types); err != nil {
		return q.Fail(d.Line, "%s: %v", what, err)
	}
	if err := q.cat.plan(ctx, "SELECT d.* FROM (SELECT ''::pg_catalog.text AS key) AS c CROSS JOIN LATERAL ("+s.derive+") AS d"); err != nil {
		return q.failStatement(d.Line, what, err)
	}
	return nil
}

// derivation writes the SELECT that returns the keys of documents for one recorded
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

// checkReads compares what the statement and every via read with the
// dependencies, and checks the functions that they call.
func (q *queryResolver) checkReads(context.Context) error {
	var problems []string
	line := 0
	used := make(map[uint32]bool)
	for _, d := range q.readings {
		found := append(q.checkRelations(&d, used), q.checkOnwards(&d)...)
		for _, what := range d.unsteady {
			found = append(found, d.what+" has "+what)
		}
		for _, f := range d.functions {
			if why := f.unsteady(); why != "" {
				found = append(found, fmt.Sprintf("%s calls %s, which %s", d.what, f, why))
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
				q.Warn("no statement reads table %s of depends; its triggers only cost writers time", t.name)
			}
		}
	}
	if len(problems) > 0 {
		problems = append(problems, "or add promise: none")
	}
	return q.failAll(line, problems)
}

// checkRelations reports relations read by a statement that cannot be followed, or
// are not. It marks those that are read as used.
func (q *queryResolver) checkRelations(d *declaredReading, used map[uint32]bool) (problems []string) {
	for _, r := range d.reading.relations {
		used[r.oid] = true
		problem, shown := "", r.shown+through(r.view)
		switch {
		case r.system():
			problem = fmt.Sprintf("system table %s, which cannot have a trigger: remove it", shown)
		case r.kind == 'v':
			q.compiled.relations = appendNew(q.compiled.relations, r.oid)
			continue
		case r.kind == 'm':
			problem = fmt.Sprintf("materialized view %s, whose refresh fires no trigger: read the underlying tables", shown)
		case r.kind == 'f':
			problem = fmt.Sprintf("foreign table %s, whose changes on the other server fire no trigger: remove it", shown)
		case r.kind == 'S':
			problem = fmt.Sprintf("sequence %s, which cannot have a trigger: remove it", shown)
		case r.kind != 'r' && r.kind != 'p':
			problem = fmt.Sprintf("%s, which is not a table: remove it", shown)
		case !slices.ContainsFunc(q.depends, func(t *table) bool {
			return slices.ContainsFunc(t.tree, func(part relation) bool { return part.oid == r.oid })
		}):
			problem = q.missingDepend(d, &r)
		}
		if problem != "" {
			problems = append(problems, d.what+" reads "+problem)
		}
	}
	return problems
}

// missingDepend returns the message for a table that no dependency names.
func (q *queryResolver) missingDepend(d *declaredReading, r *readRelation) string {
	name, partition := r.shown, ""
	if r.root != "" {
		name, partition = r.root, ", a partition of "+r.root
	}
	problem := fmt.Sprintf("table %s%s%s, which is not in depends: add { table: %s, key: … }", r.shown, through(r.view), partition, name)
	if d.via {
		problem += fmt.Sprintf("; a change of %s can change which documents depend on the rows that %s starts from", name, d.what)
	}
	return problem
}
