package thrift

import "encoding/binary"

const (
	// maxFrame is the size of the largest frame that has views: offsets in it have 31 bits, and
	// the sum of an offset and the size of a number is an int on every platform.
	maxFrame = 1<<31 - 64
	// knownDepth is the depth for Skip where values were checked before.
	knownDepth = 1 << 30
)

// viewCheck checks a message for views of it. It accepts what ReadThrift accepts, unless
// ReadThrift needs more memory than allowed.
type viewCheck struct {
	b     []byte
	where int  // the value that a code is about, if walking over the input does not find it, or -1
	twice bool // structs has stored the offset of a field that occurs more than once
}

func (c *viewCheck) fail(code, off int) int {
	if c.where < 0 {
		c.where = off
	}
	return code
}

// structs checks n structs that follow each other at off, and returns the offset after them or a
// code. If at is not nil, n is 1, and structs stores where the values of the fields are.
//
// The loop has to be fast for what it expects. It loads the head of a field and what can follow it
// at once: the length of a string, or the type and number of elements. In each case of the switch
// it adds a constant to off, so that the processor, which predicts the case, need not wait for the
// load before it loads the next head. A field is expected at the place after that of the field
// before it, or where its ID would place it if there were no gaps between IDs.
func (c *viewCheck) structs(off, n, depth int, t *ViewTable, index int, at []uint32) int {
	if depth <= 0 {
		return c.fail(CodeDeep, off)
	}
	b, s := c.b, &t.Structs[index]
	fields := s.Fields
	for ; n > 0; n-- {
		start, expect, known, seen := off, 0, 0, uint64(0)
		for {
			var head uint64
			if left := len(b) - off; left >= 8 {
				head = binary.BigEndian.Uint64(b[off:])
			} else if left > 0 {
				head = headNearEnd(b[off:])
			} else {
				return CodeShort
			}
			kind, key := byte(head>>56), uint32(head>>40)
			if kind == TypeStop {
				break
			}
			i := expect
			if i >= len(fields) || fields[i].Key != key {
				i = int(uint16(key) - s.first())
				if i >= len(fields) || fields[i].Key != key {
					i = s.place(key)
				}
			}
			if i >= 0 {
				expect = i + 1
				known++
				seen |= 1 << uint(i)
				if i < len(at) {
					c.twice = c.twice || at[i] != 0
					at[i] = uint32(off + 3)
				}
			}
			switch kind {
			case TypeBool, TypeI8:
				off += 4
			case TypeI16:
				off += 5
			case TypeI32:
				off += 7
			case TypeI64, TypeDouble:
				off += 11
			case TypeUUID:
				off += 19
			case TypeString:
				size := uint32(head >> 8)
				if left := len(b) - off - 7; left < 0 {
					return CodeShort
				} else if uint(size) > uint(left) {
					return CodeLength
				}
				off += 7 + int(size)
			case TypeList, TypeSet:
				if i >= 0 && uint32(head) == 0 && len(b)-off >= 8 {
					off += 8
					continue
				}
				if i < 0 {
					off = Skip(b, off+3, kind, depth-1)
				} else {
					off = c.list(off+3, depth-1, t, fields[i].Type)
				}
				if off < 0 {
					return off
				}
			default:
				if i < 0 {
					off = Skip(b, off+3, kind, depth-1)
				} else {
					off = c.value(off+3, kind, depth-1, t, fields[i].Type)
				}
				if off < 0 {
					return off
				}
			}
		}
		if code := s.complete(b, start, known, seen); code < 0 {
			return c.fail(code, off)
		}
		off++
	}
	return off
}

// headNearEnd returns the first 8 bytes of b, and zeros for those that b does not have.
func headNearEnd(b []byte) uint64 {
	var head [8]byte
	copy(head[:], b)
	return binary.BigEndian.Uint64(head[:])
}

