package gen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// AppendThrift makes room for consecutive fields in one step, as far as their sizes follow from the
// struct itself: that is a run. A run ends at a field whose contents are appended by other functions.

// run is a sequence of fields, and what follows it.
type run struct {
	fields []*field
	size   sized    // of what is always written, and of terms
	checks []*field // optional strings and binaries: their sizes need an if statement
	method string   // that returns the size, if it is not a number
	end    *field   // whose contents follow, or nil
	stop   bool     // the stop byte is a part of it
	copied bool     // it is for a body: large strings take no room
}

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

// runs divides the fields of a struct.
func (f *GoFile) runs(s *structure) []*run {
	var all []*run
	last := new(run)
	for _, one := range f.inOrder(s) {
		if one.kind != kStruct && !isComplex(one.Type) {
			last.add(one)
			continue
		}
		last.end = one
		if one.present() == "" {
			last.size.add(headSize(one), "")
		}
		all = append(all, last)
		last = new(run)
	}
	if len(last.fields) > 0 {
		last.stop = !f.gen.config.KeepUnknown
		if last.stop {
			last.size.n++
		}
	}
	all = append(all, last)
	methods := 0
	for i, r := range all {
		if len(r.size.terms) == 0 && len(r.checks) == 0 {
			continue
		}
		if i == 0 && len(all) == 1 && r.stop && !slices.ContainsFunc(r.fields, hasContents) {
			r.method = "SizeThrift"
			continue
		}
		r.method = "flat"
		if methods++; methods > 1 {
			r.method = fmt.Sprintf("flat%d", methods)
		}
	}
	return all
}

// headSize returns the size of what PutHead or PutList stores for a field that ends a run.
func headSize(one *field) int {
	if isStructList(one.Type) {
		return 8
	}
	return 3
}

// isStructList reports whether a type is a list of structs, whose fields have no separate functions.
func isStructList(t *idl.Type) bool { return kindOf(t) == kList && kindOf(t.True().Elem) == kStruct }

// hasContents reports whether a field of a run has contents that its size does not include.
func hasContents(one *field) bool {
	return one.kind == kMap || one.kind == kList && fixedSize(one.Type.True().Elem) == 0
}

// add adds a field to a run.
func (r *run) add(one *field) {
	r.fields = append(r.fields, one)
	n, term := 0, ""
	v := one.value()
	switch one.kind {
	case kString, kBinary:
		n, term = 7, r.length(v)
	case kMap:
		n = 9
	case kList:
		n = 8
		if size := fixedSize(one.Type.True().Elem); size == 1 {
			term = "len(" + v + ")"
		} else if size > 1 {
			term = fmt.Sprintf("%d*len(%s)", size, v)
		}
	default:
		n = 3 + fixedSize(one.Type)
	}
	switch present := one.present(); {
	case present == "":
		r.size.add(n, "")
		if term != "" {
			r.size.terms = append(r.size.terms, term)
		}
	case term == "":
		r.size.add(0, "%d*thrift.One(%s)", n, present)
	default:
		r.checks = append(r.checks, one)
	}
}

// length returns the room that a string or binary needs.
func (r *run) length(v string) string {
	if r.copied {
		return "thrift.Copied(len(" + v + "))"
	}
	return "len(" + v + ")"
}

// checkSize returns the size of an optional field that is there.
func (r *run) checkSize(one *field) string {
	n, v := 7, ""
	if one.kind != kList {
		v = r.length(one.value())
	} else {
		n, v = 8, "len("+one.value()+")"
		if size := fixedSize(one.Type.True().Elem); size > 1 {
			v = fmt.Sprintf("%d*%s", size, v)
		}
	}
	return fmt.Sprintf("%d + %s", n, v)
}

// sumLines writes n as the sum of a size, on as many lines as it needs.
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

// size writes SizeThrift, and methods with the sizes of runs.
func (f *GoFile) size(s *structure) {
	runs := f.runs(s)
	total := sized{}
	var ends []*field
	checked := new(run) // whose checks are in SizeThrift
	for _, r := range runs {
		switch {
		case r.method == "SizeThrift":
			total, checked = r.size, r
		case r.method != "":
			total.terms = append(total.terms, "p."+r.method+"()")
		default:
			total.n += r.size.n
		}
		for _, one := range r.fields {
			if hasContents(one) {
				total.terms = append(total.terms, contentsSize(one))
			}
		}
		switch {
		case r.end == nil:
		case r.end.present() == "" && isComplex(r.end.Type) && !isStructList(r.end.Type):
			total.terms = append(total.terms, "size"+f.container(r.end.Type)+"("+r.end.value()+")")
		default:
			ends = append(ends, r.end)
		}
	}
	if !runs[len(runs)-1].stop {
		total.n++
	}
	if f.gen.config.KeepUnknown {
		total.terms = append(total.terms, "len(p.unknown)")
	}
	f.p("")
	f.p("func (p *%s) SizeThrift() int {", s.name)
	f.ifNil(s, "1")
	f.sumLines(total, len(ends)+len(checked.checks) == 0)
	f.checkLines(checked)
	for _, end := range ends {
		f.endSize(end)
	}
	if len(ends)+len(checked.checks) > 0 {
		f.p("return n")
	}
	f.p("}")
	for _, r := range runs {
		if strings.HasPrefix(r.method, "flat") {
			f.flat(s, r)
		}
	}
}

// ifNil writes the statement that returns the value for a struct that is nil. Elements of containers can
// be nil if they are pointers.
func (f *GoFile) ifNil(s *structure, value string) {
	if f.gen.config.Kitex && (len(s.fields) > 0 || f.gen.config.KeepUnknown) {
		f.p("if p == nil {")
		f.p("return %s", value)
		f.p("}")
	}
}

