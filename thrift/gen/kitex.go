package gen

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// With Config.Kitex, types have the names, fields and methods that handlers expect from kitex_gen.
// This file contains the additions for that; the code that reads and writes is the same.

// differs returns the condition that a field differs from its default. A field that equals its
// default is not sent.
func (f *field) differs() string {
	if f.kind == kBinary {
		return "string(p." + f.name + ") != string(" + f.kitex.initial + ")"
	}
	return "p." + f.name + " != " + f.kitex.initial
}

// tag returns the tag of the Go field.
func (f *field) tag() string {
	tag, _ := f.Annotations.Get("go.tag")
	if f.kitex == nil {
		return tag
	}
	if _, ok := reflect.StructTag(tag).Lookup("json"); ok {
		return tag
	}
	name := f.Field.Name
	if f.optional() {
		name += ",omitempty"
	}
	return strings.TrimPrefix(fmt.Sprintf("%s json:%q", tag, name), " ")
}

// member returns the name of the field in JSON: that of its tag, if it has one.
func (f *field) member() string {
	tag, _ := f.Annotations.Get("go.tag")
	if name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ","); name != "" {
		return name
	}
	return f.Field.Name
}

// kitexKind returns the properties of a field in the table.
func (s *structure) kitexKind(one *field) string {
	kind := ""
	switch {
	case one.isPointer():
		kind = "Kind: thrift.FieldPointer, "
	case one.optional() && one.kind >= kBinary && (one.kind > kBinary || one.Default == nil):
		kind = "Kind: thrift.FieldSparse, "
	}
	if !one.optional() {
		kind += "Always: true, "
	}
	if s.hasDefault(one) {
		kind += "Default: true, "
	}
	if _, ok := one.Annotations.Get("api.js_conv"); ok {
		kind += "Strings: true, "
	}
	return kind
}

// kitexMethods writes the constructor of a struct, and the methods that handlers call.
func (f *GoFile) kitexMethods(s *structure) {
	f.p("")
	f.comment(s.newName + " returns a new " + s.name + " with the default values of its fields.")
	if s.hasDefaults() {
		f.p("func %s() *%s {", s.newName, s.name)
		f.p("p := new(%s)", s.name)
		f.p("p.InitDefault()")
		f.p("return p")
		f.p("}")
	} else {
		f.function("func "+s.newName+"() *"+s.name, "return new("+s.name+")")
	}
	f.p("")
	f.comment("InitDefault sets the fields that have defaults.")
	if s.hasDefaults() {
		f.p("func (p *%s) InitDefault() {", s.name)
		for _, one := range s.fields {
			if s.hasDefault(one) {
				f.p("p.%s = %s", one.name, f.pointer(one.Default, one.Type))
			}
		}
		f.p("}")
	} else {
		f.p("func (p *%s) InitDefault() {}", s.name)
	}
	for _, one := range s.fields {
		f.accessors(s, one)
	}
	if s.isUnion() {
		f.p("")
		f.comment("CountSetFields" + s.name + " returns the number of fields that are set.")
		f.p("func (p *%s) CountSetFields%s() int {", s.name, s.name)
		f.p("n := 0")
		for _, one := range s.fields {
			f.p("n += thrift.One(p.%s())", one.kitex.isSet)
		}
		f.p("return n")
		f.p("}")
	}
	if f.gen.config.KeepUnknown {
		f.p("")
		f.comment("CarryingUnknownFields reports whether p has unknown fields.")
		f.p("func (p *%s) CarryingUnknownFields() bool { return len(p.unknown) > 0 }", s.name)
	}
	f.p("")
	f.comment("String returns a readable text of p.")
	f.p("func (p *%s) String() string {", s.name)
	f.p("if p == nil {")
	f.p("return \"<nil>\"")
	f.p("}")
	f.p("return %s.Sprintf(%q, *p)", f.Import("fmt"), s.name+"(%+v)")
	f.p("}")
	if s.Kind == idl.Exception {
		f.p("")
		f.comment("Error implements error.")
		f.p("func (p *%s) Error() string { return p.String() }", s.name)
	}
	f.ofFunction(s)
}

