package thrift

import (
	"encoding/binary"
	"unsafe"
)

// Functions for the types that Kitex uses: enums with the underlying type int64, and lists of
// pointers to structs. On the wire, an enum is an i32; only its low 32 bits are written.

// ReadWideEnum reads a value of an enum.
func ReadWideEnum[T ~int64](b []byte, off int, to *T) int {
	if len(b)-off < 4 {
		return CodeShort
	}
	*to = T(int32(binary.BigEndian.Uint32(b[off:])))
	return off + 4
}

// ReadWideEnums reads a list of an enum.
func ReadWideEnums[T ~int64](r *Reader, b []byte, off int, to *[]T) int {
	head := off
	n, off := r.Count(b, off, TypeI32, 4)
	if off < 0 {
		return off
	}
	if _, off = Resize(r, to, n, head, off); off < 0 {
		return off
	}
	for i := range *to {
		(*to)[i] = T(int32(binary.BigEndian.Uint32(b[off+4*i:])))
	}
	return off + 4*n
}

// PutWideEnums stores the elements of a list of an enum.
func PutWideEnums[T ~int64](b []byte, n int, v []T) int {
	for i, e := range v {
		binary.BigEndian.PutUint32(b[n+4*i:], uint32(e))
	}
	return n + 4*len(v)
}

// AppendCompactWideEnums appends a list of an enum.
func AppendCompactWideEnums[T ~int64](b []byte, v []T) []byte {
	b = AppendCompactList(b, CompactTypeI32, len(v))
	for _, e := range v {
		b = AppendCompactInt(b, int32(e))
	}
	return b
}

// CompactWideEnum reads a value of an enum.
func CompactWideEnum[T ~int64](r *Reader, b []byte, off int, to *T) int {
	var v int32
	next := CompactInt(r, b, off, &v)
	if next >= 0 {
		*to = T(v)
	}
	return next
}

// CompactWideEnums reads a list of an enum.
func CompactWideEnums[T ~int64](r *Reader, b []byte, off int, to *[]T) int {
	if _, off = CompactElems(r, b, off, CompactTypeI32, to); off < 0 {
		return off
	}
	list := *to
	for i := 0; off >= 0 && i < len(list); i++ {
		off = CompactWideEnum(r, b, off, &list[i])
	}
	return off
}

// Pointers reads the head of a list or set and sets *to to that many new elements, which share one
// allocation. It returns the offset of the first element in the input, or a code.
func Pointers[T any](r *Reader, b []byte, off int, t byte, least int, to *[]*T) (next int) {
	n, next := r.Count(b, off, t, least)
	if next < 0 {
		return next
	}
	return pointers(r, to, n, off, next)
}

// CompactPointers is [Pointers] for the Compact protocol.
func CompactPointers[T any](r *Reader, b []byte, off int, t byte, to *[]*T) (next int) {
	n, next := r.CompactCount(b, off, t)
	if next < 0 {
		return next
	}
	return pointers(r, to, n, off, next)
}

func pointers[T any](r *Reader, to *[]*T, n, off, next int) int {
	if !r.charge(n, int(unsafe.Sizeof(*new(T)))+int(unsafe.Sizeof(new(T)))) {
		return r.fail(CodeMemory, off)
	}
	elems, list := make([]T, n), make([]*T, n)
	for i := range elems {
		list[i] = &elems[i]
	}
	*to = list
	return next
}
