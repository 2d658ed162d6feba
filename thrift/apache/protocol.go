package apache

import (
	"context"
	"io"
	"slices"

	lib "github.com/apache/thrift/lib/go/thrift"

	"github.com/slipstream-go/slipstream/thrift"
)

// Protocol is a TProtocol over a slice, with a stack of structs, which has the last ID of each for the
// Compact protocol. The count that ReadListBegin returns is compared with the rest of the input,
// because generated code of Apache allocates as many elements before it reads the first one. Structs
// may be nested MaxDepth deep. Containers do not count: code may leave out the calls for their ends,
// and no type contains itself without a struct.

// Protocol is a TProtocol in memory, for the Binary or the Compact protocol. It behaves like a
// bytes.Buffer: what is written is appended to its bytes, and reading begins with the first of them.
// The Binary protocol is written in the strict form; both forms are read.
//
// A Protocol is not safe for concurrent use. After an error it must not be used before Reset.
type Protocol struct {
	// Immutable.
	compact bool

	// Owned by the goroutine that uses the Protocol.
	buf         []byte
	off         int // how many bytes were read
	in, out     nesting
	reader      thrift.Reader // checks counts
	memory      memory
	pendingBool byte   // the type of the field that ReadBool returns, or 0
	pendingID   uint16 // of the field that WriteBool writes
	isPending   bool   // pendingID is valid
}

var _ lib.TProtocol = (*Protocol)(nil)

// NewBinary returns a Protocol that reads b, and appends to it, in the Binary protocol. The Protocol
// owns b from then on.
func NewBinary(b []byte) *Protocol {
	p := new(Protocol)
	p.Reset(b)
	return p
}

// NewCompact is NewBinary for the Compact protocol.
func NewCompact(b []byte) *Protocol {
	p := &Protocol{compact: true}
	p.Reset(b)
	return p
}

// Reset makes the Protocol read b, and append to it, as a new one does.
func (p *Protocol) Reset(b []byte) {
	*p = Protocol{compact: p.compact, buf: b, in: p.in[:0], out: p.out[:0]}
	p.memory.p = p
}

// Bytes returns what was written and not read. It is valid until the next write.
func (p *Protocol) Bytes() []byte { return p.buf[p.off:] }

// nesting is where in a message reading or writing is: for each struct that has begun, the ID of its
// last field. Containers do not count, because code may leave out the calls for their ends, and no
// type contains itself without a struct.
type nesting []uint16

// field notes the ID of a field, and returns that of the field before it in the same struct.
func (n *nesting) field(id uint16) (last uint16) {
	if i := len(*n) - 1; i >= 0 {
		last, (*n)[i] = (*n)[i], id
	}
	return last
}

// lastID returns the ID of the last field.
func (n *nesting) lastID() uint16 {
	if i := len(*n) - 1; i >= 0 {
		return (*n)[i]
	}
	return 0
}

// enter begins a struct at an offset.
func (n *nesting) enter(off int) error {
	if len(*n) >= thrift.MaxDepth {
		return failure(thrift.CodeDeep, off)
	}
	*n = append(*n, 0)
	return nil
}

// leave ends a struct.
func (n *nesting) leave() error {
	*n = (*n)[:max(len(*n)-1, 0)]
	return nil
}

// begin begins a message.
func (n *nesting) begin() { *n = (*n)[:0] }

// failure returns the exception for a code of package thrift.
func failure(code, off int) error { return exception(&thrift.Error{Code: code, Offset: off}) }

// exception returns an error of package thrift as Apache's library expects it.
func exception(err *thrift.Error) error {
	kind := lib.INVALID_DATA
	switch err.Code {
	case thrift.CodeDeep:
		kind = lib.DEPTH_LIMIT
	case thrift.CodeLength, thrift.CodeMemory:
		kind = lib.SIZE_LIMIT
	case thrift.CodeVersion:
		kind = lib.BAD_VERSION
	}
	return lib.NewTProtocolExceptionWithType(kind, err)
}

// Flush does nothing: what was written is in Bytes.
func (p *Protocol) Flush(context.Context) error { return nil }

// Transport returns a transport with the bytes of the Protocol.
func (p *Protocol) Transport() lib.TTransport { return &p.memory }

// memory is the bytes of a Protocol as a transport.
type memory struct{ p *Protocol }

func (m *memory) Read(b []byte) (int, error) {
	if len(b) > 0 && len(m.p.Bytes()) == 0 {
		return 0, io.EOF
	}
	n := copy(b, m.p.Bytes())
	m.p.off += n
	return n, nil
}

func (m *memory) Write(b []byte) (int, error) {
	m.p.buf = append(m.p.buf, b...)
	return len(b), nil
}

func (m *memory) Flush(context.Context) error { return nil }
func (m *memory) RemainingBytes() uint64      { return uint64(len(m.p.Bytes())) }
func (m *memory) Open() error                 { return nil }
func (m *memory) IsOpen() bool                { return true }
func (m *memory) Close() error                { return nil }

// least holds the smallest size of a value in the Binary protocol, and 0 for what is no type.
var least = [...]int{
	lib.BOOL: 1, lib.BYTE: 1, lib.DOUBLE: 8, lib.I16: 2, lib.I32: 4, lib.I64: 8, lib.UUID: 16,
	lib.STRING: 4, lib.STRUCT: 1, lib.MAP: 6, lib.SET: 5, lib.LIST: 5,
}

func isType(t lib.TType) bool { return int(t) < len(least) && least[t] > 0 }

// compactTypes holds the types of the Compact protocol.
var compactTypes = [...]byte{
	lib.BOOL: thrift.CompactTypeBool, lib.BYTE: thrift.CompactTypeI8, lib.DOUBLE: thrift.CompactTypeDouble,
	lib.I16: thrift.CompactTypeI16, lib.I32: thrift.CompactTypeI32, lib.I64: thrift.CompactTypeI64,
	lib.STRING: thrift.CompactTypeString, lib.STRUCT: thrift.CompactTypeStruct, lib.MAP: thrift.CompactTypeMap,
	lib.SET: thrift.CompactTypeSet, lib.LIST: thrift.CompactTypeList, lib.UUID: thrift.CompactTypeUUID,
}

// fromCompact returns the type that a type of the Compact protocol is, or STOP.
func fromCompact(t byte) lib.TType {
	if t == thrift.CompactTypeFalse {
		return lib.BOOL
	}
	return lib.TType(max(slices.Index(compactTypes[1:], t)+1, lib.STOP))
}
