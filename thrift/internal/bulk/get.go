package bulk

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// GetBool reads len(dst) elements of 1 byte each from src. The byte 0 is false; all others are
// true.
func GetBool[E ~bool](dst []E, src []byte) {
	getBool(*(*[]byte)(unsafe.Pointer(&dst)), src)
}

// GetFewBool is GetBool for fewer than [Few] elements. Given more, it does nothing and reports false.
func GetFewBool[E ~bool](dst []E, src []byte) bool {
	if len(dst) >= Few {
		return false
	}
	for i := range dst {
		dst[i] = src[i] != 0
	}
	return true
}

// GetI8 reads len(dst) elements of 1 byte each from src.
func GetI8[E ~int8](dst []E, src []byte) {
	copy(*(*[]byte)(unsafe.Pointer(&dst)), src[:len(dst):len(src)])
}

// GetI16 reads len(dst) elements of 2 bytes each from src.
func GetI16[E ~int16](dst []E, src []byte) {
	get(unsafe.Pointer(unsafe.SliceData(dst)), src, len(dst), 2)
}

// GetFewI16 is GetI16 for fewer than [Few] elements. Given more, it does nothing and reports false.
func GetFewI16[E ~int16](dst []E, src []byte) bool {
	if len(dst) >= Few {
		return false
	}
	for i := range dst {
		dst[i] = E(binary.BigEndian.Uint16(src[2*i:]))
	}
	return true
}

// GetI32 reads len(dst) elements of 4 bytes each from src.
func GetI32[E ~int32](dst []E, src []byte) {
	get(unsafe.Pointer(unsafe.SliceData(dst)), src, len(dst), 4)
}

// GetFewI32 is GetI32 for fewer than [Few] elements. Given more, it does nothing and reports false.
func GetFewI32[E ~int32](dst []E, src []byte) bool {
	if len(dst) >= Few {
		return false
	}
	for i := range dst {
		dst[i] = E(binary.BigEndian.Uint32(src[4*i:]))
	}
	return true
}

// GetI64 reads len(dst) elements of 8 bytes each from src.
func GetI64[E ~int64](dst []E, src []byte) {
	get(unsafe.Pointer(unsafe.SliceData(dst)), src, len(dst), 8)
}

// GetFewI64 is GetI64 for fewer than [Few] elements. Given more, it does nothing and reports false.
func GetFewI64[E ~int64](dst []E, src []byte) bool {
	if len(dst) >= Few {
		return false
	}
	for i := range dst {
		dst[i] = E(binary.BigEndian.Uint64(src[8*i:]))
	}
	return true
}

// GetDouble reads len(dst) elements of 8 bytes each from src. A NaN keeps all its bits.
func GetDouble[E ~float64](dst []E, src []byte) {
	get(unsafe.Pointer(unsafe.SliceData(dst)), src, len(dst), 8)
}

// GetFewDouble is GetDouble for fewer than [Few] elements. Given more, it does nothing and reports false.
func GetFewDouble[E ~float64](dst []E, src []byte) bool {
	if len(dst) >= Few {
		return false
	}
	for i := range dst {
		dst[i] = E(math.Float64frombits(binary.BigEndian.Uint64(src[8*i:])))
	}
	return true
}
