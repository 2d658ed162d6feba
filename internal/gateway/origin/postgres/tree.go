package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/gateway/origin/tree"
)

// readSchema resolves the resources in tx, which must be REPEATABLE READ. The
// error is about the database; errors of a resource are in its compiled.err.
// Promises and digests are left empty.
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

// readSchemaAgain is readSchema for a set in which nothing has changed that the given
// resources, by index, depend on.
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
			s.resources = append(s.resources, outcomeOnly(tree.Retired(&set.Resources[i])))
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

// leaveLocked skips a resource whose statements cannot be parsed because a table that
// they read is locked. The resources after it do not wait for locks.
func (c *catalog) leaveLocked(ctx context.Context, r *resource.Resource) (*compiled, error) {
	_, err := c.tx.Exec(ctx, "SET LOCAL lock_timeout = '1ms'")
	return outcomeOnly(tree.Outcome{Resource: r, Err: &origin.SchemaError{Resource: r.Name, Line: r.Line,
		Problem: "a table that its statements read is locked, such as by an ALTER TABLE that runs or waits; this is retried until the lock is released"}}), err
}

// outcomeOnly is a resource of which only the outcome is known.
func outcomeOnly(o tree.Outcome) *compiled {
	c := &compiled{}
	c.Outcome = o
	return c
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

// compile resolves one resource. The error is only about the database.
func compile(ctx context.Context, tx pgx.Tx, cat *catalog, r *resource.Resource) (*compiled, error) {
	c := outcomeOnly(tree.Outcome{Resource: r})
	var err error
	if r.Query != nil {
		err = c.resolveQuery(ctx, tx, cat)
	} else {
		err = c.resolveTree(ctx, cat)
	}
	if errors.As(err, &c.Err) {
		return c, nil
	}
	if err == nil {
		c.define()
	}
	return c, err
}

func (c *compiled) resolveTree(ctx context.Context, cat *catalog) error {
	if err := c.Resolve(ctx, &resolver{cat, c}); err != nil {
		return err
	}
	root := c.Root.Table
	for _, i := range c.KeyAt {
		t, _ := keyTypeOf(&root.columns[i])
		c.keyTypes = append(c.keyTypes, t)
	}
	if len(root.tree) > 1 && root.kind == 'r' {
		c.Warn("tables inherit from %s, and no index is unique across them: a key with two rows cannot be answered", root.name)
	}
	if err := c.resolveSources(); err != nil {
		return err
	}
	for _, n := range c.Nodes {
		for _, r := range n.Table.tree {
			if !slices.Contains(c.relations, r.oid) {
				c.relations = append(c.relations, r.oid)
			}
		}
	}
	c.load, c.loadOne = loadTree(c, cat.tracked)
	c.shape = c.describeRows(cat, c.Root)
	return nil
}

// resolveTable looks up a table, and warns about its peculiarities.
func (c *compiled) resolveTable(ctx context.Context, cat *catalog, name string, line int) (*table, error) {
	t, err := cat.table(ctx, name)
	if wrong, ok := errors.AsType[*tree.NoTable](err); ok {
		return nil, c.Fail(line, "%s", wrong.Problem)
	}
	if err != nil {
		return nil, err
	}
	c.hiding = append(c.hiding, cat.path.hiding(name, t)...)
	if !c.Resource.NoPromise {
		certain, possible := cat.applied(t)
		if certain != "" {
			return nil, c.Fail(line, "%s", certain)
		}
		if possible != "" {
			c.Warn("the extension %s is installed: if it replicates into table %s, it applies rows without firing statement triggers, and changes are not recorded; then add promise: none", possible, t.name)
		}
	}
	if t.rowLevel {
		c.Warn("row-level security applies to role %s on table %s: documents show only the rows which this role may see, and policies that depend on settings of the session, on the time or on other tables are not followed", cat.role, t.name)
	}
	return t, nil
}

// mayRead reports which GRANT is missing on some columns of a table.
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
		return c.Fail(line, "role %s may not read table %s; expected: GRANT SELECT ON %s TO %s", cat.role, t.name, t.sql(), quoteName(cat.role))
	}
	list := strings.Join(missing, ", ")
	return c.Fail(line, "role %s may not read %s of table %s; expected: GRANT SELECT (%s) ON %s TO %s",
		cat.role, list, t.name, list, t.sql(), quoteName(cat.role))
}
