package generic

import (
	"math"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/idl"
)

// This package walks the tree of the IDL and calls the functions of the runtime for heads, counts
// and scalars, so that both protocols and their bounds are implemented only once. Values are plain
// Go values: map[string]any for structs, []any, map[any]any. A map whose keys Go cannot compare is
// a slice of entries, as in generated code. A decoded value contains the defaults and zeros that
// generated code sets, so it is encoded to the same bytes; the tests compare bytes and JSON for all
// structs of testpkg, and FuzzGenericCodec compares which messages are rejected.

// Codec encodes and decodes structs. The zero value is ready to use, and selects the Binary
// protocol. All methods are safe for concurrent use.
type Codec struct {
	// Compact selects the Compact protocol.
	Compact bool
	// MaxMemory limits the approximate number of bytes that the values of a message occupy. If it
	// is 0, the limit is 4 MiB plus 64 times the size of the input. The contents of strings and
	// binaries in a message do not count; those in defaults do. A struct needs a few hundred bytes,
	// many times more than in generated code, so large messages of tiny structs need a higher
	// limit.
	MaxMemory int
	// Strict makes unknown members an error when JSON is read. Otherwise they are skipped, as by
	// generated types.
	Strict bool
	// JSON holds options for writing JSON. Maps are always sorted by the text of their keys.
	JSON thrift.JSON
}

// ValueError is the error for a value that cannot be written.
type ValueError struct {
	// Path leads from the struct to the value: lines[0].quantity, attrs["key"]. Map keys that are
	// not strings, and entries, are identified by their index: [0].key and [0].value.
	Path string
	// Problem describes what was expected, or why the value is invalid.
	Problem string
}

// Error returns the path and the problem.
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

// Error texts, the same as those of package thrift.
const (
	tooDeep  = "values are nested too deeply"
	tooLarge = "the values need more memory than allowed"
	badUnion = "a union does not have exactly one field"
	noText   = "a length does not fit into 31 bits"
)

// Memory limits: see Codec.MaxMemory.
const (
	memoryOfByte = 64
	memoryFloor  = 4 << 20
)

// The approximate sizes of values in memory.
const (
	sizeOfSlot   = 32  // an element and the value that it refers to
	sizeOfEntry  = 96  // an entry of a map
	sizeOfStruct = 64  // an empty struct
	sizeOfField  = 16  // a declared field, whether present or not
	sizeOfValue  = 112 // a field that is present
)

// budget limits the memory of values.
type budget int

func (c *Codec) budget(input int) budget {
	if c.MaxMemory != 0 {
		return budget(c.MaxMemory)
	}
	return budget(memoryFloor + memoryOfByte*min(input, (math.MaxInt-memoryFloor)/memoryOfByte))
}

// charge subtracts the memory of n values of size bytes. It reports whether the budget suffices.
func (m *budget) charge(n, size int) bool {
	if n > int(*m)/size {
		*m = 0
		return false
	}
	*m -= budget(n * size)
	return true
}

// chargeStruct subtracts the memory of a struct.
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

// least holds the minimum size of a value in the Binary protocol.
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

// bitsOf returns the number of bits of an integer type.
func bitsOf(wire byte) int { return 8 * least[wire] }

// ofBits converts an integer to the Go type with that number of bits.
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
