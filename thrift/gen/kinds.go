package gen

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// kind is the property of a type that determines its code.
type kind uint8

const (
	kBool kind = iota
	kI8
	kI16
	kI32
	kI64
	kDouble
	kUUID
	kEnum
	kString
	kBinary
	kStruct
	kList // and sets: they differ only in the type of the field
	kMap
)

// shape is how a kind is encoded: the functions of the runtime that generated code calls. Those for
// lists are for lists with elements of the kind. %s stands for a value, or for the address to which
// a value is read.
type shape struct {
	goType        string
	wire, compact string // constants of the runtime without their prefix
	size          int    // in the Binary protocol, if it is fixed
	least         int    // the minimum size in the Binary protocol

	put, append, read, putList, readList                 string
	compactAppend, compactRead, compactList, compactInto string
	info                                                 string
}

var shapes = [...]shape{
	kBool: {"bool", "TypeBool", "CompactTypeBool", 1, 1,
		"thrift.PutBool(b, n, %d, %s)", "thrift.AppendBool(b, %s)", "thrift.ReadBool(b, off, %s)", "thrift.PutBools(b, n, %s)", "r.Bools(b, off, %s)",
		"thrift.AppendCompactBool(b, %s)", "thrift.ReadCompactBool(b, off, %s)", "thrift.AppendCompactBools(b, %s)", "r.CompactBools(b, off, %s)", "Bool"},
	kI8: {"int8", "TypeI8", "CompactTypeI8", 1, 1,
		"thrift.PutI8(b, n, %d, %s)", "thrift.AppendI8(b, %s)", "thrift.ReadI8(b, off, %s)", "thrift.PutI8s(b, n, %s)", "r.I8s(b, off, %s)",
		"thrift.AppendI8(b, %s)", "thrift.ReadI8(b, off, %s)", "thrift.AppendCompactI8s(b, %s)", "r.CompactI8s(b, off, %s)", "I8"},
	kI16: {"int16", "TypeI16", "CompactTypeI16", 2, 2,
		"thrift.PutI16(b, n, %d, %s)", "thrift.AppendI16(b, %s)", "thrift.ReadI16(b, off, %s)", "thrift.PutI16s(b, n, %s)", "r.I16s(b, off, %s)",
		"thrift.AppendCompactInt(b, %s)", "thrift.CompactInt(r, b, off, %s)",
		"thrift.AppendCompactInts(b, thrift.CompactTypeI16, %s)", "thrift.CompactInts(r, b, off, thrift.CompactTypeI16, %s)", "I16"},
	kI32: {"int32", "TypeI32", "CompactTypeI32", 4, 4,
		"thrift.PutI32(b, n, %d, %s)", "thrift.AppendI32(b, %s)", "thrift.ReadI32(b, off, %s)", "thrift.PutI32s(b, n, %s)", "thrift.ReadI32s(r, b, off, %s)",
		"thrift.AppendCompactInt(b, %s)", "thrift.CompactInt(r, b, off, %s)",
		"thrift.AppendCompactInts(b, thrift.CompactTypeI32, %s)", "thrift.CompactInts(r, b, off, thrift.CompactTypeI32, %s)", "I32"},
	kI64: {"int64", "TypeI64", "CompactTypeI64", 8, 8,
		"thrift.PutI64(b, n, %d, %s)", "thrift.AppendI64(b, %s)", "thrift.ReadI64(b, off, %s)", "thrift.PutI64s(b, n, %s)", "r.I64s(b, off, %s)",
		"thrift.AppendCompactInt(b, %s)", "thrift.CompactInt(r, b, off, %s)",
		"thrift.AppendCompactInts(b, thrift.CompactTypeI64, %s)", "thrift.CompactInts(r, b, off, thrift.CompactTypeI64, %s)", "I64"},
	kDouble: {"float64", "TypeDouble", "CompactTypeDouble", 8, 8,
		"thrift.PutDouble(b, n, %d, %s)", "thrift.AppendDouble(b, %s)", "thrift.ReadDouble(b, off, %s)", "thrift.PutDoubles(b, n, %s)", "r.Doubles(b, off, %s)",
		"thrift.AppendCompactDouble(b, %s)", "thrift.ReadCompactDouble(b, off, %s)", "thrift.AppendCompactDoubles(b, %s)", "r.CompactDoubles(b, off, %s)", "Double"},
	kUUID: {"thrift.UUID", "TypeUUID", "CompactTypeUUID", 16, 16,
		"thrift.PutUUID(b, n, %d, %s)", "thrift.AppendUUID(b, %s)", "thrift.ReadUUID(b, off, %s)", "thrift.PutUUIDs(b, n, %s)", "r.UUIDs(b, off, %s)",
		"thrift.AppendUUID(b, %s)", "thrift.ReadUUID(b, off, %s)", "thrift.AppendCompactUUIDs(b, %s)", "r.CompactUUIDs(b, off, %s)", "UUID"},
	kEnum: {"", "TypeI32", "CompactTypeI32", 4, 4,
		"thrift.PutI32(b, n, %d, int32(%s))", "thrift.AppendI32(b, int32(%s))", "thrift.ReadI32(b, off, %s)", "thrift.PutI32s(b, n, %s)", "thrift.ReadI32s(r, b, off, %s)",
		"thrift.AppendCompactInt(b, %s)", "thrift.CompactInt(r, b, off, %s)",
		"thrift.AppendCompactInts(b, thrift.CompactTypeI32, %s)", "thrift.CompactInts(r, b, off, thrift.CompactTypeI32, %s)", ""},
	kString: {"string", "TypeString", "CompactTypeString", 0, 4,
		"", "thrift.AppendString(b, %s)", "r.String(b, off, %s)", "", "r.Strings(b, off, %s)",
		"thrift.AppendCompactString(b, %s)", "r.CompactString(b, off, %s)", "thrift.AppendCompactStrings(b, %s)", "r.CompactStrings(b, off, %s)", "String"},
	kBinary: {"[]byte", "TypeString", "CompactTypeString", 0, 4,
		"", "thrift.AppendString(b, %s)", "r.Binary(b, off, %s)", "", "r.Binaries(b, off, %s)",
		"thrift.AppendCompactString(b, %s)", "r.CompactBinary(b, off, %s)", "thrift.AppendCompactStrings(b, %s)", "r.CompactBinaries(b, off, %s)", "Binary"},
	kStruct: {wire: "TypeStruct", compact: "CompactTypeStruct", least: 1},
	kList:   {wire: "TypeList", compact: "CompactTypeList", least: 5},
	kMap:    {wire: "TypeMap", compact: "CompactTypeMap", least: 6},
}

