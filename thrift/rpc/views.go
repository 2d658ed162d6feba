package rpc

import (
	"bytes"

	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
)

// With --views, generated code has a second handler interface and additional client methods that use views of arguments
// and results (thrift/gen/rpcview.go). The memory of a view must stay valid, so the message is copied into separate
// memory once, which costs less than decoding it. Success puts a struct, or a view of one that a handler forwards, into
// the result.

// view is a struct that shares the memory from which it was read: a [thrift.View].
type view interface{ OpenThrift(b []byte) error }

// readStruct decodes the struct or Protobuf message at b[off:]. A view gets separate memory.
func readStruct(r *thrift.Reader, b []byte, off int, f frame.Format, to thrift.Struct) error {
	if f.Protobuf {
		return readProtobuf(r, b[off:], to)
	}
	if f.Compact {
		if c, ok := to.(thrift.CompactStruct); ok {
			_, err := r.ReadCompact(b, off, c)
			return err
		}
		return errNoCompact
	}
	if v, ok := to.(view); ok {
		return v.OpenThrift(bytes.Clone(b[off:]))
	}
	_, err := r.Read(b, off, to)
	return err
}

// Success is the result of a function that returns a struct, or a view of one, in the Binary protocol. Generated
// code uses it.
type Success struct{ Struct thrift.Struct }

var _ thrift.Struct = (*Success)(nil)

// SizeThrift implements [thrift.Struct].
func (s *Success) SizeThrift() int { return 3 + s.Struct.SizeThrift() + 1 }

// AppendThrift implements [thrift.Struct].
func (s *Success) AppendThrift(b []byte) []byte {
	return append(s.Struct.AppendThrift(append(b, thrift.TypeStruct, 0, 0)), thrift.TypeStop)
}

// ReadThrift implements [thrift.Struct]. It reads nothing.
func (*Success) ReadThrift(_ *thrift.Reader, b []byte, off, depth int) int {
	return thrift.Skip(b, off, thrift.TypeStruct, depth)
}
