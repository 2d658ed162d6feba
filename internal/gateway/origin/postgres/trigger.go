package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxKeys is how many keys the trigger of one statement records. A statement that
// changes more documents is recorded as a change of all of them: processing a
// hundred thousand keys costs writers and gateways more than loading again the
// documents that are requested.
const maxKeys = 10_000

// events are the events of statement-level triggers. A TRUNCATE reveals nothing
// about the rows.
var events = []struct {
	name        string // as in CREATE TRIGGER, and in names in lower case
	typ         int    // the bit in pg_trigger.tgtype
	referencing string
	tables      []string // the transition tables
}{
	{"INSERT", 1 << 2, " REFERENCING NEW TABLE AS new_rows", []string{"new_rows"}},
	{"UPDATE", 1 << 4, " REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows", []string{"old_rows", "new_rows"}},
	{"DELETE", 1 << 3, " REFERENCING OLD TABLE AS old_rows", []string{"old_rows"}},
	{"TRUNCATE", 1 << 5, "", nil},
}

// group is everything that one resource observes of one table: one function per
// event records all of it.
type group struct {
	resource string
	root     bool // the table is the resource's root
	table    *table
	sources  []source
}

// groups gathers the sources of a resource by table.
func groups(c *compiled) []*group {
	var all []*group
	for _, s := range c.sources {
		i := slices.IndexFunc(all, func(g *group) bool { return g.table.oid == s.table.oid })
		if i < 0 {
			i = len(all)
			all = append(all, &group{resource: c.Resource.Name, table: s.table,
				root: c.Root != nil && c.Root.Table.oid == s.table.oid})
		}
		all[i].sources = append(all[i].sources, s)
	}
	return all
}

// recording returns the groups that the promise of the resource needs.
func (c *compiled) recording() []*group {
	if c.Err != nil || c.Resource.NoPromise { // its writers would pay for nothing
		return nil
	}
	return groups(c)
}

// triggerObjects returns the functions and triggers of a resource. Their text only
// depends on the declaration and the catalogs: [Origin.Check] compares it byte by
// byte.
func triggerObjects(c *compiled, notify bool) []object {
	var objects []object
	all := c.recording()
	for _, g := range all {
		for event := range events {
			objects = append(objects, g.function(event, notify))
		}
	}
	for _, g := range all {
		for _, r := range g.table.tree {
			// One name is enough: no relation is a part of two tables, see readTrees.
			for event := range events {
				objects = append(objects, g.trigger(r, event))
			}
		}
	}
	return objects
}

// eventName writes a name that ends in the hash of a definition and an event. The
// part before them is shortened if necessary and then ends in its own hash, so that
// different names stay different.
func eventName(name, hash string, event int) string {
	suffix := "@" + hash + "/" + strings.ToLower(events[event].name)
	if len(name)+len(suffix) > maxName {
		sum := sha256.Sum256([]byte(name))
		short := "~" + hex.EncodeToString(sum[:5])
		cut := maxName - len(suffix) - len(short)
		for !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = name[:cut] + short
	}
	return name + suffix
}

// tableName is the table for names of objects and for humans.
func (g *group) tableName() string { return g.table.schema + "." + g.table.name }

func (g *group) functionName(event int) string {
	return "slipstream." + quoteName(eventName(g.resource+"/"+g.tableName(), g.hash(), event))
}

// triggerName is the unquoted name of the triggers of an event.
func (g *group) triggerName(event int) string {
	return eventName("slipstream/"+g.resource, g.hash(), event)
}

// function writes the trigger function of an event.
//
// It runs with the rights of its owner, because writers have none on the change
// table, but with the search path of the writer: a SET clause would cost every
// statement 2 microseconds. So nothing in a body may be looked up in a search path.
// The invariant, which TestHostileSearchPath holds:
//
//   - tables, functions, types, collations are qualified, operators are written
//     OPERATOR(pg_catalog.=); IS NULL, CASE, COALESCE, UNION and DISTINCT look nothing up
//   - old_rows and new_rows are unqualified, but PostgreSQL looks transition
//     tables up before any table, temporary ones included
//   - columns are unqualified, see [absent]; #variable_conflict use_column makes
//     columns win over variables of the same name
//
// No migration of a table may fail its writers, so a body must not contain what
// PostgreSQL can refuse after a column was renamed, dropped or retyped: a column is
// named only where [absent] has one of the same name, and is only passed to functions that
// accept every type, see [keyType.anyText]. An EXCEPTION clause would not help: it starts a
// subtransaction for each statement, and with the INSERT inside of it one that has a
// transaction number of its own.
//
// docs/decisions/0015-trigger-bodies.md has the cost of a body and the alternatives
// that were tried.
func (g *group) function(event int, notify bool) object {
	name := g.functionName(event)
	body := g.body(event, notify)
	return object{
		kind: functionObject, name: name + "()", resource: g.resource, flush: g.flushSource(),
		comment:    fmt.Sprintf("records the documents that %s on %s changes", events[event].name, g.tableName()),
		sql:        functionSQL(name+"()", "pg_catalog.trigger", "", body),
		definition: functionDefinition("trigger", true, "", body),
		tolerated:  functionDefinition("trigger", true, "", g.body(event, !notify)),
	}
}

