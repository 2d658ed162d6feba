package thrift

import "math"

// leastOfCompact returns the minimum size of an element of type t, or 0 if t is invalid.
func leastOfCompact(t byte) int {
	switch {
	case t == 0 || t > CompactTypeUUID:
		return 0
	case t == CompactTypeDouble:
		return 8
	case t == CompactTypeUUID:
		return 16
	}
	return 1
}

// uvarint reads an unsigned number.
func uvarint(b []byte, off int) (v uint64, next int) {
	for shift := uint(0); ; shift += 7 {
		if off >= len(b) {
			return 0, CodeShort
		}
		c := b[off]
		off++
		if shift == 63 && c > 1 {
			return 0, CodeNumber
		}
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v, off
		}
	}
}

// length reads a count of elements of at least least bytes, which must fit into the rest of the
// input.
func length(b []byte, off, least int) (n, next int) {
	v, off := uvarint(b, off)
	if off < 0 {
		return 0, off
	}
	if v > math.MaxInt32 || int(v) > (len(b)-off)/least {
		return 0, CodeLength
	}
	return int(v), off
}

// CompactField reads the head of a field. key is its ID, shifted by 8, and its type, or 0 at the
// end of a struct. last is the ID of the field before it in the same struct, or 0.
func CompactField(b []byte, off int, last uint16) (key uint32, next int) {
	if off >= len(b) {
		return 0, CodeShort
	}
	c := b[off]
	off++
	if c == 0 {
		return 0, off
	}
	t := c & 15
	if t == 0 || t > CompactTypeUUID {
		return 0, CodeType
	}
	id := last + uint16(c>>4)
	if c>>4 == 0 {
		v, next := uvarint(b, off)
		if next < 0 {
			return 0, next
		}
		if v > math.MaxUint16 {
			return 0, CodeNumber
		}
		id, off = uint16(unzigzag(v)), next
	}
	return uint32(id)<<8 | uint32(t), off
}

// compactList reads the head of a list or set.
func compactList(b []byte, off int) (t byte, n, next int) {
	if off >= len(b) {
		return 0, 0, CodeShort
	}
	t, n = b[off]&15, int(b[off]>>4)
	off++
	least := leastOfCompact(t)
	switch {
	case n == 0:
		return t, 0, off
	case least == 0:
		return t, 0, CodeType
	case n == 15:
		n, off = length(b, off, least)
	case n > (len(b)-off)/least:
		return t, 0, CodeLength
	}
	return t, n, off
}

// compactMap reads the head of a map.
func compactMap(b []byte, off int) (k, v byte, n, next int) {
	count, next := length(b, off, 1)
	if next < 0 || count == 0 {
		return 0, 0, 0, next
	}
	if next >= len(b) {
		return 0, 0, 0, CodeShort
	}
	k, v = b[next]>>4, b[next]&15
	next++
	mk, mv := leastOfCompact(k), leastOfCompact(v)
	if mk == 0 || mv == 0 {
		return k, v, 0, CodeType
	}
	if count > (len(b)-next)/(mk+mv) {
		return k, v, 0, CodeLength
	}
	return k, v, count, next
}

// sameCompact reports whether elements of type t may be read as elements of type want.
func sameCompact(t, want byte) bool {
	return t == want || t == CompactTypeFalse && want == CompactTypeTrue
}

// SkipCompact returns the offset after the value of a field of type t at off, or a code. The
// value may have depth levels of structs and containers.
func SkipCompact(b []byte, off int, t byte, depth int) int {
	if t == CompactTypeTrue || t == CompactTypeFalse {
		return off
	}
	return skipCompactElem(b, off, t, depth)
}

// skipCompactElem is SkipCompact for an element: a bool has one byte.
func skipCompactElem(b []byte, off int, t byte, depth int) int {
	switch t {
	case CompactTypeI16, CompactTypeI32, CompactTypeI64:
		_, off = uvarint(b, off)
		return off
	case CompactTypeTrue, CompactTypeFalse, CompactTypeI8, CompactTypeDouble, CompactTypeUUID:
		if n := leastOfCompact(t); len(b)-off >= n {
			return off + n
		}
		return CodeShort
	case CompactTypeString:
		n, off := length(b, off, 1)
		if off < 0 {
			return off
		}
		return off + n
	}
	if t > CompactTypeUUID || t == 0 {
		return CodeType
	}
	if depth <= 0 {
		return CodeDeep
	}
	switch t {
	case CompactTypeStruct:
		return skipCompactStruct(b, off, depth)
	case CompactTypeMap:
		return skipCompactMap(b, off, depth)
	}
	return skipCompactList(b, off, depth)
}

func skipCompactStruct(b []byte, off, depth int) int {
	for {
		key, next := CompactField(b, off, 0)
		if next < 0 || key == 0 {
			return next
		}
		if off = SkipCompact(b, next, byte(key), depth-1); off < 0 {
			return off
		}
	}
}

func skipCompactList(b []byte, off, depth int) int {
	t, n, off := compactList(b, off)
	if off < 0 || n == 0 {
		return off
	}
	switch t {
	case CompactTypeTrue, CompactTypeFalse, CompactTypeI8, CompactTypeDouble, CompactTypeUUID:
		return off + n*leastOfCompact(t)
	}
	for ; n > 0 && off >= 0; n-- {
		off = skipCompactElem(b, off, t, depth-1)
	}
	return off
}

func skipCompactMap(b []byte, off, depth int) int {
	k, v, n, off := compactMap(b, off)
	for ; n > 0 && off >= 0; n-- {
		if off = skipCompactElem(b, off, k, depth-1); off >= 0 {
			off = skipCompactElem(b, off, v, depth-1)
		}
	}
	return off
}
