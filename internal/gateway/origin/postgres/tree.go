package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// maxName is the longest name of a column of a query, in bytes (NAMEDATALEN - 1);
// PostgreSQL cuts longer ones off.
const maxName = 63

// readSchema resolves the resources in tx, which must be REPEATABLE READ. The
// error is about the database; what is wrong with a resource stands in its
// compiled.err. Promises and digests are left empty.
//
// From here on the transaction has the pinned search path.
func readSchema(ctx context.Context, tx pgx.Tx, set *origin.Set) (*schema, error) {
	cat, err := newCatalog(ctx, tx)
	if err != nil {
		return nil, err
	}
	return cat.schema(ctx, set)
}

// administeredSchema is readSchema for Plan, Check and Apply.
func administeredSchema(ctx context.Context, tx pgx.Tx, set *origin.Set) (*schema, error) {
	cat, err := newCatalog(ctx, tx)
	if err != nil {
		return nil, err
	}
	cat.administers = true
	return cat.schema(ctx, set)
}

// readSchemaAgain is readSchema for a set of which some resources, by their places,
// are known to have changed nothing that they depend on.
func readSchemaAgain(ctx context.Context, tx pgx.Tx, set *origin.Set, unchanged map[int]*compiled) (*schema, error) {
	cat, err := newCatalog(ctx, tx)
	if err != nil {
		return nil, err
	}
	cat.unchanged, cat.leavesLocked = unchanged, true
	return cat.schema(ctx, set)
}

func (c *catalog) schema(ctx context.Context, set *origin.Set) (*schema, error) {
	var names []string
	for i := range set.Resources {
		if !set.Retired[i] && c.unchanged[i] == nil {
			names = append(names, tableNames(&set.Resources[i])...)
		}
	}
	if err := c.readAppliers(ctx); err != nil {
		return nil, err
	}
	if err := c.read(ctx, names); err != nil {
		return nil, err
	}
	s := &schema{tracked: c.tracked, set: set, path: c.path}
	for i := range set.Resources {
		if set.Retired[i] {
			s.resources = append(s.resources, &compiled{resource: &set.Resources[i], err: origin.RetiredError(set.Resources[i].Name)})
			continue
		}
		if known := c.unchanged[i]; known != nil {
			s.resources = append(s.resources, known)
			continue
		}
		resolved, err := compile(ctx, c.tx, c, &set.Resources[i])
		if c.leavesLocked && isLocked(err) && c.tx.Conn().PgConn().TxStatus() == 'T' {
			resolved, err = c.leaveLocked(ctx, &set.Resources[i])
		}
		if err != nil {
			return nil, err
		}
		s.resources = append(s.resources, resolved)
	}
	return s, nil
}

// isLocked reports whether err is the end of a wait for a lock.
func isLocked(err error) bool {
	pgErr, isServer := errors.AsType[*pgconn.PgError](err)
	return isServer && pgErr.Code == "55P03" // lock_not_available
}

// leaveLocked gives a resource up whose statements cannot be parsed, because somebody
// has locked a table that they read. The resources after it do not wait for locks.
func (c *catalog) leaveLocked(ctx context.Context, r *resource.Resource) (*compiled, error) {
	_, err := c.tx.Exec(ctx, "SET LOCAL lock_timeout = '1ms'")
	return &compiled{resource: r, err: &origin.SchemaError{Resource: r.Name, Line: r.Line,
		Problem: "a table that its statements read is locked, such as by an ALTER TABLE that runs or waits; this is retried until it is not"}}, err
}

// tableNames lists the tables that a resource names.
func tableNames(r *resource.Resource) []string {
	var names []string
	if r.Query != nil {
		for _, d := range r.Query.Depends {
			names = append(names, d.Table)
		}
		return names
	}
	var walk func(n *resource.Node)
	walk = func(n *resource.Node) {
		names = append(names, n.Table)
		for i := range n.Children {
			walk(&n.Children[i].Node)
		}
	}
	walk(&r.Root)
	return names
}

