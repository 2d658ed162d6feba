package sqlite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// changeTable is the table that triggers append to. Its newest id is the token
// of a load.
const changeTable = "slipstream_change"

const changeTableSQL = `CREATE TABLE "slipstream_change" (
  id INTEGER PRIMARY KEY AUTOINCREMENT, -- never used twice, so a smaller number is an earlier change
  at INTEGER NOT NULL,                  -- unix seconds, for trimming alone
  resource TEXT NOT NULL,
  key TEXT,                             -- SQL literals of the key columns; NULL means every document
  nonce BLOB NOT NULL                   -- tells this history from a restored one
)`

// triggers writes every trigger of the resource. The text only depends on the
// declaration and the schema: [Origin.Check] compares it byte by byte.
func triggers(c *compiled) []origin.Object {
	var tables []*table
	for _, n := range c.Nodes {
		if !slices.Contains(tables, n.Table) {
			tables = append(tables, n.Table)
		}
	}
	var objects []origin.Object
	for _, t := range tables {
		var nodes []*node
		for _, n := range c.Nodes {
			if n.Table == t {
				nodes = append(nodes, n)
			}
		}
		w := triggerWriter{c: c, table: t, nodes: nodes}
		objects = append(objects, w.all()...)
	}
	return objects
}

// triggerWriter writes the triggers of one table for one resource. A table may
// be at several nodes of a tree; its triggers then serve all of them.
type triggerWriter struct {
	c     *compiled
	table *table
	nodes []*node
}

func (w *triggerWriter) all() []origin.Object {
	var insertBefore, updateBefore, insert, update, remove []string
	for _, n := range w.nodes {
		insertBefore = append(insertBefore, w.replaced(n, false)...)
		updateBefore = append(updateBefore, w.replaced(n, true)...)
		insert = append(insert, w.roots(n, "NEW", ""))
		remove = append(remove, w.roots(n, "OLD", ""))
		update = append(update, w.roots(n, "OLD", ""), w.roots(n, "NEW", w.movedClause(n)))
	}
	var objects []origin.Object
	for _, event := range []struct {
		name, when, comment string
		statements          []string
	}{
		{"before_insert", "BEFORE INSERT", "rows that INSERT OR REPLACE is about to delete", insertBefore},
		{"before_update", "BEFORE UPDATE", "rows that UPDATE OR REPLACE is about to delete", updateBefore},
		{"insert", "AFTER INSERT", "the document that a new row belongs to", insert},
		{"update", "AFTER UPDATE", "the documents that a changed row belonged to and belongs to", update},
		{"delete", "AFTER DELETE", "the document that a deleted row belonged to", remove},
	} {
		if len(event.statements) == 0 {
			continue
		}
		// A resource is one segment of a path, so '/' cannot be part of its
		// name and no two resources share the name of a trigger.
		name := fmt.Sprintf("slipstream_%s/%s/%s", w.c.Resource.Name, w.table.name, event.name)
		objects = append(objects, origin.Object{
			Name:     name,
			Resource: w.c.Resource.Name,
			Comment:  fmt.Sprintf("%s: records %s", w.table.name, event.comment),
			SQL: fmt.Sprintf("CREATE TRIGGER %s %s ON %s\nBEGIN\n%s\nEND",
				quoteName(name), event.when, quoteName(w.table.name), strings.Join(dedupe(event.statements), "\n")),
		})
	}
	return objects
}

func dedupe(statements []string) []string {
	var unique []string
	for _, s := range statements {
		if !slices.Contains(unique, s) {
			unique = append(unique, s)
		}
	}
	return unique
}

// record writes the statement that appends to the change table. key is an SQL
// expression; rest is what follows the SELECT list. It only uses functions that
// every SQLite since 3.8 has: the trigger runs in the writer's library.
func (w *triggerWriter) record(key, rest string) string {
	return fmt.Sprintf("  INSERT INTO %s(at, resource, key, nonce) SELECT CAST(strftime('%%s','now') AS INTEGER), %s, %s, randomblob(8)%s;",
		quoteName(changeTable), quoteText(w.c.Resource.Name), key, rest)
}

