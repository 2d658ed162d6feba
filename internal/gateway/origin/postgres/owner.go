package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// The bodies of trigger functions convert columns to text, and conversions obey
// CREATE CAST, which the owner of a column's type may run. So code of the owner of
// a table runs with the privileges of the owner of the functions. Therefore there are
// two owners. The schema, its tables, renew and trim belong to the schema's owner;
// trigger functions belong to the definer, a role that may only insert into
// slipstream.change.

// roles are the roles that concern apply.
type roles struct {
	version int    // the server's major version
	current string // the connected role
	super   bool   // it is a superuser
	// trusted reports whether the schema's owner is the connected role, one that
	// it is a member of, or a superuser; true if there is no schema.
	trusted bool
	owns    bool // the connected role owns every table that has triggers of ours, or is to have them

	schema  string // the owner of the schema, or the connected role if there is none yet
	definer string // "" if the functions are the first and no role may own them
	// exists, usable and granted report whether the definer exists, whether the
	// connected role may create functions as it, and whether it may insert.
	exists, usable, granted bool
	definerSuper            bool
	// excess lists what else in the schema the definer was granted, such as "SELECT ON
	// change", or "".
	excess string
}

// readRoles reads what apply must know about roles. tables are the oids of the
// tables concerned.
func readRoles(ctx context.Context, tx pgx.Tx, f *found, cfg Config, tables []string) (*roles, error) {
	r := &roles{schema: f.schemaOwner}
	err := tx.QueryRow(ctx, `
		WITH RECURSIVE member AS (
			SELECT m.roleid AS oid FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) m.member
			WHERE r.rolname OPERATOR(pg_catalog.=) current_user
			UNION
			SELECT m.roleid FROM member JOIN pg_catalog.pg_auth_members m ON m.member OPERATOR(pg_catalog.=) member.oid
		)
		SELECT pg_catalog.current_setting('server_version_num')::pg_catalog.int4 OPERATOR(pg_catalog./) 10000, r.rolname::pg_catalog.text, r.rolsuper,
			COALESCE((SELECT o.oid OPERATOR(pg_catalog.=) r.oid OR o.rolsuper OR EXISTS (SELECT FROM member WHERE member.oid OPERATOR(pg_catalog.=) o.oid)
				FROM pg_catalog.pg_roles o WHERE o.rolname OPERATOR(pg_catalog.=) $1::pg_catalog.text), true),
			NOT EXISTS (SELECT FROM pg_catalog.pg_class c
				WHERE c.oid OPERATOR(pg_catalog.=) ANY ($2::pg_catalog.text[]::pg_catalog.oid[]) AND c.relowner OPERATOR(pg_catalog.<>) r.oid)
		FROM pg_catalog.pg_roles r WHERE r.rolname OPERATOR(pg_catalog.=) current_user`, f.schemaOwner, tables).
		Scan(&r.version, &r.current, &r.super, &r.trusted, &r.owns)
	if err != nil {
		return nil, fmt.Errorf("read roles: %w", err)
	}
	if r.schema == "" || !r.trusted && cfg.Adopt {
		r.schema = r.current
	}
	r.definer = f.definer(cfg, r)
	return r, r.readDefiner(ctx, tx)
}

// definer returns the role that the trigger functions belong to: the configured
// one, or else their present owner, or else, on a first installation, the role that
// applies if no code of another role can run with its privileges. It returns "" if
// there is none.
func (f *found) definer(cfg Config, r *roles) string {
	if cfg.Definer != "" {
		return cfg.Definer
	}
	if owners := f.functionOwners(); len(owners) > 0 && r.trusted {
		others := slices.DeleteFunc(slices.Clone(owners), func(o string) bool { return o == f.schemaOwner })
		switch len(others) {
		case 0:
			return f.schemaOwner
		case 1:
			return others[0]
		}
		return ""
	}
	if r.owns && !r.super {
		return r.current
	}
	return ""
}

// functionOwners are the owners of the trigger functions, sorted.
func (f *found) functionOwners() []string {
	var owners []string
	for _, o := range f.objects {
		if o.triggered && !slices.Contains(owners, o.owner) {
			owners = append(owners, o.owner)
		}
	}
	slices.Sort(owners)
	return owners
}

