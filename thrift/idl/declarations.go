package idl

import "math"

func (p *parser) constant(n Node) (Decl, bool) {
	c := &Const{Node: n, File: p.file}
	p.next()
	var ok bool
	if c.Type, ok = p.typ(); !ok {
		return nil, false
	}
	if c.Name, c.Pos, ok = p.name("the name of the constant"); !ok || !p.expect('=', "= and a value") {
		return nil, false
	}
	v, ok := p.value()
	if !ok {
		return nil, false
	}
	c.Value = &v
	p.separator()
	c.Comment = p.trail()
	return c, true
}

func (p *parser) typedef(n Node) (Decl, bool) {
	d := &Typedef{Node: n, File: p.file}
	p.next()
	var ok bool
	if d.Type, ok = p.typ(); !ok {
		return nil, false
	}
	if d.Name, d.Pos, ok = p.name("the name of the typedef"); !ok {
		return nil, false
	}
	d.Annotations = p.annotations()
	p.separator()
	d.Comment = p.trail()
	return d, true
}

func (p *parser) enum(n Node) (Decl, bool) {
	e := &Enum{Node: n, File: p.file}
	p.next()
	var ok bool
	if e.Name, e.Pos, ok = p.name("the name of the enum"); !ok || !p.expect('{', `"{"`) {
		return nil, false
	}
	e.Comment = p.trail()
	last := int64(-1)
	ok = p.elements('}', "a value of the enum", func() bool {
		v := &EnumValue{Node: Node{Doc: p.doc()}, Enum: e}
		var ok bool
		if v.Name, v.Pos, ok = p.name("a value of the enum"); !ok {
			return false
		}
		last++
		if v.Explicit = p.take('='); v.Explicit {
			number, pos := p.tok.int, p.tok.pos
			if p.tok.kind != tokBool && p.tok.kind != tokInt {
				p.expected("a number")
				return false
			}
			p.next()
			if number < math.MinInt32 || number > math.MaxInt32 {
				p.wrong(pos, "the number of %s does not fit into an i32", v.Name)
				number = 0
			}
			last = number
		} else if last > math.MaxInt32 {
			p.wrong(v.Pos, "%s would have the number %d, which does not fit into an i32", v.Name, last)
			last = 0
		}
		v.Number = int32(last)
		v.Annotations = p.annotations()
		p.separator()
		v.Comment = p.trail()
		e.Values = append(e.Values, v)
		return p.node()
	})
	return e, p.closed(&e.Node, ok)
}

// closed ends a declaration whose last token is a brace.
func (p *parser) closed(n *Node, ok bool) bool {
	if !ok {
		return false
	}
	n.Annotations = p.annotations()
	if n.Comment == "" {
		n.Comment = p.trail()
	}
	return true
}

func (p *parser) structure(n Node, kind StructKind) (Decl, bool) {
	s := &Struct{Node: n, File: p.file, Kind: kind}
	p.next()
	var ok bool
	if s.Name, s.Pos, ok = p.name("the name of the " + kind.String()); !ok {
		return nil, false
	}
	if kind != Exception {
		s.XsdAll = p.take(kwXsdAll)
	}
	if !p.expect('{', `"{"`) {
		return nil, false
	}
	s.Comment = p.trail()
	s.Fields, ok = p.fields('}', fieldOf(kind))
	return s, p.closed(&s.Node, ok)
}

func (p *parser) service(n Node) (Decl, bool) {
	s := &Service{Node: n, File: p.file}
	p.next()
	var ok bool
	if s.Name, s.Pos, ok = p.name("the name of the service"); !ok {
		return nil, false
	}
	if p.take(kwExtends) {
		s.Extends, s.extendsPos = p.text(), p.tok.pos
		if !p.expect(tokName, "the name of a service") {
			return nil, false
		}
	}
	if !p.expect('{', `"{"`) {
		return nil, false
	}
	s.Comment = p.trail()
	ok = p.elements('}', "a function", func() bool {
		f, ok := p.function()
		if f != nil {
			f.Service = s
			s.Functions = append(s.Functions, f)
		}
		return ok && p.node()
	})
	return s, p.closed(&s.Node, ok)
}

func (p *parser) function() (*Function, bool) {
	f := &Function{Node: Node{Doc: p.doc()}}
	if p.tok.kind == kwAsync {
		p.report.warnf(p.file, p.tok.pos, "async is deprecated: write oneway")
	}
	f.Oneway = p.take(kwOneway) || p.take(kwAsync)
	f.Result = &Type{Pos: p.tok.pos}
	var ok bool
	if !p.take(kwVoid) {
		if f.Result, ok = p.typ(); !ok {
			return nil, false
		}
	}
	if f.Name, f.Pos, ok = p.name("the name of the function"); !ok || !p.expect('(', `"(" and the arguments`) {
		return nil, false
	}
	if f.Args, ok = p.fields(')', argument); !ok {
		return f, false
	}
	if pos := p.tok.pos; p.take(kwThrows) {
		if !p.expect('(', `"(" and exceptions`) {
			return f, false
		}
		if f.Throws, ok = p.fields(')', thrown); !ok {
			return f, false
		}
		if f.Oneway && len(f.Throws) > 0 {
			p.wrong(pos, "the oneway function %s has no reply, so it cannot throw exceptions", f.Name)
		}
	}
	if f.Oneway && f.Result.Kind != Void {
		p.wrong(f.Result.Pos, "the oneway function %s has no reply, so its result must be void", f.Name)
	}
	f.Annotations = p.annotations()
	p.separator()
	f.Comment = p.trail()
	return f, true
}
