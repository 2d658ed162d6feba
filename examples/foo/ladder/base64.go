package ladder

import (
	"crypto/sha256"
	"encoding/binary"
)

// textSize is the length of a hash in base64.
const textSize = 44

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// pairs contains the two letters for each value of 12 bits, the first one in the low byte.
var pairs = func() (table [1 << 12]uint16) {
	for i := range table {
		table[i] = uint16(letters[i>>6]) | uint16(letters[i&63])<<8
	}
	return table
}()

// encode writes sum to dst as base64.StdEncoding does (RFC 4648, section 4), in less than half of
// the time: it converts 12 bits at a time and need not check the length.
func encode(dst *[textSize]byte, sum *[sha256.Size]byte) {
	for i, j := 0, 0; i+8 <= len(sum); i, j = i+6, j+8 {
		v := binary.BigEndian.Uint64(sum[i : i+8 : i+8]) // the upper 48 bits are encoded
		binary.LittleEndian.PutUint64(dst[j:j+8:j+8],
			uint64(pairs[v>>52])|uint64(pairs[v>>40&0xfff])<<16|uint64(pairs[v>>28&0xfff])<<32|uint64(pairs[v>>16&0xfff])<<48)
	}
	v := uint32(sum[30])<<16 | uint32(sum[31])<<8
	binary.LittleEndian.PutUint16(dst[40:], pairs[v>>12])
	dst[42], dst[43] = letters[v>>6&63], '='
}
