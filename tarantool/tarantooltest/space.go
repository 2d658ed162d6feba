package tarantooltest

import "github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"

// Space defines a space.
type Space struct {
	Name string
	// ID is the number of the space. If 0, it is the next free one, starting at 512.
	ID uint32
	// Fields are the named fields. Tuples may have more fields.
	Fields []Field
	// Indexes are ordered (TREE). The first is the primary one.
	Indexes []Index
}

// Field defines a field of a space.
type Field struct {
	Name string
	// Type is unsigned, integer, number, double, decimal, boolean, string, varbinary, uuid,
	// datetime, interval, array, map, scalar or any. If empty, it defaults to any.
	Type     string
	Nullable bool
}

// Index defines an index of a space.
type Index struct {
	Name string
	// Parts are the names of fields.
	Parts []string
	// Repeats permits several tuples with the same key. The primary index ignores it.
	Repeats bool
}

// CreateSpace creates a space.
func (s *Server) CreateSpace(def Space) error {
	made := tarantoolsim.Space{Name: def.Name, ID: def.ID}
	for _, f := range def.Fields {
		made.Fields = append(made.Fields, tarantoolsim.Field(f))
	}
	for _, ix := range def.Indexes {
		made.Indexes = append(made.Indexes, tarantoolsim.Index(ix))
	}
	return s.sim.CreateSpace(made)
}

// Put puts tuples into a space, replacing tuples with the same primary keys.
func (s *Server) Put(space string, tuples ...[]any) error { return s.sim.Put(space, tuples...) }

// Tuples returns the tuples of a space in the order of the primary key, or nil if there is no such
// space.
func (s *Server) Tuples(space string) [][]any { return s.sim.Tuples(space) }
