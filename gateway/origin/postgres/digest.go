package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// digestSQL describes, in one row a thing, everything that documents and their
// triggers depend on: $1 are the names of tables as to_regclass reads them, $2 the
// oids of further relations, $3 those of functions. Each part is there because its
// change would otherwise go unheard:
//
//   - oid: the name leads to another table, or to none, or its schema may not
//     be used, which to_regclass would fail for
//   - relfilenode: the table was rewritten (ALTER ... TYPE ... USING, TRUNCATE)
//   - xmin of pg_class: privileges, row-level security, persistence
//   - pg_inherits: partitions attached, detached, inheriting tables made
//   - pg_trigger: a trigger of ours disabled, enabled, dropped; xmin changes even if
//     all that happened in one transaction and nothing looks different after it;
//     on our own tables anybody's, which could swallow rows
//   - pg_proc: a function replaced
//   - pg_attribute, pg_enum: columns and labels added, renamed, dropped
//   - pg_policy: what rows this role sees
//   - pg_subscription_rel: logical replication fires no statement-level triggers
//   - pg_rewrite: a view redefined
//
// Columns and policies are those of the table that statements name: partitions
// inherit the columns, and only follow the policies of the table they are read
// through. That is most of the cost of a table with many partitions.
//
// The catalogs' xmin is never frozen away: since 9.4 freezing keeps it.
const digestSQL = `
WITH RECURSIVE tree AS (
	SELECT n.name, CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_namespace s
		WHERE s.nspname = (pg_catalog.parse_ident(n.name))[1] AND pg_catalog.has_schema_privilege(s.oid, 'USAGE'))
		THEN pg_catalog.to_regclass(n.name)::pg_catalog.oid END AS oid, '' AS link
	FROM pg_catalog.unnest($1::pg_catalog.text[]) AS n(name)
	UNION ALL
	SELECT t.name, i.inhrelid, pg_catalog.concat(i.xmin, i.inhdetachpending)
	FROM tree t JOIN pg_catalog.pg_inherits i ON i.inhparent = t.oid
), relation AS (
	SELECT name, oid, link FROM tree
	UNION ALL SELECT o.oid::pg_catalog.text, o.oid, '' FROM pg_catalog.unnest($2::pg_catalog.text[]::pg_catalog.oid[]) AS o(oid)
)
SELECT r.name, pg_catalog.md5(pg_catalog.string_agg(pg_catalog.concat_ws('|', r.oid, r.link,
	(SELECT pg_catalog.concat_ws(',', c.relfilenode, c.xmin) FROM pg_catalog.pg_class c WHERE c.oid = r.oid),
	(SELECT pg_catalog.string_agg(pg_catalog.concat_ws(',', t.oid, t.tgenabled, t.xmin, p.xmin), ';' ORDER BY t.oid)
		FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
		WHERE t.tgrelid = r.oid AND NOT t.tgisinternal AND
			(pg_catalog.starts_with(t.tgname::pg_catalog.text, 'slipstream') OR pg_catalog.starts_with(r.name, 'slipstream.'))),
	(SELECT pg_catalog.string_agg(pg_catalog.concat_ws(',', a.xmin, e.labels), ';' ORDER BY a.attnum)
		FROM pg_catalog.pg_attribute a
		LEFT JOIN LATERAL (SELECT pg_catalog.string_agg(e.xmin::pg_catalog.text, '+' ORDER BY e.oid) AS labels
			FROM pg_catalog.pg_type y JOIN pg_catalog.pg_enum e ON e.enumtypid IN (y.oid, y.typelem, y.typbasetype)
			WHERE y.oid = a.atttypid) AS e ON true
		WHERE r.link = '' AND a.attrelid = r.oid AND a.attnum > 0),
	(SELECT pg_catalog.string_agg(p.xmin::pg_catalog.text, ';' ORDER BY p.oid) FROM pg_catalog.pg_policy p WHERE r.link = '' AND p.polrelid = r.oid),
	(SELECT pg_catalog.string_agg(w.xmin::pg_catalog.text, ';' ORDER BY w.oid) FROM pg_catalog.pg_rewrite w WHERE r.link = '' AND w.ev_class = r.oid),
	(SELECT pg_catalog.string_agg(s.xmin::pg_catalog.text, ';' ORDER BY s.srsubid) FROM pg_catalog.pg_subscription_rel s WHERE s.srrelid = r.oid)
), E'\n' ORDER BY r.oid))
FROM relation r GROUP BY r.name
UNION ALL
SELECT 'function ' || f.oid, COALESCE((SELECT p.xmin::pg_catalog.text FROM pg_catalog.pg_proc p WHERE p.oid = f.oid), '')
FROM pg_catalog.unnest($3::pg_catalog.text[]::pg_catalog.oid[]) AS f(oid)
UNION ALL
SELECT 'system', (SELECT system_identifier::pg_catalog.text FROM pg_catalog.pg_control_system())`

