package thrift

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"

	"github.com/slipstream-go/slipstream/thrift/internal/jsontext"
)

// JSON documents the mapping. A document is read in two passes: the first one looks only at
// brackets, commas and strings, bounds the depth, and counts the elements of each array and the
// members of each object; the second one makes lists and maps with their exact size, which is
// charged like the counts in the other protocols. Without the counts, lists would have to grow, and
// moving elements of an unknown type requires a function for each type. A count takes four bytes of
// memory for the two brackets in the input. Strings are stored as the Reader says, unless they have
// escapes.

// jsonReader reads one document. Functions return false after they have set err.
type jsonReader struct {
	r   *Reader
	b   []byte
	off int
	err *JSONError

	counts  []int32 // the numbers of elements or members of all arrays and objects, in the order of the text
	next    int     // the number of those that were entered
	scratch []byte  // a string with its escapes removed
}

// maxBrackets is how deep arrays and objects may be nested: a map can be an array of arrays.
const maxBrackets = 2 * MaxDepth

// fail records a problem at an offset and returns false.
func (d *jsonReader) fail(off int, problem string) bool {
	if d.err == nil {
		d.err = &JSONError{Offset: off, Problem: problem}
	}
	return false
}

// expected records that the text at the current offset is not what was expected, and returns false.
func (d *jsonReader) expected(what string) bool {
	return d.fail(d.off, "expected "+what+", found "+d.found())
}

// found describes the text at the current offset.
func (d *jsonReader) found() string {
	if d.off >= len(d.b) {
		return "the end of the input"
	}
	switch c := d.b[d.off]; {
	case c == '"':
		return "a string"
	case c == '{':
		return "an object"
	case c == '[':
		return "an array"
	case c == '-' || isDigit(c):
		return "a number"
	case bytes.HasPrefix(d.b[d.off:], []byte("null")):
		return "null"
	case bytes.HasPrefix(d.b[d.off:], []byte("true")), bytes.HasPrefix(d.b[d.off:], []byte("false")):
		return "a bool"
	default:
		return strconv.QuoteRuneToASCII(rune(c))
	}
}

// count counts the elements of all arrays and objects, so that lists and maps can be made with
// their size. It looks only at brackets, commas and strings: the rest is checked later.
func (d *jsonReader) count() bool {
	if len(d.b) > math.MaxInt32 {
		return d.fail(0, "the input has more than 2^31-1 bytes")
	}
	var open [maxBrackets]int32 // indexes in counts
	var kinds [maxBrackets]byte // closing brackets
	n := 0
	b := d.b
	for i := 0; i < len(b); i++ {
		switch c := b[i]; c {
		case '"':
			if i = endOfString(b, i+1); i < 0 {
				return d.fail(len(b), "the input ends inside a string")
			}
		case ',':
			if n > 0 {
				d.counts[open[n-1]]++
			}
		case '[', '{':
			if n == maxBrackets {
				return d.fail(i, tooDeep)
			}
			open[n], kinds[n] = int32(len(d.counts)), c+2 // the closing bracket
			d.counts = append(d.counts, 0)
			n++
		case ']', '}':
			if n == 0 || kinds[n-1] != c {
				return d.fail(i, "unmatched closing bracket")
			}
			n--
			last := i - 1
			for isSpace(b[last]) {
				last--
			}
			if b[last] != '[' && b[last] != '{' {
				d.counts[open[n]]++ // one more than the number of commas
			}
		}
	}
	if n > 0 {
		return d.fail(len(b), "the input ends inside an array or object")
	}
	return true
}

