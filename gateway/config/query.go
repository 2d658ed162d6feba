package config

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// This file reads resources that are declared by a statement instead of a tree of
// tables, and fields that both kinds have.

const (
	maxStatement = 64 << 10
	maxDepends   = 64
)

// read reads a resource of either kind and refuses fields of the other.
func (r *Resource) read(p *parser, v value, o *Origin) {
	before := len(p.errors)
	readObject(p, v, r.fields())
	if _, ok := entries(v.node); !ok {
		return // readObject has reported it
	}
	refuse := func(why string, names ...string) {
		for _, name := range names {
			if one, found := v.child(name); found {
				p.failKey(one, "%s", why)
			}
		}
	}
	table, isTable := v.child("table")
	statement, isQuery := v.child("sql")
	switch {
	case isTable && isQuery:
		p.failKey(statement, `conflicts with "table" on line %d; expected one of them`, position(table.key).Line)
	case isQuery:
		if r, err := o.rules(); err == nil && r.noStatement != "" {
			p.failKey(statement, "%s", r.noStatement)
		}
		refuse(`belongs in the statement; expected it there, or "table" instead of "sql"`, "columns", "children", "bigint")
		if len(p.errors) == before {
			p.statement(v, r)
		}
	case isTable:
		refuse(`follows from a table and its children; expected it only with "sql"`, "depends")
		if r.Query != nil && r.Query.Key != nil {
			p.failAt(within(v, "key"), `a mapping; expected a list of columns, such as [deptno]; only "sql" needs their types`)
		}
	default:
		p.failKey(v, `field "table" is missing; expected the table that the rows come from, or "sql", a statement that returns the documents`)
	}
}

// statement checks rules that concern several fields of a resource with a
// statement.
func (p *parser) statement(v value, r *Resource) {
	if r.Query.Key == nil {
		key := within(v, "key")
		p.failAt(key, "%s; expected a mapping from the key columns of the statement to their types, such as { id: bigint }", describe(key.node))
		return
	}
	if missing := missingParameter(r.Query.SQL, len(r.Key)); missing != "" {
		p.failAt(within(v, "sql"), "%s is missing; expected the keys to be taken from arrays, such as %s", missing, whereKeys(r.Key))
	}
	if len(r.Query.Depends) == 0 && !r.NoPromise {
		p.failKey(v, `field "depends" is missing; expected the tables whose changes change documents, or "promise: none"`)
	}
}

// missingParameter returns the first of $1 to $n that a statement lacks.
func missingParameter(sql string, n int) string {
	for i := n; i > 0; i-- { // from above: $10 contains $1, too
		name := "$" + strconv.Itoa(i)
		if !strings.Contains(sql, name) {
			return name
		}
		sql = strings.ReplaceAll(sql, name, "")
	}
	return ""
}

// whereKeys is an example of a condition.
func whereKeys(key []string) string {
	if len(key) == 1 {
		return key[0] + " = ANY ($1)"
	}
	arrays := make([]string, len(key))
	for i := range key {
		arrays[i] = "$" + strconv.Itoa(i+1)
	}
	return "(" + strings.Join(key, ", ") + ") IN (SELECT * FROM unnest(" + strings.Join(arrays, ", ") + "))"
}

// statement is the kind of SQL text. The database parses it; here only text that
// could never be one statement is refused.
func statement(expected string) kind[string] {
	return keyword[string](expected, func(s string) string {
		trimmed := strings.TrimSpace(s)
		foreign := func(c rune) bool { return isControl(c) && c != '\n' && c != '\r' && c != '\t' }
		return cmp.Or(
			when(trimmed == "", " is empty"),
			tooLong(s, maxStatement),
			when(strings.HasSuffix(trimmed, ";"), ` ends with ";", which is not a part of a statement`),
			when(strings.ContainsFunc(s, foreign), " holds a control character"))
	}, schema{"type": "string", "minLength": 1, "maxLength": maxStatement})
}

func querySQL(q *resource.Query) setting {
	return scalar(&q.SQL, statement("one SELECT of the key columns and the document, of all keys in the arrays $1, $2, ..."))
}

