package frame

import (
	"encoding/binary"

	"github.com/slipstream-go/slipstream/thrift"
)

// DefaultMax is how large a message may be, in bytes, unless a Scanner says otherwise.
const DefaultMax = 16 << 20

// A Scanner finds the ends of the messages of one connection. It is used by one goroutine at a time.
type Scanner struct {
	// Max is how many bytes a message may have, with what is around it. If zero, it is DefaultMax.
	Max int

	format Format
	walk   *walker // through the message that is incomplete, if it has no length
}

// A Message is a complete message.
type Message struct {
	Format
	Info    Info   // what its header says; empty without a header
	Payload []byte // the message of the protocol: name, type, sequence ID and struct
}

// Size returns the length of the message at the beginning of b, with what is around it, if all of
// it is there. Otherwise whole is false, and n is a lower bound of its length that is greater than
// len(b). After that, Size must be called with the same bytes and more. Errors are of type *Error.
func (s *Scanner) Size(b []byte) (n int, whole bool, err error) {
	if s.walk != nil {
		return s.continueWalk(b)
	}
	f, ok, err := sniff(b)
	if err != nil {
		return 0, false, err
	}
	if !ok {
		return len(b) + 1, false, nil
	}
	s.format = f
	if f.Transport == Buffered {
		return s.buffered(b)
	}
	if n, err = s.bounded(4 + int64(binary.BigEndian.Uint32(b))); err != nil {
		return 0, false, err
	}
	least := 4 + leastMessage
	if f.Transport == Header {
		least = leastPlain
	}
	if n < least {
		return 0, false, fail(Malformed, "it has %d bytes; expected at least %d with the transport %v", n, least, f.Transport)
	}
	return n, n <= len(b), nil
}

// HasLength reports whether the last message seen by Size contains its length.
func (s *Scanner) HasLength() bool { return s.format.Transport != Buffered }

// leastMessage is the size of the smallest message: one of the Compact protocol without arguments and
// without a name.
const leastMessage = 5

// bounded returns n if a message may be as large.
func (s *Scanner) bounded(n int64) (int, error) {
	most := s.Max
	if most == 0 {
		most = DefaultMax
	}
	if n > int64(most) {
		return 0, fail(TooLarge, "it has %d bytes or more; the limit is %d", n, most)
	}
	return int(n), nil
}

// buffered is Size of a message without a length. Most are there as a whole, and need no walker.
func (s *Scanner) buffered(b []byte) (n int, whole bool, err error) {
	var m thrift.Message
	n = s.readMessage(b, &m)
	if n < 0 {
		return s.shortMessage(b, n)
	}
	end := 0
	if s.format.Compact {
		end = thrift.SkipCompact(b, n, thrift.CompactTypeStruct, thrift.MaxDepth)
	} else {
		end = thrift.Skip(b, n, thrift.TypeStruct, thrift.MaxDepth)
	}
	switch {
	case end >= 0:
		n, err = s.bounded(int64(end))
		return n, err == nil, err
	case end == thrift.CodeShort, end == thrift.CodeLength: // perhaps the rest has not arrived
		s.walk = newWalker(s.format.Compact, n)
		return s.continueWalk(b)
	}
	return 0, false, fail(Malformed, "%v", thrift.Err(end, n))
}

func (s *Scanner) readMessage(b []byte, m *thrift.Message) int {
	if s.format.Compact {
		return thrift.ReadCompactMessage(b, 0, m)
	}
	return thrift.ReadMessage(b, 0, m)
}

// shortMessage is Size of a message whose header cannot be read.
func (s *Scanner) shortMessage(b []byte, code int) (n int, whole bool, err error) {
	if code != thrift.CodeShort && code != thrift.CodeLength {
		return 0, false, fail(Malformed, "%v", thrift.Err(code, 0))
	}
	need := int64(len(b)) + 1
	switch {
	case s.format.Compact: // the length of the name is the last number
	case b[0] < 0x80:
		need = max(need, 9+length(b))
	case len(b) >= 8:
		need = max(need, 12+length(b[4:]))
	}
	if need > mostName {
		return 0, false, fail(Malformed, "the name of the function has more than %d bytes", mostName)
	}
	n, err = s.bounded(need)
	return n, false, err
}

// mostName is how many bytes the header of a message without a length may have.
const mostName = 64 << 10

// length returns the number at the beginning of b. A negative length is too large a number.
func length(b []byte) int64 { return int64(binary.BigEndian.Uint32(b)) }

// continueWalk is Size of a message whose walk has begun.
func (s *Scanner) continueWalk(b []byte) (n int, whole bool, err error) {
	need, whole, code := s.walk.advance(b)
	if code < 0 {
		return 0, false, fail(Malformed, "%v", thrift.Err(code, s.walk.off))
	}
	if n, err = s.bounded(need); err != nil {
		return 0, false, err
	}
	if whole {
		s.walk = nil
	}
	return n, whole, nil
}

// Open opens the message b, whose length is known by [Scanner.Size]. It refers to b.
func Open(b []byte) (m Message, err error) {
	f, ok, err := sniff(b)
	switch {
	case err != nil:
		return m, err
	case !ok:
		return m, fail(Malformed, "it has %d bytes", len(b))
	}
	m.Format, m.Payload = f, b
	switch f.Transport {
	case Framed:
		m.Payload = b[4:]
	case Header:
		return openHeader(b)
	}
	return m, nil
}

// openHeader is Open of a message with a header.
func openHeader(b []byte) (m Message, err error) {
	info, compact, at, err := readInfo(b)
	if err != nil {
		return m, err
	}
	m = Message{Format{Transport: Header, Compact: compact}, info, b[at:]}
	is, ok := false, false
	if len(m.Payload) >= leastMessage {
		if is, ok = begins(m.Payload); !ok && len(m.Payload) >= 4+leastMessage {
			if is, ok = begins(m.Payload[4:]); !ok {
				ok = isProtobuf(m.Payload[4:])
				m.Protobuf = ok
			}
			if ok {
				m.Transport = HeaderFramed
				if n := int(length(m.Payload)); n != len(m.Payload)-4 {
					return m, fail(Malformed, "its inner frame has %d bytes, and %d follow its length", n, len(m.Payload)-4)
				}
				m.Payload = m.Payload[4:]
			}
		}
	}
	if !ok {
		return m, fail(Malformed, "the header is followed by neither the Binary nor the Compact protocol, nor by Protobuf in a frame")
	}
	if is != compact || b[headSize] == idProtobuf && !m.Protobuf {
		return m, fail(Malformed, "its header names another protocol than that of the message: expected %v", m.Format)
	}
	return m, nil
}
