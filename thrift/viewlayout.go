package thrift

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unsafe"
)

//   - Structs of a list often have the same fields in the same order. In lists of 16 and more, four
//     structs are sampled: they are checked field by field. If the last two, or the two pairs, have
//     the same layout, the structs after them are compared with it word by word, without a branch
//     for each word and without waiting for a length before the next word is loaded. Only lengths
//     that differ between the samples are read.
//   - After a struct that differs, four are sampled again. If few were the same, a layout in which
//     all lengths may differ is tried next, after a pause that grows.

// A layout describes where in a unit of one or two structs the heads of fields, the types and
// numbers of elements, and the lengths of strings are. It is made from two units that were checked.
// A unit that has the same bytes in these positions is therefore valid.
//
// Strings and lists of numbers whose lengths differ divide a unit into parts: a part ends with such a
// length, and the next one begins after the value. All other lengths must be the same.
type layout struct {
	windows [maxWindows]window
	n       int // the number of windows
	first   int // the size of the first part
	last    int // the size of the last part

	// Used only while the layout is made.
	b     []byte
	begin int  // where the part begins in b
	from  int  // its first window
	end   int  // the window that ends the previous part, or -1
	loose bool // all lengths of strings may differ
	full  bool // there is no room for more
}

// window is a word of a unit, loaded in little-endian order: the first byte of the message is the
// lowest.
type window struct {
	mask, want uint64 // the bits that are compared, and their expected values
	at         int16  // the offset of the word in its part
	next       int16  // the size of the next part, if this window ends one
	scale      uint8  // if not 0, the last four bytes are the number of values of this size that follow, and end the part
}

const (
	maxWindows = 48
	// sampled is the number of structs that are checked field by field before others are compared:
	// two units of two.
	sampled = 4
	// fewStructs is the minimum length of lists whose structs are compared.
	fewStructs = 16
	// shortRun is the number of equal units that justify the cost of a layout.
	shortRun = 16
)

// manyStructs is structs for the elements of a list. It compares structs with previous ones if that
// succeeds for many of them; otherwise it tries less and less often.
func (c *viewCheck) manyStructs(off, n, depth int, t *ViewTable, index int) int {
	wait, loose := fewStructs, false
	for n >= fewStructs {
		var at [sampled + 1]int
		at[0] = off
		for i := range sampled {
			if off = c.structs(off, 1, depth, t, index, nil); off < 0 {
				return off
			}
			at[i+1] = off
		}
		n -= sampled
		units, same, next := repeats(c.b, &at, n, loose)
		n, off = n-units*same, next
		if units >= shortRun {
			wait = fewStructs
			continue
		}
		loose = !loose
		walk := min(n, wait)
		wait = min(4*wait, 1<<20)
		if off = c.structs(off, walk, depth, t, index, nil); off < 0 {
			return off
		}
		n -= walk
	}
	return c.structs(off, n, depth, t, index, nil)
}

// repeats returns how many units after the sampled structs, whose offsets are in at, have the same
// layout, how many structs a unit has, and the offset after them. n is the number of remaining
// structs. It is not inlined because its layout is large.
//
//go:noinline
func repeats(b []byte, at *[sampled + 1]int, n int, loose bool) (units, structs, next int) {
	if b[at[0]] != b[at[2]] || b[at[1]] != b[at[3]] {
		return 0, 1, at[sampled]
	}
	var l layout
	for structs = 1; structs <= 2; structs++ {
		if l.learn(b, at[sampled-2*structs], at[sampled-structs], structs, loose) {
			units, next = l.repeated(b, at[sampled], n/structs)
			return units, structs, next
		}
	}
	return 0, 1, at[sampled]
}

// repeated returns how many consecutive units at off, at most most, have the layout, and the offset
// after them.
func (l *layout) repeated(b []byte, off, most int) (units, next int) {
	if l.end < 0 {
		return l.repeatedWhole(b, off, most)
	}
	p, windows := unsafe.Pointer(unsafe.SliceData(b)), l.windows[:l.n]
	for units < most && len(b)-off >= l.first {
		pos, differences := off, uint64(0)
		for i := range windows {
			w := &windows[i]
			word := w.word(unsafe.Add(p, pos))
			differences |= word&w.mask ^ w.want
			if w.scale != 0 {
				// The next part must be within the input, even if this unit turns out to have
				// another layout.
				size := int64(bits.ReverseBytes32(uint32(word>>32))) * int64(w.scale)
				pos += int(w.at) + 8
				if size > int64(len(b)-pos)-int64(w.next) {
					return units, off
				}
				pos += int(size)
			}
		}
		if differences != 0 {
			break
		}
		units, off = units+1, pos+l.last
	}
	return units, off
}

// repeatedWhole is repeated for units of a single part, which all have the same size.
func (l *layout) repeatedWhole(b []byte, off, most int) (units, next int) {
	p, windows := unsafe.Pointer(unsafe.SliceData(b)), l.windows[:(l.n+3)&^3]
	for i := l.n; i < len(windows); i++ {
		windows[i] = window{at: windows[0].at}
	}
	most = min(most, (len(b)-off)/l.first)
	for units < most {
		unit, differences := unsafe.Add(p, off), uint64(0)
		for i := 0; i < len(windows)-3; i += 4 {
			w := windows[i : i+4 : i+4]
			differences |= w[0].word(unit)&w[0].mask ^ w[0].want
			differences |= w[1].word(unit)&w[1].mask ^ w[1].want
			differences |= w[2].word(unit)&w[2].mask ^ w[2].want
			differences |= w[3].word(unit)&w[3].mask ^ w[3].want
		}
		if differences != 0 {
			break
		}
		units, off = units+1, off+l.first
	}
	return units, off
}

