package tarantool

import (
	"math"
	"unsafe"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// A Part is a part of a key, or the name or number of a field in an [Op]. Parts are made by Int,
// String and similar functions, which allocate nothing, so that a key with any number of parts
// costs only its bytes.
type Part struct {
	// A Part has three words: a compiler that can hold it in registers writes it once. A part of
	// six words was copied right after it was made, for which the processor had to wait.
	kind partKind
	n    uint64
	p    unsafe.Pointer // for text, its n bytes; for partWrong, an *error
}

// text returns a part of n bytes.
func text(kind partKind, s string) Part {
	return Part{kind: kind, n: uint64(len(s)), p: unsafe.Pointer(unsafe.StringData(s))}
}

func (p *Part) text() string { return unsafe.String((*byte)(p.p), int(p.n)) }

type partKind uint8

const (
	partNil partKind = iota // the zero value
	partUint
	partInt
	partFloat
	partBool
	partString
	partBytes
	partEncoded // MessagePack
	partWrong   // a value that cannot be encoded
)

// Nil returns a part that is null.
func Nil() Part { return Part{} }

// Int returns a part that is an integer.
func Int[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64](v T) Part {
	if v < 0 {
		return Part{kind: partInt, n: uint64(int64(v))}
	}
	return Part{kind: partUint, n: uint64(v)}
}

// Float returns a part that is a floating-point number.
func Float(v float64) Part { return Part{kind: partFloat, n: math.Float64bits(v)} }

// Bool returns a part that is a boolean.
func Bool(v bool) Part {
	p := Part{kind: partBool}
	if v {
		p.n = 1
	}
	return p
}

// String returns a part that is a string.
func String(v string) Part { return text(partString, v) }

// Bytes returns a part that is binary data, which is copied.
func Bytes(v []byte) Part { return text(partBytes, string(v)) }

// Any returns a part that is any value that a tuple may contain: see the package comment. The value
// is encoded immediately.
func Any(v any) Part {
	b, err := appendValue(nil, v)
	if err != nil {
		return Part{kind: partWrong, p: unsafe.Pointer(&err)}
	}
	return text(partEncoded, string(b))
}

// wrong returns why the part cannot be encoded, or nil if it can.
func (p *Part) wrong() error {
	if p.kind != partWrong {
		return nil
	}
	return *(*error)(p.p)
}

func (p *Part) append(b []byte) []byte {
	switch p.kind {
	case partUint:
		return iproto.AppendUint(b, p.n)
	case partInt:
		return iproto.AppendInt(b, int64(p.n))
	case partFloat:
		return iproto.AppendFloat64(b, math.Float64frombits(p.n))
	case partBool:
		return iproto.AppendBool(b, p.n != 0)
	case partString:
		return iproto.AppendString(b, p.text())
	case partBytes:
		return iproto.AppendBytes(b, []byte(p.text()))
	case partEncoded:
		return append(b, p.text()...)
	}
	return iproto.AppendNil(b)
}

// appendParts appends a key.
func appendParts(b []byte, key []Part) ([]byte, error) {
	b = iproto.AppendArray(b, len(key))
	for i := range key {
		if err := key[i].wrong(); err != nil {
			return b, argumentError("part", i, err)
		}
		b = key[i].append(b)
	}
	return b, nil
}
