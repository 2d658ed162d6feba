package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/gateway/origin/tree"
)

type (
	node = tree.Node[*table]
	join = tree.Join
)

// compiled is a resource resolved against the database.
type compiled struct {
	tree.Resolved[*table]
	shape    *resource.Shape
	triggers []origin.Object
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

// readSchema resolves the resources in the current transaction of conn. The error
// is about the database; errors of a resource are in its compiled.err.
func readSchema(conn *sqlite3.Conn, version int64, set *origin.Set) (*schema, error) {
	catalog, err := newCatalog(conn)
	if err != nil {
		return nil, err
	}
	s := &schema{version: version, set: set}
	for i := range set.Resources {
		if set.Retired[i] {
			s.resources = append(s.resources, retired(&set.Resources[i]))
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

// compile resolves one resource. The error is only about the database.
func compile(catalog *catalog, r *resource.Resource) (*compiled, error) {
	c := &compiled{}
	c.Resource = r
	// Reading the schema does not use a context: see [Origin.withConn].
	err := c.Resolve(context.Background(), &resolver{catalog, c})
	if errors.As(err, &c.Err) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	c.shape = c.describe(c.Root)
	if !r.NoPromise { // else its writers would pay for nothing
		c.triggers = triggers(c)
	}
	for i, n := range c.Nodes {
		sameTable := func(m *node) bool { return m.Table == n.Table }
		if slices.IndexFunc(c.Nodes, sameTable) == i && slices.ContainsFunc(n.Table.unique, func(u uniqueIndex) bool { return u.opaque }) {
			c.Warn("table %s has a unique index over an expression or with a collation of an application; every insert and update of it drops all documents of the resource",
				n.Table.name)
		}
	}
	return c, nil
}

// refuseNewKinds breaks resources whose key columns have changed their kind since Open.
func (s *schema) refuseNewKinds() {
	for _, i := range tree.RefuseNewKinds(s.set, s.resources) {
		s.promises[i] = s.resources[i].Err.Error()
	}
}

// retired is the compiled form of a resource that is no longer served.
func retired(r *resource.Resource) *compiled {
	c := &compiled{}
	c.Outcome = tree.Retired(r)
	return c
}

// resolver is the [tree.Catalog] of one resource.
type resolver struct {
	catalog  *catalog
	compiled *compiled
}

// Table implements [tree.Catalog].
func (r *resolver) Table(_ context.Context, name string, line int) (*table, error) {
	t, err := r.catalog.table(name)
	if err == nil && !t.withoutRowid && t.rowid == "" {
		return nil, r.compiled.Fail(line, "table %s has columns called rowid, _rowid_ and oid, so no row of it can be named", t.name)
	}
	return t, err
}

// ForeignKeys implements [tree.Catalog].
func (r *resolver) ForeignKeys(from, to *table) (found []tree.ForeignKey, problem string) {
	for _, fk := range from.foreignKeys {
		if !strings.EqualFold(fk.table, to.name) {
			continue
		}
		columns := fk.to
		if len(columns) == 0 {
			for _, p := range to.primaryKey {
				if p.column >= 0 {
					columns = append(columns, to.columns[p.column].name)
				}
			}
		}
		if len(columns) != len(fk.from) {
			continue // SQLite itself calls such a key a mismatch
		}
		one := tree.ForeignKey{Text: fmt.Sprintf("(%s) references (%s)", strings.Join(fk.from, ", "), strings.Join(columns, ", "))}
		for i := range fk.from {
			one.On = append(one.On, resource.Join{Column: fk.from[i], Parent: columns[i]})
		}
		found = append(found, one)
	}
	return found, ""
}

// Joins implements [tree.Catalog].
func (r *resolver) Joins(child *table, column int, parent *table, up int) (problem string) {
	for _, side := range []struct {
		t *table
		i int
	}{{child, column}, {parent, up}} {
		if collation := side.t.columns[side.i].collation; collation != "BINARY" {
			return fmt.Sprintf("join column %s.%s has collation %s; only BINARY compares alike in statements and triggers",
				side.t.name, side.t.columns[side.i].name, collation)
		}
	}
	return ""
}

// KeyKind implements [tree.Catalog].
func (r *resolver) KeyKind(t *table, column int) (kind resource.Kind, problem string) {
	switch col := t.columns[column]; {
	case col.declared == "":
		return kind, "has no declared type, so one value has several forms; expected INTEGER, TEXT or BLOB"
	case col.collation != "BINARY":
		return kind, fmt.Sprintf("has collation %s, so several spellings name one row; expected BINARY", col.collation)
	case col.affinity == affinityInteger:
		return resource.Integer, ""
	case col.affinity == affinityText:
		return resource.Text, ""
	case strings.EqualFold(strings.TrimSpace(col.declared), "BLOB"):
		return resource.Bytes, ""
	default:
		return kind, fmt.Sprintf("is declared %s, which may hold floating-point numbers; expected INTEGER, TEXT or BLOB", col.declared)
	}
}

// Unique implements [tree.Catalog].
func (r *resolver) Unique(t *table, columns []int) (expected string) {
	overThese := func(u uniqueIndex) bool {
		return !u.partial && !u.opaque && len(u.columns) == len(columns) &&
			!slices.ContainsFunc(u.columns, func(ic indexColumn) bool { return !slices.Contains(columns, ic.column) })
	}
	if slices.ContainsFunc(t.unique, overThese) {
		return ""
	}
	return "a full unique index"
}

// Check implements [tree.Catalog].
func (r *resolver) Check(n *node, declared *resource.Node) error {
	t := n.Table
	if n.Parent != nil && !slices.ContainsFunc(n.On, func(j join) bool { return slices.Contains(t.leading, j.Column) }) {
		r.compiled.Warn("no index of table %s starts with its join column %s; every load and every change above it reads the whole table",
			t.name, t.columns[n.On[0].Column].name)
	}
	for _, o := range n.Order {
		if collation := t.columns[t.Column(o.Column)].collation; !builtinCollation(collation) {
			return r.compiled.Fail(declared.Line, "column %s has the collation %s of an application, which the gateway cannot order by",
				o.Column, collation)
		}
	}
	return nil
}

// quoteName quotes an identifier.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// quoteText quotes a string literal.
func quoteText(text string) string { return `'` + strings.ReplaceAll(text, `'`, `''`) + `'` }
