// Package tree resolves the tables that a resource declares against the catalog of a database:
// columns, joins, foreign keys, the order of rows and the key. It does not depend on a
// database; each provides its specifics through a [Catalog].
package tree

import (
	"context"
	"fmt"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// Table is a table as a driver describes it. It is a pointer: equal pointers mean the same
// table.
type Table interface {
	comparable
	Name() string // for humans
	// Column returns the index of a column, or -1 if there is none of that name.
	Column(name string) int
	ColumnNames() []string
}

// Catalog is what the resolver needs to know from a database about the tables of one resource.
// A problem that it returns is a sentence for the author of the declaration, or "" if there is
// none.
type Catalog[T Table] interface {
	// Table looks up the table that a node at a line of the configuration names. The error is
	// a [NoTable] or an [origin.SchemaError] if documents cannot be read from it.
	Table(ctx context.Context, name string, line int) (T, error)
	// ForeignKeys returns the foreign keys from one table to another. If there is none,
	// problem may say why one that looks like it does not count.
	ForeignKeys(from, to T) (found []ForeignKey, problem string)
	// Joins returns why two columns of a join cannot be compared.
	Joins(child T, column int, parent T, up int) (problem string)
	// KeyKind returns the kind of a key column. The problem continues its name.
	KeyKind(t T, column int) (kind resource.Kind, problem string)
	// Unique returns "" if the columns identify one row. Otherwise it returns which kind of
	// index, other than a primary key, would be sufficient.
	Unique(t T, columns []int) (expected string)
	// Check checks a node once its columns, its join and its declared order are known, before its
	// children are. It may warn, and complete the order.
	Check(n *Node[T], declared *resource.Node) error
}

// NoTable is the error for a name that does not refer to a table from which documents can be
// read.
type NoTable struct{ Problem string }

// Error implements error.
func (e *NoTable) Error() string { return e.Problem }

// ForeignKey is a foreign key: its text for messages, and the join that it means.
type ForeignKey struct {
	Text string
	On   []resource.Join
}

// Node is a table in the tree of a resource.
type Node[T Table] struct {
	Path     string // "" for the root, "emps", "orders/lines"
	Table    T
	Parent   *Node[T] // nil for the root
	Depth    int      // 0 for the root
	Columns  []int    // shown, in this order
	On       []Join
	Order    []resource.Order // of rows
	Children []Child[T]
}

// Child is a member of the documents of a node that lists rows of another.
type Child[T Table] struct {
	Name string
	Node *Node[T]
}

// Join says that a column of the table equals one of the parent's.
type Join struct{ Column, Parent int }

// Outcome is the result of resolving a resource.
type Outcome struct {
	Resource *resource.Resource
	Err      *origin.SchemaError // set: nothing else is valid
	Key      []resource.KeyColumn
	Warnings []string // what works but could work better, in sentences
}

// Fail returns an error about a line of the declaration; 0 is that of the resource.
func (o *Outcome) Fail(line int, format string, args ...any) error {
	if line == 0 {
		line = o.Resource.Line
	}
	return &origin.SchemaError{Resource: o.Resource.Name, Line: line, Problem: fmt.Sprintf(format, args...)}
}

// Warn adds a warning.
func (o *Outcome) Warn(format string, args ...any) {
	o.Warnings = append(o.Warnings, "resource "+o.Resource.Name+": "+fmt.Sprintf(format, args...))
}

func (o *Outcome) outcome() *Outcome { return o }

// Resolved is a resource resolved against the database.
type Resolved[T Table] struct {
	Outcome
	KeyAt []int    // the indexes of the key columns in Root.Table
	Root  *Node[T] // nil for a resource without a tree
	Nodes []*Node[T]
}
