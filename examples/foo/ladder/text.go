package ladder

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A text is the state of the string that is being read.
type text struct {
	to   *[]byte // receives the string; nil if it is not needed
	name bool    // whether it is the name of a member
	high bool    // whether it contains bytes from 0x80 on that were not written as escapes

	// surrogate is the first half of a surrogate pair whose second half may follow, or 0.
	surrogate rune
	digits    int // number of digits read after \u
	code      rune
}

// maxName is the maximum number of bytes kept of a name. No longer name has a meaning.
const maxName = 16

// beginText begins a string, which is the name of a member or a value.
func (h *Hasher) beginText(name bool) {
	h.text = text{name: name}
	switch {
	case h.depth != 2:
	case name:
		h.text.to = &h.name
	case h.member == memberA:
		h.text.to = &h.a
	case h.member == memberB:
		h.text.to = &h.b
	}
	if to := h.text.to; to != nil {
		*to = (*to)[:0] // if several members have the same name, the last one counts
	}
	h.state = stateText
}

// readText reads the front of b, which continues a string.
func (h *Hasher) readText(b []byte) int {
	if n, high := plain(b); n > 0 {
		h.put(b[:n])
		h.text.high = h.text.high || high
		return n
	}
	switch b[0] {
	case '"':
		h.endText()
	case '\\':
		h.state = stateEscape
	default:
		h.failed = true
	}
	return 1
}

// put appends p to the string.
func (h *Hasher) put(p []byte) {
	h.endSurrogate()
	h.add(p)
}

func (h *Hasher) add(p []byte) {
	to := h.text.to
	if to == nil {
		return
	}
	if h.text.name {
		p = p[:min(len(p), maxName-len(h.name))]
	}
	*to = append(*to, p...)
}

var replacement = []byte("\uFFFD")

// endSurrogate replaces the first half of a surrogate pair without a second half.
func (h *Hasher) endSurrogate() {
	if h.text.surrogate != 0 {
		h.text.surrogate = 0
		h.add(replacement)
	}
}

// escapes are the bytes after a backslash, other than u, and escaped the bytes that they
// represent.
const escapes = `"\/bfnrt`

var escaped = []byte("\"\\/\b\f\n\r\t")

// escape reads the byte after a backslash.
func (h *Hasher) escape(c byte) bool {
	if c == 'u' {
		h.text.digits, h.text.code = 0, 0
		h.state = stateHex
		return true
	}
	i := strings.IndexByte(escapes, c)
	if i < 0 {
		return false
	}
	h.put(escaped[i : i+1])
	h.state = stateText
	return true
}

// hexDigit reads a digit after \u.
func (h *Hasher) hexDigit(c byte) bool {
	t := &h.text
	t.code <<= 4
	switch {
	case '0' <= c && c <= '9':
		t.code |= rune(c - '0')
	case 'a' <= c && c <= 'f':
		t.code |= rune(c - 'a' + 10)
	case 'A' <= c && c <= 'F':
		t.code |= rune(c - 'A' + 10)
	default:
		return false
	}
	if t.digits++; t.digits == 4 {
		h.putCode(t.code)
		h.state = stateText
	}
	return true
}

// putCode appends the code point of a \u escape. Unpaired halves become U+FFFD.
func (h *Hasher) putCode(code rune) {
	t := &h.text
	if t.surrogate != 0 {
		if pair := utf16.DecodeRune(t.surrogate, code); pair != utf8.RuneError {
			t.surrogate = 0
			code = pair
		}
	}
	if 0xD800 <= code && code <= 0xDBFF {
		h.endSurrogate()
		t.surrogate = code
		return
	}
	var room [utf8.UTFMax]byte
	h.put(utf8.AppendRune(room[:0], code))
}

// endText ends the string.
func (h *Hasher) endText() {
	h.endSurrogate()
	t := &h.text
	if t.name {
		if t.to != nil {
			h.member = memberOf(h.name)
		}
		h.state = stateColon
		return
	}
	if t.to != nil && t.high && !utf8.Valid(*t.to) {
		h.spare = appendValid(h.spare[:0], *t.to)
		*t.to, h.spare = h.spare, *t.to
	}
	h.endValue()
}

// appendValid appends b with U+FFFD instead of each byte that is not UTF-8. Escapes have already
// been decoded to UTF-8, so they are not affected.
func appendValid(dst, b []byte) []byte {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		dst = utf8.AppendRune(dst, r)
		b = b[n:]
	}
	return dst
}

// memberOf returns the member with the given name.
func memberOf(name []byte) member {
	switch {
	case sameName(name, "srt_a"):
		return memberA
	case sameName(name, "str_b"):
		return memberB
	}
	return memberOther
}

var longS = []byte("\u017F")

// sameName compares names as encoding/json does if no name matches exactly: case is ignored,
// including Unicode case folding, which in these names affects only U+017F for s.
func sameName(name []byte, want string) bool {
	for i := range len(want) {
		rest, ok := bytes.CutPrefix(name, longS)
		if !ok || want[i] != 's' {
			if len(name) == 0 || lower(name[0]) != want[i] {
				return false
			}
			rest = name[1:]
		}
		name = rest
	}
	return len(name) == 0
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