// kitexReset writes Reset. Reset keeps no memory, because handlers may share it.
func (f *GoFile) kitexReset(s *structure) {
	if !s.hasDefaults() {
		f.comment(s.reset + " clears p.")
		f.function("func (p *"+s.name+") "+s.reset+"()", "*p = "+s.name+"{}")
		return
	}
	f.comment(s.reset + " clears p and sets the defaults.")
	f.p("func (p *%s) %s() {", s.name, s.reset)
	f.p("*p = %s{}", s.name)
	f.p("p.InitDefault()")
	f.p("}")
}

// ofFunction writes the methods that Kitex calls for arguments and results of functions.
func (f *GoFile) ofFunction(s *structure) {
	switch s.role {
	case isArgs:
		first := "nil"
		if len(s.fields) > 0 {
			first = "p." + s.fields[0].name
		}
		f.p("")
		f.comment("GetFirstArgument returns the first argument.")
		f.p("func (p *%s) GetFirstArgument() any { return %s }", s.name, first)
	case isResult:
		success := "nil"
		if s.returns {
			success = "p." + s.fields[0].name
		}
		f.p("")
		f.comment("GetResult returns the result of the function.")
		f.p("func (p *%s) GetResult() any { return %s }", s.name, success)
	}
}

// accessors writes the methods of a field.
func (f *GoFile) accessors(s *structure, one *field) {
	a, fieldType, v := one.kitex, f.fieldType(one), "p."+one.name
	value, valueType := v, fieldType
	if one.isPointer() {
		value, valueType = "*"+v, f.goType(one.Type)
	}
	if a.isSet == "" {
		f.p("")
		f.function(fmt.Sprintf("func (p *%s) %s() (v %s)", s.name, a.getter, valueType), "return "+v)
	} else {
		f.p("")
		f.comment(a.initial + " is the value that " + a.getter + " returns if the field is not set.")
		switch {
		case one.Default == nil:
			f.p("var %s %s", a.initial, valueType)
		case one.kind <= kBinary:
			f.p("var %s %s = %s", a.initial, valueType, f.value(one.Default, one.Type))
		default:
			f.p("var %s = %s", a.initial, f.pointer(one.Default, one.Type))
		}
		f.p("")
		f.p("func (p *%s) %s() (v %s) {", s.name, a.getter, valueType)
		f.p("if !p.%s() {", a.isSet)
		f.p("return %s", a.initial)
		f.p("}")
		f.p("return %s", value)
		f.p("}")
		isSet := v + " != nil"
		if one.Default != nil && one.kind <= kBinary {
			isSet = one.differs()
		}
		f.p("")
		f.function(fmt.Sprintf("func (p *%s) %s() bool", s.name, a.isSet), "return "+isSet)
	}
	f.p("")
	if s.returns && one == s.fields[0] {
		f.function(fmt.Sprintf("func (p *%s) %s(x any)", s.name, a.setter), v+" = x.("+fieldType+")")
		return
	}
	f.function(fmt.Sprintf("func (p *%s) %s(val %s)", s.name, a.setter, fieldType), v+" = val")
}

// kitexTypedef writes the constructor of a typedef of a struct.
func (f *GoFile) kitexTypedef(d *idl.Typedef) {
	s := f.gen.structs[d.Type.Struct()]
	if !f.gen.config.Kitex || s == nil {
		return
	}
	name := f.gen.names[d]
	f.p("")
	f.comment(f.pkg.constructors[name] + " returns a new " + name + " with the default values of its fields.")
	f.function("func "+f.pkg.constructors[name]+"() *"+name, "return "+f.qualified(s.File, s.newName)+"()")
}

