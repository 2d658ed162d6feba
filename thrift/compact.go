package thrift

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// According to the specification, bool elements of the Compact protocol have type 2 and values 0
// and 1. Existing implementations write type 1 and values 1 and 2, and some versions reject 0. This
// package writes what they write and reads both.

// Types of values in the Compact protocol. A field of type bool has its value as its type.
const (
	CompactTypeTrue   = 1
	CompactTypeFalse  = 2
	CompactTypeI8     = 3
	CompactTypeI16    = 4
	CompactTypeI32    = 5
	CompactTypeI64    = 6
	CompactTypeDouble = 7
	CompactTypeString = 8
	CompactTypeList   = 9
	CompactTypeSet    = 10
	CompactTypeMap    = 11
	CompactTypeStruct = 12
	CompactTypeUUID   = 13

	// CompactTypeBool is the type of bool elements. The specification says 2, but existing
	// implementations write 1 and read both.
	CompactTypeBool = CompactTypeTrue
)

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// AppendCompactHead appends the type and the ID of a field. last is the ID of the previous field in
// the same struct, or 0.
func AppendCompactHead(b []byte, t byte, id, last uint16) []byte {
	if delta := int(int16(id)) - int(int16(last)); delta > 0 && delta <= 15 {
		return append(b, byte(delta)<<4|t)
	}
	return binary.AppendUvarint(append(b, t), zigzag(int64(int16(id))))
}

// AppendCompactBoolHead appends a field of type bool, which consists only of its head.
func AppendCompactBoolHead(b []byte, v bool, id, last uint16) []byte {
	return AppendCompactHead(b, CompactTypeFalse-Bit(v), id, last)
}

// AppendCompactBool appends a bool element: 1 for true and, like other implementations, 2 for
// false.
func AppendCompactBool(b []byte, v bool) []byte { return append(b, CompactTypeFalse-Bit(v)) }

// AppendCompactInt appends an i16, an i32, an i64 or a value of an enum. An i8 is one byte.
func AppendCompactInt[T ~int16 | ~int32 | ~int64](b []byte, v T) []byte {
	return binary.AppendUvarint(b, zigzag(int64(v)))
}

// AppendCompactDouble appends a double.
func AppendCompactDouble(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

// AppendCompactString appends a string or a binary.
func AppendCompactString[T ~string | ~[]byte](b []byte, v T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

// AppendCompactList appends the head of a list or set.
func AppendCompactList(b []byte, elem byte, count int) []byte {
	if count < 15 {
		return append(b, byte(count)<<4|elem)
	}
	return binary.AppendUvarint(append(b, 0xf0|elem), uint64(count))
}

// AppendCompactMap appends the head of a map.
func AppendCompactMap(b []byte, key, value byte, count int) []byte {
	if count == 0 {
		return append(b, 0)
	}
	return append(binary.AppendUvarint(b, uint64(count)), key<<4|value)
}

// AppendCompactBools appends a list of bool.
func AppendCompactBools(b []byte, v []bool) []byte {
	b = AppendCompactList(b, CompactTypeBool, len(v))
	for _, x := range v {
		b = AppendCompactBool(b, x)
	}
	return b
}

// AppendCompactI8s appends a list of i8.
func AppendCompactI8s(b []byte, v []int8) []byte {
	b = AppendCompactList(b, CompactTypeI8, len(v))
	return append(b, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v))...)
}

// AppendCompactInts appends a list of numbers of type t, or of an enum.
func AppendCompactInts[T ~int16 | ~int32 | ~int64](b []byte, t byte, v []T) []byte {
	b = AppendCompactList(b, t, len(v))
	for _, x := range v {
		b = binary.AppendUvarint(b, zigzag(int64(x)))
	}
	return b
}

// AppendCompactDoubles appends a list of double.
func AppendCompactDoubles(b []byte, v []float64) []byte {
	b = AppendCompactList(b, CompactTypeDouble, len(v))
	for _, x := range v {
		b = AppendCompactDouble(b, x)
	}
	return b
}

// AppendCompactUUIDs appends a list of uuid.
func AppendCompactUUIDs(b []byte, v []UUID) []byte {
	b = AppendCompactList(b, CompactTypeUUID, len(v))
	for i := range v {
		b = append(b, v[i][:]...)
	}
	return b
}

// AppendCompactStrings appends a list of strings or binaries.
func AppendCompactStrings[T ~string | ~[]byte](b []byte, v []T) []byte {
	b = AppendCompactList(b, CompactTypeString, len(v))
	for _, s := range v {
		b = AppendCompactString(b, s)
	}
	return b
}

// AppendCompactStringMap appends a map.
func AppendCompactStringMap(b []byte, v map[string]string) []byte {
	b = AppendCompactMap(b, CompactTypeString, CompactTypeString, len(v))
	for k, s := range v {
		b = AppendCompactString(AppendCompactString(b, k), s)
	}
	return b
}

// AppendCompactSortedStringMap is like AppendCompactStringMap, but appends the entries in the order
// of their keys.
func AppendCompactSortedStringMap(b []byte, v map[string]string) []byte {
	b = AppendCompactMap(b, CompactTypeString, CompactTypeString, len(v))
	for _, k := range SortedKeys(v) {
		b = AppendCompactString(AppendCompactString(b, k), v[k])
	}
	return b
}
