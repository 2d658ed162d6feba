package http1

import "math/bits"

// Package bytes is not imported, because it depends on io and sync, and a codec must not depend on
// either.

// Classes of bytes.
const (
	classToken uint8 = 1 << iota // in a token (RFC 9110, section 5.6.2)
	classPath                    // in a path, except the percent sign
	classQuery                   // in a query
	classHex
	classHost // in a host name or an IPv4 address
	classAddr // in an IPv6 address
	classDigit
)

// class holds the classes of each byte. A path and a query may contain every visible ASCII byte,
// because browsers send brackets, vertical bars and quotes unescaped.
var class = classes()

func classes() (table [256]uint8) {
	mark := func(set string, is uint8) {
		for i := range len(set) {
			table[set[i]] |= is
		}
	}
	const digits = "0123456789"
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	mark(digits+letters+"!#$%&'*+-.^_`|~", classToken)
	mark(digits+"abcdefABCDEF", classHex|classAddr)
	mark(digits+letters+"-._", classHost)
	mark(":.", classAddr)
	mark(digits, classDigit)
	for c := byte('!'); c <= '~'; c++ {
		switch c {
		case '#':
		case '%', '?':
			table[c] |= classQuery
		default:
			table[c] |= classPath | classQuery
		}
	}
	return table
}

// span returns the number of bytes at the start of b that belong to the class.
func span(b []byte, is uint8) int {
	for i, c := range b {
		if class[c]&is == 0 {
			return i
		}
	}
	return len(b)
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// The product of ones and a byte is eight copies of that byte; highs has the top bit of each byte
// set.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// valueEnd returns the index of the first byte from i on that is not allowed in a field value: a
// control byte other than HTAB (RFC 9110, section 5.5). Bytes from 0x80 on are allowed, as in
// net/http. It checks eight bytes at a time.
func valueEnd(b []byte, i int) int {
	for len(b)-i >= 8 {
		w := load8(b[i:])
		del := w ^ 0x7f*ones
		// This computes the top bit of each byte that is below 0x20 or equal to 0x7f. The lowest
		// bit set is exact; a borrow may set wrong bits above it.
		wrong := ((w-0x20*ones)&^w | (del-ones)&^del) & highs
		if wrong == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(wrong) / 8
		if b[i] != '\t' {
			return i
		}
		i++
	}
	for i < len(b) && (b[i] >= ' ' && b[i] != 0x7f || b[i] == '\t') {
		i++
	}
	return i
}

// pathEnd returns the index of the first byte from i on that is a percent sign or is not allowed
// unescaped in a path. It checks eight bytes at a time.
func pathEnd(b []byte, i int) int {
	for ; len(b)-i >= 8; i += 8 {
		w := load8(b[i:])
		del, number, percent, query := w^0x7f*ones, w^'#'*ones, w^'%'*ones, w^'?'*ones
		// As in valueEnd, only the lowest bit set is exact.
		wrong := (w | (w-0x21*ones)&^w | (del-ones)&^del | (number-ones)&^number |
			(percent-ones)&^percent | (query-ones)&^query) & highs
		if wrong != 0 {
			return i + bits.TrailingZeros64(wrong)/8
		}
	}
	return i + span(b[i:], classPath)
}

// index returns the index of the first c in b, or -1.
func index(b []byte, c byte) int {
	i := 0
	for ; len(b)-i >= 8; i += 8 {
		w := load8(b[i:]) ^ uint64(c)*ones
		if found := (w - ones) &^ w & highs; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(b); i++ {
		if b[i] == c {
			return i
		}
	}
	return -1
}

// The compiler turns load8 and load4 into one load instruction each.
func load8(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

func load4(b []byte) uint32 {
	_ = b[3]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// The words of a request line, as load4 and load8 return them.
const (
	get4   = 'G' | 'E'<<8 | 'T'<<16 | ' '<<24
	head4  = 'H' | 'E'<<8 | 'A'<<16 | 'D'<<24
	http11 = http1x | '1'<<56
	http10 = http1x | '0'<<56
	http1x = 'H' | 'T'<<8 | 'T'<<16 | 'P'<<24 | '/'<<32 | '1'<<40 | '.'<<48
)
