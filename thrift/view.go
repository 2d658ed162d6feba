package thrift

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// A view (View) gives access to the fields of a struct in the Binary protocol without decoding it.
// Generated code has a view type for each struct; view_sample_test.go shows what the generator
// writes, and view_parcel_test.go and view_parcelview_test.go add unions, defaults, nested
// containers and structs of another file.
//
//	v.OpenThrift(b) --> View.Open --> viewCheck.structs <--> plain    the whole message, typed; offsets of the fields of one struct --> v.at
//	v.Name()        --> View.String(v.at[7], default)                 inlined, no check but that of the slice
//	v.Parent()      --> View.Struct --> viewCheck.structs             offsets of the inner struct
//	v.Lines().All() --> OrderViewAt for each element                  offsets of each
//	v.SetName(x)    --> View.begin, commit                            v.at[7] = offset in mem[1], with the highest bit
//	v.AppendThrift  --> View.pieces                                   ranges of the frame, replaced fields, new fields
//
//   - The generator emits a ViewTable for each file: the fields of each struct in the order of
//     their IDs, their types, and the element types of containers. For each struct it emits a type
//     with a View and an array of offsets, the methods of Struct, the methods OpenThrift and
//     DecodeThrift, a function that returns a view of an element, and a getter for each field.
//     Getters return an Opt for an optional scalar, nil for an absent binary, a second result for a
//     struct, and a value with a method Present for a container. Setters (an option) take the type
//     of the field in the struct: a value that makes the field absent there removes it from the
//     view. Fields that are structs, or lists of structs, have a second setter that takes views.
//   - OrderViewAt and the table are exported: a getter of another package cannot reach
//     the unexported fields of OrderView, so it calls ViewNested with OrderViewAt instead of
//     View.Struct. The same function serves nested views and elements.
//   - Unions have exactly one field, which may be unknown, as in ReadThrift: an old program forwards a
//     union with a new field.
//   - docs/decisions/0022-thrift-generated-code.md shows how much code the options add.
//   - Offsets have 31 bits. Frames are smaller than 2 GiB, and so are the fields that are set. The
//     highest bit selects one of two slices without a branch.
//   - Maps can have the same key twice: Len counts entries of the message, Lookup and maps.Collect
//     return the last one.

// View is the common part of all views of structs. A view gives access to the fields of an encoded
// struct without decoding it. Generated code has a view type for each struct:
//
//	var order OrderView
//	if err := order.OpenThrift(frame); err != nil {
//		return err
//	}
//	fmt.Println(order.ID(), order.Name().Or("unnamed"))
//
// Views exist only for the Binary protocol.
//
// OpenThrift checks the whole message and finds the fields of the struct. It accepts the messages
// that ReadThrift accepts and allocates nothing; later reads cannot be out of range. If a field
// occurs more than once, the last one counts. Views of nested structs find their fields when they
// are requested.
//
// A view and everything that its methods return (strings, binaries, lists, other views) share the
// memory of the frame. The view owns the frame: it must not change, and must not be returned to a
// pool, until none of these is in use anymore. Frames must be smaller than 2 GiB.
//
// Setters replace or remove fields. The frame is not modified: the view holds the new values
// separately, and its getters return them. Encoding a view copies the frame except for the fields
// that were replaced, so unknown fields are kept. A view of a nested struct is a separate value: to
// change a field of it, change the view and set it in the outer one. The values that are set in a
// view may take 2 GiB in total; a value that does not fit is not set.
//
// A view is a value. It can be copied, and changes to the copy do not change the original. The zero
// value is a struct without fields. Views are safe for concurrent use as long as no field is set in
// them or in copies of them.
type View struct {
	mem        [2][]byte // the frame, and the fields that were set
	start, end uint32    // the struct in mem[0]; both are 0 in a zero View
	twice      bool      // a field occurs more than once
	changes    *viewChanges
}

// The offset of a field is that of its value, or 0 if the field is absent. Offsets in mem[1] have
// the highest bit set. Generated code keeps the offsets of all fields in an array.
const inChanges = 1 << 31

// Open makes v a view of the struct that b begins with. It stores the offsets of the fields in at.
// names is a nil pointer to the struct: if it is Described, errors contain the names of the fields.
func (v *View) Open(b []byte, at []uint32, t *ViewTable, index int, names Struct) error {
	c := viewCheck{b: b, where: -1}
	if next := v.open(&c, 0, MaxDepth, at, t, index); next < 0 {
		r := Reader{at: c.where}
		return r.explain(b, 0, next, names, (*walker).binaryFields)
	}
	return nil
}

// Read is ReadThrift for views: v becomes a view of the struct at b[off:].
func (v *View) Read(r *Reader, b []byte, off, depth int, at []uint32, t *ViewTable, index int) int {
	c := viewCheck{b: b, where: r.at}
	next := v.open(&c, off, depth, at, t, index)
	r.at = c.where
	return next
}

