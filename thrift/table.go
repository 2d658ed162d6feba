package thrift

import (
	"strconv"
	"strings"
	"unsafe"
)

// Table describes structs for methods that do not need generated code: String, Equal, Copy and
// JSON. It is static data: nothing runs when a program starts.
//
// Generated code has one table for each IDL file. A struct at index 3 in the table named
// tableOfShop has these methods:
//
//	func (p *Order) ThriftTable() (*thrift.Table, int) { return &tableOfShop, 3 }
//	func (p *Order) String() string { return tableOfShop.String(unsafe.Pointer(p), 3) }
//	func (p *Order) Equal(q *Order) bool { return tableOfShop.Equal(unsafe.Pointer(p), unsafe.Pointer(q), 3) }
//	func (p *Order) Copy() *Order // returns nil if p is nil; otherwise calls Table.Copy with a new Order
//
// and, with the option for JSON:
//
//	func (p *Order) AppendJSON(b []byte, o thrift.JSON) ([]byte, error) {
//		return tableOfShop.AppendJSON(b, unsafe.Pointer(p), 3, o)
//	}
//	func (p *Order) ReadJSON(r *thrift.Reader, b []byte) error {
//		return tableOfShop.ReadJSON(r, b, unsafe.Pointer(p), 3)
//	}
//	func (p *Order) MarshalJSON() ([]byte, error) {
//		return tableOfShop.AppendJSON(nil, unsafe.Pointer(p), 3, thrift.JSON{})
//	}
//	func (p *Order) UnmarshalJSON(b []byte) error { return tableOfShop.FromJSON(b, unsafe.Pointer(p), 3) }
type Table struct {
	Structs []StructInfo
	// Kitex selects the JSON of Kitex's generic calls: see [JSON].
	Kitex bool
}

// Described is a Struct that has a table. Errors then contain the names of its fields.
type Described interface {
	// ThriftTable returns the table and the index of the struct in it.
	ThriftTable() (t *Table, index int)
}

// StructInfo describes a struct.
type StructInfo struct {
	Name string
	Size uintptr
	// New makes n structs and returns the address of the first one: NewOf[T].
	New    func(n int) unsafe.Pointer
	Fields []FieldInfo
	// HasUnknown reports whether the struct has a field of type Unknown at offset Unknown.
	HasUnknown bool
	Unknown    uintptr
	// Union requires exactly one field to be present when JSON is read.
	Union bool
	// Reset, if not nil, is called before JSON is read into a new struct or into any union:
	// ResetOf[T]. Structs with default values and unions need it.
	Reset func(p unsafe.Pointer)
}

// FieldKind says when a field is absent.
type FieldKind uint8

// Kinds of fields. Fields that are structs are pointers, and always sparse.
const (
	FieldPlain   FieldKind = iota // The field is never absent.
	FieldOpt                      // The field is an Opt, absent if it is not set.
	FieldSparse                   // The field is absent if it is nil.
	FieldPointer                  // The field is a pointer to a scalar or a string, absent if it is nil.
)

// FieldInfo describes a field.
type FieldInfo struct {
	Name   string
	ID     uint16
	Kind   FieldKind
	Offset uintptr
	Type   *TypeInfo
	// Required requires the field to be present when JSON is read.
	Required bool

	// The following fields are for tables with Kitex. Always is set if the field is not optional,
	// Default if it has a default value in new structs, and Strings if its values of type i64 are
	// written as strings.
	Always, Default, Strings bool
}