// body writes the text between the dollar quotes. Its first line names the
// resource: names of objects may be shortened.
func (g *group) body(event int, notify bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s%s\n#variable_conflict use_column\n", resourceMark, strconv.QuoteToASCII(g.resource))
	all := "INSERT INTO slipstream.change (source, key) VALUES (" + quoteText(g.flushSource()) + ", NULL);"
	wake := "PERFORM pg_catalog.pg_notify('slipstream', '');"
	if events[event].tables == nil {
		fmt.Fprintf(&b, "BEGIN\n  %s\n", all)
		if notify {
			fmt.Fprintf(&b, "  %s\n", wake)
		}
	} else {
		fmt.Fprintf(&b, "DECLARE recorded pg_catalog.int8;\nBEGIN\n  INSERT INTO slipstream.change (source, key)\n  %s;\n", g.keys(event))
		fmt.Fprintf(&b, "  GET DIAGNOSTICS recorded = ROW_COUNT;\n  IF recorded OPERATOR(pg_catalog.>) %d THEN\n    %s\n  END IF;\n", maxKeys, all)
		if notify {
			fmt.Fprintf(&b, "  IF recorded OPERATOR(pg_catalog.>) 0 THEN\n    %s\n  END IF;\n", wake)
		}
	}
	b.WriteString(g.distrust(event, all))
	b.WriteString("  RETURN NULL;\nEND\n")
	return b.String()
}

// distrust writes the part of a function that records a change of all documents
// where the transition tables of an UPDATE of a partitioned table contradict each
// other. From PostgreSQL 15 to 18 (seen in 15.18, 16.14, 17.10 and 18.4), a MERGE into
// such a table that has inserted a row puts that row into NEW TABLE in place of each
// row it updates from then on: the new parents of moved rows would never be recorded.
// Then primary keys are in the old rows and not in the new. An UPDATE of primary keys
// looks the same, and is flushed needlessly. Without a primary key nothing distinguishes
// the two: each UPDATE flushes.
func (g *group) distrust(event int, all string) string {
	if g.table.kind != 'p' || events[event].name != "UPDATE" {
		return ""
	}
	condition := "EXISTS (SELECT FROM old_rows)"
	if len(g.table.primaryKey) > 0 {
		key := make([]string, len(g.table.primaryKey))
		for i, at := range g.table.primaryKey {
			key[i] = quoteName(g.table.columns[at].name)
		}
		columns := strings.Join(key, ", ")
		// If a column is gone the two sides differ, and nothing is trusted.
		side := func(rows string) string {
			return "SELECT k.* FROM " + absent(key, rows) + " CROSS JOIN LATERAL (SELECT " + columns + " FROM " + rows + ") AS k"
		}
		condition = "EXISTS (" + side("old_rows") + " EXCEPT " + side("new_rows") + ")"
	}
	return "  IF " + condition + " THEN\n    " + all + "\n  END IF;\n"
}

// gone is what a body reads in place of a column that no longer exists. A row whose
// key has this very text is also recorded as a change of all documents.
const gone = "slipstream: there is no such column"

// absent writes a row that has a text in place of each of the columns, for a FROM
// clause around the transition tables. SQL resolves an unqualified name from the inside
// out: to the column of the transition table if that has one, and otherwise to
// the text. So a body never fails because a column was renamed or dropped, at no cost:
// the planner removes the row.
func absent(names []string, text string) string {
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = quoteText(text) + "::pg_catalog.text AS " + name
	}
	return "(SELECT " + strings.Join(values, ", ") + ") AS absent"
}

