package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// privilege is a privilege that a gateway's role needs, in addition to SELECT on the
// tables of the resources.
type privilege struct {
	sql    string // between GRANT and TO
	object string // the name of the object that it is granted on
	held   bool
}

// noRole is the error of a grant to a role that does not exist.
type noRole struct{ role string }

func (e *noRole) Error() string {
	return fmt.Sprintf("there is no role %s to grant to; expected the role that the gateway connects as", quoteName(e.role))
}

// readPrivileges returns what a gateway's role needs and whether it has it.
func readPrivileges(ctx context.Context, tx pgx.Tx, role string) ([]privilege, error) {
	var exists, usage bool
	var tables, functions []string
	err := tx.QueryRow(ctx, `
		SELECT r.oid IS NOT NULL,
			COALESCE((SELECT pg_catalog.has_schema_privilege(r.oid, n.oid, 'USAGE') FROM pg_catalog.pg_namespace n
				WHERE n.nspname OPERATOR(pg_catalog.=) 'slipstream'), false),
			ARRAY(SELECT c.relname::pg_catalog.text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
				WHERE n.nspname OPERATOR(pg_catalog.=) 'slipstream' AND c.relkind OPERATOR(pg_catalog.=) 'r' AND pg_catalog.has_table_privilege(r.oid, c.oid, 'SELECT')),
			ARRAY(SELECT p.proname::pg_catalog.text FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
				WHERE n.nspname OPERATOR(pg_catalog.=) 'slipstream' AND pg_catalog.has_function_privilege(r.oid, p.oid, 'EXECUTE'))
		FROM (SELECT 1) AS one LEFT JOIN pg_catalog.pg_roles r ON r.rolname OPERATOR(pg_catalog.=) $1::pg_catalog.text`, role).
		Scan(&exists, &usage, &tables, &functions)
	if err != nil {
		return nil, fmt.Errorf("read grants of role %s: %w", quoteName(role), err)
	}
	if !exists {
		return nil, &noRole{role}
	}
	list := []privilege{{"USAGE ON SCHEMA slipstream", schemaName, usage}}
	for _, name := range []string{changeName, metaName, incarnationName} {
		list = append(list, privilege{"SELECT ON " + name, name, slices.Contains(tables, strings.TrimPrefix(name, "slipstream."))})
	}
	list = append(list, privilege{"EXECUTE ON FUNCTION " + renewName, renewName, slices.Contains(functions, "renew")},
		privilege{"EXECUTE ON FUNCTION " + trimName, trimName, slices.Contains(functions, trimBare)})
	return list, nil
}

// grantObjectFor returns all privileges of a gateway's role as one object.
func grantObjectFor(role string) object {
	return object{kind: grantObject, name: "to " + quoteName(role), comment: "lets the gateway's role read the record and trim it"}
}

// grantSQL grants to the role what it lacks, and everything on the objects that
// are created or recreated before. It returns "" if that is nothing: a GRANT of an
// existing privilege would still change the catalogs.
func grantSQL(role string, list []privilege, created map[string]bool) string {
	var sql []string
	for _, p := range list {
		if !p.held || created[p.object] {
			sql = append(sql, "GRANT "+p.sql+" TO "+quoteName(role))
		}
	}
	return strings.Join(sql, ";\n")
}
