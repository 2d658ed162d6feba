package frame

import "encoding/binary"

// Transport says what is around a message.
type Transport uint8

// Transports.
const (
	Buffered     Transport = iota // nothing
	Framed                        // its length
	Header                        // a TTHeader
	HeaderFramed                  // a TTHeader, and the length of the message
)

// String returns the name of the transport.
func (t Transport) String() string {
	return [...]string{"Buffered", "Framed", "TTHeader", "TTHeader-Framed"}[t]
}

// HasHeader reports whether messages have a header.
func (t Transport) HasHeader() bool { return t >= Header }

// Format is a transport and a protocol.
type Format struct {
	Transport
	// Compact selects the Compact protocol, in place of the Binary protocol.
	Compact bool
	// Protobuf says that a message of Protobuf follows the head of the Binary protocol, whose version is another one.
	Protobuf bool
}

// String returns the names of the transport and the protocol.
func (f Format) String() string {
	switch {
	case f.Compact:
		return f.Transport.String() + ", Compact"
	case f.Protobuf:
		return f.Transport.String() + ", Protobuf"
	}
	return f.Transport.String() + ", Binary"
}

// First bytes of messages.
const (
	strictBinary  = 0x8001 // the first 16 bits of a message in the Binary protocol
	protobuf      = 0x9001 // the same of a message of Protobuf, which is always in a frame
	compactID     = 0x82   // the first byte of a message in the Compact protocol
	magicHeader   = 0x1000 // after the length
	magicTHeader  = 0x0FFF // after the length
	magicMesh     = 0xFFAF
	headerToMagic = 4 // bytes before the magic number
)

// sniffed is how many bytes tell the format at most.
const sniffed = 6

// begins reports whether b, of at least two bytes, begins with a message of a protocol.
func begins(b []byte) (compact, ok bool) {
	switch {
	case binary.BigEndian.Uint16(b) == strictBinary:
		return false, true
	case b[0] == compactID && b[1]&31 == 1:
		return true, true
	}
	return false, false
}

// isProtobuf reports whether b, of at least two bytes, begins with a message of Protobuf.
func isProtobuf(b []byte) bool { return binary.BigEndian.Uint16(b) == protobuf }

// sniff returns the format that the first bytes tell. If there are too few, ok is false.
func sniff(b []byte) (f Format, ok bool, err error) {
	if len(b) < 2 {
		return f, false, nil
	}
	if compact, ok := begins(b); ok {
		return Format{Transport: Buffered, Compact: compact}, true, nil
	}
	first := binary.BigEndian.Uint16(b)
	switch {
	case first == magicMesh:
		return f, true, fail(MeshHeader, expected)
	case b[0] >= 0x80:
		return f, true, fail(Unknown, "they begin with % X; %s", b[:min(len(b), 8)], expected)
	case first == 0x1603:
		return f, true, fail(TLS, expected)
	case first == 0x7801 || first == 0x785E || first == 0x789C || first == 0x78DA:
		return f, true, fail(Zlib, expected)
	case len(b) < sniffed:
		return f, false, nil
	case speaksHTTP(b):
		return f, true, fail(HTTP, "they begin with %q; %s", b[:min(len(b), 16)], expected)
	}
	switch magic := binary.BigEndian.Uint16(b[headerToMagic:]); magic {
	case magicHeader:
		return Format{Transport: Header}, true, nil
	case magicTHeader:
		return f, true, fail(THeader, expected)
	}
	if compact, ok := begins(b[headerToMagic:]); ok {
		return Format{Transport: Framed, Compact: compact}, true, nil
	}
	if isProtobuf(b[headerToMagic:]) {
		return Format{Transport: Framed, Protobuf: true}, true, nil
	}
	// The old form of the Binary protocol begins with the length of the name of the function.
	switch c := b[headerToMagic]; {
	case c == 0:
		return Format{Transport: Framed}, true, nil
	case c == '_', c|0x20 >= 'a' && c|0x20 <= 'z':
		return Format{Transport: Buffered}, true, nil
	}
	return f, true, fail(Unknown, "they begin with % X; %s", b[:sniffed], expected)
}

// speaksHTTP reports whether b, of at least sniffed bytes, begins a request of HTTP.
func speaksHTTP(b []byte) bool {
	switch string(b[:4]) {
	case "GET ", "POST", "PUT ", "HEAD", "PRI ", "OPTI", "DELE", "PATC", "CONN", "TRAC":
		return true
	}
	return false
}
