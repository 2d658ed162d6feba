package iproto

import "math"

// Decoder reads the values in a byte slice in order. Its methods accept every valid encoding of the
// type that they read.
//
// A decoder keeps its first error: from then on all methods return zero values, and [Decoder.Err]
// returns the error. So it is enough to check for an error once, after the last value. Loops over
// an array or a map always end, because the length was checked against the available bytes.
//
// Methods with View in their names return slices of the input; the others copy.
type Decoder struct {
	b   []byte // nil after an error, so that nothing more can be read
	at  int    // offset of the next value, or of the one that failed
	err error
	// depth is the number of arrays, maps and errors around b. It is not 0 in the decoder of an
	// extension, which contains values.
	depth int
	// elements and bytes count up to DefaultElements and DefaultBytes; with other limits they do
	// not start at 0.
	elements, bytes int
}

// NewDecoder returns a decoder of b. It retains b; views that it returns alias b.
func NewDecoder(b []byte) Decoder { return Decoder{b: b} }

// Reset makes d a decoder of b, without an error.
func (d *Decoder) Reset(b []byte) {
	d.b, d.at, d.err, d.depth, d.elements, d.bytes = b, 0, nil, 0, 0, 0
}

// Err returns the first error, a [*DecodeError], or nil.
func (d *Decoder) Err() error { return d.err }

// Len returns the number of remaining bytes, or 0 after an error.
func (d *Decoder) Len() int { return max(len(d.b)-d.at, 0) }

// Offset returns the number of bytes that have been read, which is the offset of the next value or
// of the one that failed.
func (d *Decoder) Offset() int { return d.at }

// Rest returns a view of the remaining bytes, which is empty after an error.
func (d *Decoder) Rest() []byte {
	if d.at >= len(d.b) {
		return nil
	}
	return d.b[d.at:]
}

// Fail makes err the error of the decoder, unless it already has one. The ReadMsgpack method of a
// type uses it to report that a value is not as expected. If err is not a [*DecodeError], it is
// wrapped in one with the current offset.
func (d *Decoder) Fail(err error) {
	if d.err != nil || err == nil {
		return
	}
	if _, ok := err.(*DecodeError); !ok {
		err = &DecodeError{Offset: d.at, Err: err}
	}
	d.b, d.err = nil, err
}

// failAt is like Fail, for the value that starts at offset.
func (d *Decoder) failAt(offset int, got, want string, cause error) {
	if d.err == nil {
		d.at = offset
		d.Fail(&DecodeError{Offset: offset, Got: got, Want: want, Err: cause})
	}
}

// value describes a value by its first bytes. All bytes that they announce are available.
type value struct {
	kind Kind
	code byte // the first byte
	body int  // offset of the rest: elements, text, digits
	// n is the length of the body in bytes, without the type of an extension. For arrays it is the
	// number of elements, and for maps the number of pairs.
	n int
}

// next examines the next value. It returns false if there is none, or if the value is invalid or
// incomplete. It records no error and reads nothing.
func (d *Decoder) next() (v value, ok bool) {
	at, b := d.at, d.b
	if uint(at) >= uint(len(b)) {
		return value{kind: KindEnd}, false
	}
	c := b[at]
	s := shapes[c]
	v = value{kind: s.kind, code: c, body: at + 1 + int(s.width)}
	n := uint64(0)
	left := len(b) - v.body - int(s.fixed)
	if left < 0 {
		return v, false
	}
	switch s.width {
	case 0:
		switch s.kind {
		case KindInvalid:
			return v, false
		case KindMap, KindArray:
			n = uint64(c & 15)
		case KindString:
			n = uint64(c & 31)
		default:
			// The length of an extension does not include its type.
			v.n = int(s.fixed)
			if s.kind == KindExt {
				v.n--
				v.body++
			}
			return v, true
		}
	case 1:
		n = uint64(b[at+1])
	case 2:
		n = uint64(be16(b[at+1:]))
	default:
		n = uint64(be32(b[at+1:]))
	}
	takes := n
	if s.each == 2 {
		takes *= 2
	}
	if takes > uint64(left) {
		return v, false
	}
	v.n = int(n)
	v.body += int(s.fixed)
	return v, true
}

// mismatch records an error because the next value does not have the wanted type, or is not a
// value.
func (d *Decoder) mismatch(want string) {
	if d.err != nil {
		return
	}
	got, cause := d.describe()
	d.failAt(d.at, got, want, cause)
}

