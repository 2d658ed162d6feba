package postgres

import (
	"fmt"
	"strings"

	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// objectKind is the SQL keyword for the kind of an object.
type objectKind string

const (
	schemaObject   objectKind = "SCHEMA"
	tableObject    objectKind = "TABLE"
	indexObject    objectKind = "INDEX"
	functionObject objectKind = "FUNCTION"
	triggerObject  objectKind = "TRIGGER"
	rowObject      objectKind = "ROW"    // of slipstream.meta
	grantObject    objectKind = "GRANTS" // to Config.GrantTo
	definerObject  objectKind = "RIGHTS" // of the owner of trigger functions
)

// object is something in the database that the freshness of resources needs.
type object struct {
	kind     objectKind
	name     string // quoted as in DROP
	resource string // "" for what all resources share
	table    string // of an index or a trigger
	function string // that a trigger executes, as in its name
	flush    string // the source that flushes what the object records, or "" if it records nothing
	comment  string
	sql      string // the statements that create or replace it
	// definition is its expected description from the catalogs.
	definition string
	// tolerated is another definition that also observes all changes.
	tolerated string
}

// title names the object for humans.
func (o object) title() string { return strings.ToLower(string(o.kind)) + " " + o.name }

func (o object) public() origin.Object {
	table := ""
	if o.kind == triggerObject {
		table = o.table
	}
	return origin.Object{Name: o.title(), Resource: o.resource, Table: table, Comment: o.comment, SQL: o.sql}
}

// wanted returns everything that the resources of a schema need, in the order in
// which it can be created.
func wanted(s *schema, cfg Config) []object {
	objects := sharedObjects()
	for _, c := range s.resources {
		objects = append(objects, triggerObjects(c, cfg.Notify)...)
	}
	return objects
}

// The objects of the schema slipstream that every resource needs.
const (
	schemaName      = "slipstream"
	changeName      = "slipstream.change"
	metaName        = "slipstream.meta"
	incarnationName = "slipstream.incarnation"
	renewName       = "slipstream.renew()"
	metaRowName     = "of slipstream.meta"
)

// witnessSource is the source of rows that gateways ignore, written so that the
// change table has a row.
const witnessSource = "slipstream"

// Two-part keys of advisory locks: "slip" in ASCII, and what is locked.
const (
	lockClass = 0x736c6970
	applyLock = 1
	trimLock  = 2
)

func sharedObjects() []object {
	return []object{
		{kind: schemaObject, name: schemaName, comment: "holds everything but the triggers themselves",
			sql: "CREATE SCHEMA slipstream;\nREVOKE ALL ON SCHEMA slipstream FROM PUBLIC", definition: "schema"},
		{kind: tableObject, name: changeName, comment: "the record of changes that all triggers append to; one row for each document that a statement changes",
			sql: changeSQL, definition: "r p xid xid8 not null pg_current_xact_id(), at timestamp with time zone not null clock_timestamp(), source text not null, key text"},
		{kind: indexObject, name: "slipstream.change_xid", table: changeName, comment: "finds what became visible since a snapshot",
			sql: "CREATE INDEX change_xid ON slipstream.change (xid)", definition: "CREATE INDEX change_xid ON slipstream.change USING btree (xid)"},
		{kind: tableObject, name: metaName, comment: "says since which transaction the record is complete, and to which server it belongs",
			sql: metaSQL, definition: "r p format integer not null, system_identifier bigint not null, complete_from xid8 not null"},
		{kind: tableObject, name: incarnationName, comment: "is emptied by recovery and promotion, when commits that were seen may be lost",
			sql:        "CREATE UNLOGGED TABLE slipstream.incarnation (\n  id pg_catalog.uuid NOT NULL\n);\nREVOKE ALL ON TABLE slipstream.incarnation FROM PUBLIC",
			definition: "r u id uuid not null"},
		{kind: indexObject, name: "slipstream.incarnation_one", table: incarnationName, comment: "keeps slipstream.incarnation to one row",
			sql: "CREATE UNIQUE INDEX incarnation_one ON slipstream.incarnation ((true))", definition: "CREATE UNIQUE INDEX incarnation_one ON slipstream.incarnation USING btree ((true))"},
		{kind: functionObject, name: renewName, comment: "gives a new history its id",
			sql:        functionSQL(renewName, "pg_catalog.uuid", ownPath, renewBody),
			definition: functionDefinition("uuid", true, ownPathConfig, renewBody)},
		{kind: functionObject, name: trimName, comment: "deletes old rows of slipstream.change, called by gateways every minute",
			sql:        functionSQL(trimCall+trimParameters, "pg_catalog.int8", trimSet, trimBody),
			definition: functionDefinition("bigint", true, trimSetConfig, trimBody)},
	}
}

// changeSQL creates the record of changes. Rows are appended and deleted, never
// updated: two writers can neither wait for each other nor deadlock. Deleted rows
// are the oldest, so a vacuum after every 50,000 keeps the start of the index short;
// by default it would wait for a fifth of the table.
const changeSQL = `CREATE TABLE slipstream.change (
  xid pg_catalog.xid8 NOT NULL DEFAULT pg_catalog.pg_current_xact_id(), -- the writer's transaction
  at pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(), -- for trimming and statistics
  source pg_catalog.text NOT NULL, -- the resource and the way in which the row changes its documents
  key pg_catalog.text -- what the source records of the row; NULL: every document of the resource
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 200000);
REVOKE ALL ON TABLE slipstream.change FROM PUBLIC`

const metaSQL = `CREATE TABLE slipstream.meta (
  format pg_catalog.int4 PRIMARY KEY CHECK (format OPERATOR(pg_catalog.=) 1), -- so there is one row
  system_identifier pg_catalog.int8 NOT NULL, -- of the cluster that the record is of
  complete_from pg_catalog.xid8 NOT NULL -- all changes of this and later transactions are recorded
);
REVOKE ALL ON TABLE slipstream.meta FROM PUBLIC`

// ownPath is the search path of functions that can afford to set one, because
// they do not run with every statement.
const (
	ownPath       = " SET search_path = pg_catalog, pg_temp"
	ownPathConfig = "search_path=pg_catalog, pg_temp"
)

// renewBody lets the unique index decide between callers: later ones wait for the
// first and then read its id.
const renewBody = `
BEGIN
  IF NOT EXISTS (SELECT FROM slipstream.incarnation) THEN
    INSERT INTO slipstream.incarnation (id) VALUES (gen_random_uuid()) ON CONFLICT DO NOTHING;
  END IF;
  RETURN (SELECT id FROM slipstream.incarnation);
END
`

// metaRowSQL starts the record over: it is complete from the first transaction that
// has not begun yet. It runs last, when the locks of CREATE TRIGGER have waited for
// all earlier writers of the tables; in READ COMMITTED, so that its snapshot is that
// late.
const metaRowSQL = `INSERT INTO slipstream.meta (format, system_identifier, complete_from)
SELECT 1, s.system_identifier, pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot()) FROM pg_catalog.pg_control_system() AS s
ON CONFLICT (format) DO UPDATE SET system_identifier = excluded.system_identifier, complete_from = excluded.complete_from`

// resourceMark is the start of the bodies of trigger functions; the resource
// follows. Bodies of earlier releases start with oldResourceMark. Their db apply
// drops objects that it does not need and recognizes them by that mark, so this one
// is different.
const (
	resourceMark    = "-- slipstream: a definition of resource "
	oldResourceMark = "-- slipstream: resource "
)

// functionSQL writes the statements that create or replace a function in plpgsql.
func functionSQL(signature, returns, set, body string) string {
	quote := "$body$"
	for strings.Contains(body, quote) { // a column of that name
		quote = "$" + "_" + quote[1:]
	}
	return fmt.Sprintf("CREATE OR REPLACE FUNCTION %s RETURNS %s LANGUAGE plpgsql SECURITY DEFINER%s AS %s%s%s;\nREVOKE ALL ON FUNCTION %[1]s FROM PUBLIC",
		signature, returns, set, quote, body, quote)
}

// functionDefinition is what [readObjects] makes of a function's catalog row.
func functionDefinition(returns string, definer bool, config, body string) string {
	return fmt.Sprintf("plpgsql returns %s definer %t set %q\n%s", returns, definer, config, body)
}
