package gen

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// inOrder returns the fields in the order in which AppendThrift writes them.
func (f *GoFile) inOrder(s *structure) []*field {
	if !f.gen.config.FixedFirst {
		return s.byID
	}
	order := slices.Clone(s.byID)
	slices.SortStableFunc(order, func(a, b *field) int {
		return cmp.Compare(asInt(fixedSize(a.Type) == 0), asInt(fixedSize(b.Type) == 0))
	})
	return order
}

func asInt(v bool) int {
	if v {
		return 1
	}
	return 0
}

// isStructList reports whether a type is a list of structs. Fields of such types need no separate
// functions.
func isStructList(t *idl.Type) bool { return kindOf(t) == kList && kindOf(t.True().Elem) == kStruct }

// size writes SizeThrift: one sum for the sizes that the struct itself determines, and statements
// for the rest.
func (f *GoFile) size(s *structure) {
	total := sized{n: 1}
	var rest []*field
	for _, one := range s.byID {
		if present := one.present(); present != "" {
			if n := fixedSize(one.Type); n > 0 {
				total.add(0, "%d*thrift.One(%s)", 3+n, present)
			} else {
				rest = append(rest, one)
			}
			continue
		}
		if one.kind == kStruct || isStructList(one.Type) {
			total.n += headSize(one)
			rest = append(rest, one)
			continue
		}
		n, term := f.sizeTerm(one.Type, one.value())
		total.add(3+n, "")
		if term != "" {
			total.terms = append(total.terms, term)
		}
	}
	if f.gen.config.KeepUnknown {
		total.terms = append(total.terms, "len(p.unknown)")
	}
	f.p("")
	f.p("func (p *%s) SizeThrift() int {", s.name)
	f.ifNil(s, "1")
	f.sumLines(total, len(rest) == 0)
	for _, one := range rest {
		f.restSize(one)
	}
	if len(rest) > 0 {
		f.p("return n")
	}
	f.p("}")
}

// headSize returns the size of what PutHead or PutList stores for a field.
func headSize(one *field) int {
	if isStructList(one.Type) {
		return 8
	}
	return 3
}

// restSize adds the size of a field that is not in the sum, or of its contents if its head is in
// the sum.
func (f *GoFile) restSize(one *field) {
	v, present := one.value(), one.present()
	if present != "" {
		f.p("if %s {", present)
	}
	switch {
	case one.kind == kStruct && present == "":
		f.p("if %s != nil {", v)
		f.p("n += %s.SizeThrift()", v)
		f.p("} else {")
		f.p("n++")
		f.p("}")
	case isStructList(one.Type):
		if present != "" {
			f.p("n += 8")
		}
		f.p("for i := range %s {", v)
		f.p("n += %s[i].SizeThrift()", v)
		f.p("}")
	default:
		n, term := f.sizeTerm(one.Type, v)
		f.p("n += %d + %s", 3+n, term)
	}
	if present != "" {
		f.p("}")
	}
}

// sumLines writes the statement that sets n to the sum. It splits the statement into as many lines
// as needed.
func (f *GoFile) sumLines(s sized, ret bool) {
	const width = 90
	var lines []sized
	line := sized{n: s.n}
	length := 0
	for _, term := range s.terms {
		if length += len(term) + 3; length > width && len(line.terms) > 0 {
			lines = append(lines, line)
			line, length = sized{}, len(term)
		}
		line.terms = append(line.terms, term)
	}
	lines = append(lines, line)
	if ret && len(lines) == 1 {
		f.p("return %s", lines[0].sum())
		return
	}
	for i, line := range lines {
		op := "+="
		if i == 0 {
			op = ":="
		}
		f.p("n %s %s", op, line.sum())
	}
	if ret {
		f.p("return n")
	}
}

// ifNil writes the statement that returns value if the struct is nil. Elements of containers can be
// nil if they are pointers.
func (f *GoFile) ifNil(s *structure, value string) {
	if f.gen.config.Kitex && (len(s.fields) > 0 || f.gen.config.KeepUnknown) {
		f.p("if p == nil {")
		f.p("return %s", value)
		f.p("}")
	}
}

// appendThrift writes AppendThrift.
func (f *GoFile) appendThrift(s *structure) {
	f.p("")
	f.p("func (p *%s) AppendThrift(b []byte) []byte {", s.name)
	f.ifNil(s, "append(b, thrift.TypeStop)")
	a := &appender{GoFile: f, buffer: "b"}
	for _, one := range f.inOrder(s) {
		a.field(one)
	}
	if a.room > 0 && !f.gen.config.KeepUnknown {
		a.put(1, "q[%d] = thrift.TypeStop", a.room)
		a.flush()
		f.p("return b")
	} else {
		a.flush()
		if f.gen.config.KeepUnknown {
			f.p("b = append(b, p.unknown...)")
		}
		f.p("return append(b, thrift.TypeStop)")
	}
	f.p("}")
}

// sorted returns the name of a function for maps of strings.
func (f *GoFile) sorted(name string) string {
	if f.gen.config.SortedKeys {
		return fmt.Sprintf(name, "Sorted")
	}
	return fmt.Sprintf(name, "")
}