// wideEnum is the shape of an enum whose Go type has 64 bits.
var wideEnum = shape{"", "TypeI32", "CompactTypeI32", 4, 4,
	"thrift.PutI32(b, n, %d, int32(%s))", "thrift.AppendI32(b, int32(%s))", "thrift.ReadWideEnum(b, off, %s)", "thrift.PutWideEnums(b, n, %s)", "thrift.ReadWideEnums(r, b, off, %s)",
	"thrift.AppendCompactInt(b, int32(%s))", "thrift.CompactWideEnum(r, b, off, %s)", "thrift.AppendCompactWideEnums(b, %s)", "thrift.CompactWideEnums(r, b, off, %s)", ""}

// shape returns the shape of a kind.
func (f *GoFile) shape(k kind) *shape {
	if k == kEnum && f.gen.config.Kitex {
		return &wideEnum
	}
	return &shapes[k]
}

func kindOf(t *idl.Type) kind {
	t = t.True()
	switch t.Kind {
	case idl.Bool:
		return kBool
	case idl.I8:
		return kI8
	case idl.I16:
		return kI16
	case idl.I32:
		return kI32
	case idl.I64:
		return kI64
	case idl.Double:
		return kDouble
	case idl.UUID:
		return kUUID
	case idl.String:
		return kString
	case idl.Binary:
		return kBinary
	case idl.List, idl.Set:
		return kList
	case idl.Map:
		return kMap
	}
	if t.Enum() != nil {
		return kEnum
	}
	return kStruct
}

