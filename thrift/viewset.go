package thrift

import (
	"math"
	"slices"
	"unsafe"
)

//   - A value that is set is appended to mem[1] as an encoded field. viewChanges has the offsets of
//     the fields in the frame: a field was changed if its offset differs from that. Views are
//     values: copies share the memory of changes until a copy is set that was not the last one to
//     append to it; that copy gets separate memory. Replaced values are dropped when they may be
//     half of mem[1].
//   - If a field occurs twice, the last one counts, as in ReadThrift. If a field was set in such a
//     view, encoding walks over the fields and omits all occurrences of those that were replaced.

// viewChanges belongs to a view in which a field was set, and to its copies.
type viewChanges struct {
	// Immutable: the offsets of the fields of the frame.
	orig []uint32
	// Owned by the views that share it: how much of the memory of mem[1] is in use. If mem[1] of a
	// view is shorter, the view has been copied and the copy has been set; the view needs separate
	// memory.
	used int
	// The memory is compacted when it reaches this length.
	compactAt int
}

// firstChanges is the initial capacity of mem[1].
const firstChanges = 128

// compactFirst is the minimum length of mem[1] for a compaction.
const compactFirst = 1 << 10

// maxChanges is the maximum length of mem[1]. It is a variable for tests.
var maxChanges = maxFrame

// Functions whose names begin with Set replace the field at index i of at, or remove it if set is
// false. at has the offsets of all fields of the view.

// SetBool sets a field of type bool.
func (v *View) SetBool(at []uint32, i int, id uint16, x, set bool) {
	v.commit(at, i, AppendBool(v.begin(at, TypeBool<<16|uint32(id)), x), set)
}

// SetI8 sets a field of type i8.
func (v *View) SetI8(at []uint32, i int, id uint16, x int8, set bool) {
	v.commit(at, i, AppendI8(v.begin(at, TypeI8<<16|uint32(id)), x), set)
}

// SetI16 sets a field of type i16.
func (v *View) SetI16(at []uint32, i int, id uint16, x int16, set bool) {
	v.commit(at, i, AppendI16(v.begin(at, TypeI16<<16|uint32(id)), x), set)
}

// SetI32 sets a field of type i32 or of an enum.
func (v *View) SetI32(at []uint32, i int, id uint16, x int32, set bool) {
	v.commit(at, i, AppendI32(v.begin(at, TypeI32<<16|uint32(id)), x), set)
}

// SetI64 sets a field of type i64.
func (v *View) SetI64(at []uint32, i int, id uint16, x int64, set bool) {
	v.commit(at, i, AppendI64(v.begin(at, TypeI64<<16|uint32(id)), x), set)
}

// SetDouble sets a field of type double.
func (v *View) SetDouble(at []uint32, i int, id uint16, x float64, set bool) {
	v.commit(at, i, AppendDouble(v.begin(at, TypeDouble<<16|uint32(id)), x), set)
}

// SetUUID sets a field of type uuid.
func (v *View) SetUUID(at []uint32, i int, id uint16, x UUID, set bool) {
	v.commit(at, i, AppendUUID(v.begin(at, TypeUUID<<16|uint32(id)), x), set)
}

// SetString sets a field of type string.
func (v *View) SetString(at []uint32, i int, id uint16, x string, set bool) {
	v.commit(at, i, AppendString(v.begin(at, TypeString<<16|uint32(id)), x), set)
}

// SetBinary sets a field of type binary.
func (v *View) SetBinary(at []uint32, i int, id uint16, x []byte, set bool) {
	v.commit(at, i, AppendString(v.begin(at, TypeString<<16|uint32(id)), x), set)
}

// SetStruct sets a field that is a struct, to a struct or a view.
func (v *View) SetStruct(at []uint32, i int, id uint16, x Struct, set bool) {
	b := v.begin(at, TypeStruct<<16|uint32(id))
	if set {
		b = x.AppendThrift(b)
	}
	v.commit(at, i, b, set)
}

// SetNumbers sets a list or set of numbers, bools, enums or uuids. key is that of ViewField, elem
// the type of elements.
func SetNumbers[T Number](v *View, at []uint32, i int, key uint32, elem byte, x []T, set bool) {
	b := AppendList(v.begin(at, key), elem, len(x))
	n := len(b)
	b = Extend(b, len(x)*int(fixed[elem]))
	p := unsafe.Pointer(&x)
	switch elem {
	case TypeBool:
		PutBools(b, n, *(*[]bool)(p))
	case TypeI8:
		PutI8s(b, n, *(*[]int8)(p))
	case TypeI16:
		PutI16s(b, n, *(*[]int16)(p))
	case TypeI32:
		PutI32s(b, n, *(*[]int32)(p))
	case TypeI64:
		PutI64s(b, n, *(*[]int64)(p))
	case TypeDouble:
		PutDoubles(b, n, *(*[]float64)(p))
	case TypeUUID:
		PutUUIDs(b, n, *(*[]UUID)(p))
	}
	v.commit(at, i, b, set)
}

// SetStrings sets a list or set of strings or binaries.
func SetStrings[T ~string | ~[]byte](v *View, at []uint32, i int, key uint32, x []T, set bool) {
	b := AppendStrings(AppendList(v.begin(at, key), TypeString, len(x)), x)
	v.commit(at, i, b, set)
}

// SetStringMap sets a map of strings. Its entries are encoded in the order of the keys.
func SetStringMap(v *View, at []uint32, i int, key uint32, x map[string]string, set bool) {
	b := AppendSortedStringMap(AppendMap(v.begin(at, key), TypeString, TypeString, len(x)), x)
	v.commit(at, i, b, set)
}

