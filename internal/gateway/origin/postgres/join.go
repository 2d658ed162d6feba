package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// resolveJoin finds how a child is tied to the row that contains it.
func (c *compiled) resolveJoin(resolved *node, n *resource.Node) error {
	parent := resolved.parent
	if parent == nil {
		if len(n.On) > 0 {
			return c.fail(n.Line, "the root table %s has nothing to be joined to", resolved.table.name)
		}
		return nil
	}
	on := n.On
	if len(on) == 0 {
		var err error
		if on, err = c.joinOfForeignKey(resolved, n.Line); err != nil {
			return err
		}
	}
	for _, j := range on {
		column, err := c.lookUp(resolved.table, n.Line, j.Column)
		if err != nil {
			return err
		}
		up, err := c.lookUp(parent.table, n.Line, j.Parent)
		if err != nil {
			return err
		}
		if err := c.comparable(resolved.table, column, parent.table, up, n.Line); err != nil {
			return err
		}
		resolved.on = append(resolved.on, join{column, up})
	}
	if !slices.ContainsFunc(resolved.on, func(j join) bool { return slices.Contains(resolved.table.leading, j.column) }) {
		c.warn("no index of table %s starts with its join column %s; every load reads the whole table",
			resolved.table.name, resolved.table.columns[resolved.on[0].column].name)
	}
	// The stream climbs from a link to the root by the parent's columns.
	if !slices.ContainsFunc(resolved.on, func(j join) bool { return slices.Contains(parent.table.leading, j.parent) }) {
		c.warn("no index of table %s starts with %s, by which table %s is joined to it; every change of that table makes the stream read the whole of %s",
			parent.table.name, parent.table.columns[resolved.on[0].parent].name, resolved.table.name, parent.table.name)
	}
	return nil
}

// comparable checks that two join columns have types that compare alike in
// PostgreSQL and in the texts that triggers record.
func (c *compiled) comparable(child *table, column int, parent *table, up, line int) error {
	var types [2]keyType
	for i, side := range []struct {
		t  *table
		at int
	}{{child, column}, {parent, up}} {
		col := &side.t.columns[side.at]
		var problem string
		if types[i], problem = keyTypeOf(col); problem != "" {
			return c.fail(line, "join column %s.%s %s", side.t.name, col.name, problem)
		}
	}
	a, b := types[0], types[1]
	if numeric := (a.kind == resource.Integer || a.kind == resource.Decimal) && (b.kind == resource.Integer || b.kind == resource.Decimal); a == b || numeric {
		return nil
	}
	return c.fail(line, "join columns %s.%s and %s.%s have types %s and %s; expected the same type, or two number types",
		child.name, child.columns[column].name, parent.name, parent.columns[up].name, child.columns[column].typeName, parent.columns[up].typeName)
}

// joinOfForeignKey returns the join of the one foreign key to the parent.
func (c *compiled) joinOfForeignKey(resolved *node, line int) ([]resource.Join, error) {
	t, parent := resolved.table, resolved.parent.table
	var found [][]resource.Join
	var texts []string
	temporal := ""
	for _, fk := range t.foreignKeys {
		if fk.table != parent.oid {
			continue
		}
		if fk.period {
			temporal = fk.name
			continue
		}
		var on []resource.Join
		for i := range fk.from {
			on = append(on, resource.Join{Column: fk.from[i], Parent: fk.to[i]})
		}
		found = append(found, on)
		texts = append(texts, fmt.Sprintf("%s (%s) references (%s)", fk.name, strings.Join(fk.from, ", "), strings.Join(fk.to, ", ")))
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && temporal != "":
		return nil, c.fail(line, "foreign key %s of table %s has a PERIOD, which does not compare by equality; say which columns tie the table to %s with on",
			temporal, t.name, parent.name)
	case len(found) == 0:
		return nil, c.fail(line, "no foreign key leads from table %s to %s; say which columns tie them with on", t.name, parent.name)
	default:
		return nil, c.fail(line, "%d foreign keys lead from table %s to %s: %s; say which one is meant with on",
			len(found), t.name, parent.name, strings.Join(texts, "; "))
	}
}