// wire returns the constant of the type of a field or an element.
func wire(t *idl.Type) string {
	if t.True().Kind == idl.Set {
		return "thrift.TypeSet"
	}
	return "thrift." + shapes[kindOf(t)].wire
}

func compactWire(t *idl.Type) string {
	if t.True().Kind == idl.Set {
		return "thrift.CompactTypeSet"
	}
	return "thrift." + shapes[kindOf(t)].compact
}

// fixedSize returns the size of a value in the Binary protocol, or 0 if it is not fixed.
func fixedSize(t *idl.Type) int { return shapes[kindOf(t)].size }

// isEntries reports whether a map is a slice of entries, because Go cannot compare its keys.
func isEntries(t *idl.Type) bool {
	t = t.True()
	return t.Kind == idl.Map && kindOf(t.Key) >= kStruct
}

// isStringMap reports whether a map has strings as keys and values, for which the runtime has
// functions.
func isStringMap(t *idl.Type) bool {
	t = t.True()
	if t.Kind != idl.Map {
		return false
	}
	k := kindOf(t.Key)
	return (k == kString || k == kBinary) && kindOf(t.Elem) == kString
}

// isComplex reports whether a container needs its own functions, because the runtime has none for
// it.
func isComplex(t *idl.Type) bool {
	switch t = t.True(); kindOf(t) {
	case kList:
		return kindOf(t.Elem) >= kStruct
	case kMap:
		return !isStringMap(t)
	}
	return false
}

// hasStruct reports whether values of a type contain structs, so that reading them needs the depth.
func hasStruct(t *idl.Type) bool {
	switch t = t.True(); kindOf(t) {
	case kStruct:
		return true
	case kList:
		return hasStruct(t.Elem)
	case kMap:
		return hasStruct(t.Key) || hasStruct(t.Elem)
	}
	return false
}

// goType returns the Go type of an element. It uses the names of typedefs.
func (f *GoFile) goType(t *idl.Type) string {
	if t.Decl != nil {
		return f.NameOf(t.Decl)
	}
	switch t.Kind {
	case idl.List, idl.Set:
		return "[]" + f.elemType(t.Elem)
	case idl.Map:
		key := f.keyType(t.Key)
		if isEntries(t) {
			f.std(runtimePath)
			return "[]thrift.Entry[" + key + ", " + f.elemType(t.Elem) + "]"
		}
		return "map[" + key + "]" + f.elemType(t.Elem)
	case idl.UUID:
		f.std(runtimePath)
	}
	return shapes[kindOf(t)].goType
}

// elemType is goType for an element of a list or a set, or a value of a map.
func (f *GoFile) elemType(t *idl.Type) string {
	if f.hasPointers(t) {
		return "*" + f.goType(t)
	}
	return f.goType(t)
}

// hasPointers reports whether elements of a type are pointers.
func (f *GoFile) hasPointers(elem *idl.Type) bool {
	return f.gen.config.Kitex && kindOf(elem) == kStruct
}

// keyType is goType for the key of a map: a binary is a string there.
func (f *GoFile) keyType(t *idl.Type) string {
	if kindOf(t) == kBinary {
		return "string"
	}
	return f.goType(t)
}

