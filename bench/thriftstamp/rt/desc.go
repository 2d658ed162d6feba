package rt

import "unsafe"

// File describes the structs of one IDL file. It is static data, so nothing runs when the program
// starts.
type File struct {
	Structs []StructDesc
}

// StructDesc describes a struct and its Go type.
type StructDesc struct {
	Name   string
	Size   uintptr
	Least  int    // the smallest encoding
	Needed uint64 // a bit for the index of each required field
	New    func(n int) unsafe.Pointer
	Zero   any // A nil pointer to the Go type.
	Fields []Field
}

// Field describes a field. Type refers to structs by their index in the file, because a Go variable
// cannot refer to itself.
type Field struct {
	Name   string
	ID     uint16
	Opt    bool // In Go, an Opt.
	Sparse bool // Absent if nil.
	Offset uintptr
	Type   *Type
}

// Type describes the type of a value.
type Type struct {
	Wire   byte
	Binary bool // A string that is a []byte in Go.
	Enum   *Enum
	Key    *Type
	Elem   *Type
	Index  int // The index of a struct in the file.
	Map    *MapFuncs
	Size   uintptr // The size of the value in Go.
}

// Enum describes an enum whose values are dense.
type Enum struct {
	Names []string
}

// Types that are described by their kind.
var (
	TBool    = Type{Wire: Bool, Size: 1}
	TI32     = Type{Wire: I32, Size: 4}
	TI64     = Type{Wire: I64, Size: 8}
	TDouble  = Type{Wire: Double, Size: 8}
	TString  = Type{Wire: String, Size: unsafe.Sizeof("")}
	TBinary  = Type{Wire: String, Binary: true, Size: unsafe.Sizeof([]byte(nil))}
	TI64s    = Type{Wire: List, Elem: &TI64, Size: unsafe.Sizeof([]int64(nil))}
	TStrings = Type{Wire: List, Elem: &TString, Size: unsafe.Sizeof([]string(nil))}
	TStrMap  = Type{Wire: Map, Key: &TString, Elem: &TString, Map: &strMap, Size: unsafe.Sizeof(uintptr(0))}
)

// MapFuncs holds the functions that differ between map types.
type MapFuncs struct {
	Len  func(m unsafe.Pointer) int
	Make func(m unsafe.Pointer, n int)
	Put  func(m, k, v unsafe.Pointer)
	Get  func(m, k unsafe.Pointer) unsafe.Pointer
	Each func(m unsafe.Pointer, f func(k, v unsafe.Pointer) bool)
}

var strMap = MapFuncs{mapLen[string, string], mapMake[string, string], mapPut[string, string], mapGet[string, string], mapEach[string, string]}

func mapLen[K comparable, V any](m unsafe.Pointer) int { return len(*(*map[K]V)(m)) }

func mapMake[K comparable, V any](m unsafe.Pointer, n int) { *(*map[K]V)(m) = make(map[K]V, n) }

func mapPut[K comparable, V any](m, k, v unsafe.Pointer) { (*(*map[K]V)(m))[*(*K)(k)] = *(*V)(v) }

func mapGet[K comparable, V any](m, k unsafe.Pointer) unsafe.Pointer {
	if v, ok := (*(*map[K]V)(m))[*(*K)(k)]; ok {
		return unsafe.Pointer(&v)
	}
	return nil
}

func mapEach[K comparable, V any](m unsafe.Pointer, f func(k, v unsafe.Pointer) bool) {
	for k, v := range *(*map[K]V)(m) {
		if !f(unsafe.Pointer(&k), unsafe.Pointer(&v)) {
			return
		}
	}
}

// New makes a slice of structs and returns its first element.
func New[T any](n int) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(make([]T, n))) }

// header has the memory layout of a slice in Go's runtime.
type header struct {
	data     unsafe.Pointer
	len, cap int
}

// present reports whether the field is to be written. at is its address.
func (f *Field) present(at unsafe.Pointer) bool {
	if f.Opt {
		return *(*bool)(unsafe.Add(at, f.Type.Size))
	}
	return !f.Sparse || *(*unsafe.Pointer)(at) != nil
}
