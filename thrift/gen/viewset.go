package gen

import (
	"fmt"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// setters writes the methods that replace a field of a view, or remove it. Their parameter has the
// type of the field in the struct. A value that means an absent field in the struct removes the
// field from the view.
func (f *GoFile) setters(s *structure, one *field, place int) {
	f.setter(s, one, place, one.setter, f.fieldType(one), "")
	if one.viewSetter == "" {
		return
	}
	elem := one.Type.True()
	prefix := "*"
	if one.kind == kList {
		elem, prefix = elem.Elem, "[]"
	}
	inner := f.gen.structs[elem.Struct()]
	view := f.qualified(inner.File, inner.view)
	f.setter(s, one, place, one.viewSetter, prefix+view, view)
}

// setter writes one setter. If it takes a view or a list of views, view is the type of the views.
func (f *GoFile) setter(s *structure, one *field, place int, name, param, view string) {
	head := fmt.Sprintf("func (v *%s) %s(x %s)", s.view, name, param)
	at := fmt.Sprintf("v.at[:], %d, %d", place, one.id())
	value, set := settable(one)
	base := one.Type.True()
	f.p("")
	if one.kind == kStruct && set == "true" {
		f.requiredSetter(one, head, at, view)
		return
	}
	if one.kind < kList {
		method := "Struct"
		if one.kind < kStruct {
			method = viewGetters[one.kind].method
		}
		f.function(head, fmt.Sprintf("v.view.Set%s(%s, %s, %s)", method, at, value, set))
		return
	}
	at = fmt.Sprintf("&v.view, v.at[:], %d, %s", place, viewKey(one, ""))
	call := ""
	switch {
	case isStructList(base):
		call = fmt.Sprintf("thrift.SetStructs(%s, x, %s)", at, set)
	case isComplex(base):
		call = fmt.Sprintf("thrift.SetValue(%s, x, %s, append%s)", at, set, f.container(base))
	case one.kind == kMap:
		call = fmt.Sprintf("thrift.SetStringMap(%s, x, %s)", at, set)
	case fixedSize(base.Elem) == 0:
		call = fmt.Sprintf("thrift.SetStrings(%s, x, %s)", at, set)
	default:
		call = fmt.Sprintf("thrift.SetNumbers(%s, %s, x, %s)", at, wire(base.Elem), set)
	}
	f.function(head, call)
}

// settable returns the value that a setter sets, and the condition under which the field is present.
func settable(one *field) (value, set string) {
	value, set = "x", "true"
	switch {
	case one.isOpt():
		value, set = "x.V", "x.Set"
	case one.isPointer():
		value, set = "thrift.ValueOf(x)", "x != nil"
	case one.optional(), one.kind == kStruct && one.Requirement != idl.Required:
		set = "x != nil"
	}
	if one.kind == kEnum {
		value = "int32(" + value + ")"
	}
	return value, set
}

// requiredSetter writes the setter of a required struct. As in AppendThrift, nil stands for a
// struct without fields.
func (f *GoFile) requiredSetter(one *field, head, at, view string) {
	f.p("%s {", head)
	f.p("if x == nil {")
	if view != "" {
		f.p("x = new(%s)", view)
		f.p("}")
	} else {
		inner := f.gen.structs[one.Type.Struct()]
		f.p("v.view.SetStruct(%s, new(%s), true)", at, f.qualified(inner.File, inner.view))
		f.p("return")
		f.p("}")
	}
	f.p("v.view.SetStruct(%s, x, true)", at)
	f.p("}")
}
