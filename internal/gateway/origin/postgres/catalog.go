package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/gateway/origin/tree"
)

// catalog reads descriptions of tables from the system catalogs, each at most
// once. Its results are consistent if tx is REPEATABLE READ.
type catalog struct {
	tx         pgx.Tx
	path       *path
	tables     map[string]*table // by the requested name
	wrong      map[string]error  // *tree.NoTable by the requested name
	byOID      map[uint32]*table
	types      map[uint32]valueType
	appliers   []string            // extensions that apply rows below triggers
	replicated map[relation]string // by schema and name: which of them applies rows to the table
	names      []string            // of tables and views, for messages; read when first needed

	unchanged map[int]*compiled // resources that need not be compiled, by index
	// leavesLocked says that a resource whose tables are locked is skipped for now.
	leavesLocked bool

	// tracked says that the tables of the schema slipstream can be read.
	tracked bool
	role    string
	// administers says that the catalog is read for Plan, Check or Apply, by a role
	// that has more privileges than the gateway's: only text that the database wrote
	// back is planned, under the pinned path.
	administers bool
}

// newCatalog pins the search path for the rest of the transaction.
func newCatalog(ctx context.Context, tx pgx.Tx) (*catalog, error) {
	c := &catalog{tx: tx, tables: make(map[string]*table), wrong: make(map[string]error), byOID: make(map[uint32]*table),
		types: make(map[uint32]valueType), replicated: make(map[relation]string)}
	var err error
	if c.path, err = pinPath(ctx, tx); err != nil {
		return nil, err
	}
	err = tx.QueryRow(ctx, `SELECT current_user::pg_catalog.text, (
			SELECT pg_catalog.count(*) OPERATOR(pg_catalog.=) 3
			FROM pg_catalog.pg_class AS r JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) r.relnamespace
			WHERE n.nspname OPERATOR(pg_catalog.=) 'slipstream' AND r.relname OPERATOR(pg_catalog.=) ANY ('{change,meta,incarnation}')
			AND r.relkind OPERATOR(pg_catalog.=) ANY ('{r,p}')
			AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(r.oid, 'SELECT'))`).
		Scan(&c.role, &c.tracked)
	return c, err
}

// table returns the table of a name in the configuration: a plain name is
// looked for along the search path, "a.b" is table b of schema a, and quotes
// protect a dot in a name. The error is a *tree.NoTable if documents cannot be read
// from the named relation.
func (c *catalog) table(ctx context.Context, name string) (*table, error) {
	if err := c.read(ctx, []string{name}); err != nil {
		return nil, err
	}
	return c.tables[name], c.wrong[name]
}

// read reads the tables of names, or what is wrong with them. The number of
// statements does not depend on the number of names.
func (c *catalog) read(ctx context.Context, names []string) error {
	var schemas, plain, asked []string
	for _, name := range names {
		if c.tables[name] != nil || c.wrong[name] != nil || slices.Contains(asked, name) {
			continue
		}
		s, n, err := splitName(name)
		if err != nil {
			c.wrong[name] = err
			continue
		}
		schemas, plain, asked = append(schemas, s), append(plain, n), append(asked, name)
	}
	if len(asked) == 0 {
		return nil
	}
	found, err := c.readRelations(ctx, schemas, plain)
	if err != nil {
		return err
	}
	var fresh []*table
	for i, f := range found {
		problem, err := c.refuse(ctx, f, asked[i])
		switch {
		case err != nil:
			return err
		case problem != "":
			c.wrong[asked[i]] = &tree.NoTable{Problem: problem}
		case c.byOID[f.oid] != nil:
			c.tables[asked[i]] = c.byOID[f.oid]
		default:
			t := &table{oid: f.oid, schema: f.schema, name: f.name, kind: f.kind, rowLevel: f.rowLevel}
			c.byOID[f.oid], c.tables[asked[i]] = t, t
			fresh = append(fresh, t)
		}
	}
	return c.describe(ctx, fresh)
}

// splitName splits a name into its schema, or "" if there is none, and the rest.
func splitName(name string) (schemaName, tableName string, err error) {
	var parts []string
	for rest := name; ; {
		part, after, quoted := rest, "", strings.HasPrefix(rest, `"`)
		more := false
		if quoted {
			end := 1
			for ; end < len(rest); end++ {
				if rest[end] == '"' {
					if !strings.HasPrefix(rest[end:], `""`) {
						break
					}
					end++
				}
			}
			if end >= len(rest) {
				return "", "", &tree.NoTable{Problem: fmt.Sprintf("table name %s has an unbalanced quote", name)}
			}
			part, after = strings.ReplaceAll(rest[1:end], `""`, `"`), rest[end+1:]
			if after != "" && after[0] != '.' {
				return "", "", &tree.NoTable{Problem: fmt.Sprintf("table name %s continues after a quoted name; expected schema.table", name)}
			}
			after, more = strings.CutPrefix(after, ".")
		} else {
			part, after, more = strings.Cut(rest, ".")
		}
		parts = append(parts, part)
		if !more {
			break
		}
		rest = after
	}
	if len(parts) > 2 || slices.Contains(parts, "") {
		return "", "", &tree.NoTable{Problem: fmt.Sprintf("table name %q; expected table or schema.table", name)}
	}
	if len(parts) == 1 {
		return "", parts[0], nil
	}
	return parts[0], parts[1], nil
}

