package rt

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// Functions named View read the value at off of an indexed struct, or return the zero value if off
// is 0, which means that the field is absent.

func ViewBool(b []byte, off uint32) bool { return off != 0 && b[off] != 0 }

func ViewI32(b []byte, off uint32) int32 {
	if off == 0 {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b[off:]))
}

func ViewI64(b []byte, off uint32) int64 {
	if off == 0 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b[off:]))
}

func ViewDouble(b []byte, off uint32) float64 {
	return math.Float64frombits(uint64(ViewI64(b, off)))
}

func ViewBinary(b []byte, off uint32) []byte {
	if off == 0 {
		return nil
	}
	n := binary.BigEndian.Uint32(b[off:])
	return b[off+4 : off+4+n : off+4+n]
}

// ViewString returns a string that shares the memory of b.
func ViewString(b []byte, off uint32) string {
	s := ViewBinary(b, off)
	return unsafe.String(unsafe.SliceData(s), len(s))
}

// ViewBytes returns the encoding that begins at off.
func ViewBytes(b []byte, off uint32) []byte {
	if off == 0 {
		return nil
	}
	return b[off:]
}

// ListView is a list that is not decoded.
type ListView struct {
	b   []byte
	off uint32
}

// ViewList returns the list at off.
func ViewList(b []byte, off uint32) ListView { return ListView{b, off} }

// Len returns the number of elements.
func (l ListView) Len() int {
	if l.off == 0 {
		return 0
	}
	return int(binary.BigEndian.Uint32(l.b[l.off+1:]))
}

// MapView is a map that is not decoded.
type MapView struct {
	b   []byte
	off uint32
}

// ViewMap returns the map at off.
func ViewMap(b []byte, off uint32) MapView { return MapView{b, off} }

// Len returns the number of entries.
func (m MapView) Len() int {
	if m.off == 0 {
		return 0
	}
	return int(binary.BigEndian.Uint32(m.b[m.off+2:]))
}

// Index stores the offsets of the values of the struct that b begins with, at the index of their
// key in keys. A key is an ID shifted by 8 and a type. It validates all lengths, and returns the
// size of the struct or a code.
func Index(b []byte, at []uint32, keys []uint32, required uint64) int {
	off, guess := 0, 0
	var seen uint64
	for {
		if len(b)-off < 3 || b[off] == Stop {
			if off >= len(b) || b[off] != Stop {
				return Short
			}
			if seen&required != required {
				return Missing
			}
			return off + 1
		}
		t := b[off]
		key := uint32(b[off+1])<<16 | uint32(b[off+2])<<8 | uint32(t)
		off += 3
		i := guess
		if i >= len(keys) || keys[i] != key {
			for i = 0; i < len(keys) && keys[i] != key; i++ {
			}
		}
		if i < len(keys) {
			at[i] = uint32(off)
			seen |= 1 << i
			guess = i + 1
		}
		if off = Skip(b, off, t, MaxDepth); off < 0 {
			return off
		}
	}
}
