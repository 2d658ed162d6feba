package frame

import (
	"encoding/binary"
	"math"

	"github.com/slipstream-go/slipstream/thrift"
)

// A walker finds the end of a struct whose bytes arrive in pieces. It passes each value once.
type walker struct {
	compact bool
	off     int // what is before it was passed
	depth   int
	levels  [thrift.MaxDepth]level
}

// A level is a struct or a container that has begun. A struct has no types.
type level struct {
	types  [2]byte // of the elements, or of keys and values
	isMap  bool
	second bool // the next element of a map is a value
	left   int  // elements, or keys and values together
}

// newWalker returns a walker for a struct at off.
func newWalker(compact bool, off int) *walker {
	return &walker{compact: compact, off: off, depth: 1}
}

// advance passes the values that are in b. whole reports whether the struct has ended; n is the
// offset after it. Otherwise n is a lower bound of that, which is greater than len(b). code is one of
// package thrift if the bytes are malformed.
func (w *walker) advance(b []byte) (n int64, whole bool, code int) {
	for w.depth > 0 {
		top := &w.levels[w.depth-1]
		t, at := byte(0), w.off
		switch {
		case top.types[0] == 0: // a struct
			if t, at, code = w.field(b); code < 0 {
				return 0, false, code
			}
			if at > len(b) {
				return int64(at), false, 0
			}
			if t == thrift.TypeStop {
				w.off = at
				w.depth--
				continue
			}
		case top.left == 0:
			w.depth--
			continue
		case top.second:
			t = top.types[1]
		default:
			t = top.types[0]
		}
		end, code := w.value(b, t, at)
		if code < 0 {
			return 0, false, code
		}
		if end > int64(len(b)) {
			return end, false, 0
		}
		w.off = int(end)
		if top.types[0] != 0 {
			top.left--
			top.second = top.isMap && !top.second
		}
	}
	return int64(w.off), true, 0
}

// field reads the head of a field and returns its type and the offset of its value. If that is
// greater than len(b), the head is incomplete.
func (w *walker) field(b []byte) (t byte, at, code int) {
	if w.off >= len(b) {
		return 0, len(b) + 1, 0
	}
	if b[w.off] == thrift.TypeStop {
		return thrift.TypeStop, w.off + 1, 0
	}
	if !w.compact {
		return b[w.off], w.off + 3, 0
	}
	key, next := thrift.CompactField(b, w.off, 0)
	if next == thrift.CodeShort {
		return 0, len(b) + 1, 0
	}
	if next < 0 {
		return 0, 0, next
	}
	if t = byte(key); t == thrift.CompactTypeTrue || t == thrift.CompactTypeFalse {
		t = boolInHead
	}
	return t, next, 0
}

// boolInHead is the type of a bool whose value is in the head of its field.
const boolInHead = 0xFF

// value passes the value of type t at off. It returns the offset after it, or after the head of a
// container, which begins a level. If that is greater than len(b), it is a lower bound of the end of
// the value, and nothing was passed.
func (w *walker) value(b []byte, t byte, off int) (end int64, code int) {
	if w.compact && t == boolInHead {
		return int64(off), 0
	}
	if w.depth == len(w.levels) && w.nests(t) {
		return 0, thrift.CodeDeep
	}
	next := 0
	if w.compact {
		switch t {
		case thrift.CompactTypeStruct:
			return w.push(off, level{})
		case thrift.CompactTypeList, thrift.CompactTypeSet:
			return w.compactList(b, off)
		case thrift.CompactTypeMap:
			return w.compactDict(b, off)
		}
		next = thrift.SkipCompact(b, off, t, 1)
	} else {
		switch t {
		case thrift.TypeStruct:
			return w.push(off, level{})
		case thrift.TypeList, thrift.TypeSet:
			return w.list(b, off)
		case thrift.TypeMap:
			return w.dict(b, off)
		}
		next = thrift.Skip(b, off, t, 1)
	}
	switch next {
	case thrift.CodeShort:
		return int64(len(b)) + 1, 0
	case thrift.CodeLength: // a string of which a part is missing
		return w.text(b, off)
	}
	if next < 0 {
		return 0, next
	}
	return int64(next), 0
}

// nests reports whether values of type t contain others.
func (w *walker) nests(t byte) bool {
	if w.compact {
		return t >= thrift.CompactTypeList && t <= thrift.CompactTypeStruct
	}
	return t >= thrift.TypeStruct && t <= thrift.TypeList
}

// text returns the end of a string that is not complete.
func (w *walker) text(b []byte, off int) (end int64, code int) {
	var n uint64
	head := 4
	if w.compact {
		n, head = binary.Uvarint(b[off:])
	} else {
		n = uint64(length(b[off:]))
	}
	if n > math.MaxInt32 {
		return 0, thrift.CodeLength
	}
	return int64(off+head) + int64(n), 0
}

