package thrift

import (
	"encoding/binary"
	"iter"
	"unsafe"
)

// Number is the type of an element that has the same size in every message.
type Number interface {
	bool | int8 | int16 | ~int32 | int64 | float64 | UUID
}

// NumberAt returns a number, bool or uuid.
func NumberAt[T Number](b []byte, off int) (T, int) {
	var v T
	switch size := int(unsafe.Sizeof(v)); size {
	case 1:
		c := b[off]
		if _, ok := any(v).(bool); ok && c != 0 {
			c = 1
		}
		*(*byte)(unsafe.Pointer(&v)) = c
	case 2:
		*(*uint16)(unsafe.Pointer(&v)) = binary.BigEndian.Uint16(b[off:])
	case 4:
		*(*uint32)(unsafe.Pointer(&v)) = binary.BigEndian.Uint32(b[off:])
	case 8:
		*(*uint64)(unsafe.Pointer(&v)) = binary.BigEndian.Uint64(b[off:])
	default:
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&v)), size), b[off:])
	}
	return v, off + int(unsafe.Sizeof(v))
}

// NumbersView is a list or set of numbers, bools, enums or uuids in an encoded message. The zero
// value is an absent list.
type NumbersView[T Number] struct {
	elems   []byte
	present bool
}

// ViewNumbers returns the list in the field of v at off.
func ViewNumbers[T Number](v *View, off uint32) NumbersView[T] {
	var x T
	elems, present := v.numbers(off, int(unsafe.Sizeof(x)))
	return NumbersView[T]{elems, present}
}

// numbers returns the elements of a list, which have size bytes each, and whether the list is present.
//
//go:noinline
func (v *View) numbers(off uint32, size int) (elems []byte, present bool) {
	if off == 0 {
		return nil, false
	}
	b, from, n := listAt(v.mem[off>>31], int(off&^inChanges))
	return b[from : from+n*size : from+n*size], true
}

// NumbersAt returns a list or set of numbers, bools, enums or uuids.
func NumbersAt[T Number](b []byte, off int) (NumbersView[T], int) {
	var x T
	_, from, n := listAt(b, off)
	end := from + n*int(unsafe.Sizeof(x))
	return NumbersView[T]{b[from:end:end], true}, end
}

// Present reports whether the field is present. It is true for an empty list.
func (l NumbersView[T]) Present() bool { return l.present }

// Len returns the number of elements.
func (l NumbersView[T]) Len() int {
	var v T
	return len(l.elems) / int(unsafe.Sizeof(v))
}

// At returns the element at index i, or the zero value if there is none.
func (l NumbersView[T]) At(i int) (v T) {
	if uint(i) < uint(l.Len()) {
		v, _ = NumberAt[T](l.elems, i*int(unsafe.Sizeof(v)))
	}
	return v
}

// All returns an iterator over the indexes and the elements.
func (l NumbersView[T]) All() iter.Seq2[int, T] { return l.each }

func (l NumbersView[T]) each(yield func(int, T) bool) {
	for i, off := 0, 0; off < len(l.elems); i++ {
		var v T
		if v, off = NumberAt[T](l.elems, off); !yield(i, v) {
			return
		}
	}
}

// AppendTo appends the elements to a slice and returns the extended slice. It is faster than a loop
// over All.
func (l NumbersView[T]) AppendTo(to []T) []T {
	n := l.Len()
	if cap(to)-len(to) < n {
		to = append(make([]T, 0, max(len(to)+n, 2*cap(to))), to...)
	}
	load(to[len(to):len(to)+n], l.elems)
	return to[:len(to)+n]
}

// load reads the elements of a list. Elements of the same size are read in the same way, except for
// bool.
func load[T Number](to []T, q []byte) {
	var v T
	p := unsafe.Pointer(&to)
	switch unsafe.Sizeof(v) {
	case 1:
		if _, ok := any(v).(bool); ok {
			loadBools(*(*[]bool)(p), q)
		} else {
			loadI8s(*(*[]int8)(p), q)
		}
	case 2:
		loadI16s(*(*[]int16)(p), q)
	case 4:
		loadI32s(*(*[]int32)(p), q)
	case 8:
		loadI64s(*(*[]int64)(p), q)
	default:
		loadUUIDs(*(*[]UUID)(p), q)
	}
}