// shortName returns a name for a type as a part of the names of functions, such as
// MapI32ListStatus. It is shortened if it is long.
func (f *GoFile) shortName(t *idl.Type) string {
	const maxName = 60
	name := ""
	t = t.True()
	switch k := kindOf(t); k {
	case kList:
		name = "List" + f.shortName(t.Elem)
		if t.Kind == idl.Set {
			name = "Set" + name[len("List"):]
		}
	case kMap:
		name = "Map" + f.shortName(t.Key) + f.shortName(t.Elem)
	case kEnum, kStruct:
		pkg := f.gen.files[fileOf(t.Decl)].pkg
		if name = f.gen.names[t.Decl]; pkg != f.pkg {
			name = strings.ToUpper(pkg.name[:1]) + pkg.name[1:] + name
		}
	default:
		name = shapes[k].info
	}
	return name[:min(len(name), maxName)]
}

// typeKey returns a text that is the same for identical types.
func (g *generator) typeKey(t *idl.Type) string {
	t = t.True()
	if key := g.keys[t]; key != "" {
		return key
	}
	key := ""
	switch t.Kind {
	case idl.List:
		key = "[" + g.typeKey(t.Elem) + "]"
	case idl.Set:
		key = "<" + g.typeKey(t.Elem) + ">"
	case idl.Map:
		key = "{" + g.typeKey(t.Key) + ":" + g.typeKey(t.Elem) + "}"
	case idl.Named:
		n := len(g.numbers) // Names may be long, so they are replaced by numbers.
		if known, ok := g.numbers[t.Decl]; ok {
			n = known
		}
		g.numbers[t.Decl] = n
		key = "#" + strconv.Itoa(n)
	default:
		key = t.Kind.String()
	}
	g.keys[t] = key
	return key
}

// checkTypes reports types that are too large for the Go compiler, alone or as the types of many
// fields: with typedefs, a few lines can declare a map with an astronomical number of parts.
func (g *generator) checkTypes() {
	const maxParts = 100
	parts := make(map[*idl.Type]int)
	var count func(t *idl.Type) int
	count = func(t *idl.Type) int {
		t = t.True()
		if n := parts[t]; n > 0 {
			return n
		}
		n := 1
		for _, part := range []*idl.Type{t.Key, t.Elem} {
			if part != nil {
				n = min(n+count(part), maxParts+1)
			}
		}
		parts[t] = n
		return n
	}
	check := func(f *idl.File, t *idl.Type) {
		if t.Kind != idl.Void && count(t) > maxParts {
			g.errorf(f, t.Pos, "%s is a type of more than %d types: Go could not compile it", t.String(), maxParts)
		}
	}
	for _, file := range g.order {
		for _, d := range file.IDL.Decls {
			switch d := d.(type) {
			case *idl.Const:
				check(file.IDL, d.Type)
			case *idl.Typedef:
				check(file.IDL, d.Type)
			}
		}
		for _, s := range file.structs {
			for _, one := range s.fields {
				check(file.IDL, one.Type)
			}
		}
	}
}

// leastSize returns the minimum size of a value in the Binary protocol.
func (g *generator) leastSize(t *idl.Type) int {
	if s := t.Struct(); s != nil {
		return g.structs[s].least
	}
	return shapes[kindOf(t)].least
}

// address returns the address of a variable.
func address(variable string) string {
	if strings.HasPrefix(variable, "*") {
		return variable[1:]
	}
	return "&" + variable
}

// sized is a size: a number, and terms that depend on values.
type sized struct {
	n     int
	terms []string
}

func (s *sized) add(n int, term string, args ...any) {
	s.n += n
	if term != "" {
		s.terms = append(s.terms, fmt.Sprintf(term, args...))
	}
}

// sum returns the size as an expression. A single product has spaces around its operator, as in
// gofmt.
func (s *sized) sum() string {
	all := s.terms
	if s.n != 0 || len(all) == 0 {
		all = append([]string{strconv.Itoa(s.n)}, all...)
	}
	if len(all) == 1 {
		return strings.Replace(all[0], "*", " * ", 1)
	}
	return strings.Join(all, " + ")
}
