package gen

import (
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

// bodyThrift writes BodyThrift, which appends to a body and links large strings.
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
	a := &appender{GoFile: f, buffer: "body.B", linked: true}
	for _, one := range f.inOrder(s) {
		a.field(one)
	}
	a.flush()
	if f.gen.config.KeepUnknown {
		f.p("body.B = append(body.B, p.unknown...)")
	}
	f.p("body.B = append(body.B, thrift.TypeStop)")
	f.p("}")
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

// linkElem appends an element, and links large strings in it.
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

// linker returns the suffix of the name of the function that appends a container to a body, and
// schedules writing that function.
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

// in returns a call of the runtime with b replaced by another buffer.
func in(buffer, call string) string { return strings.Replace(call, "(b, ", "("+buffer+", ", 1) }