// describe describes the next value for an error.
func (d *Decoder) describe() (got string, cause error) {
	v, ok := d.next()
	switch {
	case v.kind == KindEnd:
		return v.kind.String(), ErrTruncated
	case v.kind == KindInvalid:
		return "byte " + quoted(d.b[d.at:d.at+1]), nil
	case !ok:
		return v.kind.String() + " that is cut off after " + itoa(len(d.b)-d.at) + " bytes", ErrTruncated
	}
	switch v.kind {
	case KindUint, KindInt:
		u, isNegative := d.integer(v)
		if isNegative {
			return "integer -" + utoa(-u), nil
		}
		return "integer " + utoa(u), nil
	case KindExt:
		return "extension " + itoa(int(int8(d.b[v.body-1]))) + " of " + itoa(v.n), nil
	case KindString, KindBytes, KindArray, KindMap:
		return v.kind.String() + " of " + itoa(v.n), nil
	}
	return v.kind.String(), nil
}

// Kind returns the kind of the next value without reading it. It examines only the first byte, so
// the value may still be invalid.
func (d *Decoder) Kind() Kind {
	if d.at >= len(d.b) {
		return KindEnd
	}
	return shapes[d.b[d.at]].kind
}

// IsNil reports whether the next value is nil, and reads it if so.
func (d *Decoder) IsNil() bool {
	if d.at < len(d.b) && d.b[d.at] == codeNil {
		d.at++
		return true
	}
	return false
}

// Nil reads a nil.
func (d *Decoder) Nil() {
	if !d.IsNil() {
		d.mismatch("nil")
	}
}

// Bool reads a boolean.
func (d *Decoder) Bool() bool {
	if d.at < len(d.b) && d.b[d.at]|1 == yes {
		d.at++
		return d.b[d.at-1] == yes
	}
	d.mismatch("a boolean")
	return false
}

// Int reads an integer.
func (d *Decoder) Int() int64 {
	if d.at < len(d.b) && d.b[d.at] < fixMap {
		d.at++
		return int64(d.b[d.at-1])
	}
	return d.longInt()
}

func (d *Decoder) longInt() int64 {
	v, ok := d.next()
	if ok && (v.kind == KindUint || v.kind == KindInt) {
		u, isNegative := d.integer(v)
		if isNegative || u <= math.MaxInt64 {
			d.at = v.body + v.n
			return int64(u)
		}
	}
	d.mismatch("an integer of 64 bits")
	return 0
}

// Uint reads an integer that is not negative.
func (d *Decoder) Uint() uint64 {
	if d.at < len(d.b) && d.b[d.at] < fixMap {
		d.at++
		return uint64(d.b[d.at-1])
	}
	return d.longUint("an integer that is not negative")
}

func (d *Decoder) longUint(want string) uint64 {
	v, ok := d.next()
	if ok && (v.kind == KindUint || v.kind == KindInt) {
		if u, isNegative := d.integer(v); !isNegative {
			d.at = v.body + v.n
			return u
		}
	}
	d.mismatch(want)
	return 0
}

// Uint32 reads an integer that is not negative, of at most 32 bits.
func (d *Decoder) Uint32() uint32 {
	before := *d
	u := d.Uint()
	if u <= math.MaxUint32 {
		return uint32(u)
	}
	*d = before
	d.mismatch("an integer of 32 bits that is not negative")
	return 0
}

// integer returns the value of an integer, as the bits of an int64 if it is
// negative.
func (d *Decoder) integer(v value) (u uint64, isNegative bool) {
	p := d.b[v.body:]
	switch v.code {
	case uint8b:
		return uint64(p[0]), false
	case uint16b:
		return uint64(be16(p)), false
	case uint32b:
		return uint64(be32(p)), false
	case uint64b:
		return be64(p), false
	case int8b:
		u = uint64(int64(int8(p[0])))
	case int16b:
		u = uint64(int64(int16(be16(p))))
	case int32b:
		u = uint64(int64(int32(be32(p))))
	case int64b:
		u = be64(p)
	default:
		u = uint64(int64(int8(v.code)))
	}
	return u, int64(u) < 0
}

