package thrift

import (
	"encoding/binary"
	"unsafe"
)

//   - A message is checked once, including types, so getters of nested structs need no error
//     results. A view accepts what ReadThrift accepts, with the same depth; memory is not limited
//     because none is used. Views of nested structs check again: that is as fast as skipping
//     without checks, and no assumption is made about where the bytes came from.
//   - plain is a loop without calls, so that its variables stay in registers; structs handles the rest:
//     structs in structs, nested containers, unknown fields, all errors. plain is generic so that
//     the compiler makes two functions of it; the one for lists of structs stores no offsets. One
//     load reads the head of a field and the length or count after it. A field is looked up after
//     the previous one (fields in the order of IDs), then at its ID minus the first ID (fixed-size
//     fields first, and any other order), then by binary search. The size of a number is that of
//     the expected field, so a processor that predicts that the field is the expected one continues
//     before the load has completed. A jump table by type is as fast in the order of IDs, and
//     slower in any other (0.8 times the speed); a dedicated loop for fields in the order of IDs,
//     which needs no bits of required fields, was no faster. BenchmarkViewOpen and
//     BenchmarkViewForward compare views with ReadThrift.

const (
	// maxFrame is the maximum size of a frame with views: offsets in it have 31 bits, and the sum
	// of an offset and the size of a number fits into an int on every platform.
	maxFrame = 1<<31 - 64
	// knownDepth is the depth for Skip if the values have been checked.
	knownDepth = 1 << 30
)

// viewCheck checks a message for views of it. It accepts what ReadThrift accepts, unless
// ReadThrift needs more memory than allowed.
type viewCheck struct {
	b     []byte
	where int  // the value that a code refers to, if walking over the input does not find it, or -1
	twice bool // structs has stored the offset of a field that occurs more than once
}

func (c *viewCheck) fail(code, off int) int {
	if c.where < 0 {
		c.where = off
	}
	return code
}

// structs checks n consecutive structs at off, and returns the offset after them or a code. If at
// is not nil, n is 1, and structs stores the offsets of the values of the fields in it.
func (c *viewCheck) structs(off, n, depth int, t *ViewTable, index int, at []uint32) int {
	if depth <= 0 {
		return c.fail(CodeDeep, off)
	}
	b, s := c.b, &t.Structs[index]
	start, expect, fields, seen := off, 0, 0, uint64(0)
	for n > 0 {
		if !s.Union {
			if at == nil {
				off, n, expect, seen = plain[struct{}](c.b, s, off, n, expect, seen, nil)
			} else {
				off, n, expect, seen = plain(c.b, s, off, n, expect, seen, at)
			}
			if n == 0 {
				break
			}
		}
		// At off is a field that plain does not handle, or the end of a struct.
		if off >= len(b) {
			return CodeShort
		}
		kind := b[off]
		if kind == TypeStop {
			if code := s.complete(b, start, fields, seen); code < 0 {
				return c.fail(code, off)
			}
			off, n = off+1, n-1
			start, expect, fields, seen = off, 0, 0, 0
			continue
		}
		if len(b)-off < 3 {
			return CodeShort
		}
		fields++
		var next int
		if i := s.place(keyAt(b, off)); i < 0 {
			next = Skip(b, off+3, kind, depth-1)
		} else {
			next = c.value(off+3, kind, depth-1, t, s.Fields[i].Type)
			expect, seen = i+1, seen|1<<uint(i)
			if i < len(at) {
				c.twice = c.twice || at[i] != 0
				at[i] = uint32(off + 3)
			}
		}
		if next < 0 {
			return next
		}
		off = next
	}
	return off
}

