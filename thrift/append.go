package thrift

import (
	"encoding/binary"
	"math"
	"slices"
)

// Extend extends b by n bytes, whose contents are undefined.
func Extend(b []byte, n int) []byte {
	if cap(b)-len(b) < n {
		b = grow(b, n)
	}
	return b[:len(b)+n]
}

//go:noinline
func grow(b []byte, n int) []byte { return slices.Grow(b, n) }

// Bit returns 1 for true and 0 for false.
func Bit(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// One returns 1 for true and 0 for false, as a factor for a size.
func One(v bool) int { return int(Bit(v)) }

// Functions whose names begin with Put store a field, or a part of a field, at n, where b has room
// for it, and return the offset after it. They are small enough to be inlined, except for those
// that also return a slice.

// PutHead stores the type and the ID of a field.
func PutHead(b []byte, n int, t byte, id uint16) int {
	q := (*[3]byte)(b[n:])
	q[0], q[1], q[2] = t, byte(id>>8), byte(id)
	return n + 3
}

// PutBool stores a field of type bool.
func PutBool(b []byte, n int, id uint16, v bool) int {
	q := (*[4]byte)(b[n:])
	q[0], q[1], q[2], q[3] = TypeBool, byte(id>>8), byte(id), Bit(v)
	return n + 4
}

// PutI8 stores a field of type i8.
func PutI8(b []byte, n int, id uint16, v int8) int {
	q := (*[4]byte)(b[n:])
	q[0], q[1], q[2], q[3] = TypeI8, byte(id>>8), byte(id), byte(v)
	return n + 4
}

// PutI16 stores a field of type i16.
func PutI16(b []byte, n int, id uint16, v int16) int {
	q := (*[5]byte)(b[n:])
	q[0], q[1], q[2], q[3], q[4] = TypeI16, byte(id>>8), byte(id), byte(v>>8), byte(v)
	return n + 5
}

// PutI32 stores a field of type i32 or of an enum.
func PutI32(b []byte, n int, id uint16, v int32) int {
	q := (*[7]byte)(b[n:])
	q[0], q[1], q[2] = TypeI32, byte(id>>8), byte(id)
	binary.BigEndian.PutUint32(q[3:], uint32(v))
	return n + 7
}

// PutI64 stores a field of type i64.
func PutI64(b []byte, n int, id uint16, v int64) int { return put64(b, n, TypeI64, id, uint64(v)) }

// PutDouble stores a field of type double.
func PutDouble(b []byte, n int, id uint16, v float64) int {
	return put64(b, n, TypeDouble, id, math.Float64bits(v))
}

func put64(b []byte, n int, t byte, id uint16, v uint64) int {
	q := (*[11]byte)(b[n:])
	q[0], q[1], q[2] = t, byte(id>>8), byte(id)
	binary.BigEndian.PutUint64(q[3:], v)
	return n + 11
}

// PutUUID stores a field of type uuid.
func PutUUID(b []byte, n int, id uint16, v UUID) int {
	q := (*[19]byte)(b[n:])
	q[0], q[1], q[2] = TypeUUID, byte(id>>8), byte(id)
	*(*[16]byte)(q[3:]) = v
	return n + 19
}

// PutText stores the head of a field of type string or binary, and its length.
func PutText(b []byte, n int, id uint16, length int) int {
	q := (*[7]byte)(b[n:])
	q[0], q[1], q[2] = TypeString, byte(id>>8), byte(id)
	binary.BigEndian.PutUint32(q[3:], uint32(length))
	return n + 7
}

// PutList stores the head of a list or set; t is the type of the field.
func PutList(b []byte, n int, t byte, id uint16, elem byte, count int) int {
	q := (*[8]byte)(b[n:])
	q[0], q[1], q[2], q[3] = t, byte(id>>8), byte(id), elem
	binary.BigEndian.PutUint32(q[4:], uint32(count))
	return n + 8
}

// PutMap stores the head of a map.
func PutMap(b []byte, n int, id uint16, key, value byte, count int) int {
	q := (*[9]byte)(b[n:])
	q[0], q[1], q[2], q[3], q[4] = TypeMap, byte(id>>8), byte(id), key, value
	binary.BigEndian.PutUint32(q[5:], uint32(count))
	return n + 9
}

// SizeStrings returns the size of the elements of a list.
func SizeStrings[T ~string | ~[]byte](v []T) (n int) {
	for _, s := range v {
		n += 4 + len(s)
	}
	return n
}

// SizeStringMap returns the size of the entries of a map.
func SizeStringMap(v map[string]string) (n int) {
	for k, s := range v {
		n += 8 + len(k) + len(s)
	}
	return n
}

// Functions whose names begin with Append append a value without a head, such as an element of a
// container.

// AppendBool appends a bool.
func AppendBool(b []byte, v bool) []byte { return append(b, Bit(v)) }

// AppendI8 appends an i8.
func AppendI8(b []byte, v int8) []byte { return append(b, byte(v)) }

// AppendI16 appends an i16.
func AppendI16(b []byte, v int16) []byte { return binary.BigEndian.AppendUint16(b, uint16(v)) }

// AppendI32 appends an i32.
func AppendI32(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }

// AppendI64 appends an i64.
func AppendI64(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

// AppendDouble appends a double.
func AppendDouble(b []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(b, math.Float64bits(v))
}

// AppendUUID appends a uuid.
func AppendUUID(b []byte, v UUID) []byte { return append(b, v[:]...) }

// AppendString appends a string or a binary.
func AppendString[T ~string | ~[]byte](b []byte, v T) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
}

// AppendStrings appends the elements of a list.
func AppendStrings[T ~string | ~[]byte](b []byte, v []T) []byte {
	for _, s := range v {
		b = AppendString(b, s)
	}
	return b
}

// AppendStringMap appends the entries of a map.
func AppendStringMap(b []byte, v map[string]string) []byte {
	if len(v) == 0 { // avoids creating a map iterator
		return b
	}
	return appendStringMap(b, v)
}

func appendStringMap(b []byte, v map[string]string) []byte {
	for k, s := range v {
		b = AppendString(AppendString(b, k), s)
	}
	return b
}

// AppendSortedStringMap is like AppendStringMap, but appends the entries in the order of their
// keys.
func AppendSortedStringMap(b []byte, v map[string]string) []byte {
	for _, k := range SortedKeys(v) {
		b = AppendString(AppendString(b, k), v[k])
	}
	return b
}

// AppendList appends the head of a list or set that is an element of another container.
func AppendList(b []byte, elem byte, count int) []byte {
	return binary.BigEndian.AppendUint32(append(b, elem), uint32(count))
}

// AppendMap appends the head of a map that is an element of another container.
func AppendMap(b []byte, key, value byte, count int) []byte {
	return binary.BigEndian.AppendUint32(append(b, key, value), uint32(count))
}
