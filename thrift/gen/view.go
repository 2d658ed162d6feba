package gen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// viewMethods are names that getters cannot use: those of the methods of views, and those for which
// vet prescribes a signature.
func viewMethods() names {
	return namesOf("OpenThrift", "DecodeThrift", "ReadThrift", "SizeThrift", "AppendThrift",
		"As", "GobDecode", "GobEncode", "Is", "MarshalXML", "ReadByte", "ReadRune", "UnmarshalXML", "UnreadByte", "UnreadRune", "Unwrap", "WriteByte")
}

// assignViewNames assigns names to the declarations that Config.Views adds. It runs last, so that
// the option does not change other names.
func (g *generator) assignViewNames() {
	for _, f := range g.order {
		for _, s := range f.structs {
			s.view = f.pkg.names.pick(s.name + "View")
			s.viewAt = f.pkg.names.pick(s.view + "At")
			used := viewMethods()
			for _, one := range s.fields {
				one.getter = used.pick(one.name)
			}
			for _, one := range s.fields {
				one.setter = used.pick("Set" + one.getter)
			}
			for _, one := range s.fields {
				if one.kind == kStruct || isStructList(one.Type) {
					one.viewSetter = used.pick(one.setter + "View")
				}
			}
			s.places = slices.Clone(s.fields)
			slices.SortFunc(s.places, func(a, b *field) int { return cmp.Compare(a.id(), b.id()) })
		}
		f.viewTable = f.pkg.names.pick("ViewsOf" + exported(f.IDL.Name, false))
	}
}

// ViewOf returns the Go name of the view of a struct, qualified if it is in another package.
// Without Config.Views, there is no view.
func (f *GoFile) ViewOf(s *idl.Struct) string {
	if !f.gen.config.Views {
		return ""
	}
	return f.qualified(s.File, f.gen.structs[s].view)
}

// views writes the views of the structs of the file.
func (f *GoFile) views() {
	f.p("")
	f.comment(f.viewTable + " describes the structs of " + docName(f.IDL.Name) + " for their views.")
	f.p("var %s = thrift.ViewTable{Structs: []thrift.ViewStruct{", f.viewTable)
	for _, s := range f.structs {
		f.viewStruct(s)
	}
	f.p("}}")
	for _, s := range f.structs {
		f.viewDeclaration(s)
		for place, one := range s.places {
			f.getter(s, one, place)
		}
		if f.gen.config.Setters {
			for place, one := range s.places {
				f.setters(s, one, place)
			}
		}
	}
	f.flush()
}

// viewStruct writes the element of the table that describes a struct.
func (f *GoFile) viewStruct(s *structure) {
	f.comment(s.name)
	if len(s.places) == 0 && !s.isUnion() {
		f.p("{},")
		return
	}
	f.p("{")
	f.p("Fields: []thrift.ViewField{")
	for _, one := range s.places {
		more := ""
		if one.kind >= kStruct {
			more = ", Type: " + f.bounded(one.Type, f.viewType(one.Type))
		}
		f.p("{Key: %s%s},", viewKey(one, " "), more)
	}
	f.p("},")
	var required []uint64
	for place, one := range s.places {
		if one.Requirement == idl.Required {
			for len(required) <= place/64 {
				required = append(required, 0)
			}
			required[place/64] |= 1 << (place % 64)
		}
	}
	if len(required) > 0 {
		words := make([]string, len(required))
		for i, word := range required {
			words[i] = fmt.Sprintf("%#x", word)
		}
		f.p("Required: []uint64{%s},", strings.Join(words, ", "))
	}
	if s.isUnion() {
		f.p("Union: true,")
	}
	f.p("},")
}

// viewKey returns the type and the ID of a field, with blanks around operators as in gofmt.
func viewKey(one *field, blank string) string {
	if one.id() == 0 { // Linters report an operand that is 0.
		return wire(one.Type) + blank + "<<" + blank + "16"
	}
	return fmt.Sprintf("%s<<16%s|%s%d", wire(one.Type), blank, blank, one.id())
}

// viewType returns the description of the type of a field or an element.
func (f *GoFile) viewType(t *idl.Type) string {
	t = t.True()
	var parts []string
	add := func(part *idl.Type, key, elem string) {
		parts = append(parts, key+": "+wire(part))
		if kindOf(part) >= kStruct {
			parts = append(parts, elem+": "+f.viewType(part))
		}
	}
	switch kindOf(t) {
	case kStruct:
		s := f.gen.structs[t.Struct()]
		parts = append(parts, fmt.Sprintf("Struct: %d", s.index))
		if s.file != f {
			parts = append(parts, "Table: &"+f.qualified(s.File, s.file.viewTable))
		}
	case kMap:
		add(t.Key, "Key", "KeyType")
		fallthrough
	default:
		add(t.Elem, "Elem", "ElemType")
	}
	return "&thrift.ViewType{" + strings.Join(parts, ", ") + "}"
}

