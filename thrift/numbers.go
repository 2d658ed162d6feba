package thrift

import (
	"unsafe"

	"github.com/slipstream-go/slipstream/thrift/internal/bulk"
)

// Lists of numbers. Each Put function stores the elements of a list at n, where b has room for
// them, and returns the offset after them. Those with Few in their names are inlined into generated
// code: they store the elements if there are fewer than 8, and otherwise do nothing and return
// false. Each load function is the inverse of a Put function.

// PutBools stores the elements of a list of bool.
func PutBools(b []byte, n int, v []bool) int {
	bulk.PutBool(b[n:], v)
	return n + len(v)
}

// PutI8s stores the elements of a list of i8.
func PutI8s(b []byte, n int, v []int8) int {
	bulk.PutI8(b[n:], v)
	return n + len(v)
}

// PutI16s stores the elements of a list of i16.
func PutI16s(b []byte, n int, v []int16) int {
	if !PutFewI16s(b, n, v) {
		bulk.PutI16(b[n:], v)
	}
	return n + 2*len(v)
}

// PutFewI16s is PutI16s for few elements.
func PutFewI16s(b []byte, n int, v []int16) bool { return bulk.PutFewI16(b[n:], v) }

// PutI32s stores the elements of a list of i32 or of an enum.
func PutI32s[T ~int32](b []byte, n int, v []T) int {
	if !PutFewI32s(b, n, v) {
		bulk.PutI32(b[n:], v)
	}
	return n + 4*len(v)
}

// PutFewI32s is PutI32s for few elements.
func PutFewI32s[T ~int32](b []byte, n int, v []T) bool { return bulk.PutFewI32(b[n:], v) }

// PutI64s stores the elements of a list of i64.
func PutI64s(b []byte, n int, v []int64) int {
	if !PutFewI64s(b, n, v) {
		bulk.PutI64(b[n:], v)
	}
	return n + 8*len(v)
}

// PutFewI64s is PutI64s for few elements.
func PutFewI64s(b []byte, n int, v []int64) bool { return bulk.PutFewI64(b[n:], v) }

// PutDoubles stores the elements of a list of double.
func PutDoubles(b []byte, n int, v []float64) int {
	if !PutFewDoubles(b, n, v) {
		bulk.PutDouble(b[n:], v)
	}
	return n + 8*len(v)
}

// PutFewDoubles is PutDoubles for few elements.
func PutFewDoubles(b []byte, n int, v []float64) bool { return bulk.PutFewDouble(b[n:], v) }

// PutUUIDs stores the elements of a list of uuid.
func PutUUIDs(b []byte, n int, v []UUID) int {
	return n + copy(b[n:n+16*len(v)], bytesOfUUIDs(v))
}

// bytesOfUUIDs returns the memory of v, which equals its encoding.
func bytesOfUUIDs(v []UUID) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 16*len(v))
}

func loadBools(to []bool, q []byte) {
	if !bulk.GetFewBool(to, q) {
		bulk.GetBool(to, q)
	}
}

func loadI8s(to []int8, q []byte) { bulk.GetI8(to, q) }

func loadI16s(to []int16, q []byte) {
	if !bulk.GetFewI16(to, q) {
		bulk.GetI16(to, q)
	}
}

func loadI32s[T ~int32](to []T, q []byte) {
	if !bulk.GetFewI32(to, q) {
		bulk.GetI32(to, q)
	}
}

func loadI64s(to []int64, q []byte) {
	if !bulk.GetFewI64(to, q) {
		bulk.GetI64(to, q)
	}
}

func loadDoubles(to []float64, q []byte) {
	if !bulk.GetFewDouble(to, q) {
		bulk.GetDouble(to, q)
	}
}

func loadUUIDs(to []UUID, q []byte) { copy(bytesOfUUIDs(to), q[:16*len(to)]) }