// first returns the ID of the first field.
func (s *ViewStruct) first() uint16 {
	if len(s.Fields) == 0 {
		return 0
	}
	return uint16(s.Fields[0].Key)
}

// complete returns a code below zero if required fields are missing, or fields of a union. The
// struct at start has known fields of those in its table; seen are the first 64 of them.
func (s *ViewStruct) complete(b []byte, start, known int, seen uint64) int {
	if s.Union && known != 1 {
		return CodeUnion
	}
	if len(s.Required) == 0 {
		return 0
	}
	if seen&s.Required[0] != s.Required[0] || len(s.Required) > 1 && !s.completeWide(b, start) {
		return CodeMissing
	}
	return 0
}

// completeWide reports whether the struct at start, which was checked before, has the required
// fields after the first 64. It walks over the struct once for each 64 of them.
func (s *ViewStruct) completeWide(b []byte, start int) bool {
	for word := 1; word < len(s.Required); word++ {
		seen := uint64(0)
		for off := start; b[off] != TypeStop; off = Skip(b, off+3, b[off], knownDepth) {
			if i := s.place(keyAt(b, off)); i>>6 == word {
				seen |= 1 << (uint(i) & 63)
			}
		}
		if seen&s.Required[word] != s.Required[word] {
			return false
		}
	}
	return true
}

// keyAt returns the key of the field whose head is at off.
func keyAt(b []byte, off int) uint32 {
	return uint32(b[off])<<16 | uint32(binary.BigEndian.Uint16(b[off+1:]))
}

// value checks the value at off, whose type on the wire is kind and has the contents t.
func (c *viewCheck) value(off int, kind byte, depth int, table *ViewTable, t *ViewType) int {
	switch kind {
	case TypeStruct:
		return c.structs(off, 1, depth, tableOr(t.Table, table), t.Struct, nil)
	case TypeList, TypeSet:
		return c.list(off, depth, table, t)
	case TypeMap:
		return c.maps(off, depth, table, t)
	}
	return Skip(c.b, off, kind, depth)
}

func tableOr(t, otherwise *ViewTable) *ViewTable {
	if t != nil {
		return t
	}
	return otherwise
}

func (c *viewCheck) list(off, depth int, table *ViewTable, t *ViewType) int {
	n, next := count(c.b, off, t.Elem, max(1, leastOf(t.Elem)))
	if next < 0 {
		return c.fail(next, off)
	}
	switch t.Elem {
	case TypeString:
		return skipStrings(c.b, next, n)
	case TypeStruct:
		if n == 0 {
			return next
		}
		return c.structs(next, n, depth-1, tableOr(t.ElemType.Table, table), t.ElemType.Struct, nil)
	case TypeList, TypeSet, TypeMap:
		for ; n > 0 && next >= 0; n-- {
			next = c.value(next, t.Elem, depth-1, table, t.ElemType)
		}
		return next
	}
	return next + n*int(fixed[t.Elem])
}

func (c *viewCheck) maps(off, depth int, table *ViewTable, t *ViewType) int {
	n, next := countMap(c.b, off, t.Key, t.Elem, max(1, leastOf(t.Key)+leastOf(t.Elem)))
	if next < 0 {
		return c.fail(next, off)
	}
	if t.Key == TypeString && t.Elem == TypeString {
		return skipStrings(c.b, next, 2*n)
	}
	for ; n > 0 && next >= 0; n-- {
		if next = c.value(next, t.Key, depth-1, table, t.KeyType); next >= 0 {
			next = c.value(next, t.Elem, depth-1, table, t.ElemType)
		}
	}
	return next
}

// skipStrings returns the offset after n strings, or a code.
func skipStrings(b []byte, off, n int) int {
	for ; n > 0; n-- {
		if len(b)-off < 4 {
			return CodeShort
		}
		size := binary.BigEndian.Uint32(b[off:])
		off += 4
		if uint(size) > uint(len(b)-off) {
			return CodeLength
		}
		off += int(size)
	}
	return off
}