// flat writes the method with the size of a run.
func (f *GoFile) flat(s *structure, r *run) {
	f.p("")
	f.p("func (p *%s) %s() int {", s.name, r.method)
	f.sumLines(r.size, len(r.checks) == 0)
	if len(r.checks) > 0 {
		f.checkLines(r)
		f.p("return n")
	}
	f.p("}")
}

func (f *GoFile) checkLines(r *run) {
	for _, one := range r.checks {
		f.p("if %s {", one.present())
		f.p("n += %s", r.checkSize(one))
		f.p("}")
	}
}

// contentsSize returns the size of the elements of a list of strings, or of a map of strings.
func contentsSize(one *field) string {
	if one.kind == kMap {
		return "thrift.SizeStringMap(" + one.value() + ")"
	}
	return "thrift.SizeStrings(" + one.value() + ")"
}

// endSize adds the size of a field that ends a run, unless SizeThrift has it in its sum.
func (f *GoFile) endSize(one *field) {
	v, present := one.value(), one.present()
	if present != "" {
		f.p("if %s {", present)
	}
	switch {
	case one.kind == kStruct && present != "":
		f.p("n += 3 + %s.SizeThrift()", v)
	case one.kind == kStruct:
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
		f.p("n += 3 + size%s(%s)", f.container(one.Type), v)
	}
	if present != "" {
		f.p("}")
	}
}

// appendThrift writes AppendThrift.
func (f *GoFile) appendThrift(s *structure) {
	f.p("")
	f.p("func (p *%s) AppendThrift(b []byte) []byte {", s.name)
	f.ifNil(s, "append(b, thrift.TypeStop)")
	declare := ":="
	for _, r := range f.runs(s) {
		if len(r.fields) > 0 {
			f.p("n %s len(b)", declare)
			declare = "="
			if r.method != "" {
				f.p("b = thrift.Extend(b, p.%s())", r.method)
			} else {
				f.p("b = thrift.Extend(b, %d)", r.size.n)
			}
			for _, one := range r.fields {
				f.putField(one)
			}
			if r.end != nil && r.end.present() == "" {
				f.putEnd(r.end)
			}
			f.p("b = b[:n]")
		}
		if r.end != nil {
			f.appendEnd(r.end, len(r.fields) == 0 || r.end.present() != "")
		}
	}
	if f.gen.config.KeepUnknown {
		f.p("b = append(b, p.unknown...)")
	}
	f.p("return append(b, thrift.TypeStop)")
	f.p("}")
}

// putField stores a field of a run.
func (f *GoFile) putField(one *field) {
	v, present := one.value(), one.present()
	if present != "" {
		f.p("if %s {", present)
	}
	base := one.Type.True()
	switch one.kind {
	case kList:
		f.p("n = thrift.PutList(b, n, %s, %d, %s, len(%s))", wire(base), one.id(), wire(base.Elem), v)
		put, size := f.shape(kindOf(base.Elem)).putList, fixedSize(base.Elem)
		switch {
		case size > 1 && size <= 8 && !strings.Contains(put, "Wide"): // The runtime has a loop for few elements that is inlined.
			f.p("if !"+strings.Replace(put, "thrift.Put", "thrift.PutFew", 1)+" {", v)
			f.p(put, v)
			f.p("}")
			f.p("n += %d * len(%s)", size, v)
		case size > 0:
			f.p("n = "+put, v)
		default:
			f.p("b, n = thrift.PutStrings(b, n, %s)", v)
		}
	case kMap:
		f.p("n = thrift.PutMap(b, n, %d, thrift.TypeString, thrift.TypeString, len(%s))", one.id(), v)
		f.p("b, n = thrift.%s(b, n, %s)", f.sorted("Put%sStringMap"), v)
	default:
		f.p("n = "+shapes[one.kind].put, one.id(), v)
	}
	if present != "" {
		f.p("}")
	}
}

// sorted returns the name of a function for maps of strings.
func (f *GoFile) sorted(name string) string {
	if f.gen.config.SortedKeys {
		return fmt.Sprintf(name, "Sorted")
	}
	return fmt.Sprintf(name, "")
}

// putEnd stores the head of a field that ends a run and is always written.
func (f *GoFile) putEnd(one *field) {
	if isStructList(one.Type) {
		f.p("n = thrift.PutList(b, n, %s, %d, thrift.TypeStruct, len(%s))", wire(one.Type), one.id(), one.value())
		return
	}
	f.p("n = thrift.PutHead(b, n, %s, %d)", wire(one.Type), one.id())
}

// appendEnd appends the contents of a field that ends a run, and its head if that was not stored with
// the run.
func (f *GoFile) appendEnd(one *field, writeHead bool) {
	v, present := one.value(), one.present()
	if present != "" {
		f.p("if %s {", present)
	}
	if writeHead {
		f.p("b = append(b, %s, %d, %d)", wire(one.Type), one.id()>>8, byte(one.id()))
	}
	switch {
	case one.kind == kStruct && present != "":
		f.p("b = %s.AppendThrift(b)", v)
	case one.kind == kStruct:
		f.p("if %s != nil {", v)
		f.p("b = %s.AppendThrift(b)", v)
		f.p("} else {")
		f.p("b = append(b, thrift.TypeStop)")
		f.p("}")
	case isStructList(one.Type):
		if writeHead {
			f.p("b = thrift.AppendList(b, thrift.TypeStruct, len(%s))", v)
		}
		f.p("for i := range %s {", v)
		f.p("b = %s[i].AppendThrift(b)", v)
		f.p("}")
	default:
		f.p("b = append%s(b, %s)", f.container(one.Type), v)
	}
	if present != "" {
		f.p("}")
	}
}