// keyOf writes the key of a row of the root table as SQL literals.
func (w *triggerWriter) keyOf(row string) string {
	parts := make([]string, len(w.c.KeyAt))
	for i, at := range w.c.KeyAt {
		parts[i] = "quote(" + row + "." + quoteName(w.c.Root.Table.columns[at].name) + ")"
	}
	return strings.Join(parts, "||','||")
}

// alias names the table of a node inside a statement.
func alias(n *node) string { return fmt.Sprintf("p%d", n.Depth) }

// roots writes the statement that records the root of a row, NEW or OLD.
//
// It looks up the path in the state after the change. That is the same path as
// before: a statement changes one row of one table at a time, and no other table
// on the path is this one. If the row above is already gone (a cascade from it),
// the trigger of that row has recorded the root.
func (w *triggerWriter) roots(n *node, row, condition string) string {
	if n.Parent == nil {
		if condition != "" {
			condition = " WHERE " + condition
		}
		return w.record(w.keyOf(row), condition)
	}
	conditions := []string{matchUp(n, row)}
	if condition != "" {
		conditions = append([]string{condition}, conditions...)
	}
	conditions = append(conditions, pathConditions(n.Parent)...)
	return w.record(w.keyOf("p0"), from(n.Parent)+" WHERE "+strings.Join(conditions, " AND "))
}

// from lists the tables from n up to the root. CROSS JOIN keeps SQLite from
// reordering them: the current row always selects one parent after the other.
func from(n *node) string {
	var b strings.Builder
	for up := n; up != nil; up = up.Parent {
		if up == n {
			b.WriteString(" FROM ")
		} else {
			b.WriteString(" CROSS JOIN ")
		}
		fmt.Fprintf(&b, "%s AS %s", quoteName(up.Table.name), alias(up))
	}
	return b.String()
}

// pathConditions ties the tables from n up to the root, columns to columns, as
// the load does.
func pathConditions(n *node) []string {
	var conditions []string
	for up := n; up.Parent != nil; up = up.Parent {
		for _, j := range up.On {
			conditions = append(conditions, fmt.Sprintf("%s.%s = %s.%s",
				alias(up.Parent), quoteName(up.Parent.Table.columns[j.Parent].name),
				alias(up), quoteName(up.Table.columns[j.Column].name)))
		}
	}
	return conditions
}

// matchUp writes the condition that joins NEW or OLD, a row of n, to the row that
// contains it, so that it holds wherever the load's join would.
//
// NEW.x and OLD.x carry the value but not the affinity of x. Between two columns
// SQLite converts only if one of them is numeric, and then the other side. So
// the affinity of x only matters if x is numeric and the other column is not (7
// joins '007'): there a CAST, which does not change numbers, restores it, and the
// plain term stays for values that a CAST changes.
func matchUp(n *node, row string) string {
	conditions := make([]string, len(n.On))
	for i, j := range n.On {
		up := alias(n.Parent) + "." + quoteName(n.Parent.Table.columns[j.Parent].name)
		value := row + "." + quoteName(n.Table.columns[j.Column].name)
		a, b := n.Table.columns[j.Column].affinity, n.Parent.Table.columns[j.Parent].affinity
		conditions[i] = up + " = " + value
		if a.numeric() && !b.numeric() {
			conditions[i] = fmt.Sprintf("(%s OR %s = CAST(%s AS NUMERIC))", conditions[i], up, value)
		}
	}
	return strings.Join(conditions, " AND ")
}

// movedClause is true if the roots of NEW may differ from those of OLD. Values that
// are equal here always join the same rows: 1 and 1.0 differ only as text, and no
// join turns a number into text.
func (w *triggerWriter) movedClause(n *node) string {
	columns := w.c.KeyAt
	if n.Parent != nil {
		columns = nil
		for _, j := range n.On {
			columns = append(columns, j.Column)
		}
	}
	return changed(n.Table, columns)
}

