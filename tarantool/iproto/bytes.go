package iproto

import "strconv"

// Numbers on the wire are big-endian, except inside some extensions. Each of these functions takes
// one load or store instruction.

func be16(b []byte) uint16 { return uint16(b[1]) | uint16(b[0])<<8 }

func be32(b []byte) uint32 {
	_ = b[3]
	return uint32(b[3]) | uint32(b[2])<<8 | uint32(b[1])<<16 | uint32(b[0])<<24
}

func be64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[7]) | uint64(b[6])<<8 | uint64(b[5])<<16 | uint64(b[4])<<24 |
		uint64(b[3])<<32 | uint64(b[2])<<40 | uint64(b[1])<<48 | uint64(b[0])<<56
}

// append16 and similar functions append a first byte and a number.

func append16(b []byte, first byte, v uint16) []byte {
	return append(b, first, byte(v>>8), byte(v))
}

func append32(b []byte, first byte, v uint32) []byte {
	return append(b, first, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

func append64(b []byte, first byte, v uint64) []byte {
	return append(b, first, byte(v>>56), byte(v>>48), byte(v>>40), byte(v>>32),
		byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

func itoa(n int) string { return strconv.Itoa(n) }

func utoa(n uint64) string { return strconv.FormatUint(n, 10) }

// quoted returns the start of p as a Go string literal, so that a log does not contain everything
// that a peer sends.
func quoted(p []byte) string {
	const enough = 40
	if len(p) > enough {
		return strconv.Quote(string(p[:enough])) + "..."
	}
	return strconv.Quote(string(p))
}
