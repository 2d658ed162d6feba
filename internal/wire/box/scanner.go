package box

import "github.com/slipstream-go/slipstream/tarantool/iproto"

// MessageKind is the kind of a message.
type MessageKind uint8

// The kinds of messages.
const (
	Reply MessageKind = iota // the last message for a request: its result or error
	Push                     // a message for a request, sent before its reply
	Event                    // the value of a watched key; it is not an answer to a request
	More                     // the message is incomplete
)

// String returns the name of the kind.
func (k MessageKind) String() string {
	switch k {
	case Reply:
		return "reply"
	case Push:
		return "push"
	case Event:
		return "event"
	case More:
		return "more"
	}
	return "unknown kind of message"
}

// Message describes the message of a server at the start of a buffer.
type Message struct {
	// Len is the length of the message. For [More], it is a lower bound, which is greater than the
	// number of bytes in the buffer.
	Len  int
	Kind MessageKind
	// Code is [CodeOK], [CodeChunk], [CodeEvent], or [CodeError] with an
	// [iproto.ErrorCode].
	Code uint32
	// Sync is the sync of the request, or 0 if the server sends none.
	Sync uint64
	// Schema is the version of the server's schema, or 0 if the server sends none.
	Schema uint64
	// BodyAt is the offset of the body, which extends to the end of the message and may be empty.
	BodyAt int
}

// DefaultMaxMessage is the default for [Scanner.MaxMessage].
const DefaultMaxMessage = 256 << 20

// Scanner finds the messages of a server in a growing buffer. It reads their lengths and headers.
// [ParseBody] reads their bodies. A corrupt body does not affect the messages after it.
//
// The zero value is ready for use. A Scanner has no state, because the first bytes of a message
// determine where the message ends.
type Scanner struct {
	// MaxMessage is the maximum length of a message. If it is 0 or less, [DefaultMaxMessage] is
	// used.
	MaxMessage int
}

// The layout of a header in the form in which servers write it, with the length before it: the
// type, the sync and the version of the schema have fixed offsets.
const (
	replyHead = 28

	replyCodeAt   = 8
	replySyncAt   = 14
	replySchemaAt = 24
)

// Scan scans b, which starts with a message. After [More], the caller calls it again with the same
// bytes followed by more. The error is a [*ProtocolError].
func (s *Scanner) Scan(b []byte) (m Message, err error) {
	// This is the usual case. The fields are set one by one, because a copy of a new Message would
	// wait until all earlier writes have reached the cache, which costs 60 ns per reply.
	if isReplyHead(b) {
		n, code := uint64(be32(b[1:]))+5, be32(b[replyCodeAt:])
		if n <= uint64(len(b)) && n >= replyHead && n <= uint64(s.maxMessage()) {
			kind, ok := Reply, true
			if code != uint32(CodeOK) {
				kind, ok = replyKind(code)
			}
			if ok {
				m.Len, m.Kind, m.Code = int(n), kind, code
				m.Sync, m.Schema = be64(b[replySyncAt:]), uint64(be32(b[replySchemaAt:]))
				m.BodyAt = replyHead
				return
			}
		}
	}
	return s.scan(b)
}

// isReplyHead reports whether b starts with a header in the form in which servers write it.
func isReplyHead(b []byte) bool {
	return len(b) >= replyHead && b[0] == uint32b && b[5] == fixMap|3 && b[6] == byte(KeyCode) && b[7] == uint32b &&
		b[12] == byte(KeySync) && b[13] == uint64b && b[22] == byte(KeySchemaVersion) && b[23] == uint32b
}

// OKBody returns the body of a complete reply that is not an error, if its header has the form in
// which servers write it. Otherwise, ok is false, and the caller must call [Scanner.Scan].
func OKBody(reply []byte) (body []byte, ok bool) {
	if !isReplyHead(reply) || be32(reply[replyCodeAt:]) != uint32(CodeOK) || uint64(be32(reply[1:]))+5 != uint64(len(reply)) {
		return nil, false
	}
	return reply[replyHead:], true
}

func (s *Scanner) maxMessage() int {
	if s.MaxMessage <= 0 {
		return DefaultMaxMessage
	}
	return s.MaxMessage
}

// replyKind returns the kind of a message of a server.
func replyKind(code uint32) (MessageKind, bool) {
	switch {
	case code == uint32(CodeOK), code >= uint32(CodeError) && code < 2*uint32(CodeError):
		return Reply, true
	case code == uint32(CodeChunk):
		return Push, true
	case code == uint32(CodeEvent):
		return Event, true
	}
	return More, false
}

