package tarantoolsim

import (
	"fmt"
	"slices"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// The spaces that describe the others.
const (
	vspaceID = 281
	vindexID = 289

	firstID = 512
)

var systemSpaces = []Space{
	{
		Name: "_vspace", ID: vspaceID,
		Fields: []Field{
			{Name: "id", Type: "unsigned"}, {Name: "owner", Type: "unsigned"}, {Name: "name", Type: "string"}, {Name: "engine", Type: "string"},
			{Name: "field_count", Type: "unsigned"}, {Name: "flags", Type: "map"}, {Name: "format", Type: "array"},
		},
		Indexes: []Index{{Name: "primary", Parts: []string{"id"}}, {Name: "owner", Parts: []string{"owner"}, Repeats: true}, {Name: "name", Parts: []string{"name"}}},
	},
	{
		Name: "_vindex", ID: vindexID,
		Fields: []Field{
			{Name: "id", Type: "unsigned"}, {Name: "iid", Type: "unsigned"}, {Name: "name", Type: "string"}, {Name: "type", Type: "string"},
			{Name: "opts", Type: "map"}, {Name: "parts", Type: "array"},
		},
		Indexes: []Index{{Name: "primary", Parts: []string{"id", "iid"}}, {Name: "owner", Parts: []string{"id", "name"}}},
	},
}

// CreateSpace creates a space, and increases the version of the schema.
func (s *Server) CreateSpace(def Space) error {
	s.mu.Lock()
	err := s.data.create(def)
	s.mu.Unlock()
	if err == nil {
		s.tellStatus()
	}
	return err
}

// DropSpace removes a space with its tuples, and increases the version of the schema.
func (s *Server) DropSpace(name string) error {
	s.mu.Lock()
	sp := s.data.named(name)
	if sp == nil || sp.system {
		s.mu.Unlock()
		return fmt.Errorf("tarantooltest: there is no space %q", name)
	}
	delete(s.data.spaces, sp.id)
	s.data.changedSchema()
	s.mu.Unlock()
	s.tellStatus()
	return nil
}

// Put puts tuples into a space. They replace those with the same primary keys.
func (s *Server) Put(name string, tuples ...[]any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.data.named(name)
	if sp == nil || sp.system {
		return fmt.Errorf("tarantooltest: there is no space %q", name)
	}
	for _, fields := range tuples {
		raw, err := encode(nil, fields)
		if err != nil {
			return err
		}
		t, err := parseTuple(raw)
		if err == nil {
			err = sp.check(t)
		}
		if err == nil {
			sp = s.data.spaces[sp.id]
			err = view{db: &s.data}.swap(sp, sp.indexes[0].find(sp.indexes[0].keyOf(t)), t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Tuples returns the tuples of a space in the order of the primary key.
func (s *Server) Tuples(name string) [][]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.data.named(name)
	if sp == nil {
		return nil
	}
	var tuples [][]any
	for _, t := range sp.indexes[0].tuples {
		d := iproto.NewDecoder(t.raw) // a copy, which the test may change
		fields, _ := d.Any().([]any)
		tuples = append(tuples, fields)
	}
	return tuples
}

// SchemaVersion returns the version of the schema, which increases when spaces are created and
// dropped.
func (s *Server) SchemaVersion() uint32 { return s.schemaVersion() }

func (db *database) named(name string) *space {
	for _, sp := range db.spaces {
		if sp.def.Name == name {
			return sp
		}
	}
	return nil
}

func (db *database) create(def Space) error {
	id := def.ID
	if id == 0 {
		for id = firstID; db.spaces[id] != nil; id++ {
		}
	}
	if db.spaces[id] != nil || db.named(def.Name) != nil {
		return fmt.Errorf("tarantooltest: a space %q or %d already exists", def.Name, id)
	}
	def.Fields, def.Indexes = slices.Clone(def.Fields), slices.Clone(def.Indexes)
	for i := range def.Fields {
		if def.Fields[i].Type == "" {
			def.Fields[i].Type = "any"
		}
	}
	sp, err := newSpace(def, id)
	if err != nil {
		return err
	}
	db.spaces[id] = sp
	db.changedSchema()
	return nil
}

func (db *database) changedSchema() {
	db.version++
	db.describe()
}

// describe fills the spaces that describe the others.
func (db *database) describe() {
	var described []*space
	for _, def := range systemSpaces {
		sp, err := newSpace(def, def.ID)
		if err != nil {
			panic(err) // systemSpaces are valid
		}
		sp.system = true
		db.spaces[sp.id] = sp
		described = append(described, sp)
	}
	for _, sp := range db.sorted() {
		raw := iproto.AppendArray(nil, 7)
		raw = iproto.AppendUint(raw, uint64(sp.id))
		raw = iproto.AppendUint(raw, 1)
		raw = iproto.AppendString(raw, sp.def.Name)
		raw = iproto.AppendString(raw, "memtx")
		raw = iproto.AppendUint(raw, 0)
		raw = iproto.AppendMap(raw, 0)
		described[0].add(appendFormat(raw, sp.def.Fields))
		for _, ix := range sp.indexes {
			described[1].add(ix.describe(sp))
		}
	}
}

// add puts an encoded tuple into a space that describes the schema.
func (sp *space) add(raw []byte) {
	t, err := parseTuple(raw)
	if err != nil {
		panic(err) // it was just encoded
	}
	sp.swap(nil, t)
}

// appendFormat appends the fields of a space in the format of _vspace.
func appendFormat(b []byte, fields []Field) []byte {
	b = iproto.AppendArray(b, len(fields))
	for _, f := range fields {
		n := 2
		if f.Nullable {
			n++
		}
		b = iproto.AppendMap(b, n)
		b = iproto.AppendString(iproto.AppendString(b, "name"), f.Name)
		b = iproto.AppendString(iproto.AppendString(b, "type"), f.Type)
		if f.Nullable {
			b = iproto.AppendBool(iproto.AppendString(b, "is_nullable"), true)
		}
	}
	return b
}

// describe returns the tuple of an index in _vindex. A part is an array unless it has more than
// a field and a type.
func (ix *index) describe(sp *space) []byte {
	b := iproto.AppendArray(nil, 6)
	b = iproto.AppendUint(b, uint64(sp.id))
	b = iproto.AppendUint(b, uint64(ix.number))
	b = iproto.AppendString(b, ix.name)
	b = iproto.AppendString(b, "tree")
	b = iproto.AppendMap(b, 1)
	b = iproto.AppendBool(iproto.AppendString(b, "unique"), ix.unique)
	b = iproto.AppendArray(b, len(ix.parts))
	for _, p := range ix.parts {
		if !p.nullable {
			b = iproto.AppendString(iproto.AppendUint(iproto.AppendArray(b, 2), uint64(p.field)), p.kind)
			continue
		}
		b = iproto.AppendMap(b, 3)
		b = iproto.AppendUint(iproto.AppendString(b, "field"), uint64(p.field))
		b = iproto.AppendString(iproto.AppendString(b, "type"), p.kind)
		b = iproto.AppendBool(iproto.AppendString(b, "is_nullable"), true)
	}
	return b
}
