package idl

// The parser builds the tree; the checker sets what names refer to (Type.Decl, Value.Const,
// Service.Base). A file is checked after the files that it includes, so that references between files
// lead to complete declarations. In one file, the checker first declares all names, then resolves
// types, then services, then values.
//
// Each type has a number; that of a container depends on the numbers of its keys and elements.
// Types are compared by their numbers: a comparison of nodes would take twice the time with each
// typedef of a map from the previous typedef to itself. The value of a constant is never copied to
// where it is used.
//
// make reference runs the compiler of Apache Thrift on the files in testdata/accept and
// testdata/reject. If the verdict of that compiler on a file differs, the first line of the file
// says so and gives the reason. Scopes are those of t_scope.h in its sources.

// scope holds the names that a file declares and the files that it includes.
type scope struct {
	types    map[string]Decl // typedefs, enums, structs and services
	consts   map[string]*Const
	included []*File            // each once
	prefixes map[string][]*File // the same, by Name
}

// state is the progress of the check of a declaration. It is used to find cycles.
type state uint8

const (
	unchecked state = iota
	checking
	checked
)

// checker checks files, each after those that it includes.
type checker struct {
	report *report
	file   *File // the file being checked
	depth  int   // the depth of the references between typedefs or constants that are being followed

	ids    map[shape]int32 // IDs of container types
	lastID int32           // the last ID of a type
}

// shape identifies a container type by its kind and the types of its keys and elements.
type shape struct {
	kind      Kind
	key, elem int32
}

func (c *checker) errorf(pos Pos, format string, args ...any) *Error {
	return c.report.errorf(c.file, pos, format, args...)
}

func (c *checker) check(f *File) {
	c.file = f
	c.declare()
	c.collisions()
	for _, d := range f.Decls {
		if c.report.full() {
			return
		}
		c.types(d)
	}
	for _, d := range f.Decls {
		if c.report.full() {
			return
		}
		switch d := d.(type) {
		case *Service:
			c.service(d)
		case *Struct:
			c.structure(d)
		}
	}
	// Values are checked last because they need all types.
	for _, d := range f.Decls {
		if c.report.full() {
			return
		}
		c.values(d)
	}
}

// declare fills the scope of the file.
func (c *checker) declare() {
	s := scope{types: make(map[string]Decl), consts: make(map[string]*Const), prefixes: make(map[string][]*File)}
	seen := make(map[*File]bool)
	for _, include := range c.file.Includes {
		if to := include.File; !seen[to] {
			seen[to] = true
			s.included = append(s.included, to)
			s.prefixes[to.Name] = append(s.prefixes[to.Name], to)
		}
	}
	for _, d := range c.file.Decls {
		n := d.Info()
		if constant, ok := d.(*Const); ok {
			if other := s.consts[n.Name]; other != nil {
				c.errorf(n.Pos, "the constant %s is already declared at %s", n.Name, other.Pos)
				continue
			}
			s.consts[n.Name] = constant
			continue
		}
		if other := s.types[n.Name]; other != nil {
			c.errorf(n.Pos, "%s is already declared, as %s at %s", n.Name, what(other), other.Info().Pos)
			continue
		}
		s.types[n.Name] = d
		c.index(d)
	}
	c.file.scope = s
}

// index makes the maps for looking up the parts of a declaration by name, and reports duplicate
// names. The parser has already reported those of fields.
func (c *checker) index(d Decl) {
	switch d := d.(type) {
	case *Enum:
		d.byName, d.byNumber = make(map[string]*EnumValue, len(d.Values)), make(map[int32]*EnumValue, len(d.Values))
		for _, v := range d.Values {
			if first := d.byName[v.Name]; first != nil {
				c.errorf(v.Pos, "the enum %s already has a value %s, at %s", d.Name, v.Name, first.Pos)
				continue
			}
			d.byName[v.Name] = v
			if d.byNumber[v.Number] == nil {
				d.byNumber[v.Number] = v
			}
		}
	case *Struct:
		d.index()
	case *Service:
		d.byName = make(map[string]*Function, len(d.Functions))
		for _, f := range d.Functions {
			if first := d.byName[f.Name]; first != nil {
				c.errorf(f.Pos, "the service %s already has a function %s, at %s", d.Name, f.Name, first.Pos)
				continue
			}
			d.byName[f.Name] = f
		}
	}
}

