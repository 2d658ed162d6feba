package thrift

import (
	"encoding/binary"
	"unsafe"

	"github.com/slipstream-go/slipstream"
)

// BodyThrift, an option of the generator, is AppendThrift into the body of a request: strings and
// binaries of 8 KiB and more are linked instead of copied, because the body links from there on. A
// struct that is smaller is appended as usual.

// LinkFrom is the size from which strings and binaries are linked into a body rather than copied:
// that of [slipstream.Body.Link].
const LinkFrom = 8 << 10

// BodyStruct is a Struct that can be appended to a body without its large strings and binaries
// being copied.
type BodyStruct interface {
	Struct
	// BodyThrift appends the encoding in the Binary protocol to a body. Strings and binaries of
	// LinkFrom bytes and more are linked: binaries must not change until the body was sent.
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

// LinkText appends a string or binary that is an element to a body, and links it if it is large.
func LinkText[T ~string | ~[]byte](body *slipstream.Body, v T) {
	body.B = binary.BigEndian.AppendUint32(body.B, uint32(len(v)))
	if len(v) < LinkFrom {
		body.B = append(body.B, v...)
		return
	}
	body.Link(bytesOf(v), nil)
}

// LinkTexts appends the elements of a list to a body, and links those that are large.
func LinkTexts[T ~string | ~[]byte](body *slipstream.Body, v []T) {
	for _, s := range v {
		LinkText(body, s)
	}
}

// LinkStringMap appends the entries of a map to a body, and links what is large.
func LinkStringMap(body *slipstream.Body, v map[string]string) {
	for k, s := range v {
		LinkText(body, k)
		LinkText(body, s)
	}
}

// LinkSortedStringMap is LinkStringMap in the order of the keys.
func LinkSortedStringMap(body *slipstream.Body, v map[string]string) {
	for _, k := range SortedKeys(v) {
		LinkText(body, k)
		LinkText(body, v[k])
	}
}

// LinkString appends a field of type string to a body, in the Binary protocol. The bytes are not
// copied if they are so many that a link to them is cheaper.
func LinkString(body *slipstream.Body, id uint16, v string) {
	LinkBinary(body, id, bytesOf(v), nil)
}

// LinkBinary is LinkString for a binary. Its bytes must not change until owner is told, or, if
// owner is nil, until the body was sent.
func LinkBinary(body *slipstream.Body, id uint16, v []byte, owner slipstream.Owner) {
	body.B = append(body.B, TypeString, byte(id>>8), byte(id))
	body.B = binary.BigEndian.AppendUint32(body.B, uint32(len(v)))
	body.Link(v, owner)
}
