package thrift

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// String reads a string.
func (r *Reader) String(b []byte, off int, to *string) int {
	end := SkipString(b, off)
	if end >= 0 {
		*to = r.text(b, off+4, end)
	}
	return end
}

// OptString reads an optional string.
func (r *Reader) OptString(b []byte, off int, to *Opt[string]) int {
	to.Set = true
	return r.String(b, off, &to.V)
}

// Binary reads a binary. The result is not nil.
func (r *Reader) Binary(b []byte, off int, to *[]byte) int {
	end := SkipString(b, off)
	if end >= 0 {
		*to = r.bytes(b, off+4, end)
	}
	return end
}

// Functions whose names begin with Read read elements of containers. Generated code reads fields of
// these types without calls.

// ReadBool reads a bool.
func ReadBool(b []byte, off int, to *bool) int {
	if len(b)-off < 1 {
		return CodeShort
	}
	*to = b[off] != 0
	return off + 1
}

// ReadI8 reads an i8.
func ReadI8(b []byte, off int, to *int8) int {
	if len(b)-off < 1 {
		return CodeShort
	}
	*to = int8(b[off])
	return off + 1
}

// ReadI16 reads an i16.
func ReadI16(b []byte, off int, to *int16) int {
	if len(b)-off < 2 {
		return CodeShort
	}
	*to = int16(binary.BigEndian.Uint16(b[off:]))
	return off + 2
}

// ReadI32 reads an i32 or a value of an enum.
func ReadI32[T ~int32](b []byte, off int, to *T) int {
	if len(b)-off < 4 {
		return CodeShort
	}
	*to = T(binary.BigEndian.Uint32(b[off:]))
	return off + 4
}

// ReadI64 reads an i64.
func ReadI64(b []byte, off int, to *int64) int {
	if len(b)-off < 8 {
		return CodeShort
	}
	*to = int64(binary.BigEndian.Uint64(b[off:]))
	return off + 8
}

// ReadDouble reads a double.
func ReadDouble(b []byte, off int, to *float64) int {
	if len(b)-off < 8 {
		return CodeShort
	}
	*to = math.Float64frombits(binary.BigEndian.Uint64(b[off:]))
	return off + 8
}

// ReadUUID reads a uuid.
func ReadUUID(b []byte, off int, to *UUID) int {
	if len(b)-off < 16 {
		return CodeShort
	}
	*to = UUID(b[off:])
	return off + 16
}

// Count returns how many elements of type t the list or set at off has, and the offset of the
// first one. No element is smaller than least bytes. A list without elements may have any type.
func (r *Reader) Count(b []byte, off int, t byte, least int) (n, next int) {
	if n, next = count(b, off, t, least); next < 0 {
		r.fail(next, off)
	}
	return n, next
}

// CountMap is Count for maps with keys of type k and values of type v. No entry is smaller than
// least bytes.
func (r *Reader) CountMap(b []byte, off int, k, v byte, least int) (n, next int) {
	if n, next = countMap(b, off, k, v, least); next < 0 {
		r.fail(next, off)
	}
	return n, next
}

// End returns the offset after the end of a struct at off. It returns a code if the input ends
// there, or if the struct is not complete.
func (r *Reader) End(b []byte, off int, complete bool) int {
	if off >= len(b) || b[off] != TypeStop {
		return CodeShort
	}
	if !complete {
		return r.fail(CodeMissing, off)
	}
	return off + 1
}

// EndUnion is End for a union that has read n fields.
func (r *Reader) EndUnion(b []byte, off, n int) int {
	if off >= len(b) || b[off] != TypeStop {
		return CodeShort
	}
	if n != 1 {
		return r.fail(CodeUnion, off)
	}
	return off + 1
}

// Make returns a new T for a field that is a pointer. If p is not nil, it returns p.
func Make[T any](r *Reader, p *T) *T {
	if p == nil {
		p = new(T)
		r.charge(1, int(unsafe.Sizeof(*p)))
	}
	return p
}

// MakeTwo returns an A and a B that share one allocation.
func MakeTwo[A, B any](r *Reader) (*A, *B) {
	both := new(struct {
		a A
		b B
	})
	r.charge(1, int(unsafe.Sizeof(*both)))
	return &both.a, &both.b
}

// List reads the head of a list or set and resizes *to to that many elements. It returns how many
// of them have old contents, and the offset of the first element. If that is a code, *to is
// unchanged.
func List[T any](r *Reader, b []byte, off int, t byte, least int, to *[]T) (old, next int) {
	n, next := r.Count(b, off, t, least)
	if next < 0 {
		return 0, next
	}
	return Resize(r, to, n, off, next)
}

// Resize resizes *to to n elements, for a list whose head is between off and next. It returns how
// many of them have old contents, and next, or a code.
func Resize[T any](r *Reader, to *[]T, n, off, next int) (int, int) {
	if list := *to; n <= cap(list) && list != nil {
		*to = list[:n]
		return n, next
	}
	var zero T
	if !r.charge(n, int(unsafe.Sizeof(zero))) {
		return 0, r.fail(CodeMemory, off)
	}
	*to = make([]T, n)
	return 0, next
}

