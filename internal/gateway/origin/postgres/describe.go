package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/internal/gateway/origin/tree"
)

// describe fills the tables in: one statement for each kind of thing.
func (c *catalog) describe(ctx context.Context, tables []*table) error {
	if len(tables) == 0 {
		return nil
	}
	oids := oidList(tables)
	for _, read := range []func(context.Context, string) error{c.readColumns, c.readTypes, c.readIndexes, c.readForeignKeys, c.readTrees} {
		if err := read(ctx, oids); err != nil {
			return err
		}
	}
	return nil
}

func (c *catalog) readColumns(ctx context.Context, oids string) error {
	rows, err := c.tx.Query(ctx, `WITH RECURSIVE base AS (
			SELECT DISTINCT t.oid AS declared, t.oid, t.typtype, t.typbasetype, t.typname, t.typnamespace
			FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS t ON t.oid OPERATOR(pg_catalog.=) a.atttypid
			WHERE a.attrelid OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.text::pg_catalog.oid[]) AND a.attnum OPERATOR(pg_catalog.>) 0
			UNION ALL
			SELECT base.declared, t.oid, t.typtype, t.typbasetype, t.typname, t.typnamespace
			FROM base JOIN pg_catalog.pg_type AS t ON t.oid OPERATOR(pg_catalog.=) base.typbasetype WHERE base.typtype OPERATOR(pg_catalog.=) 'd')
		SELECT a.attrelid, a.attname::pg_catalog.text, a.attnum::pg_catalog.int4, pg_catalog.format_type(a.atttypid, a.atttypmod), a.atttypid, b.oid, a.atttypmod,
			a.attndims::pg_catalog.int4,
			-- From PostgreSQL 18 on, attnotnull is also set for a constraint that is NOT VALID.
			a.attnotnull AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint AS i WHERE i.conrelid OPERATOR(pg_catalog.=) a.attrelid
				AND i.contype OPERATOR(pg_catalog.=) 'n' AND i.conkey[1] OPERATOR(pg_catalog.=) a.attnum AND NOT i.convalidated),
			a.attgenerated OPERATOR(pg_catalog.=) 'v',
			CASE WHEN b.typtype OPERATOR(pg_catalog.=) 'e' THEN pg_catalog.format('%I.%I', n.nspname, b.typname) ELSE '' END,
			CASE WHEN k.collname IS NULL OR k.oid OPERATOR(pg_catalog.=) 'pg_catalog.default'::pg_catalog.regcollation THEN '' ELSE pg_catalog.format('%I.%I', kn.nspname, k.collname) END,
			coalesce(k.collisdeterministic, true), pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT')
		FROM pg_catalog.pg_attribute AS a
		JOIN base AS b ON b.declared OPERATOR(pg_catalog.=) a.atttypid AND b.typtype OPERATOR(pg_catalog.<>) 'd'
		JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) b.typnamespace
		LEFT JOIN pg_catalog.pg_collation AS k ON k.oid OPERATOR(pg_catalog.=) a.attcollation
		LEFT JOIN pg_catalog.pg_namespace AS kn ON kn.oid OPERATOR(pg_catalog.=) k.collnamespace
		WHERE a.attrelid OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.text::pg_catalog.oid[]) AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped
		ORDER BY a.attrelid, a.attnum`, oids)
	if err != nil {
		return err
	}
	var oid uint32
	var number, dimensions int32
	var col column
	_, err = pgx.ForEachRow(rows, []any{&oid, &col.name, &number, &col.typeName, &col.declared, &col.typ, &col.typmod,
		&dimensions, &col.notNull, &col.virtual, &col.enum, &col.collation, &col.deterministic, &col.mayRead}, func() error {
		col.number, col.dimensions = int16(number), int(dimensions)
		c.byOID[oid].columns = append(c.byOID[oid].columns, col)
		return nil
	})
	return err
}

