package genericrpc

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/slipstream-go/slipstream/thrift"
)

// Raw is an encoded struct: the arguments or the result of a function, which a program forwards
// without decoding them. The zero value is a struct without fields.
type Raw struct {
	// Bytes is the encoding, from the first field to the byte that ends the struct. Reading
	// replaces it with a copy of the input.
	Bytes []byte
	// Compact reports whether Bytes is in the Compact protocol rather than in the Binary protocol.
	// Reading sets it.
	Compact bool
}

var _ thrift.CompactStruct = (*Raw)(nil)

// SizeThrift implements [thrift.Struct].
func (r *Raw) SizeThrift() int { return max(len(r.Bytes), 1) }

// AppendThrift implements [thrift.Struct]. It panics if the struct is in the Compact protocol;
// clients of package rpc recover, do not send the call, and return an error.
func (r *Raw) AppendThrift(b []byte) []byte { return r.append(b, false) }

// AppendCompact implements [thrift.CompactStruct]. It panics if the struct is in the Binary protocol, as
// AppendThrift does.
func (r *Raw) AppendCompact(b []byte) []byte { return r.append(b, true) }

// errProtocol is the error for a struct in the wrong protocol, and the value of the panics of Raw.
var errProtocol = errors.New("genericrpc: the struct and the call are in different protocols (Binary and Compact)")

func (r *Raw) append(b []byte, compact bool) []byte {
	switch {
	case len(r.Bytes) == 0:
		return append(b, thrift.TypeStop)
	case r.Compact != compact:
		panic(errProtocol)
	}
	return append(b, r.Bytes...)
}

// ReadThrift implements [thrift.Struct].
func (r *Raw) ReadThrift(_ *thrift.Reader, b []byte, off, depth int) int {
	return r.read(b, off, thrift.Skip(b, off, thrift.TypeStruct, depth), false)
}

// ReadCompact implements [thrift.CompactStruct].
func (r *Raw) ReadCompact(_ *thrift.Reader, b []byte, off, depth int) int {
	return r.read(b, off, thrift.SkipCompact(b, off, thrift.CompactTypeStruct, depth), true)
}

// read copies the struct at b[off:next]. It returns next.
func (r *Raw) read(b []byte, off, next int, compact bool) int {
	if next >= 0 {
		r.Bytes, r.Compact = bytes.Clone(b[off:next]), compact
	}
	return next
}

// check returns an error if Bytes is not exactly one struct.
func (r *Raw) check() error {
	if len(r.Bytes) == 0 {
		return nil
	}
	var next int
	if r.Compact {
		next = thrift.SkipCompact(r.Bytes, 0, thrift.CompactTypeStruct, thrift.MaxDepth)
	} else {
		next = thrift.Skip(r.Bytes, 0, thrift.TypeStruct, thrift.MaxDepth)
	}
	if next >= 0 && next < len(r.Bytes) {
		return fmt.Errorf("genericrpc: %d bytes follow the struct, which ends at byte %d", len(r.Bytes)-next, next)
	}
	return thrift.Err(next, 0)
}
