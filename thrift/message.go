package thrift

import (
	"encoding/binary"
	"math"
)

// MessageType is the type of a message.
type MessageType uint8

// Types of messages.
const (
	Call      MessageType = 1
	Reply     MessageType = 2
	Exception MessageType = 3 // The struct of the message is an ApplicationException.
	Oneway    MessageType = 4
)

// String returns the name of the type.
func (t MessageType) String() string {
	switch t {
	case Call:
		return "call"
	case Reply:
		return "reply"
	case Exception:
		return "exception"
	case Oneway:
		return "oneway"
	}
	return "unknown"
}

// Message is the header of a message; its struct follows.
type Message struct {
	// Name is the name of the function. After a message has been read, it is a part of the input.
	Name []byte
	Type MessageType
	// Seq is the sequence ID. A reply has the sequence ID of its call.
	Seq int32
}

// version is in the upper 16 bits of the first word of a message in the Binary protocol.
const version = 0x80010000

// compactID and compactVersion are in the first two bytes of a message in the Compact protocol.
const (
	compactID      = 0x82
	compactVersion = 1
)

// SizeMessage returns the size of the header that AppendMessage appends.
func SizeMessage[T ~string | ~[]byte](name T) int { return 12 + len(name) }

// AppendMessage appends the header of a message in the Binary protocol, in the strict form.
func AppendMessage[T ~string | ~[]byte](b []byte, name T, t MessageType, seq int32) []byte {
	b = binary.BigEndian.AppendUint32(b, version|uint32(t))
	b = AppendString(b, name)
	return binary.BigEndian.AppendUint32(b, uint32(seq))
}

// ReadMessage reads the header of a message in the Binary protocol. It returns the offset of the
// struct. Messages in the old form, without a version, are accepted too.
func ReadMessage(b []byte, off int, m *Message) int {
	if len(b)-off < 4 {
		return CodeShort
	}
	head := binary.BigEndian.Uint32(b[off:])
	strict := head >= 1<<31
	t := byte(head)
	if strict {
		if head&0xffff0000 != version {
			return CodeVersion
		}
		off += 4
	}
	end := SkipString(b, off)
	if end < 0 {
		return end
	}
	name := b[off+4 : end : end]
	off = end
	if !strict {
		if off >= len(b) {
			return CodeShort
		}
		t = b[off]
		off++
	}
	return endMessage(b, off, m, Message{Name: name, Type: MessageType(t)})
}

func endMessage(b []byte, off int, to *Message, m Message) int {
	if len(b)-off < 4 {
		return CodeShort
	}
	if m.Type < Call || m.Type > Oneway {
		return CodeMessage
	}
	m.Seq = int32(binary.BigEndian.Uint32(b[off:]))
	*to = m
	return off + 4
}

// AppendCompactMessage is AppendMessage for the Compact protocol.
func AppendCompactMessage[T ~string | ~[]byte](b []byte, name T, t MessageType, seq int32) []byte {
	b = append(b, compactID, byte(t)<<5|compactVersion)
	return AppendCompactString(binary.AppendUvarint(b, uint64(uint32(seq))), name)
}

// ReadCompactMessage is ReadMessage for the Compact protocol.
func ReadCompactMessage(b []byte, off int, m *Message) int {
	if len(b)-off < 2 {
		return CodeShort
	}
	if b[off] != compactID || b[off+1]&31 != compactVersion {
		return CodeVersion
	}
	t := MessageType(b[off+1] >> 5)
	if t < Call || t > Oneway {
		return CodeMessage
	}
	seq, off := uvarint(b, off+2)
	if off < 0 {
		return off
	}
	if seq > math.MaxUint32 {
		return CodeNumber
	}
	n, off := length(b, off, 1)
	if off < 0 {
		return off
	}
	*m = Message{Name: b[off : off+n : off+n], Type: t, Seq: int32(uint32(seq))}
	return off + n
}

// Err returns nil if next is an offset, and the error for it if it is a code. next is the result of
// a function without a Reader, such as ReadMessage or Skip, and off the offset that was passed to
// the function.
func Err(next, off int) error {
	if next >= 0 {
		return nil
	}
	return &Error{Code: next, Offset: off}
}
