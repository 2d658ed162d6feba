package postgres

import (
	"slices"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// equals writes the condition that a column of target, reached through an index
// if it has one, equals a column of source. Only source is converted: a
// conversion of target would keep its indexes from being used.
func equals(target *column, targetSQL string, source *column, sourceSQL string) string {
	to, from := builtinKeyTypes[target.typ].kind, builtinKeyTypes[source.typ].kind
	switch {
	case to == resource.Integer && from == resource.Decimal:
		sourceSQL = when(fitsInt8(sourceSQL), when(equal("pg_catalog.trunc("+sourceSQL+")", sourceSQL), sourceSQL+"::pg_catalog.int8"))
	case to == resource.Decimal && from == resource.Integer:
		sourceSQL += "::pg_catalog.numeric"
	case target.collation != source.collation && from == resource.Text:
		// Two collations of columns conflict. Equality is the same under all
		// deterministic ones; the target's is that of its index.
		collation := target.collation
		if collation == "" {
			collation = `pg_catalog."default"`
		}
		sourceSQL = "(" + sourceSQL + ") COLLATE " + collation
	}
	return equal(targetSQL, sourceSQL)
}

// resolveSources determines what the triggers of each node record, and how
// documents are found from that.
func (c *compiled) resolveSources() error {
	for _, n := range c.Nodes {
		s := source{name: strings.TrimSuffix(c.Resource.Name+"/"+n.Path, "/"), table: n.Table}
		if places, ok := c.keyOf(n); ok {
			s.columns = places
		} else {
			for _, j := range n.On {
				s.columns = append(s.columns, j.Column)
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
	if n == c.Root {
		return c.KeyAt, true
	}
	if n.Parent != c.Root || len(n.On) != len(c.KeyAt) {
		return nil, false
	}
	for i, key := range c.KeyAt {
		at := slices.IndexFunc(n.On, func(j join) bool { return j.Parent == key })
		if at < 0 {
			return nil, false
		}
		t, _ := keyTypeOf(&n.Table.columns[n.On[at].Column])
		if t.kind != c.keyTypes[i].kind {
			return nil, false
		}
		places = append(places, n.On[at].Column)
	}
	return places, true
}

// derivation writes the SELECT that climbs from a recorded link of n, c.key, to
// the keys of documents: from the parent's rows that the link refers to up to the
// root's. The table of n is not read; the row that recorded the link may be gone.
//
// Each level is a separate subquery, because of OFFSET 0: the only possible plan is a
// lookup for each row of the level below. With free choice the planner hashes a
// whole table for each change if it estimates that a link refers to many rows.
func (c *compiled) derivation(n *node) string {
	texts := []string{"c.key"}
	var levels []string
	if len(n.On) > 1 {
		// The texts are cut out once; each is used several times below.
		texts = nil
		var elements []string
		for i := range n.On {
			name := "l" + strconv.Itoa(i)
			elements = append(elements, elementText("c.key", i)+" AS "+name)
			texts = append(texts, "link."+name)
		}
		levels = append(levels, "(SELECT "+strings.Join(elements, ", ")+" OFFSET 0) AS link")
	}
	var where []string
	for i, j := range n.On {
		parent := &n.Parent.Table.columns[j.Parent]
		t, _ := keyTypeOf(parent)
		value := t.value(texts[i])
		if parent.collation != "" {
			value = "(" + value + ") COLLATE " + parent.collation
		}
		where = append(where, equal(columnOf(n.Parent, j.Parent), value))
	}
	for level := n.Parent; ; level = level.Parent {
		var columns []string // by which the next level, or the key, is found
		for _, j := range level.On {
			if column := columnOf(level, j.Column); !slices.Contains(columns, column) {
				columns = append(columns, column)
			}
		}
		if level.Parent == nil {
			for _, at := range c.KeyAt {
				columns = append(columns, columnOf(level, at))
			}
		}
		levels = append(levels, "LATERAL (SELECT "+strings.Join(columns, ", ")+" FROM "+level.Table.sql()+" AS "+alias(level)+
			" WHERE "+strings.Join(where, " AND ")+" OFFSET 0) AS "+alias(level))
		if level.Parent == nil {
			break
		}
		where = nil
		for _, j := range level.On {
			where = append(where, equals(&level.Parent.Table.columns[j.Parent], columnOf(level.Parent, j.Parent),
				&level.Table.columns[j.Column], columnOf(level, j.Column)))
		}
	}
	key := make([]string, len(c.KeyAt))
	for i, at := range c.KeyAt {
		key[i] = columnOf(c.Root, at)
	}
	return "SELECT DISTINCT " + keyText(c.keyTypes, key) + " FROM " + strings.Join(levels, ", ")
}

// alias is the name of the node's table in a path from the root, which visits no
// depth twice.
func alias(n *node) string { return "t" + strconv.Itoa(n.Depth) }

// columnOf writes a column of the node.
func columnOf(n *node, i int) string { return alias(n) + "." + quoteName(n.Table.columns[i].name) }
