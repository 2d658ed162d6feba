package box

import (
	"math"
	"strconv"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// The first bytes of the MessagePack values that frames start with.
const (
	fixMap   = 0x80 // | plus the number of pairs, if less than 16
	fixArray = 0x90 // | plus the number of elements, if less than 16
	yes      = 0xc3
	uint8b   = 0xcc
	uint32b  = 0xce
	uint64b  = 0xcf
	array32  = 0xdd
)

// Numbers are big-endian. The compiler turns each of these functions into one load or store
// instruction.

func be32(b []byte) uint32 {
	_ = b[3]
	return uint32(b[3]) | uint32(b[2])<<8 | uint32(b[1])<<16 | uint32(b[0])<<24
}

func be64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[7]) | uint64(b[6])<<8 | uint64(b[5])<<16 | uint64(b[4])<<24 |
		uint64(b[3])<<32 | uint64(b[2])<<40 | uint64(b[1])<<48 | uint64(b[0])<<56
}

func putBE32(b []byte, v uint32) {
	_ = b[3]
	b[0], b[1], b[2], b[3] = byte(v>>24), byte(v>>16), byte(v>>8), byte(v)
}

func putBE64(b []byte, v uint64) {
	_ = b[7]
	b[0], b[1], b[2], b[3] = byte(v>>56), byte(v>>48), byte(v>>40), byte(v>>32)
	b[4], b[5], b[6], b[7] = byte(v>>24), byte(v>>16), byte(v>>8), byte(v)
}

// append32 is like append64 for a 32-bit number.
func append32(b []byte, first byte, v uint32) []byte {
	return append(b, first, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

func append64(b []byte, first byte, v uint64) []byte {
	return append(b, first, byte(v>>56), byte(v>>48), byte(v>>40), byte(v>>32),
		byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

// noKey is a value that no key has.
const noKey = math.MaxUint64

// key reads the key of a pair, of whatever type it is. It returns noKey if the key is not a number
// or is negative.
func key(d *iproto.Decoder) uint64 {
	switch d.Kind() {
	case iproto.KindUint:
		return d.Uint()
	case iproto.KindInt:
		if v := d.Int(); v >= 0 {
			return uint64(v)
		}
		return noKey
	}
	d.Skip()
	return noKey
}

func itoa(n int) string { return strconv.Itoa(n) }

func utoa(n uint64) string { return strconv.FormatUint(n, 10) }

// quoted returns the beginning of p as a Go string literal. It truncates p to keep long data from a
// peer out of logs.
func quoted(p []byte) string {
	const enough = 40
	if len(p) > enough {
		return strconv.Quote(string(p[:enough])) + "..."
	}
	return strconv.Quote(string(p))
}