func (r *roles) readDefiner(ctx context.Context, tx pgx.Tx) error {
	if r.definer == "" {
		return nil
	}
	may := "MEMBER" // includes SET ROLE up to PostgreSQL 15
	if r.version >= 16 {
		may = "SET"
	}
	err := tx.QueryRow(ctx, `
		SELECT r.oid IS NOT NULL, COALESCE(r.rolsuper, false), COALESCE(pg_catalog.pg_has_role(r.oid, '`+may+`'), false),
			COALESCE((SELECT pg_catalog.has_schema_privilege(r.oid, n.oid, 'USAGE') AND pg_catalog.has_table_privilege(r.oid, c.oid, 'INSERT')
				FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
				WHERE n.nspname OPERATOR(pg_catalog.=) 'slipstream' AND c.relname OPERATOR(pg_catalog.=) 'change'), false),
			COALESCE((SELECT pg_catalog.string_agg(DISTINCT pg_catalog.concat(g.privilege_type, ' ON ', c.relname), ', ')
				FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
				CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) AS g
				WHERE n.nspname OPERATOR(pg_catalog.=) 'slipstream' AND (g.grantee OPERATOR(pg_catalog.=) r.oid OR g.grantee OPERATOR(pg_catalog.=) 0::pg_catalog.oid)
				AND (c.relname OPERATOR(pg_catalog.<>) 'change' OR g.privilege_type OPERATOR(pg_catalog.<>) 'INSERT')), '')
		FROM (SELECT 1) AS one LEFT JOIN pg_catalog.pg_roles r ON r.rolname OPERATOR(pg_catalog.=) $1::pg_catalog.text`, r.definer).
		Scan(&r.exists, &r.definerSuper, &r.usable, &r.granted, &r.excess)
	if err != nil {
		return fmt.Errorf("read role %s: %w", quoteName(r.definer), err)
	}
	return nil
}

// separate reports whether the definer is a role other than the schema's owner.
func (r *roles) separate() bool { return r.definer != "" && r.definer != r.schema }

// finding reports whether a separate definer may do what the functions do.
func (r *roles) finding() finding {
	f := finding{object: object{kind: definerObject, name: "of definer " + quoteName(r.definer), comment: "lets the trigger functions insert into the record, and nothing else",
		sql: "GRANT USAGE ON SCHEMA slipstream TO " + quoteName(r.definer) + ";\nGRANT INSERT ON " + changeName + " TO " + quoteName(r.definer)}}
	switch {
	case r.excess != "":
		f.state = origin.Differs
		f.object.comment = "takes " + r.excess + " from the definer, with whose rights code of the tables' owners runs"
		f.object.sql = "REVOKE ALL ON ALL TABLES IN SCHEMA slipstream FROM PUBLIC, " + quoteName(r.definer) + ";\n" + f.object.sql
	case !r.granted:
		f.state = origin.Missing
	}
	return f
}

// administration returns the statements that an administrator runs once so that
// the connected role may create functions as the definer; none if it may.
func (r *roles) administration() []origin.Statement {
	if r.usable {
		return nil
	}
	name := quoteName(r.definer)
	var sql []string
	if !r.exists {
		sql = append(sql, "CREATE ROLE "+name+" NOLOGIN")
	}
	if !r.super {
		grant := "GRANT " + name + " TO " + quoteName(r.current)
		if r.version >= 16 {
			// Membership no longer includes SET ROLE, and a role that creates another
			// gets neither.
			grant += " WITH SET TRUE, INHERIT FALSE"
		}
		sql = append(sql, grant)
	}
	var list []origin.Statement
	for _, s := range sql {
		list = append(list, origin.Statement{SQL: s, Administrator: true,
			Comment: fmt.Sprintf("an administrator with CREATEROLE runs this once, so that %s may create functions that belong to %s", quoteName(r.current), name)})
	}
	return list
}

// refuseAdministration refuses a plan that an administrator has to prepare.
func refuseAdministration(plan []origin.Statement) error {
	var sql []string
	for _, s := range plan {
		if s.Administrator {
			sql = append(sql, s.SQL+";")
		}
	}
	if len(sql) == 0 {
		return nil
	}
	return refusef("the definer is not ready; an administrator with CREATEROLE must run this once: %s", strings.Join(sql, " "))
}