// push begins a level whose first value is at off.
func (w *walker) push(off int, l level) (end int64, code int) {
	w.levels[w.depth] = l
	w.depth++
	return int64(off), 0
}

// sizes holds the sizes of types that all values have the same of, by protocol.
var sizes = [2][17]byte{
	{thrift.TypeBool: 1, thrift.TypeI8: 1, thrift.TypeDouble: 8, thrift.TypeI16: 2, thrift.TypeI32: 4, thrift.TypeI64: 8, thrift.TypeUUID: 16},
	{thrift.CompactTypeTrue: 1, thrift.CompactTypeFalse: 1, thrift.CompactTypeI8: 1, thrift.CompactTypeDouble: 8, thrift.CompactTypeUUID: 16},
}

// size returns the size of an element of type t, or 0 if it is not always the same.
func (w *walker) size(t byte) int {
	i := 0
	if w.compact {
		i = 1
	}
	if int(t) < len(sizes[i]) {
		return int(sizes[i][t])
	}
	return 0
}

// elements begins a container of n elements at off. A level is only needed if their sizes differ.
func (w *walker) elements(t byte, n, off int) (end int64, code int) {
	switch size := w.size(t); {
	case n == 0:
		return int64(off), 0
	case size > 0:
		return int64(off) + int64(n)*int64(size), 0
	case !w.isType(t):
		return 0, thrift.CodeType
	}
	return w.push(off, level{types: [2]byte{t}, left: n})
}

// entries begins a map of n entries at off.
func (w *walker) entries(k, v byte, n, off int) (end int64, code int) {
	switch {
	case n == 0:
		return int64(off), 0
	case !w.isType(k) || !w.isType(v):
		return 0, thrift.CodeType
	case w.size(k) > 0 && w.size(v) > 0:
		return int64(off) + int64(n)*int64(w.size(k)+w.size(v)), 0
	}
	return w.push(off, level{types: [2]byte{w.inMap(k), w.inMap(v)}, isMap: true, left: 2 * n})
}

// inMap returns the type to pass for keys or values of type t: a bool has a byte of its own.
func (w *walker) inMap(t byte) byte {
	if w.compact && (t == thrift.CompactTypeTrue || t == thrift.CompactTypeFalse) {
		return thrift.CompactTypeI8
	}
	return t
}

func (w *walker) isType(t byte) bool {
	if w.compact {
		return t > 0 && t <= thrift.CompactTypeUUID
	}
	return w.size(t) > 0 || t >= thrift.TypeString && t <= thrift.TypeList
}

// list begins a list or a set of the Binary protocol.
func (w *walker) list(b []byte, off int) (end int64, code int) {
	if len(b)-off < 5 {
		return int64(off) + 5, 0
	}
	n := length(b[off+1:])
	if n > math.MaxInt32 {
		return 0, thrift.CodeLength
	}
	return w.elements(b[off], int(n), off+5)
}

// dict begins a map of the Binary protocol.
func (w *walker) dict(b []byte, off int) (end int64, code int) {
	if len(b)-off < 6 {
		return int64(off) + 6, 0
	}
	n := length(b[off+2:])
	if n > math.MaxInt32/2 {
		return 0, thrift.CodeLength
	}
	return w.entries(b[off], b[off+1], int(n), off+6)
}

// count reads a number of elements of the Compact protocol. If next is greater than len(b), it is
// incomplete.
func count(b []byte, off int) (n, next, code int) {
	if off >= len(b) {
		return 0, len(b) + 1, 0
	}
	v, size := binary.Uvarint(b[off:])
	switch {
	case size == 0 && len(b)-off < binary.MaxVarintLen64:
		return 0, len(b) + 1, 0
	case size <= 0 || v > math.MaxInt32/2:
		return 0, 0, thrift.CodeLength
	}
	return int(v), off + size, 0
}

// compactList begins a list or a set of the Compact protocol.
func (w *walker) compactList(b []byte, off int) (end int64, code int) {
	if off >= len(b) {
		return int64(len(b)) + 1, 0
	}
	t, n, next := b[off]&15, int(b[off]>>4), off+1
	if n > 0 && !w.isType(t) {
		return 0, thrift.CodeType
	}
	if n == 15 {
		if n, next, code = count(b, next); code < 0 || next > len(b) {
			return int64(next), code
		}
	}
	return w.elements(t, n, next)
}

// compactDict begins a map of the Compact protocol.
func (w *walker) compactDict(b []byte, off int) (end int64, code int) {
	n, next, code := count(b, off)
	if code < 0 || next > len(b) || n == 0 {
		return int64(next), code
	}
	if next == len(b) {
		return int64(next) + 1, 0
	}
	return w.entries(b[next]>>4, b[next]&15, n, next+1)
}
