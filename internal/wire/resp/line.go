package resp

import "math/bits"

// lineState is the result of a search for the end of a line.
type lineState uint8

const (
	lineWhole   lineState = iota // CR LF found
	lineOpen                     // neither found: more bytes are needed
	lineBroken                   // CR without LF, or LF without CR
	lineTooLong                  // no CR up to the limit
)

// lineEnd searches for CR LF in b[from:]. The CR must be at offset limit or before. It returns the
// offset of the CR, or where to continue with more bytes, or where the line is broken.
func lineEnd(b []byte, from, limit int) (int, lineState) {
	window := b[:min(len(b), limit+1)]
	i := from + indexLineEnd(window[min(from, len(window)):])
	switch {
	case i < from: // not found
		if len(b) > limit {
			return limit, lineTooLong
		}
		return len(b), lineOpen
	case b[i] == '\n':
		return i, lineBroken
	case i+1 == len(b):
		return i, lineOpen
	case b[i+1] != '\n':
		return i, lineBroken
	}
	return i, lineWhole
}

// indexLineEnd returns the index of the first CR or LF in b, or -1. It checks eight bytes at a
// time, because lines may have up to 64 KiB.
func indexLineEnd(b []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := load8(b[i:])
		// This computes the high bit of each byte below 14. The lowest bit set is exact.
		below := (w - ones*('\r'+1)) &^ w & highs
		if below == 0 {
			continue
		}
		for j := i + bits.TrailingZeros64(below)/8; j < i+8; j++ {
			if b[j] == '\r' || b[j] == '\n' {
				return j
			}
		}
	}
	for ; i < len(b); i++ {
		if b[i] == '\r' || b[i] == '\n' {
			return i
		}
	}
	return -1
}

// The compiler turns load8 into one load instruction.
func load8(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// lineError describes a line that is broken or too long. The line, including its kind, starts at
// start.
func lineError(b []byte, start, at int, state lineState, limit int) *ProtocolError {
	if state == lineTooLong {
		return &ProtocolError{Offset: start, Wrong: "line " + quoted(b[start:at]), Expected: "CR LF after at most " + itoa(limit) + " bytes"}
	}
	if b[at] == '\n' {
		return errLineEnd(at, b[at:at+1])
	}
	return errLineEnd(at, b[at:at+2])
}
