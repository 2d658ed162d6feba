package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// found is what exists in the database.
type found struct {
	objects map[string]foundObject // by title
	// system is the identifier of the cluster, recorded that of the cluster in
	// which the record of changes was created, or 0 if it cannot be read.
	system, recorded int64
	schemaOwner      string // "" if there is no schema
	// unwitnessed says that the change table can be read and has no row.
	unwitnessed bool
}

// foundObject is an object as the catalogs describe it.
type foundObject struct {
	kind       objectKind
	name       string
	resource   string // "" if it is of no resource or of an unknown one
	table      string // of a trigger
	definition string
	owner      string // of a table or function
	ownerSuper bool   // of a function: the owner is a superuser
	executable bool   // of a function: the connected role may use it in a trigger
	trims      bool   // it is a trimming function, of this release or another
	triggered  bool   // it is a trigger function
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
	err := tx.QueryRow(ctx, `SELECT COALESCE((SELECT pg_catalog.pg_get_userbyid(n.nspowner)::pg_catalog.text
			FROM pg_catalog.pg_namespace n WHERE n.nspname OPERATOR(pg_catalog.=) 'slipstream'), ''),
		(SELECT s.system_identifier FROM pg_catalog.pg_control_system() s)`).Scan(&f.schemaOwner, &f.system)
	if f.schemaOwner != "" {
		f.add(foundObject{kind: schemaObject, name: schemaName, definition: "schema"})
	}
	return err
}

