package thrift

import (
	"encoding/binary"
	"unsafe"

	"github.com/slipstream-go/slipstream"
)

// BodyThrift, an option of the generator, is AppendThrift for the body of a request: strings and
// binaries of at least LinkFrom bytes are linked instead of copied. Smaller structs are appended as
// usual.

// LinkFrom is the minimum size of strings and binaries that are linked into a body instead of
// copied. It is the same as in [slipstream.Body.Link].
const LinkFrom = 8 << 10

// BodyStruct is a Struct that can be appended to a body without copying its large strings and
// binaries.
type BodyStruct interface {
	Struct
	// BodyThrift appends the encoding in the Binary protocol to a body. Strings and binaries of at
	// least LinkFrom bytes are linked: binaries must not change until the body has been sent.
	BodyThrift(body *slipstream.Body)
}

// AppendBody appends v to a body: with BodyThrift if it is a BodyStruct, otherwise with AppendThrift.
func AppendBody(body *slipstream.Body, v Struct) {
	if v, ok := v.(BodyStruct); ok {
		v.BodyThrift(body)
		return
	}
	body.B = v.AppendThrift(body.B)
}

// bytesOf returns the memory of v, which must not be written to if it is a string.
func bytesOf[T ~string | ~[]byte](v T) []byte {
	s := *(*string)(unsafe.Pointer(&v)) // a slice begins like a string
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// LinkText appends a string or binary that is an element of a container to a body, and links it if
// it is large.
func LinkText[T ~string | ~[]byte](body *slipstream.Body, v T) {
	body.B = binary.BigEndian.AppendUint32(body.B, uint32(len(v)))
	if len(v) < LinkFrom {
		body.B = append(body.B, v...)
		return
	}
	body.Link(bytesOf(v), nil)
}

// LinkTexts appends the elements of a list to a body, and links the large ones.
func LinkTexts[T ~string | ~[]byte](body *slipstream.Body, v []T) {
	for _, s := range v {
		LinkText(body, s)
	}
}

// LinkStringMap appends the entries of a map to a body, and links large keys and values.
func LinkStringMap(body *slipstream.Body, v map[string]string) {
	for k, s := range v {
		LinkText(body, k)
		LinkText(body, s)
	}
}

// LinkSortedStringMap is like LinkStringMap, but appends the entries in the order of their keys.
func LinkSortedStringMap(body *slipstream.Body, v map[string]string) {
	for _, k := range SortedKeys(v) {
		LinkText(body, k)
		LinkText(body, v[k])
	}
}

// LinkString appends a field of type string to a body, in the Binary protocol. Long strings are not
// copied, because a link is cheaper.
func LinkString(body *slipstream.Body, id uint16, v string) {
	LinkBinary(body, id, bytesOf(v), nil)
}

// LinkBinary is LinkString for a binary. Its bytes must not change until owner is notified or, if
// owner is nil, until the body has been sent.
func LinkBinary(body *slipstream.Body, id uint16, v []byte, owner slipstream.Owner) {
	body.B = append(body.B, TypeString, byte(id>>8), byte(id))
	body.B = binary.BigEndian.AppendUint32(body.B, uint32(len(v)))
	body.Link(v, owner)
}