// word returns the word of a window in a part. The whole part must be within the input.
func (w *window) word(part unsafe.Pointer) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(part, int(w.at)))[:])
}

// learn makes the layout from two consecutive units at x and y. It reports whether both have the
// same layout and there is room for it.
func (l *layout) learn(b []byte, x, y, structs int, loose bool) bool {
	if x < 8 { // A window may begin up to 7 bytes before the unit.
		return false
	}
	l.n, l.b, l.begin, l.from, l.end, l.loose, l.full = 0, b, y, 0, -1, loose, false
	for range structs {
		if x, y = l.structure(x, y); y < 0 {
			return false
		}
	}
	l.last = y - l.begin
	for i := l.from; i < l.n; i++ {
		if w := &l.windows[i]; int(w.at) > l.last-8 { // The word would end after the unit.
			w.move(l.last - 8)
		}
	}
	l.endPart(y)
	return !l.full
}

// structure adds the struct at y to the layout if the one at x has the same layout. It returns the
// offsets after them, or negative numbers.
func (l *layout) structure(x, y int) (int, int) {
	for !l.full {
		kind := l.b[y]
		if l.b[x] != kind {
			return -1, -1
		}
		if kind == TypeStop {
			l.mark(y, 1)
			return x + 1, y + 1
		}
		if keyAt(l.b, x) != keyAt(l.b, y) {
			return -1, -1
		}
		l.mark(y, 3)
		if x, y = l.value(kind, x+3, y+3); y < 0 {
			return -1, -1
		}
	}
	return -1, -1
}

// value is structure for a value of any type.
func (l *layout) value(kind byte, x, y int) (int, int) {
	if size := int(fixedSize(kind)); size != 0 {
		return x + size, y + size
	}
	p := unsafe.SliceData(l.b)
	switch kind {
	case TypeString:
		return l.counted(x, y, 1)
	case TypeStruct:
		return l.structure(x, y)
	case TypeMap:
		if l.b[x] != l.b[y] || l.b[x+1] != l.b[y+1] || load32(p, x+2) != load32(p, y+2) {
			return -1, -1
		}
		l.mark(y, 6)
		return l.values(int(load32(p, y+2)), x+6, y+6, l.b[y], l.b[y+1])
	}
	m, n, elem := load32(p, x+1), load32(p, y+1), l.b[y]
	if l.b[x] != elem {
		return -1, -1
	}
	// An empty list may have any type, so lengths may differ only if one of the lists has elements.
	if size := fixedSize(elem); size != 0 && m|n != 0 {
		l.mark(y, 1)
		return l.counted(x+1, y+1, size)
	}
	if m != n {
		return -1, -1
	}
	l.mark(y, 5)
	return l.values(int(n), x+5, y+5, elem)
}

// values is value for n elements or entries.
func (l *layout) values(n, x, y int, kinds ...byte) (int, int) {
	for ; n > 0; n-- {
		for _, kind := range kinds {
			if x, y = l.value(kind, x, y); y < 0 || l.full {
				return -1, -1
			}
		}
	}
	return x, y
}

// counted is value for a count and the values of a fixed size that follow it.
func (l *layout) counted(x, y int, size uint8) (int, int) {
	p := unsafe.SliceData(l.b)
	m, n := load32(p, x), load32(p, y)
	x, y = x+4, y+4
	next := y + int(n)*int(size)
	if m == n && !l.loose {
		l.mark(y-4, 4)
		return x + int(m)*int(size), next
	}
	// The window ends with the length.
	if at := y - 8 - l.begin; l.n > l.from && int(l.windows[l.n-1].at) >= at {
		l.windows[l.n-1].move(at)
	} else {
		l.add(at)
	}
	if l.full {
		return -1, -1
	}
	l.windows[l.n-1].scale = size
	l.endPart(y)
	l.begin, l.from, l.end = next, l.n, l.n-1
	return x + int(m)*int(size), next
}

// endPart ends a part at y, whose windows are complete.
func (l *layout) endPart(y int) {
	size := y - l.begin
	if size > math.MaxInt16 {
		l.full = true
		return
	}
	if l.end < 0 {
		l.first = size
	} else {
		l.windows[l.end].next = int16(size)
	}
	for i := l.from; i < l.n; i++ {
		w := &l.windows[i]
		w.want = binary.LittleEndian.Uint64(l.b[l.begin+int(w.at):]) & w.mask
	}
}

// mark requires the size bytes at y to be the same in other units.
func (l *layout) mark(y, size int) {
	for ; size > 0; size-- {
		at := y - l.begin
		if l.n == l.from || at-int(l.windows[l.n-1].at) >= 8 {
			if l.add(at); l.full {
				return
			}
		}
		w := &l.windows[l.n-1]
		w.mask |= 0xff << (8 * (at - int(w.at)))
		y++
	}
}

// add adds a window that compares no bytes yet.
func (l *layout) add(at int) {
	if l.n == maxWindows || at > math.MaxInt16 {
		l.full = true
		return
	}
	l.windows[l.n] = window{at: int16(at)}
	l.n++
}

// move makes a window begin earlier.
func (w *window) move(at int) {
	w.mask <<= 8 * (int(w.at) - at)
	w.at = int16(at)
}