// compile resolves one resource. The error is about the database alone.
func compile(ctx context.Context, tx pgx.Tx, cat *catalog, r *resource.Resource) (*compiled, error) {
	c := &compiled{resource: r}
	var err error
	if r.Query != nil {
		err = c.resolveQuery(ctx, tx, cat)
	} else {
		err = c.resolveTree(ctx, cat)
	}
	if errors.As(err, &c.err) {
		return c, nil
	}
	if err == nil {
		c.define()
	}
	return c, err
}

func (c *compiled) fail(line int, format string, args ...any) error {
	if line == 0 {
		line = c.resource.Line
	}
	return &origin.SchemaError{Resource: c.resource.Name, Line: line, Problem: fmt.Sprintf(format, args...)}
}

func (c *compiled) warn(format string, args ...any) {
	c.warnings = append(c.warnings, "resource "+c.resource.Name+": "+fmt.Sprintf(format, args...))
}

func (c *compiled) resolveTree(ctx context.Context, cat *catalog) error {
	var err error
	if c.root, err = c.resolveNode(ctx, cat, &c.resource.Root, nil, ""); err != nil {
		return err
	}
	if err := c.resolveKey(); err != nil {
		return err
	}
	if err := c.resolveSources(); err != nil {
		return err
	}
	for _, n := range c.nodes {
		for _, r := range n.table.tree {
			if !slices.Contains(c.relations, r.oid) {
				c.relations = append(c.relations, r.oid)
			}
		}
	}
	c.load, c.loadOne = loadTree(c, cat.tracked)
	c.shape = c.describeRows(cat, c.root)
	return nil
}

// resolveTable looks a table up, and warns of what is special about it.
func (c *compiled) resolveTable(ctx context.Context, cat *catalog, name string, line int) (*table, error) {
	t, err := cat.table(ctx, name)
	if wrong := (*errNoTable)(nil); errors.As(err, &wrong) {
		return nil, c.fail(line, "%s", wrong.problem)
	}
	if err != nil {
		return nil, err
	}
	c.hiding = append(c.hiding, cat.path.hiding(name, t)...)
	if !c.resource.NoPromise {
		certain, possible := cat.applied(t)
		if certain != "" {
			return nil, c.fail(line, "%s", certain)
		}
		if possible != "" {
			c.warn("the extension %s is installed: if it replicates into table %s, it applies rows without firing statement triggers, and changes are not recorded; then add promise: none", possible, t.name)
		}
	}
	if t.rowLevel {
		c.warn("row-level security applies to role %s on table %s: documents show only the rows which this role may see, and policies that depend on settings of the session, on the time or on other tables are not followed", cat.role, t.name)
	}
	return t, nil
}

// resolveNode resolves n and everything below it.
func (c *compiled) resolveNode(ctx context.Context, cat *catalog, n *resource.Node, parent *node, path string) (*node, error) {
	t, err := c.resolveTable(ctx, cat, n.Table, n.Line)
	if err != nil {
		return nil, err
	}
	resolved := &node{path: path, table: t, parent: parent}
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
	for _, resolve := range []func(*node, *resource.Node) error{c.resolveColumns, c.resolveJoin, c.resolveOrder} {
		if err := resolve(resolved, n); err != nil {
			return nil, err
		}
	}
	if err := c.resolveReadable(cat, resolved, n); err != nil {
		return nil, err
	}
	return resolved, c.resolveChildren(ctx, cat, resolved, n)
}

func (c *compiled) resolveChildren(ctx context.Context, cat *catalog, resolved *node, n *resource.Node) error {
	t := resolved.table
	seen := make(map[string]bool)
	for _, i := range resolved.columns {
		seen[t.columns[i].name] = true
	}
	for i := range n.Children {
		name, line := n.Children[i].Name, n.Children[i].Node.Line
		switch {
		case seen[name]:
			return c.fail(line, "table %s has two members called %q in its document", t.name, name)
		case len(name) > maxName:
			return c.fail(line, "the name %q of a child has %d bytes, PostgreSQL keeps %d", name, len(name), maxName)
		}
		seen[name] = true
		sub, err := c.resolveNode(ctx, cat, &n.Children[i].Node, resolved, strings.TrimPrefix(resolved.path+"/"+name, "/"))
		if err != nil {
			return err
		}
		resolved.children = append(resolved.children, child{name, sub})
	}
	return nil
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
		if _, err := c.lookUp(resolved.table, n.Line, o.Column); err != nil {
			return err
		}
		resolved.order = append(resolved.order, o)
	}
	for _, i := range resolved.table.primaryKey {
		name := resolved.table.columns[i].name
		if !slices.ContainsFunc(resolved.order, func(o resource.Order) bool { return o.Column == name }) {
			resolved.order = append(resolved.order, resource.Order{Column: name})
		}
	}
	if resolved.parent != nil && len(resolved.table.primaryKey) == 0 {
		c.warn("table %s has no primary key, so rows that are equal in the declared order may change places from load to load", resolved.table.name)
	}
	return nil
}