// SetStructs sets a list or set of structs, to structs or views.
func SetStructs[T any, P interface {
	*T
	AppendThrift(b []byte) []byte
}](v *View, at []uint32, i int, key uint32, x []T, set bool) {
	b := AppendList(v.begin(at, key), TypeStruct, len(x))
	for i := range x {
		b = P(&x[i]).AppendThrift(b)
	}
	v.commit(at, i, b, set)
}

// SetValue sets a field of any other type. encode appends a value.
func SetValue[T any](v *View, at []uint32, i int, key uint32, x T, set bool, encode func(b []byte, x T) []byte) {
	v.commit(at, i, encode(v.begin(at, key), x), set)
}

// begin returns mem[1] with the head of a field at its end. The caller appends the value and calls
// commit.
func (v *View) begin(at []uint32, key uint32) []byte {
	b := v.mem[1]
	switch c := v.changes; {
	case c == nil:
		b = make([]byte, 0, firstChanges)
		v.changes = &viewChanges{orig: slices.Clone(at), compactAt: compactFirst}
	case len(b) != c.used:
		b = slices.Clip(b)
		v.mem[1] = b
		v.changes = &viewChanges{orig: c.orig, used: len(b), compactAt: max(compactFirst, 2*len(b))}
	case len(b) >= c.compactAt:
		b = v.compact(at)
	}
	return append(b, byte(key>>16), byte(key>>8), byte(key))
}

// compact moves the fields that were set to new memory, without values that have been replaced
// since.
func (v *View) compact(at []uint32) []byte {
	n := 0
	for _, off := range at {
		if off >= inChanges {
			n += len(v.field(off))
		}
	}
	b := make([]byte, 0, 2*n+firstChanges)
	for i, off := range at {
		if off >= inChanges {
			at[i] = inChanges | uint32(len(b)+3)
			b = append(b, v.field(off)...)
		}
	}
	v.mem[1] = b
	v.changes = &viewChanges{orig: v.changes.orig, used: n, compactAt: max(compactFirst, 2*n)}
	return b
}

// commit completes what begin started. b is the result of begin with the value appended.
func (v *View) commit(at []uint32, i int, b []byte, set bool) {
	if !set {
		at[i] = 0
		return
	}
	if len(b) > maxChanges {
		field := b[len(v.mem[1]):]
		if b = append(v.compact(at), field...); len(b) > maxChanges {
			return
		}
	}
	at[i] = inChanges | uint32(len(v.mem[1])+3)
	v.mem[1], v.changes.used = b, len(b)
}

// field returns the encoding of the field whose value is at off, with its head.
func (v *View) field(off uint32) []byte {
	b, from := v.mem[off>>31], int(off&math.MaxInt32)
	return b[from-3 : Skip(b, from, b[from-3], knownDepth)]
}

// Size is SizeThrift for views.
func (v *View) Size(at []uint32) int {
	n := 0
	v.pieces(at, func(p []byte) { n += len(p) })
	return n
}

// Append is AppendThrift for views. It is not inlined into the method of each view.
//
//go:noinline
func (v *View) Append(b []byte, at []uint32) []byte {
	v.pieces(at, func(p []byte) { b = append(b, p...) })
	return b
}

var onlyStop = []byte{TypeStop}

// pieces calls emit for each piece of the encoding of v. Replaced fields keep their positions; new
// fields are at the end.
func (v *View) pieces(at []uint32, emit func(p []byte)) {
	frame, from := v.mem[0], int(v.start)
	if v.changes == nil {
		if v.end == 0 {
			emit(onlyStop)
			return
		}
		emit(frame[from:v.end])
		return
	}
	var room [64]uint16
	replaced := v.replaced(room[:0], at)
	switch {
	case v.end == 0:
	case v.twice:
		v.piecesOfTwice(at, replaced, emit)
	default:
		for _, i := range replaced {
			old := v.changes.orig[i]
			emit(frame[from : old-3])
			if at[i] != 0 {
				emit(v.field(at[i]))
			}
			from = Skip(frame, int(old), frame[old-3], knownDepth)
		}
		emit(frame[from : v.end-1])
	}
	for i, off := range at {
		if off != 0 && v.changes.orig[i] == 0 {
			emit(v.field(off))
		}
	}
	emit(onlyStop)
}

// replaced appends to places the indexes of the fields of the frame that were replaced or removed,
// in the order of the frame.
func (v *View) replaced(places []uint16, at []uint32) []uint16 {
	orig := v.changes.orig
	for i, off := range at {
		if off != orig[i] && orig[i] != 0 {
			places = append(places, uint16(i))
		}
	}
	slices.SortFunc(places, func(i, j uint16) int { return int(orig[i]) - int(orig[j]) })
	return places
}

// piecesOfTwice is the part of pieces for the fields of a frame in which a field occurs more than
// once. It omits all occurrences of fields that were replaced or removed.
func (v *View) piecesOfTwice(at []uint32, replaced []uint16, emit func(p []byte)) {
	frame, orig := v.mem[0], v.changes.orig
	for off := int(v.start); frame[off] != TypeStop; {
		next := Skip(frame, off+3, frame[off], knownDepth)
		key, keep := keyAt(frame, off), true
		for _, i := range replaced {
			if keyAt(frame, int(orig[i])-3) != key {
				continue
			}
			keep = false
			if int(orig[i]) == off+3 && at[i] != 0 {
				emit(v.field(at[i]))
			}
		}
		if keep {
			emit(frame[off:next])
		}
		off = next
	}
}
