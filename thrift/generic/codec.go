package generic

import (
	"math"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/idl"
)

// This package walks along the tree and calls the functions of the runtime for heads, counts and
// scalars, so that both protocols and their bounds are implemented once. Values are plain Go values:
// map[string]any for structs, []any, map[any]any. Maps with keys that Go cannot compare are entries, as
// in generated code. A decoded value has the defaults and zeros that generated code has, so what is
// written again is the same; the tests compare bytes and JSON for all structs of testpkg, and
// FuzzGenericCodec compares which messages are refused.

// Codec encodes and decodes structs. The zero value is ready for use, with the Binary protocol. All
// methods are safe for concurrent use.
type Codec struct {
	// Compact selects the Compact protocol.
	Compact bool
	// MaxMemory is about how many bytes the values of a message may take. If it is 0, they may
	// take 4 MiB and 64 times the size of the input. Contents of strings and binaries of a message
	// do not count, those of defaults do. A struct needs some hundred bytes, many times what it
	// needs in generated code, so large messages of tiny structs need a higher limit.
	MaxMemory int
	// Strict makes names of members that are not those of fields errors when JSON is read.
	// Otherwise they are skipped, as by generated types.
	Strict bool
	// JSON says how JSON is written. Maps are always in the order of the text of their keys.
	JSON thrift.JSON
}

// ValueError says why a value cannot be written.
type ValueError struct {
	// Path leads from the struct to the value: lines[0].quantity, attrs["key"]. Keys of maps that
	// are not strings, and entries, have their place: [0].key and [0].value.
	Path string
	// Problem says what was expected, or what is wrong.
	Problem string
}

// Error returns the problem, and where it is.
func (e *ValueError) Error() string {
	if e.Path == "" {
		return "thrift: value: " + e.Problem
	}
	return "thrift: value: field " + e.Path + ": " + e.Problem
}

// in adds a step to the beginning of the path. It returns e.
func (e *ValueError) in(step string) *ValueError {
	e.Path = step + e.Path
	return e
}

// asError returns e with its path complete, or nil.
func (e *ValueError) asError() error {
	if e == nil {
		return nil
	}
	e.Path = strings.TrimPrefix(e.Path, ".")
	return e
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// Texts of errors, as package thrift has them.
const (
	tooDeep  = "values are nested too deeply"
	tooLarge = "the values need more memory than allowed"
	badUnion = "a union does not have exactly one field"
	noText   = "a length does not fit into 31 bits"
)

// Limits of memory: see Codec.MaxMemory.
const (
	memoryOfByte = 64
	memoryFloor  = 4 << 20
)

// About how much memory values take.
const (
	sizeOfSlot   = 32  // an element, and what it refers to
	sizeOfEntry  = 96  // an entry of a map
	sizeOfStruct = 64  // an empty struct
	sizeOfField  = 16  // of a declared field, whether it is there or not
	sizeOfValue  = 112 // a field that is there
)

// budget limits the memory of values.
type budget int

func (c *Codec) budget(input int) budget {
	if c.MaxMemory != 0 {
		return budget(c.MaxMemory)
	}
	return budget(memoryFloor + memoryOfByte*min(input, (math.MaxInt-memoryFloor)/memoryOfByte))
}

// charge takes n values of size bytes. It reports whether they fit in.
func (m *budget) charge(n, size int) bool {
	if n > int(*m)/size {
		*m = 0
		return false
	}
	*m -= budget(n * size)
	return true
}

// chargeStruct takes a struct.
func (m *budget) chargeStruct(s *idl.Struct) bool {
	return m.charge(1, sizeOfStruct+sizeOfField*len(s.Fields))
}

// wires holds the types of the Binary protocol.
var wires = [...]byte{
	idl.Bool: thrift.TypeBool, idl.I8: thrift.TypeI8, idl.I16: thrift.TypeI16, idl.I32: thrift.TypeI32, idl.I64: thrift.TypeI64,
	idl.Double: thrift.TypeDouble, idl.String: thrift.TypeString, idl.Binary: thrift.TypeString, idl.UUID: thrift.TypeUUID,
	idl.List: thrift.TypeList, idl.Set: thrift.TypeSet, idl.Map: thrift.TypeMap,
}

// wireOf returns the type of the Binary protocol. t is not a typedef.
func wireOf(t *idl.Type) byte {
	switch {
	case t.Kind != idl.Named:
		return wires[t.Kind]
	case t.Struct() != nil:
		return thrift.TypeStruct
	}
	return thrift.TypeI32
}

// least holds the smallest size of a value in the Binary protocol.
var least = [...]int{
	thrift.TypeBool: 1, thrift.TypeI8: 1, thrift.TypeDouble: 8, thrift.TypeI16: 2, thrift.TypeI32: 4, thrift.TypeI64: 8, thrift.TypeUUID: 16,
	thrift.TypeString: 4, thrift.TypeStruct: 1, thrift.TypeMap: 6, thrift.TypeSet: 5, thrift.TypeList: 5,
}

// compact holds the types of the Compact protocol.
var compact = [...]byte{
	thrift.TypeBool: thrift.CompactTypeBool, thrift.TypeI8: thrift.CompactTypeI8, thrift.TypeDouble: thrift.CompactTypeDouble,
	thrift.TypeI16: thrift.CompactTypeI16, thrift.TypeI32: thrift.CompactTypeI32, thrift.TypeI64: thrift.CompactTypeI64,
	thrift.TypeUUID: thrift.CompactTypeUUID, thrift.TypeString: thrift.CompactTypeString, thrift.TypeStruct: thrift.CompactTypeStruct,
	thrift.TypeMap: thrift.CompactTypeMap, thrift.TypeSet: thrift.CompactTypeSet, thrift.TypeList: thrift.CompactTypeList,
}

// isEntries reports whether a map is a slice of entries, because Go cannot compare its keys.
func isEntries(t *idl.Type) bool {
	switch wireOf(t.Key.True()) {
	case thrift.TypeStruct, thrift.TypeList, thrift.TypeSet, thrift.TypeMap:
		return true
	}
	return false
}

// bitsOf returns the size of an integer.
func bitsOf(wire byte) int { return 8 * least[wire] }

// ofBits returns an integer as a value of its type.
func ofBits(n int64, bits int) any {
	switch bits {
	case 8:
		return int8(n)
	case 16:
		return int16(n)
	case 32:
		return int32(n)
	}
	return n
}