// TypeInfo describes the type of a value.
type TypeInfo struct {
	Wire   byte
	Binary bool    // The value is a []byte in Go, not a string.
	Size   uintptr // The size in Go; unused for structs.
	// Base64 is set for a binary that is a string in Go, such as the key of a map.
	Base64 bool
	// Enum, set for enums, returns the text of a value: its name, or its number if it has no name.
	// Parse is the inverse, for JSON: EnumValue[T].
	Enum  func(v int32) string
	Parse func(text string) (int32, error)
	// Elem is the type of the elements of a list or set, or of the values of a map; Key is the
	// type of its keys.
	Key, Elem *TypeInfo
	// New makes n elements of a list or set: NewOf[T]. Lists of structs do not need it.
	New func(n int) unsafe.Pointer
	// Map gives access to a map: MapOf[K, V].
	Map func(p unsafe.Pointer) MapAccess
	// Struct is the index of a struct in Table or, if Table is nil, in the table that contains this
	// TypeInfo. The initializer of a Go variable cannot refer to the variable, so structs refer to
	// each other by index.
	Struct int
	Table  *Table
	// Pointer is set for a struct in a container if the element is a pointer.
	Pointer bool
	// Member is set for a double that is a key of a map whose JSON is an object.
	Member bool
}

// Types that are described completely by their kind.
var (
	InfoBool   = TypeInfo{Wire: TypeBool, Size: 1}
	InfoI8     = TypeInfo{Wire: TypeI8, Size: 1}
	InfoI16    = TypeInfo{Wire: TypeI16, Size: 2}
	InfoI32    = TypeInfo{Wire: TypeI32, Size: 4}
	InfoI64    = TypeInfo{Wire: TypeI64, Size: 8}
	InfoDouble = TypeInfo{Wire: TypeDouble, Size: 8}
	InfoUUID   = TypeInfo{Wire: TypeUUID, Size: 16}
	InfoString = TypeInfo{Wire: TypeString, Size: unsafe.Sizeof("")}
	InfoBinary = TypeInfo{Wire: TypeString, Binary: true, Size: unsafe.Sizeof([]byte(nil))}

	// InfoBinaryKey is a binary that is a key of a map, and therefore a string in Go.
	InfoBinaryKey = TypeInfo{Wire: TypeString, Base64: true, Size: unsafe.Sizeof("")}

	// InfoWideEnum is an enum of 64 bits, whose JSON is a number. InfoDoubleKey is a key whose
	// JSON is the name of a member.
	InfoWideEnum  = TypeInfo{Wire: TypeI32, Size: 8}
	InfoDoubleKey = TypeInfo{Wire: TypeDouble, Size: 8, Member: true}

	InfoI64s      = TypeInfo{Wire: TypeList, Size: SizeOfList, Elem: &InfoI64, New: NewOf[int64]}
	InfoStrings   = TypeInfo{Wire: TypeList, Size: SizeOfList, Elem: &InfoString, New: NewOf[string]}
	InfoStringSet = TypeInfo{Wire: TypeSet, Size: SizeOfList, Elem: &InfoString, New: NewOf[string]}
	InfoStringMap = TypeInfo{Wire: TypeMap, Size: SizeOfMap, Key: &InfoString, Elem: &InfoString, Map: MapOf[string, string]}
)

// Sizes of containers in Go.
const (
	SizeOfList = unsafe.Sizeof([]byte(nil))
	SizeOfMap  = unsafe.Sizeof(uintptr(0))
)

// NewOf makes n values of type T and returns the address of the first one.
func NewOf[T any](n int) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(make([]T, n))) }

// EnumValue returns the value of the enum T for a text, as UnmarshalText parses it.
func EnumValue[T ~int32, P interface {
	*T
	UnmarshalText(text []byte) error
}](text string) (int32, error) {
	var v T
	err := P(&v).UnmarshalText([]byte(text))
	return int32(v), err
}

// ResetOf resets the value at p.
func ResetOf[T any, P interface {
	*T
	Reset()
}](p unsafe.Pointer) {
	P(p).Reset()
}

// MapAccess gives access to a map whose type is not known.
type MapAccess interface {
	length() int
	isNil() bool
	alloc(n int)
	put(k, v unsafe.Pointer)
	putCopy(k unsafe.Pointer, copy func(to unsafe.Pointer))
	get(k unsafe.Pointer) unsafe.Pointer
	each(f func(k, v unsafe.Pointer) bool)
}

// MapOf gives access to the map at p.
func MapOf[K comparable, V any](p unsafe.Pointer) MapAccess { return (*mapOf[K, V])(p) }

type mapOf[K comparable, V any] map[K]V