// key accepts a list of the columns of a table, or a mapping from the columns of a statement to
// their types.
func (r *Resource) key() setting {
	types := behind(&r.Query, func(q *resource.Query) setting {
		return pairs(&q.Key, "key columns to types", maxKey,
			identifier("the name of a type of the database, such as bigint, text or uuid"), columnNames,
			badColumn("the name of a column of the statement"),
			func(k *resource.QueryKey) (name, text *string) { return &k.Name, &k.Type })
	})
	columns := list(&r.Key, identifier("the name of a column"), maxKey)
	return either(columns, types.then(func(*parser, value) {
		for _, k := range r.Query.Key {
			r.Key = append(r.Key, k.Name)
		}
	}), func() bool { return r.Query == nil })
}

// depends is the tables that a statement reads.
func (r *Resource) depends() setting {
	one := func(d *resource.Depend) setting {
		// A missing key is reported by depend.
		s := object(func() []field { return dependFields(d) }).with("required", []string{"table", "key"})
		read := s.read
		s.read = func(p *parser, v value) {
			d.Line = v.line()
			before := len(p.errors)
			if read(p, v); len(p.errors) == before {
				p.depend(v, *d, r.Key)
			}
		}
		return s
	}
	return behind(&r.Query, func(q *resource.Query) setting {
		return mappings(&q.Depends, "a list of { table, key, via, reads_itself }",
			"tables, or, if changes need not be followed, promise: none", maxDepends, one, dependFields)
	})
}

// depend checks that the keys of documents can be found from a changed row.
func (p *parser) depend(v value, d resource.Depend, key []string) {
	switch {
	case d.Via == "" && d.ReadsItself:
		p.failAt(v, `"reads_itself" without "via"; expected it only with a "via" that reads the table of the dependency`)
	case d.Via != "" && len(d.Columns) == 0:
		p.failAt(v, `"via" without "key"; expected key: %s, the columns of %s that "via" starts from, because it cannot read a deleted or moved row`,
			keyTemplate(d.Via), d.Table)
	case d.Via != "":
		if missing := missingParameter(d.Via, len(d.Columns)); missing != "" {
			p.failAt(v, `%s does not appear in "via"; expected it to use the columns of the changed rows, one array each`, missing)
		}
	case len(d.Columns) == 0:
		p.failAt(v, `field "key" is missing; expected the columns of %s that hold the key of the document, or that "via" starts from`, d.Table)
	case len(key) > 0 && len(d.Columns) != len(key):
		p.failAt(v, `"key" has %d columns and the key of the document %d; expected as many, in the order of the path, or "via", a statement that finds it`,
			len(d.Columns), len(key))
	}
}

// keyTemplate formats a value of key with as many columns as via has parameters.
func keyTemplate(via string) string {
	columns := []string{"COLUMN"}
	for len(columns) < maxKey && missingParameter(via, len(columns)+1) == "" {
		columns = append(columns, "COLUMN")
	}
	return "[" + strings.Join(columns, ", ") + "]"
}

// dependFields are those of one table. The effect of a change is stated for depends.
func dependFields(d *resource.Depend) []field {
	column := identifier("the name of a column")
	columns := list(&d.Columns, column, maxKey)
	key := columns
	key.read = func(p *parser, v value) {
		if _, isList := v.node.(*ast.SequenceNode); isList {
			columns.read(p, v)
			return
		}
		var one string
		if column.read(p, v, &one) {
			d.Columns = []string{one}
		}
	}
	key.schema = func() schema { return schema{"oneOf": []any{column.schema, columns.schema()}} }
	return []field{
		{Name: "table", Value: scalar(&d.Table, identifier("the name of a table")), Always: true, Required: true,
			Doc: "the table whose changes change documents"},
		{Name: "key", Value: key,
			Doc: "columns of the table: without via, those that hold the key of the document, in the order of the path; " +
				"with via, those from which via must find the documents " +
				"even if the row has been deleted or moved"},
		{Name: "via", Value: scalar(&d.Via, statement("one SELECT of the key columns, from the arrays $1, $2, ...")),
			Doc: "a statement that selects the keys of the documents that changed rows belong to; " +
				"the arrays $1, $2, ... hold the columns in key of these rows"},
		{Name: "reads_itself", Value: scalar(&d.ReadsItself, truth()),
			Doc: "true: via may read the table of the dependency, as a recursive tree must; " +
				"it has to find the documents even if the row has been deleted or moved"},
	}
}
