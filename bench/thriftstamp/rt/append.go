package rt

import (
	"encoding/binary"
	"math"
	"slices"
	"unsafe"
)

// Extend makes b longer by n bytes, whose contents are undefined.
func Extend(b []byte, n int) []byte {
	if cap(b)-len(b) < n {
		b = grow(b, n)
	}
	return b[:len(b)+n]
}

//go:noinline
func grow(b []byte, n int) []byte { return slices.Grow(b, n) }

// Bit returns 1 for true.
func Bit(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// Functions with the name of a type and Field append a field: type, id, value. They are not
// inlined, because each inlined copy would take more text than a call.

//go:noinline
func BoolField(b []byte, id uint16, v bool) []byte {
	return append(b, Bool, byte(id>>8), byte(id), Bit(v))
}

//go:noinline
func I32Field(b []byte, id uint16, v int32) []byte {
	return binary.BigEndian.AppendUint32(append(b, I32, byte(id>>8), byte(id)), uint32(v))
}

//go:noinline
func I64Field(b []byte, id uint16, v int64) []byte {
	return binary.BigEndian.AppendUint64(append(b, I64, byte(id>>8), byte(id)), uint64(v))
}

//go:noinline
func DoubleField(b []byte, id uint16, v float64) []byte {
	return binary.BigEndian.AppendUint64(append(b, Double, byte(id>>8), byte(id)), math.Float64bits(v))
}

//go:noinline
func StringField(b []byte, id uint16, v string) []byte {
	n := len(b)
	b = Extend(b, 7+len(v))
	q := (*[7]byte)(b[n:])
	q[0], q[1], q[2] = String, byte(id>>8), byte(id)
	binary.BigEndian.PutUint32(q[3:], uint32(len(v)))
	copy(b[n+7:], v)
	return b
}

//go:noinline
func BinaryField(b []byte, id uint16, v []byte) []byte {
	return StringField(b, id, unsafe.String(unsafe.SliceData(v), len(v)))
}

// ListField appends the head of a list.
//
//go:noinline
func ListField(b []byte, id uint16, t byte, n int) []byte {
	at := len(b)
	b = Extend(b, 8)
	putList(b[at:], id, t, n)
	return b
}

func putList(b []byte, id uint16, t byte, n int) {
	q := (*[8]byte)(b)
	q[0], q[1], q[2], q[3] = List, byte(id>>8), byte(id), t
	binary.BigEndian.PutUint32(q[4:], uint32(n))
}

//go:noinline
func I64sField(b []byte, id uint16, v []int64) []byte {
	at := len(b)
	b = Extend(b, 8+8*len(v))
	putList(b[at:], id, I64, len(v))
	putI64s(b[at+8:], v)
	return b
}

// AppendI64s appends the elements of a list.
func AppendI64s(b []byte, v []int64) []byte {
	at := len(b)
	b = Extend(b, 8*len(v))
	putI64s(b[at:], v)
	return b
}

func putI64s(q []byte, v []int64) {
	for _, x := range v {
		binary.BigEndian.PutUint64(q[:8], uint64(x))
		q = q[8:]
	}
}

//go:noinline
func StringsField(b []byte, id uint16, v []string) []byte {
	b = ListField(b, id, String, len(v))
	for _, s := range v {
		b = AppendString(b, s)
	}
	return b
}

// AppendString appends the length of a string and its bytes.
func AppendString(b []byte, s string) []byte {
	n := len(b)
	b = Extend(b, 4+len(s))
	binary.BigEndian.PutUint32(b[n:], uint32(len(s)))
	copy(b[n+4:], s)
	return b
}

//go:noinline
func StringMapField(b []byte, id uint16, v map[string]string) []byte {
	n := len(b)
	b = Extend(b, 9)
	q := (*[9]byte)(b[n:])
	q[0], q[1], q[2], q[3], q[4] = Map, byte(id>>8), byte(id), String, String
	binary.BigEndian.PutUint32(q[5:], uint32(len(v)))
	if len(v) == 0 {
		return b
	}
	for k, s := range v {
		b = AppendString(AppendString(b, k), s)
	}
	return b
}

// One returns 1 for true.
func One(v bool) int { return int(Bit(v)) }

// Functions named Put store a field, or a part of it, at n, where there must be room, and return
// the offset after it. They are inlined unless stated otherwise.

func PutHead(b []byte, n int, t byte, id uint16) int {
	q := (*[3]byte)(b[n:])
	q[0], q[1], q[2] = t, byte(id>>8), byte(id)
	return n + 3
}

func PutBool(b []byte, n int, id uint16, v bool) int {
	q := (*[4]byte)(b[n:])
	q[0], q[1], q[2], q[3] = Bool, byte(id>>8), byte(id), Bit(v)
	return n + 4
}

func PutI32(b []byte, n int, id uint16, v int32) int {
	q := (*[7]byte)(b[n:])
	q[0], q[1], q[2] = I32, byte(id>>8), byte(id)
	binary.BigEndian.PutUint32(q[3:], uint32(v))
	return n + 7
}

// PutI64 stores a field of type I64 or Double.
func PutI64(b []byte, n int, t byte, id uint16, v uint64) int {
	q := (*[11]byte)(b[n:])
	q[0], q[1], q[2] = t, byte(id>>8), byte(id)
	binary.BigEndian.PutUint64(q[3:], v)
	return n + 11
}

// PutString stores a field whose Go type is a string or a []byte.
func PutString[T ~string | ~[]byte](b []byte, n int, id uint16, v T) int {
	q := (*[7]byte)(b[n:])
	q[0], q[1], q[2] = String, byte(id>>8), byte(id)
	binary.BigEndian.PutUint32(q[3:], uint32(len(v)))
	return n + 7 + copy(b[n+7:], v)
}

// PutList stores the head of a list.
func PutList(b []byte, n int, id uint16, t byte, count int) int {
	putList(b[n:], id, t, count)
	return n + 8
}

// PutMap stores the head of a map.
func PutMap(b []byte, n int, id uint16, k, v byte, count int) int {
	q := (*[9]byte)(b[n:])
	q[0], q[1], q[2], q[3], q[4] = Map, byte(id>>8), byte(id), k, v
	binary.BigEndian.PutUint32(q[5:], uint32(count))
	return n + 9
}

// PutI64s stores the elements of a list.
func PutI64s(b []byte, n int, v []int64) int {
	putI64s(b[n:], v)
	return n + 8*len(v)
}

// PutStrings inserts room for the elements of a list at n, before the existing room after it, and
// stores them. It is not inlined.
func PutStrings(b []byte, n int, v []string) ([]byte, int) {
	b = Extend(b, SizeStrings(v))
	for _, s := range v {
		n = putText(b, n, s)
	}
	return b, n
}

// PutStringMap is PutStrings for the entries of a map. It is not inlined.
func PutStringMap(b []byte, n int, v map[string]string) ([]byte, int) {
	for k, s := range v {
		b = Extend(b, 8+len(k)+len(s))
		n = putText(b, putText(b, n, k), s)
	}
	return b, n
}

func putText(b []byte, n int, s string) int {
	binary.BigEndian.PutUint32(b[n:], uint32(len(s)))
	return n + 4 + copy(b[n+4:], s)
}

// SizeStrings returns the size of the elements of a list.
func SizeStrings(v []string) (n int) {
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
