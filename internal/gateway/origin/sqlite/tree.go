package sqlite

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// node is a table in the tree of a resource, resolved against the database.
type node struct {
	table    *table
	parent   *node // nil for the root
	depth    int   // 0 for the root
	columns  []int // shown, in this order
	on       []join
	order    []resource.Order // of rows, the primary key appended
	children []child
}

type child struct {
	name string
	node *node
}

// join says that a column of the table equals one of the parent's.
type join struct{ column, parent int }

// compiled is a resource resolved against the database.
type compiled struct {
	resource *resource.Resource
	err      *origin.SchemaError // set: nothing below is valid

	key      []resource.KeyColumn
	keyAt    []int // their places in root.table.columns
	root     *node
	nodes    []*node // root first, parents before children
	shape    *resource.Shape
	triggers []origin.Object
	warnings []string
}

// schema is every resource resolved against one state of the database's schema.
// Immutable once made.
type schema struct {
	version   int64 // PRAGMA schema_version
	set       *origin.Set
	resources []*compiled
	promises  []string // per resource, why freshness cannot be promised; "" if it can
	tracked   bool     // the change table exists
}

// readSchema resolves the resources inside the transaction that conn is in.
// The error is about the database; what is wrong with a resource stands in its
// compiled.err.
func readSchema(conn *sqlite3.Conn, version int64, set *origin.Set) (*schema, error) {
	catalog, err := newCatalog(conn)
	if err != nil {
		return nil, err
	}
	s := &schema{version: version, set: set}
	for i := range set.Resources {
		if set.Retired[i] {
			s.resources = append(s.resources, &compiled{resource: &set.Resources[i], err: origin.RetiredError(set.Resources[i].Name)})
			continue
		}
		c, err := compile(catalog, &set.Resources[i])
		if err != nil {
			return nil, err
		}
		s.resources = append(s.resources, c)
	}
	texts, err := triggerTexts(conn)
	if err != nil {
		return nil, err
	}
	s.tracked = texts[changeTable] != ""
	for _, c := range s.resources {
		s.promises = append(s.promises, c.missing(texts))
	}
	return s, nil
}

// compile resolves one resource. The error is about the database alone.
func compile(catalog *catalog, r *resource.Resource) (*compiled, error) {
	c := &compiled{resource: r}
	err := c.resolve(catalog)
	if errors.As(err, &c.err) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	c.shape = c.describe(c.root)
	if !r.NoPromise { // else its writers would pay for nothing
		c.triggers = triggers(c)
	}
	for i, n := range c.nodes {
		sameTable := func(m *node) bool { return m.table == n.table }
		if slices.IndexFunc(c.nodes, sameTable) == i && slices.ContainsFunc(n.table.unique, func(u uniqueIndex) bool { return u.opaque }) {
			c.warnings = append(c.warnings, fmt.Sprintf(
				"resource %s: table %s has a unique index over an expression or with a collation of an application; every insert and update of it drops all documents of the resource",
				r.Name, n.table.name))
		}
	}
	return c, nil
}

func (c *compiled) fail(line int, format string, args ...any) error {
	if line == 0 {
		line = c.resource.Line
	}
	return &origin.SchemaError{Resource: c.resource.Name, Line: line, Problem: fmt.Sprintf(format, args...)}
}

func (c *compiled) resolve(catalog *catalog) error {
	root, err := c.resolveNode(catalog, &c.resource.Root, nil)
	if err != nil {
		return err
	}
	c.root = root
	return c.resolveKey()
}

// resolveNode resolves n and everything below it.
func (c *compiled) resolveNode(catalog *catalog, n *resource.Node, parent *node) (*node, error) {
	t, err := catalog.table(n.Table)
	if problem, is := isNoTable(err); is {
		return nil, c.fail(n.Line, "%s", problem)
	}
	if err != nil {
		return nil, err
	}
	if !t.withoutRowid && t.rowid == "" {
		return nil, c.fail(n.Line, "table %s has columns called rowid, _rowid_ and oid, so no row of it can be named", t.name)
	}
	resolved := &node{table: t, parent: parent}
	if parent != nil {
		resolved.depth = parent.depth + 1
	}
	if resolved.depth > resource.MaxDepth {
		return nil, c.fail(n.Line, "table %s is nested %d levels deep, at most %d are possible", t.name, resolved.depth, resource.MaxDepth)
	}
	for up := parent; up != nil; up = up.parent {
		if up.table == t {
			return nil, c.fail(n.Line, "table %s contains itself; a path from the root may visit a table once", t.name)
		}
	}
	c.nodes = append(c.nodes, resolved)
	if err := c.resolveColumns(resolved, n); err != nil {
		return nil, err
	}
	if err := c.resolveJoin(resolved, n); err != nil {
		return nil, err
	}
	if err := c.resolveOrder(resolved, n); err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	for _, i := range resolved.columns {
		seen[t.columns[i].name] = true
	}
	for i := range n.Children {
		name := n.Children[i].Name
		if seen[name] {
			return nil, c.fail(n.Children[i].Node.Line, "table %s has two members called %q in its document", t.name, name)
		}
		seen[name] = true
		sub, err := c.resolveNode(catalog, &n.Children[i].Node, resolved)
		if err != nil {
			return nil, err
		}
		resolved.children = append(resolved.children, child{name, sub})
	}
	return resolved, nil
}

func (c *compiled) lookUp(t *table, line int, name string) (int, error) {
	if i := t.column(name); i >= 0 {
		return i, nil
	}
	return 0, c.fail(line, "table %s has no column %q; %s", t.name, name, origin.Choices(name, t.columnNames()))
}

