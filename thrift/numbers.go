package thrift

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// Lists of numbers. Each Put function stores the elements of a list at n, where b has room for
// them, and returns the offset after them; each load function is its inverse.

// PutBools stores the elements of a list of bool.
func PutBools(b []byte, n int, v []bool) int {
	q := b[n : n+len(v)]
	for i, x := range v {
		q[i] = Bit(x)
	}
	return n + len(v)
}

// PutI8s stores the elements of a list of i8.
func PutI8s(b []byte, n int, v []int8) int {
	return n + copy(b[n:n+len(v)], unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)))
}

// PutI16s stores the elements of a list of i16.
func PutI16s(b []byte, n int, v []int16) int {
	q := b[n : n+2*len(v)]
	for _, x := range v {
		binary.BigEndian.PutUint16(q[:2], uint16(x))
		q = q[2:]
	}
	return n + 2*len(v)
}

// PutI32s stores the elements of a list of i32 or of an enum.
func PutI32s[T ~int32](b []byte, n int, v []T) int {
	q := b[n : n+4*len(v)]
	for _, x := range v {
		binary.BigEndian.PutUint32(q[:4], uint32(x))
		q = q[4:]
	}
	return n + 4*len(v)
}

// PutI64s stores the elements of a list of i64.
func PutI64s(b []byte, n int, v []int64) int {
	q := b[n : n+8*len(v)]
	for _, x := range v {
		binary.BigEndian.PutUint64(q[:8], uint64(x))
		q = q[8:]
	}
	return n + 8*len(v)
}

// PutDoubles stores the elements of a list of double.
func PutDoubles(b []byte, n int, v []float64) int {
	q := b[n : n+8*len(v)]
	for _, x := range v {
		binary.BigEndian.PutUint64(q[:8], math.Float64bits(x))
		q = q[8:]
	}
	return n + 8*len(v)
}

// PutUUIDs stores the elements of a list of uuid.
func PutUUIDs(b []byte, n int, v []UUID) int {
	for i := range v {
		n += copy(b[n:n+16], v[i][:])
	}
	return n
}

func loadBools(to []bool, q []byte) {
	for i := range to {
		to[i] = q[i] != 0
	}
}

func loadI8s(to []int8, q []byte) {
	copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(to))), len(to)), q)
}

func loadI16s(to []int16, q []byte) {
	for i := range to {
		to[i] = int16(binary.BigEndian.Uint16(q[:2]))
		q = q[2:]
	}
}

func loadI32s[T ~int32](to []T, q []byte) {
	for i := range to {
		to[i] = T(binary.BigEndian.Uint32(q[:4]))
		q = q[4:]
	}
}

func loadI64s(to []int64, q []byte) {
	for i := range to {
		to[i] = int64(binary.BigEndian.Uint64(q[:8]))
		q = q[8:]
	}
}

func loadDoubles(to []float64, q []byte) {
	for i := range to {
		to[i] = math.Float64frombits(binary.BigEndian.Uint64(q[:8]))
		q = q[8:]
	}
}

func loadUUIDs(to []UUID, q []byte) {
	for i := range to {
		copy(to[i][:], q[16*i:])
	}
}
