package thrift

import (
	"encoding/binary"
	"math"
)

// Unknown fields are kept in the encoding of the Binary protocol even if they were read in the
// Compact protocol, so that a struct can be read in one protocol and written in the other.

// Unknown holds the fields of a struct that are not in its declaration, in the order in which they
// were read, encoded in the Binary protocol. It is written after the known fields.
type Unknown []byte

// Keep appends the field with the value at off to u and returns the offset after it. The head of
// the field is before off.
func (r *Reader) Keep(b []byte, off int, t byte, depth int, u *Unknown) int {
	next := Skip(b, off, t, depth)
	if next < 0 {
		return next
	}
	if *u == nil && r.Memory == MemoryFrame {
		*u = b[off-3 : next : next]
		return next
	}
	if !r.charge(next-off+3, 1) {
		return r.fail(CodeMemory, off)
	}
	*u = append(*u, b[off-3:next]...)
	return next
}

// KeepCompact is Keep for a field that was read in the Compact protocol. key is the result of
// CompactField.
func (r *Reader) KeepCompact(b []byte, off int, key uint32, depth int, u *Unknown) int {
	if !r.charge(4, 1) { // the head, which includes the value of a bool
		return r.fail(CodeMemory, off)
	}
	t, elem := binaryOf(byte(key)), *u
	elem = append(elem, t, byte(key>>16), byte(key>>8))
	var next int
	if t == TypeBool {
		elem, next = append(elem, CompactTypeFalse-byte(key)), off
	} else if elem, next = r.fromCompact(elem, b, off, byte(key), depth); next < 0 {
		return next
	}
	*u = elem
	return next
}

// AppendCompactUnknown appends unknown fields in the Compact protocol. last is the ID of the field
// before them in the same struct, or 0. If u was not read by this package, it must be valid.
func AppendCompactUnknown(b []byte, u Unknown, last uint16) []byte {
	for off := 0; off < len(u); {
		t, id := u[off], binary.BigEndian.Uint16(u[off+1:])
		b, off = toCompactField(b, u, off+3, t, id, last)
		last = id
	}
	return b
}

var compactTypes = [17]byte{
	TypeBool: CompactTypeBool, TypeI8: CompactTypeI8, TypeDouble: CompactTypeDouble, TypeI16: CompactTypeI16,
	TypeI32: CompactTypeI32, TypeI64: CompactTypeI64, TypeString: CompactTypeString, TypeStruct: CompactTypeStruct,
	TypeMap: CompactTypeMap, TypeSet: CompactTypeSet, TypeList: CompactTypeList, TypeUUID: CompactTypeUUID,
}

var binaryTypes = [16]byte{
	CompactTypeTrue: TypeBool, CompactTypeFalse: TypeBool, CompactTypeI8: TypeI8, CompactTypeI16: TypeI16,
	CompactTypeI32: TypeI32, CompactTypeI64: TypeI64, CompactTypeDouble: TypeDouble, CompactTypeString: TypeString,
	CompactTypeList: TypeList, CompactTypeSet: TypeSet, CompactTypeMap: TypeMap, CompactTypeStruct: TypeStruct,
	CompactTypeUUID: TypeUUID,
}

// binaryOf converts a type of the Compact protocol to one of the Binary protocol.
func binaryOf(t byte) byte { return binaryTypes[t&15] }

// compactOf is the inverse of binaryOf. It returns 0 if t is not a valid type, which an empty list
// may have.
func compactOf(t byte) byte {
	if int(t) < len(compactTypes) {
		return compactTypes[t]
	}
	return 0
}

// toCompactField appends the field whose value is at off in u, and returns the offset after it.
func toCompactField(b []byte, u Unknown, off int, t byte, id, last uint16) ([]byte, int) {
	if t == TypeBool {
		return AppendCompactBoolHead(b, u[off] != 0, id, last), off + 1
	}
	return toCompact(AppendCompactHead(b, compactOf(t), id, last), u, off, t)
}

// toCompact appends the value of type t that is at off in u, and returns the offset after it.
func toCompact(b []byte, u Unknown, off int, t byte) ([]byte, int) {
	switch t {
	case TypeBool:
		return AppendCompactBool(b, u[off] != 0), off + 1
	case TypeI8:
		return append(b, u[off]), off + 1
	case TypeI16:
		return AppendCompactInt(b, int16(binary.BigEndian.Uint16(u[off:]))), off + 2
	case TypeI32:
		return AppendCompactInt(b, int32(binary.BigEndian.Uint32(u[off:]))), off + 4
	case TypeI64:
		return AppendCompactInt(b, int64(binary.BigEndian.Uint64(u[off:]))), off + 8
	case TypeDouble:
		return AppendCompactDouble(b, math.Float64frombits(binary.BigEndian.Uint64(u[off:]))), off + 8
	case TypeUUID:
		return append(b, u[off:off+16]...), off + 16
	case TypeString:
		end := SkipString(u, off)
		return AppendCompactString(b, u[off+4:end]), end
	case TypeStruct:
		for last := uint16(0); ; {
			t := u[off]
			if t == TypeStop {
				return append(b, TypeStop), off + 1
			}
			id := binary.BigEndian.Uint16(u[off+1:])
			b, off = toCompactField(b, u, off+3, t, id, last)
			last = id
		}
	case TypeMap:
		return toCompactMap(b, u, off)
	}
	elem, n := u[off], int(binary.BigEndian.Uint32(u[off+1:]))
	b, off = AppendCompactList(b, compactOf(elem), n), off+5
	for range n {
		b, off = toCompact(b, u, off, elem)
	}
	return b, off
}