func (m *mapOf[K, V]) length() int             { return len(*m) }
func (m *mapOf[K, V]) isNil() bool             { return *m == nil }
func (m *mapOf[K, V]) alloc(n int)             { *m = make(map[K]V, n) }
func (m *mapOf[K, V]) put(k, v unsafe.Pointer) { (*m)[*(*K)(k)] = *(*V)(v) }

// putCopy adds an entry whose value is written by copy.
func (m *mapOf[K, V]) putCopy(k unsafe.Pointer, copy func(to unsafe.Pointer)) {
	var v V
	copy(unsafe.Pointer(&v))
	(*m)[*(*K)(k)] = v
}

func (m *mapOf[K, V]) get(k unsafe.Pointer) unsafe.Pointer {
	if v, ok := (*m)[*(*K)(k)]; ok {
		return unsafe.Pointer(&v)
	}
	return nil
}

func (m *mapOf[K, V]) each(f func(k, v unsafe.Pointer) bool) {
	for k, v := range *m {
		if !f(unsafe.Pointer(&k), unsafe.Pointer(&v)) {
			return
		}
	}
}

// header is the memory layout of a slice.
type header struct {
	data     unsafe.Pointer
	len, cap int
}

// elem returns the address of an element.
func (h *header) elem(i int, size uintptr) unsafe.Pointer {
	return unsafe.Add(h.data, uintptr(i)*size)
}

// present reports whether the field at address p is present.
func (f *FieldInfo) present(p unsafe.Pointer) bool {
	switch {
	case f.Type.Wire == TypeStruct || f.Kind == FieldSparse || f.Kind == FieldPointer:
		return *(*unsafe.Pointer)(p) != nil
	case f.Kind == FieldOpt:
		return *(*bool)(unsafe.Add(p, f.Type.Size))
	}
	return true
}

// value returns the address of the value of a present field. Fields that are structs are pointers.
func (f *FieldInfo) value(p unsafe.Pointer) unsafe.Pointer {
	if f.Type.Wire == TypeStruct || f.Kind == FieldPointer {
		return *(*unsafe.Pointer)(p)
	}
	return p
}

// table returns the table that contains the struct type ti. t is the table that contains ti.
func (ti *TypeInfo) table(t *Table) *Table {
	if ti.Table != nil {
		return ti.Table
	}
	return t
}

// sizeOf returns the size of an element in Go.
func (t *Table) sizeOf(ti *TypeInfo) uintptr {
	switch {
	case ti.Pointer:
		return unsafe.Sizeof(unsafe.Pointer(nil))
	case ti.Wire == TypeStruct:
		return ti.table(t).Structs[ti.Struct].Size
	}
	return ti.Size
}

// names returns the path with the names of fields in place of their IDs. The path begins in the
// struct at index. Fields that are not in the table keep their IDs.
func (t *Table) names(path string, index int) string {
	var b strings.Builder
	at := &TypeInfo{Wire: TypeStruct, Struct: index}
	for path != "" {
		end := 1 + strings.IndexAny(path[1:], ".[")
		if end == 0 {
			end = len(path)
		}
		step := path[:end]
		path = path[end:]
		name := strings.TrimPrefix(step, ".")
		switch {
		case at == nil:
		case step[0] == '[':
			if at.Wire != TypeMap {
				at = at.Elem
			}
		case name == "key":
			at = at.Key
		case name == "value":
			at = at.Elem
		case at.Wire != TypeStruct: // The type in the input differs from the declared one.
			at = nil
		default:
			t = at.table(t)
			name, at = t.field(name, at.Struct)
			if b.Len() > 0 {
				step = "." + name
			} else {
				step = name
			}
		}
		b.WriteString(step)
	}
	return b.String()
}

// field returns the name and the type of the field with the given ID. If there is none, it returns
// the ID and nil.
func (t *Table) field(id string, index int) (string, *TypeInfo) {
	n, _ := strconv.Atoi(id)
	fields := t.Structs[index].Fields
	for i := range fields {
		if fields[i].ID == uint16(n) {
			return fields[i].Name, fields[i].Type
		}
	}
	return id, nil
}
