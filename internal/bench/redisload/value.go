package redisload

import (
	"encoding/binary"
	"encoding/hex"
)

// A value begins with a mark, the number of its key and a sequence number, so that
// a reply with the value of another key is found out.
const (
	mark       = "bench:"
	numberSize = 16 // hexadecimal digits
	headerSize = len(mark) + numberSize + 1 + numberSize
)

// MinSize is the size of the smallest value.
const MinSize = headerSize

// appendValue appends a value of size bytes.
func appendValue(b []byte, key int64, sequence uint64, size int) []byte {
	b = append(b, mark...)
	b = appendNumber(b, uint64(key))
	b = append(b, ':')
	b = appendNumber(b, sequence)
	for n := headerSize; n < size; n++ {
		b = append(b, 'a'+byte((key+int64(n))%26))
	}
	return b
}

func appendNumber(b []byte, n uint64) []byte {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], n)
	return hex.AppendEncode(b, raw[:])
}

// A verdict is what a value says about itself.
type verdict int

const (
	right   verdict = iota
	foreign         // it was not written by this package
	wrong           // it belongs to another key, or was changed
)

// judge looks at the value of a key. The bytes after the header are looked at
// only at their ends: all of them would cost more than the request.
func judge(value []byte, key int64) verdict {
	if len(value) < headerSize || string(value[:len(mark)]) != mark {
		return foreign
	}
	var want [numberSize]byte
	appendNumber(want[:0], uint64(key))
	if string(value[len(mark):len(mark)+numberSize]) != string(want[:]) || value[len(mark)+numberSize] != ':' {
		return wrong
	}
	if n := len(value) - 1; n >= headerSize && (value[headerSize] != 'a'+byte((key+int64(headerSize))%26) || value[n] != 'a'+byte((key+int64(n))%26)) {
		return wrong
	}
	return right
}
