package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Extensions that replicate apply rows without firing statement-level triggers, as
// PostgreSQL's own logical replication does: their writes are not recorded. Only some
// of them keep a list of tables that a gateway can read.

// applierNames are the extensions, as an array of text.
const applierNames = "{pglogical,spock,bdr,pgactive}"

// readAppliers finds the installed extensions, and the tables that they are known
// to replicate into. A list is read only if it is a plain table of the extension
// itself: anyone could create another of the same name, with a policy whose
// function would run as the connected role.
func (c *catalog) readAppliers(ctx context.Context) error {
	rows, err := c.tx.Query(ctx, `SELECT e.extname::pg_catalog.text, COALESCE((
			SELECT pg_catalog.format('%I.%I', n.nspname, r.relname) FROM pg_catalog.pg_depend AS d
			JOIN pg_catalog.pg_class AS r ON r.oid OPERATOR(pg_catalog.=) d.objid
			JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) r.relnamespace
			WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
			AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass::pg_catalog.oid
			AND d.refobjid OPERATOR(pg_catalog.=) e.oid AND d.deptype OPERATOR(pg_catalog.=) 'e'::pg_catalog."char"
			AND r.relname OPERATOR(pg_catalog.=) 'local_sync_status'::pg_catalog.name
			AND r.relkind OPERATOR(pg_catalog.=) 'r'::pg_catalog."char" AND NOT r.relrowsecurity
			AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(r.oid, 'SELECT') LIMIT 1), '')
		FROM pg_catalog.pg_extension AS e WHERE e.extname::pg_catalog.text OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.text::pg_catalog.text[])
		ORDER BY e.oid`, applierNames)
	if err != nil {
		return err
	}
	var name, list string
	lists := make(map[string]string)
	if _, err := pgx.ForEachRow(rows, []any{&name, &list}, func() error {
		c.appliers = append(c.appliers, name)
		lists[name] = list
		return nil
	}); err != nil {
		return err
	}
	for _, name := range c.appliers {
		if lists[name] == "" {
			continue
		}
		err := undone(ctx, c.tx, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, "SELECT s.sync_nspname::pg_catalog.text, s.sync_relname::pg_catalog.text FROM "+lists[name]+
				" AS s WHERE s.sync_nspname IS NOT NULL AND s.sync_relname IS NOT NULL")
			if err != nil {
				return statementError(err)
			}
			var r relation
			_, err = pgx.ForEachRow(rows, []any{&r.schema, &r.name}, func() error {
				c.replicated[r] = name
				return nil
			})
			return statementError(err)
		})
		if wrong := (*statementProblem)(nil); err != nil && !errors.As(err, &wrong) {
			return err // a list of another form is ignored
		}
	}
	return nil
}

// applied returns why changes of a table are certainly not recorded, or, if that is
// uncertain, why they might not be. Both are "" without such an extension.
func (c *catalog) applied(t *table) (certain, possible string) {
	for _, r := range t.tree {
		if name, found := c.replicated[relation{schema: r.schema, name: r.name}]; found {
			return fmt.Sprintf("%s replicates into table %s.%s and applies rows without firing statement triggers, so changes would not be recorded; "+
				"expected a table outside of its subscriptions, or add promise: none to the resource", name, r.schema, r.name), ""
		}
	}
	if len(c.appliers) > 0 {
		names := slices.Clone(c.appliers)
		slices.Sort(names)
		return "", strings.Join(names, " and ")
	}
	return "", ""
}
