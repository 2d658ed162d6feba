package gen

import (
	"fmt"
	"strings"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// hasTable reports whether an option needs the table.
func (c *Config) hasTable() bool { return c.Equal || c.JSON }

// tableMethods writes the methods that walk the table.
func (f *GoFile) tableMethods(s *structure) {
	f.std("unsafe")
	f.p("")
	f.comment("ThriftTable implements thrift.Described.")
	f.function("func (p *"+s.name+") ThriftTable() (*thrift.Table, int)", fmt.Sprintf("return &%s, %d", f.table, s.index))
	if f.gen.config.Equal {
		f.equalMethods(s)
	}
	if f.gen.config.JSON {
		f.jsonMethods(s)
	}
}

func (f *GoFile) equalMethods(s *structure) {
	f.p("")
	f.comment("Equal reports whether p and q are equal. The order of sets does not matter.")
	f.p("func (p *%s) Equal(q *%s) bool {", s.name, s.name)
	f.p("return %s.Equal(unsafe.Pointer(p), unsafe.Pointer(q), %d)", f.table, s.index)
	f.p("}")
	f.p("")
	f.comment("Copy returns a copy of p that shares only strings with it.")
	f.p("func (p *%s) Copy() *%s {", s.name, s.name)
	f.p("if p == nil {")
	f.p("return nil")
	f.p("}")
	f.p("q := new(%s)", s.name)
	f.p("%s.Copy(unsafe.Pointer(q), unsafe.Pointer(p), %d)", f.table, s.index)
	f.p("return q")
	f.p("}")
	f.p("")
	f.comment("String returns a readable text of p.")
	f.function("func (p *"+s.name+") String() string", fmt.Sprintf("return %s.String(unsafe.Pointer(p), %d)", f.table, s.index))
}

func (f *GoFile) jsonMethods(s *structure) {
	f.p("")
	f.comment("AppendJSON implements thrift.JSONStruct.")
	f.p("func (p *%s) AppendJSON(b []byte, o thrift.JSON) ([]byte, error) {", s.name)
	f.p("return %s.AppendJSON(b, unsafe.Pointer(p), %d, o)", f.table, s.index)
	f.p("}")
	f.p("")
	f.comment("ReadJSON implements thrift.JSONStruct.")
	f.p("func (p *%s) ReadJSON(r *thrift.Reader, b []byte) error {", s.name)
	f.p("return %s.ReadJSON(r, b, unsafe.Pointer(p), %d)", f.table, s.index)
	f.p("}")
	f.p("")
	f.comment("MarshalJSON implements json.Marshaler.")
	f.p("func (p *%s) MarshalJSON() ([]byte, error) {", s.name)
	order := ""
	if f.gen.config.SortedKeys {
		order = "SortedKeys: true"
	}
	f.p("return %s.AppendJSON(nil, unsafe.Pointer(p), %d, thrift.JSON{%s})", f.table, s.index, order)
	f.p("}")
	f.p("")
	f.comment("UnmarshalJSON implements json.Unmarshaler.")
	f.function("func (p *"+s.name+") UnmarshalJSON(b []byte) error", fmt.Sprintf("return %s.FromJSON(b, unsafe.Pointer(p), %d)", f.table, s.index))
}

// writeTable writes the table of the structs of the file.
func (f *GoFile) writeTable() {
	var body text
	body.indent = 1
	for _, s := range f.structs {
		body.p("{")
		head := fmt.Sprintf("Name: %q, Size: unsafe.Sizeof(%s{}), New: thrift.NewOf[%s],", s.Struct.Name, s.name, s.name)
		if f.gen.config.KeepUnknown {
			head += fmt.Sprintf(" HasUnknown: true, Unknown: unsafe.Offsetof(%s{}.unknown),", s.name)
		}
		if s.isUnion() {
			head += " Union: true,"
		}
		if s.isUnion() || s.hasDefaults() {
			if s.reset == "Reset" {
				head += fmt.Sprintf(" Reset: thrift.ResetOf[%s],", s.name)
			} else {
				head += fmt.Sprintf(" Reset: func(p unsafe.Pointer) { (*%s)(p).%s() },", s.name, s.reset)
			}
		}
		body.p("%s", head)
		if len(s.fields) > 0 {
			body.p("Fields: []thrift.FieldInfo{")
			for _, one := range s.fields {
				kind := ""
				switch {
				case one.isOpt():
					kind = "Kind: thrift.FieldOpt, "
				case one.isPointer():
					kind = "Kind: thrift.FieldPointer, "
				case one.optional() && one.kind != kStruct:
					kind = "Kind: thrift.FieldSparse, "
				}
				name := one.Field.Name
				if f.gen.config.Kitex {
					name, kind = one.member(), s.kitexKind(one)
				} else if one.Requirement == idl.Required {
					kind += "Required: true, "
				}
				body.p("{Name: %q, ID: %d, %sOffset: unsafe.Offsetof(%s{}.%s), Type: &%s},", name, one.id(), kind, s.name, one.name, f.info(one.Type))
			}
			body.p("},")
		}
		body.p("},")
	}
	f.p("")
	f.comment(f.table + " describes the structs of " + docName(f.IDL.Name) + ".")
	kitex := ""
	if f.gen.config.Kitex {
		kitex = "Kitex: true, "
	}
	f.p("var %s = thrift.Table{%sStructs: []thrift.StructInfo{", f.table, kitex)
	f.out.WriteString(body.out.String())
	f.p("}}")
	f.flush()
}

// docName returns the name of an IDL file for a comment.
func docName(name string) string { return clean(name) + ".thrift" }

// info returns the name of the variable that describes a type.
func (f *GoFile) info(t *idl.Type) string {
	t = t.True()
	k := kindOf(t)
	if k <= kBinary && k != kEnum {
		return "thrift.Info" + shapes[k].info
	}
	if k == kEnum && f.gen.config.Kitex {
		return "thrift.InfoWideEnum"
	}
	return f.infoVariable(f.gen.typeKey(t), "info"+f.shortName(t), func() string { return f.infoValue(t) })
}

// elemInfo is info for an element of a list or a set, or a value of a map.
func (f *GoFile) elemInfo(t *idl.Type) string {
	if !f.hasPointers(t) {
		return f.info(t)
	}
	t = t.True()
	return f.infoVariable("*"+f.gen.typeKey(t), "infoPointer"+f.shortName(t), func() string {
		return strings.TrimSuffix(f.infoValue(t), "}") + ", Pointer: true}"
	})
}

// infoVariable returns the name of a variable, and adds it to those to be written.
func (f *GoFile) infoVariable(key, name string, value func() string) string {
	if name, known := f.infos[key]; known {
		return name
	}
	name = f.pkg.names.pick(name)
	f.infos[key] = name
	f.pending = append(f.pending, func() {
		f.p("")
		f.p("var %s = %s", name, value())
	})
	return name
}

// infoValue returns the description of a type.
func (f *GoFile) infoValue(t *idl.Type) string {
	switch kindOf(t) {
	case kEnum:
		name := f.goType(t)
		return fmt.Sprintf("thrift.TypeInfo{Wire: thrift.TypeI32, Size: 4, Enum: thrift.EnumText[%s], Parse: thrift.EnumValue[%s]}", name, name)
	case kStruct:
		s := f.gen.structs[t.Struct()]
		if s.file == f {
			return fmt.Sprintf("thrift.TypeInfo{Wire: thrift.TypeStruct, Struct: %d}", s.index)
		}
		return fmt.Sprintf("thrift.TypeInfo{Wire: thrift.TypeStruct, Struct: %d, Table: &%s}", s.index, f.qualified(s.File, s.file.table))
	case kList:
		if kindOf(t.Elem) == kStruct {
			return fmt.Sprintf("thrift.TypeInfo{Wire: %s, Size: thrift.SizeOfList, Elem: &%s}", wire(t), f.elemInfo(t.Elem))
		}
		return fmt.Sprintf("thrift.TypeInfo{Wire: %s, Size: thrift.SizeOfList, Elem: &%s, New: thrift.NewOf[%s]}", wire(t), f.info(t.Elem), f.goType(t.Elem))
	}
	size, access := "thrift.SizeOfMap", "MapOf"
	key := f.info(t.Key)
	switch k := kindOf(t.Key); {
	case k == kBinary:
		key = "thrift.InfoBinaryKey"
	case k == kDouble && f.gen.config.Kitex:
		key = "thrift.InfoDoubleKey"
	}
	if isEntries(t) {
		size, access = "thrift.SizeOfList", "EntriesOf"
	}
	return fmt.Sprintf("thrift.TypeInfo{Wire: thrift.TypeMap, Size: %s, Key: &%s, Elem: &%s, Map: thrift.%s[%s, %s]}",
		size, key, f.elemInfo(t.Elem), access, f.keyType(t.Key), f.elemType(t.Elem))
}