// ListView is a list or set of strings, binaries, structs or containers in an encoded message. The
// zero value is an absent list.
type ListView[T any] struct {
	b    []byte
	off  int // offset of the first element
	n    int
	read func(b []byte, off int) (T, int)
}

// ViewList returns the list in the field of v at off. read returns an element at an offset, and the
// offset after it.
func ViewList[T any](v *View, off uint32, read func(b []byte, off int) (T, int)) ListView[T] {
	b, from, n := v.list(off)
	return ListView[T]{b, from, n, read}
}

// list returns where the elements of a list are, and how many. If the list is absent, b is nil.
//
//go:noinline
func (v *View) list(off uint32) (b []byte, from, n int) {
	if off == 0 {
		return nil, 0, 0
	}
	return listAt(v.mem[off>>31], int(off&^inChanges))
}

func listAt(b []byte, off int) ([]byte, int, int) {
	return b, off + 5, int(binary.BigEndian.Uint32(b[off+1:]))
}

// ListAt returns a list or set whose elements are not numbers. read is as for ViewList.
func ListAt[T any](b []byte, off int, read func(b []byte, off int) (T, int)) (ListView[T], int) {
	b, from, n := listAt(b, off)
	return ListView[T]{b, from, n, read}, Skip(b, off, TypeList, knownDepth)
}

// Present reports whether the field is present. It is true for an empty list.
func (l ListView[T]) Present() bool { return l.b != nil }

// Len returns the number of elements.
func (l ListView[T]) Len() int { return l.n }

// All returns an iterator over the indexes and the elements.
func (l ListView[T]) All() iter.Seq2[int, T] { return l.each }

func (l ListView[T]) each(yield func(int, T) bool) {
	off := l.off
	for i := range l.n {
		var v T
		if v, off = l.read(l.b, off); off < 0 || !yield(i, v) {
			return
		}
	}
}

// MapView is a map in an encoded message. The zero value is an absent map.
type MapView[K, V any] struct {
	b     []byte
	off   int // offset of the first entry
	n     int
	key   func(b []byte, off int) (K, int)
	value func(b []byte, off int) (V, int)
}

// ViewMap returns the map in the field of v at off. key and value return the key or value at an
// offset, and the offset after it.
func ViewMap[K, V any](v *View, off uint32, key func(b []byte, off int) (K, int), value func(b []byte, off int) (V, int)) MapView[K, V] {
	b, from, n := v.entries(off)
	return MapView[K, V]{b, from, n, key, value}
}

// entries is list for maps.
//
//go:noinline
func (v *View) entries(off uint32) (b []byte, from, n int) {
	if off == 0 {
		return nil, 0, 0
	}
	// After the type of keys, the head of a map is that of a list.
	return listAt(v.mem[off>>31], int(off&^inChanges)+1)
}

// MapAt returns a map. key and value are as for ViewMap.
func MapAt[K, V any](b []byte, off int, key func(b []byte, off int) (K, int), value func(b []byte, off int) (V, int)) (MapView[K, V], int) {
	b, from, n := listAt(b, off+1)
	return MapView[K, V]{b, from, n, key, value}, Skip(b, off, TypeMap, knownDepth)
}

// Present reports whether the field is present. It is true for an empty map.
func (m MapView[K, V]) Present() bool { return m.b != nil }

// Len returns the number of entries in the message. If some have the same key, a Go map would have
// fewer.
func (m MapView[K, V]) Len() int { return m.n }

// All returns an iterator over the entries, in the order of the message. If several have the same
// key, the last one counts, as in maps.Collect.
func (m MapView[K, V]) All() iter.Seq2[K, V] { return m.each }

func (m MapView[K, V]) each(yield func(K, V) bool) {
	off := m.off
	for range m.n {
		var k K
		var v V
		if k, off = m.key(m.b, off); off < 0 {
			return
		}
		if v, off = m.value(m.b, off); off < 0 || !yield(k, v) {
			return
		}
	}
}

// Lookup returns the value of a key and whether the map has the key. It compares the key with that
// of each entry.
func Lookup[K comparable, V any](m MapView[K, V], key K) (value V, ok bool) {
	for k, v := range m.All() {
		if k == key {
			value, ok = v, true
		}
	}
	return value, ok
}
