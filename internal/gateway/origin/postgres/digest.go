package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// digestSQL describes, in one row per thing, everything that documents and their
// triggers depend on: $1 are the names of tables as to_regclass reads them, $2 the
// oids of further relations, $3 those of functions, $4 the names of triggers, $5 the
// oids of types of users, $6 the roles that read documents. Each part is there
// because its change would otherwise not be noticed:
//
//   - oid: the name leads to another table, or to none, or its schema may not
//     be used, which to_regclass would fail for
//   - relfilenode: the table was rewritten (ALTER ... TYPE ... USING, TRUNCATE)
//   - xmin of pg_class: privileges, row-level security, persistence; not of our own
//     tables, where a grant to another gateway's role would flush every gateway
//   - pg_inherits: partitions attached, detached, inheriting tables made
//   - pg_trigger: a trigger of ours disabled, enabled, dropped; xmin changes even if
//     all that happened in one transaction and nothing looks different after it. The
//     triggers of a table have separate rows, one per name, because each definition
//     depends on its own triggers only: an apply or a prune of another one changes no
//     digest. On our own tables all triggers count, since any could swallow rows.
//   - pg_proc: a function replaced
//   - pg_attribute: columns added, renamed, dropped
//   - pg_policy: what rows this role sees
//   - pg_subscription_rel: logical replication fires no statement-level triggers
//   - pg_rewrite: a view redefined
//   - type: labels of an enum and attributes of a composite type added, renamed,
//     dropped, a type altered, its output function replaced. Which types these
//     are is found by the survey; see [readWatch]
//   - casts: those of users, made, dropped, or with another function. to_json and
//     row_to_json use a cast to json where there is one, and a statement is
//     analyzed again by each connection
//   - appliers: extensions made or dropped, and the origins that a subscription
//     of logical replication or of such an extension makes
//   - session: what new sessions start with (ALTER ROLE SET, ALTER DATABASE SET),
//     the locales that the output of money and to_char follows, and what decides
//     which policies apply: the roles' flags and all that they are members of
//
// Columns and policies are those of the table that statements name: partitions
// inherit the columns, and only follow the policies of the table they are read
// through. That would be most of the cost of a table with many partitions.
//
// The catalogs' xmin is never frozen away: since 9.4 freezing keeps it.
const digestSQL = `
WITH RECURSIVE tree AS (
	SELECT n.name, CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_namespace s
		WHERE s.nspname OPERATOR(pg_catalog.=) (pg_catalog.parse_ident(n.name))[1]::pg_catalog.name AND pg_catalog.has_schema_privilege(s.oid, 'USAGE'))
		THEN pg_catalog.to_regclass(n.name)::pg_catalog.oid END AS oid, '' AS link
	FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.text[])) AS n(name)
	UNION ALL
	SELECT t.name, i.inhrelid, pg_catalog.concat(i.xmin, i.inhdetachpending)
	FROM tree t JOIN pg_catalog.pg_inherits i ON i.inhparent OPERATOR(pg_catalog.=) t.oid
), relation AS (
	SELECT name, oid, link FROM tree
	UNION ALL SELECT o.oid::pg_catalog.text, o.oid, '' FROM ROWS FROM (pg_catalog.unnest($2::pg_catalog.text[]::pg_catalog.oid[])) AS o(oid)
), member AS (
	SELECT r.oid, ''::pg_catalog.text AS link FROM pg_catalog.pg_roles r
	WHERE r.rolname OPERATOR(pg_catalog.=) CURRENT_USER OR r.rolname OPERATOR(pg_catalog.=) ANY ($6::pg_catalog.text[]::pg_catalog.name[])
	UNION
	SELECT m.roleid, pg_catalog.concat(m.member, ' ', m.xmin)
	FROM member JOIN pg_catalog.pg_auth_members m ON m.member OPERATOR(pg_catalog.=) member.oid
)
SELECT r.name, pg_catalog.md5(pg_catalog.string_agg(pg_catalog.concat_ws('|', r.oid, r.link,
	(SELECT pg_catalog.concat_ws(',', c.relfilenode, CASE WHEN pg_catalog.starts_with(r.name, 'slipstream.')
			THEN pg_catalog.concat_ws(',', c.relowner, c.relpersistence, c.relrowsecurity) ELSE c.xmin::pg_catalog.text END)
		FROM pg_catalog.pg_class c WHERE c.oid OPERATOR(pg_catalog.=) r.oid),
	CASE WHEN pg_catalog.starts_with(r.name, 'slipstream.') THEN
		(SELECT pg_catalog.string_agg(pg_catalog.concat_ws(',', t.oid, t.tgenabled, t.xmin, p.xmin), ';' ORDER BY t.oid)
		FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) t.tgfoid
		WHERE t.tgrelid OPERATOR(pg_catalog.=) r.oid AND NOT t.tgisinternal) END,
	(SELECT pg_catalog.string_agg(a.xmin::pg_catalog.text, ';' ORDER BY a.attnum)
		FROM pg_catalog.pg_attribute a
		WHERE r.link OPERATOR(pg_catalog.=) '' AND a.attrelid OPERATOR(pg_catalog.=) r.oid AND a.attnum OPERATOR(pg_catalog.>) 0),
	(SELECT pg_catalog.string_agg(p.xmin::pg_catalog.text, ';' ORDER BY p.oid) FROM pg_catalog.pg_policy p WHERE r.link OPERATOR(pg_catalog.=) '' AND p.polrelid OPERATOR(pg_catalog.=) r.oid),
	(SELECT pg_catalog.string_agg(w.xmin::pg_catalog.text, ';' ORDER BY w.oid) FROM pg_catalog.pg_rewrite w WHERE r.link OPERATOR(pg_catalog.=) '' AND w.ev_class OPERATOR(pg_catalog.=) r.oid),
	(SELECT pg_catalog.string_agg(s.xmin::pg_catalog.text, ';' ORDER BY s.srsubid) FROM pg_catalog.pg_subscription_rel s WHERE s.srrelid OPERATOR(pg_catalog.=) r.oid)
), E'\n' ORDER BY r.oid))
FROM relation r GROUP BY r.name
UNION ALL
SELECT pg_catalog.concat('trigger ', t.tgname, ' on ', tree.name),
	pg_catalog.string_agg(pg_catalog.concat_ws(',', t.oid, t.tgenabled, t.xmin, p.xmin), ';' ORDER BY t.oid)
FROM tree JOIN pg_catalog.pg_trigger t ON t.tgrelid OPERATOR(pg_catalog.=) tree.oid
JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) t.tgfoid
WHERE NOT t.tgisinternal AND t.tgname::pg_catalog.text OPERATOR(pg_catalog.=) ANY ($4::pg_catalog.text[])
GROUP BY t.tgname, tree.name
UNION ALL
SELECT pg_catalog.concat('function ', f.oid), COALESCE((SELECT p.xmin::pg_catalog.text FROM pg_catalog.pg_proc p WHERE p.oid OPERATOR(pg_catalog.=) f.oid), '')
FROM ROWS FROM (pg_catalog.unnest($3::pg_catalog.text[]::pg_catalog.oid[])) AS f(oid)
UNION ALL
SELECT pg_catalog.concat('type ', y.oid), pg_catalog.md5(pg_catalog.concat_ws('|',
	(SELECT pg_catalog.concat_ws(',', t.xmin, p.xmin)
		FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) t.typoutput::pg_catalog.oid WHERE t.oid OPERATOR(pg_catalog.=) y.oid),
	(SELECT pg_catalog.string_agg(e.xmin::pg_catalog.text, ';' ORDER BY e.oid) FROM pg_catalog.pg_enum e WHERE e.enumtypid OPERATOR(pg_catalog.=) y.oid),
	(SELECT pg_catalog.string_agg(a.xmin::pg_catalog.text, ';' ORDER BY a.attnum)
		FROM pg_catalog.pg_type t JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) t.typrelid
		WHERE t.oid OPERATOR(pg_catalog.=) y.oid AND t.typrelid OPERATOR(pg_catalog.<>) 0::pg_catalog.oid AND a.attnum OPERATOR(pg_catalog.>) 0),
	(SELECT pg_catalog.string_agg(pg_catalog.concat_ws(',', k.oid, k.xmin, p.xmin), ';' ORDER BY k.oid)
		FROM pg_catalog.pg_cast k LEFT JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) k.castfunc
		WHERE k.castsource OPERATOR(pg_catalog.=) y.oid)))
FROM ROWS FROM (pg_catalog.unnest($5::pg_catalog.text[]::pg_catalog.oid[])) AS y(oid)
UNION ALL
SELECT 'casts', (SELECT pg_catalog.md5(pg_catalog.string_agg(pg_catalog.concat_ws(',', k.oid, k.xmin, p.xmin), ';' ORDER BY k.oid))
	FROM pg_catalog.pg_cast k LEFT JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) k.castfunc
	WHERE k.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid)
UNION ALL
SELECT 'appliers', pg_catalog.md5(pg_catalog.concat_ws('|',
	(SELECT pg_catalog.string_agg(e.xmin::pg_catalog.text, ';' ORDER BY e.oid) FROM pg_catalog.pg_extension e
		WHERE e.extname::pg_catalog.text OPERATOR(pg_catalog.=) ANY ('` + applierNames + `'::pg_catalog.text[])),
	(SELECT pg_catalog.string_agg(o.xmin::pg_catalog.text, ';' ORDER BY o.roident) FROM pg_catalog.pg_replication_origin o)))
UNION ALL
SELECT 'session', pg_catalog.md5(pg_catalog.concat_ws('|',
	pg_catalog.current_setting('lc_monetary'), pg_catalog.current_setting('lc_numeric'), pg_catalog.current_setting('lc_time'),
	(SELECT pg_catalog.string_agg(pg_catalog.concat_ws(',', r.oid, member.link, r.rolsuper, r.rolinherit, r.rolbypassrls), ';' ORDER BY r.oid, member.link COLLATE pg_catalog."C")
		FROM member JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) member.oid),
	(SELECT pg_catalog.string_agg(pg_catalog.concat_ws(',', g.setdatabase, g.setrole, g.xmin), ';' ORDER BY g.setdatabase, g.setrole)
		FROM pg_catalog.pg_db_role_setting g
		WHERE (g.setrole OPERATOR(pg_catalog.=) 0::pg_catalog.oid OR g.setrole OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT member.oid FROM member WHERE member.link OPERATOR(pg_catalog.=) '')))
		AND (g.setdatabase OPERATOR(pg_catalog.=) 0::pg_catalog.oid OR g.setdatabase OPERATOR(pg_catalog.=)
			(SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database())))))
UNION ALL
SELECT 'system', (SELECT s.system_identifier::pg_catalog.text FROM pg_catalog.pg_control_system() AS s)`

