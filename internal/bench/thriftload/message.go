package thriftload

import (
	"bytes"
	"encoding/binary"

	"github.com/slipstream-go/slipstream/thrift"
)

// appendText appends a struct with one field, a string.
func appendText(b []byte, compact bool, id uint16, text []byte) []byte {
	if compact {
		b = thrift.AppendCompactString(thrift.AppendCompactHead(b, thrift.CompactTypeString, id, 0), text)
	} else {
		b = thrift.AppendString(append(b, thrift.TypeString, byte(id>>8), byte(id)), text)
	}
	return append(b, thrift.TypeStop)
}

// noField replaces the ID of a field if there is none.
const noField = -1

// A result is the struct of a reply. It records whether the struct is complete, which field comes
// first, and whether that is the expected one.
type result struct {
	want  []byte // the expected first field, including its head; nil if any is right
	first int    // ID of the first field: 0 for the result of the function, others for exceptions
	right bool
}

var _ thrift.CompactStruct = (*result)(nil)

// SizeThrift implements [thrift.Struct]. Results are not written.
func (*result) SizeThrift() int { return 1 }

// AppendThrift implements [thrift.Struct].
func (*result) AppendThrift(b []byte) []byte { return append(b, thrift.TypeStop) }

// AppendCompact implements [thrift.CompactStruct].
func (*result) AppendCompact(b []byte) []byte { return append(b, thrift.TypeStop) }

// ReadThrift implements [thrift.Struct].
func (r *result) ReadThrift(_ *thrift.Reader, b []byte, off, depth int) int {
	next := thrift.Skip(b, off, thrift.TypeStruct, depth)
	if next < 0 {
		return next
	}
	r.first = noField
	if b[off] != thrift.TypeStop { // the struct is complete, so there is an ID
		r.first = int(int16(binary.BigEndian.Uint16(b[off+1:])))
	}
	r.right = bytes.HasPrefix(b[off:next], r.want)
	return next
}

// ReadCompact implements [thrift.CompactStruct].
func (r *result) ReadCompact(_ *thrift.Reader, b []byte, off, depth int) int {
	next := thrift.SkipCompact(b, off, thrift.CompactTypeStruct, depth)
	if next < 0 {
		return next
	}
	r.first = noField
	if key, at := thrift.CompactField(b, off, 0); key != 0 && at > 0 {
		r.first = int(int16(key >> 8))
	}
	r.right = bytes.HasPrefix(b[off:next], r.want)
	return next
}
