package tree

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// Resolve looks up the tree and the key of the resource. The error is an
// [origin.SchemaError] if they do not fit the database.
func (r *Resolved[T]) Resolve(ctx context.Context, c Catalog[T]) error {
	root, err := r.node(ctx, c, &r.Resource.Root, nil, "")
	if err != nil {
		return err
	}
	r.Root = root
	return r.key(c)
}

// node resolves n and everything below it.
func (r *Resolved[T]) node(ctx context.Context, c Catalog[T], n *resource.Node, parent *Node[T], path string) (*Node[T], error) {
	t, err := c.Table(ctx, n.Table, n.Line)
	if wrong, ok := errors.AsType[*NoTable](err); ok {
		return nil, r.Fail(n.Line, "%s", wrong.Problem)
	}
	if err != nil {
		return nil, err
	}
	resolved := &Node[T]{Path: path, Table: t, Parent: parent}
	if parent != nil {
		resolved.Depth = parent.Depth + 1
	}
	if resolved.Depth > resource.MaxDepth {
		return nil, r.Fail(n.Line, "table %s is nested %d levels deep, at most %d are allowed", t.Name(), resolved.Depth, resource.MaxDepth)
	}
	for up := parent; up != nil; up = up.Parent {
		if up.Table == t {
			return nil, r.Fail(n.Line, "table %s contains itself; a path from the root may visit a table once", t.Name())
		}
	}
	r.Nodes = append(r.Nodes, resolved)
	if err := r.columns(resolved, n); err != nil {
		return nil, err
	}
	if err := r.join(c, resolved, n); err != nil {
		return nil, err
	}
	for _, o := range n.Order {
		if _, err := r.LookUp(t, n.Line, o.Column); err != nil {
			return nil, err
		}
		resolved.Order = append(resolved.Order, o)
	}
	if err := c.Check(resolved, n); err != nil {
		return nil, err
	}
	return resolved, r.children(ctx, c, resolved, n)
}

func (r *Resolved[T]) children(ctx context.Context, c Catalog[T], resolved *Node[T], n *resource.Node) error {
	seen := make(map[string]bool)
	names := resolved.Table.ColumnNames()
	for _, i := range resolved.Columns {
		seen[names[i]] = true
	}
	for i := range n.Children {
		name := n.Children[i].Name
		if seen[name] {
			return r.Fail(n.Children[i].Node.Line, "table %s has two members called %q in its document", resolved.Table.Name(), name)
		}
		seen[name] = true
		sub, err := r.node(ctx, c, &n.Children[i].Node, resolved, strings.TrimPrefix(resolved.Path+"/"+name, "/"))
		if err != nil {
			return err
		}
		resolved.Children = append(resolved.Children, Child[T]{name, sub})
	}
	return nil
}

// LookUp returns the index of a column of a table.
func (r *Resolved[T]) LookUp(t T, line int, name string) (int, error) {
	if i := t.Column(name); i >= 0 {
		return i, nil
	}
	return 0, r.Fail(line, "table %s has no column %q; %s", t.Name(), name, origin.Choices(name, t.ColumnNames()))
}

func (r *Resolved[T]) columns(resolved *Node[T], n *resource.Node) error {
	if len(n.Columns) == 0 {
		for i := range resolved.Table.ColumnNames() {
			resolved.Columns = append(resolved.Columns, i)
		}
		return nil
	}
	for _, name := range n.Columns {
		i, err := r.LookUp(resolved.Table, n.Line, name)
		if err != nil {
			return err
		}
		if slices.Contains(resolved.Columns, i) {
			return r.Fail(n.Line, "column %s of table %s is listed twice", name, resolved.Table.Name())
		}
		resolved.Columns = append(resolved.Columns, i)
	}
	return nil
}

// join finds how a child is tied to the row that contains it.
func (r *Resolved[T]) join(c Catalog[T], resolved *Node[T], n *resource.Node) error {
	if resolved.Parent == nil {
		if len(n.On) > 0 {
			return r.Fail(n.Line, "the root table %s has nothing to be joined to", resolved.Table.Name())
		}
		return nil
	}
	t, parent := resolved.Table, resolved.Parent.Table
	on := n.On
	if len(on) == 0 {
		var err error
		if on, err = r.joinOfForeignKey(c, t, parent, n.Line); err != nil {
			return err
		}
	}
	for _, j := range on {
		column, err := r.LookUp(t, n.Line, j.Column)
		if err != nil {
			return err
		}
		up, err := r.LookUp(parent, n.Line, j.Parent)
		if err != nil {
			return err
		}
		if problem := c.Joins(t, column, parent, up); problem != "" {
			return r.Fail(n.Line, "%s", problem)
		}
		resolved.On = append(resolved.On, Join{column, up})
	}
	return nil
}

// joinOfForeignKey returns the join of the only foreign key to the parent.
func (r *Resolved[T]) joinOfForeignKey(c Catalog[T], t, parent T, line int) ([]resource.Join, error) {
	found, problem := c.ForeignKeys(t, parent)
	switch {
	case len(found) == 1:
		return found[0].On, nil
	case len(found) == 0 && problem != "":
		return nil, r.Fail(line, "%s", problem)
	case len(found) == 0:
		return nil, r.Fail(line, "no foreign key leads from table %s to %s; name the columns that join them with on", t.Name(), parent.Name())
	}
	texts := make([]string, len(found))
	for i, fk := range found {
		texts[i] = fk.Text
	}
	return nil, r.Fail(line, "%d foreign keys lead from table %s to %s: %s; choose one of them with on",
		len(found), t.Name(), parent.Name(), strings.Join(texts, "; "))
}

// key checks that the key columns have one canonical form and name one row.
func (r *Resolved[T]) key(c Catalog[T]) error {
	t := r.Root.Table
	if len(r.Resource.Key) == 0 {
		return r.Fail(0, "no key; name the columns of table %s that form it", t.Name())
	}
	names := t.ColumnNames()
	for _, name := range r.Resource.Key {
		i, err := r.LookUp(t, r.Resource.Line, name)
		if err != nil {
			return err
		}
		if slices.Contains(r.KeyAt, i) {
			return r.Fail(0, "key column %s is listed twice", name)
		}
		kind, problem := c.KeyKind(t, i)
		if problem != "" {
			return r.Fail(0, "key column %s.%s %s", t.Name(), name, problem)
		}
		r.Key = append(r.Key, resource.KeyColumn{Name: names[i], Kind: kind})
		r.KeyAt = append(r.KeyAt, i)
	}
	if expected := c.Unique(t, r.KeyAt); expected != "" {
		return r.Fail(0, "key (%s) does not name one row: table %s has neither a primary key nor %s over exactly these columns",
			strings.Join(r.Resource.Key, ", "), t.Name(), expected)
	}
	return nil
}