// Float reads a number: a float of either precision, or an integer, which loses precision beyond
// 2^53.
func (d *Decoder) Float() float64 {
	v, ok := d.next()
	if ok {
		switch v.kind {
		case KindFloat:
			d.at = v.body + v.n
			if v.code == float32b {
				return float64(math.Float32frombits(be32(d.b[v.body:])))
			}
			return math.Float64frombits(be64(d.b[v.body:]))
		case KindUint, KindInt:
			d.at = v.body + v.n
			u, isNegative := d.integer(v)
			if isNegative {
				return float64(int64(u))
			}
			return float64(u)
		}
	}
	d.mismatch("a number")
	return 0
}

// String reads a string and returns a copy of it.
func (d *Decoder) String() string {
	view := d.StringView()
	if !d.use(len(view)) {
		return ""
	}
	return string(view)
}

// StringView reads a string and returns a view of it.
func (d *Decoder) StringView() []byte {
	if d.at < len(d.b) && d.b[d.at]&^31 == fixStr {
		from := d.at + 1
		if to := from + int(d.b[d.at]&31); to <= len(d.b) {
			d.at = to
			return d.b[from:to:to]
		}
	}
	if v, ok := d.next(); ok && v.kind == KindString {
		return d.take(v)
	}
	d.mismatch("a string")
	return nil
}

// Bytes reads binary data or a string, and returns a copy of it.
func (d *Decoder) Bytes() []byte {
	view := d.BytesView()
	if view == nil || !d.use(len(view)) {
		return nil
	}
	return clone(view)
}

// BytesView reads binary data or a string, and returns a view of it.
func (d *Decoder) BytesView() []byte {
	if v, ok := d.next(); ok && (v.kind == KindBytes || v.kind == KindString) {
		return d.take(v)
	}
	d.mismatch("binary data or a string")
	return nil
}

// take reads a value whose body consists of bytes.
func (d *Decoder) take(v value) []byte {
	d.at = v.body + v.n
	return d.b[v.body:d.at:d.at]
}

// Array reads the head of an array and returns the number of elements that follow, which is at most
// the number of available bytes.
func (d *Decoder) Array() int {
	if d.at < len(d.b) && d.b[d.at]&^15 == fixArray {
		if n := int(d.b[d.at] & 15); n < len(d.b)-d.at {
			if d.elements += n; d.elements > DefaultElements {
				return d.tooMany(d.at)
			}
			d.at++
			return n
		}
	}
	return d.longArray()
}

func (d *Decoder) longArray() int {
	if v, ok := d.next(); ok && v.kind == KindArray {
		if d.elements += v.n; d.elements > DefaultElements {
			return d.tooMany(d.at)
		}
		d.at = v.body
		return v.n
	}
	d.mismatch("an array")
	return 0
}

// Map reads the head of a map and returns the number of pairs that follow, which is at most half
// the number of available bytes.
func (d *Decoder) Map() int {
	if v, ok := d.next(); ok && v.kind == KindMap {
		if d.elements += 2 * v.n; d.elements > DefaultElements {
			return d.tooMany(d.at)
		}
		d.at = v.body
		return v.n
	}
	d.mismatch("a map")
	return 0
}

// Ext reads an extension and returns its type and a view of its data.
func (d *Decoder) Ext() (typ int8, data []byte) {
	if v, ok := d.next(); ok && v.kind == KindExt {
		return int8(d.b[v.body-1]), d.take(v)
	}
	d.mismatch("an extension")
	return 0, nil
}

// Skip skips the next value with everything in it, however deeply nested.
func (d *Decoder) Skip() {
	start := d.at
	for values := 1; values > 0; values-- {
		if d.at < len(d.b) && (d.b[d.at] < fixMap || d.b[d.at] >= negative) {
			d.at++ // small integers
			continue
		}
		v, ok := d.next()
		if !ok {
			d.mismatch("a value")
			return
		}
		switch v.kind {
		case KindArray:
			values += v.n
			d.at = v.body
		case KindMap:
			values += 2 * v.n
			d.at = v.body
		default:
			d.at = v.body + v.n
		}
		// Nested arrays must not claim the same bytes repeatedly.
		if values-1 > len(d.b)-d.at {
			got := itoa(values-1) + " further values in " + itoa(len(d.b)-d.at) + " bytes"
			d.failAt(start, got, "a value", ErrTruncated)
			return
		}
	}
}

// Raw skips the next value and returns a view of its encoding.
func (d *Decoder) Raw() []byte {
	start := d.at
	d.Skip()
	if d.err != nil {
		return nil
	}
	return d.b[start:d.at:d.at]
}
