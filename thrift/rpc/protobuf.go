package rpc

import (
	"encoding/binary"
	"errors"
	"strings"

	"github.com/slipstream-go/slipstream/thrift"
)

// Protobuf messages, as Kitex sends them, have the message header of the Binary protocol with another version, and the
// Protobuf message in place of a struct. The message ends where its frame ends. Package protobufrpc encodes and decodes
// messages; the exception is so small that this package needs no library for it:
//
//	message Error { int32 kind = 1; string message = 2; }

// protobufVersion is in the upper 16 bits of the first word.
const protobufVersion = 0x90010000

// protobuf is implemented by the arguments and results of package protobufrpc, in addition to [thrift.Struct].
type protobuf interface {
	AppendProtobuf(b []byte) ([]byte, error)
	// ReadProtobuf decodes the message b. If maxMemory is 0, the default limit of a thrift.Reader applies.
	ReadProtobuf(b []byte, maxMemory int) error
}

// errNoProtobuf reports a Protobuf message where a Thrift struct was expected.
var errNoProtobuf = errors.New("got a Protobuf message; the function expects a Thrift message")

// appendProtobufHead appends the part before the Protobuf message.
func appendProtobufHead(b []byte, name string, t thrift.MessageType, seq int32) []byte {
	b = binary.BigEndian.AppendUint32(b, protobufVersion|uint32(t))
	b = thrift.AppendString(b, name)
	return binary.BigEndian.AppendUint32(b, uint32(seq))
}

// readProtobufHead is like thrift.ReadMessage, for the output of appendProtobufHead. The version has already been
// checked.
func readProtobufHead(b []byte, m *thrift.Message) (next int) {
	const nameAt = 4
	end := thrift.SkipString(b, nameAt)
	if end < 0 {
		return end
	}
	if len(b)-end < 4 {
		return thrift.CodeShort
	}
	t := binary.BigEndian.Uint32(b) & 0xffff
	if t < uint32(thrift.Call) || t > uint32(thrift.Oneway) {
		return thrift.CodeMessage
	}
	*m = thrift.Message{Name: b[nameAt+4 : end : end], Type: thrift.MessageType(t), Seq: int32(binary.BigEndian.Uint32(b[end:]))}
	return end + 4
}

// appendProtobuf appends arguments, a result, or an exception.
func appendProtobuf(b []byte, v thrift.Struct) ([]byte, error) {
	switch v := v.(type) {
	case protobuf:
		return v.AppendProtobuf(b)
	case *thrift.ApplicationException:
		b = binary.AppendUvarint(append(b, 1<<3), uint64(v.Kind))
		text := strings.ToValidUTF8(v.Message, "\uFFFD") // decoders reject invalid UTF-8
		return append(binary.AppendUvarint(append(b, 2<<3|2), uint64(len(text))), text...), nil
	case noFields:
		return b, nil
	}
	return b, errNoProtobuf
}

// readProtobuf reads arguments or a result.
func readProtobuf(r *thrift.Reader, b []byte, to thrift.Struct) error {
	if p, ok := to.(protobuf); ok {
		return p.ReadProtobuf(b, r.MaxMemory)
	}
	return errNoProtobuf
}

// errProtobufException reports an exception that cannot be decoded.
var errProtobufException = errors.New("the exception is not a valid Protobuf message")

// readProtobufException decodes an exception. Unknown fields are skipped.
func readProtobufException(b []byte, e *thrift.ApplicationException) error {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return errProtobufException
		}
		b = b[n:]
		size := uint64(0)
		switch wire := tag & 7; wire {
		case 0, 2: // a varint; a length-prefixed value
			value, n := binary.Uvarint(b)
			if n <= 0 {
				return errProtobufException
			}
			if b = b[n:]; wire == 2 {
				size = value
			} else if tag>>3 == 1 {
				e.Kind = int32(value)
			}
		case 1:
			size = 8
		case 5:
			size = 4
		default:
			return errProtobufException
		}
		if size > uint64(len(b)) {
			return errProtobufException
		}
		if tag == 2<<3|2 {
			e.Message = string(b[:size])
		}
		b = b[size:]
	}
	return nil
}