// refusal returns why apply does nothing, and what would make it work.
type refusal struct{ text string }

func (e *refusal) Error() string { return e.text }

func refusef(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// refuseOwners refuses to build on objects that a role other than the schema's
// owner and the definer may change.
func (i *inspection) refuseOwners(cfg Config) error {
	if cfg.Definer != "" && i.roles.definerSuper {
		return refusef("role %s is a superuser; expected --definer to name a role without rights, to which the trigger functions can belong", quoteName(cfg.Definer))
	}
	if cfg.Adopt {
		return nil
	}
	if !i.roles.trusted {
		return refusef("schema slipstream belongs to %s, and the role that applies, %s, is not a member of that role; apply as %[1]s, or give the schema and everything in it to %[2]s with --adopt",
			quoteName(i.found.schemaOwner), quoteName(i.roles.current))
	}
	var foreign []string
	for _, fault := range i.found.ownerFaults(i.roles.definer) {
		if fault.state == origin.Foreign {
			foreign = append(foreign, fault.title+" ("+quoteName(fault.owner)+")")
		}
	}
	if len(foreign) == 0 {
		return nil
	}
	const shown = 5
	if more := len(foreign) - shown; more > 0 {
		foreign = append(foreign[:shown], strconv.Itoa(more)+" more")
	}
	return refusef("objects in schema slipstream belong to a role other than its owner %s and the definer: %s; check them, then give them to their owners with --adopt (and --definer ROLE)",
		quoteName(i.found.schemaOwner), strings.Join(foreign, ", "))
}

// refuseDefiner refuses to create functions that would belong to no suitable role.
func (r *roles) refuseDefiner() error {
	switch {
	case r.definer != "":
		return nil
	case r.super:
		return refusef("the role that applies, %s, is a superuser, and trigger functions would run code of the owners of tables with its rights; name a role without rights for them with --definer ROLE (db plan --definer ROLE prints how it is created)",
			quoteName(r.current))
	default:
		return refusef("the role that applies, %s, does not own every table, and trigger functions would run code of the owners of the others with its rights; run it as the owner of the tables, or name a role without rights for the functions with --definer ROLE (db plan --definer ROLE prints how it is created)",
			quoteName(r.current))
	}
}

// ownerFault is an object that belongs to the wrong role.
type ownerFault struct {
	title, owner string
	state        origin.State // Foreign or SuperuserOwned
}

// ownerFaults returns the objects with a wrong owner, sorted by title. definer is
// the role that trigger functions belong to, or "" for the only one other than the
// schema's owner that they belong to now.
func (f *found) ownerFaults(definer string) []ownerFault {
	if definer == "" {
		definer = f.definer(Config{}, &roles{trusted: true})
	}
	var faults []ownerFault
	for _, title := range f.titles() {
		o := f.objects[title]
		switch {
		case o.owner == "":
		case o.triggered && o.ownerSuper:
			faults = append(faults, ownerFault{title, o.owner, origin.SuperuserOwned})
		case o.owner != f.schemaOwner && !(o.triggered && o.owner == definer):
			faults = append(faults, ownerFault{title, o.owner, origin.Foreign})
		}
	}
	return faults
}

// note returns what is wrong with the owner, for humans.
func (f ownerFault) note() string {
	if f.state == origin.SuperuserOwned {
		return "belongs to superuser " + quoteName(f.owner) + ", with whose rights it runs code of the tables' owners; give it to a role without rights: db apply --definer ROLE --adopt"
	}
	return "belongs to " + quoteName(f.owner) + ", which is neither the owner of schema slipstream nor the definer; give it to its owner: db apply --adopt"
}

// warnOfOwners logs objects that belong to the wrong role, unless the previous schema
// had the same ones. What they record is still correct, so the promise holds.
func (o *Origin) warnOfOwners(before, now *schema) {
	if before != nil && slices.Equal(before.ownerFaults, now.ownerFaults) {
		return
	}
	for _, fault := range now.ownerFaults {
		o.cfg.Logger.Warn("an object of the change record has a wrong owner", "object", fault.title, "why", fault.note())
	}
}