// Index is Read for a struct in a message that has been checked. If it returns a negative code, v
// is the zero View. It is not inlined into the code of each view.
//
//go:noinline
func (v *View) Index(b []byte, off int, at []uint32, t *ViewTable, index int) int {
	c := viewCheck{b: b}
	return v.open(&c, off, MaxDepth, at, t, index)
}

func (v *View) open(c *viewCheck, off, depth int, at []uint32, t *ViewTable, index int) int {
	*v = View{}
	clear(at)
	if len(c.b) > maxFrame {
		return c.fail(CodeLength, off)
	}
	next := c.structs(off, 1, depth, t, index, at)
	if next < 0 {
		clear(at)
		return next
	}
	v.mem[0], v.start, v.end, v.twice = c.b, uint32(off), uint32(next), c.twice
	return next
}

// Struct makes w a view of the struct in the field of v at off. It reports whether v has the field.
func (v *View) Struct(off uint32, w *View, at []uint32, t *ViewTable, index int) bool {
	return off != 0 && w.Index(v.mem[off>>31], int(off&math.MaxInt32), at, t, index) >= 0
}

// ViewNested returns a view of the struct in the field of v at off, and whether v has the field. It
// is for structs that are not in the package of v. read is as for ViewList.
func ViewNested[T any](v *View, off uint32, read func(b []byte, off int) (T, int)) (w T, ok bool) {
	if off == 0 {
		return w, false
	}
	w, next := read(v.mem[off>>31], int(off&math.MaxInt32))
	return w, next >= 0
}

// Decode reads the struct that v is a view of, with all changes, into to.
func (v *View) Decode(r *Reader, at []uint32, to Struct) error {
	b, off := v.mem[0], int(v.start)
	if v.changes != nil || v.end == 0 {
		b, off = v.Append(make([]byte, 0, v.Size(at)), at), 0
	}
	_, err := r.Read(b, off, to)
	return err
}

// Functions that return the value of a field take the offset of the field. If it is 0, they return
// their last argument, the default value of the field.

// Bool returns a field of type bool.
func (v *View) Bool(off uint32, or bool) bool {
	if off == 0 {
		return or
	}
	return v.mem[off>>31][off&math.MaxInt32] != 0
}

// I8 returns a field of type i8.
func (v *View) I8(off uint32, or int8) int8 {
	if off == 0 {
		return or
	}
	return int8(v.mem[off>>31][off&math.MaxInt32])
}

// I16 returns a field of type i16.
func (v *View) I16(off uint32, or int16) int16 {
	if off == 0 {
		return or
	}
	return int16(binary.BigEndian.Uint16(v.mem[off>>31][off&math.MaxInt32:]))
}

// I32 returns a field of type i32 or of an enum.
func (v *View) I32(off uint32, or int32) int32 {
	if off == 0 {
		return or
	}
	return int32(binary.BigEndian.Uint32(v.mem[off>>31][off&math.MaxInt32:]))
}

// I64 returns a field of type i64.
func (v *View) I64(off uint32, or int64) int64 {
	if off == 0 {
		return or
	}
	return int64(binary.BigEndian.Uint64(v.mem[off>>31][off&math.MaxInt32:]))
}

// Double returns a field of type double.
func (v *View) Double(off uint32, or float64) float64 {
	if off == 0 {
		return or
	}
	return math.Float64frombits(binary.BigEndian.Uint64(v.mem[off>>31][off&math.MaxInt32:]))
}

// UUID returns a field of type uuid.
func (v *View) UUID(off uint32, or UUID) UUID {
	if off == 0 {
		return or
	}
	return UUID(v.mem[off>>31][off&math.MaxInt32:])
}

// Binary returns a field of type binary. Its capacity is its length.
func (v *View) Binary(off uint32, or []byte) []byte {
	if off == 0 {
		return or
	}
	p, _ := BinaryAt(v.mem[off>>31], int(off&math.MaxInt32))
	return p
}

// String returns a field of type string.
func (v *View) String(off uint32, or string) string {
	if off == 0 {
		return or
	}
	s, _ := StringAt(v.mem[off>>31], int(off&math.MaxInt32))
	return s
}

// OptIf returns an Opt with the value v if set is true. Otherwise the Opt is not set.
func OptIf[T any](set bool, v T) Opt[T] {
	if !set {
		return Opt[T]{}
	}
	return Opt[T]{v, true}
}

// ValueOf returns the value that p points to, or the zero value if p is nil.
func ValueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Functions whose names end with At return the value at b[off:] and the offset after it, for a
// message that has been checked. ListView and MapView call them for their elements.

// BinaryAt returns a binary.
func BinaryAt(b []byte, off int) ([]byte, int) {
	end := off + 4 + int(binary.BigEndian.Uint32(b[off:]))
	return b[off+4 : end : end], end
}

// StringAt returns a string.
func StringAt(b []byte, off int) (string, int) {
	p, end := BinaryAt(b, off)
	return unsafe.String(unsafe.SliceData(p), len(p)), end
}