func (c *compiled) resolveColumns(resolved *node, n *resource.Node) error {
	if len(n.Columns) == 0 {
		for i := range resolved.table.columns {
			resolved.columns = append(resolved.columns, i)
		}
		return nil
	}
	for _, name := range n.Columns {
		i, err := c.lookUp(resolved.table, n.Line, name)
		if err != nil {
			return err
		}
		if slices.Contains(resolved.columns, i) {
			return c.fail(n.Line, "column %s of table %s is listed twice", name, resolved.table.name)
		}
		resolved.columns = append(resolved.columns, i)
	}
	return nil
}

func (c *compiled) resolveOrder(resolved *node, n *resource.Node) error {
	for _, o := range n.Order {
		i, err := c.lookUp(resolved.table, n.Line, o.Column)
		if err != nil {
			return err
		}
		if !builtinCollation(resolved.table.columns[i].collation) {
			return c.fail(n.Line, "column %s has the collation %s of an application, which the gateway cannot order by",
				o.Column, resolved.table.columns[i].collation)
		}
		resolved.order = append(resolved.order, o)
	}
	return nil
}

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
		for _, side := range []struct {
			t *table
			i int
		}{{resolved.table, column}, {parent.table, up}} {
			if collation := side.t.columns[side.i].collation; collation != "BINARY" {
				return c.fail(n.Line, "join column %s.%s has collation %s; only BINARY compares alike in statements and triggers",
					side.t.name, side.t.columns[side.i].name, collation)
			}
		}
		resolved.on = append(resolved.on, join{column, up})
	}
	if !slices.ContainsFunc(resolved.on, func(j join) bool { return slices.Contains(resolved.table.leading, j.column) }) {
		c.warnings = append(c.warnings, fmt.Sprintf(
			"resource %s: no index of table %s starts with its join column %s; every load and every change above it reads the whole table",
			c.resource.Name, resolved.table.name, resolved.table.columns[resolved.on[0].column].name))
	}
	return nil
}

// joinOfForeignKey returns the join of the one foreign key to the parent.
func (c *compiled) joinOfForeignKey(resolved *node, line int) ([]resource.Join, error) {
	t, parent := resolved.table, resolved.parent.table
	var found [][]resource.Join
	var texts []string
	for _, fk := range t.foreignKeys {
		if !strings.EqualFold(fk.table, parent.name) {
			continue
		}
		to := fk.to
		if len(to) == 0 {
			for _, p := range parent.primaryKey {
				if p.column >= 0 {
					to = append(to, parent.columns[p.column].name)
				}
			}
		}
		if len(to) != len(fk.from) {
			continue // SQLite itself calls such a key a mismatch
		}
		var on []resource.Join
		for i := range fk.from {
			on = append(on, resource.Join{Column: fk.from[i], Parent: to[i]})
		}
		found = append(found, on)
		texts = append(texts, fmt.Sprintf("(%s) references (%s)", strings.Join(fk.from, ", "), strings.Join(to, ", ")))
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, c.fail(line, "no foreign key leads from table %s to %s; say which columns tie them with on", t.name, parent.name)
	default:
		return nil, c.fail(line, "%d foreign keys lead from table %s to %s: %s; say which one is meant with on",
			len(found), t.name, parent.name, strings.Join(texts, "; "))
	}
}

// resolveKey checks that the key columns have one canonical form and name one row.
func (c *compiled) resolveKey() error {
	t := c.root.table
	if len(c.resource.Key) == 0 {
		return c.fail(0, "no key; name the columns of table %s that make it", t.name)
	}
	for _, name := range c.resource.Key {
		i, err := c.lookUp(t, c.resource.Line, name)
		if err != nil {
			return err
		}
		if slices.Contains(c.keyAt, i) {
			return c.fail(0, "key column %s is listed twice", name)
		}
		col := t.columns[i]
		var kind resource.Kind
		switch {
		case col.declared == "":
			return c.fail(0, "key column %s.%s has no declared type, so one value has several forms; expected INTEGER, TEXT or BLOB", t.name, name)
		case col.collation != "BINARY":
			return c.fail(0, "key column %s.%s has collation %s, so several spellings name one row; expected BINARY", t.name, name, col.collation)
		case col.affinity == affinityInteger:
			kind = resource.Integer
		case col.affinity == affinityText:
			kind = resource.Text
		case strings.EqualFold(strings.TrimSpace(col.declared), "BLOB"):
			kind = resource.Bytes
		default:
			return c.fail(0, "key column %s.%s is declared %s, which may hold floating-point numbers; expected INTEGER, TEXT or BLOB", t.name, name, col.declared)
		}
		c.key = append(c.key, resource.KeyColumn{Name: col.name, Kind: kind})
		c.keyAt = append(c.keyAt, i)
	}
	if !slices.ContainsFunc(t.unique, c.namesOneRow) {
		return c.fail(0, "key (%s) does not name one row: table %s has neither a primary key nor a full unique index over exactly these columns",
			strings.Join(c.resource.Key, ", "), t.name)
	}
	return nil
}

// namesOneRow reports whether the index is unique over exactly the key columns.
func (c *compiled) namesOneRow(u uniqueIndex) bool {
	if u.partial || u.opaque || len(u.columns) != len(c.keyAt) {
		return false
	}
	for _, ic := range u.columns {
		if !slices.Contains(c.keyAt, ic.column) {
			return false
		}
	}
	return true
}

// quoteName writes an identifier.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// quoteText writes a string literal.
func quoteText(text string) string { return `'` + strings.ReplaceAll(text, `'`, `''`) + `'` }
