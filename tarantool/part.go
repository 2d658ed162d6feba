package tarantool

import (
	"math"
	"unsafe"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// A Part is a part of a key, or a field's name or number in an [Op]. It is made by Int,
// String and so on, which allocate nothing, so that keys of any number of parts only cost
// their bytes.
type Part struct {
	// Three words: a compiler that can hold a part in registers writes it once. One of six
	// words was copied right after it was made, for which the processor waited.
	kind partKind
	n    uint64
	p    unsafe.Pointer // of text: its n bytes; of partWrong: *error
}

// text is a part of n bytes.
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
	partWrong   // what cannot be encoded
)

// Nil is the part of a key that is null.
func Nil() Part { return Part{} }

// Int is a number.
func Int[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64](v T) Part {
	if v < 0 {
		return Part{kind: partInt, n: uint64(int64(v))}
	}
	return Part{kind: partUint, n: uint64(v)}
}

// Float is a floating-point number.
func Float(v float64) Part { return Part{kind: partFloat, n: math.Float64bits(v)} }

// Bool is a boolean.
func Bool(v bool) Part {
	p := Part{kind: partBool}
	if v {
		p.n = 1
	}
	return p
}

// String is a string.
func String(v string) Part { return text(partString, v) }

// Bytes is a value of bytes, which is copied.
func Bytes(v []byte) Part { return text(partBytes, string(v)) }

// Any is any value that a tuple may hold: see the package comment. It is encoded immediately.
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
