package iproto

import "math"

// The first bytes of MessagePack values. Those below 0x80 and from 0xe0 on are small integers, and
// the others below 0xc0 are small maps, arrays and strings.
const (
	fixMap   = 0x80 // | number of pairs, less than 16
	fixArray = 0x90 // | number of elements, less than 16
	fixStr   = 0xa0 // | length, less than 32
	codeNil  = 0xc0
	unused   = 0xc1
	no       = 0xc2
	yes      = 0xc3
	bin8     = 0xc4
	bin16    = 0xc5
	bin32    = 0xc6
	ext8     = 0xc7
	ext16    = 0xc8
	ext32    = 0xc9
	float32b = 0xca
	float64b = 0xcb
	uint8b   = 0xcc
	uint16b  = 0xcd
	uint32b  = 0xce
	uint64b  = 0xcf
	int8b    = 0xd0
	int16b   = 0xd1
	int32b   = 0xd2
	int64b   = 0xd3
	fixExt1  = 0xd4
	fixExt2  = 0xd5
	fixExt4  = 0xd6
	fixExt8  = 0xd7
	fixExt16 = 0xd8
	str8     = 0xd9
	str16    = 0xda
	str32    = 0xdb
	array16  = 0xdc
	array32  = 0xdd
	map16    = 0xde
	map32    = 0xdf
	negative = 0xe0 // and above: -32 to -1
)

// The append functions append a value in its smallest encoding. They grow b like append.
// MessagePack cannot represent lengths above 4 GiB, so callers must not pass longer values.

// AppendNil appends nil.
func AppendNil(b []byte) []byte { return append(b, codeNil) }

// AppendBool appends a boolean.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, yes)
	}
	return append(b, no)
}

// AppendInt appends an integer. If it is not negative, it is encoded like an [AppendUint] value,
// because Tarantool's field type "unsigned" depends on the encoding.
func AppendInt(b []byte, v int64) []byte {
	switch {
	case v >= 0:
		return AppendUint(b, uint64(v))
	case v >= -32:
		return append(b, byte(v))
	case v >= math.MinInt8:
		return append(b, int8b, byte(v))
	case v >= math.MinInt16:
		return append16(b, int16b, uint16(v))
	case v >= math.MinInt32:
		return append32(b, int32b, uint32(v))
	}
	return append64(b, int64b, uint64(v))
}

// AppendUint appends an integer.
func AppendUint(b []byte, v uint64) []byte {
	switch {
	case v < fixMap:
		return append(b, byte(v))
	case v <= math.MaxUint8:
		return append(b, uint8b, byte(v))
	case v <= math.MaxUint16:
		return append16(b, uint16b, uint16(v))
	case v <= math.MaxUint32:
		return append32(b, uint32b, uint32(v))
	}
	return append64(b, uint64b, v)
}

// AppendFloat32 appends a single-precision number.
func AppendFloat32(b []byte, v float32) []byte {
	return append32(b, float32b, math.Float32bits(v))
}

// AppendFloat64 appends a double-precision number, whatever its value, because Tarantool's field
// type "double" accepts nothing else.
func AppendFloat64(b []byte, v float64) []byte {
	return append64(b, float64b, math.Float64bits(v))
}

// AppendString appends a string, which does not have to be UTF-8.
func AppendString(b []byte, s string) []byte {
	return append(appendStringHead(b, len(s)), s...)
}

// appendStringHead appends the head of a string of n bytes.
func appendStringHead(b []byte, n int) []byte {
	switch {
	case n < 32:
		return append(b, fixStr|byte(n))
	case n <= math.MaxUint8:
		return append(b, str8, byte(n))
	case n <= math.MaxUint16:
		return append16(b, str16, uint16(n))
	}
	return append32(b, str32, uint32(n))
}

// AppendStringBytes is like [AppendString], for bytes.
func AppendStringBytes(b, s []byte) []byte {
	return append(appendStringHead(b, len(s)), s...)
}

// AppendBytes appends binary data, which Tarantool calls varbinary. To
// send bytes as a string, use [AppendStringBytes].
func AppendBytes(b, v []byte) []byte {
	switch n := len(v); {
	case n <= math.MaxUint8:
		b = append(b, bin8, byte(n))
	case n <= math.MaxUint16:
		b = append16(b, bin16, uint16(n))
	default:
		b = append32(b, bin32, uint32(n))
	}
	return append(b, v...)
}

// AppendArray appends the head of an array. The caller must append its n elements.
func AppendArray(b []byte, n int) []byte {
	switch {
	case n < 16:
		return append(b, fixArray|byte(n))
	case n <= math.MaxUint16:
		return append16(b, array16, uint16(n))
	}
	return append32(b, array32, uint32(n))
}

// AppendMap appends the head of a map. The caller must append its n keys, each followed by its
// value.
func AppendMap(b []byte, n int) []byte {
	switch {
	case n < 16:
		return append(b, fixMap|byte(n))
	case n <= math.MaxUint16:
		return append16(b, map16, uint16(n))
	}
	return append32(b, map32, uint32(n))
}

// AppendExt appends an extension.
func AppendExt(b []byte, typ int8, data []byte) []byte {
	return append(appendExtHead(b, typ, len(data)), data...)
}

// appendExtHead appends the head of an extension of n bytes.
func appendExtHead(b []byte, typ int8, n int) []byte {
	switch n {
	case 1:
		return append(b, fixExt1, byte(typ))
	case 2:
		return append(b, fixExt2, byte(typ))
	case 4:
		return append(b, fixExt4, byte(typ))
	case 8:
		return append(b, fixExt8, byte(typ))
	case 16:
		return append(b, fixExt16, byte(typ))
	}
	switch {
	case n <= math.MaxUint8:
		b = append(b, ext8, byte(n))
	case n <= math.MaxUint16:
		b = append16(b, ext16, uint16(n))
	default:
		b = append32(b, ext32, uint32(n))
	}
	return append(b, byte(typ))
}
