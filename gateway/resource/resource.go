// Package resource is the declaration of a resource: which table, which
// columns, which children, and how a key is written. The configuration makes
// it, origins derive statements and triggers from it, frontends parse keys by it.
package resource

import "time"

// MaxDepth is the number of levels that children may be nested below the root.
const MaxDepth = 4

// Resource declares the documents of one collection.
type Resource struct {
	// Name is the first segment of the path: /{name}/{key}.
	Name string
	// Key names the columns of Root.Table that form the key, in path order. For
	// a resource with a Query, they are the names of Query.Key.
	Key []string
	// Root is the table of the document itself; its On is empty. Unused if
	// Query is set.
	Root Node
	// Query declares the documents by a statement instead of a tree of
	// tables. Only PostgreSQL has such resources.
	Query *Query
	// NoPromise says that changes of the documents need not be observed: each is
	// kept for Freshness after it was loaded, and no longer.
	NoPromise bool
	// BigintAsString writes integers of 64-bit columns as JSON strings, for
	// readers whose numbers are doubles.
	BigintAsString bool
	// Freshness is the X of the promise: a GET that begins more than X after
	// a commit was acknowledged never returns the older version.
	Freshness time.Duration
	// Line is where the configuration declares the resource, or 0 if unknown.
	Line int
}

// Query is a statement that returns documents by key, and the tables whose changes
// affect them.
type Query struct {
	// SQL selects the key columns and then the document, as json or jsonb, of
	// all keys in the arrays $1, $2, ..., one array per key column: "select id,
	// json_build_object(...) from t where id = any($1)".
	SQL string
	// Key are the key columns and their types, in path order.
	Key []QueryKey
	// Depends are the tables whose changes affect documents.
	Depends []Depend
	Line    int
}

// QueryKey is a key column of a query; Type is the database's name for its type.
type QueryKey struct{ Name, Type string }

// Depend is a table that a query reads, and which documents a change of one of its
// rows affects.
type Depend struct {
	Table string
	// Columns of the table. Without Via they are the key of the document, in
	// path order. With Via they are the values from which Via finds the documents,
	// even if the row has been deleted or moved. They are required.
	Columns []string
	// Via is a statement that selects the keys of the documents that changed rows
	// belong to; the arrays $1, $2, ... hold the Columns of the rows.
	Via string
	// ReadsItself permits Via to read Table, or a table whose own Via leads back to
	// it, as the traversal of a recursive tree must.
	ReadsItself bool `json:",omitempty"` // keeps the definitions of other resources unchanged
	Line        int
}

// Node is a table in a document: the root, or a list of children.
type Node struct {
	Table string
	// Columns to include, in this order; empty means all columns of the table.
	Columns []string
	// On joins a child to the row that contains it. Empty for the root. If the
	// configuration omits it, the origin derives it from the only foreign key from
	// this table to the parent's.
	On []Join
	// Order of the rows of a child; ties are ordered by the primary key.
	Order    []Order
	Children []Child
	Line     int
}

// Child is a named list inside a document.
type Child struct {
	Name string
	Node Node
}

// Join says that Column of the child's table equals Parent of the containing row.
type Join struct{ Column, Parent string }

// Order is one term of an ORDER BY.
type Order struct {
	Column     string
	Descending bool
}
