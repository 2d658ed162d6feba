package thrift

import "unsafe"

// newScalar allocates a value for an optional field that is a pointer.
func newScalar(ti *TypeInfo) unsafe.Pointer {
	switch {
	case ti.Wire == TypeString:
		return unsafe.Pointer(new(string))
	case ti.Wire == TypeUUID:
		return unsafe.Pointer(new(UUID))
	case ti.Size == 1:
		return unsafe.Pointer(new(int8))
	case ti.Size == 2:
		return unsafe.Pointer(new(int16))
	case ti.Size == 4:
		return unsafe.Pointer(new(int32))
	}
	return unsafe.Pointer(new(int64))
}