// bounded returns the text of a type. It reports an error if the texts of all types so far are too
// long in total: types of views have no typedefs, so a few lines of IDL can require a lot of text.
func (f *GoFile) bounded(t *idl.Type, text string) string {
	const short, floor, perField = 500, 1 << 20, 1 << 10
	if len(text) > short {
		limit := floor + perField*f.gen.fields
		if f.gen.viewText += len(text); f.gen.viewText > limit {
			f.gen.errorf(f.IDL, t.Pos, "the types of views exceed the limit of %d bytes in total: too many deeply nested containers", limit)
			return "any"
		}
	}
	return text
}

// viewDeclaration writes the type of a view, and the methods that all views have.
func (f *GoFile) viewDeclaration(s *structure) {
	v := "func (v *" + s.view + ") "
	place := fmt.Sprintf("v.at[:], &%s, %d", f.viewTable, s.index)
	f.p("")
	f.comment(s.view + " is a view of an encoded " + s.name + ": see thrift.View.")
	f.p("type %s struct {", s.view)
	f.p("view thrift.View")
	f.p("at   [%d]uint32", len(s.fields))
	f.p("}")
	f.p("")
	f.p("var _ thrift.Struct = (*%s)(nil)", s.view)
	f.p("")
	f.comment("OpenThrift makes v a view of the " + s.name + " that b begins with. The view owns b.")
	f.p("%sOpenThrift(b []byte) error {", v)
	f.p("return v.view.Open(b, %s, (*%s)(nil))", place, s.name)
	f.p("}")
	f.p("")
	f.comment("DecodeThrift decodes v into to.")
	f.p("%sDecodeThrift(r *thrift.Reader, to *%s) error {", v, s.name)
	f.p("return v.view.Decode(r, v.at[:], to)")
	f.p("}")
	f.p("")
	f.comment("ReadThrift makes v a view of the " + s.name + " at b[off:]. The view owns b.")
	f.p("%sReadThrift(r *thrift.Reader, b []byte, off, depth int) int {", v)
	f.p("return v.view.Read(r, b, off, depth, %s)", place)
	f.p("}")
	f.p("")
	f.function(v+"SizeThrift() int", "return v.view.Size(v.at[:])")
	f.p("")
	f.function(v+"AppendThrift(b []byte) []byte", "return v.view.Append(b, v.at[:])")
	f.p("")
	f.comment(s.viewAt + " returns a view of the " + s.name + " at b[off:] and the offset after it.")
	f.p("func %s(b []byte, off int) (v %s, next int) {", s.viewAt, s.view)
	f.p("next = v.view.Index(b, off, %s)", place)
	f.p("return v, next")
	f.p("}")
}

// viewGetters are the methods of thrift.View that return fields, and zero values.
var viewGetters = [...]struct{ method, zero string }{
	kBool: {"Bool", "false"}, kI8: {"I8", "0"}, kI16: {"I16", "0"}, kI32: {"I32", "0"}, kI64: {"I64", "0"}, kDouble: {"Double", "0"},
	kUUID: {"UUID", "thrift.UUID{}"}, kEnum: {"I32", "0"}, kString: {"String", `""`}, kBinary: {"Binary", "nil"},
}