// plain is the part of structs for fields that are scalars, strings, lists and sets of these, maps
// of strings, and other containers if they are empty. It stops at unknown and invalid fields and at
// those that occur twice. It returns the offset it has reached, the number of remaining structs,
// the index of the next expected field and the bits of the fields that were seen.
//
// It must be fast for the expected fields. It calls no function, so that variables stay in
// registers. With one load it reads the head of a field and what can follow it: the length of a
// string, or the type and number of elements. The expected index of a field is that after the
// previous field, or its ID minus the first ID, as if there were no gaps between IDs. If the field
// is the expected one, the size of a number comes from the table rather than from the message: a
// processor that predicts this need not wait for the load before the next one.
func plain[T struct{} | uint32](b []byte, s *ViewStruct, off, n, expect int, seen uint64, at []T) (int, int, int, uint64) {
	fields := s.Fields
	var zero T
	p, last := unsafe.SliceData(b), len(b)-8
	for off <= last {
		head := load64(p, off)
		key, i := uint32(head>>40), expect
		kind := key >> 16 // If the field is the expected one, kind comes from the table, to avoid waiting for the load.
		if uint(i) < uint(len(fields)) && fields[i].Key == key {
			kind = fields[i].Key >> 16
		} else {
			if key>>16 == TypeStop {
				if len(s.Required) > 0 && (len(s.Required) > 1 || seen&s.Required[0] != s.Required[0]) {
					break
				}
				off++
				if n--; n == 0 {
					break
				}
				expect, seen = 0, 0
				continue
			}
			if len(fields) == 0 {
				break
			}
			i = int(uint16(key) - uint16(fields[0].Key))
			if uint(i) >= uint(len(fields)) || fields[i].Key != key {
				if i = s.place(key); uint(i) >= uint(len(fields)) {
					break
				}
			}
		}
		f := &fields[i]
		next := off + int(steps[kind&31])
		if next == off {
			next += 8
			switch count := uint32(head); kind {
			case TypeString:
				size := uint32(head >> 8)
				if next--; uint(size) > uint(len(b)-next) {
					return off, n, expect, seen
				}
				next += int(size)
			case TypeList, TypeSet:
				if count == 0 {
					break
				}
				elem := byte(head >> 32)
				if elem != f.Type.Elem {
					return off, n, expect, seen
				}
				if elem == TypeString && count < maxFrame {
					next = skipStrings(b, next, int(count))
				} else if size := uint64(fixedSize(elem)) * uint64(count); size != 0 && size <= uint64(len(b)-next) {
					next += int(size)
				} else {
					return off, n, expect, seen
				}
			case TypeMap:
				if next >= len(b) {
					return off, n, expect, seen
				}
				count = count<<8 | uint32(b[next])
				next++
				if count == 0 {
					break
				}
				const strings = TypeString<<8 | TypeString
				if t := f.Type; uint16(head>>24) != strings || t.Key != TypeString || t.Elem != TypeString || count > maxFrame/2 {
					return off, n, expect, seen
				}
				next = skipStrings(b, next, 2*int(count))
			default:
				return off, n, expect, seen
			}
			if next < 0 {
				return off, n, expect, seen
			}
		}
		if unsafe.Sizeof(zero) != 0 && i < len(at) {
			q := (*uint32)(unsafe.Pointer(&at[i]))
			if *q != 0 {
				break
			}
			*q = uint32(off + 3)
		}
		if i < 64 {
			seen |= 1 << (uint(i) & 63)
		}
		off, expect = next, i+1
	}
	return off, n, expect, seen
}

// steps holds the sizes of fields whose type determines the size.
var steps = [32]uint8{TypeBool: 4, TypeI8: 4, TypeDouble: 11, TypeI16: 5, TypeI32: 7, TypeI64: 11, TypeUUID: 19}

// fixedSize returns the size of values of type t, or 0 if values have different sizes.
func fixedSize(t byte) uint8 {
	if int(t) < len(fixed) {
		return fixed[t]
	}
	return 0
}

// skipStrings returns the offset after n strings, or a code. It is inlined.
func skipStrings(b []byte, off, n int) int {
	p := unsafe.SliceData(b)
	for ; n > 0; n-- {
		if len(b)-off < 4 {
			return CodeShort
		}
		size := load32(p, off)
		off += 4
		if uint(size) > uint(len(b)-off) {
			return CodeLength
		}
		off += int(size)
	}
	return off
}

// load64 returns the 8 bytes at p[off:]. The caller has checked that they are in range.
func load64(p *byte, off int) uint64 {
	return binary.BigEndian.Uint64((*[8]byte)(unsafe.Add(unsafe.Pointer(p), off))[:])
}

// load32 is load64 for 4 bytes.
func load32(p *byte, off int) uint32 {
	return binary.BigEndian.Uint32((*[4]byte)(unsafe.Add(unsafe.Pointer(p), off))[:])
}

// complete returns a negative code if the struct at start lacks required fields, or is a union
// without exactly one field. fields is the number of fields that structs has counted; for a union,
// those are all. seen has a bit for each of the first 64 fields of the table.
func (s *ViewStruct) complete(b []byte, start, fields int, seen uint64) int {
	if s.Union && fields != 1 {
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

// completeWide reports whether the struct at start, which has been checked, has the required fields
// after the first 64. It walks over the struct once for each 64 fields of the table.
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

// value checks the value at off. kind is its type on the wire; t describes its contents.
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
		if n >= fewStructs {
			return c.manyStructs(next, n, depth-1, tableOr(t.ElemType.Table, table), t.ElemType.Struct)
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
