package rt

import (
	"encoding/binary"
	"math"
	"slices"
)

// Functions named Read store the value at off and return the offset after it,
// or a code.

func ReadString(b []byte, off int, to *string) int {
	end := SkipString(b, off)
	if end >= 0 {
		*to = string(b[off+4 : end])
	}
	return end
}

func ReadOptString(b []byte, off int, to *Opt[string]) int {
	to.Set = true
	return ReadString(b, off, &to.V)
}

func ReadBinary(b []byte, off int, to *[]byte) int {
	end := SkipString(b, off)
	if end >= 0 {
		*to = append(make([]byte, 0, end-off-4), b[off+4:end]...)
	}
	return end
}

func ReadI64s(b []byte, off int, to *[]int64) int {
	n, off := Count(b, off, I64, 8)
	if off < 0 {
		return off
	}
	list := slices.Grow((*to)[:0], n)[:n]
	if list == nil {
		list = []int64{}
	}
	q := b[off : off+8*n]
	for i := range list {
		list[i] = int64(binary.BigEndian.Uint64(q[:8]))
		q = q[8:]
	}
	*to = list
	return off + 8*n
}

func ReadStrings(b []byte, off int, to *[]string) int {
	n, off := Count(b, off, String, 4)
	if off < 0 {
		return off
	}
	list := make([]string, n)
	for i := range list {
		if off = ReadString(b, off, &list[i]); off < 0 {
			return off
		}
	}
	*to = list
	return off
}

func ReadStringMap(b []byte, off int, to *map[string]string) int {
	n, off := CountMap(b, off, String, String, 8)
	if off < 0 {
		return off
	}
	m := make(map[string]string, n)
	for ; n > 0; n-- {
		var k, v string
		if off = ReadString(b, off, &k); off < 0 {
			return off
		}
		if off = ReadString(b, off, &v); off < 0 {
			return off
		}
		m[k] = v
	}
	*to = m
	return off
}

// Decoder is a cursor with a sticky error: after the first error, all methods
// return zero values and Next returns false.
type Decoder struct {
	b     []byte
	off   int
	depth int
	code  int

	// Field is the id of the current field, shifted by 8, and its type.
	Field uint32
}

// NewDecoder returns a decoder of the struct that b begins with.
func NewDecoder(b []byte) *Decoder { return &Decoder{b: b, depth: MaxDepth} }

// Result returns how many bytes were read.
func (d *Decoder) Result() (int, error) { return d.off, Err(d.code) }

// OK reports whether no error has occurred.
func (d *Decoder) OK() bool { return d.code == 0 }

// Fail ends reading with a code, unless it has already ended.
func (d *Decoder) Fail(code int) {
	if d.code == 0 {
		d.code = code
	}
	d.off = len(d.b)
}

// Enter begins a struct, Leave ends it.
func (d *Decoder) Enter() {
	if d.depth--; d.depth < 0 {
		d.Fail(Deep)
	}
}

// Leave ends a struct. It fails if not all of the required fields were seen.
func (d *Decoder) Leave(seen, required uint64) {
	d.depth++
	if seen&required != required {
		d.Fail(Missing)
	}
}

// Next reads the head of a field. It returns false at the end of a struct.
func (d *Decoder) Next() bool {
	b, off := d.b, d.off
	if len(b)-off < 3 {
		if off < len(b) && b[off] == Stop {
			d.off++
		} else {
			d.Fail(Short)
		}
		return false
	}
	if b[off] == Stop {
		d.off++
		return false
	}
	d.Field = uint32(b[off+1])<<16 | uint32(b[off+2])<<8 | uint32(b[off])
	d.off += 3
	return true
}

// take moves the cursor to off or, if off is a code, fails with it.
func (d *Decoder) take(off int) {
	if off < 0 {
		d.Fail(off)
		return
	}
	d.off = off
}

// Skip skips the value of the current field.
func (d *Decoder) Skip() { d.take(Skip(d.b, d.off, byte(d.Field), d.depth)) }

func (d *Decoder) Bool() bool {
	if d.off >= len(d.b) {
		d.Fail(Short)
		return false
	}
	d.off++
	return d.b[d.off-1] != 0
}

//go:noinline
func (d *Decoder) I32() int32 {
	if len(d.b)-d.off < 4 {
		d.Fail(Short)
		return 0
	}
	d.off += 4
	return int32(binary.BigEndian.Uint32(d.b[d.off-4:]))
}

//go:noinline
func (d *Decoder) I64() int64 {
	if len(d.b)-d.off < 8 {
		d.Fail(Short)
		return 0
	}
	d.off += 8
	return int64(binary.BigEndian.Uint64(d.b[d.off-8:]))
}

func (d *Decoder) Double() float64 { return math.Float64frombits(uint64(d.I64())) }

func (d *Decoder) String(to *string)               { d.take(ReadString(d.b, d.off, to)) }
func (d *Decoder) Binary(to *[]byte)               { d.take(ReadBinary(d.b, d.off, to)) }
func (d *Decoder) I64s(to *[]int64)                { d.take(ReadI64s(d.b, d.off, to)) }
func (d *Decoder) Strings(to *[]string)            { d.take(ReadStrings(d.b, d.off, to)) }
func (d *Decoder) StringMap(to *map[string]string) { d.take(ReadStringMap(d.b, d.off, to)) }

// Count reads the head of a list of structs of at least least bytes.
func (d *Decoder) Count(t byte, least int) int {
	n, off := Count(d.b, d.off, t, least)
	d.take(off)
	return n
}

// EndStruct returns the offset after the end of a struct at off. It returns a
// code if the input ends there, or if a required field was not seen.
func EndStruct(b []byte, off int, complete bool) int {
	if off >= len(b) || b[off] != Stop {
		return Short
	}
	if !complete {
		return Missing
	}
	return off + 1
}
