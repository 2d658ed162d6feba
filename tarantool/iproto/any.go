package iproto

import "math"

// MaxDepth is the maximum nesting depth of arrays, maps and errors for [Decoder.Any].
const MaxDepth = 128

// Any reads the next value of any type, and copies its contents. The types are
//
//	nil               nil
//	boolean           bool
//	integer           int64, or uint64 above the greatest int64
//	float             float64
//	string            string
//	binary data       []byte
//	array             []any
//	map               map[any]any; of equal keys the last one counts
//	extension         Decimal, UUID, *BoxError, Datetime, Interval, Tuple, Arrow, or Ext
//
// A map key that Go cannot compare, such as an array, is an error, and so is a depth of more than
// [MaxDepth]. The memory of the result is bounded by [Limits].
func (d *Decoder) Any() any {
	v := d.any(d.depth, 0)
	if d.err != nil {
		return nil
	}
	return v
}

// The memory of values, in bytes, on a 64-bit machine. An element takes 16, and the value that it
// points to takes at most 24 plus the bytes of a string; a map has the same amount of free room.
// Only extensions, and maps without elements, are larger.
const (
	eachElement  = 40
	eachPair     = 112
	emptyMap     = 48
	anExtension  = 48
	eachBoxError = 160
)

// any reads a value at the given depth. After it, owed further values must follow to complete the
// arrays and maps around it.
func (d *Decoder) any(depth, owed int) any {
	switch d.Kind() {
	case KindNil:
		d.at++
		return nil
	case KindBool:
		return d.Bool()
	case KindUint, KindInt:
		return d.anyInt()
	case KindFloat:
		return d.Float()
	case KindString:
		return d.String()
	case KindBytes:
		return d.Bytes()
	case KindArray:
		return d.anyArray(depth, owed)
	case KindMap:
		return d.anyMap(depth, owed)
	case KindExt:
		return d.anyExt(depth)
	}
	d.mismatch("a value")
	return nil
}

func (d *Decoder) anyInt() any {
	v, ok := d.next()
	if !ok {
		d.mismatch("an integer")
		return nil
	}
	u, isNegative := d.integer(v)
	d.at = v.body + v.n
	if !isNegative && u > math.MaxInt64 {
		return u
	}
	return int64(u)
}

// claim checks that there are enough bytes for the elements of the array or map at start and for
// the owed values. Otherwise nested arrays would claim the same bytes repeatedly.
func (d *Decoder) claim(start, depth, elements, owed int) bool {
	switch {
	case d.err != nil:
		return false
	case depth >= MaxDepth:
		d.tooDeep(start, depth)
		return false
	case elements > len(d.b)-d.at-owed:
		got := itoa(elements+owed) + " further values in " + itoa(len(d.b)-d.at) + " bytes"
		d.failAt(start, got, "a value", ErrTruncated)
		return false
	}
	return true
}

func (d *Decoder) tooDeep(start, depth int) {
	d.failAt(start, "value at a depth of "+itoa(depth+1), "at most "+itoa(MaxDepth), nil)
}

func (d *Decoder) anyArray(depth, owed int) any {
	start := d.at
	n := d.Array()
	if !d.claim(start, depth, n, owed) || !d.Claim(n, eachElement) {
		return nil
	}
	elems := make([]any, n)
	for i := range elems {
		elems[i] = d.any(depth+1, owed+n-1-i)
		if d.err != nil {
			return nil
		}
	}
	return elems
}

func (d *Decoder) anyMap(depth, owed int) any {
	start := d.at
	n := d.Map()
	if !d.claim(start, depth, 2*n, owed) || !d.Claim(n, eachPair) || !d.use(emptyMap) {
		return nil
	}
	// Equal keys take no additional room, so the number of pairs must not determine an allocation.
	m := make(map[any]any, min(n, 1024))
	for i := range n {
		at := d.at
		key := d.any(depth+1, owed+2*(n-1-i)+1)
		if d.err == nil && !isComparable(key) {
			d.at = at
			d.mismatch("a key that can be compared")
		}
		v := d.any(depth+1, owed+2*(n-1-i))
		if d.err != nil {
			return nil
		}
		m[key] = v
	}
	return m
}

// isComparable reports whether a value of [Decoder.Any] can be the key of a Go map.
func isComparable(key any) bool {
	switch key.(type) {
	case []byte, []any, map[any]any, Ext, Tuple, Arrow, *BoxError:
		return false
	}
	return true
}
