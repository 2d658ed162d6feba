package bulk

import (
	"encoding/binary"
	"math/bits"
)

// bigEndian is true if the processor stores numbers in the byte order of Thrift.
var bigEndian = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

// convertPlain converts elements of width bytes. dst and src have the same length, a multiple of
// width.
func convertPlain(dst, src []byte, width uintptr) {
	if bigEndian {
		copy(dst, src)
		return
	}
	switch width {
	case 2:
		swap16(dst, src)
	case 4:
		swap32(dst, src)
	default:
		swap64(dst, src)
	}
}

// The loops below read and write words of 8 bytes with a fixed byte order, so that they work on
// every processor. The conditions mention both lengths, because the compiler then omits all bounds
// checks.

// swap16 reverses the bytes of each 2-byte element, 4 elements per word.
func swap16(dst, src []byte) {
	const low = 0x00ff00ff00ff00ff // the low byte of each element
	for len(src) >= 8 && len(dst) >= 8 {
		w := binary.LittleEndian.Uint64(src)
		binary.LittleEndian.PutUint64(dst, w>>8&low|w&low<<8)
		dst, src = dst[8:], src[8:]
	}
	for len(src) >= 2 && len(dst) >= 2 {
		binary.BigEndian.PutUint16(dst, binary.LittleEndian.Uint16(src))
		dst, src = dst[2:], src[2:]
	}
}

// swap32 reverses the bytes of each 4-byte element, 2 elements per word. Reversing a word also
// exchanges the two elements, so they are exchanged first.
func swap32(dst, src []byte) {
	for len(src) >= 32 && len(dst) >= 32 {
		a, b := binary.LittleEndian.Uint64(src), binary.LittleEndian.Uint64(src[8:])
		c, d := binary.LittleEndian.Uint64(src[16:]), binary.LittleEndian.Uint64(src[24:])
		binary.BigEndian.PutUint64(dst, bits.RotateLeft64(a, 32))
		binary.BigEndian.PutUint64(dst[8:], bits.RotateLeft64(b, 32))
		binary.BigEndian.PutUint64(dst[16:], bits.RotateLeft64(c, 32))
		binary.BigEndian.PutUint64(dst[24:], bits.RotateLeft64(d, 32))
		dst, src = dst[32:], src[32:]
	}
	for len(src) >= 4 && len(dst) >= 4 {
		binary.BigEndian.PutUint32(dst, binary.LittleEndian.Uint32(src))
		dst, src = dst[4:], src[4:]
	}
}

// swap64 reverses the bytes of each 8-byte element.
func swap64(dst, src []byte) {
	for len(src) >= 32 && len(dst) >= 32 {
		a, b := binary.LittleEndian.Uint64(src), binary.LittleEndian.Uint64(src[8:])
		c, d := binary.LittleEndian.Uint64(src[16:]), binary.LittleEndian.Uint64(src[24:])
		binary.BigEndian.PutUint64(dst, a)
		binary.BigEndian.PutUint64(dst[8:], b)
		binary.BigEndian.PutUint64(dst[16:], c)
		binary.BigEndian.PutUint64(dst[24:], d)
		dst, src = dst[32:], src[32:]
	}
	for len(src) >= 8 && len(dst) >= 8 {
		binary.BigEndian.PutUint64(dst, binary.LittleEndian.Uint64(src))
		dst, src = dst[8:], src[8:]
	}
}

// convertBoolsPlain sets each byte of dst to 0 if the byte of src is 0, and to 1 otherwise. dst and
// src have the same length.
func convertBoolsPlain(dst, src []byte) {
	const (
		ones = 0x0101010101010101
		rest = 0x7f7f7f7f7f7f7f7f // all bits of each byte except the highest
	)
	for len(src) >= 8 && len(dst) >= 8 {
		w := binary.LittleEndian.Uint64(src)
		// The highest bit of a byte of w becomes 1 unless the byte is 0: by the carry of its
		// other bits, which does not reach the next byte, or because it is set in w.
		w |= w&rest + rest
		binary.LittleEndian.PutUint64(dst, w>>7&ones)
		dst, src = dst[8:], src[8:]
	}
	for i := range min(len(dst), len(src)) {
		dst[i] = 1
		if src[i] == 0 {
			dst[i] = 0
		}
	}
}
