package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// found is what the database has of ours.
type found struct {
	objects map[string]foundObject // by title
	// system is the identifier of the cluster, recorded that of the cluster in
	// which the record of changes was made, 0 if it cannot be read.
	system, recorded int64
}

// foundObject is an object as the catalogs describe it.
type foundObject struct {
	kind       objectKind
	name       string
	resource   string // "" if it is of no resource or nobody knows
	definition string
}

// drop writes the statement that removes the object.
func (f foundObject) drop() string {
	return "DROP " + string(f.kind) + " " + f.name
}

func (f *found) add(o foundObject) {
	f.objects[object{kind: o.kind, name: o.name}.title()] = o
}

// readObjects reads everything in the schema slipstream, and all triggers that
// are ours by name or by function.
func readObjects(ctx context.Context, tx pgx.Tx) (*found, error) {
	f := &found{objects: make(map[string]foundObject)}
	for _, step := range []struct {
		what string
		read func(context.Context, pgx.Tx) error
	}{
		{"schema", f.readSchemaItself},
		{"tables", f.readRelations},
		{"functions", f.readFunctions},
		{"triggers", f.readTriggers},
		{"meta", f.readMeta},
	} {
		if err := step.read(ctx, tx); err != nil {
			return nil, fmt.Errorf("read %s of slipstream: %w", step.what, err)
		}
	}
	return f, nil
}

func (f *found) readSchemaItself(ctx context.Context, tx pgx.Tx) error {
	var exists bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'slipstream'),
		(SELECT system_identifier FROM pg_catalog.pg_control_system())`).Scan(&exists, &f.system)
	if exists {
		f.add(foundObject{kind: schemaObject, name: schemaName, definition: "schema"})
	}
	return err
}

// Tables that others have put rules, triggers or row-level security on do not
// record what they are given.
func (f *found) readRelations(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
		SELECT c.relname::pg_catalog.text, c.relkind::pg_catalog.text, c.relpersistence::pg_catalog.text,
			COALESCE(pg_catalog.pg_get_indexdef(i.indexrelid), ''), COALESCE(i.indisvalid, true),
			c.relrowsecurity OR EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)
				OR EXISTS (SELECT FROM pg_catalog.pg_rewrite w WHERE w.ev_class = c.oid),
			COALESCE((SELECT pg_catalog.string_agg(pg_catalog.concat_ws(' ', a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
					CASE WHEN a.attnotnull THEN 'not null' END, pg_catalog.pg_get_expr(d.adbin, d.adrelid)), ', ' ORDER BY a.attnum)
				FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
				WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), '')
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
		WHERE n.nspname = 'slipstream' AND c.relkind IN ('r', 'i', 'p', 'v', 'm', 'f', 'S')`)
	if err != nil {
		return err
	}
	var name, kind, persistence, index, columns string
	var valid, tampered bool
	_, err = pgx.ForEachRow(rows, []any{&name, &kind, &persistence, &index, &valid, &tampered, &columns}, func() error {
		o := foundObject{kind: tableObject, name: "slipstream." + name}
		switch {
		case kind == "i":
			o.kind, o.definition = indexObject, index
			if !valid {
				o.definition += " invalid"
			}
		default:
			// The search path decides whether expressions come with schemas.
			o.definition = kind + " " + persistence + " " + strings.ReplaceAll(columns, "pg_catalog.", "")
			if tampered {
				o.definition += " with triggers, rules or row-level security"
			}
		}
		f.add(o)
		return nil
	})
	return err
}

