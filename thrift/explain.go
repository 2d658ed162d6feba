package thrift

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// found is the code that a walker returns when it reaches the value that it looks for.
const found = -1 << 30

// walker walks over a struct after an error to find out where it occurred. It stops where the input
// is malformed, or at the value at offset at. The types in the input are sufficient: for errors
// that only generated code can detect, such as a missing field, the Reader has recorded at.
type walker struct {
	b     []byte
	at    int
	where int
	path  string // built from its end
}

// explain returns the error for code, which Read has returned for v, the struct at off.
func (r *Reader) explain(b []byte, off, code int, v Struct, walk func(w *walker, off, depth int) int) error {
	w := walker{b: b, at: r.at, where: off}
	depth := MaxDepth
	if r.at >= 0 || code != CodeDeep {
		// The depth is not why reading ended, so the walk must not stop because of it. Containers
		// of declared fields do not count when they are read; a declaration may nest at most 100 of
		// them.
		depth = 128 * MaxDepth
	}
	walk(&w, off, depth)
	e := &Error{Code: code, Offset: w.where, Path: strings.TrimPrefix(w.path, ".")}
	if d, ok := v.(Described); ok {
		t, index := d.ThriftTable()
		e.Names = t.names(e.Path, index)
	}
	return e
}

func (w *walker) stop(off, code int) int {
	w.where = off
	return code
}

func (w *walker) inField(id uint16) { w.path = "." + strconv.Itoa(int(int16(id))) + w.path }

func (w *walker) inElem(i int) { w.path = "[" + strconv.Itoa(i) + "]" + w.path }

// binaryFields walks over the fields of the struct at off.
func (w *walker) binaryFields(off, depth int) int {
	for {
		if off == w.at {
			return w.stop(off, found)
		}
		if off >= len(w.b) {
			return w.stop(off, CodeShort)
		}
		t := w.b[off]
		if t == TypeStop {
			return off + 1
		}
		if len(w.b)-off < 3 {
			return w.stop(off, CodeShort)
		}
		id := binary.BigEndian.Uint16(w.b[off+1:])
		if off = w.binaryValue(off+3, t, depth-1); off < 0 {
			w.inField(id)
			return off
		}
	}
}

func (w *walker) binaryValue(off int, t byte, depth int) int {
	if off == w.at {
		return w.stop(off, found)
	}
	nested := t == TypeStruct || t == TypeMap || t == TypeList || t == TypeSet
	if nested && depth <= 0 {
		return w.stop(off, CodeDeep)
	}
	switch t {
	case TypeStruct:
		return w.binaryFields(off, depth)
	case TypeList, TypeSet:
		return w.binaryList(off, depth)
	case TypeMap:
		return w.binaryMap(off, depth)
	}
	next := Skip(w.b, off, t, depth)
	if next < 0 {
		return w.stop(off, next)
	}
	return next
}

func (w *walker) binaryList(off, depth int) int {
	if len(w.b)-off < 5 {
		return w.stop(off, CodeShort)
	}
	t := w.b[off]
	n, next := count(w.b, off, t, max(1, leastOf(t)))
	if next < 0 {
		return w.stop(off, next)
	}
	for i := range n {
		if next = w.binaryValue(next, t, depth-1); next < 0 {
			w.inElem(i)
			return next
		}
	}
	return next
}

func (w *walker) binaryMap(off, depth int) int {
	if len(w.b)-off < 6 {
		return w.stop(off, CodeShort)
	}
	k, v := w.b[off], w.b[off+1]
	n, next := countMap(w.b, off, k, v, max(1, leastOf(k)+leastOf(v)))
	if next < 0 {
		return w.stop(off, next)
	}
	for i := range n {
		if next = w.binaryValue(next, k, depth-1); next < 0 {
			w.path = ".key" + w.path
		} else if next = w.binaryValue(next, v, depth-1); next < 0 {
			w.path = ".value" + w.path
		}
		if next < 0 {
			w.inElem(i)
			return next
		}
	}
	return next
}

// compactFields walks over the fields of the struct at off.
func (w *walker) compactFields(off, depth int) int {
	last := uint16(0)
	for {
		if off == w.at {
			return w.stop(off, found)
		}
		key, next := CompactField(w.b, off, last)
		if next < 0 {
			return w.stop(off, next)
		}
		t := byte(key)
		if t == TypeStop {
			return next
		}
		last = uint16(key >> 8)
		off = next
		if t == CompactTypeTrue || t == CompactTypeFalse {
			continue
		}
		if off = w.compactValue(off, t, depth-1); off < 0 {
			w.inField(last)
			return off
		}
	}
}

func (w *walker) compactValue(off int, t byte, depth int) int {
	if off == w.at {
		return w.stop(off, found)
	}
	nested := t == CompactTypeStruct || t == CompactTypeMap || t == CompactTypeList || t == CompactTypeSet
	if nested && depth <= 0 {
		return w.stop(off, CodeDeep)
	}
	switch t {
	case CompactTypeStruct:
		return w.compactFields(off, depth)
	case CompactTypeList, CompactTypeSet:
		return w.compactList(off, depth)
	case CompactTypeMap:
		return w.compactMap(off, depth)
	}
	next := skipCompactElem(w.b, off, t, depth)
	if next < 0 {
		return w.stop(off, next)
	}
	return next
}

func (w *walker) compactList(off, depth int) int {
	t, n, next := compactList(w.b, off)
	if next < 0 {
		return w.stop(off, next)
	}
	for i := range n {
		if next = w.compactValue(next, t, depth-1); next < 0 {
			w.inElem(i)
			return next
		}
	}
	return next
}

func (w *walker) compactMap(off, depth int) int {
	k, v, n, next := compactMap(w.b, off)
	if next < 0 {
		return w.stop(off, next)
	}
	for i := range n {
		if next = w.compactValue(next, k, depth-1); next < 0 {
			w.path = ".key" + w.path
		} else if next = w.compactValue(next, v, depth-1); next < 0 {
			w.path = ".value" + w.path
		}
		if next < 0 {
			w.inElem(i)
			return next
		}
	}
	return next
}