// kitexEnum writes the functions and methods of an enum.
func (f *GoFile) kitexEnum(d *idl.Enum, name string) {
	f.p("")
	f.comment("String returns the name of the value, or <UNSET> if it has no name.")
	f.p("func (p %s) String() string {", name)
	f.nameCases("p", d, func(v *idl.EnumValue) (when, then string) { return f.gen.names[v], strconv.Quote(v.Name) })
	f.p("return \"<UNSET>\"")
	f.p("}")
	parse := f.pkg.names.pickAsKitex(name + "FromString")
	f.p("")
	f.comment(parse + " returns the value for a name.")
	f.p("func %s(s string) (%s, error) {", parse, name)
	f.nameCases("s", d, func(v *idl.EnumValue) (when, then string) { return strconv.Quote(v.Name), f.gen.names[v] + ", nil" })
	f.p("return 0, %s.New(\"not a valid %s string\")", f.Import("errors"), name)
	f.p("}")
	pointer := f.pkg.names.pickAsKitex(name + "Ptr")
	f.p("")
	f.comment(pointer + " returns a pointer to v.")
	f.p("func %s(v %s) *%s { return &v }", pointer, name, name)
	f.p("")
	f.comment("Scan implements sql.Scanner.")
	f.p("func (p *%s) Scan(value any) error {", name)
	f.p("var n %s.NullInt64", f.Import("database/sql"))
	f.p("err := n.Scan(value)")
	f.p("*p = %s(n.Int64)", name)
	f.p("return err")
	f.p("}")
	f.p("")
	f.comment("Value implements driver.Valuer.")
	f.p("func (p *%s) Value() (%s.Value, error) {", name, f.Import("database/sql/driver"))
	f.p("if p == nil {")
	f.p("return nil, nil")
	f.p("}")
	f.p("return int64(*p), nil")
	f.p("}")
}

// nameCases writes a switch over the values of an enum. If several values have the same number,
// only the first one gets a case.
func (f *GoFile) nameCases(of string, d *idl.Enum, entry func(v *idl.EnumValue) (when, then string)) {
	if len(d.Values) == 0 {
		return
	}
	f.p("switch %s {", of)
	for _, v := range d.Values {
		if of == "p" && d.ByNumber(v.Number) != v {
			continue
		}
		when, then := entry(v)
		f.p("case %s:", when)
		f.p("return %s", then)
	}
	f.p("}")
}

// kitexService writes the interface of the handlers of a service.
func (f *GoFile) kitexService(d *idl.Service) {
	if f.gen.config.Kitex {
		f.handlerInterface(d, f.gen.names[d])
	}
}

// kitexConstant writes a constant: as a Go constant if its type allows it, otherwise as a variable.
func (f *GoFile) kitexConstant(d *idl.Const, name string, k kind) {
	f.p("")
	f.doc(d.Info())
	if (k < kUUID || k == kEnum || k == kString) && !isNegativeZero(d.Value, d.Type) {
		f.p("const %s = %s", name, f.untyped(d.Value, d.Type))
		return
	}
	f.valueLines("var "+name+" = ", d.Value, d.Type)
}

// untyped returns the value of a constant as Kitex's tool writes it. It is typed only if it is an
// integer or an enum that is given by the name of another constant.
func (f *GoFile) untyped(v *idl.Value, t *idl.Type) string {
	k := kindOf(t)
	name := ""
	switch {
	case v.Const != nil && kindOf(v.Const.Type) == k:
		name = f.NameOf(v.Const)
	case v.Kind == idl.NameValue && v.EnumValue != nil:
		name = f.qualified(v.EnumValue.Enum.File, f.gen.names[v.EnumValue])
	}
	lit := v.Literal()
	switch {
	case k == kString && name == "":
		return f.quote(v)
	case k == kBool && v.Const == nil || name == "" && k == kBool:
		return strconv.FormatBool(integer(lit) != 0)
	case k >= kI8 && k <= kI64 && name != "":
		return f.goType(t) + "(" + name + ")"
	case name != "":
		return name
	case k == kDouble && lit.Kind == idl.DoubleValue:
		return fmt.Sprint(lit.Double)
	case k == kDouble:
		return strconv.FormatInt(integer(lit), 10) + ".0"
	}
	return strconv.FormatInt(integer(lit), 10)
}
