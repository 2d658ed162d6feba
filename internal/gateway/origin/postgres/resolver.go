package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin/tree"
)

// maxName is the longest name of a column of a query, in bytes (NAMEDATALEN - 1);
// PostgreSQL cuts longer ones off.
const maxName = 63

// resolver is the [tree.Catalog] of one resource.
type resolver struct {
	catalog  *catalog
	compiled *compiled
}

// Table implements [tree.Catalog].
func (r *resolver) Table(ctx context.Context, name string, line int) (*table, error) {
	return r.compiled.resolveTable(ctx, r.catalog, name, line)
}

// ForeignKeys implements [tree.Catalog].
func (r *resolver) ForeignKeys(from, to *table) (found []tree.ForeignKey, problem string) {
	for _, fk := range from.foreignKeys {
		if fk.table != to.oid {
			continue
		}
		if fk.period {
			problem = fmt.Sprintf("foreign key %s of table %s has a PERIOD, which does not compare by equality; name the columns that join the table to %s with on",
				fk.name, from.name, to.name)
			continue
		}
		one := tree.ForeignKey{Text: fmt.Sprintf("%s (%s) references (%s)", fk.name, strings.Join(fk.from, ", "), strings.Join(fk.to, ", "))}
		for i := range fk.from {
			one.On = append(one.On, resource.Join{Column: fk.from[i], Parent: fk.to[i]})
		}
		found = append(found, one)
	}
	return found, problem
}

// Joins implements [tree.Catalog]: two join columns must have types that compare alike in
// PostgreSQL and in the texts that triggers record.
func (r *resolver) Joins(child *table, column int, parent *table, up int) (problem string) {
	var types [2]keyType
	for i, side := range []struct {
		t  *table
		at int
	}{{child, column}, {parent, up}} {
		col := &side.t.columns[side.at]
		if types[i], problem = keyTypeOf(col); problem != "" {
			return fmt.Sprintf("join column %s.%s %s", side.t.name, col.name, problem)
		}
	}
	a, b := types[0], types[1]
	if numeric := (a.kind == resource.Integer || a.kind == resource.Decimal) && (b.kind == resource.Integer || b.kind == resource.Decimal); a == b || numeric {
		return ""
	}
	return fmt.Sprintf("join columns %s.%s and %s.%s have types %s and %s; expected the same type, or two number types",
		child.name, child.columns[column].name, parent.name, parent.columns[up].name, child.columns[column].typeName, parent.columns[up].typeName)
}

// KeyKind implements [tree.Catalog].
func (r *resolver) KeyKind(t *table, column int) (kind resource.Kind, problem string) {
	col := &t.columns[column]
	keyType, problem := keyTypeOf(col)
	if problem == "" && !col.notNull {
		problem = fmt.Sprintf("may be NULL, which no path can name; expected: ALTER TABLE %s ALTER COLUMN %s SET NOT NULL", t.sql(), quoteName(col.name))
	}
	return keyType.kind, problem
}

// Unique implements [tree.Catalog].
func (r *resolver) Unique(t *table, columns []int) (expected string) {
	if slices.ContainsFunc(t.unique, func(u []int) bool { return sameSet(u, columns) }) {
		return ""
	}
	return "a full, immediate unique index"
}

// Check implements [tree.Catalog].
func (r *resolver) Check(n *node, declared *resource.Node) error {
	r.warnOfJoin(n)
	r.completeOrder(n)
	if err := r.readable(n, declared); err != nil {
		return err
	}
	for _, child := range declared.Children {
		if len(child.Name) > maxName {
			return r.compiled.Fail(child.Node.Line, "the name %q of a child has %d bytes, PostgreSQL keeps %d", child.Name, len(child.Name), maxName)
		}
	}
	return nil
}

// warnOfJoin warns about joins for which there is no index.
func (r *resolver) warnOfJoin(n *node) {
	if n.Parent == nil {
		return
	}
	t, parent := n.Table, n.Parent.Table
	if !slices.ContainsFunc(n.On, func(j join) bool { return slices.Contains(t.leading, j.Column) }) {
		r.compiled.Warn("no index of table %s starts with its join column %s; every load reads the whole table",
			t.name, t.columns[n.On[0].Column].name)
	}
	// The stream climbs from a link to the root by the parent's columns.
	if !slices.ContainsFunc(n.On, func(j join) bool { return slices.Contains(parent.leading, j.Parent) }) {
		r.compiled.Warn("no index of table %s starts with %s, by which table %s is joined to it; every change of that table makes the stream read the whole of %s",
			parent.name, parent.columns[n.On[0].Parent].name, t.name, parent.name)
	}
}

// completeOrder appends the primary key to the order of rows.
func (r *resolver) completeOrder(n *node) {
	t := n.Table
	for _, i := range t.primaryKey {
		name := t.columns[i].name
		if !slices.ContainsFunc(n.Order, func(o resource.Order) bool { return o.Column == name }) {
			n.Order = append(n.Order, resource.Order{Column: name})
		}
	}
	if n.Parent != nil && len(t.primaryKey) == 0 {
		r.compiled.Warn("table %s has no primary key, so rows that are equal in the declared order may change places from load to load", t.name)
	}
}

// readable checks the privileges on every column that the node is read by.
func (r *resolver) readable(resolved *node, declared *resource.Node) error {
	c, cat := r.compiled, r.catalog
	t := resolved.Table
	needed := slices.Clone(resolved.Columns)
	for _, j := range resolved.On {
		needed = append(needed, j.Column)
	}
	for _, o := range resolved.Order {
		needed = append(needed, t.Column(o.Column))
	}
	if resolved.Parent == nil {
		for _, name := range c.Resource.Key {
			if i := t.Column(name); i >= 0 {
				needed = append(needed, i)
			}
		}
	}
	if err := c.mayRead(cat, t, needed, declared.Line); err != nil {
		return err
	}
	var parents []int
	for _, j := range resolved.On {
		parents = append(parents, j.Parent)
	}
	if len(parents) == 0 {
		return nil
	}
	return c.mayRead(cat, resolved.Parent.Table, parents, declared.Line)
}

// sameSet reports whether a and b, without repetitions, have the same elements.
func sameSet(a, b []int) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(i int) bool { return !slices.Contains(b, i) })
}