// Tables with rules, triggers or row-level security of others may not record all
// rows.
func (f *found) readRelations(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
		SELECT c.relname::pg_catalog.text, c.relkind::pg_catalog.text, c.relpersistence::pg_catalog.text,
			pg_catalog.pg_get_userbyid(c.relowner)::pg_catalog.text,
			COALESCE(pg_catalog.pg_get_indexdef(i.indexrelid), ''), COALESCE(i.indisvalid, true),
			c.relrowsecurity OR EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid OPERATOR(pg_catalog.=) c.oid AND NOT t.tgisinternal)
				OR EXISTS (SELECT FROM pg_catalog.pg_rewrite w WHERE w.ev_class OPERATOR(pg_catalog.=) c.oid),
			COALESCE((SELECT pg_catalog.string_agg(pg_catalog.concat_ws(' ', a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
					CASE WHEN a.attnotnull THEN 'not null' END, pg_catalog.pg_get_expr(d.adbin, d.adrelid)), ', ' ORDER BY a.attnum)
				FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_attrdef d
					ON d.adrelid OPERATOR(pg_catalog.=) a.attrelid AND d.adnum OPERATOR(pg_catalog.=) a.attnum
				WHERE a.attrelid OPERATOR(pg_catalog.=) c.oid AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped), '')
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
		LEFT JOIN pg_catalog.pg_index i ON i.indexrelid OPERATOR(pg_catalog.=) c.oid
		WHERE n.nspname OPERATOR(pg_catalog.=) 'slipstream'
			AND c.relkind::pg_catalog.text OPERATOR(pg_catalog.=) ANY (ARRAY['r', 'i', 'p', 'v', 'm', 'f', 'S'])`)
	if err != nil {
		return err
	}
	var name, kind, persistence, owner, index, columns string
	var valid, tampered bool
	_, err = pgx.ForEachRow(rows, []any{&name, &kind, &persistence, &owner, &index, &valid, &tampered, &columns}, func() error {
		o := foundObject{kind: tableObject, name: "slipstream." + name}
		switch {
		case kind == "i":
			o.kind, o.definition = indexObject, index
			if !valid {
				o.definition += " invalid"
			}
		default:
			o.owner = owner
			// The search path determines whether names in expressions are
			// qualified.
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
			pg_catalog.format_type(p.prorettype, NULL), p.prosecdef, COALESCE(pg_catalog.array_to_string(p.proconfig, '; '), ''), p.prosrc,
			pg_catalog.pg_get_userbyid(p.proowner)::pg_catalog.text,
			EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.oid OPERATOR(pg_catalog.=) p.proowner AND r.rolsuper),
			pg_catalog.has_function_privilege(p.oid, 'EXECUTE')
		FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
		JOIN pg_catalog.pg_language l ON l.oid OPERATOR(pg_catalog.=) p.prolang WHERE n.nspname OPERATOR(pg_catalog.=) 'slipstream'`)
	if err != nil {
		return err
	}
	var name, arguments, language, returns, config, body, owner string
	var definer, super, executable bool
	_, err = pgx.ForEachRow(rows, []any{&name, &arguments, &language, &returns, &definer, &config, &body, &owner, &super, &executable}, func() error {
		o := foundObject{kind: functionObject, resource: markedResource(body), definition: functionDefinition(returns, definer, config, body),
			owner: owner, ownerSuper: super, executable: executable, triggered: returns == "trigger"}
		if language != "plpgsql" {
			o.definition = language + " " + o.definition
		}
		if ours, ok := trimArguments[arguments]; ok {
			arguments = ours
			o.trims = name == "trim" || strings.HasPrefix(name, "trim@")
		}
		if o.name = "slipstream." + quoteName(name) + "(" + arguments + ")"; name+"("+arguments+")" == "renew()" {
			o.name = renewName
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
		if line, ok = strings.CutPrefix(body, "\n"+oldResourceMark); !ok {
			return ""
		}
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
			pg_catalog.concat_ws(' ', CASE WHEN t.tgqual IS NOT NULL THEN 'with a condition' END, CASE WHEN t.tgconstraint OPERATOR(pg_catalog.<>) 0::pg_catalog.oid THEN 'of a constraint' END,
				CASE WHEN t.tgattr::pg_catalog.text OPERATOR(pg_catalog.<>) '' THEN 'of columns' END, CASE WHEN t.tgnargs OPERATOR(pg_catalog.>) 0 THEN 'with arguments' END)
		FROM pg_catalog.pg_trigger t
		JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) t.tgrelid JOIN pg_catalog.pg_namespace tn ON tn.oid OPERATOR(pg_catalog.=) c.relnamespace
		JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) t.tgfoid JOIN pg_catalog.pg_namespace pn ON pn.oid OPERATOR(pg_catalog.=) p.pronamespace
		WHERE NOT t.tgisinternal AND tn.nspname OPERATOR(pg_catalog.<>) 'slipstream'
			AND (pn.nspname OPERATOR(pg_catalog.=) 'slipstream' OR pg_catalog.starts_with(t.tgname::pg_catalog.text, 'slipstream/'))`)
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
		f.add(foundObject{kind: triggerObject, name: t.object(), table: t.on.schema + "." + t.on.name, resource: markedResource(body), definition: t.definition()})
		return nil
	})
	return err
}

// readable reports whether a table of ours has the expected definition and the
// connected role may read it.
func (f *found) readable(ctx context.Context, tx pgx.Tx, name string) (asItShouldBe, readable bool, err error) {
	shared := sharedObjects()
	table := shared[slices.IndexFunc(shared, func(o object) bool { return o.name == name })]
	if f.objects[table.title()].definition != table.definition {
		return false, false, nil
	}
	err = tx.QueryRow(ctx, `SELECT pg_catalog.has_table_privilege(c.oid, 'SELECT') AND pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE')
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
		WHERE n.nspname OPERATOR(pg_catalog.=) 'slipstream' AND c.relname OPERATOR(pg_catalog.=) $1::pg_catalog.text`,
		strings.TrimPrefix(name, "slipstream.")).Scan(&readable)
	return true, readable, err
}

// readMeta reads the row of slipstream.meta, if there is such a table and the
// connected role may read it.
func (f *found) readMeta(ctx context.Context, tx pgx.Tx) error {
	fits, readable, err := f.readable(ctx, tx, metaName)
	if err != nil || !fits {
		return err
	}
	if !readable {
		// This is not a fault of the record; the stream, which cannot read it
		// either, reports that itself.
		f.recorded = f.system
		return nil
	}
	rows, err := tx.Query(ctx, `SELECT m.system_identifier FROM slipstream.meta m`)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, []any{&f.recorded}, func() error { return nil })
	return err
}

// readWitness checks whether the change table has a row.
func (f *found) readWitness(ctx context.Context, tx pgx.Tx) error {
	if _, readable, err := f.readable(ctx, tx, changeName); err != nil || !readable {
		return err
	}
	return tx.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM slipstream.change)`).Scan(&f.unwitnessed)
}

// metaRow returns the row of slipstream.meta as an object.
func metaRow() object {
	return object{kind: rowObject, name: metaRowName, sql: metaRowSQL,
		comment: "the record is complete from now on"}
}
