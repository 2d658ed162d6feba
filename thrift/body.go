package thrift

import (
	"encoding/binary"
	"unsafe"

	"github.com/slipstream-go/slipstream"
)

// LinkString appends a field of type string to a body, in the Binary protocol. The bytes are not
// copied if they are so many that a link to them is cheaper.
func LinkString(body *slipstream.Body, id uint16, v string) {
	LinkBinary(body, id, unsafe.Slice(unsafe.StringData(v), len(v)), nil)
}

// LinkBinary is LinkString for a binary. Its bytes must not change until owner is told, or, if
// owner is nil, until the body was sent.
func LinkBinary(body *slipstream.Body, id uint16, v []byte, owner slipstream.Owner) {
	body.B = append(body.B, TypeString, byte(id>>8), byte(id))
	body.B = binary.BigEndian.AppendUint32(body.B, uint32(len(v)))
	body.Link(v, owner)
}
