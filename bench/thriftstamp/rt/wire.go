// Package rt is the runtime of the prototype: a sketch of the package that generated Thrift code
// would import. Only bench/thriftstamp uses it.
package rt

import (
	"encoding/binary"
	"fmt"
)

// Types of the Thrift binary protocol.
const (
	Stop   = 0
	Bool   = 2
	Byte   = 3
	Double = 4
	I16    = 6
	I32    = 8
	I64    = 10
	String = 11
	Struct = 12
	Map    = 13
	Set    = 14
	List   = 15
	UUID   = 16
)

// MaxDepth is how deep structs and containers may be nested.
const MaxDepth = 64

// Opt is an optional scalar: a value and whether it is set.
type Opt[T any] struct {
	V   T
	Set bool
}

// Some returns a set Opt.
func Some[T any](v T) Opt[T] { return Opt[T]{v, true} }

// Codes of errors. Reading functions return them in place of the next offset.
const (
	Short   = -1 - iota // The input ends inside a value.
	Length              // A length is negative or exceeds the rest of the input.
	Elem                // Elements of a container have the wrong type.
	Deep                // Values are nested deeper than MaxDepth.
	Unknown             // The type is not one of Thrift's.
	Missing             // A required field is missing.
)

// Error reports why bytes are not a valid struct.
type Error struct{ Code int }

var messages = [...]string{
	"the input ends inside a value", "a length exceeds the input", "elements have the wrong type",
	"values are nested too deeply", "unknown type", "a required field is missing",
}

func (e *Error) Error() string { return fmt.Sprintf("thrift: %s", messages[-1-e.Code]) }

// Err converts a code to an error. It returns nil for offsets.
func Err(off int) error {
	if off >= 0 {
		return nil
	}
	return &Error{off}
}

// fixed holds the size of values whose size is fixed by their type.
var fixed = [17]uint8{Bool: 1, Byte: 1, Double: 8, I16: 2, I32: 4, I64: 8, UUID: 16}

// least holds the smallest size of a value of each type, or 0 for an invalid type.
var least = [17]uint8{
	Bool: 1, Byte: 1, Double: 8, I16: 2, I32: 4, I64: 8, UUID: 16,
	String: 4, Struct: 1, Map: 6, Set: 5, List: 5,
}

func leastOf(t byte) int {
	if int(t) < len(least) {
		return int(least[t])
	}
	return 0
}

// Skip returns the offset after the value of type t at off, or a code.
func Skip(b []byte, off int, t byte, depth int) int {
	if int(t) < len(fixed) && fixed[t] != 0 {
		if off += int(fixed[t]); off > len(b) {
			return Short
		}
		return off
	}
	if depth <= 0 {
		return Deep
	}
	switch t {
	case String:
		return SkipString(b, off)
	case Struct:
		return skipStruct(b, off, depth)
	case List, Set:
		return skipList(b, off, depth)
	case Map:
		return skipMap(b, off, depth)
	}
	return Unknown
}

// SkipString returns the offset after the string at off, or a code.
func SkipString(b []byte, off int) int {
	if len(b)-off < 4 {
		return Short
	}
	n := int(int32(binary.BigEndian.Uint32(b[off:])))
	off += 4
	if uint(n) > uint(len(b)-off) {
		return Length
	}
	return off + n
}

func skipStruct(b []byte, off, depth int) int {
	for {
		if off >= len(b) {
			return Short
		}
		t := b[off]
		if t == Stop {
			return off + 1
		}
		if len(b)-off < 3 {
			return Short
		}
		if off = Skip(b, off+3, t, depth-1); off < 0 {
			return off
		}
	}
}

func skipList(b []byte, off, depth int) int {
	if len(b)-off < 5 {
		return Short
	}
	t, n := b[off], int(int32(binary.BigEndian.Uint32(b[off+1:])))
	off += 5
	if n == 0 {
		return off
	}
	m := leastOf(t)
	if m == 0 {
		return Unknown
	}
	if uint(n) > uint((len(b)-off)/m) {
		return Length
	}
	if size := int(fixed[t]); size != 0 {
		return off + n*size
	}
	for ; n > 0 && off >= 0; n-- {
		off = Skip(b, off, t, depth-1)
	}
	return off
}

func skipMap(b []byte, off, depth int) int {
	if len(b)-off < 6 {
		return Short
	}
	k, v, n := b[off], b[off+1], int(int32(binary.BigEndian.Uint32(b[off+2:])))
	off += 6
	if n == 0 {
		return off
	}
	mk, mv := leastOf(k), leastOf(v)
	if mk == 0 || mv == 0 {
		return Unknown
	}
	if uint(n) > uint((len(b)-off)/(mk+mv)) {
		return Length
	}
	for ; n > 0 && off >= 0; n-- {
		if off = Skip(b, off, k, depth-1); off >= 0 {
			off = Skip(b, off, v, depth-1)
		}
	}
	return off
}

// Count returns how many elements of type t the list at off has and the offset of the first. It
// returns a code instead of the offset if elements of least bytes do not fit into the rest. An
// empty list may have any type.
func Count(b []byte, off int, t byte, least int) (n, next int) {
	if len(b)-off < 5 {
		return 0, Short
	}
	n = int(int32(binary.BigEndian.Uint32(b[off+1:])))
	switch {
	case n == 0:
		return 0, off + 5
	case b[off] != t:
		return 0, Elem
	case uint(n) > uint((len(b)-off-5)/least):
		return 0, Length
	}
	return n, off + 5
}

// CountMap is Count for maps.
func CountMap(b []byte, off int, k, v byte, least int) (n, next int) {
	if len(b)-off < 6 {
		return 0, Short
	}
	n = int(int32(binary.BigEndian.Uint32(b[off+2:])))
	switch {
	case n == 0:
		return 0, off + 6
	case b[off] != k || b[off+1] != v:
		return 0, Elem
	case uint(n) > uint((len(b)-off-6)/least):
		return 0, Length
	}
	return n, off + 6
}