// foundRelation is the relation that a name refers to; oid is 0 if there is none.
type foundRelation struct {
	oid          uint32
	schema, name string
	kind         byte
	persistence  byte
	rowLevel     bool
	usable       bool // USAGE on the schema
	subscribed   bool // rows come in through logical replication
}

func (c *catalog) readRelations(ctx context.Context, schemas, names []string) ([]foundRelation, error) {
	rows, err := c.tx.Query(ctx, `SELECT coalesce(f.oid, 0)::pg_catalog.oid, coalesce(f.nspname, '')::pg_catalog.text, coalesce(f.relname, '')::pg_catalog.text,
			coalesce(f.relkind, '-')::pg_catalog.text, coalesce(f.relpersistence, '-')::pg_catalog.text,
			coalesce(f.usable AND pg_catalog.row_security_active(f.oid), false), coalesce(f.usable, false),
			EXISTS (SELECT FROM pg_catalog.pg_subscription_rel WHERE srrelid OPERATOR(pg_catalog.=) f.oid)
		FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[])) WITH ORDINALITY AS w (schema, name, place)
		LEFT JOIN LATERAL (
			SELECT r.oid, r.relname, r.relkind, r.relpersistence, n.nspname, pg_catalog.has_schema_privilege(n.oid, 'USAGE') AS usable
			FROM pg_catalog.pg_class AS r JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) r.relnamespace
			WHERE r.relname::pg_catalog.text OPERATOR(pg_catalog.=) w.name AND r.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,v,m,f}') AND CASE
				WHEN w.schema OPERATOR(pg_catalog.<>) '' THEN n.nspname::pg_catalog.text OPERATOR(pg_catalog.=) w.schema
				ELSE n.nspname::pg_catalog.text OPERATOR(pg_catalog.=) ANY ($3::pg_catalog.text[]) AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') END
			ORDER BY pg_catalog.array_position($3::pg_catalog.text[], n.nspname::pg_catalog.text) LIMIT 1) AS f ON true
		ORDER BY w.place`, schemas, names, c.path.schemas)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (f foundRelation, err error) {
		var kind, persistence string
		err = row.Scan(&f.oid, &f.schema, &f.name, &kind, &persistence, &f.rowLevel, &f.usable, &f.subscribed)
		f.kind, f.persistence = kind[0], persistence[0]
		return f, err
	})
}

// refuse returns why documents cannot be read from the relation, or "" if they
// can.
func (c *catalog) refuse(ctx context.Context, f foundRelation, asked string) (problem string, err error) {
	name := f.schema + "." + f.name
	switch {
	case f.oid == 0:
		return c.unknown(ctx, asked)
	case !f.usable:
		return fmt.Sprintf("role %s may not use schema %s of table %s; expected: GRANT USAGE ON SCHEMA %s TO %s",
			c.role, f.schema, f.name, quoteName(f.schema), quoteName(c.role)), nil
	case slices.Contains([]string{"pg_catalog", "information_schema", "slipstream"}, f.schema):
		return fmt.Sprintf("%s is a system table, which can have no trigger", name), nil
	case f.kind == 'v':
		return fmt.Sprintf("%s is a view; name the underlying table, or declare the resource with sql and the tables that it depends on", name), nil
	case f.kind == 'm':
		return fmt.Sprintf("%s is a materialized view, whose refresh fires no trigger; name the underlying table, or declare the resource with sql", name), nil
	}
	return refuseRelation(relation{f.oid, f.schema, f.name}, f.kind, f.persistence, f.subscribed), nil
}

// refuseRelation is refuse for a table or a partition.
func refuseRelation(r relation, kind, persistence byte, subscribed bool) (problem string) {
	name := r.schema + "." + r.name
	switch {
	case kind == 'f':
		return fmt.Sprintf("%s is a foreign table; its changes on the other server fire no trigger", name)
	case persistence == 't':
		return fmt.Sprintf("%s is a temporary table, which only one session can see", name)
	case persistence == 'u':
		return fmt.Sprintf("%s is an unlogged table, which a crash empties silently; expected: ALTER TABLE %s SET LOGGED", name, r.sql())
	case subscribed:
		return fmt.Sprintf("%s belongs to a subscription; statement triggers do not fire for rows that logical replication applies", name)
	}
	return ""
}

