package ladder

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"slices"
)

// A Hasher builds the answer to a request from the pieces of its body as they arrive. It keeps
// neither the body nor the items in memory, only the answer so far and the strings of one item.
// Answers are identical to those of version 1.0: it reads JSON as encoding/json does. The zero
// value is ready to use. A Hasher must not be copied, and is not safe for concurrent use.
//
// Call Reset, then Write with each piece, then Answer.
type Hasher struct {
	answer []byte // so far
	offset int64  // of the piece that is being read
	state  state
	depth  int // number of open arrays and objects: 1 in the array of items, 2 in an item
	failed bool

	// objects has a bit for each depth that says whether it is an object, not an array.
	objects [maxDepth/64 + 1]uint64

	// The current item, if wholeItem does not read it in one step.
	name   []byte // of the member
	member member // the same, at depth 2
	a, b   []byte
	text   text
	rest   string // of a literal
	spare  []byte // for strings that are not UTF-8

	block [256]byte // both strings of an item, if they fit
	sum   [sha256.Size]byte
	long  hash.Hash // for items that do not fit; nil until the first of them
}

// maxDepth is the maximum nesting depth of arrays and objects, the same as in encoding/json.
const maxDepth = 10000

// kept is the maximum memory, in bytes, that a buffer of a Hasher keeps from one request to the
// next.
const kept = 256 << 10

// A BodyError reports where a body is wrong.
type BodyError struct {
	Offset int64 // of the wrong byte; the length of the body if its end is missing
}

// Error implements error.
func (e *BodyError) Error() string {
	return fmt.Sprintf("foo: the body is wrong at byte %d; expected an array of objects whose members srt_a and str_b are strings", e.Offset)
}

// A state says what the next byte of a body may be.
type state uint8

const (
	stateValue      state = iota // a value
	stateFirstValue              // a value, or the end of an array
	stateName                    // the name of a member
	stateFirstName               // a name, or the end of an object
	stateColon                   // what follows a name
	stateAfter                   // what follows a value: a comma, or the end of the array or object
	stateEnd                     // nothing but white space
	stateText                    // in a string, see text.go
	stateEscape                  // after a backslash in a string
	stateHex                     // in the four digits of \u
	stateLiteral                 // in true, false or null
	stateMinus                   // after the sign of a number
	stateZero                    // after a first 0
	stateDigits                  // in the other digits before the point
	statePoint                   // after the point
	stateFraction                // in the digits after it
	stateE                       // after e or E
	stateSign                    // after the sign of the exponent
	stateExponent                // in its digits
)

// A member identifies a member of an item.
type member uint8

const (
	memberOther member = iota // its value is checked and dropped
	memberA
	memberB
)

const (
	prefix  = `{"hashes":[`
	nothing = `{"hashes":null}`
	// entry is the length of a hash in the answer: two quotes, the text and a comma.
	entry = textSize + 3
)

// Reset begins a request.
func (h *Hasher) Reset() {
	h.answer, h.a, h.b, h.spare = shrink(h.answer), shrink(h.a), shrink(h.b), shrink(h.spare)
	h.answer = append(h.answer, prefix...)
	h.offset, h.state, h.depth, h.failed = 0, stateValue, 0, false
	h.text = text{}
}

// shrink returns an empty slice that reuses the memory of b unless it is large.
func shrink(b []byte) []byte {
	if cap(b) > kept {
		return nil
	}
	return b[:0]
}

// Answer returns the answer, which is valid until Reset. It may be called once. If the body was wrong or is incomplete, it
// returns a [*BodyError].
func (h *Hasher) Answer() ([]byte, error) {
	if h.failed || h.state != stateEnd {
		return nil, &BodyError{h.offset}
	}
	if len(h.answer) == len(prefix) {
		return append(h.answer[:0], nothing...), nil
	}
	h.answer[len(h.answer)-1] = ']' // instead of the last comma
	h.answer = append(h.answer, '}')
	return h.answer, nil
}

// Write reads the next piece of the body, and does not retain it. If the body is wrong, it returns
// a [*BodyError], now and for all further pieces.
func (h *Hasher) Write(piece []byte) (int, error) {
	i := 0
	for i < len(piece) && !h.failed {
		n := h.step(piece[i:])
		i += n
		if !h.failed {
			h.offset += int64(n)
		}
	}
	if h.failed {
		return i, &BodyError{h.offset}
	}
	return i, nil
}

// step reads at least one byte of b and returns how many. If one is wrong, it sets failed.
func (h *Hasher) step(b []byte) int {
	switch h.state {
	case stateText:
		return h.readText(b)
	case stateValue, stateFirstValue:
		if h.depth == 1 && b[0] == '{' {
			if n := h.wholeItems(b); n > 0 {
				return n
			}
		}
	}
	c := b[0]
	if h.state <= stateEnd && isSpace(c) {
		return 1
	}
	ok := true
	switch h.state {
	case stateValue, stateFirstValue:
		ok = h.begin(c)
	case stateName, stateFirstName:
		ok = h.beginName(c)
	case stateColon:
		h.state = stateValue
		ok = c == ':'
	case stateAfter:
		ok = h.after(c)
	case stateEnd:
		ok = false
	case stateEscape:
		ok = h.escape(c)
	case stateHex:
		ok = h.hexDigit(c)
	case stateLiteral:
		ok = h.literal(c)
	default:
		return h.number(c)
	}
	h.failed = !ok
	return 1
}