// equals writes that a column of target, reached through an index if it has one,
// equals a column of source. Only source is converted: a conversion of target
// would keep its indexes from being used.
func equals(target *column, targetSQL string, source *column, sourceSQL string) string {
	to, from := builtinKeyTypes[target.typ].kind, builtinKeyTypes[source.typ].kind
	switch {
	case to == resource.Integer && from == resource.Decimal:
		sourceSQL = when(fitsInt8(sourceSQL), when(equal("pg_catalog.trunc("+sourceSQL+")", sourceSQL), sourceSQL+"::pg_catalog.int8"))
	case to == resource.Decimal && from == resource.Integer:
		sourceSQL += "::pg_catalog.numeric"
	case target.collation != source.collation && from == resource.Text:
		// Two collations of columns conflict. Equality is the same under all
		// deterministic ones; the target's is the one its index is sorted by.
		collation := target.collation
		if collation == "" {
			collation = `pg_catalog."default"`
		}
		sourceSQL = "(" + sourceSQL + ") COLLATE " + collation
	}
	return equal(targetSQL, sourceSQL)
}

// resolveSources says for each node what its triggers record, and how documents
// are found from it.
func (c *compiled) resolveSources() error {
	for _, n := range c.nodes {
		s := source{name: strings.TrimSuffix(c.resource.Name+"/"+n.path, "/"), table: n.table}
		if places, ok := c.keyOf(n); ok {
			s.columns = places
		} else {
			for _, j := range n.on {
				s.columns = append(s.columns, j.column)
			}
			s.derive = c.derivation(n)
		}
		c.sources = append(c.sources, s)
	}
	return nil
}

// keyOf returns the columns of a node's table that are the key of the document
// which a row belongs to, in the order of the key; ok is false if there are none
// because the node is not joined to the root by its key, or with another text.
func (c *compiled) keyOf(n *node) (places []int, ok bool) {
	if n == c.root {
		return n.key, true
	}
	if n.parent != c.root || len(n.on) != len(c.root.key) {
		return nil, false
	}
	for i, key := range c.root.key {
		at := slices.IndexFunc(n.on, func(j join) bool { return j.parent == key })
		if at < 0 {
			return nil, false
		}
		t, _ := keyTypeOf(&n.table.columns[n.on[at].column])
		if t.kind != c.keyTypes[i].kind {
			return nil, false
		}
		places = append(places, n.on[at].column)
	}
	return places, true
}

// derivation writes the SELECT that climbs from a recorded link of n, c.key, to
// the keys of documents: from the parent's rows that the link means up to the
// root's. The table of n is not read; the row that recorded the link may be gone.
//
// Each level is a subquery of its own, kept so by OFFSET 0: a look-up for each row
// of the level below is the only plan. A planner that may join as it likes hashes
// a whole table for each change if it thinks that a link means many rows.
func (c *compiled) derivation(n *node) string {
	texts := []string{"c.key"}
	var levels []string
	if len(n.on) > 1 {
		// The texts are cut out once; each is used several times below.
		texts = nil
		var elements []string
		for i := range n.on {
			name := "l" + strconv.Itoa(i)
			elements = append(elements, elementText("c.key", i)+" AS "+name)
			texts = append(texts, "link."+name)
		}
		levels = append(levels, "(SELECT "+strings.Join(elements, ", ")+" OFFSET 0) AS link")
	}
	var where []string
	for i, j := range n.on {
		parent := &n.parent.table.columns[j.parent]
		t, _ := keyTypeOf(parent)
		value := t.value(texts[i])
		if parent.collation != "" {
			value = "(" + value + ") COLLATE " + parent.collation
		}
		where = append(where, equal(n.parent.column(j.parent), value))
	}
	for level := n.parent; ; level = level.parent {
		var columns []string // by which the next level, or the key, is found
		for _, j := range level.on {
			if column := level.column(j.column); !slices.Contains(columns, column) {
				columns = append(columns, column)
			}
		}
		for _, at := range level.key {
			columns = append(columns, level.column(at))
		}
		levels = append(levels, "LATERAL (SELECT "+strings.Join(columns, ", ")+" FROM "+level.table.sql()+" AS "+level.alias()+
			" WHERE "+strings.Join(where, " AND ")+" OFFSET 0) AS "+level.alias())
		if level.parent == nil {
			break
		}
		where = nil
		for _, j := range level.on {
			where = append(where, equals(&level.parent.table.columns[j.parent], level.parent.column(j.parent),
				&level.table.columns[j.column], level.column(j.column)))
		}
	}
	key := make([]string, len(c.root.key))
	for i, at := range c.root.key {
		key[i] = c.root.column(at)
	}
	return "SELECT DISTINCT " + keyText(c.keyTypes, key) + " FROM " + strings.Join(levels, ", ")
}

// alias is the name of the node's table in a path from the root, which visits no
// depth twice.
func (n *node) alias() string { return "t" + strconv.Itoa(n.depth) }

// column writes a column of the node.
func (n *node) column(i int) string { return n.alias() + "." + quoteName(n.table.columns[i].name) }
