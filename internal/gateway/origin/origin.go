// Package origin is the contract between the gateway and the databases that documents are
// loaded from (contract.go), and its vocabulary: what is wrong with a declaration, and
// what the database needs so that changes are observed. The origins themselves are packages
// below it; package tree resolves declarations for all of them.
package origin

import (
	"fmt"
	"strings"

	"github.com/slipstream-go/slipstream/internal/suggest"
)

// SchemaError says that a resource does not match the database: an unknown table
// or column, an unsuitable key, an ambiguous join.
type SchemaError struct {
	Resource string // name of the resource
	Line     int    // where the configuration declares it, or 0 if unknown
	Problem  string // what is wrong and what was expected
}

func (e *SchemaError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("resource %s (line %d): %s", e.Resource, e.Line, e.Problem)
	}
	return fmt.Sprintf("resource %s: %s", e.Resource, e.Problem)
}

// SettingError says that the configuration names a database in a way that waiting
// does not fix: a URL with an unknown parameter, or a service that no file
// describes.
type SettingError struct {
	Setting string // the field of origin
	Err     error
}

func (e *SettingError) Error() string { return "origin." + e.Setting + ": " + e.Err.Error() }
func (e *SettingError) Unwrap() error { return e.Err }

// State is what a check found about an object.
type State uint8

// States of an object.
const (
	Present        State = iota // as it should be
	Missing                     // not in the database
	Differs                     // there, but with another text
	LeftOver                    // of another definition; it only costs writers time
	Foreign                     // there, but belongs to a role that may change it
	SuperuserOwned              // a trigger function that runs with the rights of a superuser
)

// String returns the name of the state.
func (s State) String() string {
	return [...]string{"present", "missing", "differs", "left over", "foreign", "superuser"}[s]
}

// Object is something in the database that the freshness of a resource needs: a
// table, a function, a trigger.
type Object struct {
	Name     string
	Resource string // empty for what all resources share
	Table    string // of a trigger: what it is on
	Comment  string // what it is for
	SQL      string // the statement that creates it
}

// Finding is an object and its state.
type Finding struct {
	Object
	State State
	Note  string // what is wrong and how to fix it, for humans; may be empty
}

// Statement is one step of a plan.
type Statement struct {
	SQL     string
	Comment string // why, for humans
	// Administrator says that the statement is for an administrator, who runs it
	// once before the others, and not for the role that applies.
	Administrator bool
}

// Choices lists names for a message, the nearest to the wrong one first.
func Choices(wrong string, names []string) string {
	if len(names) == 0 {
		return "there are none"
	}
	sorted, hint := suggest.Sorted(wrong, names), ""
	if nearest := suggest.Nearest(wrong, names); nearest != "" {
		hint = fmt.Sprintf("did you mean %q? ", nearest)
	}
	more := ""
	if len(sorted) > 20 {
		more = fmt.Sprintf(" and %d more", len(sorted)-20)
		sorted = sorted[:20]
	}
	return hint + "there are " + strings.Join(sorted, ", ") + more
}