// perEntry is the approximate size of an entry of a map without its key and its value.
const perEntry = 16

// clearsOfMaps is the maximum number of maps with entries that are cleared for a message. Clearing
// a map that once was large takes long, even if it has few entries, so a field that is repeated
// must not do it each time.
const clearsOfMaps = 16

// MakeMap returns m without entries, or a new map with room for n entries if m is nil. If n is also
// 0, it returns nil to avoid an allocation; generated code for optional fields calls PresentMap.
// next is the offset of the first entry; MakeMap returns it, or a code.
//
// Before generated code reads into an old element of a list, it must set the maps of the element to
// nil, because the field of the list may be repeated: see clearsOfMaps.
func MakeMap[K comparable, V any](r *Reader, m map[K]V, n, off, next int) (map[K]V, int) {
	var k K
	var v V
	if !r.charge(n, perEntry+int(unsafe.Sizeof(k)+unsafe.Sizeof(v))) {
		return m, r.fail(CodeMemory, off)
	}
	if m == nil && n > 0 {
		return make(map[K]V, n), next
	}
	if len(m) > 0 {
		if r.clears++; r.clears > clearsOfMaps {
			return make(map[K]V, n), next
		}
		clear(m)
	}
	return m, next
}

// StringMap reads a map of strings. If it has no entries, a nil map stays nil.
func (r *Reader) StringMap(b []byte, off int, to *map[string]string) int {
	head := off
	n, off := r.CountMap(b, off, TypeString, TypeString, 8)
	if off < 0 {
		return off
	}
	m, off := MakeMap(r, *to, n, head, off)
	for ; n > 0 && off >= 0; n-- {
		var k, v string
		if off = r.String(b, off, &k); off < 0 {
			break
		}
		if off = r.String(b, off, &v); off >= 0 {
			m[k] = v
		}
	}
	*to = m
	return off
}

// Strings reads a list of strings.
func (r *Reader) Strings(b []byte, off int, to *[]string) int {
	head := off
	n, off := r.Count(b, off, TypeString, 4)
	if off < 0 {
		return off
	}
	if !r.charge(n, int(unsafe.Sizeof(""))) {
		return r.fail(CodeMemory, head)
	}
	list := r.strings(*to, n, (len(b)-off)/4)
	for i := range list {
		if off = r.String(b, off, &list[i]); off < 0 {
			return off
		}
	}
	*to = list
	return off
}

// Binaries reads a list of binaries.
func (r *Reader) Binaries(b []byte, off int, to *[][]byte) int {
	_, off = List(r, b, off, TypeString, 4, to)
	list := *to
	for i := 0; off >= 0 && i < len(list); i++ {
		off = r.Binary(b, off, &list[i])
	}
	return off
}

// flat reads the head of a list of numbers, resizes *to to hold them, and returns their bytes.
func flat[T any](r *Reader, b []byte, off int, t byte, to *[]T) (q []byte, next int) {
	size := int(fixed[t])
	n, off := r.Count(b, off, t, size)
	if off < 0 {
		return nil, off
	}
	*to = numbers(r, *to, n, len(b)-off, 1)
	next = off + n*size
	return b[off:next], next
}

// Bools reads a list of bool.
func (r *Reader) Bools(b []byte, off int, to *[]bool) int {
	q, next := flat(r, b, off, TypeBool, to)
	if next >= 0 {
		loadBools(*to, q)
	}
	return next
}

// I8s reads a list of i8.
func (r *Reader) I8s(b []byte, off int, to *[]int8) int {
	q, next := flat(r, b, off, TypeI8, to)
	if next >= 0 {
		loadI8s(*to, q)
	}
	return next
}

// I16s reads a list of i16.
func (r *Reader) I16s(b []byte, off int, to *[]int16) int {
	q, next := flat(r, b, off, TypeI16, to)
	if next >= 0 {
		loadI16s(*to, q)
	}
	return next
}

// ReadI32s reads a list of i32 or of an enum.
func ReadI32s[T ~int32](r *Reader, b []byte, off int, to *[]T) int {
	q, next := flat(r, b, off, TypeI32, to)
	if next >= 0 {
		loadI32s(*to, q)
	}
	return next
}

// I64s reads a list of i64.
func (r *Reader) I64s(b []byte, off int, to *[]int64) int {
	q, next := flat(r, b, off, TypeI64, to)
	if next >= 0 {
		loadI64s(*to, q)
	}
	return next
}

// Doubles reads a list of double.
func (r *Reader) Doubles(b []byte, off int, to *[]float64) int {
	q, next := flat(r, b, off, TypeDouble, to)
	if next >= 0 {
		loadDoubles(*to, q)
	}
	return next
}

// UUIDs reads a list of uuid.
func (r *Reader) UUIDs(b []byte, off int, to *[]UUID) int {
	q, next := flat(r, b, off, TypeUUID, to)
	if next >= 0 {
		loadUUIDs(*to, q)
	}
	return next
}
