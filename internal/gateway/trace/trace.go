// Package trace names requests: the trace context that they carry and that
// continues in their answers, their request ids, and the description of an
// answered request.
//
// Source: W3C Trace Context, https://www.w3.org/TR/trace-context/ (level 1,
// version 00 of the field traceparent).
//
// Ids are drawn from the generator of the Go runtime (ChaCha8, seeded from the
// system at the start). They are practically unique: among 2^48 trace ids two are
// equal with a probability of 2^-33. They are not secrets and protect nothing: a
// client may choose both of them, and they are in logs.
package trace

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
)

// FlagSampled is the only flag of version 00: the spans of this trace may be
// recorded. The others are reserved, and sent as zero.
const FlagSampled byte = 1

// length of a traceparent of version 00: "00-", 32 digits, "-", 16 digits, "-", 2 digits.
const length = 55

// Context says which span of which trace a request belongs to. The zero value is
// no context: it is not valid.
type Context struct {
	TraceID [16]byte
	SpanID  [8]byte
	Flags   byte
}

// Parse parses a traceparent field value, without white space around it. It returns
// false if there is none: the field is absent, malformed, or appeared more than once
// (joined by commas, as lists are); then the trace begins here. A value of a version
// above 00 is parsed as far as version 00 defines it, as section 3.2.4 requires.
// Flags that version 00 does not define are dropped.
func Parse(traceparent string) (Context, bool) {
	s := traceparent
	if len(s) < length || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return Context{}, false
	}
	var version, flags [1]byte
	var c Context
	if !unhex(version[:], s[:2]) || !unhex(c.TraceID[:], s[3:35]) || !unhex(c.SpanID[:], s[36:52]) || !unhex(flags[:], s[53:55]) {
		return Context{}, false
	}
	switch {
	case version[0] == 0xff:
		return Context{}, false
	case len(s) == length:
	case version[0] == 0 || s[length] != '-':
		return Context{}, false
	}
	if !c.Valid() {
		return Context{}, false
	}
	c.Flags = flags[0] & FlagSampled
	return c, true
}

// unhex fills dst with the bytes that the digits spell. Upper-case digits are
// not allowed here (section 3.2.1), so encoding/hex would accept too much.
func unhex(dst []byte, text string) bool {
	var seen byte
	for i := range dst {
		high, low := digits[text[2*i]], digits[text[2*i+1]]
		dst[i] = high<<4 | low
		seen |= high | low
	}
	return seen <= 15
}

// digits has the value of each lower-case hexadecimal digit, and 0xff for all else.
var digits = func() (values [256]byte) {
	for i := range values {
		values[i] = 0xff
	}
	for i, c := range "0123456789abcdef" {
		values[c] = byte(i)
	}
	return values
}()

// Valid reports whether neither id is all zero.
func (c Context) Valid() bool { return c.TraceID != [16]byte{} && c.SpanID != [8]byte{} }

// Sampled reports whether the spans of this trace may be recorded.
func (c Context) Sampled() bool { return c.Flags&FlagSampled != 0 }

// WithSampled returns the context with the given flag.
func (c Context) WithSampled(sampled bool) Context {
	c.Flags &^= FlagSampled
	if sampled {
		c.Flags |= FlagSampled
	}
	return c
}

// Child returns the context of a new span: of the same trace and sampled as c is,
// or the first one of a new trace, not sampled, if c is not valid.
func (c Context) Child() Context {
	if !c.Valid() {
		c = Context{}
		binary.NativeEndian.PutUint64(c.TraceID[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(c.TraceID[8:], notZero())
	}
	binary.NativeEndian.PutUint64(c.SpanID[:], notZero())
	return c
}

func notZero() uint64 {
	for {
		if n := rand.Uint64(); n != 0 {
			return n
		}
	}
}

// TraceparentLength is the length of a field value of version 00.
const TraceparentLength = 55

// AppendTraceparent appends the field value (55 bytes, version 00) to b. A
// context that is not valid has none, and b is returned as it is.
func (c Context) AppendTraceparent(b []byte) []byte {
	if !c.Valid() {
		return b
	}
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, c.TraceID[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, c.SpanID[:])
	return append(b, '-', '0', '0'+c.Flags&FlagSampled)
}

// maxRequestID bounds client text that is repeated in every log line.
const maxRequestID = 64

// RequestID returns given, if that is 1 to 64 characters of A-Z, a-z, 0-9, dot,
// underscore and hyphen: which is safe in fields and logs. Otherwise it returns a
// new one of 22 characters, 128 bits. The new one is the only allocation; a given
// one shares its memory.
func RequestID(given string) string {
	if AcceptableRequestID(given) {
		return given
	}
	var text [RequestIDLength]byte
	WriteRequestID(&text)
	return string(text[:])
}

// RequestIDLength is the length of a new request id.
const RequestIDLength = 22

// WriteRequestID writes a new request id to text.
func WriteRequestID(text *[RequestIDLength]byte) {
	// Eleven characters of 6 bits from each number, of which the last has 4: by hand,
	// which takes a third of the time of package base64.
	a, b := rand.Uint64(), rand.Uint64()
	const half = RequestIDLength / 2
	for i := range half {
		text[i], text[half+i] = idDigits[a%64], idDigits[b%64]
		a /= 64
		b /= 64
	}
}

const idDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// AcceptableRequestID reports whether [RequestID] would return the id unchanged.
func AcceptableRequestID(id string) bool {
	if id == "" || len(id) > maxRequestID {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
