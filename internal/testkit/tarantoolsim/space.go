package tarantoolsim

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// Space defines a space.
type Space struct {
	Name string
	// ID is its number. If 0, it is the next free number from 512 on.
	ID uint32
	// Fields are the named fields. Tuples may have more.
	Fields []Field
	// Indexes are ordered (TREE); the first is the primary one.
	Indexes []Index
}

// Field defines a field of a space.
type Field struct {
	Name string
	// Type is unsigned, integer, number, double, decimal, boolean, string, varbinary, uuid,
	// datetime, array, map, scalar or any. Default any.
	Type     string
	Nullable bool
}

// Index defines an index of a space.
type Index struct {
	Name string
	// Parts are names of fields.
	Parts []string
	// Repeats allows several tuples with the same key. The primary index ignores it.
	Repeats bool
}

// part is a field of an index.
type part struct {
	field    int
	kind     string
	nullable bool
}

// tuple is a tuple, which is never changed.
type tuple struct {
	raw    []byte
	fields []any
}

// field returns a field, or nil if there is none.
func (t *tuple) field(n int) any {
	if n < len(t.fields) {
		return t.fields[n]
	}
	return nil
}

// index holds the tuples of a space in the order of its parts.
type index struct {
	// Immutable.
	name   string
	number uint32
	unique bool
	parts  []part // as defined
	order  []part // parts followed by the primary key

	tuples []*tuple
}

// space is a space with its tuples.
type space struct {
	// Immutable.
	def     Space
	id      uint32
	indexes []*index
	system  bool // whether it is read-only

	// shared means that a transaction and the database share the space, so a writer must copy it.
	shared bool
	// changed is the time of the last change for each primary key: see [database.commit].
	changed map[string]uint64
}

// newSpace checks the definition of a space.
func newSpace(def Space, id uint32) (*space, error) {
	sp := &space{def: def, id: id, changed: make(map[string]uint64)}
	if def.Name == "" || len(def.Indexes) == 0 {
		return nil, fmt.Errorf("tarantooltest: a space needs a name and an index")
	}
	for i := range def.Fields {
		if !knownType(def.Fields[i].Type) {
			return nil, fmt.Errorf("tarantooltest: space %s: field %s of type %q", def.Name, def.Fields[i].Name, def.Fields[i].Type)
		}
	}
	for n, ix := range def.Indexes {
		made := &index{name: ix.Name, number: uint32(n), unique: n == 0 || !ix.Repeats}
		for _, name := range ix.Parts {
			at := slices.IndexFunc(def.Fields, func(f Field) bool { return f.Name == name })
			if at < 0 || n == 0 && def.Fields[at].Nullable {
				return nil, fmt.Errorf("tarantooltest: space %s: index %s cannot have the part %q", def.Name, ix.Name, name)
			}
			made.parts = append(made.parts, part{at, def.Fields[at].Type, def.Fields[at].Nullable})
		}
		if len(made.parts) == 0 {
			return nil, fmt.Errorf("tarantooltest: space %s: index %s without parts", def.Name, ix.Name)
		}
		made.order = slices.Clone(made.parts)
		if n > 0 {
			made.order = append(made.order, sp.indexes[0].parts...)
		}
		sp.indexes = append(sp.indexes, made)
	}
	return sp, nil
}

// clone returns a space that may be written without changing sp.
func (sp *space) clone() *space {
	c := *sp
	c.shared = false
	c.indexes = make([]*index, len(sp.indexes))
	for i, ix := range sp.indexes {
		copied := *ix
		copied.tuples = slices.Clone(ix.tuples)
		c.indexes[i] = &copied
	}
	return &c
}

// compare orders tuples by parts.
func compare(parts []part, a, b *tuple) int {
	for _, p := range parts {
		if c := compareValues(a.field(p.field), b.field(p.field)); c != 0 {
			return c
		}
	}
	return 0
}