func isSpace(c byte) bool { return c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t') }

// begin reads the first byte of a value, or the end of an empty array.
func (h *Hasher) begin(c byte) bool {
	if c == 'n' { // null is valid for every type: no items, an item with empty strings, or an unchanged string
		h.state, h.rest = stateLiteral, "ull"
		return true
	}
	if c == ']' && h.state == stateFirstValue {
		return h.close()
	}
	switch {
	case h.depth == 0 && c != '[', h.depth == 1 && c != '{', h.depth == 2 && h.member != memberOther && c != '"':
		return false // possibly valid JSON, but of another type
	}
	switch c {
	case '[', '{':
		return h.open(c == '{')
	case '"':
		h.beginText(false)
	case 't':
		h.state, h.rest = stateLiteral, "rue"
	case 'f':
		h.state, h.rest = stateLiteral, "alse"
	case '-':
		h.state = stateMinus
	case '0':
		h.state = stateZero
	default:
		h.state = stateDigits
		return '1' <= c && c <= '9'
	}
	return true
}

// open begins an array or object.
func (h *Hasher) open(object bool) bool {
	h.depth++
	if h.depth > maxDepth {
		return false
	}
	bit := uint64(1) << (h.depth % 64)
	if object {
		h.objects[h.depth/64] |= bit
		h.state = stateFirstName
	} else {
		h.objects[h.depth/64] &^= bit
		h.state = stateFirstValue
	}
	if h.depth == 2 {
		h.a, h.b = h.a[:0], h.b[:0] // otherwise an item would contain strings of the previous one
	}
	return true
}

// inObject reports whether the innermost open value is an object.
func (h *Hasher) inObject() bool { return h.objects[h.depth/64]>>(h.depth%64)&1 != 0 }

// close ends the innermost array or object.
func (h *Hasher) close() bool {
	if h.depth == 2 {
		h.emit(h.a, h.b)
	}
	h.depth--
	h.endValue()
	return true
}

// endValue is called after each value.
func (h *Hasher) endValue() {
	h.state = stateAfter
	if h.depth == 0 {
		h.state = stateEnd
	}
}

// after reads what follows a value in an array or object.
func (h *Hasher) after(c byte) bool {
	object := h.inObject()
	switch {
	case c == ',' && object:
		h.state = stateName
	case c == ',':
		h.state = stateValue
	case c == '}' && object, c == ']' && !object:
		return h.close()
	default:
		return false
	}
	return true
}

// beginName reads the first byte of a name, or the end of an empty object.
func (h *Hasher) beginName(c byte) bool {
	if c == '}' && h.state == stateFirstName {
		return h.close()
	}
	h.beginText(true)
	return c == '"'
}

// literal reads a byte of true, false or null.
func (h *Hasher) literal(c byte) bool {
	if c != h.rest[0] {
		return false
	}
	if h.rest = h.rest[1:]; h.rest == "" {
		if h.depth == 1 {
			h.emit(nil, nil)
		}
		h.endValue()
	}
	return true
}

// number reads a byte of a number, or ends it before the byte. It returns how many bytes it has read, and sets failed if
// the number ends too early.
func (h *Hasher) number(c byte) int {
	digit := '0' <= c && c <= '9'
	switch h.state {
	case stateMinus:
		h.state = stateDigits
		if c == '0' {
			h.state = stateZero
		}
		h.failed = !digit
		return 1
	case statePoint, stateSign:
		h.state++ // its digits
		h.failed = !digit
		return 1
	case stateE:
		if c == '+' || c == '-' {
			h.state = stateSign
			return 1
		}
		h.state = stateExponent
		h.failed = !digit
		return 1
	}
	switch {
	case digit && h.state != stateZero:
		return 1
	case c == '.' && (h.state == stateZero || h.state == stateDigits):
		h.state = statePoint
		return 1
	case (c == 'e' || c == 'E') && h.state != stateExponent:
		h.state = stateE
		return 1
	}
	h.endValue()
	return 0
}

// emit appends the hash of an item to the answer.
func (h *Hasher) emit(a, b []byte) {
	if n := len(a) + len(b); n <= len(h.block) {
		copy(h.block[:], a)
		copy(h.block[len(a):], b)
		h.sum = sha256.Sum256(h.block[:n])
	} else {
		if h.long == nil {
			h.long = sha256.New()
		}
		h.long.Reset()
		h.long.Write(a)
		h.long.Write(b)
		h.long.Sum(h.sum[:0])
	}
	at := len(h.answer)
	h.answer = slices.Grow(h.answer, entry)[:at+entry]
	to := h.answer[at : at+entry : at+entry]
	to[0] = '"'
	encode((*[textSize]byte)(to[1:]), &h.sum)
	to[entry-2], to[entry-1] = '"', ','
}
