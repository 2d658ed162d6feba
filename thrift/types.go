package thrift

// Fields of structs are often called size, read or write, so the methods of generated code are
// SizeThrift, AppendThrift, ReadThrift, AppendCompact and ReadCompact.
//
// A function that reads returns the next offset, or a negative code. A code carries no offset:
// after a failure, a walk over the input stops at the same malformed byte. For errors that only
// generated code can detect (a missing field, the type of elements, the memory), the Reader records
// the offset, and the walk looks for it.
//
// A struct and a container are one level each: generated code reads a struct with depth-1, and a
// struct in a list with depth-2.
//
// sample_test.go contains a struct as the generator would write it; all tests of the package use
// it.

// Types of values in the Binary protocol. Generated code also passes them to functions that do not
// depend on the protocol.
const (
	TypeStop   = 0
	TypeBool   = 2
	TypeI8     = 3
	TypeDouble = 4
	TypeI16    = 6
	TypeI32    = 8
	TypeI64    = 10
	TypeString = 11
	TypeStruct = 12
	TypeMap    = 13
	TypeSet    = 14
	TypeList   = 15
	TypeUUID   = 16
)

// MaxDepth is how deep structs and containers may be nested in a message. Containers of declared
// fields do not count unless they contain structs, because their declaration bounds them.
const MaxDepth = 64

// Opt is an optional scalar: a value and whether it is set. An Opt that is not set is not
// written. The zero value is not set.
type Opt[T any] struct {
	V   T
	Set bool
}

// Some returns an Opt that is set to v.
func Some[T any](v T) Opt[T] { return Opt[T]{v, true} }

// Or returns the value, or v if the Opt is not set.
func (o Opt[T]) Or(v T) T {
	if o.Set {
		return o.V
	}
	return v
}

// UUID is a value of Thrift's type uuid. The bytes are in the order of the text.
type UUID = [16]byte

// Struct is implemented by pointers to generated structs, unions and exceptions.
type Struct interface {
	// SizeThrift returns the size of the encoding in the Binary protocol.
	SizeThrift() int
	// AppendThrift appends the encoding to b and returns the extended slice. It does not allocate
	// if b has room for SizeThrift bytes.
	AppendThrift(b []byte) []byte
	// ReadThrift reads the struct at b[off:] and returns the offset after it, or a negative
	// code that [Reader.Read] converts to an error. It returns a code if depth, the number of
	// remaining levels of nesting, is not positive. Unknown fields are skipped; fields that are
	// missing in b keep their values.
	ReadThrift(r *Reader, b []byte, off, depth int) int
}

// CompactStruct is a Struct that also has an encoding in the Compact protocol.
type CompactStruct interface {
	Struct
	// AppendCompact appends the encoding in the Compact protocol to b and returns the extended
	// slice.
	AppendCompact(b []byte) []byte
	// ReadCompact is ReadThrift for the Compact protocol.
	ReadCompact(r *Reader, b []byte, off, depth int) int
}

// Append appends the encoding of v in the Binary protocol to b and returns the extended slice.
func Append(b []byte, v Struct) []byte { return v.AppendThrift(b) }

// Write writes the encoding of v in the Binary protocol to b and returns its size. If that is more
// than len(b), b is incomplete: v.SizeThrift() returns how many bytes are needed.
func Write(b []byte, v Struct) int { return len(v.AppendThrift(b[:0:len(b)])) }

// fixed holds the sizes of values whose type determines the size.
var fixed = [17]uint8{TypeBool: 1, TypeI8: 1, TypeDouble: 8, TypeI16: 2, TypeI32: 4, TypeI64: 8, TypeUUID: 16}

// least holds the minimum size of a value of each type, and 0 for invalid types.
var least = [17]uint8{
	TypeBool: 1, TypeI8: 1, TypeDouble: 8, TypeI16: 2, TypeI32: 4, TypeI64: 8, TypeUUID: 16,
	TypeString: 4, TypeStruct: 1, TypeMap: 6, TypeSet: 5, TypeList: 5,
}

func leastOf(t byte) int {
	if int(t) < len(least) {
		return int(least[t])
	}
	return 0
}
