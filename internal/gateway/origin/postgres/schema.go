package postgres

import (
	"strings"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/gateway/origin/tree"
)

// schema is every resource resolved against one state of the database's
// catalogs. Immutable once made.
type schema struct {
	set       *origin.Set
	resources []*compiled
	// promises has, per resource, why freshness cannot be promised, or "" if it
	// can.
	promises []string
	// digests are the results of the digest statement, per resource, in the
	// snapshot in which all this was read.
	digests []string
	// ownerFaults are the objects of ours that belong to the wrong role.
	ownerFaults []ownerFault
	// tracked says that the tables of the schema slipstream can be read.
	tracked bool
	// path is the search path of the transaction in which all this was read.
	path *path
}

// compiled is a resource resolved against the database.
type compiled struct {
	tree.Resolved[*table]
	keyTypes []keyType       // of the key columns
	shape    *resource.Shape // nil for a resource with a Query
	// load is the text of the load statement; see loadStatement for its shape.
	load string
	// loadOne is the same for a single key; see loadOneStatement. If empty, load does that too.
	loadOne string
	sources []source

	// relations are the oids of everything whose definition the documents
	// depend on: the tables with their partitions, the views that a query reads.
	relations []uint32
	// hiding are the qualified names of tables that do not exist, and that a plain name
	// of the declaration would mean if they did.
	hiding []string
	// functions are the oids of functions of users that a query calls.
	functions []uint32
	// types are the oids of types of users that a query has in its expressions.
	types []uint32
}

// source is one way in which the rows of a table change documents.
type source struct {
	// name is the resource and the path of the node, such as "depts" for the
	// root and "depts/emps" for a child; with a query, "totals/1" for its first
	// dependency.
	name string
	// recorded is the name in the change table, with a hash: see define.
	recorded string
	table    *table
	// columns are the indexes in table.columns of the columns that a trigger
	// records.
	columns []int
	// derive is "" if the recorded text is the key of the document. Otherwise it
	// is a SELECT that returns one column: the key of each document concerned, in
	// the form of keyText. It may use c.key, the recorded text of one row.
	derive string
}

// table is a relation with columns.
type table struct {
	oid         uint32
	schema      string
	name        string
	kind        byte // pg_class.relkind: r, p
	columns     []column
	primaryKey  []int   // indexes in columns
	unique      [][]int // of full, valid, immediate unique indexes without expressions, the primary key's first
	leading     []int   // first columns of the indexes
	foreignKeys []foreignKey
	// tree is the table and all its partitions and inheriting tables, itself first.
	tree     []relation
	rowLevel bool // row-level security applies to the connected role
}

// relation names a table.
type relation struct {
	oid          uint32
	schema, name string
}

// sql returns the quoted, qualified name.
func (r relation) sql() string { return quoteName(r.schema) + "." + quoteName(r.name) }

func (t *table) sql() string { return quoteName(t.schema) + "." + quoteName(t.name) }

// column is a column of a table.
type column struct {
	name     string
	number   int16  // pg_attribute.attnum
	typeName string // format_type of the declared type
	declared uint32 // oid of the declared type
	typ      uint32 // oid of the type, of the base type if it is a domain
	typmod   int32
	notNull  bool
	virtual  bool // generated when it is read; PostgreSQL 18 has such columns
	// dimensions an array was declared with, or 0 if it is not one.
	dimensions int
	enum       string // qualified name of the type if it is an enum, "" otherwise
	// collation is the qualified name of a collation other than the database's
	// own, or "" for that and for types without.
	collation string
	// deterministic is false for a collation under which different texts are equal.
	deterministic bool
	mayRead       bool // the connected role has SELECT
}

// foreignKey leads from columns of a table to those of another.
type foreignKey struct {
	name     string
	table    uint32 // oid of the referenced table
	period   bool   // its last columns are compared by containment, not by equality
	from, to []string
}

type (
	node  = tree.Node[*table]
	child = tree.Child[*table]
	join  = tree.Join
)

// Name implements [tree.Table].
func (t *table) Name() string { return t.name }

// quoteName quotes an identifier.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// quoteText writes a string literal whose meaning does not depend on
// standard_conforming_strings.
func quoteText(text string) string {
	quoted := `'` + strings.ReplaceAll(text, `'`, `''`) + `'`
	if strings.Contains(text, `\`) {
		return ` E` + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}
