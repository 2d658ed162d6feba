package ladder

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Most items arrive complete in one piece, and their strings have no escapes. The functions in this
// file read them in place, without the states of a Hasher. All other items are left to the states,
// from their first byte on.

// wholeItems reads the items at the front of b, with the commas after them, updates the state, and
// returns the number of bytes read. b begins with the brace of an item.
func (h *Hasher) wholeItems(b []byte) (n int) {
	i := 0
	for {
		end := h.wholeItem(b, i+1)
		if end == 0 {
			return n
		}
		h.state, n = stateAfter, end
		i = skipSpace(b, end)
		if i == len(b) || b[i] != ',' {
			return n
		}
		h.state, n = stateValue, i+1
		if i = skipSpace(b, i+1); i == len(b) || b[i] != '{' {
			return n
		}
	}
}

// The names in their usual spelling, each with its colon, as 8 bytes in memory order.
const (
	nameA uint64 = '"' | 's'<<8 | 'r'<<16 | 't'<<24 | '_'<<32 | 'a'<<40 | '"'<<48 | ':'<<56
	nameB uint64 = '"' | 's'<<8 | 't'<<16 | 'r'<<24 | '_'<<32 | 'b'<<40 | '"'<<48 | ':'<<56
)

// wholeItem reads the item whose first member is at b[i], emits its hash, and returns where it
// ends. If the item contains anything other than plain strings, or does not end in b, it returns 0.
func (h *Hasher) wholeItem(b []byte, i int) (end int) {
	var strA, strB []byte
	for i = skipSpace(b, i); ; i = skipSpace(b, i+1) {
		if len(b)-i < 8 {
			return 0
		}
		which := memberOther
		switch binary.LittleEndian.Uint64(b[i:]) {
		case nameA:
			which = memberA
			i += 8
		case nameB:
			which = memberB
			i += 8
		default:
			name, after := plainString(b, i)
			if after == 0 {
				return 0
			}
			which = memberOf(name)
			i = skipSpace(b, after)
			if i == len(b) || b[i] != ':' {
				return 0
			}
			i++
		}
		value, after := plainString(b, skipSpace(b, i))
		if after == 0 {
			return 0
		}
		switch which {
		case memberA:
			strA = value
		case memberB:
			strB = value
		}
		i = skipSpace(b, after)
		if i == len(b) {
			return 0
		}
		if b[i] == '}' {
			h.emit(strA, strB)
			return i + 1
		}
		if b[i] != ',' {
			return 0
		}
	}
}

// plainString returns the string that begins with the quote b[i], and where it ends. If there is no
// string, or it contains an escape or bytes that are not UTF-8, or does not end in b, after is 0.
func plainString(b []byte, i int) (value []byte, after int) {
	if i >= len(b) || b[i] != '"' {
		return nil, 0
	}
	i++
	n, high := plain(b[i:])
	end := i + n
	if end == len(b) || b[end] != '"' || high && !utf8.Valid(b[i:end]) {
		return nil, 0
	}
	return b[i:end], end + 1
}

// skipSpace returns the index of the first byte from b[i] on that is not white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

// Multiplying a byte by ones makes eight copies of it; highs is the top bit of each byte.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plain returns the number of bytes at the start of b that represent themselves in a string: no
// quote, no backslash, no control byte. high reports whether one of them is not ASCII. It checks
// eight bytes at a time.
func plain(b []byte) (n int, high bool) {
	var all uint64
	for ; len(b)-n >= 8; n += 8 {
		w := binary.LittleEndian.Uint64(b[n:])
		// The top bit of each byte that ends the run. Only the lowest one is exact, because a
		// borrow may set higher ones. The bit 0x02 swaps the quote with the space, so that the
		// quote is found with the control bytes.
		if stop := ((w ^ 0x02*ones - (' '+1)*ones) | (w ^ '\\'*ones - ones)) &^ w & highs; stop != 0 {
			k := bits.TrailingZeros64(stop) &^ 7
			all |= w & (1<<k - 1)
			return n + k/8, all&highs != 0
		}
		all |= w
	}
	for n < len(b) && b[n] >= ' ' && b[n] != '"' && b[n] != '\\' {
		all |= uint64(b[n])
		n++
	}
	return n, all&highs != 0
}
