package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// This file reads the tree of tables that a document is made of.

// childFields are the fields of a list inside a document. What it costs to change one is said
// of the resource's children.
func childFields() []field[resource.Node] {
	self := func(n *resource.Node) *resource.Node { return n }
	return []field[resource.Node]{
		tableField(self),
		{Name: "on", Doc: "how a row finds the row that contains it, {column: column of the containing row}; left out: by the one foreign key",
			Value: join()},
		{Name: "order", Doc: `the order of the rows, such as [empno, -hired]; "-" is descending`,
			Value: list(orderTerm(), maxColumns, func(a, b resource.Order) bool { return strings.EqualFold(a.Column, b.Column) },
				func(n *resource.Node) *[]resource.Order { return &n.Order })},
		columnsField(self),
		childrenField(self),
	}
}

// tableField is the table of a node, which must not contain itself.
func tableField[T any](node func(*T) *resource.Node) field[T] {
	return field[T]{Name: "table", Doc: "the table that the rows come from",
		Value: scalar(identifier("the name of a table"), func(t *T) *string { return &node(t).Table }),
		Omit:  ifZero, Required: true, Reload: flush, Check: func(p *parser, v value, into *T) {
			n := node(into)
			n.Line = v.line()
			// Databases fold the case of names, so two spellings are one table.
			if slices.ContainsFunc(p.tables, func(t string) bool { return strings.EqualFold(t, n.Table) }) {
				p.failAt(v, "table %q contains itself (%s); expected each table once on the way from the root",
					n.Table, strings.Join(append(slices.Clone(p.tables), n.Table), " > "))
			}
		}}
}

func columnsField[T any](node func(*T) *resource.Node) field[T] {
	return field[T]{Name: "columns", Doc: "the columns that are shown, in this order; left out: all of the table",
		Value: list(identifier("the name of a column"), maxColumns, strings.EqualFold, func(t *T) *[]string { return &node(t).Columns }), Reload: flush}
}

// childrenField is the lists inside a row.
func childrenField[T any](node func(*T) *resource.Node) field[T] {
	return field[T]{Name: "children", Doc: "lists of rows inside the document, by the name of the JSON member", Reload: flush,
		Value: named("names to children", maxChildren, namedOf[T, resource.Child]{
			at: func(t *T) *[]resource.Child { return &node(t).Children },
			read: func(p *parser, name string, v value, into *T) {
				parent := node(into)
				if len(p.tables) == resource.MaxDepth {
					p.failKey(v, "nested deeper than %d levels below the root; expected a document of its own", resource.MaxDepth)
					return
				}
				switch {
				case !memberName.MatchString(name):
					p.failKey(v, "not the name of a list; expected 1 to 64 of A-Z, a-z, 0-9, - and _, a letter or _ first")
				case slices.Contains(parent.Columns, name):
					p.failKey(v, "a column of %q has this name too; expected members of the document to have different names", parent.Table)
				}
				child := resource.Child{Name: name}
				p.tables = append(p.tables, parent.Table)
				readObject(p, v, childFields(), &child.Node)
				p.tables = p.tables[:len(p.tables)-1]
				parent.Children = append(parent.Children, child)
			},
			write:  func(c *resource.Child) (string, any) { return c.Name, writeObject(childFields(), &c.Node) },
			names:  schema{"pattern": memberName.String()},
			schema: func() schema { return schema{"$ref": "#/$defs/child"} },
		})}
}

// memberName allows what is a name in every language that reads JSON.
var memberName = regexp.MustCompile("^[A-Za-z_][A-Za-z0-9_-]{0,63}$")

// join is { column of the child: column of the parent }.
func join() setting[resource.Node] {
	column := identifier("the name of a column of the containing row's table")
	return named("columns of this table to columns of the containing row's table", maxKey, namedOf[resource.Node, resource.Join]{
		at: func(n *resource.Node) *[]resource.Join { return &n.On },
		read: func(p *parser, name string, v value, into *resource.Node) {
			if problem := badLabel(name, maxIdentifier); problem != "" {
				p.failKey(v, "the column%s; expected the name of a column", problem)
				return
			}
			j := resource.Join{Column: name}
			if readScalar(p, v, column, &j.Parent) {
				into.On = append(into.On, j)
			}
		},
		write:  func(j *resource.Join) (string, any) { return j.Column, j.Parent },
		names:  schema{"minLength": 1, "maxLength": maxIdentifier},
		schema: func() schema { return column.schema },
	})
}

// orderTerm is a column, with "-" before it for descending.
func orderTerm() kind[resource.Order] {
	column := identifier(`the name of a column, with "-" before it for descending`)
	return kind[resource.Order]{
		expected: column.expected,
		parse: func(t text) (resource.Order, string) {
			s, problem := column.parse(t)
			name, descending := strings.CutPrefix(s, "-")
			if problem == "" && name == "" {
				problem = fmt.Sprintf("%s is a sign without a column", t)
			}
			return resource.Order{Column: name, Descending: descending}, problem
		},
		format: func(o resource.Order) any {
			if o.Descending {
				return "-" + o.Column
			}
			return o.Column
		},
		schema: schema{"type": "string", "minLength": 1, "maxLength": maxIdentifier + 1, "pattern": "^-?."},
	}
}