// unknown returns the message for a name that no table has.
func (c *catalog) unknown(ctx context.Context, asked string) (string, error) {
	if c.names == nil {
		rows, err := c.tx.Query(ctx, `SELECT CASE WHEN n.nspname::pg_catalog.text OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.text[])
				AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
				THEN r.relname::pg_catalog.text ELSE pg_catalog.concat(n.nspname, '.', r.relname) END
			FROM pg_catalog.pg_class AS r JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) r.relnamespace
			WHERE r.relkind OPERATOR(pg_catalog.=) ANY ('{r,p}') AND NOT r.relispartition AND r.relpersistence OPERATOR(pg_catalog.=) 'p'
			AND n.nspname OPERATOR(pg_catalog.<>) ALL ('{pg_catalog,information_schema,slipstream}') ORDER BY 1 LIMIT 1000`, c.path.schemas)
		if err != nil {
			return "", err
		}
		if c.names, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return "", err
		}
	}
	if i := slices.IndexFunc(c.names, func(n string) bool { return strings.HasSuffix(n, "."+asked) }); i >= 0 {
		return fmt.Sprintf("no table %s in the search path of role %s; did you mean %q?", asked, c.role, c.names[i]), nil
	}
	return fmt.Sprintf("no table %s; %s", asked, origin.Choices(asked, c.names)), nil
}

// keyType returns the key type of a type by its name in SQL, such as "bigint", looked
// up along the path of the role.
func (c *catalog) keyType(ctx context.Context, name string) (keyType, error) {
	col := column{name: name, deterministic: true}
	var typtype string
	err := c.path.asRole(ctx, func() error {
		return c.tx.QueryRow(ctx, `WITH RECURSIVE base AS (
			SELECT oid, typtype, typbasetype, typname, typnamespace FROM pg_catalog.pg_type WHERE oid OPERATOR(pg_catalog.=) pg_catalog.to_regtype($1)::pg_catalog.oid
			UNION ALL
			SELECT t.oid, t.typtype, t.typbasetype, t.typname, t.typnamespace
			FROM base JOIN pg_catalog.pg_type AS t ON t.oid OPERATOR(pg_catalog.=) base.typbasetype WHERE base.typtype OPERATOR(pg_catalog.=) 'd')
		SELECT b.oid, b.typtype::pg_catalog.text, CASE WHEN b.typtype OPERATOR(pg_catalog.=) 'e' THEN pg_catalog.format('%I.%I', n.nspname, b.typname) ELSE '' END
		FROM base AS b JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) b.typnamespace
		WHERE b.typtype OPERATOR(pg_catalog.<>) 'd'`, name).
			Scan(&col.typ, &typtype, &col.enum)
	})
	if err == pgx.ErrNoRows {
		return keyType{}, &tree.NoTable{Problem: fmt.Sprintf("there is no type %s", name)}
	}
	if err != nil {
		return keyType{}, err
	}
	col.typeName = name
	t, problem := keyTypeOf(&col)
	if problem != "" {
		return keyType{}, &tree.NoTable{Problem: problem}
	}
	return t, nil
}

// keyTypeOf returns the key type of a column, or why it has none.
func keyTypeOf(c *column) (t keyType, problem string) {
	t, builtin := builtinKeyTypes[c.typ]
	switch {
	case c.virtual:
		return t, "is a virtual generated column, which triggers see as NULL; expected GENERATED ALWAYS AS (...) STORED"
	case !c.deterministic:
		return t, fmt.Sprintf("has type %s with collation %s, which is not deterministic, so several spellings name one row", c.typeName, c.collation)
	case builtin:
		return t, ""
	case c.enum != "":
		return keyType{kind: resource.Text, sql: c.enum, enum: true}, ""
	}
	why := "which has no canonical form here"
	switch {
	case c.typ == 1042:
		why = "whose trailing spaces do not count, so several spellings name one row"
	case strings.HasSuffix(c.typeName, "citext"):
		why = "whose case does not count, so several spellings name one row"
	case c.typ == 1186:
		why = "of which 24:00:00 and 1 day are equal but have different texts"
	case c.typ == 700, c.typ == 701:
		why = "of which some numbers have several spellings, and others are not exact"
	case c.typ == 790:
		why = "whose text depends on lc_monetary"
	}
	return t, fmt.Sprintf("has type %s, %s; expected an integer type, numeric, text, varchar, uuid, bytea, date, timestamp, timestamptz, boolean or an enum", c.typeName, why)
}

// oidList formats an array of oids as text, for $1::pg_catalog.text::pg_catalog.oid[]:
// no query mode of pgx has to know the type.
func oidList(tables []*table) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, t := range tables {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatUint(uint64(t.oid), 10))
	}
	b.WriteByte('}')
	return b.String()
}
