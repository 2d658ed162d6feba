// Package tree resolves the tables that a resource declares against what a database says of
// them: columns, joins, foreign keys, the order of rows and the key. It knows no database;
// each says what differs through a [Catalog].
package tree

import (
	"context"
	"fmt"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// Table is a table as a driver describes it, a pointer: the same table is the same one.
type Table interface {
	comparable
	Name() string // for people
	// Column returns the place of a column, -1 if there is none of that name.
	Column(name string) int
	ColumnNames() []string
}

// Catalog is what the resolver asks of a database about the tables of one resource. What it
// returns as a problem is a sentence for the author of the declaration, "" if there is none.
type Catalog[T Table] interface {
	// Table looks up the table that a node at a line of the configuration names. The error is
	// a [NoTable] or an [origin.SchemaError] if documents cannot be read from it.
	Table(ctx context.Context, name string, line int) (T, error)
	// ForeignKeys returns those that lead from one table to another. If there is none,
	// problem may say why one that looks like it is none.
	ForeignKeys(from, to T) (found []ForeignKey, problem string)
	// Joins returns why two columns that are to be equal do not compare alike.
	Joins(child T, column int, parent T, up int) (problem string)
	// KeyKind returns the kind of a key column. The problem continues its name.
	KeyKind(t T, column int) (kind resource.Kind, problem string)
	// Unique returns "" if the columns name one row. Otherwise it returns what kind of index
	// besides a primary key would do.
	Unique(t T, columns []int) (expected string)
	// Check looks at a node when its columns, its join and its declared order are known, before
	// its children are. It may warn, and complete the order.
	Check(n *Node[T], declared *resource.Node) error
}

// NoTable says that a name is not that of a table which documents can be read from.
type NoTable struct{ Problem string }

// Error implements error.
func (e *NoTable) Error() string { return e.Problem }

// ForeignKey is one as the message about several shows it, and the join that it means.
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

// Outcome is what came of a resource.
type Outcome struct {
	Resource *resource.Resource
	Err      *origin.SchemaError // set: nothing else is valid
	Key      []resource.KeyColumn
	Warnings []string // what works but not as well as it could, in sentences
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
	KeyAt []int    // the places of the key columns in Root.Table
	Root  *Node[T] // nil for a resource without a tree
	Nodes []*Node[T]
}