// compareKey orders a tuple and a partial key.
func compareKey(parts []part, t *tuple, key []any) int {
	for i, v := range key {
		if c := compareValues(t.field(parts[i].field), v); c != 0 {
			return c
		}
	}
	return 0
}

// bounds returns the start and the end of the tuples whose keys begin with key.
func (ix *index) bounds(key []any) (from, to int) {
	from = sort.Search(len(ix.tuples), func(i int) bool { return compareKey(ix.order, ix.tuples[i], key) >= 0 })
	to = from + sort.Search(len(ix.tuples)-from, func(i int) bool { return compareKey(ix.order, ix.tuples[from+i], key) > 0 })
	return from, to
}

// find returns the tuple with the given full key of a unique index.
func (ix *index) find(key []any) *tuple {
	if from, to := ix.bounds(key); from < to {
		return ix.tuples[from]
	}
	return nil
}

// keyOf returns the parts of an index that a tuple has.
func (ix *index) keyOf(t *tuple) []any {
	key := make([]any, len(ix.parts))
	for i, p := range ix.parts {
		key[i] = t.field(p.field)
	}
	return key
}

// conflict returns a tuple other than old that has the key of t in a unique index. Keys that
// contain nil may repeat.
func (ix *index) conflict(t, old *tuple) *tuple {
	if key := ix.keyOf(t); ix.unique && !slices.Contains(key, nil) {
		if found := ix.find(key); found != old {
			return found
		}
	}
	return nil
}

func (ix *index) place(t *tuple) int {
	return sort.Search(len(ix.tuples), func(i int) bool { return compare(ix.order, ix.tuples[i], t) >= 0 })
}

// swap removes old, if it is not nil, and inserts t, if it is not nil.
func (sp *space) swap(old, t *tuple) {
	for _, ix := range sp.indexes {
		if old != nil {
			at := ix.place(old)
			ix.tuples = slices.Delete(ix.tuples, at, at+1)
		}
		if t != nil {
			ix.tuples = slices.Insert(ix.tuples, ix.place(t), t)
		}
	}
}

// check returns an error if a tuple does not match the format of the space.
func (sp *space) check(t *tuple) error {
	for i, f := range sp.def.Fields {
		v := t.field(i)
		if i >= len(t.fields) && !f.Nullable {
			return fail(iproto.CodeFieldMissing, fmt.Sprintf("Tuple field %d (%s) required by space format is missing", i+1, f.Name))
		}
		if v == nil && f.Nullable || fits(f.Type, v) {
			continue
		}
		return fail(iproto.CodeFieldType, fmt.Sprintf("Tuple field %d (%s) type does not match one required by operation: expected %s, got %s", i+1, f.Name, f.Type, typeOf(v)))
	}
	return nil
}

// duplicate returns the error for a key that already exists.
func (sp *space) duplicate(ix *index) error {
	return fail(iproto.CodeTupleFound, fmt.Sprintf("Duplicate key exists in unique index %q in space %q", ix.name, sp.def.Name))
}

// checkKey returns an error if key is neither a full nor a partial key of an index.
func (ix *index) checkKey(key []any, whole bool) error {
	switch {
	case whole && len(key) != len(ix.parts):
		return fail(iproto.CodeExactMatch, fmt.Sprintf("Invalid key part count in an exact match (expected %d, got %d)", len(ix.parts), len(key)))
	case len(key) > len(ix.parts):
		return fail(iproto.CodeKeyPartCount, fmt.Sprintf("Invalid key part count (expected [0..%d], got %d)", len(ix.parts), len(key)))
	}
	for i, v := range key {
		if p := ix.parts[i]; !fits(p.kind, v) && (v != nil || !p.nullable || whole) {
			return fail(iproto.CodeKeyPartType, fmt.Sprintf("Supplied key type of part %d does not match index part type: expected %s", i, p.kind))
		}
	}
	return nil
}

// byNumber orders indexes and spaces as the spaces that describe them do.
func byNumber(a, b *space) int { return cmp.Compare(a.id, b.id) }
