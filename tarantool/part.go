package tarantool

import (
	"math"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// A Part is a part of a key, or a field's name or number in an [Op]. It is made by Int,
// String and the like, which allocate nothing, so that keys of any number of parts cost
// nothing but their bytes.
type Part struct {
	kind partKind
	n    uint64
	s    string // of encoded: MessagePack
	err  error
}

type partKind uint8

const (
	partNil partKind = iota // the zero value
	partUint
	partInt
	partFloat
	partBool
	partString
	partBytes
	partEncoded
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
func String(v string) Part { return Part{kind: partString, s: v} }

// Bytes is a value of bytes, which is copied.
func Bytes(v []byte) Part { return Part{kind: partBytes, s: string(v)} }

// Any is any value that a tuple may hold: see the package comment. It is encoded at once.
func Any(v any) Part {
	b, err := appendValue(nil, v)
	return Part{kind: partEncoded, s: string(b), err: err}
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
		return iproto.AppendString(b, p.s)
	case partBytes:
		return iproto.AppendBytes(b, []byte(p.s))
	case partEncoded:
		return append(b, p.s...)
	}
	return iproto.AppendNil(b)
}

// appendParts appends a key.
func appendParts(b []byte, key []Part) ([]byte, error) {
	b = iproto.AppendArray(b, len(key))
	for i := range key {
		if err := key[i].err; err != nil {
			return b, argumentError("part", i, err)
		}
		b = key[i].append(b)
	}
	return b, nil
}
