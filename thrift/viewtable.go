package thrift

// ViewTable describes the structs of an IDL file for their views: what to look for, and what types
// the elements of containers must have. It is data that the compiler lays out; nothing runs at the
// start of a program.
type ViewTable struct {
	Structs []ViewStruct
}

// ViewStruct describes a struct, union or exception.
type ViewStruct struct {
	// Fields are in the order of their IDs, as unsigned numbers. The place of a field is where
	// views keep its offset.
	Fields []ViewField
	// Required has a bit for each field: bit i%64 of element i/64 says that field i is required.
	// Elements at the end that are 0 may be missing.
	Required []uint64
	// Union says that exactly one field must be present. It may be one that Fields does not have.
	Union bool
}

// ViewField describes a field.
type ViewField struct {
	// Key is the type, shifted by 16, and the ID: TypeI64<<16 | 1.
	Key uint32
	// Type is nil unless the field is a struct or a container.
	Type *ViewType
}

// ViewType describes what is in a struct or a container.
type ViewType struct {
	// Key is the type of the keys of a map; Elem is that of its values, or of the elements of a
	// list or set.
	Key, Elem byte
	// KeyType and ElemType are nil unless those are structs or containers.
	KeyType, ElemType *ViewType
	// Struct is the place of a struct in Table, or in the table that refers to it if Table is nil.
	// A variable of Go cannot refer to itself, so structs do not refer to each other.
	Struct int
	Table  *ViewTable
}

// place returns the place of the field with the given key, or -1.
func (s *ViewStruct) place(key uint32) int {
	low, high := 0, len(s.Fields)
	for low < high {
		if i := int(uint(low+high) / 2); uint16(s.Fields[i].Key) < uint16(key) {
			low = i + 1
		} else {
			high = i
		}
	}
	if low < len(s.Fields) && s.Fields[low].Key == key {
		return low
	}
	return -1
}