// readIndexes reads which columns are unique, and which searches can use an index.
// The columns that an index only includes do not count.
func (c *catalog) readIndexes(ctx context.Context, oids string) error {
	rows, err := c.tx.Query(ctx, `SELECT i.indrelid, i.indisprimary,
			i.indisunique AND i.indimmediate AND i.indexprs IS NULL, m.amname OPERATOR(pg_catalog.=) ANY ('{btree,hash}'),
			ARRAY(SELECT k::pg_catalog.int4 FROM pg_catalog.unnest(i.indkey::pg_catalog.int2[]) WITH ORDINALITY AS u (k, place)
				WHERE place OPERATOR(pg_catalog.<=) i.indnkeyatts ORDER BY place)
		FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS r ON r.oid OPERATOR(pg_catalog.=) i.indexrelid JOIN pg_catalog.pg_am AS m ON m.oid OPERATOR(pg_catalog.=) r.relam
		WHERE i.indrelid OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.text::pg_catalog.oid[]) AND i.indisvalid AND i.indislive AND i.indpred IS NULL
		ORDER BY i.indrelid, i.indisprimary DESC, i.indexrelid`, oids)
	if err != nil {
		return err
	}
	var oid uint32
	var primary, unique, ordered bool
	var numbers []int32
	_, err = pgx.ForEachRow(rows, []any{&oid, &primary, &unique, &ordered, &numbers}, func() error {
		t := c.byOID[oid]
		var places []int
		for _, n := range numbers {
			places = append(places, t.columnNumber(n)) // -1 for an expression
		}
		if primary {
			t.primaryKey = places
		}
		if unique {
			t.unique = append(t.unique, places)
		}
		if ordered && places[0] >= 0 {
			t.leading = append(t.leading, places[0])
		}
		numbers = nil
		return nil
	})
	return err
}

func (c *catalog) readForeignKeys(ctx context.Context, oids string) error {
	rows, err := c.tx.Query(ctx, `SELECT k.conrelid, k.conname::pg_catalog.text, k.confrelid,
			-- PostgreSQL 18 added the column conperiod.
			coalesce(pg_catalog.to_jsonb(k) OPERATOR(pg_catalog.->>) 'conperiod', 'false')::pg_catalog.bool,
			ARRAY(SELECT a.attname::pg_catalog.text FROM pg_catalog.unnest(k.conkey) WITH ORDINALITY AS u (n, place)
				JOIN pg_catalog.pg_attribute AS a ON a.attrelid OPERATOR(pg_catalog.=) k.conrelid AND a.attnum OPERATOR(pg_catalog.=) u.n ORDER BY place),
			ARRAY(SELECT a.attname::pg_catalog.text FROM pg_catalog.unnest(k.confkey) WITH ORDINALITY AS u (n, place)
				JOIN pg_catalog.pg_attribute AS a ON a.attrelid OPERATOR(pg_catalog.=) k.confrelid AND a.attnum OPERATOR(pg_catalog.=) u.n ORDER BY place)
		FROM pg_catalog.pg_constraint AS k
		WHERE k.contype OPERATOR(pg_catalog.=) 'f' AND k.conrelid OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.text::pg_catalog.oid[]) ORDER BY k.conrelid, k.conname`, oids)
	if err != nil {
		return err
	}
	var oid uint32
	var fk foreignKey
	_, err = pgx.ForEachRow(rows, []any{&oid, &fk.name, &fk.table, &fk.period, &fk.from, &fk.to}, func() error {
		c.byOID[oid].foreignKeys = append(c.byOID[oid].foreignKeys, fk)
		fk = foreignKey{}
		return nil
	})
	return err
}