// endOfString returns the offset of the quotation mark that ends a string, or -1. off is where
// the string begins.
func endOfString(b []byte, off int) int {
	start := off
	for {
		n := bytes.IndexByte(b[off:], '"')
		if n < 0 {
			return -1
		}
		end := off + n
		slash := end
		for slash > start && b[slash-1] == '\\' {
			slash--
		}
		if (end-slash)%2 == 0 { // no escape, or only escapes of backslashes
			return end
		}
		off = end + 1
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// peek skips white space and returns the next byte, or 0 at the end of the input.
func (d *jsonReader) peek() byte {
	for d.off < len(d.b) {
		c := d.b[d.off]
		if !isSpace(c) {
			return c
		}
		d.off++
	}
	return 0
}

// take skips white space and reports whether the next byte is c. If so, it consumes it.
func (d *jsonReader) take(c byte) bool {
	if d.peek() == c {
		d.off++
		return true
	}
	return false
}

// literal consumes a word such as true, if the text continues with it.
func (d *jsonReader) literal(word string) bool {
	if d.peek() == word[0] && len(d.b)-d.off >= len(word) && string(d.b[d.off:d.off+len(word)]) == word {
		d.off += len(word)
		return true
	}
	return false
}

// enter consumes the bracket that opens an array or object, and returns the number of its elements.
func (d *jsonReader) enter(bracket byte, what string) (n int, ok bool) {
	if !d.take(bracket) {
		return 0, d.expected(what)
	}
	n = int(d.counts[d.next])
	d.next++
	return n, true
}

// separate consumes the comma before element i, unless i is 0.
func (d *jsonReader) separate(i int) bool {
	return i == 0 || d.take(',') || d.expected("a comma")
}

// leave consumes the bracket that closes an array or object.
func (d *jsonReader) leave(bracket byte) bool {
	return d.take(bracket) || d.expected("a comma or "+strconv.QuoteRune(rune(bracket)))
}

// name consumes the name of a member and the colon after it. The returned name is valid until the
// next call.
func (d *jsonReader) name() ([]byte, bool) {
	if d.peek() != '"' {
		return nil, d.expected("a name in quotes")
	}
	from, to, escaped, ok := d.quoted()
	if !ok {
		return nil, false
	}
	name := d.b[from:to]
	if escaped {
		if name, ok = d.unescape(from, to); !ok {
			return nil, false
		}
	}
	if !d.take(':') {
		return nil, d.expected("a colon")
	}
	return name, true
}

// quoted consumes the string at the current offset and returns the offsets of its text. If it has
// escapes, unescape removes them.
func (d *jsonReader) quoted() (from, to int, escaped, ok bool) {
	from = d.off + 1
	ascii := true
	i := from
	for {
		if i = jsontext.EndOfPlain(d.b, i); i >= len(d.b) {
			return 0, 0, false, d.fail(i, "the input ends inside a string")
		}
		switch c := d.b[i]; {
		case c == '"':
			if !ascii && !utf8.Valid(d.b[from:i]) {
				return 0, 0, false, d.fail(d.off, "invalid UTF-8 in a string")
			}
			d.off = i + 1
			return from, i, escaped, true
		case c == '\\':
			escaped = true
			i++ // the next byte is not a quotation mark that ends the string
		case c < ' ':
			return 0, 0, false, d.fail(i, "unescaped control character in a string")
		default:
			ascii = false
		}
		i++
	}
}

// unescape returns the string whose text is between two offsets. The result is valid until the next
// call.
func (d *jsonReader) unescape(from, to int) ([]byte, bool) {
	s := d.scratch[:0]
	for i := from; i < to; {
		c := d.b[i]
		if c != '\\' {
			s = append(s, c)
			i++
			continue
		}
		if i+1 >= to {
			return nil, d.fail(i, "unknown escape in a string")
		}
		switch c = d.b[i+1]; c {
		case '"', '\\', '/':
			s = append(s, c)
		case 'b':
			s = append(s, '\b')
		case 'f':
			s = append(s, '\f')
		case 'n':
			s = append(s, '\n')
		case 'r':
			s = append(s, '\r')
		case 't':
			s = append(s, '\t')
		case 'u':
			r, n := unicodeEscape(d.b[i:to])
			if n == 0 {
				return nil, d.fail(i, "invalid Unicode escape in a string")
			}
			s = utf8.AppendRune(s, r)
			i += n
			continue
		default:
			return nil, d.fail(i, "unknown escape in a string")
		}
		i += 2
	}
	d.scratch = s
	return s, true
}

// unicodeEscape returns the character of the escape, or the surrogate pair of escapes, that b
// begins with, and its number of bytes, which is 0 if the escape is invalid.
func unicodeEscape(b []byte) (rune, int) {
	first, ok := hex4(b)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(first) {
		return first, 6
	}
	second, ok := hex4(b[6:])
	if r := utf16.DecodeRune(first, second); ok && r != utf8.RuneError {
		return r, 12
	}
	return 0, 0
}

// hex4 returns the value of the digits of an escape such as \u00ff.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		digit := jsontext.Unhex(c)
		if digit > 15 {
			return 0, false
		}
		r = r<<4 | rune(digit)
	}
	return r, true
}