// getter writes the method that returns a field.
func (f *GoFile) getter(s *structure, one *field, place int) {
	head := "func (v *" + s.view + ") " + one.getter + "() "
	at := fmt.Sprintf("v.at[%d]", place)
	f.p("")
	switch one.kind {
	case kStruct:
		inner := f.gen.structs[one.Type.Struct()]
		f.p("%s(w %s, ok bool) {", head, f.qualified(inner.File, inner.view))
		if inner.file.pkg != s.file.pkg {
			f.p("return thrift.ViewNested(&v.view, %s, %s)", at, f.qualified(inner.File, inner.viewAt))
		} else {
			f.p("ok = v.view.Struct(%s, &w.view, w.at[:], &%s, %d)", at, inner.file.viewTable, inner.index)
			f.p("return w, ok")
		}
		f.p("}")
		return
	case kList, kMap:
		f.function(head+f.bounded(one.Type, f.viewOf(one.Type)), "return "+f.viewContainer(one.Type, "thrift.View", "&v.view, "+at))
		return
	}
	or, hasDefault := viewGetters[one.kind].zero, one.Default != nil && !s.isUnion()
	if hasDefault && one.kind != kBinary {
		or = f.value(one.Default, one.Type)
		if one.kind == kEnum {
			or = "int32(" + or + ")"
		}
	}
	value := fmt.Sprintf("v.view.%s(%s, %s)", viewGetters[one.kind].method, at, or)
	if one.kind == kEnum {
		value = f.goType(one.Type) + "(" + value + ")"
	}
	switch {
	case hasDefault && one.kind == kBinary && !one.optional():
		f.p("%s[]byte {", head)
		f.p("if %s == 0 {", at)
		f.p("return %s", f.value(one.Default, one.Type))
		f.p("}")
		f.p("return %s", value)
		f.p("}")
	case !one.optional() || one.kind == kBinary:
		f.function(head+f.goType(one.Type), "return "+value)
	case hasDefault:
		opt := "thrift.Opt[" + f.goType(one.Type) + "]"
		f.function(head+opt, fmt.Sprintf("return %s{V: %s, Set: %s != 0}", opt, value, at))
	default:
		f.function(head+"thrift.Opt["+f.goType(one.Type)+"]", fmt.Sprintf("return thrift.OptIf(%s != 0, %s)", at, value))
	}
}

// viewOf returns the Go type of a value in a view.
func (f *GoFile) viewOf(t *idl.Type) string {
	switch base := t.True(); kindOf(base) {
	case kStruct:
		s := f.gen.structs[base.Struct()]
		return f.qualified(s.File, s.view)
	case kList:
		if fixedSize(base.Elem) > 0 {
			return "thrift.NumbersView[" + f.goType(base.Elem) + "]"
		}
		return "thrift.ListView[" + f.viewOf(base.Elem) + "]"
	case kMap:
		key := f.viewOf(base.Key)
		if kindOf(base.Key) == kBinary {
			key = "string"
		}
		return "thrift.MapView[" + key + ", " + f.viewOf(base.Elem) + "]"
	}
	return f.goType(t)
}

// viewContainer returns a call that makes the view of a container. prefix and suffix make names of
// functions: thrift.ViewList, thrift.ListAt.
func (f *GoFile) viewContainer(t *idl.Type, prefix, args string) string {
	t = t.True()
	name := func(of string) string {
		if prefix == "thrift.View" {
			return prefix + of
		}
		return prefix + of + "At"
	}
	switch {
	case kindOf(t) == kMap:
		key := f.viewElem(t.Key)
		if kindOf(t.Key) == kBinary {
			key = "thrift.StringAt"
		}
		return name("Map") + "(" + args + ", " + key + ", " + f.viewElem(t.Elem) + ")"
	case fixedSize(t.Elem) > 0:
		return name("Numbers") + "[" + f.goType(t.Elem) + "](" + args + ")"
	}
	return name("List") + "(" + args + ", " + f.viewElem(t.Elem) + ")"
}

// viewElem returns the function that returns an element of a container.
func (f *GoFile) viewElem(t *idl.Type) string {
	base := t.True()
	switch k := kindOf(base); {
	case k == kStruct:
		s := f.gen.structs[base.Struct()]
		return f.qualified(s.File, s.viewAt)
	case k == kString:
		return "thrift.StringAt"
	case k == kBinary:
		return "thrift.BinaryAt"
	case k == kList && fixedSize(base.Elem) > 0:
		return "thrift.NumbersAt[" + f.goType(base.Elem) + "]"
	case k < kStruct:
		return "thrift.NumberAt[" + f.goType(t) + "]"
	}
	// Views of lists and sets have the same type.
	key := strings.NewReplacer("<", "[", ">", "]").Replace(f.gen.typeKey(base))
	if name := f.pkg.viewElems[key]; name != "" {
		return name
	}
	name := f.pkg.names.pick("view" + strings.ReplaceAll(f.shortName(base), "Set", "List"))
	f.pkg.viewElems[key] = name
	f.pending = append(f.pending, func() {
		f.p("")
		f.p("func %s(b []byte, off int) (%s, int) {", name, f.bounded(base, f.viewOf(base)))
		f.p("return %s", f.viewContainer(base, "thrift.", "b, off"))
		f.p("}")
	})
	return name
}