// changed is true when one of the columns differs between OLD and NEW, whatever
// their collation.
func changed(t *table, columns []int) string {
	parts := make([]string, len(columns))
	for i, at := range columns {
		name := t.rowid
		if at >= 0 {
			name = t.columns[at].name
		}
		parts[i] = fmt.Sprintf("NEW.%s COLLATE BINARY IS NOT OLD.%s", quoteName(name), quoteName(name))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "(" + strings.Join(parts, " OR ") + ")"
}

// replaced writes the statements that record the roots of other rows which the
// row NEW would replace: those equal to it in the columns of a unique index.
// SQLite deletes them without firing DELETE triggers unless the writer has set
// PRAGMA recursive_triggers, so this is the last moment to see them.
func (w *triggerWriter) replaced(n *node, update bool) []string {
	var statements []string
	for _, u := range w.table.unique {
		if w.coveredByAfter(n, u) {
			continue
		}
		if u.opaque {
			// SQL cannot express which rows conflict: all documents are dropped.
			statements = append(statements, w.record("NULL", ""))
			continue
		}
		var conditions []string
		// A row enters a partial index when any column that its predicate
		// reads changes, so comparing the columns of the index is not enough
		// there.
		if update && !u.partial {
			columns := make([]int, len(u.columns))
			for i, ic := range u.columns {
				columns[i] = ic.column
			}
			conditions = append(conditions, changed(w.table, columns))
		}
		// A partial index counts as a full one: at worst too many rows are
		// recorded.
		for _, ic := range u.columns {
			conditions = append(conditions, sameValue(w.table, alias(n), ic))
		}
		conditions = append(conditions, pathConditions(n)...)
		statements = append(statements, w.record(w.keyOf("p0"), from(n)+" WHERE "+strings.Join(conditions, " AND ")))
		// REPLACE replaces a NULL by the default after this trigger has run.
		for _, name := range filledLater(w.table, u) {
			statements = append(statements, w.record("NULL", " WHERE NEW."+quoteName(name)+" IS NULL"))
		}
	}
	return statements
}

// sameValue compares a column of a row with NEW under the collation of an index.
func sameValue(t *table, row string, ic indexColumn) string {
	name, collation := t.rowid, "BINARY"
	if ic.column >= 0 {
		name, collation = t.columns[ic.column].name, t.columns[ic.column].collation
	}
	left := row + "." + quoteName(name)
	if ic.collation != collation {
		left += " COLLATE " + ic.collation
	}
	return left + " = NEW." + quoteName(name)
}

// coveredByAfter reports whether a row that conflicts with NEW in the index
// belongs to the same documents as NEW itself, so that the AFTER trigger
// records them anyway: the index holds the key, or all columns of the join.
func (w *triggerWriter) coveredByAfter(n *node, u uniqueIndex) bool {
	if u.opaque {
		return false
	}
	holds := func(column int) bool {
		return slices.Contains(u.columns, indexColumn{column: column, collation: "BINARY"})
	}
	if n.Parent == nil {
		return !slices.ContainsFunc(w.c.KeyAt, func(at int) bool { return !holds(at) })
	}
	for _, j := range n.On {
		if !holds(j.Column) {
			return false
		}
	}
	return true
}

// filledLater lists the columns whose NULL a REPLACE would turn into a default
// and which take part in the index, directly or through a generated column.
func filledLater(t *table, u uniqueIndex) []string {
	generated := slices.ContainsFunc(u.columns, func(ic indexColumn) bool {
		return ic.column >= 0 && t.columns[ic.column].generated
	})
	var names []string
	for i, c := range t.columns {
		inIndex := slices.ContainsFunc(u.columns, func(ic indexColumn) bool { return ic.column == i })
		if c.notNull && c.fallback && (inIndex || generated) {
			names = append(names, c.name)
		}
	}
	return names
}