func toCompactMap(b []byte, u Unknown, off int) ([]byte, int) {
	k, v, n := u[off], u[off+1], int(binary.BigEndian.Uint32(u[off+2:]))
	off += 6
	if n == 0 {
		return append(b, 0), off
	}
	b = AppendCompactMap(b, compactOf(k), compactOf(v), n)
	for range n {
		b, off = toCompact(b, u, off, k)
		b, off = toCompact(b, u, off, v)
	}
	return b, off
}

// fromCompact appends the element of type t that is at off in b to u, in the Binary protocol. It
// returns the offset after it or a code. The bytes that it appends count toward the memory limit.
func (r *Reader) fromCompact(u Unknown, b []byte, off int, t byte, depth int) (Unknown, int) {
	if nested := t >= CompactTypeList && t != CompactTypeUUID; nested && depth <= 0 {
		return u, CodeDeep
	}
	if !r.charge(16, 1) {
		return u, r.fail(CodeMemory, off)
	}
	var v int64
	switch t {
	case CompactTypeTrue, CompactTypeFalse:
		if off >= len(b) {
			return u, CodeShort
		}
		return append(u, Bit(b[off] == CompactTypeTrue)), off + 1
	case CompactTypeI8, CompactTypeUUID:
		next := skipCompactElem(b, off, t, depth)
		if next < 0 {
			return u, next
		}
		return append(u, b[off:next]...), next
	case CompactTypeI16:
		if off = readNumber[int16](b, off, &v); off < 0 {
			return u, off
		}
		return AppendI16(u, int16(v)), off
	case CompactTypeI32:
		if off = readNumber[int32](b, off, &v); off < 0 {
			return u, off
		}
		return AppendI32(u, int32(v)), off
	case CompactTypeI64:
		if off = ReadCompactInt(b, off, &v); off < 0 {
			return u, off
		}
		return AppendI64(u, v), off
	case CompactTypeDouble:
		var d float64
		if off = ReadCompactDouble(b, off, &d); off < 0 {
			return u, off
		}
		return AppendDouble(u, d), off
	case CompactTypeString:
		n, from := length(b, off, 1)
		if from < 0 {
			return u, from
		}
		if !r.charge(n, 1) {
			return u, r.fail(CodeMemory, off)
		}
		return AppendString(u, b[from:from+n]), from + n
	case CompactTypeStruct:
		return r.structFromCompact(u, b, off, depth)
	case CompactTypeList, CompactTypeSet:
		return r.listFromCompact(u, b, off, depth)
	case CompactTypeMap:
		return r.mapFromCompact(u, b, off, depth)
	}
	return u, CodeType
}

func readNumber[T ~int16 | ~int32](b []byte, off int, to *int64) int {
	var v T
	off = ReadCompactInt(b, off, &v)
	*to = int64(v)
	return off
}

func (r *Reader) structFromCompact(u Unknown, b []byte, off, depth int) (Unknown, int) {
	for last := uint16(0); ; {
		key, next := CompactField(b, off, last)
		if next < 0 {
			return u, next
		}
		if key == 0 {
			return append(u, TypeStop), next
		}
		if next = r.KeepCompact(b, next, key, depth-1, &u); next < 0 {
			return u, next
		}
		off, last = next, uint16(key>>8)
	}
}

func (r *Reader) listFromCompact(u Unknown, b []byte, off, depth int) (Unknown, int) {
	t, n, off := compactList(b, off)
	if off < 0 {
		return u, off
	}
	u = AppendList(u, binaryOf(t), n)
	for ; n > 0 && off >= 0; n-- {
		u, off = r.fromCompact(u, b, off, t, depth-1)
	}
	return u, off
}

func (r *Reader) mapFromCompact(u Unknown, b []byte, off, depth int) (Unknown, int) {
	k, v, n, off := compactMap(b, off)
	if off < 0 {
		return u, off
	}
	u = AppendMap(u, binaryOf(k), binaryOf(v), n)
	for ; n > 0 && off >= 0; n-- {
		if u, off = r.fromCompact(u, b, off, k, depth-1); off >= 0 {
			u, off = r.fromCompact(u, b, off, v, depth-1)
		}
	}
	return u, off
}