// what returns a word for the kind of a declaration, with an article.
func what(d Decl) string {
	switch d := d.(type) {
	case *Typedef:
		return "a typedef"
	case *Enum:
		return "an enum"
	case *Service:
		return "a service"
	case *Struct:
		if d.Kind == Exception {
			return "an exception"
		}
		return "a " + d.Kind.String()
	}
	return "a constant"
}

// collisions reports names that are also declared by an included file with the same namespaces,
// because the code generated for both would collide. The reference compiler has the same rule.
func (c *checker) collisions() {
	for _, other := range c.file.scope.included {
		if !sameNamespaces(c.file, other) || !sameNamespaces(other, c.file) {
			continue
		}
		decls := c.file.Decls
		if len(other.Decls) < len(decls) {
			decls = other.Decls
		}
		for _, d := range decls {
			name := d.Info().Name
			mine, theirs := c.file.scope.types[name], other.scope.types[name]
			if mine != nil && theirs != nil {
				c.errorf(mine.Info().Pos, "%s is already declared, as %s in %s, which has the same namespaces", name, what(theirs), other.Path)
			}
		}
	}
}

// sameNamespaces reports whether b has all namespaces of a.
func sameNamespaces(a, b *File) bool {
	for _, n := range a.Namespaces {
		if a.Namespace(n.Scope) != b.Namespace(n.Scope) {
			return false
		}
	}
	return true
}

// types resolves the types in a declaration.
func (c *checker) types(d Decl) {
	switch d := d.(type) {
	case *Const:
		c.typ(d.Type)
	case *Typedef:
		c.typedef(d)
	case *Struct:
		c.fields(d.Fields)
	case *Service:
		for _, f := range d.Functions {
			c.result(f)
			c.fields(f.Args)
			c.throws(f)
		}
	}
}

func (c *checker) fields(fields []*Field) {
	for _, f := range fields {
		if c.typ(f.Type); f.Type.id != 0 {
			c.noException(f.Type)
		}
		if f.Xsd != nil {
			c.fields(f.Xsd.Attrs)
		}
	}
}

func (c *checker) result(f *Function) {
	if f.Result.Kind == Void {
		return
	}
	if c.typ(f.Result); f.Result.id != 0 {
		c.noException(f.Result)
	}
}

// noException warns about exceptions that are used as values. Newer versions of the reference
// compiler reject them.
func (c *checker) noException(t *Type) {
	switch t.Kind {
	case Named:
		if s := t.Struct(); s != nil && s.Kind == Exception {
			c.report.warnf(c.file, t.Pos, "the exception %s is used as a value; exceptions are meant for throws", t.Name)
		}
	case Map:
		c.noException(t.Key)
		c.noException(t.Elem)
	case List, Set:
		c.noException(t.Elem)
	}
}

func (c *checker) throws(f *Function) {
	for _, thrown := range f.Throws {
		if c.typ(thrown.Type); thrown.Type.id == 0 {
			continue
		}
		if s := thrown.Type.Struct(); s == nil || s.Kind != Exception {
			c.errorf(thrown.Type.Pos, "%s is not an exception, so %s cannot throw it", thrown.Type.String(), f.Name)
		}
	}
}

// typ resolves a type: it sets Decl and id. The id stays 0 after an error.
func (c *checker) typ(t *Type) {
	switch t.Kind {
	case Named:
		c.named(t)
	case List, Set, Map:
		s := shape{kind: t.Kind}
		if t.Kind == Map {
			c.typ(t.Key)
			s.key = t.Key.id
			t.depth = t.Key.depth
		}
		c.typ(t.Elem)
		s.elem = t.Elem.id
		t.depth = max(t.depth, t.Elem.depth) + 1
		switch {
		case s.elem == 0 || t.Kind == Map && s.key == 0:
		case t.depth > maxDepth:
			c.errorf(t.Pos, "types and typedefs are nested more than %d levels deep", maxDepth)
		default:
			if c.ids[s] == 0 {
				c.ids[s] = c.newID()
			}
			t.id = c.ids[s]
		}
	default:
		t.id = int32(t.Kind)
	}
}