// readTrees reads partitions and inheriting tables, including those that are being
// detached: until that is done, writes through the parent may reach them. A table
// with a parent outside of its tree is refused: a statement that names the parent
// changes its rows and fires only the triggers of the parent.
func (c *catalog) readTrees(ctx context.Context, oids string) error {
	rows, err := c.tx.Query(ctx, `WITH RECURSIVE tree AS (
			SELECT o AS root, o AS oid, 0 AS depth FROM pg_catalog.unnest($1::pg_catalog.text::pg_catalog.oid[]) AS o
			UNION
			SELECT tree.root, i.inhrelid, tree.depth OPERATOR(pg_catalog.+) 1 FROM tree JOIN pg_catalog.pg_inherits AS i ON i.inhparent OPERATOR(pg_catalog.=) tree.oid)
		SELECT tree.root, r.oid, n.nspname::pg_catalog.text, r.relname::pg_catalog.text, r.relkind::pg_catalog.text, r.relpersistence::pg_catalog.text,
			EXISTS (SELECT FROM pg_catalog.pg_subscription_rel WHERE srrelid OPERATOR(pg_catalog.=) r.oid),
			ARRAY(SELECT pg_catalog.concat(i.inhparent, ' ', pn.nspname, '.', p.relname)
				FROM pg_catalog.pg_inherits AS i JOIN pg_catalog.pg_class AS p ON p.oid OPERATOR(pg_catalog.=) i.inhparent
				JOIN pg_catalog.pg_namespace AS pn ON pn.oid OPERATOR(pg_catalog.=) p.relnamespace WHERE i.inhrelid OPERATOR(pg_catalog.=) r.oid)
		FROM tree JOIN pg_catalog.pg_class AS r ON r.oid OPERATOR(pg_catalog.=) tree.oid JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) r.relnamespace
		ORDER BY tree.root, pg_catalog.min(tree.depth) OVER (PARTITION BY tree.root, r.oid), n.nspname, r.relname`, oids)
	if err != nil {
		return err
	}
	var root uint32
	var r relation
	var kind, persistence string
	var subscribed bool
	var parents []string // each an oid and a name
	parentsOf := make(map[uint32][]string)
	problems := make(map[uint32]string)
	_, err = pgx.ForEachRow(rows, []any{&root, &r.oid, &r.schema, &r.name, &kind, &persistence, &subscribed, &parents}, func() error {
		t := c.byOID[root]
		if problem := refuseRelation(r, kind[0], persistence[0], subscribed); problem != "" && problems[root] == "" {
			problems[root] = problem
		}
		if !slices.Contains(t.tree, r) { // several parents may lead to one table
			t.tree = append(t.tree, r)
		}
		parentsOf[r.oid], parents = parents, nil
		return nil
	})
	for name, t := range c.tables {
		problem := problems[t.oid]
		if problem == "" {
			problem = t.reachedFromOutside(parentsOf)
		}
		if problem != "" {
			c.wrong[name] = &tree.NoTable{Problem: fmt.Sprintf("a part of table %s cannot be followed: %s", t.name, problem)}
			delete(c.tables, name)
			delete(c.byOID, t.oid)
		}
	}
	return err
}

// reachedFromOutside returns which part of the table has a parent outside of the
// tree. parentsOf has, by oid, the oid and the name of each parent; it does not have
// tables that were described before.
func (t *table) reachedFromOutside(parentsOf map[uint32][]string) (problem string) {
	parts := make(map[string]bool, len(t.tree))
	for _, r := range t.tree {
		parts[formatOID(r.oid)] = true
	}
	for _, r := range t.tree {
		for _, parent := range parentsOf[r.oid] {
			oid, name, _ := strings.Cut(parent, " ")
			if !parts[oid] {
				return fmt.Sprintf("%s.%s belongs to %s as well, and changes by statements that name %[3]s would be missed; name %[3]s instead", r.schema, r.name, name)
			}
		}
	}
	return ""
}

// columnNumber returns the index of the column with an attnum, or -1 if there is
// none.
func (t *table) columnNumber(number int32) int {
	return slices.IndexFunc(t.columns, func(c column) bool { return int32(c.number) == number })
}

// column returns the index of a column, or -1 if there is none.
func (t *table) Column(name string) int {
	return slices.IndexFunc(t.columns, func(c column) bool { return c.name == name })
}

func (t *table) ColumnNames() []string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	return names
}
