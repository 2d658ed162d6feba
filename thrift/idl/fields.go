package idl

import "math"

// fieldOf is the kind of list that a field belongs to.
type fieldOf uint8

const (
	ofStruct    = fieldOf(PlainStruct)
	ofUnion     = fieldOf(Union)
	ofException = fieldOf(Exception)
)

const (
	argument fieldOf = ofException + 1 + iota
	thrown
	attribute // in xsd_attrs
)

// String returns a word for such a field.
func (o fieldOf) String() string {
	return [...]string{"field", "field", "field", "argument", "exception", "attribute"}[o]
}

// fields parses fields up to the token end. Fields without an ID get -1, -2 and so on.
func (p *parser) fields(end kind, of fieldOf) ([]*Field, bool) {
	var fields []*Field
	auto := int64(-1)
	names, ids := make(map[string]Pos), make(map[int16]Pos)
	what := map[fieldOf]string{argument: "an argument", thrown: "an exception", attribute: "an attribute"}[of]
	if what == "" {
		what = "a field"
	}
	ok := p.elements(end, what, func() bool {
		f, ok := p.field(of, &auto)
		if f == nil {
			return false
		}
		if at, twice := names[f.Name]; twice {
			p.wrong(f.Pos, "the name %s is already used at %s", f.Name, at)
		} else if at, twice := ids[f.ID]; twice && f.ID != 0 {
			p.wrong(f.Pos, "the ID %d of %s is already used at %s", f.ID, f.Name, at)
		}
		names[f.Name], ids[f.ID] = f.Pos, f.Pos
		fields = append(fields, f)
		return ok && p.node()
	})
	return fields, ok
}

// field parses one field. It returns nil if the field has no name.
func (p *parser) field(of fieldOf, auto *int64) (*Field, bool) {
	f := &Field{Node: Node{Doc: p.doc()}}
	id, idPos, explicit := p.tok.int, p.tok.pos, p.tok.kind == tokInt || p.tok.kind == tokBool
	if explicit {
		p.next()
		if !p.expect(':', `":" after the ID`) {
			return nil, false
		}
	}
	requiredPos := p.tok.pos
	if p.take(kwRequired) {
		f.Requirement = Required
	} else if p.take(kwOptional) {
		f.Requirement = Optional
	}
	var ok bool
	if f.Type, ok = p.typ(); !ok {
		return nil, false
	}
	f.Reference = p.take('&')
	if f.Name, f.Pos, ok = p.fieldName(of); !ok {
		return nil, false
	}
	f.ID, f.AutoID = p.fieldID(f, id, idPos, explicit, auto)
	p.requirement(f, of, requiredPos)
	if p.take('=') {
		v, ok := p.value()
		if !ok {
			return f, false
		}
		f.Default = &v
	}
	if !p.xsd(f) {
		return f, false
	}
	f.Annotations = p.annotations()
	p.separator()
	f.Comment = p.trail()
	return f, true
}

// fieldName consumes the name of a field. As in newer versions of the reference compiler, it may be
// a keyword, unless the keyword could follow a name.
func (p *parser) fieldName(of fieldOf) (string, Pos, bool) {
	switch k := p.tok.kind; {
	case k == kwCppType || k >= kwXsdAll && k <= kwXsdAttrs || k == kwSlist || k == kwSenum:
	case k >= firstKeyword:
		text, pos := p.text(), p.tok.pos
		p.next()
		return text, pos, true
	}
	return p.name("the name of the " + of.String())
}

// fieldID returns the ID of a field and reports whether it was assigned automatically.
func (p *parser) fieldID(f *Field, id int64, pos Pos, explicit bool, auto *int64) (int16, bool) {
	assigned := false
	switch {
	case !explicit:
		p.report.warnf(p.file, f.Pos, "%s has no ID and gets %d: adding or moving fields changes the meaning of messages", f.Name, *auto)
		id, assigned = *auto, true
		*auto--
	case id > 0:
	case p.negative:
		if id != *auto {
			p.report.warnf(p.file, pos, "the ID %d of %s differs from %d, which would be assigned", id, f.Name, *auto)
		}
		*auto = id - 1
	default:
		p.report.warnf(p.file, pos, "the ID %d of %s is not positive and is replaced by %d", id, f.Name, *auto)
		id, assigned = *auto, true
		*auto--
	}
	if id < math.MinInt16 || id > math.MaxInt16 {
		if !explicit {
			pos = f.Pos
		}
		p.wrong(pos, "the ID %d of %s does not fit into an i16", id, f.Name)
		id = 0
	}
	return int16(id), assigned
}