// ownTables are the tables of the schema slipstream, which every resource depends on.
var ownTables = []string{"slipstream.change", "slipstream.meta", "slipstream.incarnation"}

// watch has the arguments of the digest statement, and how its rows make up the
// digests of resources. Immutable once made.
type watch struct {
	tables    []string // the arguments
	oids      []string
	functions []string
	triggers  []string
	types     []string
	roles     []string
	parts     [][]string // per resource, the names of its rows
}

// newWatch returns what the compiled resources depend on. Nothing is known about a
// resource that could not be compiled: see [Stream.overdue]. shapes has, per
// resource, what the survey found in addition.
func newWatch(s *schema, shapes []shaping, roles []string) *watch {
	w := &watch{tables: slices.Clone(ownTables), roles: roles}
	for i, c := range s.resources {
		if s.set.Retired[i] {
			w.parts = append(w.parts, nil)
			continue
		}
		parts := append(slices.Clone(ownTables), "system", "appliers", "session")
		if c.Root == nil {
			// A statement may cast a type that no column has. Elsewhere the casts of
			// the columns' types are enough, so that a role that may create types cannot
			// flush the resource with casts of its own.
			parts = append(parts, "casts")
		}
		for _, name := range c.tableNames() {
			parts = append(parts, name)
			w.tables = append(w.tables, name)
		}
		for _, oid := range c.relations {
			if c.inTree(oid) {
				continue // by name, which also finds new partitions
			}
			text := strconv.FormatUint(uint64(oid), 10)
			parts = append(parts, text)
			w.oids = append(w.oids, text)
		}
		for _, oid := range slices.Concat(c.functions, shapes[i].functions) {
			text := strconv.FormatUint(uint64(oid), 10)
			parts = append(parts, "function "+text)
			w.functions = append(w.functions, text)
		}
		for _, g := range c.recording() {
			for event := range events {
				name := g.triggerName(event)
				parts = append(parts, "trigger "+name+" on "+g.table.sql())
				w.triggers = append(w.triggers, name)
			}
		}
		for _, oid := range shapes[i].types {
			text := strconv.FormatUint(uint64(oid), 10)
			parts = append(parts, "type "+text)
			w.types = append(w.types, text)
		}
		slices.Sort(parts)
		w.parts = append(w.parts, slices.Compact(parts))
	}
	for _, list := range []*[]string{&w.tables, &w.oids, &w.functions, &w.triggers, &w.types, &w.roles} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
		if *list == nil {
			*list = []string{} // NULL would also unnest to nothing, but differ
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
	return slices.ContainsFunc(c.Nodes, func(n *node) bool { return in(n.Table) }) ||
		slices.ContainsFunc(c.sources, func(s source) bool { return in(s.table) })
}

// tableNames are the names of the tables of a resource, as to_regclass reads them,
// and names of tables that would hide them if they existed.
func (c *compiled) tableNames() []string {
	names := slices.Clone(c.hiding)
	for _, n := range c.Nodes {
		names = append(names, n.Table.sql())
	}
	for _, s := range c.sources {
		names = append(names, s.table.sql())
	}
	return names
}

func (w *watch) arguments() []any {
	return []any{w.tables, w.oids, w.functions, w.triggers, w.types, w.roles}
}

// read reads the result of the digest statement: one digest per resource.
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