// integer consumes an integer of at most bits bits and returns it.
func (d *jsonReader) integer(bits int) (int64, bool) {
	d.peek()
	from := d.off
	v, end, ok := parseInteger(d.b, from)
	if end == from {
		return 0, d.expected("an integer")
	}
	if end < len(d.b) && (d.b[end] == '.' || d.b[end]|0x20 == 'e' || isDigit(d.b[end])) {
		return 0, d.fail(from, "expected an integer: digits without a leading zero, a fraction or an exponent")
	}
	if shift := 64 - bits; !ok || v<<shift>>shift != v {
		return 0, d.fail(from, "an integer does not fit into "+strconv.Itoa(bits)+" bits")
	}
	d.off = end
	return v, true
}

// parseInteger parses the integer at off. end is off if there is none; ok is false if it does not
// fit into 64 bits. Parsing stops after a leading zero.
func parseInteger(b []byte, off int) (v int64, end int, ok bool) {
	i := off
	negative := i < len(b) && b[i] == '-'
	if negative {
		i++
	}
	digits := i
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	n := uint64(0)
	for ok = true; i < len(b) && isDigit(b[i]); i++ {
		digit := uint64(b[i] - '0')
		if n > (limit-digit)/10 {
			ok = false
		} else {
			n = 10*n + digit
		}
		if n == 0 && i == digits {
			i++
			break
		}
	}
	if i == digits {
		return 0, off, false
	}
	if negative {
		return -int64(n), i, ok
	}
	return int64(n), i, ok
}

// double consumes a number, or a string for a double that JSON has no number for, and returns it.
func (d *jsonReader) double() (float64, bool) {
	if d.peek() == '"' {
		for i, word := range [...]string{`"NaN"`, `"Infinity"`, `"-Infinity"`} {
			if d.literal(word) {
				return [...]float64{math.NaN(), math.Inf(1), math.Inf(-1)}[i], true
			}
		}
		return 0, d.expected(`a number, "NaN", "Infinity" or "-Infinity"`)
	}
	end := endOfNumber(d.b, d.off)
	if end < 0 {
		return 0, d.expected("a number")
	}
	text := d.b[d.off:end]
	v, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(text), len(text)), 64)
	if err != nil {
		return 0, d.fail(d.off, "a number does not fit into a double")
	}
	d.off = end
	return v, true
}

// endOfNumber returns the offset after the number at off, or -1.
func endOfNumber(b []byte, off int) int {
	i := off
	if i < len(b) && b[i] == '-' {
		i++
	}
	whole := endOfDigits(b, i)
	if whole == i || whole > i+1 && b[i] == '0' {
		return -1
	}
	i = whole
	if i < len(b) && b[i] == '.' {
		if whole = endOfDigits(b, i+1); whole == i+1 {
			return -1
		}
		i = whole
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if whole = endOfDigits(b, i); whole == i {
			return -1
		}
		i = whole
	}
	return i
}

func endOfDigits(b []byte, i int) int {
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	return i
}

// skip consumes a value.
func (d *jsonReader) skip() bool {
	switch c := d.peek(); {
	case c == '"':
		from, to, escaped, ok := d.quoted()
		if ok && escaped {
			_, ok = d.unescape(from, to)
		}
		return ok
	case c == '{':
		n, _ := d.enter('{', "")
		for i := range n {
			if !d.separate(i) {
				return false
			}
			if _, ok := d.name(); !ok || !d.skip() {
				return false
			}
		}
		return d.leave('}')
	case c == '[':
		n, _ := d.enter('[', "")
		for i := range n {
			if !d.separate(i) || !d.skip() {
				return false
			}
		}
		return d.leave(']')
	case c == '-' || isDigit(c):
		end := endOfNumber(d.b, d.off)
		if end < 0 {
			return d.expected("a valid number")
		}
		d.off = end
		return true
	}
	return d.literal("null") || d.literal("true") || d.literal("false") || d.expected("a value")
}