// requirement replaces required and optional where they have no meaning.
func (p *parser) requirement(f *Field, of fieldOf, pos Pos) {
	switch {
	case of == ofUnion:
		if f.Requirement == Required {
			p.report.warnf(p.file, pos, "required is ignored: %s is a field of a union", f.Name)
		}
		f.Requirement = Optional
	case of == argument && f.Requirement == Optional:
		p.report.warnf(p.file, pos, "optional is ignored: %s is an argument", f.Name)
		f.Requirement = Default
	case of == thrown && f.Requirement != Default:
		p.report.warnf(p.file, pos, "%s is ignored: %s is an exception of a function", f.Requirement, f.Name)
		f.Requirement = Default
	}
}

func (p *parser) xsd(f *Field) bool {
	if p.tok.kind != kwXsdOptional && p.tok.kind != kwXsdNillable && p.tok.kind != kwXsdAttrs {
		return true
	}
	f.Xsd = &Xsd{Optional: p.take(kwXsdOptional), Nillable: p.take(kwXsdNillable)}
	if !p.take(kwXsdAttrs) {
		return true
	}
	defer p.leave()
	if !p.enter() || !p.expect('{', `"{" and attributes`) {
		return false
	}
	var ok bool
	f.Xsd.Attrs, ok = p.fields('}', attribute)
	return ok
}

var baseTypes = map[kind]Kind{
	kwBool: Bool, kwByte: I8, kwI8: I8, kwI16: I16, kwI32: I32, kwI64: I64, kwDouble: Double, kwString: String, kwBinary: Binary, kwUUID: UUID,
}

// typ parses a type.
func (p *parser) typ() (*Type, bool) {
	defer p.leave()
	if !p.enter() {
		return nil, false
	}
	t := &Type{Pos: p.tok.pos}
	switch k := p.tok.kind; k {
	case tokName:
		t.Kind, t.Name = Named, p.text()
		p.next()
		return t, true // a named type takes no annotations
	case kwList, kwSet, kwMap:
		p.next()
		if !p.container(t, k) {
			return nil, false
		}
	default:
		base, ok := baseTypes[k]
		switch {
		case k == kwSlist:
			p.errorf(p.tok.pos, "slist is no longer supported: use string")
			base = String
		case k == kwVoid:
			p.errorf(p.tok.pos, "void is not a type: only the result of a function can be void")
			return nil, false
		case !ok:
			p.expected("a type")
			return nil, false
		}
		t.Kind = base
		p.next()
	}
	t.Annotations = p.annotations()
	return t, true
}

func (p *parser) container(t *Type, k kind) bool {
	t.Kind = map[kind]Kind{kwList: List, kwSet: Set, kwMap: Map}[k]
	if !p.cppType(t) || !p.expect('<', `"<" and a type`) {
		return false
	}
	var ok bool
	if k == kwMap {
		if t.Key, ok = p.typ(); !ok || !p.expect(',', `"," and the type of the values`) {
			return false
		}
	}
	if t.Elem, ok = p.typ(); !ok || !p.expect('>', `">"`) {
		return false
	}
	return k != kwList || p.cppType(t)
}

func (p *parser) cppType(t *Type) bool {
	if !p.take(kwCppType) {
		return true
	}
	t.CppType = p.tok.text
	return p.expect(tokString, "a type of C++ in quotes")
}

// value parses the value of a constant.
func (p *parser) value() (Value, bool) {
	v := Value{Pos: p.tok.pos}
	defer p.leave()
	if !p.enter() {
		return v, false
	}
	switch p.tok.kind {
	case tokInt:
		v.Kind, v.Int = IntValue, p.tok.int
	case tokBool:
		v.Kind, v.Int = BoolValue, p.tok.int
	case tokDouble:
		v.Kind, v.Double = DoubleValue, p.tok.double
	case tokString:
		v.Kind, v.Text = StringValue, p.tok.text
	case tokName:
		v.Kind, v.Text = NameValue, p.text()
	case '[':
		v.Kind = ListValue
		p.next()
		ok := p.elements(']', "a value", func() bool {
			one, ok := p.value()
			if ok {
				v.List = append(v.List, one)
				p.separator()
			}
			return ok
		})
		return v, ok
	case '{':
		v.Kind = MapValue
		p.next()
		ok := p.elements('}', "a key", func() bool {
			var e Entry
			var ok bool
			if e.Key, ok = p.value(); !ok || !p.expect(':', `":" and a value`) {
				return false
			}
			if e.Value, ok = p.value(); ok {
				v.Map = append(v.Map, e)
				p.separator()
			}
			return ok
		})
		return v, ok
	default:
		p.expected("a value")
		return v, false
	}
	p.next()
	return v, true
}
