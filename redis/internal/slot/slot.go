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

// OfBytes is [Of] for bytes.
func OfBytes(key []byte) int { return of(key) }

func of(key []byte) int {
	crc, hasBrace := checksum(key)
	if hasBrace {
		crc, _ = checksum(hashed(key))
	}
	return int(crc % Count)
}

// hashed returns what counts of a key: what lies between the first { and the first } after it,
// unless that is nothing.
func hashed(key []byte) []byte {
	if from := bytes.IndexByte(key, '{') + 1; from > 0 {
		if n := bytes.IndexByte(key[from:], '}'); n > 0 {
			return key[from : from+n]
		}
	}
	return key
}

// polynomial is that of CRC16-XMODEM: x^16 + x^12 + x^5 + 1.
const polynomial = 0x1021

// tables[i][b] is the checksum of the byte b and i zero bytes after it. They are never changed.
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

// checksum returns the CRC16-XMODEM of p, and whether p has a {. It takes eight bytes a step. The
// checksum is linear and begins with zero, so zero bytes in front do not change it: the first step
// takes what is left over of eights, with zero bytes in front.
func checksum(p []byte) (crc uint16, hasBrace bool) {
	var word uint64
	switch n := len(p); {
	case n >= 8:
		head := (n-1)&7 + 1
		word = binary.BigEndian.Uint64(p) >> (uint(64-8*head) & 63)
		p = p[head:]
	case n >= 4: // the two halves may overlap
		word = uint64(binary.BigEndian.Uint32(p))<<(uint(8*(n-4))&63) | uint64(binary.BigEndian.Uint32(p[n-4:]))
		p = nil
	case n > 0: // and so may the three bytes
		word = uint64(p[0])<<(uint(8*(n-1))&63) | uint64(p[n/2])<<(uint(8*(n-1-n/2))&63) | uint64(p[n-1])
		p = nil
	default:
		return 0, false
	}
	t := &tables
	braces := bracesIn(word)
	for {
		crc = t[7][byte(word>>56)] ^ t[6][byte(word>>48)] ^ t[5][byte(word>>40)] ^ t[4][byte(word>>32)] ^
			t[3][byte(word>>24)] ^ t[2][byte(word>>16)] ^ t[1][byte(word>>8)] ^ t[0][byte(word)]
		if len(p) < 8 {
			return crc, braces != 0
		}
		word = binary.BigEndian.Uint64(p)
		braces |= bracesIn(word)
		word ^= uint64(crc) << 48
		p = p[8:]
	}
}

// bracesIn returns 0 if no byte of a word is a {.
func bracesIn(word uint64) uint64 {
	const each = 0x0101010101010101
	word ^= '{' * each
	return (word - each) &^ word & (0x80 * each)
}
