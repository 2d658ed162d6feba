package thrift

import "encoding/binary"

// Before memory is allocated, a count is compared with the size of the rest of the input divided by
// the minimum size of an element. Skip makes the same check.

// Skip returns the offset after the value of type t at off, or a code. The value may have depth
// levels of structs and containers.
func Skip(b []byte, off int, t byte, depth int) int {
	if int(t) < len(fixed) && fixed[t] != 0 {
		if len(b)-off < int(fixed[t]) {
			return CodeShort
		}
		return off + int(fixed[t])
	}
	if t == TypeString {
		return SkipString(b, off)
	}
	if depth <= 0 {
		return CodeDeep
	}
	switch t {
	case TypeStruct:
		return skipStruct(b, off, depth)
	case TypeList, TypeSet:
		return skipList(b, off, depth)
	case TypeMap:
		return skipMap(b, off, depth)
	}
	return CodeType
}

// SkipString returns the offset after the string or binary at off, or a code.
func SkipString(b []byte, off int) int {
	if len(b)-off < 4 {
		return CodeShort
	}
	n := int(int32(binary.BigEndian.Uint32(b[off:])))
	off += 4
	if uint(n) > uint(len(b)-off) {
		return CodeLength
	}
	return off + n
}

func skipStruct(b []byte, off, depth int) int {
	for {
		if off >= len(b) {
			return CodeShort
		}
		t := b[off]
		if t == TypeStop {
			return off + 1
		}
		if len(b)-off < 3 {
			return CodeShort
		}
		if off = Skip(b, off+3, t, depth-1); off < 0 {
			return off
		}
	}
}

func skipList(b []byte, off, depth int) int {
	if len(b)-off < 5 {
		return CodeShort
	}
	t, n := b[off], int(int32(binary.BigEndian.Uint32(b[off+1:])))
	off += 5
	if n == 0 {
		return off
	}
	m := leastOf(t)
	if m == 0 {
		return CodeType
	}
	if uint(n) > uint((len(b)-off)/m) {
		return CodeLength
	}
	if size := int(fixed[t]); size != 0 {
		return off + n*size
	}
	for ; n > 0 && off >= 0; n-- {
		off = Skip(b, off, t, depth-1)
	}
	return off
}

func skipMap(b []byte, off, depth int) int {
	if len(b)-off < 6 {
		return CodeShort
	}
	k, v, n := b[off], b[off+1], int(int32(binary.BigEndian.Uint32(b[off+2:])))
	off += 6
	if n == 0 {
		return off
	}
	mk, mv := leastOf(k), leastOf(v)
	if mk == 0 || mv == 0 {
		return CodeType
	}
	if uint(n) > uint((len(b)-off)/(mk+mv)) {
		return CodeLength
	}
	for ; n > 0 && off >= 0; n-- {
		if off = Skip(b, off, k, depth-1); off >= 0 {
			off = Skip(b, off, v, depth-1)
		}
	}
	return off
}

// count returns how many elements of type t the list or set at off has, and the offset of the
// first. It returns a code in place of the offset if that many elements of least bytes do not fit
// into the rest of the input. An empty list may have any type.
func count(b []byte, off int, t byte, least int) (n, next int) {
	if len(b)-off < 5 {
		return 0, CodeShort
	}
	n = int(int32(binary.BigEndian.Uint32(b[off+1:])))
	switch {
	case n == 0:
		return 0, off + 5
	case b[off] != t:
		return 0, CodeElem
	case uint(n) > uint((len(b)-off-5)/least):
		return 0, CodeLength
	}
	return n, off + 5
}

// countMap is count for maps; least is the minimum size of an entry.
func countMap(b []byte, off int, k, v byte, least int) (n, next int) {
	if len(b)-off < 6 {
		return 0, CodeShort
	}
	n = int(int32(binary.BigEndian.Uint32(b[off+2:])))
	switch {
	case n == 0:
		return 0, off + 6
	case b[off] != k || b[off+1] != v:
		return 0, CodeElem
	case uint(n) > uint((len(b)-off-6)/least):
		return 0, CodeLength
	}
	return n, off + 6
}
