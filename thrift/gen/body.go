package gen

import (
	"fmt"
	"strings"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

const rootPath = "github.com/slipstream-go/slipstream"

// hasText reports whether a value can contain a string or a binary, which can be linked.
func hasText(t *idl.Type) bool {
	t = t.True()
	switch kindOf(t) {
	case kString, kBinary, kStruct:
		return true
	case kList:
		return hasText(t.Elem)
	case kMap:
		return hasText(t.Key) || hasText(t.Elem)
	}
	return false
}

// bodyThrift writes BodyThrift: AppendThrift into a body, to which large strings are linked.
func (f *GoFile) bodyThrift(s *structure) {
	f.std(rootPath)
	f.p("")
	f.comment("BodyThrift implements thrift.BodyStruct.")
	f.p("func (p *%s) BodyThrift(body *slipstream.Body) {", s.name)
	if f.gen.config.Kitex {
		f.p("if p == nil {")
		f.p("body.B = append(body.B, thrift.TypeStop)")
		f.p("return")
		f.p("}")
	}
	linked := false
	for _, one := range s.fields {
		linked = linked || hasText(one.Type)
	}
	if !linked {
		f.p("body.B = p.AppendThrift(body.B)")
		f.p("}")
		return
	}
	f.p("if p.SizeThrift() < thrift.LinkFrom {")
	f.p("body.B = p.AppendThrift(body.B)")
	f.p("return")
	f.p("}")
	declare := ":="
	runs := f.bodyRuns(s)
	for _, r := range runs {
		if len(r.fields) > 0 {
			f.p("n %s len(body.B)", declare)
			if r.method != "" {
				f.p("b %s thrift.Extend(body.B, p.%s())", declare, r.method)
			} else {
				f.p("b %s thrift.Extend(body.B, %d)", declare, r.size.n)
			}
			declare = "="
			for _, one := range r.fields {
				f.linkField(one)
			}
			if r.end != nil && r.end.present() == "" {
				f.putBodyEnd(r.end)
			}
			f.p("body.B = b[:n]")
		}
		if r.end != nil {
			f.linkEnd(r.end, len(r.fields) == 0 || r.end.present() != "")
		}
	}
	if f.gen.config.KeepUnknown {
		f.p("body.B = append(body.B, p.unknown...)")
	}
	f.p("body.B = append(body.B, thrift.TypeStop)")
	f.p("}")
	for _, r := range runs {
		if r.method != "" {
			f.flat(s, r)
		}
	}
}

// bodyRuns divides the fields of a struct. Lists and maps of strings end a run, too, and the room for
// strings is that for those that are copied.
func (f *GoFile) bodyRuns(s *structure) []*run {
	var all []*run
	last := &run{copied: true}
	for _, one := range f.inOrder(s) {
		if one.kind != kStruct && !isComplex(one.Type) && !hasContents(one) {
			last.add(one)
			continue
		}
		last.end = one
		if one.present() == "" {
			size := headSize(one)
			if hasContents(one) && !isComplex(one.Type) {
				size = 8 + asInt(one.kind == kMap)
			}
			last.size.add(size, "")
		}
		all = append(all, last)
		last = &run{copied: true}
	}
	all = append(all, last)
	methods := 0
	for _, r := range all {
		if len(r.fields) == 0 || len(r.size.terms)+len(r.checks) == 0 {
			continue
		}
		r.method = "room"
		if methods++; methods > 1 {
			r.method = fmt.Sprintf("room%d", methods)
		}
	}
	return all
}

// linkField stores a field of a run, or links its value.
func (f *GoFile) linkField(one *field) {
	if one.kind != kString && one.kind != kBinary {
		f.putField(one)
		return
	}
	v, present := one.value(), one.present()
	if present != "" {
		f.p("if %s {", present)
	}
	f.p("if len(%s) < thrift.LinkFrom {", v)
	f.p("n = "+shapes[one.kind].put, one.id(), v)
	f.p("} else {")
	f.p("b, n = thrift.PutLink(body, b, n, %d, %s)", one.id(), v)
	f.p("}")
	if present != "" {
		f.p("}")
	}
}

// putBodyEnd stores the head of a field that ends a run and is always written.
func (f *GoFile) putBodyEnd(one *field) {
	switch {
	case !hasContents(one) || isComplex(one.Type):
		f.putEnd(one)
	case one.kind == kMap:
		f.p("n = thrift.PutMap(b, n, %d, thrift.TypeString, thrift.TypeString, len(%s))", one.id(), one.value())
	default:
		f.p("n = thrift.PutList(b, n, %s, %d, thrift.TypeString, len(%s))", wire(one.Type), one.id(), one.value())
	}
}

// linkEnd appends the contents of a field that ends a run, and its head if that was not stored with
// the run.
func (f *GoFile) linkEnd(one *field, writeHead bool) {
	v, present := one.value(), one.present()
	if present != "" {
		f.p("if %s {", present)
	}
	if writeHead {
		f.p("body.B = append(body.B, %s, %d, %d)", wire(one.Type), one.id()>>8, byte(one.id()))
	}
	base := one.Type.True()
	switch {
	case one.kind == kStruct && present == "":
		f.p("if %s != nil {", v)
		f.p("%s.BodyThrift(body)", v)
		f.p("} else {")
		f.p("body.B = append(body.B, thrift.TypeStop)")
		f.p("}")
	case one.kind == kStruct:
		f.p("%s.BodyThrift(body)", v)
	case isStructList(base):
		if writeHead {
			f.p("body.B = thrift.AppendList(body.B, thrift.TypeStruct, len(%s))", v)
		}
		f.p("for i := range %s {", v)
		f.p("%s[i].BodyThrift(body)", v)
		f.p("}")
	case isComplex(base):
		f.linkElem(base, v)
	default:
		f.linkTexts(base, v, writeHead)
	}
	if present != "" {
		f.p("}")
	}
}

// linkTexts appends a list or a map of strings.
func (f *GoFile) linkTexts(t *idl.Type, v string, writeHead bool) {
	if kindOf(t) == kMap {
		if writeHead {
			f.p("body.B = thrift.AppendMap(body.B, thrift.TypeString, thrift.TypeString, len(%s))", v)
		}
		f.p("thrift.%s(body, %s)", f.sorted("Link%sStringMap"), v)
		return
	}
	if writeHead {
		f.p("body.B = thrift.AppendList(body.B, thrift.TypeString, len(%s))", v)
	}
	f.p("thrift.LinkTexts(body, %s)", v)
}

// linkElem appends an element, and links what is large in it.
func (f *GoFile) linkElem(t *idl.Type, v string) {
	t = t.True()
	switch k := kindOf(t); {
	case k == kStruct:
		f.p("%s.BodyThrift(body)", v)
	case k == kString || k == kBinary:
		f.p("thrift.LinkText(body, %s)", v)
	case isComplex(t) && hasText(t):
		f.p("link%s(body, %s)", f.linker(t), v)
	case isComplex(t):
		f.p("body.B = append%s(body.B, %s)", f.container(t), v)
	case hasText(t):
		f.linkTexts(t, v, true)
	default:
		f.appendElem(t, v, "body.B")
	}
}

// linker returns the end of the name of the function that appends a container to a body, and has
// it written.
func (f *GoFile) linker(t *idl.Type) string {
	name := f.container(t)
	if f.pkg.names.has("link" + name) {
		return name
	}
	f.pkg.names["link"+name] = 0
	f.pending = append(f.pending, func() {
		f.std(rootPath)
		f.p("")
		f.p("func link%s(body *slipstream.Body, v %s) {", name, f.goType(t))
		if t.Kind == idl.Map {
			f.p("body.B = thrift.AppendMap(body.B, %s, %s, len(v))", wire(t.Key), wire(t.Elem))
		} else {
			f.p("body.B = thrift.AppendList(body.B, %s, len(v))", wire(t.Elem))
		}
		key, elem := f.beginLoop(t)
		if t.Kind == idl.Map {
			f.linkElem(t.Key, key)
		}
		f.linkElem(t.Elem, elem)
		f.p("}")
		f.p("}")
	})
	return name
}

// in returns a call of the runtime with another buffer than b.
func in(buffer, call string) string { return strings.Replace(call, "(b, ", "("+buffer+", ", 1) }