// keys writes the SELECT of what one statement records.
func (g *group) keys(event int) string {
	limit := "LIMIT " + strconv.Itoa(maxKeys+1)
	if len(g.sources) == 1 {
		return g.keysOf(g.sources[0], event, " "+limit) // inside: one node of the plan less
	}
	// One INSERT for all: each costs some 4 microseconds to begin and to end.
	parts := make([]string, len(g.sources))
	for i, s := range g.sources {
		parts[i] = g.keysOf(s, event, "")
	}
	return "SELECT s.source, s.key FROM (\n  " + strings.Join(parts, "\n  UNION ALL ") + "\n  ) AS s(source, key)\n  " + limit
}

// keysOf writes the SELECT of what is recorded for one source. Rows are distinguished by
// the texts of their columns, because not every type that a column may get has an equality
// operator. The collation makes the comparison bytewise.
func (g *group) keysOf(s source, event int, limit string) string {
	var names, texts, present, keys, missing []string
	for i, at := range s.columns {
		column := s.table.columns[at]
		kt, _ := keyTypeOf(&column) // columns without one are refused when sources are made
		name, key := quoteName(column.name), "k.c"+strconv.Itoa(i+1)
		names, keys = append(names, name), append(keys, key)
		texts = append(texts, kt.anyText(name)+` COLLATE pg_catalog."C"`)
		// A row that is joined or found by a NULL is in no document.
		present = append(present, name+" IS NOT NULL")
		missing = append(missing, key+" OPERATOR(pg_catalog.=) "+quoteText(gone))
	}
	tables := events[event].tables
	rows := make([]string, len(tables))
	for i, t := range tables {
		rows[i] = "SELECT " + strings.Join(texts, ", ") + " FROM " + t + " WHERE " + strings.Join(present, " AND ")
	}
	// The key of the root identifies one row: there are no duplicates in one table.
	if unique := g.root && s.derive == "" && s.name == g.resource; len(tables) == 1 && !unique {
		rows[0] = "SELECT DISTINCT" + strings.TrimPrefix(rows[0], "SELECT")
	}
	columns := make([]string, len(keys))
	for i := range keys {
		columns[i] = strings.TrimPrefix(keys[i], "k.")
	}
	return "SELECT " + quoteText(s.recorded) + "::pg_catalog.text, CASE WHEN " + strings.Join(missing, " OR ") + " THEN NULL ELSE " + joinTexts(keys) +
		" END FROM " + absent(names, gone) + " CROSS JOIN LATERAL (\n    " + strings.Join(rows, "\n    UNION ") + limit + "\n  ) AS k(" + strings.Join(columns, ", ") + ")"
}

// trigger writes the trigger of an event on the table or on a partition of it. A
// statement only fires the triggers of the table that it names, so each table needs
// its own.
func (g *group) trigger(on relation, event int) object {
	name := quoteName(g.triggerName(event))
	t := trigger{name: name, on: on, function: g.functionName(event), typ: events[event].typ, enabled: "A"}
	for _, table := range events[event].tables {
		switch table {
		case "old_rows":
			t.oldTable = table
		case "new_rows":
			t.newTable = table
		}
	}
	return object{
		kind: triggerObject, name: t.object(), resource: g.resource, flush: g.flushSource(),
		table: on.schema + "." + on.name, function: t.function + "()",
		comment: fmt.Sprintf("records %s on %s.%s, also under session_replication_role = replica", events[event].name, on.schema, on.name),
		sql: fmt.Sprintf("CREATE OR REPLACE TRIGGER %s AFTER %s ON %s%s FOR EACH STATEMENT EXECUTE FUNCTION %s();\nALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER %s",
			name, events[event].name, on.sql(), events[event].referencing, t.function, on.sql(), name),
		definition: t.definition(),
	}
}

// trigger is the description of a trigger in the catalogs.
type trigger struct {
	name     string // quoted
	on       relation
	function string // quoted, qualified
	typ      int    // pg_trigger.tgtype
	oldTable string
	newTable string
	enabled  string // pg_trigger.tgenabled
	other    string // a condition, columns, arguments: none of ours has any
}

// object is the name of the trigger among all objects.
func (t trigger) object() string { return t.name + " on " + t.on.sql() }

func (t trigger) definition() string {
	return fmt.Sprintf("on %s executes %s type %d old %q new %q enabled %s %s",
		t.on.sql(), t.function, t.typ, t.oldTable, t.newTable, t.enabled, t.other)
}
