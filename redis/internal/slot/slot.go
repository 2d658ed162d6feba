// Package slot returns the hash slots of keys, as the Redis Cluster specification defines them:
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
package slot

import (
	"bytes"
	"encoding/binary"
	"unsafe"
)

// Count is the number of slots of a cluster.
const Count = 16384

// Of returns the slot of a key, from 0 to Count-1. If the key has a hash tag, such as "user" in
// "{user}:1", only the tag counts: keys with the same tag have the same slot.
func Of(key string) int { return of(unsafe.Slice(unsafe.StringData(key), len(key))) }

// OfBytes is like [Of], but takes bytes.
func OfBytes(key []byte) int { return of(key) }

// of computes the CRC16-XMODEM, eight bytes per step. The table lookups of a step are independent,
// whereas bytewise each one waits for the previous one.
func of(key []byte) int {
	var crc uint16
	var braces uint64 // not 0 if there is a {
	t, rest := &tables, key
	for len(rest) >= 8 {
		b := (*[8]byte)(rest)
		braces |= bracesIn(binary.LittleEndian.Uint64(rest))
		crc = t[7][b[0]^byte(crc>>8)] ^ t[6][b[1]^byte(crc)] ^ t[5][b[2]] ^ t[4][b[3]] ^
			t[3][b[4]] ^ t[2][b[5]] ^ t[1][b[6]] ^ t[0][b[7]]
		rest = rest[8:]
	}
	if len(rest) >= 4 {
		b := (*[4]byte)(rest)
		braces |= bracesIn(uint64(binary.LittleEndian.Uint32(rest)))
		crc = t[3][b[0]^byte(crc>>8)] ^ t[2][b[1]^byte(crc)] ^ t[1][b[2]] ^ t[0][b[3]]
		rest = rest[4:]
	}
	for _, b := range rest {
		if b == '{' {
			braces = 1
		}
		crc = crc<<8 ^ t[0][b^byte(crc>>8)]
	}
	if braces != 0 {
		if tag := hashed(key); len(tag) < len(key) {
			return of(tag) // which has no tag itself, because it contains no }
		}
	}
	return int(crc % Count)
}

// hashed returns the part of a key that is hashed: the text between the first { and the first }
// after it, or the whole key if that text is empty.
func hashed(key []byte) []byte {
	if from := bytes.IndexByte(key, '{') + 1; from > 0 {
		if n := bytes.IndexByte(key[from:], '}'); n > 0 {
			return key[from : from+n]
		}
	}
	return key
}

// polynomial is the polynomial of CRC16-XMODEM: x^16 + x^12 + x^5 + 1.
const polynomial = 0x1021

// tables[i][b] is the checksum of the byte b followed by i zero bytes. The tables are never
// changed.
var tables = makeTables()

func makeTables() (t [8][256]uint16) {
	for b := range t[0] {
		crc := uint16(b) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*polynomial
		}
		t[0][b] = crc
	}
	for i := 1; i < len(t); i++ {
		for b := range t[i] {
			crc := t[i-1][b]
			t[i][b] = crc<<8 ^ t[0][crc>>8]
		}
	}
	return t
}

// bracesIn returns 0 if no byte of a word is a {.
func bracesIn(word uint64) uint64 {
	const each = 0x0101010101010101
	word ^= '{' * each
	return (word - each) &^ word & (0x80 * each)
}