// resolveReadable checks the privileges on every column that the node is read by.
func (c *compiled) resolveReadable(cat *catalog, resolved *node, n *resource.Node) error {
	t := resolved.table
	needed := slices.Clone(resolved.columns)
	for _, j := range resolved.on {
		needed = append(needed, j.column)
	}
	for _, o := range resolved.order {
		needed = append(needed, t.column(o.Column))
	}
	if resolved.parent == nil {
		for _, name := range c.resource.Key {
			if i := t.column(name); i >= 0 {
				needed = append(needed, i)
			}
		}
	}
	if err := c.mayRead(cat, t, needed, n.Line); err != nil {
		return err
	}
	var parents []int
	for _, j := range resolved.on {
		parents = append(parents, j.parent)
	}
	if len(parents) == 0 {
		return nil
	}
	return c.mayRead(cat, resolved.parent.table, parents, n.Line)
}

// mayRead says which GRANT is missing on some columns of a table.
func (c *compiled) mayRead(cat *catalog, t *table, columns []int, line int) error {
	var missing []string
	for _, i := range columns {
		name := quoteName(t.columns[i].name)
		if !t.columns[i].mayRead && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if !slices.ContainsFunc(t.columns, func(col column) bool { return col.mayRead }) {
		return c.fail(line, "role %s may not read table %s; expected: GRANT SELECT ON %s TO %s", cat.role, t.name, t.sql(), quoteName(cat.role))
	}
	list := strings.Join(missing, ", ")
	return c.fail(line, "role %s may not read %s of table %s; expected: GRANT SELECT (%s) ON %s TO %s",
		cat.role, list, t.name, list, t.sql(), quoteName(cat.role))
}

// resolveKey checks that the key columns have one canonical form and name one row.
func (c *compiled) resolveKey() error {
	t := c.root.table
	if len(c.resource.Key) == 0 {
		return c.fail(0, "no key; name the columns of table %s that make it", t.name)
	}
	var places []int
	for _, name := range c.resource.Key {
		i, err := c.lookUp(t, c.resource.Line, name)
		if err != nil {
			return err
		}
		if slices.Contains(places, i) {
			return c.fail(0, "key column %s is listed twice", name)
		}
		keyType, problem := keyTypeOf(&t.columns[i])
		if problem != "" {
			return c.fail(0, "key column %s.%s %s", t.name, name, problem)
		}
		if !t.columns[i].notNull {
			return c.fail(0, "key column %s.%s may be NULL, which no path can name; expected: ALTER TABLE %s ALTER COLUMN %s SET NOT NULL",
				t.name, name, t.sql(), quoteName(name))
		}
		places = append(places, i)
		c.key = append(c.key, resource.KeyColumn{Name: name, Kind: keyType.kind})
		c.keyTypes = append(c.keyTypes, keyType)
	}
	c.root.key = places
	if !slices.ContainsFunc(t.unique, func(u []int) bool { return sameSet(u, places) }) {
		return c.fail(0, "key (%s) does not name one row: table %s has neither a primary key nor a full, immediate unique index over exactly these columns",
			strings.Join(c.resource.Key, ", "), t.name)
	}
	if len(t.tree) > 1 && t.kind == 'r' {
		c.warn("tables inherit from %s, and no index is unique across them: a key with two rows cannot be answered", t.name)
	}
	return nil
}

// sameSet reports whether a and b, without repetitions, have the same elements.
func sameSet(a, b []int) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(i int) bool { return !slices.Contains(b, i) })
}
