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
// changes more documents is recorded as a change of all of them: to go through
// a hundred thousand keys costs writer and gateways more than to load again what
// is asked for.
const maxKeys = 10_000

// events are what statement-level triggers are made for. A TRUNCATE tells nothing
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

// group is everything that one resource wants to hear of one table: one function
// an event records all of it.
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
			all = append(all, &group{resource: c.resource.Name, table: s.table,
				root: c.root != nil && c.root.table.oid == s.table.oid})
		}
		all[i].sources = append(all[i].sources, s)
	}
	return all
}

// recording returns the groups that the promise of the resource needs.
func (c *compiled) recording() []*group {
	if c.err != nil || c.resource.NoPromise { // its writers would pay for nothing
		return nil
	}
	return groups(c)
}

// triggerObjects returns the functions and triggers of a resource. Their text is
// a function of the declaration and of the catalogs alone: [Origin.Check] compares
// it byte by byte.
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
// part before them is shortened if need be and then ends in a hash of its own, so
// that different names stay different.
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

// tableName is the table for names of objects and for people.
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
// table, but in the search path of whoever writes: a SET clause would cost every
// statement 2 microseconds. So nothing in a body may be looked up in a search
// path. The invariant, which TestHostileSearchPath holds:
//
//   - tables, functions, types, collations are qualified, operators are written
//     OPERATOR(pg_catalog.=); IS NULL, CASE, UNION and DISTINCT look nothing up
//   - old_rows and new_rows are unqualified, but PostgreSQL looks transition
//     tables up before any table, temporary ones included
//   - columns are qualified by their row, so that none is taken for a variable
//
// Microseconds that a body adds to UPDATE of one row by primary key, in one session
// that only loops (4.5 without a trigger; rough, PostgreSQL 15):
//
//	function that returns at once, no transition tables                1.2
//	... with transition tables                                         1.7
//	... that inserts one constant row                                  5.3
//	new rows only, no DISTINCT (root: INSERT, DELETE)                  6.7
//	new rows only, DISTINCT (child: INSERT, DELETE)                    8.0
//	old UNION new of the columns, then text (all UPDATE; chosen)       9.0
//	old UNION new of texts                                             9.5
//	old UNION ALL new, no DISTINCT                                     9.6
//	new DISTINCT UNION ALL old WHERE NOT EXISTS in new                12.0
//	INSERT of new, then of old EXCEPT new                             14.1
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
	fmt.Fprintf(&b, "\n%s%s\n", resourceMark, strconv.QuoteToASCII(g.resource))
	all := "INSERT INTO slipstream.change (source, key) VALUES (" + quoteText(g.flushSource()) + ", NULL);"
	wake := "PERFORM pg_catalog.pg_notify('slipstream', '');"
	if events[event].tables == nil {
		fmt.Fprintf(&b, "BEGIN\n  %s\n", all)
		if notify {
			fmt.Fprintf(&b, "  %s\n", wake)
		}
	} else {
		fmt.Fprintf(&b, "DECLARE recorded pg_catalog.int8;\nBEGIN\n  INSERT INTO slipstream.change (source, key)\n  %s\n  LIMIT %d;\n",
			g.keys(event), maxKeys+1)
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
// looks the same, and is flushed in vain. Without a primary key nothing tells the two
// apart: each UPDATE flushes.
func (g *group) distrust(event int, all string) string {
	if g.table.kind != 'p' || events[event].name != "UPDATE" {
		return ""
	}
	condition := "EXISTS (SELECT FROM old_rows)"
	if len(g.table.primaryKey) > 0 {
		key := make([]string, len(g.table.primaryKey))
		for i, at := range g.table.primaryKey {
			key[i] = "r." + quoteName(g.table.columns[at].name)
		}
		columns := strings.Join(key, ", ")
		condition = "EXISTS (SELECT " + columns + " FROM old_rows AS r EXCEPT SELECT " + columns + " FROM new_rows AS r)"
	}
	return "  IF " + condition + " THEN\n    " + all + "\n  END IF;\n"
}

// keys writes the SELECT of what one statement records.
func (g *group) keys(event int) string {
	if len(g.sources) == 1 {
		return g.keysOf(g.sources[0], event)
	}
	// One INSERT for all: each costs some 4 microseconds to begin and to end.
	parts := make([]string, len(g.sources))
	for i, s := range g.sources {
		parts[i] = g.keysOf(s, event)
	}
	return "SELECT s.source, s.key FROM (\n  " + strings.Join(parts, "\n  UNION ALL ") + "\n  ) AS s(source, key)"
}

// keysOf writes the SELECT of what is recorded for one source. Rows are told
// apart by their values before the text is made: by their values they are the same
// exactly if the texts are, and a statement that changes a million children of
// one parent makes one text.
func (g *group) keysOf(s source, event int) string {
	types := make([]keyType, len(s.columns))
	values := make([]string, len(s.columns)) // of a row of a transition table
	names := make([]string, len(s.columns))  // of those, after duplicates are gone
	var present []string
	for i, at := range s.columns {
		column := s.table.columns[at]
		types[i], _ = keyTypeOf(&column) // columns without one are refused when sources are made
		values[i] = "r." + quoteName(column.name)
		names[i] = "c" + strconv.Itoa(i+1)
		// What is joined or found by a NULL is in no document.
		present = append(present, values[i]+" IS NOT NULL")
	}
	source := quoteText(s.recorded) + "::pg_catalog.text"
	where := " WHERE " + strings.Join(present, " AND ")
	tables := events[event].tables
	if len(tables) == 1 && g.root && s.derive == "" && s.name == g.resource {
		// The key of the root names one row: there is nothing to tell apart.
		return "SELECT " + source + ", " + keyText(types, values) + " FROM " + tables[0] + " AS r" + where
	}
	distinct := ""
	if len(tables) == 1 {
		distinct = "DISTINCT "
	}
	rows := make([]string, len(tables))
	for i, t := range tables {
		rows[i] = "SELECT " + distinct + strings.Join(values, ", ") + " FROM " + t + " AS r" + where
	}
	for i := range names {
		values[i] = "k." + names[i]
	}
	return "SELECT " + source + ", " + keyText(types, values) + " FROM (\n    " +
		strings.Join(rows, "\n    UNION ") + "\n  ) AS k(" + strings.Join(names, ", ") + ")"
}

// trigger writes the trigger of an event on the table or on a partition of it. A
// statement fires the triggers of the table that it names and no other, so each
// needs its own.
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

// trigger is what the catalogs say about a trigger.
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