// newID returns an id for another type. The ids of base types are their kinds.
func (c *checker) newID() int32 {
	c.lastID++
	return c.lastID
}

func (c *checker) named(t *Type) {
	d := c.lookup(t.Name, t.Pos, "type")
	switch d := d.(type) {
	case *Typedef:
		if !c.typedef(d) {
			return
		}
		t.Decl, t.id, t.depth = d, d.Type.id, d.Type.depth+1
		if t.depth > maxDepth {
			c.errorf(t.Pos, "types and typedefs are nested more than %d levels deep", maxDepth)
			t.id = 0
		}
	case *Enum:
		if d.id == 0 {
			d.id = c.newID()
		}
		t.Decl, t.id = d, d.id
	case *Struct:
		if d.id == 0 {
			d.id = c.newID()
		}
		t.Decl, t.id = d, d.id
	case *Service:
		c.errorf(t.Pos, "%s is a service: expected a type", t.Name)
	}
}

// typedef resolves a typedef and reports whether its type is known.
func (c *checker) typedef(d *Typedef) bool {
	switch d.state {
	case checking:
		c.errorf(d.Pos, "the typedef %s refers to itself", d.Name)
		return false
	case unchecked:
		d.state = checking
		if c.depth++; c.depth > maxDepth {
			c.errorf(d.Pos, "typedefs refer to each other more than %d levels deep", maxDepth)
		} else {
			c.typ(d.Type)
		}
		c.depth--
		d.state = checked
	}
	return d.Type.id != 0
}

// service checks the base of a service, and that no function is declared twice.
func (c *checker) service(s *Service) {
	c.extends(s)
	depth := 0
	for base := s.Base; base != nil; base = base.Base {
		if depth++; depth > maxDepth {
			c.errorf(s.extendsPos, "services extend each other more than %d levels deep", maxDepth)
			return
		}
		functions := s.Functions
		if len(base.Functions) < len(functions) {
			functions = base.Functions
		}
		for _, f := range functions {
			if mine, theirs := s.byName[f.Name], base.byName[f.Name]; mine != nil && theirs != nil {
				c.errorf(mine.Pos, "the service %s already has a function %s, from %s at %s:%s", s.Name, f.Name, base.Name, base.File.Path, theirs.Pos)
			}
		}
	}
}

// extends sets the base of a service and the bases of the services that it extends. A service
// that extends itself gets no base.
func (c *checker) extends(s *Service) {
	var chain []*Service
	for s.state == unchecked {
		s.state = checking
		chain = append(chain, s)
		if s.Extends == "" {
			break
		}
		d := c.lookup(s.Extends, s.extendsPos, "service")
		base, ok := d.(*Service)
		if d != nil && !ok {
			c.errorf(s.extendsPos, "%s is %s: expected a service", s.Extends, what(d))
		}
		if ok && base.state == checking {
			c.errorf(s.extendsPos, "the service %s extends itself", s.Name)
			ok = false
		}
		if !ok {
			break
		}
		s.Base, s = base, base
	}
	for _, s := range chain {
		s.state = checked
	}
}

// structure warns about a struct that requires itself and so has no finite value.
func (c *checker) structure(s *Struct) {
	type step struct {
		of   *Struct
		next int // index of the next field
	}
	if s.state != unchecked {
		return
	}
	s.state = checking
	for stack := []step{{s, 0}}; len(stack) > 0; {
		top := &stack[len(stack)-1]
		if top.next == len(top.of.Fields) {
			top.of.state = checked
			stack = stack[:len(stack)-1]
			continue
		}
		f := top.of.Fields[top.next]
		top.next++
		to := f.Type.Struct()
		if f.Requirement != Required || to == nil || to.File != c.file {
			continue
		}
		switch to.state {
		case unchecked:
			to.state = checking
			stack = append(stack, step{to, 0})
		case checking:
			c.report.warnf(c.file, f.Pos, "%s requires itself through %s.%s: no message can hold such a value", to.Name, top.of.Name, f.Name)
		}
	}
}
