package thrift

// ViewTable describes the structs of an IDL file for their views: the fields, and the types that
// elements of containers must have. It is static data: nothing runs when a program starts.
type ViewTable struct {
	Structs []ViewStruct
}

// ViewStruct describes a struct, union or exception.
type ViewStruct struct {
	// Fields are in the order of their IDs, as unsigned numbers. Views keep the offset of a field
	// at the same index.
	Fields []ViewField
	// Required has a bit for each field: bit i%64 of element i/64 is set if field i is required.
	// Trailing elements that are 0 may be omitted.
	Required []uint64
	// Union requires exactly one field to be present. It may be an unknown field.
	Union bool
}

// ViewField describes a field.
type ViewField struct {
	// Key is the type, shifted by 16, and the ID: TypeI64<<16 | 1.
	Key uint32
	// Type is nil unless the field is a struct or a container.
	Type *ViewType
}

// ViewType describes the contents of a struct or a container.
type ViewType struct {
	// Key is the type of the keys of a map; Elem is that of its values, or of the elements of a
	// list or set.
	Key, Elem byte
	// KeyType and ElemType are nil unless the keys or elements are structs or containers.
	KeyType, ElemType *ViewType
	// Struct is the index of a struct in Table or, if Table is nil, in the table that contains this
	// ViewType. The initializer of a Go variable cannot refer to the variable, so structs refer to
	// each other by index.
	Struct int
	Table  *ViewTable
}

// place returns the index of the field with the given key, or -1.
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