func (f *found) readFunctions(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
		SELECT p.proname::pg_catalog.text, pg_catalog.oidvectortypes(p.proargtypes), l.lanname::pg_catalog.text,
			pg_catalog.format_type(p.prorettype, NULL), p.prosecdef, COALESCE(pg_catalog.array_to_string(p.proconfig, '; '), ''), p.prosrc
		FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
		JOIN pg_catalog.pg_language l ON l.oid = p.prolang WHERE n.nspname = 'slipstream'`)
	if err != nil {
		return err
	}
	var name, arguments, language, returns, config, body string
	var definer bool
	_, err = pgx.ForEachRow(rows, []any{&name, &arguments, &language, &returns, &definer, &config, &body}, func() error {
		o := foundObject{kind: functionObject, resource: markedResource(body), definition: functionDefinition(returns, definer, config, body)}
		if language != "plpgsql" {
			o.definition = language + " " + o.definition
		}
		switch name + "(" + arguments + ")" {
		case "renew()":
			o.name = renewName
		case "trim(interval, integer)":
			o.name = trimName
		default:
			o.name = "slipstream." + quoteName(name) + "(" + arguments + ")"
		}
		f.add(o)
		return nil
	})
	return err
}

// markedResource returns the resource that the first line of a body names.
func markedResource(body string) string {
	line, ok := strings.CutPrefix(body, "\n"+resourceMark)
	if !ok {
		return ""
	}
	line, _, _ = strings.Cut(line, "\n")
	name, err := strconv.Unquote(line)
	if err != nil {
		return ""
	}
	return name
}

func (f *found) readTriggers(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
		SELECT t.tgname::pg_catalog.text, tn.nspname::pg_catalog.text, c.relname::pg_catalog.text, pn.nspname::pg_catalog.text, p.proname::pg_catalog.text,
			p.prosrc, t.tgtype::pg_catalog.int4, t.tgenabled::pg_catalog.text,
			COALESCE(t.tgoldtable, '')::pg_catalog.text, COALESCE(t.tgnewtable, '')::pg_catalog.text,
			pg_catalog.concat_ws(' ', CASE WHEN t.tgqual IS NOT NULL THEN 'with a condition' END, CASE WHEN t.tgconstraint <> 0 THEN 'of a constraint' END,
				CASE WHEN t.tgattr::pg_catalog.text <> '' THEN 'of columns' END, CASE WHEN t.tgnargs > 0 THEN 'with arguments' END)
		FROM pg_catalog.pg_trigger t
		JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid JOIN pg_catalog.pg_namespace tn ON tn.oid = c.relnamespace
		JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid JOIN pg_catalog.pg_namespace pn ON pn.oid = p.pronamespace
		WHERE NOT t.tgisinternal AND tn.nspname <> 'slipstream'
			AND (pn.nspname = 'slipstream' OR pg_catalog.starts_with(t.tgname::pg_catalog.text, 'slipstream/'))`)
	if err != nil {
		return err
	}
	var t trigger
	var name, functionSchema, functionName, body string
	_, err = pgx.ForEachRow(rows, []any{&name, &t.on.schema, &t.on.name, &functionSchema, &functionName,
		&body, &t.typ, &t.enabled, &t.oldTable, &t.newTable, &t.other}, func() error {
		t.name = quoteName(name)
		t.function = quoteName(functionSchema) + "." + quoteName(functionName)
		if functionSchema == schemaName {
			t.function = "slipstream." + quoteName(functionName)
		}
		f.add(foundObject{kind: triggerObject, name: t.object(), resource: markedResource(body), definition: t.definition()})
		return nil
	})
	return err
}

// readMeta reads the row of slipstream.meta, if there is such a table and the
// connected role may read it.
func (f *found) readMeta(ctx context.Context, tx pgx.Tx) error {
	shared := sharedObjects()
	meta := shared[slices.IndexFunc(shared, func(o object) bool { return o.name == metaName })]
	if f.objects[meta.title()].definition != meta.definition {
		return nil
	}
	var readable bool
	err := tx.QueryRow(ctx, `SELECT pg_catalog.has_table_privilege(c.oid, 'SELECT') AND pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE')
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = 'slipstream' AND c.relname = 'meta'`).Scan(&readable)
	if err != nil {
		return err
	}
	if !readable {
		// Nothing speaks against it; the stream, which could not read the
		// record either, says so itself.
		f.recorded = f.system
		return nil
	}
	rows, err := tx.Query(ctx, `SELECT system_identifier FROM slipstream.meta`)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, []any{&f.recorded}, func() error { return nil })
	return err
}

// noRole is the error of a grant to a role that does not exist.
type noRole struct{ role string }

func (e *noRole) Error() string {
	return fmt.Sprintf("there is no role %s to grant to; expected the role that the gateway connects as", quoteName(e.role))
}

// readGrants says whether a role may do what [grantObjectFor] grants.
func (f *found) readGrants(ctx context.Context, tx pgx.Tx, role string) error {
	var exists, granted bool
	err := tx.QueryRow(ctx, `
		SELECT r.oid IS NOT NULL, COALESCE(
			(SELECT pg_catalog.bool_and(pg_catalog.has_schema_privilege(r.oid, n.oid, 'USAGE')) FROM pg_catalog.pg_namespace n WHERE n.nspname = 'slipstream')
			AND (SELECT pg_catalog.count(*) = 3 AND pg_catalog.bool_and(pg_catalog.has_table_privilege(r.oid, c.oid, 'SELECT'))
				FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
				WHERE n.nspname = 'slipstream' AND c.relname IN ('change', 'meta', 'incarnation'))
			AND (SELECT pg_catalog.count(*) = 2 AND pg_catalog.bool_and(pg_catalog.has_function_privilege(r.oid, p.oid, 'EXECUTE'))
				FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
				WHERE n.nspname = 'slipstream' AND p.proname IN ('renew', 'trim')), false)
		FROM (SELECT 1) AS one LEFT JOIN pg_catalog.pg_roles r ON r.rolname = $1::pg_catalog.text`, role).Scan(&exists, &granted)
	switch {
	case err != nil:
		return fmt.Errorf("read grants of role %s: %w", quoteName(role), err)
	case !exists:
		return &noRole{role}
	case granted:
		grant := grantObjectFor(role)
		f.add(foundObject{kind: grantObject, name: grant.name, definition: grant.definition})
	}
	return nil
}

// metaRow returns the row of slipstream.meta as an object.
func metaRow() object {
	return object{kind: rowObject, name: metaRowName, sql: metaRowSQL,
		comment: "the record is complete from now on"}
}