// ownTables are the tables of the schema slipstream, which every resource depends on.
var ownTables = []string{"slipstream.change", "slipstream.meta", "slipstream.incarnation"}

// watch is what the digest statement is asked about, and how its rows make the
// digests of resources. Immutable once made.
type watch struct {
	tables    []string // the arguments
	oids      []string
	functions []string
	parts     [][]string // per resource, the names of its rows
}

// newWatch says what the compiled resources depend on. Of a resource that could
// not be compiled nothing is known: see [Stream.overdue].
func newWatch(s *schema) *watch {
	w := &watch{tables: slices.Clone(ownTables)}
	for i, c := range s.resources {
		if s.set.Retired[i] {
			w.parts = append(w.parts, nil)
			continue
		}
		parts := append(slices.Clone(ownTables), "system")
		for _, name := range c.tableNames() {
			parts = append(parts, name)
			w.tables = append(w.tables, name)
		}
		for _, oid := range c.relations {
			if c.inTree(oid) {
				continue // by name, which finds new partitions as well
			}
			text := strconv.FormatUint(uint64(oid), 10)
			parts = append(parts, text)
			w.oids = append(w.oids, text)
		}
		for _, oid := range c.functions {
			text := strconv.FormatUint(uint64(oid), 10)
			parts = append(parts, "function "+text)
			w.functions = append(w.functions, text)
		}
		slices.Sort(parts)
		w.parts = append(w.parts, slices.Compact(parts))
	}
	for _, list := range []*[]string{&w.tables, &w.oids, &w.functions} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
		if *list == nil {
			*list = []string{} // NULL would unnest to nothing, too, but say so
		}
	}
	return w
}

// inTree reports whether the relation is a table of a source or node, or one of
// its partitions.
func (c *compiled) inTree(oid uint32) bool {
	in := func(t *table) bool {
		return slices.ContainsFunc(t.tree, func(r relation) bool { return r.oid == oid })
	}
	return slices.ContainsFunc(c.nodes, func(n *node) bool { return in(n.table) }) ||
		slices.ContainsFunc(c.sources, func(s source) bool { return in(s.table) })
}

// tableNames are the names of the tables of a resource, as to_regclass reads them.
func (c *compiled) tableNames() []string {
	var names []string
	for _, n := range c.nodes {
		names = append(names, n.table.sql())
	}
	for _, s := range c.sources {
		names = append(names, s.table.sql())
	}
	return names
}

func (w *watch) arguments() []any { return []any{w.tables, w.oids, w.functions} }

// read reads the answer of the digest statement: one digest a resource.
func (w *watch) read(rows pgx.Rows) ([]string, error) {
	defer rows.Close()
	found := make(map[string]string)
	for rows.Next() {
		values := rows.RawValues()
		if len(values) != 2 {
			return nil, fmt.Errorf("a row of %d columns, expected 2", len(values))
		}
		found[string(values[0])] = string(values[1])
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	digests := make([]string, len(w.parts))
	for i, parts := range w.parts {
		var b strings.Builder
		for _, name := range parts {
			b.WriteString(found[name])
			b.WriteByte('\n')
		}
		digests[i] = b.String()
	}
	return digests, nil
}
