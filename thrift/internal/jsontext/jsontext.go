// Package jsontext writes and reads scalars of JSON. Packages thrift and thrift/generic share it, so
// that both have the same mapping.
package jsontext

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// AppendDouble appends the shortest number that is read as v, in the format of JavaScript.
func AppendDouble(b []byte, v float64) []byte {
	switch {
	case v != v:
		return append(b, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(b, `"-Infinity"`...)
	}
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		b = strconv.AppendFloat(b, v, 'e', -1, 64)
		if n := len(b); n >= 4 && b[n-4] == 'e' && b[n-2] == '0' { // e-09 is e-9
			b[n-2] = b[n-1]
			b = b[:n-1]
		}
		return b
	}
	return strconv.AppendFloat(b, v, 'f', -1, 64)
}

// plain is true for ASCII bytes that need no escape in a string.
var plain = func() (plain [256]bool) {
	for c := byte(' '); c < utf8.RuneSelf; c++ {
		plain[c] = c != '"' && c != '\\'
	}
	return plain
}()

// EndOfPlain returns the offset of the first byte at or after i that is not plain, or the length of
// s.
func EndOfPlain(s []byte, i int) int {
	const (
		ones = 0x0101010101010101
		high = 0x80 * ones
	)
	for ; len(s)-i >= 8; i += 8 {
		w := binary.LittleEndian.Uint64(s[i:])
		// The highest bit of a byte is set if the byte is below ' ', is '"' or '\', or is not
		// ASCII. A subtraction borrows from the next byte only if its own byte is one of these, so
		// the first bit that is set is correct.
		if w = ((w - ' '*ones) | ((w ^ '"'*ones) - ones) | ((w ^ '\\'*ones) - ones) | w) & high; w != 0 {
			return i + bits.TrailingZeros64(w)/8
		}
	}
	for i < len(s) && plain[s[i]] {
		i++
	}
	return i
}

// AppendString appends a string in quotes.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	done := 0 // number of bytes of s that have been appended
	for i := 0; ; {
		if i = EndOfPlain(unsafe.Slice(unsafe.StringData(s), len(s)), i); i >= len(s) {
			break
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[done:i]...), "\uFFFD"...)
				done = i + 1
			}
			i += n
			continue
		}
		b = appendEscape(append(b, s[done:i]...), c)
		i++
		done = i
	}
	return append(append(b, s[done:]...), '"')
}

// appendEscape appends a control character, a quotation mark or a backslash.
func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	}
	return hex.AppendEncode(append(b, `\u00`...), []byte{c})
}

// AppendUUID appends the text of a uuid, without quotes.
func AppendUUID(b []byte, v [16]byte) []byte {
	for i, part := range [][]byte{v[:4], v[4:6], v[6:8], v[8:10], v[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return b
}

// ParseUUID parses the text of a UUID.
func ParseUUID(to *[16]byte, text []byte) bool {
	if len(text) != 36 {
		return false
	}
	n := 0
	for i := 0; i < len(text); i += 2 {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if text[i] != '-' {
				return false
			}
			i++
		}
		high, low := Unhex(text[i]), Unhex(text[i+1])
		if high > 15 || low > 15 {
			return false
		}
		to[n] = high<<4 | low
		n++
	}
	return true
}

// Unhex returns the value of a hexadecimal digit, or 255.
func Unhex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}
