package bulk

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// PutBool writes src to dst, 1 byte for each element.
func PutBool[E ~bool](dst []byte, src []E) {
	copy(dst[:len(src):len(dst)], *(*[]byte)(unsafe.Pointer(&src)))
}

// PutI8 writes src to dst, 1 byte for each element.
func PutI8[E ~int8](dst []byte, src []E) {
	copy(dst[:len(src):len(dst)], *(*[]byte)(unsafe.Pointer(&src)))
}

// PutI16 writes src to dst, 2 bytes for each element.
func PutI16[E ~int16](dst []byte, src []E) {
	put(dst, unsafe.Pointer(unsafe.SliceData(src)), len(src), 2)
}

// PutFewI16 is PutI16 for fewer than [Few] elements. Given more, it does nothing and reports false.
func PutFewI16[E ~int16](dst []byte, src []E) bool {
	if len(src) >= Few {
		return false
	}
	for i, v := range src {
		binary.BigEndian.PutUint16(dst[2*i:], uint16(v))
	}
	return true
}

// PutI32 writes src to dst, 4 bytes for each element.
func PutI32[E ~int32](dst []byte, src []E) {
	put(dst, unsafe.Pointer(unsafe.SliceData(src)), len(src), 4)
}

// PutFewI32 is PutI32 for fewer than [Few] elements. Given more, it does nothing and reports false.
func PutFewI32[E ~int32](dst []byte, src []E) bool {
	if len(src) >= Few {
		return false
	}
	for i, v := range src {
		binary.BigEndian.PutUint32(dst[4*i:], uint32(v))
	}
	return true
}

// PutI64 writes src to dst, 8 bytes for each element.
func PutI64[E ~int64](dst []byte, src []E) {
	put(dst, unsafe.Pointer(unsafe.SliceData(src)), len(src), 8)
}

// PutFewI64 is PutI64 for fewer than [Few] elements. Given more, it does nothing and reports false.
func PutFewI64[E ~int64](dst []byte, src []E) bool {
	if len(src) >= Few {
		return false
	}
	for i, v := range src {
		binary.BigEndian.PutUint64(dst[8*i:], uint64(v))
	}
	return true
}

// PutDouble writes src to dst, 8 bytes for each element. A NaN keeps all its bits.
func PutDouble[E ~float64](dst []byte, src []E) {
	put(dst, unsafe.Pointer(unsafe.SliceData(src)), len(src), 8)
}

// PutFewDouble is PutDouble for fewer than [Few] elements. Given more, it does nothing and reports false.
func PutFewDouble[E ~float64](dst []byte, src []E) bool {
	if len(src) >= Few {
		return false
	}
	for i, v := range src {
		binary.BigEndian.PutUint64(dst[8*i:], math.Float64bits(float64(v)))
	}
	return true
}
