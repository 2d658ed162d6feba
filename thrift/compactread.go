package thrift

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// ReadCompactBool reads a bool element. Only 1 is true.
func ReadCompactBool(b []byte, off int, to *bool) int {
	if off >= len(b) {
		return CodeShort
	}
	*to = b[off] == CompactTypeTrue
	return off + 1
}

// ReadCompactInt reads an i16, an i32, an i64 or a value of an enum.
func ReadCompactInt[T ~int16 | ~int32 | ~int64](b []byte, off int, to *T) int {
	v, next := uvarint(b, off)
	if next < 0 {
		return next
	}
	n := unzigzag(v)
	if *to = T(n); int64(*to) != n {
		return CodeNumber
	}
	return next
}

// ReadCompactDouble reads a double.
func ReadCompactDouble(b []byte, off int, to *float64) int {
	if len(b)-off < 8 {
		return CodeShort
	}
	*to = math.Float64frombits(binary.LittleEndian.Uint64(b[off:]))
	return off + 8
}

// CompactInt is ReadCompactInt for a field: if the number does not fit, the error locates the
// field.
func CompactInt[T ~int16 | ~int32 | ~int64](r *Reader, b []byte, off int, to *T) int {
	next := ReadCompactInt(b, off, to)
	if next < 0 {
		r.fail(next, off)
	}
	return next
}

// CompactString reads a string.
func (r *Reader) CompactString(b []byte, off int, to *string) int {
	n, from := length(b, off, 1)
	if from < 0 {
		return from
	}
	*to = r.text(b, from, from+n)
	return from + n
}

// CompactOptString reads an optional string.
func (r *Reader) CompactOptString(b []byte, off int, to *Opt[string]) int {
	to.Set = true
	return r.CompactString(b, off, &to.V)
}

// CompactBinary reads a binary. The result is not nil.
func (r *Reader) CompactBinary(b []byte, off int, to *[]byte) int {
	n, from := length(b, off, 1)
	if from < 0 {
		return from
	}
	*to = r.bytes(b, from, from+n)
	return from + n
}

// CompactEnd returns next, the offset after the end of a struct, or a code if the struct is not
// complete.
func (r *Reader) CompactEnd(next int, complete bool) int {
	if !complete {
		return r.fail(CodeMissing, next-1)
	}
	return next
}

// CompactEndUnion is CompactEnd for a union that has read n fields.
func (r *Reader) CompactEndUnion(next, n int) int {
	if n != 1 {
		return r.fail(CodeUnion, next-1)
	}
	return next
}

// CompactCount returns how many elements of type t the list or set at off has, and the offset of
// the first one. A list without elements may have any type.
func (r *Reader) CompactCount(b []byte, off int, t byte) (n, next int) {
	elem, n, next := compactList(b, off)
	if next >= 0 && n > 0 && !sameCompact(elem, t) {
		next = CodeElem
	}
	if next < 0 {
		return 0, r.fail(next, off)
	}
	return n, next
}

// CompactCountMap is CompactCount for maps with keys of type k and values of type v.
func (r *Reader) CompactCountMap(b []byte, off int, k, v byte) (n, next int) {
	key, value, n, next := compactMap(b, off)
	if next >= 0 && n > 0 && !(sameCompact(key, k) && sameCompact(value, v)) {
		next = CodeElem
	}
	if next < 0 {
		return 0, r.fail(next, off)
	}
	return n, next
}

// CompactElems is [List] for the Compact protocol.
func CompactElems[T any](r *Reader, b []byte, off int, t byte, to *[]T) (old, next int) {
	n, next := r.CompactCount(b, off, t)
	if next < 0 {
		return 0, next
	}
	return Resize(r, to, n, off, next)
}

// compactFlat reads the head of a list of numbers and makes room for them in *to. They can be
// larger than in the input, so they count toward the memory limit.
func compactFlat[T any](r *Reader, b []byte, off int, t byte, to *[]T) (next int) {
	n, next := r.CompactCount(b, off, t)
	if next < 0 {
		return next
	}
	var zero T
	size := int(unsafe.Sizeof(zero))
	if !r.charge(n, size) {
		return r.fail(CodeMemory, off)
	}
	*to = numbers(r, *to, n, len(b)-next, size)
	return next
}

// CompactBools reads a list of bool.
func (r *Reader) CompactBools(b []byte, off int, to *[]bool) int {
	if off = compactFlat(r, b, off, CompactTypeBool, to); off < 0 {
		return off
	}
	for i := range *to {
		(*to)[i] = b[off+i] == CompactTypeTrue
	}
	return off + len(*to)
}

// CompactI8s reads a list of i8.
func (r *Reader) CompactI8s(b []byte, off int, to *[]int8) int {
	if off = compactFlat(r, b, off, CompactTypeI8, to); off < 0 {
		return off
	}
	loadI8s(*to, b[off:])
	return off + len(*to)
}

// CompactInts reads a list of numbers of type t, or of an enum.
func CompactInts[T ~int16 | ~int32 | ~int64](r *Reader, b []byte, off int, t byte, to *[]T) int {
	if off = compactFlat(r, b, off, t, to); off < 0 {
		return off
	}
	list := *to
	for i := range list {
		if off = CompactInt(r, b, off, &list[i]); off < 0 {
			clear(list[i:]) // these elements may have old contents
			break
		}
	}
	return off
}

// CompactDoubles reads a list of double.
func (r *Reader) CompactDoubles(b []byte, off int, to *[]float64) int {
	if off = compactFlat(r, b, off, CompactTypeDouble, to); off < 0 {
		return off
	}
	for i := range *to {
		(*to)[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[off+8*i:]))
	}
	return off + 8*len(*to)
}

// CompactUUIDs reads a list of uuid.
func (r *Reader) CompactUUIDs(b []byte, off int, to *[]UUID) int {
	if off = compactFlat(r, b, off, CompactTypeUUID, to); off < 0 {
		return off
	}
	loadUUIDs(*to, b[off:])
	return off + 16*len(*to)
}

// CompactStrings reads a list of strings.
func (r *Reader) CompactStrings(b []byte, off int, to *[]string) int {
	head := off
	n, off := r.CompactCount(b, off, CompactTypeString)
	if off < 0 {
		return off
	}
	if !r.charge(n, int(unsafe.Sizeof(""))) {
		return r.fail(CodeMemory, head)
	}
	list := r.strings(*to, n, len(b)-off)
	for i := range list {
		if off = r.CompactString(b, off, &list[i]); off < 0 {
			return off
		}
	}
	*to = list
	return off
}

// CompactBinaries reads a list of binaries.
func (r *Reader) CompactBinaries(b []byte, off int, to *[][]byte) int {
	_, off = CompactElems(r, b, off, CompactTypeString, to)
	list := *to
	for i := 0; off >= 0 && i < len(list); i++ {
		off = r.CompactBinary(b, off, &list[i])
	}
	return off
}

// CompactStringMap reads a map of strings.
func (r *Reader) CompactStringMap(b []byte, off int, to *map[string]string) int {
	head := off
	n, off := r.CompactCountMap(b, off, CompactTypeString, CompactTypeString)
	if off < 0 {
		return off
	}
	m, off := MakeMap(r, *to, n, head, off)
	for ; n > 0 && off >= 0; n-- {
		var k, v string
		if off = r.CompactString(b, off, &k); off < 0 {
			break
		}
		if off = r.CompactString(b, off, &v); off >= 0 {
			m[k] = v
		}
	}
	*to = m
	return off
}
