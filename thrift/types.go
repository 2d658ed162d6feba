package thrift

// Fields of structs are often called size, read or write, so the methods of generated code are
// SizeThrift, AppendThrift, ReadThrift, AppendCompact and ReadCompact.
//
// A function that reads returns the next offset, or a code below zero. The bytes say where the input is
// malformed, so most codes carry nothing: the walk after the failure stops at the same place. For
// errors that only generated code can detect (a missing field, the type of elements, the memory), the
// Reader notes the offset, and the walk looks for it.
//
// A struct is a level, and so is a container: generated code reads a struct with depth-1, one in a list
// with depth-2.
//
// sample_test.go is a struct as a generator would write it; all tests of the package use it.

// Types of values in the Binary protocol. Generated code also uses them where it calls functions
// that do not depend on the protocol.
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
// fields need no level, as their declaration bounds them, unless they contain structs.
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

// UUID is a value of Thrift's type uuid, in the order of its text.
type UUID = [16]byte

// Struct is a generated struct, union or exception. Its pointer has the methods.
type Struct interface {
	// SizeThrift returns the size of the encoding in the Binary protocol.
	SizeThrift() int
	// AppendThrift appends the encoding to b and returns it. It does not allocate if b has
	// room for SizeThrift bytes.
	AppendThrift(b []byte) []byte
	// ReadThrift reads the struct at b[off:] and returns the offset after it, or a negative
	// code that [Reader.Err] turns into an error. It returns a code if depth, the number of
	// levels of nesting that are left, is not positive. Fields that the struct does not have
	// are skipped; fields that b does not have keep their values.
	ReadThrift(r *Reader, b []byte, off, depth int) int
}

// CompactStruct is a Struct that also has an encoding in the Compact protocol.
type CompactStruct interface {
	Struct
	// AppendCompact appends the encoding in the Compact protocol to b and returns it.
	AppendCompact(b []byte) []byte
	// ReadCompact is ReadThrift for the Compact protocol.
	ReadCompact(r *Reader, b []byte, off, depth int) int
}

// Append appends the encoding of v in the Binary protocol to b and returns it.
func Append(b []byte, v Struct) []byte { return v.AppendThrift(b) }

// Write writes the encoding of v in the Binary protocol to b and returns its size. If that is more
// than len(b), b is incomplete: v.SizeThrift() says how many bytes are needed.
func Write(b []byte, v Struct) int { return len(v.AppendThrift(b[:0:len(b)])) }

// fixed holds the sizes of values whose type determines the size.
var fixed = [17]uint8{TypeBool: 1, TypeI8: 1, TypeDouble: 8, TypeI16: 2, TypeI32: 4, TypeI64: 8, TypeUUID: 16}

// least holds the smallest size of a value of each type, and 0 for all others.
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
