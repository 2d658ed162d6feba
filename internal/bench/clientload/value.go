package clientload

import (
	"encoding/binary"
	"encoding/hex"
)

// A value begins with a mark, the number of its key and a sequence number, so that a reply with the
// value of another key is detected, as is one with a value that had been replaced before the
// request.
const (
	mark       = "bench:"
	numberSize = 16 // hexadecimal digits
	headerSize = len(mark) + numberSize + 1 + numberSize
)

// MinSize is the minimum size of a value.
const MinSize = headerSize

// AppendValue appends a value of size bytes.
func AppendValue(b []byte, key int64, sequence uint64, size int) []byte {
	b = append(b, mark...)
	b = appendNumber(b, uint64(key))
	b = append(b, ':')
	b = appendNumber(b, sequence)
	for n := headerSize; n < size; n++ {
		b = append(b, filler(key, n))
	}
	return b
}

func appendNumber(b []byte, n uint64) []byte {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], n)
	return hex.AppendEncode(b, raw[:])
}

// filler returns byte n of a value, after the header.
func filler(key int64, n int) byte { return 'a' + byte((key+int64(n))%26) }

// A Verdict is the result of checking a value.
type Verdict int

// Verdicts.
const (
	Right   Verdict = iota
	Foreign         // it was not written by this package
	Wrong           // it belongs to another key, or was changed
	Stale           // it was replaced before the request was sent
)

// judge checks the value of a key. Of the bytes after the header, it checks only those at the ends:
// checking all of them would cost more than the request.
func judge(value []byte, key int64) Verdict {
	if len(value) < headerSize || string(value[:len(mark)]) != mark {
		return Foreign
	}
	var want [numberSize]byte
	appendNumber(want[:0], uint64(key))
	if string(value[len(mark):len(mark)+numberSize]) != string(want[:]) || value[len(mark)+numberSize] != ':' {
		return Wrong
	}
	if n := len(value) - 1; n >= headerSize && (value[headerSize] != filler(key, headerSize) || value[n] != filler(key, n)) {
		return Wrong
	}
	return Right
}

// sequenceOf returns the sequence number of a valid value.
func sequenceOf(value []byte) (sequence uint64, ok bool) {
	var raw [8]byte
	_, err := hex.Decode(raw[:], value[headerSize-numberSize:headerSize])
	return binary.BigEndian.Uint64(raw[:]), err == nil
}