// scan is like Scan, but handles every valid encoding.
func (s *Scanner) scan(b []byte) (Message, error) {
	begin, end, err := cut(b, s.maxMessage())
	if err != nil {
		return Message{Kind: More}, err
	}
	if begin == 0 || end > len(b) {
		return Message{Kind: More, Len: end}, nil
	}
	h, err := readHeader(b, begin, end)
	if err != nil {
		return Message{Kind: More}, err
	}
	kind, ok := replyKind(h.code)
	if !ok {
		return Message{Kind: More}, &ProtocolError{Offset: begin, Wrong: "message of type " + utoa(uint64(h.code)), Expected: "a reply, a push or an event"}
	}
	return Message{Len: end, Kind: kind, Code: h.code, Sync: h.sync, Schema: h.schema, BodyAt: h.end}, nil
}

// cut reads the length at the start of a message, and returns where its header starts and where the
// message ends. If the length is incomplete, begin is 0 and end is a lower bound.
func cut(b []byte, most int) (begin, end int, err error) {
	if len(b) == 0 {
		// The minimum is the length plus the shortest header, a map of one pair.
		return 0, 1 + 3, nil
	}
	width := 0
	switch c := b[0]; {
	case c < fixMap:
	case c >= uint8b && c <= uint64b:
		width = 1 << (c - uint8b)
	default:
		return 0, 0, &ProtocolError{Wrong: "byte " + quoted(b[:1]), Expected: "the length of a message"}
	}
	begin = 1 + width
	if len(b) < begin {
		return 0, begin + 3, nil
	}
	d := iproto.NewDecoder(b[:begin])
	n := d.Uint()
	switch {
	case n < 3:
		return 0, 0, &ProtocolError{Wrong: "message of " + utoa(n) + " bytes", Expected: "a header"}
	case n > uint64(most) || uint64(begin)+n > uint64(most):
		return 0, 0, &ProtocolError{Wrong: "message of " + utoa(n) + " bytes", Expected: "at most " + itoa(most) + " with its length"}
	}
	return begin, begin + int(n), nil
}

// header is the header of a message in either direction.
type header struct {
	code         uint32
	sync, stream uint64
	schema       uint64
	end          int // where the body starts
}

// readHeader reads the header of the message b[begin:end]. It skips unknown keys, and of duplicate
// keys the last one counts.
func readHeader(b []byte, begin, end int) (h header, err error) {
	d := iproto.NewDecoder(b[begin:end])
	hasCode := false
	for range d.Map() {
		switch key(&d) {
		case uint64(KeyCode):
			h.code, hasCode = d.Uint32(), true
		case uint64(KeySync):
			h.sync = d.Uint()
		case uint64(KeyStreamID):
			h.stream = d.Uint()
		case uint64(KeySchemaVersion):
			h.schema = d.Uint()
		default:
			d.Skip()
		}
	}
	if e, ok := d.Err().(*iproto.DecodeError); ok {
		e.Offset += begin // now relative to the first byte of the message
		return h, &ProtocolError{Offset: begin + d.Offset(), Wrong: "broken header", Expected: "a map within the message", Err: e}
	}
	if !hasCode {
		return h, &ProtocolError{Offset: begin, Wrong: "header without a type", Expected: "one"}
	}
	h.end = begin + d.Offset()
	return h, nil
}

// Request describes the request at the start of a buffer.
type Request struct {
	// Len is the length of the request. For [More], it is a lower bound, which is greater than the
	// number of bytes in the buffer.
	Len  int
	More bool
	Code Code
	Sync uint64
	// Stream is the stream of the request, or 0 if it has none.
	Stream uint64
	// Schema is the version of the schema that the client relies on, or 0.
	Schema uint64
	// BodyAt is the offset of the body, which extends to the end of the request and may be empty.
	BodyAt int
}

// ScanRequest is the counterpart of [Scanner.Scan] for servers: it finds the request of a client at
// the start of b. The maximum length of a request is most bytes, or [DefaultMaxMessage] if most is
// 0 or less. The error is a [*ProtocolError].
func ScanRequest(b []byte, most int) (Request, error) {
	if most <= 0 {
		most = DefaultMaxMessage
	}
	begin, end, err := cut(b, most)
	if err != nil {
		return Request{More: true}, err
	}
	if begin == 0 || end > len(b) {
		return Request{Len: end, More: true}, nil
	}
	h, err := readHeader(b, begin, end)
	if err != nil {
		return Request{More: true}, err
	}
	return Request{Len: end, Code: Code(h.code), Sync: h.sync, Stream: h.stream, Schema: h.schema, BodyAt: h.end}, nil
}
